//! What is open beside gates: work that a worker owes, waits, and timers.

use minicbor::{CborLen, Decode, Encode};
use switchward_machine::{ExitIx, NodeIx, OpenId, Port, RunId, Time, WaitOn, WorkKind};

use crate::delivery::web_destination;
use crate::run::Json;

/// Something open that belongs to one entry of one node. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct OpenItem {
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
    pub body: OpenItemBody,
    /// The trace (`traceparent`) of what opened it; what follows from it belongs to that, too.
    #[n(5)]
    pub trace: Option<String>,
}

/// What is open.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum OpenItemBody {
    /// A worker owes a result.
    #[n(0)]
    Work {
        /// Of this kind.
        #[n(0)]
        kind: WorkKind,
        /// The rest of it.
        #[cbor(n(1), default)]
        owed: Owed,
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

/// What a worker owes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Encode, Decode, CborLen)]
pub struct Owed {
    /// What the worker is handed: a JSON object.
    #[n(0)]
    pub input: Json,
    /// The definition, by which workers choose.
    #[n(1)]
    pub queue: String,
    /// What its result is for.
    #[n(2)]
    pub about: About,
    /// How often it was handed out; a result counts only with the number of the last time.
    #[n(3)]
    pub fence: u64,
    /// Who has it, if somebody does.
    #[n(4)]
    pub lease: Option<Lease>,
    /// How many leases have lapsed.
    #[n(5)]
    pub lapsed: u32,
    /// The work of an earlier attempt that this replaces: nobody knows whether it was done.
    #[n(6)]
    pub instead: Option<OpenId>,
}

impl Owed {
    /// Work that nobody has yet.
    #[must_use]
    pub fn new(input: serde_json::Value, queue: &str, about: About) -> Self {
        Self { input: Json(input), queue: queue.to_owned(), about, ..Self::default() }
    }

    /// Its destination, as [`EffectBody::destination`](crate::delivery::EffectBody::destination) has it; empty if the input names
    /// no address, as that of a question does.
    #[must_use]
    pub fn destination(&self) -> String {
        self.input.0.get("url").and_then(serde_json::Value::as_str).map(web_destination).unwrap_or_default()
    }

    /// The number by which a receiver outside can recognise repeats: the same each time that work is handed out, and over
    /// attempts whose outcome nobody knows.
    #[must_use]
    pub fn known_as(&self, own: OpenId) -> OpenId {
        self.instead.unwrap_or(own)
    }
}

/// What the result of work is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Encode, Decode, CborLen)]
pub enum About {
    /// The part of the body that opened it.
    #[default]
    #[n(0)]
    Act,
    /// A guard that asks for a judgement.
    #[n(1)]
    Judge {
        /// The guard's exit.
        #[n(0)]
        exit: ExitIx,
        /// Which of the exit's judgements, from 0.
        #[n(1)]
        nth: u16,
    },
    /// A reply that no phrase decides, to an open gate or wait.
    #[n(2)]
    Reply {
        /// The gate or the wait.
        #[n(0)]
        to: OpenId,
        /// Whether it is a gate.
        #[n(1)]
        gate: bool,
    },
}

/// Somebody has work, for a time.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Lease {
    /// Who, in the worker's own words.
    #[n(0)]
    pub worker: String,
    /// Until when.
    #[n(1)]
    pub until: Time,
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

impl OpenItemBody {
    /// Its kind, `work`, `wait` or `timer`, and its type within the kind: the public names.
    #[must_use]
    pub fn words(&self) -> (&'static str, &'static str) {
        match self {
            Self::Work { kind, .. } => ("work", kind.word()),
            Self::Wait { on, .. } => ("wait", on.word()),
            Self::Timer { why, .. } => ("timer", why.word()),
        }
    }
}

impl OpenItem {
    /// When it falls due, if it does.
    #[must_use]
    pub fn due(&self) -> Option<Time> {
        match &self.body {
            OpenItemBody::Work { owed, .. } => owed.lease.as_ref().map(|lease| lease.until),
            OpenItemBody::Wait { due, .. } | OpenItemBody::Timer { due, .. } => Some(*due),
        }
    }
}
