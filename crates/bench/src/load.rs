//! The load: callers that each carry out one session after another.

use anyhow::Context as _;
use hdrhistogram::Histogram;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use switchward_api::v1;
use switchward_api::v1::definition_service_client::DefinitionServiceClient;
use switchward_api::v1::session_service_client::SessionServiceClient;
use tonic::Request;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Channel, Endpoint};

use crate::process::Server;

/// How a block is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) callers: usize,
    pub(crate) connections: usize,
    pub(crate) time: Duration,
}

/// The result of a block.
pub(crate) struct Load {
    /// Steps that were acknowledged within the measured time.
    pub(crate) steps: u64,
    /// All acknowledged steps.
    pub(crate) acknowledged: u64,
    /// The measured time.
    pub(crate) time: Duration,
    /// Microseconds of each measured step.
    pub(crate) latency: Histogram<u64>,
}

/// The deploy gate: three questions, each answered with yes.
pub(crate) const DEFINITION: &str = include_str!("../../../tests/gallery/deploy-gate/deploy-gate.json");
pub(crate) const STATES: [&str; 3] = ["env-check", "migration-check", "traffic-check"];
/// About as long as an agent's reasons are.
pub(crate) const NOTE: &str = "evidence reviewed; thresholds hold; no open incidents; the change was tested on staging and the \
                    rollback was rehearsed this morning; proceed with the rollout as planned and watch the dashboards";
/// Five states, two of which need no input: measured in addition to the deploy gate.
const CONVERSATION: &str = include_str!("conversation.json");

/// What each caller does over and over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    /// A session of the deploy gate: a start and three answers.
    Gate,
    /// A conversation of five states: a start, a message, data, and two turns that each drain a state of logic.
    Conversation,
}

/// Callers warm up before anything is measured.
const WARM_UP: Duration = Duration::from_millis(500);
/// The longest latency that is distinguished, microseconds.
const LATENCY_MAX_US: u64 = 60_000_000;

static SESSIONS: AtomicU64 = AtomicU64::new(0);

pub(crate) fn bearer(key: &str) -> anyhow::Result<MetadataValue<Ascii>> {
    format!("Bearer {key}").parse().context("the key is not a valid header")
}

pub(crate) async fn channel(server: &Server) -> anyhow::Result<Channel> {
    channel_to(&server.address).await
}

/// A connection to the server at this address.
pub(crate) async fn channel_to(address: &str) -> anyhow::Result<Channel> {
    Ok(Endpoint::from_shared(address.to_owned())?.tcp_nodelay(true).connect().await?)
}

/// Deploys the definition that the load is about.
pub(crate) async fn deploy(server: &Server) -> anyhow::Result<()> {
    deploy_file(server, "deploy-gate.json", DEFINITION).await?;
    deploy_file(server, "conversation.json", CONVERSATION).await?;
    // Each shard learns a machine by its first session; that is no step, and must not be counted as one.
    let shape = Shape { callers: 8, connections: 1, time: WARM_UP };
    for work in [Work::Gate, Work::Conversation] {
        run(server, shape, work).await.context("failed to warm up")?;
    }
    Ok(())
}

/// Deploys a definition.
pub(crate) async fn deploy_file(server: &Server, path: &str, content: &'static str) -> anyhow::Result<()> {
    deploy_as(server, &server.person_key, path, content).await
}

/// Deploys a definition with this key.
pub(crate) async fn deploy_as(
    server: &Server,
    key: &str,
    path: &str,
    content: &'static str,
) -> anyhow::Result<()> {
    deploy_to(&server.address, key, path, content).await
}

/// Deploys a definition to the server at this address.
pub(crate) async fn deploy_to(address: &str, key: &str, path: &str, content: &str) -> anyhow::Result<()> {
    let mut client = DefinitionServiceClient::new(channel_to(address).await?);
    let file = v1::DefinitionFile { path: path.into(), content: content.to_owned().into() };
    let mut request = Request::new(v1::DeployDefinitionRequest { files: vec![file], ..Default::default() });
    request.metadata_mut().insert("authorization", bearer(key)?);
    client.deploy_definition(request).await.context("failed to deploy a definition")?;
    Ok(())
}

/// One caller's client.
#[derive(Clone)]
struct Caller {
    client: SessionServiceClient<Channel>,
    key: Option<MetadataValue<Ascii>>,
    /// Drawn once a block, so that no block repeats the request ids of another.
    block: u64,
}

