//! What came of an errand, as a command to the shard of its session.

use std::time::Duration;

use async_trait::async_trait;
use switchward_delivery::desk::{AnswerError, Answers, Errand, Outcome};
use switchward_engine::{Actor, Body, Command, CompleteWork, FailWork, Reason, RequestId, Scope, Settings};
use switchward_machine::{Digest, Micros, OpenId, SessionId, TenantId};
use switchward_shard::{Cluster, Failure};

/// How often an outcome is offered to a shard that cannot take it just now.
const OFFERS: u32 = 6;
/// How long is waited before the second offer; twice as long before each further one.
const PAUSE: Duration = Duration::from_millis(200);

/// See the module.
pub(super) struct ToShards(pub(super) Cluster);

#[async_trait]
impl Answers for ToShards {
    async fn answer(&self, errand: &Errand, outcome: Outcome) -> Result<(), AnswerError> {
        let Some(command) = command(errand, outcome) else { return Err(AnswerError::Gone) };
        let mut pause = PAUSE;
        for offer in 1..=OFFERS {
            // The outcome is kept and offered again: doing the errand once more is what it costs to give up.
            match self.0.execute(command.clone()).await {
                Ok(_) => return Ok(()),
                Err(Failure::Rejected(no)) if no.reason == Reason::QuotaExceeded && offer < OFFERS => {}
                Err(Failure::Rejected(no)) => {
                    tracing::info!(errand = %errand.name, reason = no.reason.code(), "an outcome came too late");
                    return Err(AnswerError::Gone);
                }
                Err(Failure::Electing | Failure::Overloaded) if offer < OFFERS => {}
                Err(Failure::Electing | Failure::Overloaded | Failure::Draining | Failure::Stopped) => break,
            }
            tokio::time::sleep(pause).await;
            pause *= 2;
        }
        Err(AnswerError::Later)
    }
}

/// The command; nothing for an errand that this server never wrote.
fn command(errand: &Errand, outcome: Outcome) -> Option<Command> {
    let session: SessionId = errand.session.parse().ok()?;
    let (thing, fence) = (OpenId(errand.item), errand.token.parse().ok()?);
    let (cost, tokens) = (Micros(0), 0);
    let body = match outcome {
        Outcome::Done(result) => Body::CompleteWork(CompleteWork { thing, fence, result, cost, tokens }),
        Outcome::Failed { reason, message, .. } => {
            let message = format!("{reason}: {message}");
            Body::FailWork(FailWork { thing, fence, message, cost, tokens })
        }
    };
    // One errand done twice may have two outcomes; the first is taken.
    let id = format!("errand:{}:{fence}", errand.item);
    let request = RequestId { body: Digest::of(id.as_bytes()), id };
    Some(Command {
        tenant: TenantId(errand.tenant),
        scope: Scope::Session(session),
        request: Some(request),
        expected_sequence: None,
        actor: Actor::server(),
        settings: Settings::default(),
        trace: None,
        body,
    })
}
