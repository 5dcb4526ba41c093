//! Single messages to endpoints, which go over the bus to a worker and whose answers come back over it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::json;
use switchward_bus::{Bus, Memory, Stream};
use switchward_delivery::DeliveryReason;
use switchward_delivery::channels::{Event, PingAnswer, Webhook};
use switchward_delivery::worker::{
    AnswerError, Answers, Config, DeliveryJob, DeliveryWorker, JobInput, Origin, Outcome,
};
use switchward_machine::{SessionId, TenantId};
use tokio::sync::watch;

use super::server::{Server, client, json as answered};

const SOON: Duration = Duration::from_secs(30);

/// Wants messages to the endpoint `ops` alone, and is never given an outcome.
struct Wants;

#[async_trait]
impl Answers for Wants {
    async fn wanted(&self, job: &DeliveryJob) -> bool {
        matches!(&job.input, JobInput::Webhook(Webhook::Event(event)) if event.endpoint == "ops")
    }

    async fn answer(&self, job: &DeliveryJob, _: Outcome) -> Result<(), AnswerError> {
        panic!("an outcome of {job:?} is recorded");
    }
}

fn ping(number: u64, url: String) -> DeliveryJob {
    let event = Event {
        endpoint: "ops".to_owned(),
        url,
        headers: [("webhook-id".to_owned(), "png_1".to_owned())].into(),
        body: "{\"a\": 1}".to_owned(),
    };
    DeliveryJob {
        tenant: TenantId(7),
        session: SessionId([0; 16]),
        origin: Origin::Ping { number },
        input: JobInput::Webhook(Webhook::Event(event)),
        ttl_ms: 20_000,
        idempotency_key: "png_1".to_owned(),
        traceparent: None,
    }
}

/// A worker that takes from this bus and may request this server, until it is stopped.
fn worker(bus: &Arc<dyn Bus>, server: &Server) -> watch::Sender<bool> {
    let config = Config::new("one".to_owned());
    let client = client(&[server.port]);
    let worker = DeliveryWorker::new(Arc::clone(bus), Arc::new(Wants), client, None, config);
    let (stop, stopped) = watch::channel(false);
    tokio::spawn(worker.run(stopped));
    stop
}

/// The answer to a message that was put on the bus.
async fn answer(bus: &dyn Bus, job: &DeliveryJob) -> PingAnswer {
    let answer = bus.answered(&job.name(), SOON).await.expect("the bus is open");
    PingAnswer::decode(&answer.expect("the worker answers")).expect("it is an answer")
}

async fn publish(bus: &dyn Bus, job: &DeliveryJob) {
    bus.publish(Stream::Webhook, job.envelope()).await.expect("the bus takes it");
}

#[tokio::test]
async fn a_message_is_sent_once_and_its_answer_comes_back() {
    for (status, reason) in
        [(204, None), (500, Some(DeliveryReason::ReceiverRefused)), (410, Some(DeliveryReason::ReceiverGone))]
    {
        let (server, bus) = (Server::always(answered(status, &json!(null))).await, bus());
        let job = ping(1, server.url("/in"));
        publish(&*bus, &job).await;
        let _stop = worker(&bus, &server);
        let answer = answer(&*bus, &job).await;
        assert_eq!(answer.status, Some(status));
        assert_eq!(answer.failure.map(|failure| failure.reason), reason);
        let seen = server.seen();
        assert_eq!((seen.len(), seen[0].header("webhook-id")), (1, Some("png_1")));
        assert_eq!(seen[0].json(), json!({ "a": 1 }));
    }
}

#[tokio::test]
async fn what_comes_too_late_or_cannot_be_sent_is_answered_and_what_is_not_wanted_is_not() {
    let (server, bus) = (Server::always(answered(200, &json!(null))).await, bus());
    let late = DeliveryJob { ttl_ms: 0, ..ping(1, server.url("/late")) };
    let refused = ping(2, "http://10.0.0.1/".to_owned());
    let mut foreign = ping(3, server.url("/foreign"));
    if let JobInput::Webhook(Webhook::Event(event)) = &mut foreign.input {
        event.endpoint = "other".to_owned();
    }
    let last = ping(4, server.url("/last"));
    for job in [&late, &refused, &foreign, &last] {
        publish(&*bus, job).await;
    }
    let _stop = worker(&bus, &server);
    let reason = |answer: PingAnswer| answer.failure.map(|failure| failure.reason);
    assert_eq!(reason(answer(&*bus, &late).await), Some(DeliveryReason::NotBegun));
    let refused = reason(answer(&*bus, &refused).await);
    assert!(
        matches!(refused, Some(DeliveryReason::AddressRefused | DeliveryReason::PortRefused)),
        "{refused:?}"
    );
    assert_eq!(answer(&*bus, &last).await.status, Some(200));
    assert_eq!(bus.answered(&foreign.name(), Duration::ZERO).await, Ok(None));
    assert_eq!(server.seen().len(), 1);
}

/// A worker that ended may have sent it.
#[tokio::test]
async fn a_message_that_was_begun_is_not_sent_again() {
    let (server, bus) = (Server::always(answered(200, &json!(null))).await, bus());
    let (begun, next) = (ping(1, server.url("/begun")), ping(2, server.url("/next")));
    publish(&*bus, &begun).await;
    let taken = bus.take(Stream::Webhook, "gone", 1, SOON).await.expect("the bus is open");
    bus.release(Stream::Webhook, "gone", &[taken[0].receipt.clone()]).await.expect("the bus is open");
    publish(&*bus, &next).await;
    let _stop = worker(&bus, &server);
    assert_eq!(answer(&*bus, &next).await.status, Some(200));
    assert_eq!(bus.answered(&begun.name(), Duration::ZERO).await, Ok(None));
    let seen = server.seen();
    assert_eq!(seen.len(), 1);
    assert!(seen[0].head.starts_with("post /next "), "{}", seen[0].head);
}

fn bus() -> Arc<dyn Bus> {
    Arc::new(Memory::default())
}
