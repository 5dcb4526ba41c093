//! What callers see of a server that comes and goes, and how they keep asking until they are answered.

use anyhow::{Context as _, bail, ensure};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use switchward_api::v1::{
    definition_service_client::DefinitionServiceClient, gate_service_client::GateServiceClient,
    policy_service_client::PolicyServiceClient, session_service_client::SessionServiceClient,
};
use switchward_gateway::DOMAIN;
use tokio::{sync::watch, time::timeout};
use tonic::{
    Code, Request, Response, Status,
    metadata::{Ascii, MetadataValue},
    transport::{Channel, Endpoint},
};
use tonic_types::StatusExt as _;

use crate::server::Ready;
use crate::tenants::{Keys, Tenant};

/// Connections that all callers share.
const CONNECTIONS: usize = 8;
/// The longest that one request may go unanswered, all its repetitions together: restarts take part of it.
const ANSWER_MAX: Duration = Duration::from_secs(180);

/// One caller's way to the server that is there now.
#[derive(Clone)]
pub(crate) struct Wire {
    channel: Channel,
    key: MetadataValue<Ascii>,
}

impl Wire {
    pub(crate) fn new(channel: Channel, key: MetadataValue<Ascii>) -> Self {
        Self { channel, key }
    }

    pub(crate) fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        request.metadata_mut().insert("authorization", self.key.clone());
        request
    }

    pub(crate) fn definitions(&self) -> DefinitionServiceClient<Channel> {
        DefinitionServiceClient::new(self.channel.clone())
    }

    pub(crate) fn gates(&self) -> GateServiceClient<Channel> {
        GateServiceClient::new(self.channel.clone())
    }

    pub(crate) fn policy(&self) -> PolicyServiceClient<Channel> {
        PolicyServiceClient::new(self.channel.clone())
    }

    pub(crate) fn sessions(&self) -> SessionServiceClient<Channel> {
        SessionServiceClient::new(self.channel.clone())
    }
}

/// The ways to one server.
#[derive(Clone)]
pub(crate) struct Live {
    generation: u64,
    channels: Arc<Vec<Channel>>,
    first: Keys,
    second: Keys,
}

impl Live {
    async fn to(generation: u64, ready: &Ready, second: Keys) -> anyhow::Result<Self> {
        let mut channels = Vec::new();
        for _ in 0..CONNECTIONS {
            let endpoint = Endpoint::from_shared(ready.address.clone())?.tcp_nodelay(true);
            channels.push(endpoint.connect().await?);
        }
        let first = Keys::of(&ready.agent_key, &ready.person_key)?;
        Ok(Self { generation, channels: Arc::new(channels), first, second })
    }

    fn keys(&self, tenant: Tenant) -> &Keys {
        match tenant {
            Tenant::First => &self.first,
            Tenant::Second => &self.second,
        }
    }

    /// The way of a tenant's agent.
    pub(crate) fn agent(&self, tenant: Tenant, caller: usize) -> Wire {
        let channel = self.channels[caller % self.channels.len()].clone();
        Wire::new(channel, self.keys(tenant).agent.clone())
    }

    /// The way of a tenant's person.
    pub(crate) fn person(&self, tenant: Tenant) -> Wire {
        Wire::new(self.channels[0].clone(), self.keys(tenant).person.clone())
    }
}

/// The address of the API, which changes with every start.
pub(crate) struct Front {
    shown: watch::Sender<Shown>,
    /// Each server prints the first tenant's keys.
    second: Keys,
}

#[derive(Default)]
struct Shown {
    live: Option<Live>,
    /// Servers that were shown.
    generations: u64,
    /// Servers that were ended: all up to this one.
    ended: u64,
}

/// An answer, and the number of tries.
pub(crate) struct Answered<T> {
    pub(crate) reply: T,
    pub(crate) tries: u32,
}

/// The meaning of an error for the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ErrorMeaning {
    /// It was refused.
    No,
    /// The server asks for a retry.
    Later,
    /// The connection broke, and it is not known whether the request was carried out.
    Nothing,
}

