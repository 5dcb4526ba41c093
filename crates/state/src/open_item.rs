//! Everything that is open in a session: one kind of row, one list.

use minicbor::{CborLen, Decode, Encode};
use switchward_machine::{GateKind, OpenId, RunId, Time, WaitOn, WorkKind};

use crate::approval::{Gate, GateRequest};
use crate::memory::InMemory;
use crate::work::{OpenItemBody, TimerItem, WaitItem, Why, WorkItem};
use crate::{ItemHead, Open};

/// An open item of a session. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum OpenItem {
    /// A person owes a decision.
    #[n(0)]
    Gate(#[n(0)] Box<Open<Gate>>),
    /// A worker owes a result.
    #[n(1)]
    Work(#[n(0)] Open<WorkItem>),
    /// Something is waited for, for as long as its time.
    #[n(2)]
    Wait(#[n(0)] Open<WaitItem>),
    /// Something goes on when its time has come.
    #[n(3)]
    Timer(#[n(0)] Open<TimerItem>),
}

/// The kind of an open item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, CborLen)]
#[cbor(index_only)]
pub enum ItemKind {
    /// A person owes a decision.
    #[n(0)]
    Gate,
    /// A worker owes a result.
    #[n(1)]
    Work,
    /// Something from outside is waited for, at most for its time.
    #[n(2)]
    Wait,
    /// The server itself goes on at a time.
    #[n(3)]
    Timer,
}

/// The kind of an open item, and its type within the kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum ItemType {
    /// A person owes a decision of this kind.
    #[n(0)]
    Gate(#[n(0)] GateKind),
    /// A worker owes a result of this kind.
    #[n(1)]
    Work(#[n(0)] WorkKind),
    /// This is waited for, at most for its time.
    #[n(2)]
    Wait(#[n(0)] WaitOn),
    /// The server itself goes on at a time, for this.
    #[n(3)]
    Timer(#[n(0)] Why),
}

impl ItemType {
    /// Returns the kind alone.
    #[must_use]
    pub fn kind(self) -> ItemKind {
        match self {
            Self::Gate(_) => ItemKind::Gate,
            Self::Work(_) => ItemKind::Work,
            Self::Wait(_) => ItemKind::Wait,
            Self::Timer(_) => ItemKind::Timer,
        }
    }

    /// The public name of the type within its kind.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Gate(kind) => kind.word(),
            Self::Work(kind) => kind.word(),
            Self::Wait(on) => on.word(),
            Self::Timer(why) => why.word(),
        }
    }
}

/// An open item as its session lists it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct ListedItem {
    /// Its number.
    #[n(0)]
    pub item: OpenId,
    /// The run that opened it.
    #[n(1)]
    pub run: RunId,
    /// What is open.
    #[n(2)]
    pub kind: ItemKind,
}

impl OpenItem {
    /// An item that is no gate.
    #[must_use]
    pub fn new(head: ItemHead, body: OpenItemBody) -> Self {
        match body {
            OpenItemBody::Work(body) => Self::Work(Open { head, body }),
            OpenItemBody::Wait(body) => Self::Wait(Open { head, body }),
            OpenItemBody::Timer(body) => Self::Timer(Open { head, body }),
        }
    }

    /// Where it belongs.
    #[must_use]
    pub fn head(&self) -> &ItemHead {
        match self {
            Self::Gate(open) => &open.head,
            Self::Work(open) => &open.head,
            Self::Wait(open) => &open.head,
            Self::Timer(open) => &open.head,
        }
    }

    /// Returns which kind of open item it is, without its contents.
    #[must_use]
    pub fn kind(&self) -> ItemKind {
        self.item_type().kind()
    }

    /// Returns which type of its kind it is, without its contents.
    #[must_use]
    pub fn item_type(&self) -> ItemType {
        match self {
            Self::Gate(open) => ItemType::Gate(open.body.kind),
            Self::Work(open) => ItemType::Work(open.body.kind),
            Self::Wait(open) => ItemType::Wait(open.body.on),
            Self::Timer(open) => ItemType::Timer(open.body.why),
        }
    }

    /// When it falls due, if it does: a gate when its round is over or people are reminded, work when its lease is over.
    #[must_use]
    pub fn due(&self) -> Option<Time> {
        match self {
            Self::Gate(open) => open.body.asked.as_ref().and_then(GateRequest::next_due),
            Self::Work(open) => open.body.owed.lease.as_ref().map(|lease| lease.until),
            Self::Wait(open) => Some(open.body.due),
            Self::Timer(open) => Some(open.body.due),
        }
    }
}

impl InMemory for OpenItem {
    fn cached(&self) -> bool {
        true
    }
}

impl ItemKind {
    /// The public name.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Gate => "gate",
            Self::Work => "work",
            Self::Wait => "wait",
            Self::Timer => "timer",
        }
    }
}
