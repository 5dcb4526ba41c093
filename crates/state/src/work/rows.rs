//! What is open beside gates: work that a worker owes, waits, and timers.

use minicbor::{CborLen, Decode, Encode};
use switchward_machine::{ExitIx, OpenId, Port, Time, WaitOn, WorkKind};

use crate::ItemKind;
use crate::delivery::web_destination;
use crate::run::Json;

/// The worker's name in the leases of work that servers do by themselves. No other worker may have it: the leader of a shard
/// puts what is leased under it on the bus.
pub const SERVER_WORKER: &str = "delivery";

/// What an event opens that is no gate.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum OpenItemBody {
    /// A worker owes a result.
    #[n(0)]
    Work(#[n(0)] WorkItem),
    /// Something is waited for, for as long as its time.
    #[n(1)]
    Wait(#[n(0)] WaitItem),
    /// Something goes on when its time has come.
    #[n(2)]
    Timer(#[n(0)] TimerItem),
}

/// Work that a worker owes.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct WorkItem {
    /// What a worker must be able to do.
    #[n(0)]
    pub kind: WorkKind,
    /// The rest of it.
    #[cbor(n(1), default)]
    pub owed: Owed,
}

/// A wait for something from outside.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct WaitItem {
    /// What ends it before its time.
    #[n(0)]
    pub on: WaitOn,
    /// Until when.
    #[n(1)]
    pub due: Time,
    /// How the act ends then.
    #[n(2)]
    pub late: Port,
    /// How it ends when what is waited for has come.
    #[cbor(n(3), default)]
    pub done: Port,
}

/// A timer of the server's own.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct TimerItem {
    /// When it fires.
    #[n(0)]
    pub due: Time,
    /// What the server does then.
    #[n(1)]
    pub why: Why,
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
    /// The subject of the key that took it: only keys of this subject end or extend the lease. That of
    /// [`Actor::server`](crate::Actor::server) if a server did.
    #[n(2)]
    pub by: String,
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
    /// Returns which kind of open item it is, without its contents.
    #[must_use]
    pub fn kind(&self) -> ItemKind {
        match self {
            Self::Work(_) => ItemKind::Work,
            Self::Wait(_) => ItemKind::Wait,
            Self::Timer(_) => ItemKind::Timer,
        }
    }
}
