//! Gates, and the calls and grants that come of them.

use minicbor::{CborLen, Decode, Encode};
use switchward_machine::{Decision, Digest, ExitIx, GateIx, GateKind, Micros, OpenId, RunId, Time};

use crate::Open;
use crate::approval::{Listed, RequestSubject, Via, Voting};
use crate::catalogue::Directory;
use crate::limits::{HOUR_MS, MAIL_ARGS_BYTES_MAX, PAGE_CODE_MS, PAGE_CODE_TRIES_MAX, PAGE_CODES_HOUR_MAX};
use crate::policy::LedgerRule;
use crate::run::Json;

/// The row of a gate, which a closed one contains too.
pub type OpenGate = Open<Gate>;

/// A decision that a person owes. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Gate {
    /// Its spec in the machine.
    #[n(0)]
    pub spec: GateIx,
    /// The spec's kind.
    #[n(1)]
    pub kind: GateKind,
    /// Who asked, and so cannot decide.
    #[n(2)]
    pub requester: String,
    /// The call that it is about.
    #[n(3)]
    pub call: Option<ProposedCall>,
    /// The exit that it holds.
    #[n(4)]
    pub exit: Option<ExitIx>,
    /// The effect that notifies people of it.
    #[n(5)]
    pub notice: Option<u64>,
    /// Who is asked, if the gate addresses somebody.
    #[cbor(n(6), default)]
    pub asked: Option<GateRequest>,
    /// Which gates it belongs with, if it is a part of a task.
    #[cbor(n(7), default)]
    pub part: Option<Part>,
}

/// The gates of one task: they were opened one after the other, in the participants' order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Part {
    /// The number of the gate that was opened first.
    #[n(0)]
    pub first: OpenId,
    /// How many there are.
    #[n(1)]
    pub of: u32,
}

impl Part {
    /// All of them, in order.
    pub fn gates(self) -> impl Iterator<Item = OpenId> {
        (self.first.0..self.first.0.saturating_add(u64::from(self.of))).map(OpenId)
    }

    /// Whether a gate is one of them.
    #[must_use]
    pub fn has(self, gate: OpenId) -> bool {
        gate.0.checked_sub(self.first.0).is_some_and(|at| at < u64::from(self.of))
    }
}

impl Gate {
    /// A gate of this spec that addresses nobody in particular.
    #[must_use]
    pub fn open_to_all(spec: GateIx, kind: GateKind, requester: String) -> Self {
        Self { spec, kind, requester, call: None, exit: None, notice: None, asked: None, part: None }
    }

    /// Whether this person was written to about it: addresses are compared without regard to case.
    #[must_use]
    pub fn wrote_to(&self, person: &str) -> bool {
        self.asked.as_ref().is_some_and(|asked| asked.request_of(person).is_some())
    }

    /// Whether this address was asked because the directory led to it, and the directory does not lead to it any more.
    #[must_use]
    pub fn has_lost(&self, address: &str, people: &Directory) -> bool {
        self.asked.as_ref().is_some_and(|asked| asked.listed.has_lost(address, people))
    }

    /// The approvals so far, if several must approve.
    pub fn votes(&self) -> impl Iterator<Item = &crate::approval::Vote> {
        let voting = self.asked.as_ref().and_then(|asked| asked.voting.as_ref());
        voting.into_iter().flat_map(|voting| &voting.votes)
    }

    /// The digest of what a person is shown; an approval is bound to it.
    #[must_use]
    pub fn shown(&self) -> Option<Digest> {
        let call = self.call.as_ref().map(|call| call.digest);
        let asked = self.asked.as_ref().filter(|asked| !asked.open || self.kind == GateKind::Approval);
        call.or_else(|| asked.map(GateRequest::digest))
    }

    /// Whether a mail shows all that is asked, so that a reply to it can approve.
    #[must_use]
    pub fn fits_a_mail(&self) -> bool {
        self.call.as_ref().is_none_or(|call| call.args.len() <= MAIL_ARGS_BYTES_MAX)
    }

