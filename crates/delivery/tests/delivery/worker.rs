//! The delivery worker between a bus in memory and servers on this machine.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use serde_json::{Value, json};
use switchward_bus::{
    Bus, BusError, Count, Counting, Delivery, Envelope, Memory, Published, Receipt, Settings, Stream,
};
use switchward_delivery::channels::{Answer, Event, HttpRequest, Message, Webhook};
use switchward_delivery::limits::RESULT_BYTES_MAX;
use switchward_delivery::mail::{OutboundMail, Purpose};
use switchward_delivery::model::{self, Kind, Model, Provider, Question};
use switchward_delivery::worker::{
    AnswerError, Answers, Config, Delivered, DeliveryJob, DeliveryWorker, JobError, JobInput, Origin, Outcome,
};
use switchward_delivery::{DeliveryReason, Secret};
use switchward_machine::{OpenId, SessionId, TenantId};
use switchward_state::delivery::JobProblem;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::server::{Act, Server, answer, client, json as answered};

const GOLDEN: &str = include_str!("../golden/job.v1.json");

const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const KEY: &str = "ses_1:3:http";

fn golden() -> DeliveryJob {
    DeliveryJob {
        tenant: TenantId(7),
        session: SessionId([7; 16]),
        origin: Origin::Work { item: OpenId(3), fence: 5 },
        input: http(json!({ "method": "GET", "url": "https://example.org/" })),
        ttl_ms: 90_000,
        idempotency_key: KEY.to_owned(),
        traceparent: None,
    }
}

fn http(input: Value) -> JobInput {
    JobInput::Http(HttpRequest::read(&input).expect("the request is readable"))
}

fn question(kind: Kind, input: Value) -> JobInput {
    let question = Question::read(kind, &input).expect("the question is readable");
    JobInput::Model { question, result_schema: Value::Null }
}

fn judge() -> JobInput {
    question(Kind::Judge, json!({ "rubric": "It is polite.", "data": {} }))
}

fn mail() -> JobInput {
    JobInput::Mail(Box::new(OutboundMail {
        to: "kim@acme.example".to_owned(),
        subject: "Hello".to_owned(),
        purpose: Purpose::Say,
        body: "the words of people".to_owned(),
        html: false,
        id: "7".to_owned(),
        thread: "ses_a-6".to_owned(),
        reply_token: Some("t0k3n".to_owned()),
        page_token: None,
        bounce_token: None,
        facts: Vec::new(),
        choice: None,
        head: None,
    }))
}

fn event(url: String) -> JobInput {
    let headers = [("webhook-id", "ses_1-3"), ("content-type", "application/json")];
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    JobInput::Webhook(Webhook::Event(Event {
        endpoint: "ops".to_owned(),
        url,
        headers,
        body: "{\"a\": 1}".to_owned(),
    }))
}

#[test]
fn a_job_is_written_and_read_as_ever() {
    assert_eq!(serde_json::to_string(&golden()).expect("the job can be written"), GOLDEN.trim_end());
    let envelope =
        |tenant, body: &str| Envelope { tenant, id: "a".to_owned(), body: body.as_bytes().to_vec() };
    assert_eq!(DeliveryJob::read(&envelope(7, GOLDEN)), Ok(golden()));
    let newer = GOLDEN.replacen('{', "{\"more\":1,", 1);
    assert_eq!(DeliveryJob::read(&envelope(7, &newer)), Ok(golden()));
    let traced = DeliveryJob { traceparent: Some(TRACE.to_owned()), ..golden() };
    let text = serde_json::to_string(&traced).expect("the job can be written");
    assert!(text.ends_with(&format!(",\"traceparent\":\"{TRACE}\"}}")), "{text}");
    assert_eq!(DeliveryJob::read(&envelope(7, &text)), Ok(traced));
    assert_eq!(DeliveryJob::read(&envelope(8, GOLDEN)), Err(JobError::OtherTenant));
    let broken = DeliveryJob::read(&envelope(7, "{\"tenant\":")).expect_err("the text is truncated");
    assert!(matches!(broken, JobError::Unreadable(_)), "{broken}");
}