impl Caller {
    fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        if let Some(key) = &self.key {
            request.metadata_mut().insert("authorization", key.clone());
        }
        request
    }

    /// Runs one conversation; calls `step` after each of its steps.
    async fn conversation(&mut self, mut step: impl FnMut(Instant)) -> anyhow::Result<()> {
        let number = SESSIONS.fetch_add(1, Ordering::Relaxed);
        let request_id = |step: usize| format!("talk-{}-{number}-{step}", self.block);
        let begin = Instant::now();
        let start = v1::StartSessionRequest {
            definition: "talk".into(),
            request_id: request_id(0),
            ..v1::StartSessionRequest::default()
        };
        let started = self.client.clone().start_session(self.request(start)).await?.into_inner();
        step(begin);
        let name = started.session.context("the reply to a start has no session")?.name;
        let begin = Instant::now();
        let said = v1::PostMessageRequest {
            name: name.clone(),
            text: NOTE.into(),
            request_id: request_id(1),
            ..v1::PostMessageRequest::default()
        };
        self.client.post_message(self.request(said)).await?;
        step(begin);
        let begin = Instant::now();
        let text = |text: &str| prost_types::Value {
            kind: Some(prost_types::value::Kind::StringValue(text.to_owned())),
        };
        let fields = [("order".to_owned(), text("A-17")), ("note".to_owned(), text(NOTE))].into();
        let record = v1::RecordDataRequest {
            name: name.clone(),
            values: Some(prost_types::Struct { fields }),
            request_id: request_id(2),
            ..v1::RecordDataRequest::default()
        };
        self.client.record_data(self.request(record)).await?;
        step(begin);
        for turn in 3..5 {
            let begin = Instant::now();
            let end = v1::EndTurnRequest {
                name: name.clone(),
                request_id: request_id(turn),
                ..v1::EndTurnRequest::default()
            };
            let ended = self.client.end_turn(self.request(end)).await?.into_inner();
            step(begin);
            let at = ended.session.context("the reply to a turn has no session")?.at;
            let wanted = if turn == 3 { "confirm" } else { "bye" };
            anyhow::ensure!(at == [wanted], "a conversation moved to {at:?}");
        }
        Ok(())
    }

    /// Runs one session; calls `step` after each of its steps.
    async fn session(&mut self, mut step: impl FnMut(Instant)) -> anyhow::Result<()> {
        let number = SESSIONS.fetch_add(1, Ordering::Relaxed);
        let id = |step: usize| format!("bench-{}-{number}-{step}", self.block);
        let begin = Instant::now();
        let start = v1::StartSessionRequest {
            definition: "deploy-gate".into(),
            request_id: id(0),
            ..v1::StartSessionRequest::default()
        };
        let started = self.client.clone().start_session(self.request(start)).await?.into_inner();
        step(begin);
        let name = started.session.context("the reply to a start has no session")?.name;
        for (at, state) in STATES.into_iter().enumerate() {
            let begin = Instant::now();
            let answer = v1::AnswerCheckpointRequest {
                name: name.clone(),
                state: state.into(),
                answer: "yes".into(),
                note: NOTE.into(),
                address: None,
                expected_sequence: None,
                request_id: id(at + 1),
            };
            self.client.answer_checkpoint(self.request(answer)).await?;
            step(begin);
        }
        Ok(())
    }
}

/// Runs one block. Any unexpected status fails it.
pub(crate) async fn run(server: &Server, shape: Shape, work: Work) -> anyhow::Result<Load> {
    run_at(std::slice::from_ref(&server.address), &server.agent_key, shape, work).await
}

/// Runs one block whose connections are divided among the servers at these addresses. Without a key, none is sent.
pub(crate) async fn run_at(
    addresses: &[String],
    key: &str,
    shape: Shape,
    work: Work,
) -> anyhow::Result<Load> {
    let mut channels = Vec::new();
    for address in addresses.iter().cycle().take(shape.connections) {
        channels.push(channel_to(address).await?);
    }
    let key = (!key.is_empty()).then(|| bearer(key)).transpose()?;
    let block =
        u64::try_from(std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_micros())?;
    let begin = Instant::now() + WARM_UP;
    let end = begin + shape.time;
    let acknowledged = Arc::new(AtomicU64::new(0));
    let mut tasks = Vec::new();
    for number in 0..shape.callers {
        let client = SessionServiceClient::new(channels[number % shape.connections].clone());
        let mut caller = Caller { client, key: key.clone(), block };
        let acknowledged = Arc::clone(&acknowledged);
        tasks.push(tokio::spawn(async move {
            let mut latency = Histogram::<u64>::new_with_max(LATENCY_MAX_US, 3)?;
            while Instant::now() < end {
                let mut each = |since: Instant| {
                    acknowledged.fetch_add(1, Ordering::Relaxed);
                    let now = Instant::now();
                    if now >= begin && now < end {
                        let us = u64::try_from((now - since).as_micros()).unwrap_or(LATENCY_MAX_US);
                        latency.saturating_record(us.max(1));
                    }
                };
                match work {
                    Work::Gate => caller.session(&mut each).await?,
                    Work::Conversation => caller.conversation(&mut each).await?,
                }
            }
            anyhow::Ok(latency)
        }));
    }
    let mut latency = Histogram::<u64>::new_with_max(LATENCY_MAX_US, 3)?;
    for task in tasks {
        latency.add(task.await??)?;
    }
    let acknowledged = acknowledged.load(Ordering::Relaxed);
    Ok(Load { steps: latency.len(), acknowledged, time: shape.time, latency })
}

