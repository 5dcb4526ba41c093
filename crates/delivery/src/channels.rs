//! The channels: one file each, with the input of its jobs and how one is performed.

mod bounds;
mod call;
pub(crate) mod http;
pub(crate) mod mail;
pub(crate) mod model;
pub(crate) mod ping;
pub(crate) mod webhook;

pub(crate) use call::CallContext;
pub use http::{Answer, HttpRequest};
pub use mail::MailChannel;
pub use ping::{PingAnswer, PingFailure, ping};
pub use webhook::{Event, Message, Webhook};
