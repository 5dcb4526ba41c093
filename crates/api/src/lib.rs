//! The public API as Rust: messages, clients and servers of `proto/switchward/v1`, generated when this crate is built,
//! and their descriptors.
//!
//! This crate knows nothing but the API: no engine, no transport policy, no conversion. Entry points are [`v1`] for the
//! generated code, [`FILE_DESCRIPTOR_SET`] for reflection, [`descriptor_pool`] for whatever works on any message, and
//! [`route`] for what passes calls on.
//!
//! Chosen: protox compiles the sources. Rejected: `protoc`, a tool to install; committed generated code, a second
//! source of truth to keep equal.

pub mod codec;
mod descriptors;
mod routes;
pub mod v1;

pub use descriptors::{FILE_DESCRIPTOR_SET, PACKAGE, descriptor_pool};
pub use routes::{Effect, ROUTES, Route, RouteTo, route, text_field};
