//! Inbound mail: a message as it came off the wire is sorted, and what is a person's reply is recorded in its session.
//!
//! All transports call one function, [`MailIngress::ingest`]. Its order and its reasons are those of
//! [`switchward_mail::incoming`]; this module acts on the result. Who may decide is the engine's decision.

mod evidence;
mod http;
mod keep;
mod ledger;
mod origin;
mod others;
mod quarantine;
mod sweep;
mod unrecorded;

use std::sync::Arc;
use switchward_machine::{Digest, TenantId, WorkKind};
use switchward_mail::incoming::{
    Authentication, Bounce, Dns, Envelope, ProofReason, Reply as Written, Settings, Sorted, authenticate,
    head, sort,
};
use switchward_state::approval::{ApprovalCommand, MailToken, RecordReply, ReplyOutcome};
use switchward_state::catalogue::Role;
use switchward_state::delivery::{DeliveryCommand, RecordBounce};
use switchward_state::limits::REPLY_BYTES_MAX;
use switchward_state::{Actor, Body, Reply, RequestId, Scope};

use crate::api::{Api, Call};
use crate::auth::Caller;
use crate::beside::{self, Beside};
use crate::decision::tenant_of;
use crate::error::{Reason, Refusal};
pub use http::pages;
use ledger::Ledger;
pub use ledger::Seen;
pub use origin::Origin;
pub use others::{QUARANTINE_QUESTION, QuarantinesByTransport, serve_quarantine};
pub(crate) use quarantine::delete_until;
pub use quarantine::{Elsewhere, QuarantineOfOthers, QuarantineStore, QuarantinedMail};
pub(crate) use sweep::kept_ms;
pub use sweep::sweep;
use unrecorded::Unrecorded;

/// How much of a reply's subject its answer repeats, bytes.
const SUBJECT_BYTES_MAX: usize = 200;
/// The actor under which replies are recorded.
const SUBJECT: &str = "mail";

/// What a reply must prove to count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Level {
    /// The token, the addressed person's address, and a signature of that address's domain over the reply address (DKIM,
    /// DMARC): that this person wrote this mail to this address.
    #[default]
    Strict,
    /// The token and the address; for a mail system that proves senders itself before anything gets here.
    Sender,
    /// As [`Level::Strict`] for the answer to a wait; approvals are decided on the page alone.
    PageOnly,
}

