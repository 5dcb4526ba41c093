//! Single messages to endpoints, sent at once and outside of any session: by this process, or over the bus by a worker in
//! another one, whose answer comes back over the bus.

use async_trait::async_trait;
use std::sync::Arc;
use std::time::Duration;
use switchward_bus::Bus;
use switchward_delivery::channels::{Event, PingAnswer, PingFailure, Webhook, ping};
use switchward_delivery::worker::{DeliveryJob, JobInput, Origin};
use switchward_delivery::{DeliveryReason, Failed, http::Client};
use switchward_gateway::{
    names,
    services::{Pinged, Pings},
};
use switchward_machine::{OpenId, SessionId, TenantId};
use switchward_shard::{Clock as _, Cluster, SystemClock, TenantPermits};
use switchward_state::delivery::{DeliveryDetail, Endpoint, FailureCode, PingProblem};
use switchward_webhook::{Body, Data, EventType, Group};

use crate::render::webhook;

/// How long the answer to a single message may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How much longer who waits on the bus waits, so that the answer of a worker comes before.
const ON_THE_WAY: Duration = Duration::from_secs(5);
/// Single messages that wait at this server for their answers: each that waits on the bus holds a connection to Redis.
const WAITING_MAX: usize = 32;
/// The same of one tenant.
const WAITING_OF_TENANT_MAX: usize = 8;
/// The session that examples are about; there is none of that name.
const EXAMPLE: SessionId = SessionId([0; 16]);
/// The session of jobs that are about the tenant itself.
const NO_SESSION: SessionId = SessionId([0; 16]);

/// Who sends single messages.
pub(super) enum PingedBy {
    /// This process does.
    ThisProcess(Box<Client>),
    /// A worker in another process, which takes them from this bus.
    Worker(Arc<dyn Bus>),
}

/// See the module.
pub(super) struct Pinger {
    by: PingedBy,
    cluster: Cluster,
    waiting: TenantPermits,
}

impl Pinger {
    pub(super) fn new(by: PingedBy, cluster: Cluster) -> Self {
        Self { by, cluster, waiting: TenantPermits::new(WAITING_MAX, WAITING_OF_TENANT_MAX) }
    }

    async fn send(&self, tenant: TenantId, message_id: &str, event: Event) -> PingAnswer {
        let Some(_waits) = self.waiting.take(tenant) else {
            return PingAnswer::failed(Failed::new(DeliveryReason::NotBegun, PingProblem::Busy));
        };
        match &self.by {
            PingedBy::ThisProcess(client) => ping(client, tenant.0, &event, PATIENCE).await,
            PingedBy::Worker(bus) => match self.send_over(&**bus, tenant, message_id, event).await {
                Ok(answer) => answer,
                Err(failed) => PingAnswer::failed(failed),
            },
        }
    }

    /// Puts a message on the bus, and waits there for its answer.
    ///
    /// # Errors
    /// NotBegun if it was not sent; Timeout if that is not known.
    async fn send_over(
        &self,
        bus: &dyn Bus,
        tenant: TenantId,
        message_id: &str,
        event: Event,
    ) -> Result<PingAnswer, Failed> {
        let job = DeliveryJob {
            tenant,
            session: NO_SESSION,
            origin: Origin::Ping { number: rand::random() },
            input: JobInput::Webhook(Webhook::Event(event)),
            ttl_ms: u64::try_from(PATIENCE.as_millis()).unwrap_or(u64::MAX),
            idempotency_key: message_id.to_owned(),
            traceparent: None,
        };
        let published = bus.publish(job.input.stream(), job.envelope()).await;
        published.map_err(|error| Failed::quoting(DeliveryReason::NotBegun, error.to_string()))?;
        let unknown = |problem: PingProblem| Failed::new(DeliveryReason::Timeout, problem);
        let answer = bus.answered(&job.name(), PATIENCE + ON_THE_WAY).await;
        let answer =
            answer.map_err(|error| unknown(PingProblem::AnswerLost { diagnostic: error.to_string() }))?;
        let answer = answer.ok_or_else(|| unknown(PingProblem::NoAnswer))?;
        PingAnswer::decode(&answer).ok_or_else(|| unknown(PingProblem::AnswerForm))
    }
}

