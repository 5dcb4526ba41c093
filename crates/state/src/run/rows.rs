//! Runs: executions of machines within a session.

use minicbor::{CborLen, Decode, Encode};
use switchward_machine::{ActIx, Digest, Ending, ExitIx, NodeIx, OpenId, ParamIx, Port, RunId, Time};

use crate::limits::MAILED_MAX;
use crate::run::{Fault, Frame, Json, Parent, PendingInput};

/// The run of a session with an assistant, before it is known which workflows are meant.
pub const RUN: RunId = RunId(0);

/// One execution of one machine. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Run {
    /// The digest of the machine that it executes.
    #[n(0)]
    pub machine: Digest,
    /// The node that it stands at, or ended in.
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
    pub due: Option<Deferral>,
    /// How it ended; `None` while it goes on.
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
    /// Whether the body has ended and no exit was taken.
    #[cbor(n(14), default)]
    pub rests: bool,
    /// Tools that were called since the node was entered, and whether one of the calls worked.
    #[cbor(n(15), default)]
    pub called: Vec<(String, bool)>,
    /// The loops that the body is in, outermost first.
    #[cbor(n(16), default)]
    pub loops: Vec<Loop>,
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
    pub answered_back: Vec<String>,
    /// A choice of exits that waits for a judgement.
    #[cbor(n(21), default)]
    pub choice: Option<Choice>,
    /// What it was called from, if it is a child.
    #[cbor(n(24), default)]
    pub parent: Option<Parent>,
    /// How many slots its children have in this entry; none while it has no children.
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
    /// The requester of a gate that opens on resuming.
    #[n(31)]
    pub requester: Option<String>,
    /// What it has failed of, if something has gone wrong in it.
    #[n(34)]
    pub failure: Option<Failure>,
    /// What it has as one of several children of its parent's machine; `None` if it is none.
    #[n(32)]
    pub frame: Option<Frame>,
}

/// What a run has failed of, at the node in which it ended.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Failure {
    /// Which attempt of the node's body it was, from 1.
    #[n(0)]
    pub attempt: u32,
    /// What has gone wrong.
    #[n(1)]
    pub fault: Fault,
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
    /// The requester of a gate that opens because of a judgement: the one who has caused the choice, and not the judge.
    #[n(2)]
    pub requester: String,
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
    /// Whether the guard's question was answered with yes.
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
    /// The exit that is taken if the person approves.
    #[n(0)]
    pub exit: ExitIx,
    /// The number of the gate that asks the person.
    #[n(1)]
    pub gate: OpenId,
}

/// What was settled while the session was paused.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum Deferral {
    /// The node is left by this exit.
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
    Fault(#[n(0)] Fault),
    /// These of the session's workflows begin, one after the other; of none, it is asked again which are meant.
    #[n(10)]
    Chosen(#[n(0)] Vec<String>),
    /// The body of the node that was entered begins.
    #[n(11)]
    Begin,
    /// The body has ended with a result that names this exit, whose guard held.
    #[n(20)]
    Try(#[n(0)] ExitIx),
}

/// A run has written to somebody: the address stands last in the list.
pub(crate) fn remember(addresses: &mut Vec<String>, to: &str) {
    addresses.retain(|known| !known.eq_ignore_ascii_case(to));
    addresses.push(to.to_owned());
    if addresses.len() > MAILED_MAX {
        addresses.remove(0);
    }
}
