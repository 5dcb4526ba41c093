//! Replies by mail at the door: whoever took a message off the wire brings what was found in it here.

use switchward_engine::{Actor, Body, MailToken, RecordReply, RequestId, Role, Scope};
use switchward_machine::{Digest, WorkKind};

use crate::auth::Caller;
use crate::decision::tenant_of;
use crate::door::{Call, Door};
use crate::error::{Reason, Refusal};

/// Who is said to have brought replies.
const SUBJECT: &str = "mail";

/// A reply, as it was found in a message.
#[derive(Debug, Clone)]
pub struct Incoming {
    /// The token of the address that it went to.
    pub token: MailToken,
    /// The bare address of who wrote it.
    pub from: String,
    /// The writer's own words, or all of the text.
    pub text: String,
    /// Whether the sender is proved.
    pub authenticated: bool,
    /// What is known of where it comes from.
    pub evidence: String,
    /// Of the message as it came; the same message twice is one reply.
    pub digest: Digest,
}

/// What became of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorded {
    /// It stands in the history of its session.
    Taken,
    /// Nothing waits for it: its session is unknown or at its end.
    Nowhere,
    /// It cannot be taken now; it is to be brought again.
    Later,
}

impl Door {
    /// Records a reply in its session.
    pub async fn take_mail(&self, mail: Incoming) -> Recorded {
        match record(self, mail).await {
            Ok(taken) => taken,
            Err(refusal) => {
                let reason = refusal.reason();
                tracing::info!(reason = %reason.code(), "a reply by mail was not recorded");
                let later = [
                    Reason::ShardElecting,
                    Reason::Draining,
                    Reason::StreamBackendDown,
                    Reason::QuotaExceeded,
                    Reason::DeadlineExceeded,
                ];
                if later.contains(&reason) { Recorded::Later } else { Recorded::Nowhere }
            }
        }
    }
}

async fn record(door: &Door, mail: Incoming) -> Result<Recorded, Refusal> {
    let Some(tenant) = tenant_of(door, mail.token.tenant)? else { return Ok(Recorded::Nowhere) };
    let caller = Caller {
        tenant: tenant.id,
        tenant_name: tenant.name,
        settings: tenant.settings,
        actor: Actor { subject: SUBJECT.into(), role: Role::Server },
        key_id: String::new(),
    };
    let scope = Scope::Session(mail.token.session);
    let request = RequestId { id: format!("mail:{}", mail.digest), body: mail.digest };
    let body = Body::RecordReply(RecordReply {
        from: mail.from,
        text: mail.text,
        authenticated: mail.authenticated,
        model: door.own.contains(&WorkKind::Classify),
        token: Some(mail.token),
        evidence: mail.evidence,
        limits: None,
    });
    let call = Call { door, caller, trace: None };
    call.execute(scope, Some(request), None, body).await.map(|_| Recorded::Taken)
}
