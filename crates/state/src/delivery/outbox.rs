//! The outbox: effects for the outside, kept until they have arrived.

use minicbor::{CborLen, Decode, Encode};
use switchward_machine::{Channel, Digest, GateKind, Micros, NodeIx, OpenId, RunId, Time};

use crate::approval::RequestSubject;
use crate::delivery::{DeliveryDetail, EventSubject, FailureCode, MessageText, PublishedType};
use crate::limits::EFFECT_BYTES;
use crate::policy::LedgerRule;

/// One effect. Stored form. Its number in its outbox is the same for every delivery of it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Effect {
    /// What caused it.
    #[n(0)]
    pub source: EffectSource,
    /// Its number in its outbox.
    #[n(1)]
    pub number: u64,
    /// Not before this time.
    #[n(2)]
    pub deliver_at: Time,
    /// The trace that it belongs to.
    #[n(3)]
    pub trace: Option<String>,
    /// What goes out.
    #[n(4)]
    pub body: EffectBody,
    /// What became of it so far, if anything did.
    #[n(5)]
    pub progress: Option<Box<EffectProgress>>,
}

/// What caused an effect, and so whose outbox it stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum EffectSource {
    /// A run of a session.
    #[n(0)]
    Run {
        /// The run that caused it.
        #[n(0)]
        run: RunId,
        /// The node that it stood at.
        #[n(1)]
        node: NodeIx,
        /// Which entry of the run.
        #[n(2)]
        entry: u32,
    },
    /// The tenant itself.
    #[n(1)]
    Tenant,
}