#[test]
fn every_input_is_read_as_it_was_written_and_never_shown() {
    let origins = [
        Origin::Work { item: OpenId(3), fence: 5 },
        Origin::Effect { number: 3, round: 1, attempt: 2 },
        Origin::Ping { number: u64::MAX },
    ];
    let message = Message { url: "https://a.example/".to_owned(), body: "the words of people".to_owned() };
    let message = JobInput::Webhook(Webhook::Message(message));
    let inputs = [golden().input, judge(), mail(), message, event("https://a.example/".to_owned())];
    for input in inputs {
        for origin in origins {
            let job = DeliveryJob { origin, input: input.clone(), ..golden() };
            let envelope = job.envelope();
            assert_eq!((envelope.tenant, &envelope.id), (7, &job.name()));
            assert_eq!(DeliveryJob::read(&envelope), Ok(job.clone()));
            let shown = format!("{job:?}");
            assert!(!shown.contains("t0k3n") && !shown.contains("words of people"), "{shown}");
        }
    }
}

/// Two tenants have effects of the same number about themselves, in a session of the same id.
#[test]
fn no_two_attempts_have_the_same_name() {
    let origins = [
        Origin::Work { item: OpenId(3), fence: 5 },
        Origin::Work { item: OpenId(3), fence: 6 },
        Origin::Effect { number: 3, round: 0, attempt: 5 },
        Origin::Effect { number: 3, round: 5, attempt: 0 },
        Origin::Ping { number: 3 },
        Origin::Ping { number: 5 },
    ];
    let mut names = std::collections::BTreeSet::new();
    for tenant in [TenantId(1), TenantId(2)] {
        for origin in origins {
            assert!(names.insert(DeliveryJob { tenant, origin, ..golden() }.name()), "{origin:?}");
        }
    }
}

const IDLE: Duration = Duration::from_millis(300);
const SOON: Duration = Duration::from_secs(30);
/// The outcome of the job of this origin is not wanted.
const UNWANTED: Origin = Origin::Work { item: OpenId(404), fence: 1 };

/// Records outcomes, and refuses the first ones as scripted.
struct Recorder {
    sender: mpsc::UnboundedSender<(DeliveryJob, Outcome)>,
    refusals: Mutex<VecDeque<AnswerError>>,
}

#[async_trait]
impl Answers for Recorder {
    async fn wanted(&self, job: &DeliveryJob) -> bool {
        job.origin != UNWANTED
    }

    async fn answer(&self, job: &DeliveryJob, outcome: Outcome) -> Result<(), AnswerError> {
        self.sender.send((job.clone(), outcome)).expect("the test listens");
        self.refusals.lock().expect("nobody panicked").pop_front().map_or(Ok(()), Err)
    }
}

/// A bus, the outcomes of its workers, and the ports that they may request.
struct Harness {
    bus: Arc<dyn Bus>,
    recorder: Arc<Recorder>,
    outcomes: mpsc::UnboundedReceiver<(DeliveryJob, Outcome)>,
    ports: Vec<u16>,
}

