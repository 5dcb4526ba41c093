//! What is open beside gates: work that a worker owes, waits, and timers.

use minicbor::{CborLen, Decode, Encode};
use switchward_machine::{NodeIx, Port, RunId, Time, WaitOn, WorkKind};

/// Something open that belongs to one entry of one node. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Thing {
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
    pub body: Body,
}

/// What is open.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum Body {
    /// A worker owes a result.
    #[n(0)]
    Work {
        /// Of this kind.
        #[n(0)]
        kind: WorkKind,
    },
    /// Something is waited for, for as long as its time.
    #[n(1)]
    Wait {
        /// What.
        #[n(0)]
        on: WaitOn,
        /// Until when.
        #[n(1)]
        due: Time,
        /// How the act ends then.
        #[n(2)]
        late: Port,
        /// How it ends when what is waited for has come.
        #[cbor(n(3), default)]
        done: Port,
    },
    /// Something goes on when its time has come.
    #[n(2)]
    Timer {
        /// When.
        #[n(0)]
        due: Time,
        /// What.
        #[n(1)]
        why: Why,
    },
}

/// What a timer is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Encode, Decode, CborLen)]
pub enum Why {
    /// The next attempt of the node's body.
    #[n(0)]
    Backoff,
}

impl Why {
    /// The public name.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Backoff => "backoff",
        }
    }
}

impl Thing {
    /// When it falls due, where it does.
    #[must_use]
    pub fn due(&self) -> Option<Time> {
        match &self.body {
            Body::Work { .. } => None,
            Body::Wait { due, .. } | Body::Timer { due, .. } => Some(*due),
        }
    }
}
