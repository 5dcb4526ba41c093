//! How those who have not decided are reminded.

use minicbor::{CborLen, Decode, Encode};

/// How often, and after what time, those are written to again who have not decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Reminders {
    /// The time before the first, and between two, milliseconds.
    #[n(0)]
    pub every_ms: u64,
    /// How often, at least once.
    #[n(1)]
    pub max: u32,
}
