//! Decisions: what is replicated. The log carries them, and evolving them is all that changes state.

use minicbor::{CborLen, Decode, Encode};
use switchward_machine::{Digest, TenantId, Time};

use crate::{Actor, Event, Reply, Scope};

/// What one batch of commands came to: one log entry. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Decision {
    /// The time of the whole batch; never before that of the decision before it.
    #[n(0)]
    pub at: Time,
    /// One for each accepted command that changed something, or whose reply is remembered.
    #[n(1)]
    pub turns: Vec<TurnRecord>,
}

/// The version of a decision's stored form; its first byte.
const FORM: u8 = 1;
/// The usual length of a turn in the log, bytes.
const TURN_BYTES_USUAL: usize = 400;

impl Decision {
    /// The stored form: a form byte, then fields by number.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        crate::wire::framed_about(FORM, self, self.turns.len().saturating_mul(TURN_BYTES_USUAL))
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// Another form, or broken bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, crate::FormError> {
        crate::wire::unframed(FORM, bytes, "decision").map_err(crate::FormError)
    }
}

/// What one command came to.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct TurnRecord {
    /// Whose rows it changes.
    #[n(0)]
    pub tenant: TenantId,
    /// What it is about.
    #[n(1)]
    pub scope: Scope,
    /// By whom.
    #[n(2)]
    pub by: Actor,
    /// The request id and the digest of its body.
    #[n(3)]
    pub request: Option<(String, Digest)>,
    /// The reply, remembered under the request id.
    #[n(4)]
    pub reply: Reply,
    /// What happened, in order. Empty if nothing did, and the reply alone is remembered.
    #[n(5)]
    pub events: Vec<Event>,
}