#[async_trait]
impl Pings for Pinger {
    async fn ping(&self, number: TenantId, name: &str, endpoint: &Endpoint, kind: EventType) -> Pinged {
        let (now, message_id) = (SystemClock.now(), format!("png_{:032x}", rand::random::<u128>()));
        let made = Body::new(kind, Duration::from_millis(now.0), example(name, endpoint, kind));
        let body = match made.and_then(|body| body.to_json()) {
            Ok(body) => body,
            Err(error) => return not_made(Pinged::default(), error.to_string()),
        };
        let pinged = Pinged { message_id, body, ..Pinged::default() };
        let ring = self.cluster.ring();
        let signed = webhook::signed(&ring, number, endpoint, &pinged.message_id, now, pinged.body.clone());
        let event = match signed {
            Ok(event) => event,
            Err(why) => return not_made(pinged, why),
        };
        let PingAnswer { status, failure, took_ms } = self.send(number, &pinged.message_id, event).await;
        let pinged = Pinged { status, took: Duration::from_millis(took_ms), ..pinged };
        match failure {
            Some(PingFailure { reason, detail }) => {
                Pinged { code: Some(FailureCode::Attempt(reason)), detail: Some(detail), ..pinged }
            }
            None => pinged,
        }
    }
}

/// A message that a library refuses to make or to sign.
fn not_made(pinged: Pinged, error: String) -> Pinged {
    Pinged { code: Some(FailureCode::WebhookFailed), detail: DeliveryDetail::quote(error), ..pinged }
}

/// The example data of a message of this type: names that do not exist.
fn example(tenant: &str, endpoint: &Endpoint, kind: EventType) -> Data {
    let session = || Some(names::session_name(tenant, EXAMPLE));
    let gate = || Some(names::gate_name(tenant, EXAMPLE, OpenId(1)));
    let of_session = Data {
        tenant: tenant.to_owned(),
        session: session(),
        sequence: Some(1),
        definition: Some("example".to_owned()),
        version: Some(1),
        ..Data::default()
    };
    let of_tenant = Data { tenant: tenant.to_owned(), ..Data::default() };
    let endpoint = || Some(names::endpoint_name(tenant, &endpoint.id));
    match kind.group() {
        Group::Session => Data { state: Some("example".to_owned()), ..of_session },
        Group::Approval => Data { approval: gate(), ..of_session },
        Group::Task => Data { task: gate(), ..of_session },
        Group::Policy => Data { capability: Some("bash".to_owned()), ..of_session },
        Group::Budget => Data { budget: Some("usd".to_owned()), version: None, ..of_session },
        Group::Delivery => Data { delivery: Some(names::effect_name(tenant, EXAMPLE, 1)), ..of_session },
        Group::Definition => Data { definition: of_session.definition, version: Some(1), ..of_tenant },
        Group::Endpoint => Data { endpoint: endpoint(), reason: Some("gone".to_owned()), ..of_tenant },
        Group::Ping => Data { endpoint: endpoint(), ..of_tenant },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use switchward_machine::Time;

    #[test]
    fn there_is_an_example_of_every_type() {
        let (id, url) = ("ops".to_owned(), "https://ops.example/in".to_owned());
        let (secrets, filters, disabled) = (Vec::new(), Vec::new(), None);
        let endpoint = Endpoint { id, url, secrets, filters, disabled, created: Time(1), health: None };
        for kind in EventType::ALL {
            let body = Body::new(*kind, Duration::ZERO, example("acme", &endpoint, *kind));
            assert!(body.is_ok_and(|body| body.to_json().is_ok()), "{kind}");
        }
    }
}
