//! Sessions and their runs.

use minicbor::{CborLen, Decode, Encode};
use switchward_machine::{ActIx, Digest, Ending, ExitIx, NodeIx, OpenId, ParamIx, Port, RunId, Status, Time};

use super::{
    EventSource, GateSettings, Json, Outbox, Parent, PendingInput, Pinned, PinnedPolicy, Quorum, Removal,
};
use crate::key::Kind;
use crate::reply_token::ReplyKey;

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
    /// The head of the chain of its history: the digest of the head before it and of what the last command added, see
    /// [`History::link`](crate::History::link).
    #[n(20)]
    pub head: Digest,
    /// The runs that wait for the one before them to end, in their order.
    #[cbor(n(21), default)]
    pub queue: Vec<RunId>,
    /// How many runs it has had.
    #[cbor(n(22), default)]
    pub runs: u32,
    /// The address of whom the conversation is with.
    #[cbor(n(23), default)]
    pub contact: Option<String>,
    /// Events that came before anything listened to them, oldest first.
    #[cbor(n(24), default)]
    pub early: Vec<Early>,
    /// The workflows that it may switch between, where there are several.
    #[cbor(n(25), default)]
    pub workflows: Vec<Attached>,
    /// Closed gates that addressed somebody, oldest first; late replies are told of them.
    #[cbor(n(26), default)]
    pub answered: Vec<OpenId>,
    /// The request ids whose replies are remembered, oldest first.
    #[cbor(n(27), with = "crate::state::row::remembered", default)]
    pub requests: Vec<Remembered>,
    /// The definitions that its runs call.
    #[cbor(n(29), skip_if = "Vec::is_empty")]
    pub callees: Vec<Pinned>,
    /// The assistant that it is with, where it is with one.
    #[n(30)]
    pub assistant: Option<Box<Assisted>>,
    /// What its reply tokens are made with, where events from outside can be for it.
    #[n(31)]
    pub reply_key: Option<ReplyKey>,
    /// What of it waits to arrive outside, where something does.
    #[n(32)]
    pub outbox: Option<Box<Outbox>>,
    /// Where the session stood before effects arrived or were put off, where nothing else has happened since: whoever
    /// saw it then has missed nothing.
    #[n(33)]
    pub steady: Option<u64>,
    /// Who is told of gates that address nobody, as the start says: addresses and names; none: as the tenant's directory
    /// says.
    #[cbor(n(34), default, skip_if = "Vec::is_empty")]
    pub audience: Vec<String>,
    /// The mails that it has sent on the last day on which it sent any.
    #[n(35)]
    pub mailed: Option<MailDay>,
    /// How those who have not decided are reminded, as the start says; `None`: as the directory says.
    #[n(36)]
    pub reminders: Option<Reminders>,
    /// Calls that are permitted and that their ledger has not counted yet, by their names: until it has, it would take a
    /// further call of such a name for the same one.
    #[cbor(n(37), default, skip_if = "Vec::is_empty")]
    pub uncounted: Vec<Digest>,
    /// How many of those whom a gate asks must approve, as the start says; `None`: as the directory says.
    #[n(38)]
    pub quorum: Option<Quorum>,
    /// The policy documents that hold for its runs, as they were when it began.
    #[cbor(n(45), default, skip_if = "Vec::is_empty")]
    pub policies: Vec<PinnedPolicy>,
    /// Who is asked, too, where those who were asked do not decide, as the start says; none: as the directory says.
    #[cbor(n(39), default, skip_if = "Vec::is_empty")]
    pub escalation: Vec<String>,
    /// Whether approvers are asked whom data or the start names and the directory does not hold, whatever the tenant says.
    #[cbor(n(40), default, skip_if = "std::ops::Not::not")]
    pub any_approver_address: bool,
    /// The removal of its data, where one has begun.
    #[n(46)]
    pub removal: Option<Box<Removal>>,
}

/// How often, and after what time, those are written to again who have not decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Reminders {
    /// The time before the first, and between two, milliseconds.
    #[n(0)]
    pub every_ms: u64,
    /// How often, at least once.
    #[n(1)]
    pub max: u32,
}

/// How many mails were sent on one day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Encode, Decode, CborLen)]
pub struct MailDay {
    /// The calendar day of UTC, counted from 1 January 1970.
    #[n(0)]
    pub day: u32,
    /// Mails, each of which goes to one address.
    #[n(1)]
    pub count: u32,
}