    /// Whether this person may decide it, as far as addresses go: they are compared without regard to case.
    #[must_use]
    pub fn addresses(&self, person: &str) -> bool {
        self.asked.as_ref().is_none_or(|asked| asked.open) || self.wrote_to(person)
    }
}

/// Who is asked at a gate, and what.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct GateRequest {
    /// Addresses, in the order in which they were asked.
    #[n(0)]
    pub to: Vec<String>,
    /// What it is about.
    #[n(1)]
    pub subject: RequestSubject,
    /// The rest, rendered; empty if its author wrote none.
    #[n(2)]
    pub body: String,
    /// How many rounds nobody has decided in.
    #[n(3)]
    pub round: u32,
    /// When the round is over; `None` if it has no end.
    #[n(4)]
    pub due: Option<Time>,
    /// The effects that ask them and have not gone out yet.
    #[n(5)]
    pub mails: Vec<u64>,
    /// Who was written back to while it was open, as often as that was.
    #[n(6)]
    pub answered: Vec<String>,
    /// The number of the request that each of `to` was sent last; those behind its end have the first.
    #[cbor(n(7), default, skip_if = "Vec::is_empty")]
    pub last: Vec<u32>,
    /// Whether others may decide as well: the people in `to` are notified, and the gate addresses nobody.
    #[cbor(n(8), default, skip_if = "std::ops::Not::not")]
    pub open: bool,
    /// Who was notified that it is closed, as often as that was.
    #[cbor(n(9), default, skip_if = "Vec::is_empty")]
    pub closed_notified: Vec<String>,
    /// Whose mails have come back, or are said to have.
    #[cbor(n(10), default, skip_if = "Vec::is_empty")]
    pub bounced: Vec<Bounced>,
    /// When those who have not answered are written to again; `None` if they are not.
    #[n(11)]
    pub remind: Option<Reminding>,
    /// What it has of the approvals that it needs; `None` if the first decides.
    #[n(12)]
    pub voting: Option<Voting>,
    /// The digest of the values that an approval shows.
    #[n(13)]
    pub values: Option<Digest>,
    /// Who was named by data or the start and is not asked, because the directory does not hold them.
    #[cbor(n(14), default, skip_if = "Vec::is_empty")]
    pub dropped: Vec<String>,
    /// The codes that were mailed to those who opened their decision page.
    #[cbor(n(15), default, skip_if = "Vec::is_empty")]
    pub codes: Vec<PageCodes>,
    /// The number of the newest request, from 0. People who are asked at the same time get the same one, and tokens are
    /// made for one number, so that only a person's newest mail counts.
    #[cbor(n(16), default, skip_if = "is_first")]
    pub request: u32,
    /// Those of `to` whom the directory led to when they were asked: they decide only as long as it does.
    #[cbor(n(17), default, skip_if = "Listed::is_empty")]
    pub listed: Listed,
    /// Whose request was dismissed before it arrived, and who was sent none since: addresses.
    #[cbor(n(18), default, skip_if = "Vec::is_empty")]
    pub dismissed: Vec<String>,
    /// The effect that asked each of `to` last in a request after the first; 0 for who was sent only the first, as for those
    /// behind its end.
    #[cbor(n(19), default, skip_if = "Vec::is_empty")]
    pub newest: Vec<u64>,
}

/// The codes by which one person's decision page recognises them. A code itself is kept nowhere: it follows from the page's
/// token and the time at which it was sent.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct PageCodes {
    /// The person's address.
    #[n(0)]
    pub to: String,
    /// When codes were sent within an hour of the last, ordered; the last one counts.
    #[n(1)]
    pub sent: Vec<Time>,
    /// Wrong entries since the last was sent.
    #[n(2)]
    pub wrong: u32,
    /// Whether the last one has been used.
    #[n(3)]
    pub used: bool,
}

