//! Why the bus did not do it.

use std::time::Duration;

use crate::bus::Stream;

/// What kept the bus from doing what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BusError {
    /// The stream holds as much as it may; the envelope was not taken on.
    #[error("the stream {stream} is full: try again in {} ms", retry_after.as_millis())]
    Full {
        /// The stream that is full.
        stream: Stream,
        /// How long to wait before the next try.
        retry_after: Duration,
    },
    /// Something that was handed over is longer than it may be, or empty where it may not.
    #[error("{what} has {bytes} bytes, from 1 to {bytes_max} are allowed")]
    Size {
        /// What it is: `body`, `id` or `consumer`. A body may be empty.
        what: &'static str,
        /// How long it is.
        bytes: usize,
        /// How long it may be.
        bytes_max: usize,
    },
    /// The bus was closed, here or at its other end.
    #[error("the bus is closed")]
    Closed,
    /// The bus cannot be reached; whether it did what it was asked is not known.
    #[error("failed to reach the bus: {told}")]
    Unreachable {
        /// What happened.
        told: String,
        /// How long to wait before the next try.
        retry_after: Duration,
    },
}
