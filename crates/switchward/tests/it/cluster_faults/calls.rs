//! A caller's way to the servers: each attempt goes to a random server that lives, and says what is known afterwards.

use std::error::Error as _;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use switchward_api::v1::{
    self, cluster_service_client::ClusterServiceClient, definition_service_client::DefinitionServiceClient,
    policy_service_client::PolicyServiceClient, session_service_client::SessionServiceClient,
};
use switchward_testkit::Rng;
use tokio::time::{Instant, sleep};
use tonic::{
    Code, Request, Response, Status,
    metadata::{Ascii, MetadataValue},
    transport::{Channel, Endpoint},
};
use tonic_types::StatusExt as _;

use super::endings::Ending;
use super::harness::Cluster;
use super::plan::SERVERS;

/// The longest wait for the answer to one attempt. A server that is paused answers none.
const CALL_MAX: Duration = Duration::from_secs(2);
/// The longest wait for a comparison of replicas: it waits for one that is silent, and reads the rows of all rounds.
const COMPARED_MAX: Duration = Duration::from_secs(30);
/// The longest wait for an answer, all attempts together.
const ANSWER_MAX: Duration = Duration::from_secs(8);
/// The longest wait of what must succeed.
const NEEDED_MAX: Duration = Duration::from_secs(60);
/// The shortest and the longest pause before the next attempt, milliseconds.
const AGAIN_MS: [u64; 2] = [20, 150];

/// A connection to one server, with a key.
#[derive(Clone)]
pub(crate) struct Line {
    channel: Channel,
    /// For comparisons of replicas.
    patient: Channel,
    key: MetadataValue<Ascii>,
}

impl Line {
    fn to(address: &str, key: &str) -> anyhow::Result<Self> {
        let endpoint = Endpoint::from_shared(address.to_owned())?.tcp_nodelay(true);
        let channel = endpoint.clone().timeout(CALL_MAX).connect_lazy();
        let patient = endpoint.timeout(COMPARED_MAX).connect_lazy();
        Ok(Self { channel, patient, key: format!("Bearer {key}").parse()? })
    }

    pub(crate) fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        request.metadata_mut().insert("authorization", self.key.clone());
        request
    }

    pub(crate) fn sessions(&self) -> SessionServiceClient<Channel> {
        SessionServiceClient::new(self.channel.clone())
    }

    pub(crate) fn policies(&self) -> PolicyServiceClient<Channel> {
        PolicyServiceClient::new(self.channel.clone())
    }

    pub(crate) fn definitions(&self) -> DefinitionServiceClient<Channel> {
        DefinitionServiceClient::new(self.channel.clone())
    }

    /// The cluster as this server sees it.
    pub(crate) async fn cluster(self) -> Result<Response<v1::GetClusterResponse>, Status> {
        let wanted = self.request(v1::GetClusterRequest {});
        ClusterServiceClient::new(self.channel.clone()).get_cluster(wanted).await
    }

    /// Compares the replicas of a group.
    pub(crate) async fn verify(self, group: u64) -> Result<Response<v1::VerifyGroupResponse>, Status> {
        let wanted = self.request(v1::VerifyGroupRequest { group });
        ClusterServiceClient::new(self.patient.clone()).verify_group(wanted).await
    }

    /// Starts the session of this key, which is its request id, too.
    pub(crate) async fn start(
        self,
        definition: String,
        key: String,
    ) -> Result<Response<v1::StartSessionResponse>, Status> {
        let text = prost_types::Value { kind: Some(prost_types::value::Kind::StringValue(key.clone())) };
        let input = prost_types::Struct { fields: [("n".to_owned(), text)].into() };
        let wanted = v1::StartSessionRequest {
            definition,
            session_id: key.clone(),
            request_id: key,
            input: Some(input),
            ..Default::default()
        };
        self.sessions().start_session(self.request(wanted)).await
    }

    /// Reads the session of this key.
    pub(crate) async fn get(self, key: String) -> Result<Response<v1::GetSessionResponse>, Status> {
        let wanted = v1::GetSessionRequest { name: key, ..Default::default() };
        self.sessions().get_session(self.request(wanted)).await
    }

    /// Asks whether the call of this name, which is its request id, may be made.
    pub(crate) async fn authorize(
        self,
        key: String,
        call: String,
    ) -> Result<Response<v1::AuthorizeToolCallResponse>, Status> {
        let wanted = v1::AuthorizeToolCallRequest {
            session: key,
            capability: "bash".to_owned(),
            call_id: call.clone(),
            request_id: call,
            ..Default::default()
        };
        self.policies().authorize_tool_call(self.request(wanted)).await
    }
}

/// What a caller knows in the end.
#[derive(Debug)]
pub(crate) enum Answer<T> {
    /// It was done.
    Done(T),
    /// It was refused by a rule.
    Refused(Status),
    /// Nothing was changed: the servers said so, or it was sent to none.
    Nothing,
    /// It may have been done, or may be done later.
    Unknown,
}

