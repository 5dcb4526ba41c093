//! Gates, and the calls and grants that come of them.

use minicbor::{CborLen, Decode, Encode};
use switchward_machine::{Decision, Digest, ExitIx, GateIx, GateKind, Micros, NodeIx, RunId, Time};

use crate::policy::LedgerRule;

/// Something open that belongs to one entry of one node. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Open {
    /// Whose it is.
    #[n(0)]
    pub run: RunId,
    /// The node.
    #[n(1)]
    pub node: NodeIx,
    /// Which entry of the run.
    #[n(2)]
    pub entry: u32,
    /// Since when.
    #[n(3)]
    pub at: Time,
    /// What is open.
    #[n(4)]
    pub gate: Gate,
}

/// A decision that a person owes. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Gate {
    /// Its spec in the machine.
    #[n(0)]
    pub spec: GateIx,
    /// The spec's kind.
    #[n(1)]
    pub kind: GateKind,
    /// Who asked, and so cannot decide.
    #[n(2)]
    pub requester: String,
    /// The call that it is about.
    #[n(3)]
    pub call: Option<AskedCall>,
    /// The exit that it holds.
    #[n(4)]
    pub exit: Option<ExitIx>,
    /// The effect that tells people of it.
    #[n(5)]
    pub notice: Option<u64>,
}

impl Gate {
    /// The digest of what a person is shown; an approval is bound to it.
    #[must_use]
    pub fn shown(&self) -> Option<Digest> {
        self.call.as_ref().map(|call| call.digest)
    }
}

/// A call that a person is asked about.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct AskedCall {
    /// What would be called.
    #[n(0)]
    pub capability: String,
    /// With what, in canonical form.
    #[cbor(n(1), with = "minicbor::bytes")]
    pub args: Vec<u8>,
    /// The digest of it.
    #[n(2)]
    pub digest: Digest,
    /// What it is believed to cost.
    #[n(3)]
    pub estimate: Micros,
}

/// A gate that is closed. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Closed {
    /// What was open.
    #[n(0)]
    pub open: Open,
    /// How it was resolved.
    #[n(1)]
    pub resolution: Resolution,
    /// When.
    #[n(2)]
    pub at: Time,
}

/// How a gate was resolved.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum Resolution {
    /// A person decided.
    #[n(0)]
    Decided {
        /// What.
        #[n(0)]
        decision: Decision,
        /// Who.
        #[n(1)]
        by: String,
        /// Why, in the person's words.
        #[n(2)]
        comment: String,
    },
    /// Its node was left, or its run ended.
    #[n(1)]
    Voided,
}

/// A call that is permitted and not yet reported. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Call {
    /// The caller's name for it.
    #[n(0)]
    pub call_id: String,
    /// What is called.
    #[n(1)]
    pub capability: String,
    /// When it was permitted.
    #[n(2)]
    pub at: Time,
    /// Money held for it, here and in the ledger.
    #[n(3)]
    pub reserved: Micros,
    /// The name of its reservation.
    #[n(4)]
    pub reservation: Option<Digest>,
}

/// An approved call that is not yet made. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Grant {
    /// The gate that it comes from.
    #[n(0)]
    pub gate: u64,
    /// What may be called.
    #[n(1)]
    pub capability: String,
    /// With what.
    #[n(2)]
    pub digest: Digest,
    /// Until when.
    #[n(3)]
    pub expires: Time,
    /// Whose entry it belongs to; leaving the node voids it.
    #[n(4)]
    pub run: RunId,
    /// Money held for it.
    #[n(5)]
    pub reserved: Micros,
    /// The name of its reservation.
    #[n(6)]
    pub reservation: Option<Digest>,
    /// The rules that the reservation is in.
    #[n(7)]
    pub rules: Vec<LedgerRule>,
}
