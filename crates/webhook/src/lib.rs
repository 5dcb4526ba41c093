//! The forms of webhooks, both ways. Pure: the time is handed in, random bytes are handed in, nothing is sent.
//!
//! Out: [`standard`] signs after Standard Webhooks 1.0.0, [`event`] names what can go out, [`body`] is what a message
//! says and [`schema`] describes it, [`retry`] tells when to try again and when an endpoint is left alone. In:
//! [`source`] verifies what others send, each in the way of its kind.
//!
//! Moments are the time since 1970 in UTC, as a [`Duration`](std::time::Duration).
//!
//! This crate must never know: sockets, tenants, what becomes of a message.

pub mod body;
pub mod event;
pub mod greeting;
pub mod headers;
pub mod limits;
pub mod retry;
pub mod schema;
mod seal;
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
