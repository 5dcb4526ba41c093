//! Everything that goes out, and what came of it.
//!
//! - [`guard`] says which addresses may be asked at all.
//! - [`http`] is the one HTTP client of this repository: what it connects to was resolved once and passed the guard.
//! - [`model`] asks a language model and accepts nothing but the shape that was asked for.
//! - [`mail`] writes mails and hands them to a mail server.
//! - [`openid`] signs people in with an OpenID provider.
//! - [`desk`] takes errands from the bus, has them done, and hands the outcomes on.
//!
//! It must never know how a session is decided or stored, or how an answer gets back to it: it is given a [`bus`] to
//! take from and [`desk::Answers`] to hand outcomes to.
//!
//! Chosen: a connection of its own for every request, pinned to the addresses that were checked. Rejected: a pool of
//! connections, which would carry what one tenant's rules allowed into another tenant's request.
//!
//! [`bus`]: switchward_bus

pub mod desk;
pub mod guard;
pub mod http;
pub mod limits;
pub mod mail;
pub mod model;
pub mod openid;
mod reason;
mod secret;

pub use reason::{Failed, Reason};
pub use secret::Secret;