impl MailDay {
    /// How many were sent on the day of this time.
    #[must_use]
    pub fn on(self, at: Time) -> u32 {
        if self.day == Self::day_of(at) { self.count } else { 0 }
    }

    /// The same with one more.
    #[must_use]
    pub(crate) fn with_one(self, at: Time) -> Self {
        Self { day: Self::day_of(at), count: self.on(at).saturating_add(1) }
    }

    fn day_of(at: Time) -> u32 {
        u32::try_from(at.0 / DAY_MS).unwrap_or(u32::MAX)
    }
}

/// Milliseconds.
const DAY_MS: u64 = 24 * 3_600_000;

/// A request id whose reply stands in the history. Stored form: 24 bytes of a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remembered {
    /// Of the id, see [`RequestId::hash`](crate::RequestId::hash).
    pub hash: [u8; 16],
    /// The sequence of the first event of what it did, which is the key of its history.
    pub sequence: u64,
}

/// The assistant that a session is with, as it was when the session began.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Assisted {
    /// Its name.
    #[n(0)]
    pub name: String,
    /// What it is told beside what a state says; may be empty.
    #[n(1)]
    pub instructions: String,
}

/// An event that came before anything listened to it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Early {
    /// Its key.
    #[n(0)]
    pub key: String,
    /// What came with it.
    #[n(1)]
    pub data: Json,
    /// Until when it is kept.
    #[n(2)]
    pub until: Time,
    /// Whether a model was at hand that could be asked what it means.
    #[cbor(n(3), default)]
    pub model: bool,
    /// Where it came from.
    #[n(4)]
    pub source: EventSource,
}

/// The first number of a session's open things, calls, grants and effects.
pub(crate) const FIRST_ID: u64 = 1;

/// The last message of a conversation that is not the agent's own.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Said {
    /// The message.
    #[n(0)]
    pub text: String,
    /// Whether it is the user's: what an agent relays confirms nothing.
    #[n(1)]
    pub by_user: bool,
    /// Its number in the session's history, from 0.
    #[n(2)]
    pub sequence: u64,
}

/// A workflow that a session may switch to.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Attached {
    /// The definition's name.
    #[n(0)]
    pub definition: String,
    /// Its version.
    #[n(1)]
    pub version: u32,
    /// The machine.
    #[n(2)]
    pub machine: Digest,
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

impl Session {
    /// Whether whoever saw it at this sequence has missed nothing but how far effects have come.
    #[must_use]
    pub fn is_seen_at(&self, sequence: u64) -> bool {
        (self.steady.unwrap_or(self.sequence)..=self.sequence).contains(&sequence)
    }

    /// What its start says of its gates.
    #[must_use]
    pub fn start_settings(&self) -> GateSettings {
        GateSettings {
            audience: self.audience.clone(),
            quorum: self.quorum,
            reminders: self.reminders,
            escalation: self.escalation.clone(),
        }
    }

    /// Whether it does not exist for callers, because its data is being removed.
    #[must_use]
    pub fn is_hidden(&self) -> bool {
        self.removal.as_deref().is_some_and(|removal| removal.how.hides())
    }

    /// Returns true if the session cannot have rows of this kind. False says nothing.
    #[must_use]
    pub fn lacks(&self, kind: Kind) -> bool {
        let numbered = [Kind::Outbox, Kind::Thing, Kind::Open, Kind::Call, Kind::Grant, Kind::Closed];
        (self.next_id == FIRST_ID && numbered.contains(&kind))
            || (kind == Kind::Request && self.requests.is_empty())
    }

    /// Whether what it held is erased, or being so.
    #[must_use]
    pub fn is_erased(&self) -> bool {
        self.removal.as_deref().is_some_and(|removal| removal.how == super::Removing::Erased)
    }

