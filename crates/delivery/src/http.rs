//! The one HTTP client of this repository.
//!
//! A request's name is resolved once, every resulting address is checked, and the connection goes to those addresses and
//! no others; a pooled connection is reused only if it went to exactly those, for the same tenant. There is no second
//! lookup, no proxy, no followed redirect (it is an answer like any other), no decompressed body, and nothing is read
//! without a limit or waited for without a deadline.

mod answer;
mod client;
mod headers;
mod lookups;
mod resolve;
mod transports;

use std::time::Duration;

use serde_json::Value;

pub use client::{Client, Config, SetupError};
pub use resolve::{Resolve, SystemResolver};

use crate::Failed;
use crate::guard::Refused;

/// An HTTP request.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The method's name, such as `POST`.
    pub method: String,
    /// The address, as the definition has it.
    pub url: String,
    /// Headers in order. Those that the transport sets itself are refused: `host`, `content-length`, `accept-encoding`,
    /// `connection` and the other hop-by-hop headers.
    pub headers: Vec<(String, String)>,
    /// Sent as JSON. A string is sent verbatim if the sender names another `content-type`.
    pub body: Option<Value>,
    /// How long the whole exchange may take, at most [`DEADLINE_MS_MAX`](crate::limits::DEADLINE_MS_MAX).
    pub deadline: Duration,
}

/// An HTTP response of any status.
#[derive(Debug, Clone, PartialEq)]
pub struct Response {
    /// The HTTP status.
    pub status: u16,
    /// The body as JSON; a string if it is not JSON; null if it is empty, or if only the head matters.
    pub body: Value,
    /// How long the receiver asks to wait.
    pub retry_after: Option<Duration>,
}

impl From<Refused> for Failed {
    fn from(refused: Refused) -> Self {
        Self::new(refused.reason, refused.detail)
    }
}
