//! What should be looked at in a session: facts, which the crate `messages` puts into words.

use minicbor::{CborLen, Decode, Encode};
use switchward_machine::OpenId;

use crate::approval::Progress;
use crate::run::{Fault, OutboxExcess, WriteProblem};

/// Something in a session that should be looked at. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum SessionWarning {
    /// The definition has a weakness, which its check reports.
    #[n(0)]
    Definition {
        /// The finding.
        #[n(0)]
        text: String,
    },
    /// An operation of the definition logs a text.
    #[n(1)]
    Logged {
        /// What the operation logs.
        #[n(0)]
        text: String,
    },
    /// A message of a state is not sent.
    #[n(2)]
    Unsent {
        /// The name of the state.
        #[n(0)]
        state: String,
        /// The maximum that it would exceed.
        #[n(1)]
        excess: OutboxExcess,
    },
    /// Messages to endpoints are not sent, because too many have not arrived.
    #[n(3)]
    EndpointsFull {
        /// How many.
        #[n(0)]
        count: u64,
    },
    /// A cap was raised above that of a policy of the tenant.
    #[n(4)]
    StillCapped {
        /// The layer of that policy.
        #[n(0)]
        layer: String,
        /// The cap of that policy, millionths of a dollar.
        #[n(1)]
        cap: u64,
    },
    /// A switch does not carry a value over, because the new workflow reserves its key.
    #[n(5)]
    NotCarriedOver {
        /// The reserved key of the data.
        #[n(0)]
        key: String,
        /// The name of the new workflow.
        #[n(1)]
        workflow: String,
    },
    /// A name in the audience of a start has no address now.
    #[n(6)]
    NobodyBehind {
        /// The name in the audience.
        #[n(0)]
        name: String,
    },
    /// A value of the start does not fit the workflow that was chosen.
    #[n(7)]
    NotMerged {
        /// The reason.
        #[n(0)]
        problem: WriteProblem,
    },
    /// The engine cannot write below a reserved key, because the data would become too large.
    #[n(8)]
    DataFull {
        /// The reserved key.
        #[n(0)]
        key: String,
        /// The name of the state below that key.
        #[n(1)]
        state: String,
    },
    /// A state has failed, and its definition ignores that.
    #[n(9)]
    Ignored {
        /// The name of the state that has failed.
        #[n(0)]
        state: String,
        /// The failure.
        #[n(1)]
        fault: Fault,
    },
    /// Nobody can be asked, so that the state is not left.
    #[n(10)]
    NoRecipients {
        /// The reason.
        #[n(0)]
        fault: Fault,
    },
    /// A task has no participants, and is done.
    #[n(11)]
    NoParticipants {
        /// The name of the state that the task is.
        #[n(0)]
        state: String,
    },
    /// Data that waited for an approval do not fit any more.
    #[n(12)]
    WaitedDataFull {
        /// The reason.
        #[n(0)]
        problem: WriteProblem,
    },
    /// A gate has a problem.
    #[n(13)]
    AtGate {
        /// The number of the gate in the session.
        #[n(0)]
        gate: OpenId,
        /// The problem.
        #[n(1)]
        trouble: GateTrouble,
    },
}

/// A problem of a gate, when it opens, in a later round, or when a mail does not arrive.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum GateTrouble {
    /// It needs more approvals than it asks people who may decide.
    #[n(0)]
    TooFewRecipients {
        /// The approvals that it needs.
        #[n(0)]
        need: u32,
        /// The people that it asks.
        #[n(1)]
        asks: u64,
        /// Whether others may approve as well.
        #[n(2)]
        open: bool,
    },
    /// It asks some people at several addresses, and each approves once.
    #[n(1)]
    SharedAddresses {
        /// How many people it asks.
        #[n(0)]
        people: u64,
        /// How many addresses they have together.
        #[n(1)]
        addresses: u64,
    },
    /// Nobody is notified of it.
    #[n(2)]
    Unnotified {
        /// The reason.
        #[n(0)]
        why: NoAudience,
    },
    /// Data or the start names approvers who are not in the directory, and so are not asked.
    #[n(3)]
    NotInDirectory {
        /// Their names.
        #[n(0)]
        who: Vec<String>,
    },
    /// Nobody else is asked in its next round.
    #[n(4)]
    NobodyElse {
        /// The reason.
        #[n(0)]
        fault: Fault,
    },
    /// Nobody is reminded of it.
    #[n(5)]
    NotReminded {
        /// The maximum that the mails would exceed.
        #[n(0)]
        excess: OutboxExcess,
    },
    /// It cannot get the approvals that it needs, because mails do not reach its approvers.
    #[n(6)]
    QuorumLost {
        /// The approvals so far, and how many it needs.
        #[n(0)]
        progress: Progress,
        /// The people that no mail reaches.
        #[n(1)]
        unreached: Vec<String>,
    },
}

/// Why nobody is notified of a gate.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum NoAudience {
    /// Neither the session's audience, nor the directory's entry of the definition's owner, nor the default audience has an
    /// address.
    #[n(0)]
    NoAddress {
        /// The directory's entry.
        #[n(0)]
        owner: String,
    },
    /// The mails would be too many or too long.
    #[n(1)]
    TooMuch {
        /// The maximum that they would exceed.
        #[n(0)]
        excess: OutboxExcess,
    },
}

impl SessionWarning {
    /// Returns true if it is about the definition and not about this session.
    #[must_use]
    pub fn is_of_definition(&self) -> bool {
        matches!(self, Self::Definition { .. })
    }

    /// The bytes of its stored form.
    #[must_use]
    pub fn bytes(&self) -> usize {
        minicbor::len(self)
    }
}