/// What became of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// A reply stands in the history of its session, with what became of it.
    Recorded(ReplyOutcome),
    /// A bounce of one of this server's mails; its recipient counts as undeliverable.
    Bounced,
    /// It was not written by a person; the code says what kind of machine mail it is.
    Ignored(&'static str),
    /// Its meaning is unclear, or nothing here waits for it; the code says why.
    Quarantined(&'static str),
    /// It cannot be accepted now and must be delivered again.
    Later,
}

impl Outcome {
    /// In words for people and counters.
    #[must_use]
    pub fn words(&self) -> (&'static str, &'static str) {
        match self {
            Self::Recorded(outcome) => ("recorded", outcome.word()),
            Self::Bounced => ("bounced", ""),
            Self::Ignored(kind) => ("ignored", kind),
            Self::Quarantined(why) => ("quarantined", why),
            Self::Later => ("later", ""),
        }
    }
}

/// The mail is put into quarantine with the code of the reason.
impl From<Unrecorded> for Outcome {
    fn from(why: Unrecorded) -> Self {
        Self::Quarantined(why.word())
    }
}

/// The entry point for inbound mail. Cheap to clone.
#[derive(Clone)]
pub struct MailIngress {
    api: Api,
    settings: Arc<Settings>,
    dns: Arc<Dns>,
    level: Level,
    ledger: Arc<Ledger>,
    /// The tenant whose mail this is, and the caller who delivers it; `None`: mail of all tenants, from a mail server.
    brought: Option<(TenantId, String)>,
}

impl MailIngress {
    /// Creates the mail ingress of this server.
    #[must_use]
    pub fn new(api: Api, settings: Settings, dns: Dns, level: Level) -> Self {
        let ledger = Arc::default();
        Self { api, settings: Arc::new(settings), dns: Arc::new(dns), level, ledger, brought: None }
    }

    /// Returns the same ingress for a caller, given by the name of their key, who may deliver mail of one tenant only:
    /// tokens of other tenants are ignored.
    #[must_use]
    pub fn of(&self, tenant: TenantId, caller: String) -> Self {
        Self { brought: Some((tenant, caller)), ..self.clone() }
    }

    /// Returns the same ingress for mail from untrusted senders: it trusts no host's authentication results in a message.
    #[must_use]
    pub fn without_trust(&self) -> Self {
        let settings = Settings { trusted_hosts: Vec::new(), ..(*self.settings).clone() };
        Self { settings: Arc::new(settings), ..self.clone() }
    }

    /// The resolver for keys and policies of senders.
    #[must_use]
    pub fn dns(&self) -> &Dns {
        &self.dns
    }

    /// Whether a reply that is sent to this address is for us.
    #[must_use]
    pub fn knows(&self, recipient: &str) -> bool {
        let domain = recipient.rsplit_once('@').map(|(_, domain)| domain.to_ascii_lowercase());
        domain.is_some_and(|domain| self.settings.reply_domains.contains(&domain))
    }

    /// The last messages that came, the newest first.
    #[must_use]
    pub fn seen(&self) -> Vec<Seen> {
        self.ledger.seen()
    }

    /// How many messages came to each outcome.
    #[must_use]
    pub fn counts(&self) -> Vec<((&'static str, &'static str), u64)> {
        self.ledger.counts()
    }

    /// Processes a message; `envelope` is what its transport knows of it.
    pub async fn ingest(&self, envelope: &Envelope, raw: &[u8]) -> Outcome {
        let sorted = beside::run(raw.len(), || sort(raw, envelope, &self.settings));
        let (from, subject) = match &sorted {
            Sorted::Reply(reply) => (reply.from.text.clone(), reply.subject.clone()),
            Sorted::Machine { .. } | Sorted::Bounce(_) | Sorted::Unusable { .. } => {
                let head = beside::run(raw.len(), || head(raw, envelope, &self.settings));
                (head.from, head.subject)
            }
        };
        let outcome = match sorted {
            Sorted::Machine { kind } => Outcome::Ignored(kind.word()),
            Sorted::Unusable { reason } => Outcome::Quarantined(reason.word()),
            Sorted::Bounce(bounce) if !bounce.permanent && bounce.is_silent() => {
                Outcome::Ignored(Unrecorded::NullSender.word())
            }
            Sorted::Bounce(bounce) if !bounce.permanent => Outcome::Ignored(Unrecorded::Delayed.word()),
            Sorted::Bounce(bounce) => self.bounced(bounce).await,
            Sorted::Reply(reply) => self.reply(envelope, raw, *reply).await,
        };
        let outcome = self.keep(outcome, envelope, raw).await;
        let (what, why) = outcome.words();
        tracing::info!(outcome = what, why, "inbound mail");
        self.ledger.note(Seen { at: self.api.cluster.now(), from, subject, outcome: outcome.clone() });
        outcome
    }

    /// Notes a message that its transport has not read, and why, in one stable word.
    pub fn unread(&self, why: &'static str) {
        self.keep_unread(why);
        let outcome = Outcome::Quarantined(why);
        tracing::info!(outcome = "quarantined", why, "inbound mail");
        let (from, subject) = (String::new(), String::new());
        self.ledger.note(Seen { at: self.api.cluster.now(), from, subject, outcome });
    }

    async fn reply(&self, envelope: &Envelope, raw: &[u8], reply: Written) -> Outcome {
        let mut outcome = Outcome::from(Unrecorded::NoToken);
        for (text, token) in reply.tokens.iter().filter_map(|it| Some((&it.text, self.read(&it.text)?))) {
            // No DNS query is made for a mail whose token was never given out.
            let proof = match origin::of(&self.api, &token, &reply.from.text).await {
                Ok(Origin::Recipient) => {
                    let proof = authenticate(raw, text, envelope, &self.settings, &self.dns);
                    Beside::new(raw.len(), None, Box::pin(proof)).await
                }
                Ok(Origin::Unknown) => Authentication::none(ProofReason::NotChecked),
                Err(refusal) => return refused(&refusal),
            };
            if self.waits(&reply, &proof) {
                return Outcome::Later;
            }
            match self.api.record_mail(self.record(&reply, token, &proof), one_reply(&reply, &proof)).await {
                // The likeliest token that is one counts.
                Outcome::Quarantined(why) => outcome = Outcome::Quarantined(why),
                taken @ (Outcome::Recorded(_) | Outcome::Bounced | Outcome::Ignored(_) | Outcome::Later) => {
                    return taken;
                }
            }
        }
        outcome
    }

    /// Returns true if a reply must be delivered again, because the DNS did not answer about its writer.
    fn waits(&self, reply: &Written, proof: &Authentication) -> bool {
        let digest = Digest(reply.digest);
        if self.level != Level::Sender && proof.is_open() {
            return self.ledger.waits(digest, self.api.cluster.now());
        }
        self.ledger.settled(digest);
        false
    }

    /// The command that records a reply in the session of a token.
    fn record(&self, reply: &Written, token: MailToken, proof: &Authentication) -> RecordReply {
        let signed = proof.is_signed();
        RecordReply {
            from: reply.from.text.clone(),
            subject: subject(&reply.subject),
            text: reply.text[..reply.text.floor_char_boundary(REPLY_BYTES_MAX)].to_owned(),
            authenticated: match self.level {
                Level::Strict | Level::PageOnly => signed,
                Level::Sender => true,
            },
            signed,
            pages_only: self.level == Level::PageOnly,
            brought_by: self.brought.as_ref().map(|(_, caller)| caller.clone()),
            vouched: false,
            model: self.api.own.contains(&WorkKind::Classify),
            token: Some(token),
            evidence: Some(evidence::of(reply, proof)),
            limits: None,
        }
    }

    async fn bounced(&self, bounce: Bounce) -> Outcome {
        let mut outcome = Outcome::from(Unrecorded::BounceOfNothing);
        let message = bounce.why();
        for token in bounce.tokens.iter().filter_map(|token| self.read(token)) {
            let (tenant, scope) = (token.tenant, Scope::Session(token.session));
            let body = Body::Delivery(DeliveryCommand::RecordBounce(RecordBounce {
                token,
                message: message.clone(),
            }));
            let tried = match submit(&self.api, tenant, scope, None, body).await {
                Ok(Some(_)) => Outcome::Bounced,
                Ok(None) => continue,
                Err(refusal) => refused(&refusal),
            };
            match tried {
                Outcome::Quarantined(why) => outcome = Outcome::Quarantined(why),
                // A later token, which may prove less, must not count only because its session can be changed now.
                done @ (Outcome::Recorded(_) | Outcome::Bounced | Outcome::Ignored(_) | Outcome::Later) => {
                    return done;
                }
            }
        }
        outcome
    }

    /// Reads a token in an address or at the beginning of a message id.
    fn read(&self, text: &str) -> Option<MailToken> {
        let token: MailToken = text.split('.').next()?.parse().ok()?;
        self.brought.as_ref().is_none_or(|(only, _)| *only == token.tenant).then_some(token)
    }
}

/// Identifies a reply, however often it comes. A signed reply stays the same with other blanks in its body, and with another
/// id if the signature does not cover it.
fn one_reply(reply: &Written, proof: &Authentication) -> Digest {
    let Some(identity) = proof.identity.as_ref().filter(|_| proof.is_signed()) else {
        return Digest(reply.digest);
    };
    let from = reply.from.text.to_ascii_lowercase();
    Digest::of_parts(&[b"signed reply", from.as_bytes(), identity.as_bytes()])
}

/// A subject as one valid line of a mail, cut if it is long.
fn subject(text: &str) -> String {
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    line[..line.floor_char_boundary(SUBJECT_BYTES_MAX)].trim().to_owned()
}

impl Api {
    /// Records a reply in the session of its token. `digest` identifies the message: the same one twice is one reply.
    pub async fn record_mail(&self, reply: RecordReply, digest: Digest) -> Outcome {
        let Some(token) = &reply.token else { return Unrecorded::NoToken.into() };
        let (tenant, scope) = (token.tenant, Scope::Session(token.session));
        let request = RequestId { id: format!("mail:{digest}"), body: digest };
        let body = Body::Approval(ApprovalCommand::RecordReply(reply));
        match submit(self, tenant, scope, Some(request), body).await {
            Ok(Some(Reply::Replied { outcome, .. })) => Outcome::Recorded(outcome),
            // The engine answers this command with `Replied` alone. With any other answer the command was still carried
            // out, so the mail must not come again.
            Ok(Some(_)) => Outcome::Recorded(ReplyOutcome::Unexpected),
            Ok(None) => Unrecorded::NoTenant.into(),
            Err(refusal) => refused(&refusal),
        }
    }
}

/// What a refusal means for a message.
fn refused(refusal: &Refusal) -> Outcome {
    let reason = refusal.reason();
    let later = [
        Reason::OutcomeUnknown,
        Reason::ShardElecting,
        Reason::ShardStopped,
        Reason::Draining,
        Reason::StreamBackendDown,
        Reason::QuotaExceeded,
        Reason::DiskLow,
        Reason::DeadlineExceeded,
        Reason::InternalError,
    ];
    if later.contains(&reason) {
        return Outcome::Later;
    }
    Outcome::from(if reason == Reason::CredentialInvalid {
        Unrecorded::TokenInvalid
    } else if reason == Reason::SessionTerminal {
        Unrecorded::SessionEnded
    } else if reason == Reason::NotFound {
        Unrecorded::SessionUnknown
    } else {
        Unrecorded::Refused
    })
}

/// Executes a command of the mail ingress; `None` if there is no such tenant.
async fn submit(
    api: &Api,
    tenant: TenantId,
    scope: Scope,
    request: Option<RequestId>,
    body: Body,
) -> Result<Option<Reply>, Refusal> {
    let Some(tenant) = tenant_of(api, tenant)? else { return Ok(None) };
    let caller = Caller {
        tenant: tenant.id,
        tenant_name: tenant.name,
        settings: tenant.settings,
        actor: Actor { subject: SUBJECT.into(), role: Role::Server },
        key_id: String::new(),
    };
    let call = Call { api, caller, trace: None };
    call.execute(scope, request, None, body).await.map(Some)
}

#[cfg(test)]
mod tests {
    use switchward_shard::Failure;
    use switchward_state::Rejection;

    use super::*;
    use crate::refusals::refusal;

    #[test]
    fn a_reply_that_a_shard_cannot_take_now_comes_again_and_one_that_it_refuses_does_not() {
        for failure in [
            Failure::Electing,
            Failure::OutcomeUnknown,
            Failure::Internal,
            Failure::Unconfirmed,
            Failure::OtherMap { epoch: 4 },
            Failure::Overloaded,
            Failure::DiskLow { free_bytes: 1, needed_bytes: 2 },
            Failure::Draining,
            Failure::Stopped,
        ] {
            assert_eq!(refused(&refusal(failure.clone())), Outcome::Later, "{failure:?}");
        }
        for (reason, why) in [
            (switchward_state::Reason::SessionTerminal, "session_ended"),
            (switchward_state::Reason::NotFound, "session_unknown"),
            (switchward_state::Reason::NotAnApprover, "refused"),
        ] {
            let no = Failure::Rejected(Rejection::new(reason, "no"));
            assert_eq!(refused(&refusal(no)), Outcome::Quarantined(why), "{reason:?}");
        }
    }
}