impl EffectSource {
    /// The run; `None` if the tenant itself caused the effect.
    #[must_use]
    pub fn run(&self) -> Option<RunId> {
        match self {
            Self::Run { run, .. } => Some(*run),
            Self::Tenant => None,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as the encoder calls it")]
fn none(count: &u32) -> bool {
    *count == 0
}

/// What became of an effect that has not arrived.
#[derive(Debug, Clone, PartialEq, Eq, Default, Encode, Decode, CborLen)]
pub struct EffectProgress {
    /// How often it was sent again. A report of a delivery names the round that it is about.
    #[n(0)]
    pub round: u32,
    /// Why it is a dead letter; `None` while it is on its way.
    #[n(1)]
    pub dead_letter: Option<DeliveryFailure>,
    /// Attempts that have failed since it was sent, or sent again, and after which another one follows.
    #[cbor(n(2), default, skip_if = "none")]
    pub attempts: u32,
    /// Why the last of them has failed.
    #[n(3)]
    pub last: Option<DeliveryFailure>,
    /// Since when it is to go out, once it waits for another attempt; `None` in rows that are older than this field.
    #[n(4)]
    pub since: Option<Time>,
}

/// What has gone wrong with a delivery. One that has failed for good stays until somebody sends it again or dismisses it,
/// and for that long its session has an incident.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct DeliveryFailure {
    /// Why.
    #[n(0)]
    pub code: FailureCode,
    /// What exactly has gone wrong; `None` if the code says it all.
    #[n(1)]
    pub detail: Option<DeliveryDetail>,
    /// When it was found out.
    #[n(2)]
    pub at: Time,
}

impl Effect {
    /// How often it was sent again.
    #[must_use]
    pub fn round(&self) -> u32 {
        self.progress.as_ref().map_or(0, |progress| progress.round)
    }

    /// Since when it is to go out: since it was sent, or sent again.
    #[must_use]
    pub fn since(&self) -> Time {
        self.progress.as_ref().and_then(|progress| progress.since).unwrap_or(self.deliver_at)
    }

    /// Which attempt to deliver it the next one is: how often it was sent again, and how many have failed since. A report
    /// of a delivery names the attempt that it is about.
    #[must_use]
    pub fn attempt(&self) -> Attempt {
        Attempt {
            round: self.round(),
            number: self.progress.as_ref().map_or(0, |progress| progress.attempts),
        }
    }

    /// Why it is a dead letter; `None` while it is on its way.
    #[must_use]
    pub fn dead_letter(&self) -> Option<&DeliveryFailure> {
        self.progress.as_ref()?.dead_letter.as_ref()
    }

    /// Why the last attempt to deliver it has failed, while another one follows.
    #[must_use]
    pub fn last(&self) -> Option<&DeliveryFailure> {
        self.progress.as_ref().filter(|progress| progress.dead_letter.is_none())?.last.as_ref()
    }
}

/// One attempt to deliver an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Encode, Decode, CborLen)]
pub struct Attempt {
    /// How often the effect was sent again before it.
    #[n(0)]
    pub round: u32,
    /// How many attempts of the round have failed before it.
    #[n(1)]
    pub number: u32,
}

/// What of a session waits to arrive outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Encode, Decode, CborLen)]
pub struct Outbox {
    /// Effects, dead letters counted.
    #[n(0)]
    pub count: u32,
    /// What they hold, bytes.
    #[n(1)]
    pub bytes: u64,
    /// Dead letters, each of which is an incident.
    #[n(2)]
    pub dead_letters: u32,
    /// Messages to endpoints, dead letters counted. They are in neither of the sums above: an endpoint that takes nothing
    /// must not keep a session from writing to its people.
    #[cbor(n(3), default, skip_if = "none")]
    pub published: u32,
}

impl Outbox {
    /// Counts one effect more.
    pub(crate) fn added(&mut self, body: &EffectBody) {
        self.counted(body, false);
    }

    /// Counts one effect fewer.
    pub(crate) fn removed(&mut self, body: &EffectBody) {
        self.counted(body, true);
    }

    fn counted(&mut self, body: &EffectBody, gone: bool) {
        let step = |count: u32| if gone { count.saturating_sub(1) } else { count.saturating_add(1) };
        if body.published() {
            self.published = step(self.published);
            return;
        }
        let bytes = u64::try_from(body.bytes()).unwrap_or(u64::MAX);
        self.count = step(self.count);
        self.bytes = if gone { self.bytes.saturating_sub(bytes) } else { self.bytes.saturating_add(bytes) };
    }
}

/// What goes out.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum EffectBody {
    /// The process's people are notified of a gate.
    #[n(0)]
    Notice {
        /// The number of the gate.
        #[n(0)]
        gate: OpenId,
        /// Says which decisions the gate takes.
        #[n(1)]
        kind: GateKind,
        /// What it is about.
        #[n(2)]
        subject: RequestSubject,
    },
    /// A reservation is confirmed to its ledger.
    #[n(1)]
    Confirm {
        /// The ledger.
        #[n(0)]
        process: String,
        /// The reservation.
        #[n(1)]
        call: Digest,
        /// The rules that count it, all of this ledger.
        #[n(2)]
        rules: Vec<LedgerRule>,
        /// What it holds.
        #[n(3)]
        estimate: Micros,
        /// When it was made.
        #[n(4)]
        at: Time,
    },
    /// A reservation ends, with what the call cost.
    #[n(2)]
    Settle {
        /// The ledger.
        #[n(0)]
        process: String,
        /// The reservation, if there was one.
        #[n(1)]
        call: Option<Digest>,
        /// What it is in, and what is charged.
        #[n(2)]
        rules: Vec<LedgerRule>,
        /// What is charged in the end, millionths of a US dollar.
        #[n(3)]
        cost: Micros,
        /// When it was reported.
        #[n(4)]
        at: Time,
        /// Whether the call was never permitted.
        #[n(5)]
        release: bool,
    },
    /// A message goes out.
    #[n(3)]
    Message {
        /// The way.
        #[n(0)]
        channel: Channel,
        /// To whom; empty in the conversation itself.
        #[n(1)]
        to: String,
        /// What it says.
        #[n(2)]
        text: MessageText,
        /// The gate that it is about, if it is about one.
        #[cbor(n(3), default)]
        gate: Option<OpenId>,
        /// Why it is sent: decides what the mail looks like and what its failure means.
        #[cbor(n(4), default, skip_if = "Purpose::says")]
        purpose: Purpose,
        /// The header of a mail of the session's agent; `None` if the server writes.
        #[n(5)]
        head: Option<MailHead>,
    },
    /// An event is published to an endpoint of the tenant.
    #[n(4)]
    Publish {
        /// The endpoint's name.
        #[n(0)]
        endpoint: String,
        /// The event's type.
        #[n(1)]
        kind: PublishedType,
        /// The session's sequence after the event.
        #[n(2)]
        sequence: u64,
        /// When it happened.
        #[n(3)]
        at: Time,
        /// What exactly it is about; `None` if its type says it all.
        #[n(4)]
        about: Option<EventSubject>,
    },
}

/// What a mail of an agent says at its head, beside its subject.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct MailHead {
    /// Who sends it; `None`: the server's own address.
    #[n(0)]
    pub from: Option<String>,
    /// To whom, as all see it.
    #[n(1)]
    pub to: Vec<String>,
    /// Who gets it, too, as all see it.
    #[n(2)]
    pub cc: Vec<String>,
}

