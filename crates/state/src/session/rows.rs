//! The row of a session, and what it counts and remembers for its runs.

use minicbor::{CborLen, Decode, Encode};
use switchward_machine::{Digest, OpenId, RunId, Status, Time};

use crate::approval::{GateSettings, Quorum, Reminders};
use crate::delivery::Outbox;
use crate::policy::PinnedPolicy;
use crate::run::{Json, Pinned};
use crate::session::{EventSource, Removal, Replies, StatusReason};
use crate::{ItemKind, Kind, ListedItem};

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
    /// The number that the next open item, call, grant or effect gets.
    #[n(11)]
    pub next_id: u64,
    /// The run that it is about.
    #[n(12)]
    pub root: RunId,
    /// What it is doing.
    #[n(13)]
    pub status: Status,
    /// Why, if the status does not say it all.
    #[n(14)]
    pub reason: Option<StatusReason>,
    /// What it has used.
    #[n(15)]
    pub meters: Meters,
    /// What is open of it, oldest first.
    #[n(16)]
    pub items: Vec<ListedItem>,
    /// Its permitted calls that are not yet reported, oldest first.
    #[n(17)]
    pub calls: Vec<u64>,
    /// Its approved calls that are not yet made, oldest first.
    #[n(18)]
    pub grants: Vec<u64>,
    /// The head of the chain of its history: the digest of the head before it and of what the last command added, see
    /// [`StoredHistory::link`](crate::StoredHistory::link).
    #[n(20)]
    pub head: Digest,
    /// The runs that wait for the one before them to end, in their order.
    #[cbor(n(21), default)]
    pub queue: Vec<RunId>,
    /// How many runs it has had.
    #[cbor(n(22), default)]
    pub runs: u32,
    /// The address of the person that the conversation is with.
    #[cbor(n(23), default)]
    pub contact: Option<String>,
    /// Events that came before anything listened to them, oldest first.
    #[cbor(n(24), default)]
    pub early: Vec<Early>,
    /// The workflows that it may switch between, if there are several.
    #[cbor(n(25), default)]
    pub workflows: Vec<Attached>,
    /// Closed gates that addressed somebody, oldest first; late replies are answered with their outcome.
    #[cbor(n(26), default)]
    pub answered: Vec<OpenId>,
    /// The replies that it remembers for their request ids.
    #[cbor(n(27), default)]
    pub replies: Replies,
    /// The definitions that its runs call.
    #[cbor(n(29), skip_if = "Vec::is_empty")]
    pub callees: Vec<Pinned>,
    /// The assistant that it is with, if any.
    #[n(30)]
    pub assistant: Option<Box<Assisted>>,
    /// The name of its tenant, which its reply tokens carry, if events from outside can be for it.
    #[n(31)]
    pub reply_tenant: Option<String>,
    /// What of it waits to arrive outside, if anything does.
    #[n(32)]
    pub outbox: Option<Box<Outbox>>,
    /// The sequence before effects arrived or were put off, if nothing else has happened since: a caller that saw that
    /// sequence has missed nothing.
    #[n(33)]
    pub stable_from: Option<u64>,
    /// Who is notified of gates that address nobody, as the start says: addresses and names; if empty, as the tenant's
    /// directory says.
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
    /// Who is asked, too, if those who were asked do not decide, as the start says; if empty, as the directory says.
    #[cbor(n(39), default, skip_if = "Vec::is_empty")]
    pub escalation: Vec<String>,
    /// Whether approvers whom data or the start names are asked although they are not in the directory, whatever the
    /// tenant says.
    #[cbor(n(40), default, skip_if = "std::ops::Not::not")]
    pub any_approver_address: bool,
    /// The removal of its data, if one has begun.
    #[n(46)]
    pub removal: Option<Box<Removal>>,
    /// Bytes of its history and of the rows of its replies, as they are stored; a part of its tenant's [`Usage`](crate::catalogue::Usage).
    #[cbor(n(47), default, skip_if = "zero")]
    pub bytes: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as the encoder calls it")]
fn zero(bytes: &u64) -> bool {
    *bytes == 0
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

/// The assistant that a session is with, as it was when the session began.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Assisted {
    /// The assistant's name; another one may have it by now.
    #[n(0)]
    pub name: String,
    /// Its instructions beside those of a state; may be empty.
    #[n(1)]
    pub instructions: String,
}

/// An event that came before anything listened to it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Early {
    /// The key by which states listen to it.
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

/// The first number of a session's open items, calls, grants and effects.
pub(crate) const FIRST_ID: u64 = 1;

/// The last message of a conversation that is not the agent's own.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct LastMessage {
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
    /// The definition's version when the session began, from 1.
    #[n(1)]
    pub version: u32,
    /// The digest of what that version compiled to.
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

impl Meters {
    /// Whether nothing is used or reserved.
    #[must_use]
    pub fn are_zero(&self) -> bool {
        *self == Self::default()
    }
}

impl Session {
    /// Whether a caller that saw it at this sequence has missed only the progress of effects.
    #[must_use]
    pub fn is_seen_at(&self, sequence: u64) -> bool {
        (self.stable_from.unwrap_or(self.sequence)..=self.sequence).contains(&sequence)
    }

    /// Its open gates, oldest first.
    pub fn gates(&self) -> impl DoubleEndedIterator<Item = OpenId> {
        self.items.iter().filter(|listed| listed.kind == ItemKind::Gate).map(|listed| listed.item)
    }

    /// What is open of this kind in a run, oldest first.
    pub fn open_in(&self, run: RunId, kind: ItemKind) -> impl Iterator<Item = OpenId> {
        let fits = move |listed: &&ListedItem| listed.run == run && listed.kind == kind;
        self.items.iter().filter(fits).map(|listed| listed.item)
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

    /// Returns true if something of it waits to be sent to people or services and is no dead letter. Messages to endpoints
    /// do not count.
    #[must_use]
    pub fn is_sending(&self) -> bool {
        let outbox = self.outbox();
        outbox.count > outbox.dead_letters
    }

    /// Returns true if the session cannot have rows of this kind. False says nothing.
    #[must_use]
    pub fn lacks(&self, kind: Kind) -> bool {
        let numbered = [Kind::Outbox, Kind::OpenItem, Kind::Call, Kind::Grant, Kind::Closed];
        (self.next_id == FIRST_ID && numbered.contains(&kind))
            || (kind == Kind::Reply && self.replies.rows() == 0)
    }

    /// Whether what it held is erased, or being so.
    #[must_use]
    pub fn is_erased(&self) -> bool {
        self.removal.as_deref().is_some_and(|removal| removal.how == crate::session::Removing::Erased)
    }

    /// What of it waits to arrive outside.
    #[must_use]
    pub fn outbox(&self) -> Outbox {
        self.outbox.as_deref().copied().unwrap_or_default()
    }
}
