//! The agent and the person, who can call each server, and call again while no leader answers.

use anyhow::Context as _;
use std::collections::BTreeMap;
use std::error::Error as _;
use std::time::{Duration, Instant};
use switchward_api::v1;
use tonic::{Code, Request, Response, Status};

use super::servers::Ready;
use crate::client::{Client, Services, Target};
use crate::commands::demo::mail::Pages;
use crate::exit::Exit;

/// How long one attempt of a call may take.
const CALL_MAX: Duration = Duration::from_secs(5);
/// How long a call is made again and again.
const AGAIN_MAX: Duration = Duration::from_secs(60);
/// The pause before a call is made again.
const AGAIN: Duration = Duration::from_millis(20);

/// Who calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Caller {
    Agent,
    Person,
}

/// Connections to one server, one for each caller.
struct Connections {
    agent: Client,
    person: Client,
    address: String,
}

/// Connections to all servers, by number.
pub(super) struct Callers(BTreeMap<u64, Connections>);

impl Callers {
    /// Connects to each server, once as each caller.
    ///
    /// # Errors
    /// A server cannot be reached.
    pub(super) async fn connect(ready: &Ready) -> Result<Self, Exit> {
        let mut connections = BTreeMap::new();
        for one in &ready.servers {
            let address = one.address.clone();
            let target = |key: &str| Target { address: address.clone(), key: key.to_owned(), ca: None };
            let agent = Client::connect(&target(&ready.agent_key), CALL_MAX).await?;
            let person = Client::connect(&target(&ready.person_key), CALL_MAX).await?;
            connections.insert(one.server, Connections { agent, person, address: one.address.clone() });
        }
        Ok(Self(connections))
    }

    /// The pages of a server.
    ///
    /// # Errors
    /// There is no such server.
    pub(super) fn pages(&self, server: u64) -> anyhow::Result<Pages> {
        Pages::of(&self.connections(server)?.address)
    }

    /// Calls a server, again and again until it answers. What changes something has a request id, so that it counts once.
    ///
    /// # Errors
    /// The server refuses, or does not answer for too long.
    pub(super) async fn call<Q, R, F>(
        &self,
        caller: Caller,
        server: u64,
        request: Q,
        method: impl Fn(Services, Request<Q>) -> F,
    ) -> Result<R, Exit>
    where
        Q: Clone,
        F: Future<Output = Result<Response<R>, Status>>,
    {
        let connections = self.connections(server)?;
        let client = match caller {
            Caller::Agent => &connections.agent,
            Caller::Person => &connections.person,
        };
        let begun = Instant::now();
        loop {
            let mut attempt = Request::new(request.clone());
            attempt.set_timeout(CALL_MAX);
            match method(client.services(), attempt).await {
                Ok(answer) => return Ok(answer.into_inner()),
                Err(status) if can_be_repeated(&status) && begun.elapsed() < AGAIN_MAX => {}
                Err(status) => return Err(status.into()),
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// The server that leads the group of the sessions, as a server knows it. Waits until one leads that is not
    /// `old`; there is no server 0.
    ///
    /// # Errors
    /// No other server leads in time.
    pub(super) async fn leader_but(&self, old: u64, asked: u64) -> Result<u64, Exit> {
        let begun = Instant::now();
        loop {
            let groups = self.groups(asked).await?;
            let group = groups.into_iter().find(|group| group.number == SESSIONS);
            if let Some(leader) = group.and_then(|group| group.leader).filter(|leader| *leader != old) {
                return Ok(leader);
            }
            if begun.elapsed() > AGAIN_MAX {
                return Err(anyhow::anyhow!("no server but server {old} leads the sessions").into());
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// Waits until each group has the votes of all servers, as a server knows it.
    ///
    /// # Errors
    /// A server does not vote in time.
    pub(super) async fn all_vote(&self, asked: u64) -> Result<(), Exit> {
        let begun = Instant::now();
        let votes = |group: &v1::ClusterGroup| group.replicas.iter().filter(|one| one.voter).count();
        while self.groups(asked).await?.iter().any(|group| votes(group) < self.0.len()) {
            if begun.elapsed() > AGAIN_MAX {
                return Err(anyhow::anyhow!("not all servers vote").into());
            }
            tokio::time::sleep(AGAIN).await;
        }
        Ok(())
    }

    /// The groups, as a server knows them.
    async fn groups(&self, asked: u64) -> Result<Vec<v1::ClusterGroup>, Exit> {
        let request = v1::GetClusterRequest {};
        let reply = self.call(Caller::Person, asked, request, |mut it, request| async move {
            it.cluster.get_cluster(request).await
        });
        Ok(reply.await?.groups)
    }

    fn connections(&self, server: u64) -> anyhow::Result<&Connections> {
        self.0.get(&server).with_context(|| format!("there is no server {server}"))
    }
}

/// The group of all sessions: the cluster of the demo has one shard.
const SESSIONS: u64 = 1;

/// Returns true if a call with a request id may be made again: nothing happened, the outcome is unknown, or the connection
/// broke, which the client's own library says with whatever code.
fn can_be_repeated(status: &Status) -> bool {
    let of_connection = status.source().is_some();
    of_connection || matches!(status.code(), Code::Unavailable | Code::Aborted | Code::DeadlineExceeded)
}
