//! What makes a repeated request find the first reply.

use minicbor::{CborLen, Decode, Encode};
use switchward_machine::Digest;

/// A request id, and the digest of the body that came with it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct RequestId {
    /// 1 to 128 characters.
    #[n(0)]
    pub id: String,
    /// Of the request as the caller sent it.
    #[n(1)]
    pub body: Digest,
}

impl RequestId {
    /// The part of a key that stands for the id.
    #[must_use]
    pub fn hash(&self) -> [u8; 16] {
        let digest = Digest::of(self.id.as_bytes());
        let mut hash = [0u8; 16];
        hash.copy_from_slice(&digest.0[..16]);
        hash
    }
}
