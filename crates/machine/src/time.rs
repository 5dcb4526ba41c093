//! Time as the log stamps it.

use minicbor::{CborLen, Decode, Encode};

/// Milliseconds since 1970 in UTC, stamped once on a batch; it never runs backwards inside a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Encode, Decode, CborLen)]
#[cbor(transparent)]
pub struct Time(#[n(0)] pub u64);

impl Time {
    /// This much later, kept at the end of time.
    #[must_use]
    pub fn after_ms(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// How long ago `earlier` was; 0 if it lies ahead.
    #[must_use]
    pub fn since_ms(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}