impl MailHead {
    /// What its texts hold, bytes.
    fn bytes(&self) -> usize {
        self.from.iter().chain(&self.to).chain(&self.cc).map(String::len).sum()
    }
}

/// What a message is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Encode, Decode, CborLen)]
pub enum Purpose {
    /// A definition says something.
    #[default]
    #[n(0)]
    Say,
    /// Somebody is asked to decide, or to answer.
    #[n(1)]
    Ask,
    /// Somebody who wrote is informed what became of it.
    #[n(2)]
    Inform,
    /// Somebody who was asked and has not decided is reminded of it.
    #[n(90)]
    Remind,
    /// Somebody who opened their decision page gets the code that it asks for.
    #[n(170)]
    Code,
}

impl EffectBody {
    /// Whether the server itself carries it to one of its shards.
    #[must_use]
    pub fn inner(&self) -> bool {
        match self {
            Self::Notice { .. } | Self::Message { .. } | Self::Publish { .. } => false,
            Self::Confirm { .. } | Self::Settle { .. } => true,
        }
    }

    /// Whether it publishes an event to an endpoint.
    #[must_use]
    pub fn published(&self) -> bool {
        match self {
            Self::Publish { .. } => true,
            Self::Notice { .. } | Self::Message { .. } | Self::Confirm { .. } | Self::Settle { .. } => false,
        }
    }

    /// Its destination, by which queues are kept apart: `mail` and a host, `web` and a host, `hook` and an endpoint;
    /// empty for what stays here.
    #[must_use]
    pub fn destination(&self) -> String {
        match self {
            Self::Message { channel: Channel::Email, to, .. } => {
                let host = to.rsplit_once('@').map_or("", |(_, host)| host);
                format!("mail {}", host.to_ascii_lowercase())
            }
            Self::Message { channel: Channel::Webhook, to, .. } => web_destination(to),
            Self::Publish { endpoint, .. } => format!("hook {endpoint}"),
            Self::Message { channel: Channel::Chat, .. }
            | Self::Notice { .. }
            | Self::Confirm { .. }
            | Self::Settle { .. } => String::new(),
        }
    }

    /// What it holds, bytes; about what its row has.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let texts = match self {
            Self::Notice { subject, .. } => subject.bytes(),
            Self::Publish { endpoint, kind, about, .. } => {
                endpoint.len() + kind.word().len() + about.as_ref().map_or(0, EventSubject::bytes)
            }
            Self::Message { to, text, head, .. } => {
                to.len() + text.bytes() + head.as_ref().map_or(0, MailHead::bytes)
            }
            Self::Confirm { process, rules, .. } | Self::Settle { process, rules, .. } => {
                process.len() + rules.len() * EFFECT_BYTES
            }
        };
        EFFECT_BYTES + texts
    }
}

/// The destination of a request to this address, as [`EffectBody::destination`] has it.
pub(crate) fn web_destination(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    format!("web {}", host.to_ascii_lowercase())
}

impl Purpose {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "as the encoder calls it")]
    fn says(&self) -> bool {
        *self == Self::Say
    }
}
