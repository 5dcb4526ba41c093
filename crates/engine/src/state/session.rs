//! Sessions and their runs.

use minicbor::{CborLen, Decode, Encode};
use switchward_machine::{ActIx, Digest, Ending, ExitIx, NodeIx, OpenId, ParamIx, RunId, Status, Time};

/// A session. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Session {
    /// The machine that the root run is pinned to.
    #[n(0)]
    pub machine: Digest,
    /// The definition's name.
    #[n(1)]
    pub definition: String,
    /// The definition's version.
    #[n(2)]
    pub version: u32,
    /// The caller's own key for it.
    #[n(3)]
    pub key: Option<String>,
    /// The role that it was started with.
    #[n(4)]
    pub role: String,
    /// Whether it runs without its policy, because its role is another and the tenant lets it.
    #[n(5)]
    pub without_policy: bool,
    /// Free, for the caller's own use; ordered by key.
    #[n(6)]
    pub labels: Vec<(String, String)>,
    /// When it began.
    #[n(7)]
    pub created: Time,
    /// When something last happened to it.
    #[n(8)]
    pub updated: Time,
    /// When it ended.
    #[n(9)]
    pub ended: Option<Time>,
    /// How many events its history holds.
    #[n(10)]
    pub sequence: u64,
    /// The number that the next open thing, call, grant or effect gets.
    #[n(11)]
    pub next_id: u64,
    /// The run that it is about.
    #[n(12)]
    pub root: RunId,
    /// What it is doing.
    #[n(13)]
    pub status: Status,
    /// Why, in lower case, where the status does not say it all.
    #[n(14)]
    pub reason: Option<String>,
    /// What it has used.
    #[n(15)]
    pub meters: Meters,
    /// Its open gates, oldest first.
    #[n(16)]
    pub opens: Vec<OpenId>,
    /// Its permitted calls that are not yet reported, oldest first.
    #[n(17)]
    pub calls: Vec<u64>,
    /// Its approved calls that are not yet made, oldest first.
    #[n(18)]
    pub grants: Vec<u64>,
    /// The request ids whose replies are remembered, oldest first.
    #[cbor(n(19), with = "crate::state::row::hashes")]
    pub requests: Vec<[u8; 16]>,
    /// The head of the chain of its history: the digest of the head before it and of what the last command added, see
    /// [`History::link`](crate::History::link).
    #[n(20)]
    pub head: Digest,
}

/// What a session has used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Encode, Decode, CborLen)]
pub struct Meters {
    /// Millionths of a US dollar, reported.
    #[n(0)]
    pub usd_micros: u64,
    /// Millionths of a US dollar, reserved for calls that are not yet reported.
    #[n(1)]
    pub reserved_micros: u64,
    /// Tokens, reported.
    #[n(2)]
    pub tokens: u64,
    /// Mails, permitted.
    #[n(3)]
    pub mails: u64,
}

/// One execution of one machine. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Run {
    /// The machine.
    #[n(0)]
    pub machine: Digest,
    /// Where it stands, or where it ended.
    #[n(1)]
    pub node: NodeIx,
    /// Which part of the node's body.
    #[n(2)]
    pub act: ActIx,
    /// How many nodes it has entered.
    #[n(3)]
    pub entry: u32,
    /// How many of them since the last input from outside.
    #[n(4)]
    pub drained: u32,
    /// Since when it stands there.
    #[n(5)]
    pub since: Time,
    /// Its own values of the machine's parameters.
    #[n(6)]
    pub params: Vec<(ParamIx, u64)>,
    /// An exit that a person is asked about; the node is frozen meanwhile.
    #[n(7)]
    pub held: Option<Held>,
    /// What happens on resuming.
    #[n(8)]
    pub due: Option<Due>,
    /// How it ended.
    #[n(9)]
    pub ending: Option<Ending>,
}

/// An exit that waits for a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Held {
    /// The exit.
    #[n(0)]
    pub exit: ExitIx,
    /// The gate.
    #[n(1)]
    pub gate: OpenId,
}

/// What was settled while the session was paused.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum Due {
    /// This exit is taken.
    #[n(0)]
    Take(#[n(0)] ExitIx),
    /// The run ends.
    #[n(1)]
    End(#[n(0)] Ending),
}
