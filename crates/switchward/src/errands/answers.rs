//! What came of an errand, as a command to the shard of its session.

use std::time::Duration;

use async_trait::async_trait;
use switchward_delivery::desk::{AnswerError, Answers, Errand, MAIL, Outcome, POST};
use switchward_engine::{
    AckEffect, Actor, Attempt, Body, Command, CompleteWork, DeferEffect, FailEffect, FailWork, Reason,
    RequestId, Scope, Settings,
};

use switchward_machine::{Digest, Micros, OpenId, SessionId, TenantId};
use switchward_shard::{Clock as _, Cluster, Failure, SystemClock};

use super::effects;

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
    if errand.kind == MAIL || errand.kind == POST {
        return delivered(errand, session, outcome);
    }
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

/// What came of an attempt to deliver an effect: it has arrived, or is tried again, or is given up.
fn delivered(errand: &Errand, session: SessionId, outcome: Outcome) -> Option<Command> {
    let (number, attempt) = (errand.item, effects::attempt(&errand.token)?);
    let body = match outcome {
        Outcome::Done(_) => Body::AckEffect(AckEffect { number }),
        Outcome::Failed { reason, message, retry_after_ms } => {
            let next = if FINAL.contains(&reason.as_str()) { None } else { next(attempt, retry_after_ms) };
            match next {
                Some(wait) => {
                    let until = SystemClock.now().after_ms(wait);
                    let (code, made) = (reason, true);
                    Body::DeferEffect(DeferEffect { number, attempt, until, code, message, made })
                }
                None => {
                    let round = Some(attempt.round);
                    Body::FailEffect(FailEffect { number, code: reason, message, round })
                }
            }
        }
    };
    Some(Command::of_server(TenantId(errand.tenant), Scope::Session(session), body))
}

/// What is the same next time.
const FINAL: [&str; 8] = [
    "mail_rejected",
    "mail_invalid",
    "errand_invalid",
    "url_invalid",
    "scheme_refused",
    "host_refused",
    "request_invalid",
    "request_too_large",
];

/// How long after each failed attempt the next one is made, milliseconds: about 32 hours in all, as webhooks are retried.
const WAITS_MS: [u64; 9] =
    [5_000, 60_000, 5 * 60_000, 30 * 60_000, 2 * HOUR_MS, 5 * HOUR_MS, 8 * HOUR_MS, 8 * HOUR_MS, 8 * HOUR_MS];
const HOUR_MS: u64 = 3_600_000;

/// How long to wait before the next attempt; nothing where there is none. Who asks for a longer wait is given it.
fn next(attempt: Attempt, wanted_ms: Option<u64>) -> Option<u64> {
    let wait = *WAITS_MS.get(usize::try_from(attempt.number).ok()?)?;
    Some(wait.max(wanted_ms.unwrap_or_default()))
}