impl PageCodes {
    /// When the code was sent that counts now, and how often it may still be entered; `None` if there is none.
    #[must_use]
    pub fn current(&self, now: Time) -> Option<(Time, u32)> {
        let left = PAGE_CODE_TRIES_MAX.saturating_sub(self.wrong);
        let sent = *self.sent.last()?;
        (left > 0 && !self.used && now.since_ms(sent) < PAGE_CODE_MS).then_some((sent, left))
    }

    /// How long until another may be sent, milliseconds; `None`: now.
    #[must_use]
    pub fn wait_ms(&self, now: Time) -> Option<u64> {
        let first = self.sent.len().checked_sub(PAGE_CODES_HOUR_MAX)?;
        let free = self.sent.get(first)?.after_ms(HOUR_MS);
        (free > now).then(|| free.since_ms(now))
    }
}

/// Somebody whose mail is said not to have arrived.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Bounced {
    /// The address.
    #[n(0)]
    pub to: String,
    /// Whether a bounce came to the address that only mail servers know; anybody could have sent any other.
    #[n(1)]
    pub proved: bool,
}

/// Those who have not answered are written to again, after the same time each time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Reminding {
    /// When next.
    #[n(0)]
    pub next: Time,
    /// How often still, at least 1.
    #[n(1)]
    pub left: u32,
    /// The time between two, milliseconds.
    #[n(2)]
    pub every_ms: u64,
}

impl Reminding {
    /// What is left after one at this time.
    #[must_use]
    pub fn after(self, now: Time) -> Option<Self> {
        let left = self.left.checked_sub(1).filter(|left| *left > 0)?;
        Some(Self { next: now.after_ms(self.every_ms), left, ..self })
    }
}

impl GateRequest {
    /// When something is to happen while nobody decides.
    #[must_use]
    pub fn next_due(&self) -> Option<Time> {
        let remind = self.remind.map(|remind| remind.next);
        self.due.into_iter().chain(remind).min()
    }

    /// One person is asked, for as long as it takes.
    #[must_use]
    pub fn once(person: &str, subject: &RequestSubject, body: &str) -> Self {
        Self {
            to: vec![person.to_owned()],
            subject: subject.clone(),
            body: body.to_owned(),
            round: 0,
            due: None,
            mails: Vec::new(),
            answered: Vec::new(),
            last: Vec::new(),
            open: false,
            closed_notified: Vec::new(),
            bounced: Vec::new(),
            remind: None,
            voting: None,
            values: None,
            dropped: Vec::new(),
            codes: Vec::new(),
            request: 0,
            listed: Listed::default(),
            dismissed: Vec::new(),
            newest: Vec::new(),
        }
    }

    /// Those who are asked and can no longer decide, because the directory does not lead to them any more: addresses. People
    /// who have approved before are left out.
    #[must_use]
    pub fn lost(&self, people: &Directory) -> Vec<String> {
        let mut lost = self.listed.lost(people);
        lost.retain(|one| self.request_of(one).is_some() && !self.has_voted(one, people));
        lost
    }

    /// The codes that were mailed to a person.
    #[must_use]
    pub fn codes_of(&self, person: &str) -> Option<&PageCodes> {
        self.codes.iter().find(|codes| codes.to.eq_ignore_ascii_case(person))
    }

    /// The number of the request that a person was sent last; `None` if they are not asked. Addresses are compared
    /// without regard to case.
    #[must_use]
    pub fn request_of(&self, person: &str) -> Option<u32> {
        let at = self.to.iter().position(|known| known.eq_ignore_ascii_case(person))?;
        Some(self.last.get(at).copied().unwrap_or_default())
    }

    /// The effect by which a person was asked last, if they were asked in a request after the first.
    pub(crate) fn newest_of(&self, person: &str) -> Option<u64> {
        let at = self.to.iter().position(|known| known.eq_ignore_ascii_case(person))?;
        self.newest.get(at).copied()
    }