/// Callers that park sessions, and the connections that they share.
const PARKERS: usize = 64;
const PARKED_CONNECTIONS: usize = 8;

/// The business key of a parked session.
fn parked(number: u64) -> String {
    format!("parked-{number}")
}

/// Callers on several connections, which are divided among the servers at these addresses.
async fn callers(addresses: &[String], key: &str) -> anyhow::Result<Vec<Caller>> {
    let key = Some(bearer(key)?);
    let mut channels = Vec::new();
    for address in addresses.iter().cycle().take(PARKED_CONNECTIONS) {
        channels.push(channel_to(address).await?);
    }
    let client = |number: usize| SessionServiceClient::new(channels[number % channels.len()].clone());
    Ok((0..PARKERS).map(|number| Caller { client: client(number), key: key.clone(), block: 0 }).collect())
}

/// Runs `work` for each number, with all callers.
async fn each<F>(
    addresses: &[String],
    key: &str,
    from: u64,
    to: u64,
    work: impl Fn(Caller, u64) -> F + Copy + Send + 'static,
) -> anyhow::Result<()>
where
    F: Future<Output = anyhow::Result<()>> + Send,
{
    let next = Arc::new(AtomicU64::new(from));
    let mut tasks = Vec::new();
    for caller in callers(addresses, key).await? {
        let next = Arc::clone(&next);
        tasks.push(tokio::spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= to {
                    return anyhow::Ok(());
                }
                work(caller.clone(), number).await?;
            }
        }));
    }
    for task in tasks {
        task.await??;
    }
    Ok(())
}

fn start_of(definition: &str, id: String) -> v1::StartSessionRequest {
    v1::StartSessionRequest {
        definition: definition.into(),
        session_id: id.clone(),
        request_id: id,
        ..v1::StartSessionRequest::default()
    }
}

/// Starts sessions by number, which then wait for their first answer.
pub(crate) async fn park(server: &Server, from: u64, to: u64) -> anyhow::Result<()> {
    park_at(std::slice::from_ref(&server.address), &server.agent_key, from, to).await
}

/// The same at the servers at these addresses.
pub(crate) async fn park_at(addresses: &[String], key: &str, from: u64, to: u64) -> anyhow::Result<()> {
    each(addresses, key, from, to, |mut caller, number| async move {
        let request = caller.request(start_of("deploy-gate", parked(number)));
        caller.client.start_session(request).await?;
        Ok(())
    })
    .await
}

/// Starts sessions of one question by number and answers it, which ends them.
pub(crate) async fn end(
    server: &Server,
    definition: &'static str,
    state: &'static str,
    from: u64,
    to: u64,
) -> anyhow::Result<()> {
    each(
        std::slice::from_ref(&server.address),
        &server.agent_key,
        from,
        to,
        move |mut caller, number| async move {
            let name = format!("{definition}-{number}");
            let request = caller.request(start_of(definition, name.clone()));
            caller.client.start_session(request).await?;
            let request = caller.request(v1::AnswerCheckpointRequest {
                name,
                state: state.into(),
                answer: "yes".into(),
                note: NOTE.into(),
                ..v1::AnswerCheckpointRequest::default()
            });
            let reply = caller.client.answer_checkpoint(request).await?.into_inner();
            let session = reply.session.context("the reply to an answer has no session")?;
            anyhow::ensure!(session.end_time.is_some(), "a session did not end with its answer");
            Ok(())
        },
    )
    .await
}

/// Answers some of the parked sessions, spread over all of them, at one time.
pub(crate) async fn probe(server: &Server, parked_in_all: u64, count: u64) -> anyhow::Result<()> {
    probe_at(std::slice::from_ref(&server.address), &server.agent_key, parked_in_all, count).await
}

/// The same at the servers at these addresses.
pub(crate) async fn probe_at(
    addresses: &[String],
    key: &str,
    parked_in_all: u64,
    count: u64,
) -> anyhow::Result<()> {
    let mut tasks = Vec::new();
    for (mut caller, at) in callers(addresses, key).await?.into_iter().cycle().zip(0..count) {
        let number = at * parked_in_all / count;
        tasks.push(tokio::spawn(async move {
            let answer = v1::AnswerCheckpointRequest {
                name: parked(number),
                state: STATES[0].into(),
                answer: "yes".into(),
                ..v1::AnswerCheckpointRequest::default()
            };
            let request = caller.request(answer);
            let reply = caller.client.answer_checkpoint(request).await?.into_inner();
            let at = reply.session.context("the reply to an answer has no session")?.at;
            anyhow::ensure!(at == [STATES[1]], "a session moved to {at:?}");
            anyhow::Ok(())
        }));
    }
    for task in tasks {
        task.await??;
    }
    Ok(())
}