impl ErrorMeaning {
    /// Every error of the server carries an `ErrorInfo` of its domain; others were made on the way.
    fn by(status: &Status) -> Self {
        let details = status.get_error_details();
        if details.error_info().is_none_or(|info| info.domain != DOMAIN) {
            Self::Nothing
        } else if status.code() == Code::Unavailable || is_disk_low(status) {
            Self::Later
        } else {
            Self::No
        }
    }
}

/// Returns true if the server's disk has no space for the request.
pub(crate) fn is_disk_low(status: &Status) -> bool {
    let details = status.get_error_details();
    let low = details.error_info().is_some_and(|info| info.reason == "DISK_LOW");
    low && status.code() == Code::ResourceExhausted
}

impl Front {
    /// Makes the second tenant on a new server, which callers are not shown yet.
    pub(crate) async fn found(ready: &Ready) -> anyhow::Result<Arc<Self>> {
        let second = Keys::found(ready).await?;
        Ok(Arc::new(Self { shown: watch::Sender::new(Shown::default()), second }))
    }

    /// A connection to a server that callers are not shown yet.
    pub(crate) async fn aside(&self, ready: &Ready) -> anyhow::Result<Live> {
        let generation = self.shown.borrow().generations + 1;
        Live::to(generation, ready, self.second.clone()).await
    }

    /// Shows callers this server.
    pub(crate) fn show(&self, live: Live) {
        self.shown.send_modify(|shown| {
            shown.generations = live.generation;
            shown.live = Some(live);
        });
    }

    /// Shows callers this server, as soon as it can be reached.
    pub(crate) async fn open(&self, ready: &Ready) -> anyhow::Result<()> {
        self.show(self.aside(ready).await?);
        Ok(())
    }

    /// Announces to callers that the current server is about to be ended; call this before ending it.
    pub(crate) fn close(&self) {
        self.shown.send_modify(|shown| {
            shown.live = None;
            shown.ended = shown.generations;
        });
    }

    /// The current server, or the next one.
    pub(crate) async fn live(&self) -> anyhow::Result<Live> {
        let mut shown = self.shown.subscribe();
        let found = shown.wait_for(|shown| shown.live.is_some()).await?;
        found.live.clone().context("nobody is there")
    }

    /// Waits until the server with this number is announced to be ended: only that explains a broken connection.
    async fn ended(&self, generation: u64) -> anyhow::Result<()> {
        self.shown.subscribe().wait_for(|shown| shown.ended >= generation).await?;
        Ok(())
    }

    /// Repeats a request until it is answered, through all restarts of the server.
    pub(crate) async fn answered<T, F>(
        &self,
        tenant: Tenant,
        caller: usize,
        call: impl Fn(Wire) -> F,
    ) -> anyhow::Result<Answered<T>>
    where
        F: Future<Output = Result<Response<T>, Status>>,
    {
        let mut last = None;
        let asked = timeout(ANSWER_MAX, self.ask(tenant, caller, call, &mut last)).await;
        match asked {
            Ok(answered) => answered,
            Err(_) => bail!("no answer in {ANSWER_MAX:?}; the last one was {last:?}"),
        }
    }

    async fn ask<T, F>(
        &self,
        tenant: Tenant,
        caller: usize,
        call: impl Fn(Wire) -> F,
        last: &mut Option<Status>,
    ) -> anyhow::Result<Answered<T>>
    where
        F: Future<Output = Result<Response<T>, Status>>,
    {
        let mut tries = 0;
        loop {
            let live = self.live().await?;
            tries += 1;
            let status = match call(live.agent(tenant, caller)).await {
                Ok(response) => return Ok(Answered { reply: response.into_inner(), tries }),
                Err(status) => last.insert(status),
            };
            // The port of a gone server may belong to another one already, which does not know our keys.
            let stranger =
                status.code() == Code::Unauthenticated && self.shown.borrow().ended >= live.generation;
            match ErrorMeaning::by(status) {
                ErrorMeaning::No => ensure!(stranger, "refused: {status}"),
                ErrorMeaning::Later => {}
                ErrorMeaning::Nothing => self.ended(live.generation).await?,
            }
        }
    }
}