    /// What of it waits to arrive outside.
    #[must_use]
    pub fn outbox(&self) -> Outbox {
        self.outbox.as_deref().copied().unwrap_or_default()
    }
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
    /// The definition's name.
    #[cbor(n(10), default)]
    pub definition: String,
    /// The definition's version.
    #[cbor(n(11), default)]
    pub version: u32,
    /// Which attempt of the node's body this is, from 1.
    #[cbor(n(12), default)]
    pub attempt: u32,
    /// How many of the attempts the agent asked for.
    #[cbor(n(13), default)]
    pub asked: u32,
    /// Whether the body has come to its end and no exit was taken.
    #[cbor(n(14), default)]
    pub rests: bool,
    /// Tools that were called since the node was entered, and whether one of the calls worked.
    #[cbor(n(15), default)]
    pub called: Vec<(String, bool)>,
    /// The loops that the body is in, outermost first.
    #[cbor(n(16), default)]
    pub loops: Vec<Loop>,
    /// What is open of this entry beside gates, oldest first.
    #[cbor(n(17), default)]
    pub things: Vec<OpenId>,
    /// Keys of the events that have come since the node was entered.
    #[cbor(n(18), default)]
    pub seen: Vec<String>,
    /// The port at which the body ended and from which a person has not let it leave.
    #[cbor(n(19), default)]
    pub refused: Option<Port>,
    /// Addresses to which the run has sent mails of its own, the newest last; a reply may come from them.
    #[cbor(n(20), default)]
    pub mailed: Vec<String>,
    /// Those to whom the definition itself has written: their reply may end a wait, that of an agent's own choice may not.
    #[cbor(n(29), default, skip_if = "Vec::is_empty")]
    pub recipients: Vec<String>,
    /// Those of them who were written back to about a reply, as often as that was.
    #[cbor(n(27), default, skip_if = "Vec::is_empty")]
    pub told: Vec<String>,
    /// A choice of exits that waits for a judgement.
    #[cbor(n(21), default)]
    pub choice: Option<Choice>,
    /// What it was called from, where it is a child.
    #[cbor(n(24), default)]
    pub parent: Option<Parent>,
    /// How many places its children have in this entry; none while it has no children.
    #[cbor(n(25), skip_if = "is_none")]
    pub slots: u32,
    /// Work of an earlier attempt at this entry whose outcome nobody knows.
    #[n(26)]
    pub unknown: Option<Unknown>,
    /// What came while an approval of it was open, oldest first; it enters when that closes.
    #[cbor(n(28), default, skip_if = "Vec::is_empty")]
    pub pending: Vec<PendingInput>,
    /// The number of its last entry in the session's history: a message from before it confirms nothing.
    #[cbor(n(30), default)]
    pub entered: u64,
}

impl Run {
    /// What makes work of the body the same in two attempts: its part of the body, the item of each loop that it is in, and
    /// what is handed out.
    #[must_use]
    pub fn name_of(&self, input: &serde_json::Value) -> Digest {
        let loops: Vec<u8> = self.loops.iter().flat_map(|it| it.at.to_be_bytes()).collect();
        Digest::of_parts(&[b"work", &self.act.0.to_be_bytes(), &loops, input.to_string().as_bytes()])
    }
}

/// Work that may have been done, although nobody came back with a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Unknown {
    /// The number that it was known by outside.
    #[n(0)]
    pub key: OpenId,
    /// What it was: see [`Run::name_of`].
    #[n(1)]
    pub of: Digest,
}

fn is_none(count: &u32) -> bool {
    *count == 0
}

/// A choice of exits that waits for a judgement.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Choice {
    /// Whether an event is its cause, and only the exits that listen to events are looked at.
    #[n(0)]
    pub event: bool,
    /// What was judged so far.
    #[n(1)]
    pub judged: Vec<Judged>,
}

/// A judgement that was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Judged {
    /// The exit whose guard asked.
    #[n(0)]
    pub exit: ExitIx,
    /// Which of the exit's judgements, from 0.
    #[n(1)]
    pub nth: u16,
    /// What it was.
    #[n(2)]
    pub holds: bool,
}

/// A loop whose operations are acts of their own.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Loop {
    /// What the item is called.
    #[n(0)]
    pub name: String,
    /// The list, as it was when the loop began.
    #[n(1)]
    pub items: Json,
    /// Which item it is at, from 0.
    #[n(2)]
    pub at: u32,
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
    /// The body's current part ends with this port.
    #[n(2)]
    Ended(#[n(0)] Port),
    /// The node's body begins again.
    #[n(3)]
    Again,
    /// A judgement has come, and the choice goes on.
    #[n(4)]
    Judged,
    /// Something has gone wrong.
    #[n(5)]
    Fault {
        /// The lower-case code.
        #[n(0)]
        code: String,
        /// What exactly.
        #[n(1)]
        message: String,
    },
    /// These of the session's workflows begin, one after the other; of none, it is asked again which are meant.
    #[n(10)]
    Chosen(#[n(0)] Vec<String>),
}
