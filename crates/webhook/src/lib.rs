//! The formats of outgoing and incoming webhooks. Pure: time and random bytes are parameters, nothing is sent.
//!
//! Outgoing: [`standard`] signs as Standard Webhooks 1.0.0, [`event`] has the types of events, [`body`] the body of a
//! message and [`schema`] its schema, [`retry`] decides when to try again and when an endpoint is disabled. Incoming:
//! [`source`] verifies messages, by the kind of their source.
//!
//! Times are since 1970 in UTC, as a [`Duration`](std::time::Duration).
//!
//! This crate must never know: sockets, tenants, what happens to a message.

pub mod body;
pub mod event;
pub mod greeting;
pub mod headers;
pub mod limits;
mod mac;
pub mod retry;
pub mod schema;
pub mod secret;
pub mod source;
pub mod standard;
mod unverified;

pub use body::{Body, BodyError, Data};
pub use event::{EventType, Filter, Filters, Group};
pub use greeting::{Greeting, greeting};
pub use headers::Headers;
pub use secret::{SecretMalformed, SigningSecret};
pub use source::{Covers, SourceKind, Unproven, Verified, verify};
pub use unverified::Unverified;