/// A running worker. It dies when this is dropped without [`stop`](Self::stop).
struct Working {
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Drop for Working {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Working {
    /// Stops it, and waits until it has ended.
    async fn stop(mut self) {
        self.stop.send_replace(true);
        self.ended().await;
    }

    async fn ended(&mut self) {
        timeout(SOON, &mut self.task)
            .await
            .expect("the worker ends soon")
            .expect("the worker does not panic");
    }
}

impl Harness {
    fn new(bus: Arc<dyn Bus>, server: &Server, refusals: &[AnswerError]) -> Self {
        let (sender, outcomes) = mpsc::unbounded_channel();
        let recorder =
            Arc::new(Recorder { sender, refusals: Mutex::new(refusals.iter().copied().collect()) });
        Self { bus, recorder, outcomes, ports: vec![server.port] }
    }

    fn with_idle(idle: Duration, server: &Server) -> Self {
        Self::new(Arc::new(Memory::new(Settings { idle, ..Settings::default() })), server, &[])
    }

    fn worker(&self, name: &str) -> Working {
        self.worker_with(None, Config { keep: IDLE / 6, ..Config::new(name.to_owned()) })
    }

    fn worker_with(&self, model: Option<Model>, config: Config) -> Working {
        let worker =
            DeliveryWorker::new(self.bus.clone(), self.recorder.clone(), client(&self.ports), model, config);
        let (stop, stopped) = watch::channel(false);
        Working { stop, task: tokio::spawn(worker.run(stopped)) }
    }

    async fn publish(&self, stream: Stream, job: &DeliveryJob) {
        let body = serde_json::to_vec(job).expect("the job can be written");
        self.publish_body(stream, job.tenant.0, body).await;
    }

    async fn publish_body(&self, stream: Stream, tenant: u32, body: Vec<u8>) {
        // The bus takes each of them, also twice the same job.
        static PUBLISHED: AtomicU64 = AtomicU64::new(1);
        let id = PUBLISHED.fetch_add(1, Ordering::Relaxed).to_string();
        let published = self.bus.publish(stream, Envelope { tenant, id, body }).await;
        assert_eq!(published, Ok(Published::Added));
    }

    async fn outcome(&mut self) -> (DeliveryJob, Outcome) {
        timeout(SOON, self.outcomes.recv())
            .await
            .expect("the outcome comes soon")
            .expect("the worker is running")
    }

    /// Whether the bus holds nothing of this stream, and gives nothing out for some idle times.
    async fn is_done(&self, stream: Stream) -> bool {
        let rest = self.bus.take(stream, "inspector", 1, IDLE * 3).await.expect("the bus is open");
        rest.is_empty()
    }
}

/// A job of its own name.
fn ask(url: &str) -> DeliveryJob {
    static ASKED: AtomicU64 = AtomicU64::new(1);
    DeliveryJob {
        origin: Origin::Work { item: OpenId(3), fence: ASKED.fetch_add(1, Ordering::Relaxed) },
        input: http(json!({ "method": "POST", "url": url, "headers": { "x-a": "b" }, "body": { "c": 1 } })),
        ttl_ms: u64::MAX,
        traceparent: Some(TRACE.to_owned()),
        ..golden()
    }
}

fn reason_of(outcome: &Outcome) -> Option<DeliveryReason> {
    outcome.as_ref().err().map(|failed| failed.reason)
}

fn answer_of(status: u16, body: Value) -> Outcome {
    Ok(Delivered::Http(Answer { status, body }))
}

#[tokio::test]
async fn a_request_is_made_once_and_its_answer_is_handed_on_whatever_its_status() {
    for status in [200, 404, 503] {
        let server = Server::always(answered(status, &json!({ "d": 2 }))).await;
        let mut harness = Harness::with_idle(IDLE, &server);
        let job = ask(&server.url("/x"));
        harness.publish(Stream::Http, &job).await;
        let worker = harness.worker("one");
        let done = answer_of(status, json!({ "d": 2 }));
        assert_eq!(harness.outcome().await, (job, done));
        assert!(harness.is_done(Stream::Http).await);
        let seen = server.seen();
        assert_eq!(seen.len(), 1);
        assert_eq!(
            ["idempotency-key", "traceparent", "x-a"].map(|name| seen[0].header(name)),
            [Some(KEY), Some(TRACE), Some("b")]
        );
        assert_eq!(seen[0].json(), json!({ "c": 1 }));
        worker.stop().await;
    }
}

#[tokio::test]
async fn a_job_that_is_wanted_no_more_is_not_done() {
    let server = Server::always(answered(200, &json!(null))).await;
    let mut harness = Harness::with_idle(IDLE, &server);
    harness.publish(Stream::Http, &DeliveryJob { origin: UNWANTED, ..ask(&server.url("/unwanted")) }).await;
    let job = ask(&server.url("/wanted"));
    harness.publish(Stream::Http, &job).await;
    let worker = harness.worker("one");
    assert_eq!(harness.outcome().await.0, job);
    assert!(harness.is_done(Stream::Http).await, "the jobs come again");
    assert_eq!(server.seen().len(), 1);
    worker.stop().await;
}

/// A job that was published several times, as it was unknown whether the bus took it, is performed once.
#[tokio::test]
async fn a_job_that_is_being_done_is_not_begun_again() {
    let Act::Send(slowly) = answered(200, &json!("slow")) else { unreachable!() };
    let server = Server::always(Act::Drip(slowly)).await;
    let mut harness = Harness::with_idle(IDLE, &server);
    let job = ask(&server.url("/once"));
    for _ in 0..3 {
        harness.publish(Stream::Http, &job).await;
    }
    let worker = harness.worker("one");
    assert_eq!(harness.outcome().await.0, job);
    assert!(harness.is_done(Stream::Http).await, "the jobs come again");
    assert_eq!(server.seen().len(), 1);
    worker.stop().await;
}

#[tokio::test]
async fn a_job_without_a_result_says_why() {
    let server = Server::always(Act::Reset).await;
    let mut harness = Harness::with_idle(IDLE, &server);
    let _worker = harness.worker("one");
    let url = server.url("/");
    let with = |input: JobInput| DeliveryJob { input, ..ask(&url) };
    let host = http(json!({ "method": "GET", "url": url, "headers": { "host": "a" } }));
    let rows = [
        (ask(&url), DeliveryReason::AnswerBroken),
        (ask("http://10.0.0.1:1/"), DeliveryReason::PortRefused),
        (DeliveryJob { ttl_ms: 0, ..ask(&url) }, DeliveryReason::NotBegun),
        (with(mail()), DeliveryReason::NotConfigured),
        (with(judge()), DeliveryReason::NotConfigured),
        (with(host), DeliveryReason::RequestInvalid),
    ];
    for (job, reason) in rows {
        harness.publish(Stream::Http, &job).await;
        let (found, outcome) = harness.outcome().await;
        assert_eq!((found, reason_of(&outcome)), (job, Some(reason)));
        if let Err(failed) = outcome {
            let is_late = failed.detail == JobProblem::Late.into();
            assert_eq!(is_late, reason == DeliveryReason::NotBegun, "{failed}");
        }
    }
    assert_eq!(server.seen().len(), 1, "only the first was sent");
}

#[tokio::test]
async fn a_result_that_grows_too_large_is_refused() {
    let frame = json!({ "status": 200, "body": "" }).to_string().len();
    // A quotation mark is two bytes of JSON.
    let fits = "\"".repeat((RESULT_BYTES_MAX - frame) / 2);
    for (body, reason) in [(fits.clone(), None), (fits + "\"", Some(DeliveryReason::AnswerTooLarge))] {
        let server = Server::always(answer("200 x\r\ncontent-type: text/plain", body.as_bytes())).await;
        let mut harness = Harness::with_idle(IDLE, &server);
        let _worker = harness.worker("one");
        harness.publish(Stream::Http, &ask(&server.url("/"))).await;
        assert_eq!(reason_of(&harness.outcome().await.1), reason);
    }
}

#[tokio::test]
async fn a_key_that_the_definition_names_stands() {
    let server = Server::always(answered(200, &json!(null))).await;
    let mut harness = Harness::with_idle(IDLE, &server);
    let _worker = harness.worker("one");
    let input =
        json!({ "method": "GET", "url": server.url("/"), "headers": { "Idempotency-Key": "order 7" } });
    harness.publish(Stream::Http, &DeliveryJob { input: http(input), ..ask("") }).await;
    drop(harness.outcome().await);
    assert_eq!(server.seen()[0].head.matches("idempotency-key: order 7").count(), 1);
    assert_eq!(server.seen()[0].head.matches("idempotency-key").count(), 1);
}

#[tokio::test]
async fn a_question_goes_to_the_model() {
    let said = |input: Value| json!({ "stop_reason": "tool_use", "content": [{ "type": "tool_use", "name": "answer", "input": input }] });
    let server = Server::new(move |number| match number {
        0 => answered(200, &said(json!({ "port": "rejected" }))),
        1 => answered(429, &json!({})),
        _ => Act::Hang,
    })
    .await;
    let mut harness = Harness::with_idle(IDLE, &server);
    let config = model::Config {
        provider: Provider::Anthropic,
        base_url: server.url(""),
        key: Secret::new("k".to_owned()),
        models: None,
        default_model: "m".to_owned(),
        max_output_tokens: 10,
        deadline: SOON,
        concurrent_calls: 1,
        egress: None,
    };
    let model = Model::new(client(&[server.port]), config);
    let _worker = harness.worker_with(Some(model), Config::new("one".to_owned()));
    let input = json!({ "text": "no", "ports": ["rejected", "discussion"] });
    let job = DeliveryJob { input: question(Kind::Classify, input), ..ask("") };
    for expected in [None, Some(DeliveryReason::ModelLimited)] {
        harness.publish(Stream::Model, &job).await;
        let (_, outcome) = harness.outcome().await;
        assert_eq!(reason_of(&outcome), expected, "{outcome:?}");
        assert!(expected.is_some() || outcome == Ok(Delivered::Model(json!({ "port": "rejected" }))));
    }
    for _ in 0..3 {
        harness.publish(Stream::Model, &job).await;
    }
    until(|| server.seen().len() == 3).await;
    let rest = harness.bus.take(Stream::Model, "other", 8, Duration::ZERO).await.expect("the bus is open");
    assert_eq!(rest.len(), 2, "a worker at its capacity takes no questions");
}

#[tokio::test]
async fn what_a_dead_worker_held_is_done_by_another() {
    let server =
        Server::new(|number| if number == 0 { Act::Hang } else { answered(200, &json!("ok")) }).await;
    let mut harness = Harness::with_idle(IDLE, &server);
    let job = ask(&server.url("/"));
    harness.publish(Stream::Http, &job).await;
    let dies = harness.worker("dies");
    until(|| server.seen().len() == 1).await;
    let _lives = harness.worker("lives");
    // Signs of life keep it from going to the other.
    assert!(timeout(IDLE * 3, harness.outcomes.recv()).await.is_err());
    drop(dies);
    let done = answer_of(200, json!("ok"));
    assert_eq!(harness.outcome().await, (job, done));
    assert!(harness.is_done(Stream::Http).await);
    let keys: Vec<_> =
        server.seen().iter().map(|seen| seen.header("idempotency-key").map(str::to_owned)).collect();
    assert_eq!(keys, vec![Some(KEY.to_owned()); 2]);
}

/// Waits for something that other tasks bring about.
async fn until(holds: impl Fn() -> bool) {
    let mut ticks = tokio::time::interval(Duration::from_millis(2));
    let waiting = async {
        while !holds() {
            ticks.tick().await;
        }
    };
    timeout(SOON, waiting).await.expect("the outcome comes soon");
}

#[tokio::test]
async fn what_was_begun_is_bounded_and_the_rest_waits_on_the_bus() {
    let slow = b"HTTP/1.1 200 x\r\n\r\n".to_vec();
    let server = Server::always(Act::Drip(slow)).await;
    let mut harness = Harness::with_idle(Duration::from_secs(60), &server);
    for _ in 0..8 {
        harness.publish(Stream::Http, &ask(&server.url("/"))).await;
    }
    let _worker = harness.worker_with(None, Config { http_jobs: 2, ..Config::new("one".to_owned()) });
    until(|| server.seen().len() == 2).await;
    let rest = harness.bus.take(Stream::Http, "other", 8, Duration::ZERO).await.expect("the bus is open");
    assert_eq!(rest.len(), 6, "a worker at its capacity takes no jobs");
    let receipts: Vec<Receipt> = rest.into_iter().map(|delivery| delivery.receipt).collect();
    harness.bus.release(Stream::Http, "other", &receipts).await.expect("the bus is open");
    for _ in 0..8 {
        drop(harness.outcome().await);
    }
    assert_eq!((server.peak.load(Ordering::SeqCst), server.seen().len()), (2, 8));
}

#[tokio::test]
async fn requests_that_hang_do_not_hold_up_questions() {
    let server = Server::always(Act::Hang).await;
    let mut harness = Harness::with_idle(IDLE, &server);
    let _worker = harness.worker_with(None, Config { http_jobs: 1, ..Config::new("one".to_owned()) });
    harness.publish(Stream::Http, &ask(&server.url("/"))).await;
    harness.publish(Stream::Http, &ask(&server.url("/"))).await;
    until(|| server.seen().len() == 1).await;
    harness.publish(Stream::Model, &DeliveryJob { input: judge(), ..ask("") }).await;
    assert_eq!(reason_of(&harness.outcome().await.1), Some(DeliveryReason::NotConfigured));
}

/// What is handed in is sent as it is; any 2xx is an arrival, 410 the end, and all else is tried again when it may be.
#[tokio::test]
async fn a_message_to_an_endpoint_arrives_or_says_what_becomes_of_it() {
    for (head, reason, wait) in [
        ("204 x", None, None),
        ("302 x\r\nlocation: http://127.0.0.1/", Some(DeliveryReason::ReceiverRefused), None),
        ("410 x", Some(DeliveryReason::ReceiverGone), None),
        ("503 x\r\nretry-after: 7", Some(DeliveryReason::ReceiverRefused), Some(Duration::from_secs(7))),
    ] {
        let server = Server::always(answer(head, b"")).await;
        let mut harness = Harness::with_idle(IDLE, &server);
        let input = event(server.url("/in"));
        harness.publish(Stream::Webhook, &DeliveryJob { input, ..ask("") }).await;
        let _worker = harness.worker("one");
        let (_, outcome) = harness.outcome().await;
        let asked = outcome.as_ref().err().and_then(|failed| failed.retry_after);
        assert_eq!((reason_of(&outcome), asked), (reason, wait), "{head}");
        let seen = server.seen();
        assert_eq!((seen.len(), seen[0].body.as_slice()), (1, b"{\"a\": 1}".as_slice()));
        assert_eq!(
            (seen[0].header("webhook-id"), seen[0].header("idempotency-key")),
            (Some("ses_1-3"), None)
        );
    }
}

/// Its receiver may say when to come again, as an endpoint may.
#[tokio::test]
async fn a_message_of_a_definition_is_sent_again_when_its_receiver_asks() {
    let server = Server::always(answer("429 x\r\nretry-after: 7", b"")).await;
    let mut harness = Harness::with_idle(IDLE, &server);
    let message = Message { url: server.url("/in"), body: "{}".to_owned() };
    let input = JobInput::Webhook(Webhook::Message(message));
    harness.publish(Stream::Webhook, &DeliveryJob { input, ..ask("") }).await;
    let _worker = harness.worker("one");
    let failed = harness.outcome().await.1.expect_err("the receiver refuses it");
    let wait = Some(Duration::from_secs(7));
    assert_eq!((failed.reason, failed.retry_after), (DeliveryReason::ReceiverRefused, wait));
}

/// Numbers keep their digits, and members their order.
#[tokio::test]
async fn a_message_of_a_definition_is_sent_as_it_is_written() {
    let server = Server::always(answer("204 x", b"")).await;
    let mut harness = Harness::with_idle(IDLE, &server);
    let _worker = harness.worker("one");
    let bodies = ["12.50", "{\"z\": 12345678901234567890123, \"a\": 1}", "thanks"];
    for body in bodies {
        let message = Message { url: server.url("/in"), body: body.to_owned() };
        let input = JobInput::Webhook(Webhook::Message(message));
        harness.publish(Stream::Webhook, &DeliveryJob { input, ..ask("") }).await;
        assert_eq!(harness.outcome().await.1, Ok(Delivered::Webhook { status: 204 }));
    }
    let sent: Vec<Vec<u8>> = server.seen().into_iter().map(|seen| seen.body).collect();
    assert_eq!(sent, bodies.map(|body| body.as_bytes().to_vec()));
}

#[tokio::test]
async fn an_outcome_that_nobody_wants_ends_and_one_that_must_wait_comes_again() {
    let server = Server::always(answered(200, &json!(1))).await;
    let bus = Arc::new(Memory::new(Settings { idle: IDLE, ..Settings::default() }));
    let mut harness = Harness::new(bus, &server, &[AnswerError::Later, AnswerError::Gone]);
    harness.publish(Stream::Http, &ask(&server.url("/"))).await;
    let begun = Instant::now();
    let _worker = harness.worker("one");
    drop(harness.outcome().await);
    drop(harness.outcome().await);
    assert!(begun.elapsed() >= IDLE, "{:?}", begun.elapsed());
    assert!(harness.is_done(Stream::Http).await);
    assert_eq!(server.seen().len(), 2);
}

#[tokio::test]
async fn what_cannot_be_read_is_dropped_and_the_worker_goes_on() {
    let server = Server::always(answered(200, &json!(1))).await;
    let mut harness = Harness::with_idle(IDLE, &server);
    let whole = serde_json::to_vec(&ask(&server.url("/"))).expect("the job can be written");
    for body in [&b""[..], b"\xff", b"{}", b"null", &whole[..whole.len() - 1]] {
        harness.publish_body(Stream::Http, 7, body.to_vec()).await;
    }
    harness.publish_body(Stream::Http, 8, whole.clone()).await;
    harness.publish_body(Stream::Http, 7, whole).await;
    let _worker = harness.worker("one");
    drop(harness.outcome().await);
    assert!(harness.is_done(Stream::Http).await);
    assert!(harness.outcomes.try_recv().is_err());
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn a_worker_that_is_stopped_finishes_or_gives_back() {
    let slow = Act::Drip(b"HTTP/1.1 200 x\r\n\r\n".to_vec());
    let server = Server::new(move |number| if number == 0 { slow.clone() } else { Act::Hang }).await;
    let mut harness = Harness::with_idle(Duration::from_secs(600), &server);
    // The first is answered within 180 ms, on a machine that has nothing else to do.
    let drain = Duration::from_secs(3);
    let worker = harness.worker_with(None, Config { drain, ..Config::new("one".to_owned()) });
    for number in 1..=2 {
        harness.publish(Stream::Http, &ask(&server.url("/"))).await;
        until(|| server.seen().len() == number).await;
    }
    worker.stop().await;
    let done = answer_of(200, json!(null));
    assert_eq!(harness.outcomes.try_recv().map(|(_, outcome)| outcome), Ok(done));
    assert!(harness.outcomes.try_recv().is_err());
    let rest = harness.bus.take(Stream::Http, "other", 8, Duration::ZERO).await.expect("the bus is open");
    assert_eq!(rest.iter().map(|delivery| delivery.count).collect::<Vec<_>>(), [2]);
}

#[tokio::test]
async fn a_worker_ends_with_its_bus() {
    let server = Server::always(Act::Hang).await;
    let harness = Harness::with_idle(IDLE, &server);
    let mut worker = harness.worker("one");
    tokio::task::yield_now().await;
    harness.bus.close().await;
    worker.ended().await;
}

/// A bus that cannot be reached until it is repaired, and whose deliveries are older than they would be.
struct Broken {
    inner: Memory,
    mended: AtomicBool,
    older: Duration,
}

#[async_trait]
impl Bus for Broken {
    async fn publish(&self, stream: Stream, envelope: Envelope) -> Result<Published, BusError> {
        self.inner.publish(stream, envelope).await
    }

    async fn ready(&self, stream: Stream) -> Result<(), BusError> {
        self.inner.ready(stream).await
    }

    async fn take(
        &self,
        stream: Stream,
        consumer: &str,
        max: usize,
        wait: Duration,
    ) -> Result<Vec<Delivery>, BusError> {
        if self.mended.load(Ordering::SeqCst) {
            let mut taken = self.inner.take(stream, consumer, max, wait).await?;
            taken.iter_mut().for_each(|delivery| delivery.age += self.older);
            return Ok(taken);
        }
        Err(BusError::Unreachable { message: "no".to_owned(), retry_after: Duration::from_millis(50) })
    }

    async fn ack(&self, stream: Stream, receipts: &[Receipt]) -> Result<(), BusError> {
        self.inner.ack(stream, receipts).await
    }

    async fn keep(&self, stream: Stream, consumer: &str, receipts: &[Receipt]) -> Result<(), BusError> {
        self.inner.keep(stream, consumer, receipts).await
    }

    async fn release(&self, stream: Stream, consumer: &str, receipts: &[Receipt]) -> Result<(), BusError> {
        self.inner.release(stream, consumer, receipts).await
    }

    async fn count(&self, count: &Count) -> Result<Counting, BusError> {
        self.inner.count(count).await
    }

    async fn uncount(&self, count: &Count) -> Result<(), BusError> {
        self.inner.uncount(count).await
    }

    async fn answer(&self, name: &str, answer: Vec<u8>) -> Result<(), BusError> {
        self.inner.answer(name, answer).await
    }

    async fn answered(&self, name: &str, wait: Duration) -> Result<Option<Vec<u8>>, BusError> {
        self.inner.answered(name, wait).await
    }

    async fn close(&self) {
        self.inner.close().await;
    }
}

#[tokio::test]
async fn a_worker_waits_for_a_bus_that_cannot_be_reached() {
    let server = Server::always(answered(200, &json!(1))).await;
    let bus =
        Arc::new(Broken { inner: Memory::default(), mended: AtomicBool::new(false), older: Duration::ZERO });
    let mut harness = Harness::new(bus.clone(), &server, &[]);
    let _worker = harness.worker("one");
    harness.publish(Stream::Http, &ask(&server.url("/"))).await;
    assert!(timeout(Duration::from_millis(100), harness.outcomes.recv()).await.is_err());
    bus.mended.store(true, Ordering::SeqCst);
    drop(harness.outcome().await);
    assert_eq!(server.seen().len(), 1);
}

/// The age of a job comes from the bus and its time to live from its publisher: a worker compares no clock of its own with
/// another's, so a job of 90 s can neither be over before it began nor go on after its end, however far the clocks of the
/// servers are apart.
#[tokio::test]
async fn a_job_lives_so_long_by_the_clock_of_the_bus_alone() {
    const TTL: Duration = Duration::from_secs(90);
    let server = Server::always(answered(200, &json!(1))).await;
    for (older, expected) in [
        (Duration::ZERO, None),
        (TTL - Duration::from_secs(60), None),
        (TTL, Some(DeliveryReason::NotBegun)),
        (Duration::from_secs(3_600), Some(DeliveryReason::NotBegun)),
    ] {
        let bus = Arc::new(Broken { inner: Memory::default(), mended: AtomicBool::new(true), older });
        let mut harness = Harness::new(bus, &server, &[]);
        let job = DeliveryJob { ttl_ms: 90_000, ..ask(&server.url("/")) };
        harness.publish(Stream::Http, &job).await;
        let worker = harness.worker("one");
        assert_eq!(reason_of(&harness.outcome().await.1), expected, "{older:?}");
        worker.stop().await;
    }
    assert_eq!(server.seen().len(), 2, "what is over is not sent");
}
