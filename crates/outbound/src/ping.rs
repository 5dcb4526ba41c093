//! Single messages to endpoints, sent at once and outside of any session.

use async_trait::async_trait;
use std::time::{Duration, Instant};
use switchward_delivery::{DeliveryReason, http::Client};
use switchward_gateway::{
    names,
    services::{Pinged, Pings},
};
use switchward_machine::{OpenId, SessionId, TenantId};
use switchward_shard::{Clock as _, Cluster, SystemClock};
use switchward_state::delivery::{Endpoint, FailureCode};
use switchward_webhook::{
    Body, Data, EventType, Group,
    retry::{Attempt, AttemptOutcome},
};

use crate::render::webhook;

/// How long the answer to a single message may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// The session that examples are about; there is none of that name.
const EXAMPLE: SessionId = SessionId([0; 16]);

/// See the module.
pub(super) struct Pinger(pub(super) Client, pub(super) Cluster);

#[async_trait]
impl Pings for Pinger {
    async fn ping(&self, number: TenantId, name: &str, endpoint: &Endpoint, kind: EventType) -> Pinged {
        let (now, message_id) = (SystemClock.now(), format!("png_{:032x}", rand::random::<u128>()));
        let began = Instant::now();
        let made = Body::new(kind, Duration::from_millis(now.0), example(name, endpoint, kind));
        let body = match made.and_then(|body| body.to_json()) {
            Ok(body) => body,
            Err(error) => return failed(Pinged::default(), FailureCode::WebhookFailed, error.to_string()),
        };
        let pinged = Pinged { message_id, body, ..Pinged::default() };
        let signed =
            webhook::signed(&self.1.ring(), number, endpoint, &pinged.message_id, now, pinged.body.clone());
        let request = match signed {
            Ok(event) => event.request(PATIENCE),
            Err(why) => return failed(pinged, FailureCode::WebhookFailed, why),
        };
        let answer = self.0.send_as_is(number.0, &request).await;
        let pinged = Pinged { took: began.elapsed(), ..pinged };
        match answer {
            Ok(answer) => {
                let status = Some(answer.status);
                let message = format!("the endpoint answered {}", answer.status);
                match Attempt::Answered(answer.status).verdict() {
                    AttemptOutcome::Delivered => Pinged { status, ..pinged },
                    AttemptOutcome::Gone => failed(
                        Pinged { status, ..pinged },
                        FailureCode::Attempt(DeliveryReason::ReceiverGone),
                        message,
                    ),
                    AttemptOutcome::Failed => failed(
                        Pinged { status, ..pinged },
                        FailureCode::Attempt(DeliveryReason::ReceiverRefused),
                        message,
                    ),
                }
            }
            Err(why) => failed(pinged, FailureCode::Attempt(why.reason), why.message),
        }
    }
}

fn failed(pinged: Pinged, code: FailureCode, message: String) -> Pinged {
    Pinged { code: Some(code), message, ..pinged }
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
