//! What a tenant holds in a shard.

use minicbor::{CborLen, Decode, Encode};

/// What a tenant holds in one shard. Stored form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Encode, Decode, CborLen)]
pub struct Usage {
    /// Sessions that are kept, those that have ended among them.
    #[n(0)]
    pub sessions: u64,
    /// Bytes of their histories and remembered replies, as they are stored: the sum of [`Session::bytes`](crate::session::Session::bytes).
    #[n(1)]
    pub bytes: u64,
}

impl Usage {
    /// Both together, such as those of two shards.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            sessions: self.sessions.saturating_add(other.sessions),
            bytes: self.bytes.saturating_add(other.bytes),
        }
    }
}