    /// The digest of the request as it is shown, with the values that it shows.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let subject = self.subject.digested();
        let (subject, body) = (subject.as_bytes(), self.body.as_bytes());
        match &self.values {
            None => Digest::of_parts(&[b"request", subject, body]),
            Some(values) => Digest::of_parts(&[b"request of values", subject, body, &values.0]),
        }
    }

    /// Whether somebody has approved it, and others are waited for.
    #[must_use]
    pub fn has_voted(&self, person: &str, people: &Directory) -> bool {
        self.voting.iter().flat_map(|voting| &voting.votes).any(|vote| vote.is_of(person, people))
    }
}

/// Returns true if a request is the first one.
fn is_first(request: &u32) -> bool {
    *request == 0
}

/// A call that a person is asked about.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct ProposedCall {
    /// What would be called.
    #[n(0)]
    pub capability: String,
    /// With what, in canonical form.
    #[cbor(n(1), with = "minicbor::bytes")]
    pub args: Vec<u8>,
    /// Of the arguments' canonical form; an approval is bound to it.
    #[n(2)]
    pub digest: Digest,
    /// What it is believed to cost.
    #[n(3)]
    pub estimate: Micros,
    /// The layers of the policy that want a person asked.
    #[cbor(n(4), default)]
    pub asked_by: Vec<String>,
}

/// A gate that is closed. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Closed {
    /// The gate as it was when it was closed.
    #[n(0)]
    pub open: OpenGate,
    /// How it was resolved.
    #[n(1)]
    pub resolution: Resolution,
    /// When.
    #[n(2)]
    pub at: Time,
}

/// How a gate was resolved.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum Resolution {
    /// A person decided.
    #[n(0)]
    Decided {
        /// What was decided.
        #[n(0)]
        decision: Decision,
        /// The name that they decided under.
        #[n(1)]
        by: String,
        /// Why, in the person's words.
        #[n(2)]
        comment: String,
        /// Which way it came.
        #[cbor(n(3), default)]
        via: Via,
    },
    /// Its node was left, or its run ended.
    #[n(1)]
    Voided,
    /// Nobody decided in time.
    #[n(2)]
    Lapsed,
    /// The participant of a task answered.
    #[n(3)]
    Answered {
        /// The name that they answered under.
        #[n(0)]
        by: String,
        /// Any value; the definition gives it its meaning.
        #[n(1)]
        answer: Json,
        /// Words beside it.
        #[n(2)]
        comment: String,
        /// Which way it came.
        #[n(3)]
        via: Via,
    },
}

/// A call that is permitted and not yet reported. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Call {
    /// The caller's name for it.
    #[n(0)]
    pub call_id: String,
    /// What is called.
    #[n(1)]
    pub capability: String,
    /// When it was permitted.
    #[n(2)]
    pub at: Time,
    /// Money held for it, here and in the ledger.
    #[n(3)]
    pub reserved: Micros,
    /// The name of its reservation.
    #[n(4)]
    pub reservation: Option<Digest>,
    /// The limited rules that counted it.
    #[cbor(n(5), default, skip_if = "Vec::is_empty")]
    pub rules: Vec<LedgerRule>,
    /// The run that calls; `None` if it was permitted before a session had several.
    #[n(6)]
    pub run: Option<RunId>,
}

/// An approved call that is not yet made. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Grant {
    /// The gate that it comes from.
    #[n(0)]
    pub gate: u64,
    /// What may be called.
    #[n(1)]
    pub capability: String,
    /// The digest of the only arguments that it may be called with.
    #[n(2)]
    pub digest: Digest,
    /// Until when.
    #[n(3)]
    pub expires: Time,
    /// Whose entry it belongs to; leaving the node voids it.
    #[n(4)]
    pub run: RunId,
    /// Money held for it.
    #[n(5)]
    pub reserved: Micros,
    /// The name of its reservation.
    #[n(6)]
    pub reservation: Option<Digest>,
    /// The rules that the reservation is in.
    #[n(7)]
    pub rules: Vec<LedgerRule>,
    /// The layers that wanted a person asked, and were answered with it.
    #[cbor(n(8), default)]
    pub asked_by: Vec<String>,
}
