//! Where a session stands after a command: what its caller is answered with, and answered with again if the request comes
//! again. It holds what later commands change; what never changes of a session is read from its row.

use minicbor::{CborLen, Decode, Encode};
use std::ops::Not;
use switchward_machine::{Digest, GateKind, NodeIx, OpenId, RunId, Status, Time};

use crate::run::ActiveRuns;
use crate::session::{Meters, SessionWarning, StatusReason};
use crate::{ItemType, Loaded};

/// Where a session stands after a command, and what the command did beside.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
#[cbor(map)]
pub struct Position {
    /// The session's sequence after the command.
    #[n(0)]
    pub sequence: u64,
    /// What the session does, or how it ended.
    #[n(1)]
    pub status: Status,
    /// Why it has this status, if there is a reason.
    #[n(2)]
    pub reason: Option<StatusReason>,
    /// The time of the command.
    #[n(3)]
    pub updated: Time,
    /// When it ended, if it has.
    #[n(4)]
    pub ended: Option<Time>,
    /// Where its root run stands, or ended.
    #[n(5)]
    pub root: RunPosition,
    /// Where the only active leaf stands, if the root run waits for it.
    #[n(6)]
    pub leaf: Option<RunPosition>,
    /// Whether the opening text of the leaf's machine is shown.
    #[cbor(n(7), default, skip_if = "Not::not")]
    pub opening: bool,
    /// The text of the leaf's node with the data in it, if that differs from what the definition says. Reply tokens stand
    /// in it as their marks.
    #[n(8)]
    pub text: Option<String>,
    /// Whether the answers of the leaf's node are accepted now.
    #[cbor(n(9), default, skip_if = "Not::not")]
    pub takes_answers: bool,
    /// The open gates, oldest first.
    #[cbor(n(10), default, skip_if = "Vec::is_empty")]
    pub gates: Vec<GatePosition>,
    /// The other open items of the active runs, oldest first; beside several active runs, the oldest ones.
    #[cbor(n(17), default, skip_if = "Vec::is_empty")]
    pub items: Vec<ItemPosition>,
    /// The gates that the command closed without a decision.
    #[cbor(n(11), default, skip_if = "Vec::is_empty")]
    pub voided: Vec<OpenId>,
    /// What its caller should know of a start.
    #[cbor(n(12), default, skip_if = "Vec::is_empty")]
    pub warnings: Vec<SessionWarning>,
    /// What it has used.
    #[cbor(n(13), default, skip_if = "Meters::are_zero")]
    pub meters: Meters,
    /// The least cap on its money, millionths of a dollar.
    #[n(14)]
    pub usd_cap: Option<u64>,
    /// The least cap on its mails.
    #[n(15)]
    pub mail_cap: Option<u64>,
    /// The run whose node takes events from outside, if one does.
    #[n(16)]
    pub listens: Option<Listening>,
    /// The runs that are active side by side. If there are any, what is above of the leaf is of none.
    #[cbor(n(18), default, skip_if = "ActiveRuns::is_empty")]
    pub active: ActiveRuns,
    /// Rows that an answer also needs, if they are attached.
    #[cbor(skip)]
    pub loaded: Loaded,
}

/// The node of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct RunPosition {
    /// The run's machine; `None` if it is the session's own.
    #[n(0)]
    pub machine: Option<Digest>,
    /// Where the run stands, or ended.
    #[n(1)]
    pub node: NodeIx,
}

/// The entry of a run into a node that takes events from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Listening {
    /// The run that stands at the node.
    #[n(0)]
    pub run: RunId,
    /// Which of the nodes that the run has entered, from 1.
    #[n(1)]
    pub entry: u32,
}

/// Open work, a wait or a timer.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct ItemPosition {
    /// What is open; no gate.
    #[n(0)]
    pub item: ItemType,
    /// The name of its node.
    #[n(1)]
    pub state: String,
    /// When it was opened.
    #[n(2)]
    pub at: Time,
    /// When it ends by itself, if it does.
    #[n(3)]
    pub due: Option<Time>,
    /// The run that it is of; `None` if that is the root run.
    #[n(4)]
    pub run: Option<RunId>,
}

/// An open gate.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct GatePosition {
    /// Its number.
    #[n(0)]
    pub gate: OpenId,
    /// Says which decisions it takes.
    #[n(1)]
    pub kind: GateKind,
    /// The name of its node.
    #[n(2)]
    pub state: String,
    /// The call that it is about, if it is about one: its capability.
    #[n(3)]
    pub capability: Option<String>,
    /// Of what the gate shows, to which a decision may be bound.
    #[n(4)]
    pub shown: Option<Digest>,
    /// When it was opened.
    #[n(5)]
    pub at: Time,
    /// Who was asked or notified: addresses.
    #[cbor(n(6), default, skip_if = "Vec::is_empty")]
    pub to: Vec<String>,
    /// Whether everybody may decide whose role allows it, and those above are only notified.
    #[n(7)]
    pub open: bool,
    /// How many approvals it needs; 0 if the first decision counts.
    #[n(8)]
    pub needed: u32,
    /// How many it has.
    #[n(9)]
    pub approvals: u32,
    /// Whether nobody who may decide was notified of it.
    #[n(10)]
    pub unnotified: bool,
    /// The run that it is of; `None` if that is the root run.
    #[n(11)]
    pub run: Option<RunId>,
}
