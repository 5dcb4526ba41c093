//! The outbox: needs for the outside, kept until they are met.

use minicbor::{CborLen, Decode, Encode};
use switchward_machine::{Channel, Content, Digest, GateKind, Micros, NodeIx, OpenId, RunId, Time};

use crate::policy::LedgerRule;

/// One effect. Stored form. Its key, `(run, node, entry, ordinal)`, is the same for every delivery of it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Effect {
    /// Whose it is.
    #[n(0)]
    pub run: RunId,
    /// The node that caused it.
    #[n(1)]
    pub node: NodeIx,
    /// Which entry of the run.
    #[n(2)]
    pub entry: u32,
    /// Its number in the session.
    #[n(3)]
    pub number: u64,
    /// Not before this time.
    #[n(4)]
    pub deliver_at: Time,
    /// The trace that it belongs to.
    #[n(5)]
    pub trace: Option<String>,
    /// What is needed.
    #[n(6)]
    pub body: EffectBody,
}

/// What is needed from the outside.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum EffectBody {
    /// The process's people are told of a gate.
    #[n(0)]
    Notice {
        /// The gate.
        #[n(0)]
        gate: OpenId,
        /// Its kind.
        #[n(1)]
        kind: GateKind,
        /// One line.
        #[n(2)]
        subject: String,
    },
    /// A reservation is confirmed to its ledger.
    #[n(1)]
    Confirm {
        /// The ledger.
        #[n(0)]
        process: String,
        /// The reservation.
        #[n(1)]
        call: Digest,
        /// What it is in.
        #[n(2)]
        rules: Vec<LedgerRule>,
        /// What it holds.
        #[n(3)]
        estimate: Micros,
        /// When it was made.
        #[n(4)]
        at: Time,
    },
    /// A reservation ends, with what the call cost.
    #[n(2)]
    Settle {
        /// The ledger.
        #[n(0)]
        process: String,
        /// The reservation, where there was one.
        #[n(1)]
        call: Option<Digest>,
        /// What it is in, and what is charged.
        #[n(2)]
        rules: Vec<LedgerRule>,
        /// What it cost.
        #[n(3)]
        cost: Micros,
        /// When it was reported.
        #[n(4)]
        at: Time,
        /// Whether the call was never permitted.
        #[n(5)]
        release: bool,
    },
    /// A message goes out.
    #[n(3)]
    Message {
        /// The way.
        #[n(0)]
        channel: Channel,
        /// To whom; empty in the conversation itself.
        #[n(1)]
        to: String,
        /// One line.
        #[n(2)]
        subject: Option<String>,
        /// The rest, rendered.
        #[n(3)]
        body: String,
        /// What the body is.
        #[n(4)]
        content: Content,
        /// The gate that it is about, where it is about one.
        #[cbor(n(5), default)]
        gate: Option<OpenId>,
    },
}

impl EffectBody {
    /// Whether the server itself carries it to one of its shards.
    #[must_use]
    pub fn inner(&self) -> bool {
        match self {
            Self::Notice { .. } | Self::Message { .. } => false,
            Self::Confirm { .. } | Self::Settle { .. } => true,
        }
    }
}
