//! Callers of simulated servers. They repeat what the public rules allow: what certainly did not happen, and with a
//! request id also what may have happened.

use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use switchward_engine::session_view;
use switchward_shard::{Cluster, Failure};
use switchward_state::{Command, Rejection, Reply};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

use crate::commands::{Definitions, TENANT, session};
use crate::network::Network;
use crate::records::{Records, Register};
use crate::timeline::pass;

/// How long a caller waits for one answer.
const ANSWER_WAIT: Duration = Duration::from_secs(4);
/// How long a caller tries again.
const INSIST_WAIT: Duration = Duration::from_secs(20);

/// What all callers share; cheap to clone.
#[derive(Clone)]
pub(crate) struct Callers {
    pub(crate) network: Network,
    pub(crate) definitions: Arc<Definitions>,
    pub(crate) records: Arc<Mutex<Records>>,
    /// The servers that are asked.
    pub(crate) members: Arc<Mutex<Vec<u64>>>,
}

/// The reason why a call got no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unanswered {
    /// Nothing happened.
    Nothing,
    /// It may have happened.
    Unknown,
    /// It was refused.
    Refused(Rejection),
}

impl Callers {
    /// A server, chosen at random.
    pub(crate) fn server(&self) -> u64 {
        let members = self.members.lock().clone();
        self.network.timeline.draw(|rng| *rng.pick(&members))
    }

    /// Has a server do something; `None` if it ends, or does not answer in time.
    pub(crate) async fn at<T: Send + 'static, F>(
        &self,
        node: u64,
        ask: impl FnOnce(Cluster) -> F,
    ) -> Result<T, Unanswered>
    where
        F: Future<Output = T> + Send + 'static,
    {
        let (answer, answered) = oneshot::channel();
        {
            // Nothing of the server may be held while it is waited for: it may end.
            let Some(endpoint) = self.network.endpoint(node) else { return Err(Unanswered::Nothing) };
            let Some(cluster) = endpoint.cluster else { return Err(Unanswered::Nothing) };
            let asked = ask(cluster);
            drop(endpoint.runtime.spawn(async move {
                let _gone = answer.send(asked.await);
            }));
        }
        match timeout(ANSWER_WAIT, answered).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(_)) | Err(_) => Err(Unanswered::Unknown),
        }
    }

    /// Sends a command to a server.
    async fn once(&self, node: u64, command: Command) -> Result<Reply, Unanswered> {
        let outcome = self.at(node, |cluster| async move { cluster.execute(command).await }).await?;
        outcome.map_err(|failure| match failure {
            Failure::Rejected(rejection) => Unanswered::Refused(rejection),
            Failure::OutcomeUnknown => Unanswered::Unknown,
            Failure::Electing
            | Failure::Unconfirmed
            | Failure::OtherMap { .. }
            | Failure::Overloaded
            | Failure::DiskLow { .. }
            | Failure::Draining
            | Failure::Stopped => Unanswered::Nothing,
            Failure::Internal => {
                self.wrong("a command failed because of a defect of the server".to_owned());
                Unanswered::Nothing
            }
        })
    }

    /// Sends a command to one server after the other, until it is answered or nothing may be repeated.
    pub(crate) async fn insist(&self, command: Command) -> Result<Reply, Unanswered> {
        let (until, mut unknown) = (Instant::now() + INSIST_WAIT, false);
        loop {
            match self.once(self.server(), command.clone()).await {
                Err(Unanswered::Unknown) if command.request.is_none() => return Err(Unanswered::Unknown),
                Err(Unanswered::Unknown) => unknown = true,
                Err(Unanswered::Nothing) => {}
                answered => return answered,
            }
            if Instant::now() >= until {
                return Err(if unknown { Unanswered::Unknown } else { Unanswered::Nothing });
            }
            self.pause(5, 60).await;
        }
    }

    /// Reads a register at one server after the other; `None` if none answers.
    pub(crate) async fn read(&self, key: &str) -> Option<Register> {
        let until = Instant::now() + INSIST_WAIT;
        while Instant::now() < until {
            let wanted = key.to_owned();
            let read = self.at(self.server(), |cluster| async move { register(&cluster, &wanted).await });
            if let Ok(Ok(found)) = read.await {
                return Some(found);
            }
            self.pause(5, 60).await;
        }
        None
    }

    /// Waits for a random time, milliseconds.
    pub(crate) async fn pause(&self, least: u64, most: u64) {
        let ms = self.network.timeline.draw(|rng| rng.between(least, most));
        pass(ms).await;
    }

    /// Records what must not have happened.
    pub(crate) fn wrong(&self, what: String) {
        self.records.lock().wrong.push(what);
    }
}

/// What a register holds, as of a linearizable read.
async fn register(cluster: &Cluster, key: &str) -> Result<Register, Failure> {
    let id = session(key);
    let view = cluster.shard_of(id.bucket()).read().await?;
    let found = view.consistent(|view| session_view(view, TENANT, id));
    let found = found.map_err(|_| Failure::Internal)?.ok_or(Failure::Internal)?;
    let name = found.machine.node(found.run.node).map_or("", |node| &node.name);
    let value = name.strip_prefix('s').and_then(|value| value.parse().ok()).ok_or(Failure::Internal)?;
    Ok((found.session.sequence, value))
}