impl<T> Answer<T> {
    /// How the operation has ended, if its answer is not wrong and a refusal is none.
    pub(crate) fn ending(&self) -> Ending {
        match self {
            Self::Done(_) => Ending::Succeeded,
            Self::Refused(_) | Self::Nothing => Ending::Failed,
            Self::Unknown => Ending::Unknown,
        }
    }
}

/// Which attempts are repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// All that have no answer: it only reads, or it has a request id.
    All,
    /// Those that have changed nothing.
    Nothing,
}

/// What an error says about an attempt.
enum Meaning {
    Refused,
    Nothing,
    Unknown,
}

impl Meaning {
    fn of(status: &Status) -> Self {
        let reason = status.get_details_error_info().map(|info| info.reason);
        match (reason.as_deref(), status.code()) {
            (Some("OUTCOME_UNKNOWN"), _) | (_, Code::DeadlineExceeded) => Self::Unknown,
            (Some(_), Code::Unavailable | Code::ResourceExhausted) => Self::Nothing,
            (Some(_), _) => Self::Refused,
            (None, _) if was_never_sent(status) => Self::Nothing,
            (None, _) => Self::Unknown,
        }
    }
}

/// Returns true if nobody listened at the address.
fn was_never_sent(status: &Status) -> bool {
    let mut source = status.source();
    while let Some(error) = source {
        if error.downcast_ref::<io::Error>().is_some_and(|io| io.kind() == io::ErrorKind::ConnectionRefused) {
            return true;
        }
        source = error.source();
    }
    false
}

/// A caller.
pub(crate) struct Caller {
    cluster: Arc<Cluster>,
    /// In the order of the servers' numbers.
    lines: Vec<Line>,
    pub(crate) rng: Rng,
}

impl Caller {
    /// An agent.
    pub(crate) fn agent(cluster: &Arc<Cluster>, seed: u64) -> anyhow::Result<Self> {
        Self::with_key(cluster, &cluster.agent, seed)
    }

    /// A person, who may do everything.
    pub(crate) fn person(cluster: &Arc<Cluster>, seed: u64) -> anyhow::Result<Self> {
        Self::with_key(cluster, &cluster.person, seed)
    }

    fn with_key(cluster: &Arc<Cluster>, key: &str, seed: u64) -> anyhow::Result<Self> {
        let lines =
            cluster.addresses.iter().map(|address| Line::to(address, key)).collect::<Result<_, _>>()?;
        Ok(Self { cluster: Arc::clone(cluster), lines, rng: Rng::new(seed) })
    }

    /// The connection to a server.
    pub(crate) fn line_to(&self, server: u64) -> Line {
        self.lines[usize::try_from(server - 1).expect("it is small")].clone()
    }

    /// The connection to a server that lives; to any if none does.
    pub(crate) fn line(&mut self) -> Line {
        let live = self.cluster.live();
        let server = *self.rng.pick(if live.is_empty() { &SERVERS } else { &live });
        self.line_to(server)
    }

    /// Waits for a random time between these, milliseconds.
    pub(crate) async fn pause(&mut self, [least, most]: [u64; 2]) {
        sleep(Duration::from_millis(self.rng.between(least, most))).await;
    }

    /// Asks one server after the other, until there is an answer or nothing may be repeated.
    pub(crate) async fn insist<T, F>(&mut self, repeat: Repeat, call: impl Fn(Line) -> F) -> Answer<T>
    where
        F: Future<Output = Result<Response<T>, Status>>,
    {
        self.insist_for(ANSWER_MAX, repeat, call).await
    }

    /// Asks until it is done.
    pub(crate) async fn need<T, F>(&mut self, call: impl Fn(Line) -> F) -> anyhow::Result<T>
    where
        F: Future<Output = Result<Response<T>, Status>>,
        T: std::fmt::Debug,
    {
        match self.insist_for(NEEDED_MAX, Repeat::All, call).await {
            Answer::Done(done) => Ok(done),
            other @ (Answer::Refused(_) | Answer::Nothing | Answer::Unknown) => {
                anyhow::bail!("this was not done: {other:?}")
            }
        }
    }

    async fn insist_for<T, F>(
        &mut self,
        longest: Duration,
        repeat: Repeat,
        call: impl Fn(Line) -> F,
    ) -> Answer<T>
    where
        F: Future<Output = Result<Response<T>, Status>>,
    {
        let (deadline, mut unknown) = (Instant::now() + longest, false);
        loop {
            match call(self.line()).await {
                Ok(done) => return Answer::Done(done.into_inner()),
                Err(status) => match Meaning::of(&status) {
                    Meaning::Refused => return Answer::Refused(status),
                    Meaning::Nothing => {}
                    Meaning::Unknown if repeat == Repeat::Nothing => return Answer::Unknown,
                    Meaning::Unknown => unknown = true,
                },
            }
            if Instant::now() >= deadline {
                return if unknown { Answer::Unknown } else { Answer::Nothing };
            }
            self.pause(AGAIN_MS).await;
        }
    }
}

/// Returns true if a refusal has this reason.
pub(crate) fn is_for(status: &Status, reason: &str) -> bool {
    status.get_details_error_info().is_some_and(|info| info.reason == reason)
}
