//! Why calls to the bus fail, and when the next attempt makes sense.

use std::time::Duration;

use crate::bus::Stream;

/// Why a call to the bus failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BusError {
    /// The stream is full; the envelope was not accepted.
    #[error("the stream {stream} is full: try again in {} ms", retry_after.as_millis())]
    Full {
        /// The stream that is full.
        stream: Stream,
        /// How long to wait before the next attempt.
        retry_after: Duration,
    },
    /// A part is longer than allowed, or empty although it must not be. Of `counters`, their number is meant.
    #[error("{what} has {bytes} bytes, 1 to {bytes_max} are allowed")]
    Size {
        /// The part: `body`, `id`, `consumer`, `counter` or `counters`. A body may be empty.
        what: &'static str,
        /// Its length.
        bytes: usize,
        /// The maximum length.
        bytes_max: usize,
    },
    /// The bus was closed, here or at its other end.
    #[error("the bus is closed")]
    Closed,
    /// The bus cannot be reached; whether the call took effect is unknown.
    #[error("failed to reach the bus: {message}")]
    Unreachable {
        /// What happened.
        message: String,
        /// How long to wait before the next attempt.
        retry_after: Duration,
    },
}
