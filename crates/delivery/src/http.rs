//! The one HTTP client of this repository.
//!
//! A request's name is resolved once, every address that comes is checked, and the connection goes to those addresses
//! and no others; one that was kept is used where it went to just those, for the same tenant. There is no second lookup, no proxy, no redirect that is followed (it is an answer like any other),
//! no body that is decompressed, and nothing that is read without a limit or waited for without a deadline.

mod answer;
mod client;
mod headers;
mod resolve;
mod transports;

use std::time::Duration;

use serde_json::Value;

pub use client::{Client, Config, SetupError};
pub use resolve::{Resolve, SystemResolver};

use crate::Failed;
use crate::guard::Refused;

/// What is sent.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The method's name, such as `POST`.
    pub method: String,
    /// The address, as the definition has it.
    pub url: String,
    /// Headers in order. Those that the transport sets itself are refused: `host`, `content-length`, `connection` and
    /// whatever else is between two neighbours only, `accept-encoding`.
    pub headers: Vec<(String, String)>,
    /// Sent as JSON. A text whose sender names another `content-type` is sent as it is.
    pub body: Option<Value>,
    /// How long all of it may take, at most [`DEADLINE_MS_MAX`](crate::limits::DEADLINE_MS_MAX).
    pub deadline: Duration,
}

/// What was answered, whatever its status.
#[derive(Debug, Clone, PartialEq)]
pub struct Response {
    /// The HTTP status.
    pub status: u16,
    /// The JSON that was answered; a text if it is not JSON; null if it is empty.
    pub body: Value,
    /// How long the receiver asks to wait, if it says so.
    pub retry_after: Option<Duration>,
}

impl From<Refused> for Failed {
    fn from(refused: Refused) -> Self {
        Self::new(refused.reason, refused.told)
    }
}
