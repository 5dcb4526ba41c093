//! Callers that write without a pause, and try each write again until it is acknowledged.

use anyhow::Context as _;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use switchward_api::v1;
use switchward_api::v1::session_service_client::SessionServiceClient;
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};

use super::etcd;
use super::servers::KEY;
use crate::load::bearer;

/// The pause before a call that failed is made again, at the next server.
const AGAIN: Duration = Duration::from_millis(10);
/// A write that is not acknowledged for this long has failed.
const PATIENCE: Duration = Duration::from_secs(60);
/// The pause between two looks at whether all callers write again.
const LOOK: Duration = Duration::from_millis(10);

/// What is written to, by servers counted from 0.
pub(super) trait Target: Clone + Send + Sync + 'static {
    /// How many servers there are.
    fn servers(&self) -> usize;
    /// How long a caller waits for an answer before it turns to the next server.
    fn answer_max(&self) -> Duration;
    /// Makes one write at a server. The id is the same for each attempt.
    fn write(&self, server: usize, id: &str) -> impl Future<Output = Result<(), Status>> + Send;
}

/// The product: each write starts a session.
#[derive(Clone)]
pub(super) struct Product {
    pub(super) clients: Vec<SessionServiceClient<Channel>>,
    key: MetadataValue<Ascii>,
}

impl Product {
    /// Connections to the servers at these addresses, which are made when they are used.
    ///
    /// # Errors
    /// An address is malformed.
    pub(super) fn at(addresses: &[String]) -> anyhow::Result<Self> {
        let client = |address: &String| {
            let channel = Endpoint::from_shared(address.clone())?.tcp_nodelay(true).connect_lazy();
            anyhow::Ok(SessionServiceClient::new(channel))
        };
        Ok(Self { clients: addresses.iter().map(client).collect::<Result<_, _>>()?, key: bearer(KEY)? })
    }

    pub(super) fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        request.metadata_mut().insert("authorization", self.key.clone());
        request
    }

    /// Starts a session at a server; returns its name.
    ///
    /// # Errors
    /// The server has not started it, or did not say so.
    pub(super) async fn start(&self, server: usize, id: &str) -> Result<String, Status> {
        let start = v1::StartSessionRequest {
            definition: "deploy-gate".into(),
            request_id: id.to_owned(),
            ..v1::StartSessionRequest::default()
        };
        let started = self.clients[server].clone().start_session(self.request(start)).await?.into_inner();
        started
            .session
            .map(|session| session.name)
            .ok_or_else(|| Status::data_loss("a start without a session"))
    }
}

impl Target for Product {
    fn servers(&self) -> usize {
        self.clients.len()
    }

    /// Longer than a server waits for another leader, so that it is the server that gives up.
    fn answer_max(&self) -> Duration {
        Duration::from_secs(3)
    }

    async fn write(&self, server: usize, id: &str) -> Result<(), Status> {
        self.start(server, id).await.map(drop)
    }
}

/// Etcd: each write puts a new key.
#[derive(Clone)]
pub(super) struct EtcdTarget {
    clients: Vec<etcd::Client>,
}

impl EtcdTarget {
    /// Connections to the members at these addresses.
    ///
    /// # Errors
    /// An address is malformed.
    pub(super) fn at(addresses: &[String]) -> anyhow::Result<Self> {
        let clients = addresses.iter().map(|address| etcd::Client::to(address));
        Ok(Self { clients: clients.collect::<Result<_, _>>()? })
    }
}

impl Target for EtcdTarget {
    fn servers(&self) -> usize {
        self.clients.len()
    }

    /// A put that was passed on to a lost leader is never answered.
    fn answer_max(&self) -> Duration {
        Duration::from_millis(100)
    }

    async fn write(&self, server: usize, id: &str) -> Result<(), Status> {
        self.clients[server].clone().put(id).await
    }
}

/// Returns true if a call that failed so may be made again under its request id.
pub(super) fn may_repeat(code: Code) -> bool {
    matches!(
        code,
        Code::Unavailable
            | Code::Aborted
            | Code::DeadlineExceeded
            | Code::Cancelled
            | Code::Unknown
            | Code::Internal
    )
}

/// Makes a call at one server after the other until it is answered. Returns the answer, and how many attempts failed.
///
/// # Errors
/// It is refused, or not answered in time.
pub(super) async fn insist<T, F>(
    servers: usize,
    first: usize,
    answer_max: Duration,
    mut call: impl FnMut(usize) -> F,
) -> anyhow::Result<(T, u64)>
where
    F: Future<Output = Result<T, Status>>,
{
    anyhow::ensure!(servers > 0, "there are no servers");
    let (begun, mut failed) = (Instant::now(), 0);
    for server in (0..servers).cycle().skip(first % servers) {
        let answered = timeout(answer_max, call(server)).await;
        match answered.unwrap_or_else(|_| Err(Status::deadline_exceeded("no answer"))) {
            Ok(answer) => return Ok((answer, failed)),
            Err(status) => {
                anyhow::ensure!(may_repeat(status.code()), "a call was refused: {status}");
                anyhow::ensure!(begun.elapsed() < PATIENCE, "a call is not answered: {status}");
            }
        }
        failed += 1;
        sleep(AGAIN).await;
    }
    anyhow::bail!("a cycle does not end")
}

/// An acknowledged write.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ack {
    pub(super) begun: Instant,
    pub(super) done: Instant,
    /// Attempts that failed before.
    pub(super) failed: u64,
}

/// Callers that write. They end with this value.
pub(super) struct Writers {
    acks: Vec<Arc<Mutex<Vec<Ack>>>>,
    ends: Arc<AtomicBool>,
    tasks: JoinSet<anyhow::Result<()>>,
}

static WRITES: AtomicU64 = AtomicU64::new(0);

impl Writers {
    /// Begins to write with this many callers, the first ones at the servers in turn.
    pub(super) fn start<T: Target>(target: &T, callers: usize) -> Self {
        let acks: Vec<Arc<Mutex<Vec<Ack>>>> = (0..callers).map(|_| Arc::default()).collect();
        let (ends, mut tasks) = (Arc::new(AtomicBool::new(false)), JoinSet::new());
        for (caller, acks) in acks.iter().enumerate() {
            let (target, ends, acks) = (target.clone(), Arc::clone(&ends), Arc::clone(acks));
            tasks.spawn(async move {
                while !ends.load(Ordering::Relaxed) {
                    let id =
                        format!("write-{}-{}", std::process::id(), WRITES.fetch_add(1, Ordering::Relaxed));
                    let begun = Instant::now();
                    let call = |server| {
                        let (target, id) = (&target, &id);
                        async move { target.write(server, id).await }
                    };
                    let ((), failed) = insist(target.servers(), caller, target.answer_max(), call).await?;
                    // Before the lock: who reads the acknowledgements may hold it.
                    let done = Instant::now();
                    acks.lock().await.push(Ack { begun, done, failed });
                }
                anyhow::Ok(())
            });
        }
        Self { acks, ends, tasks }
    }

    /// The acknowledged writes of each caller since the last call of this, which then are forgotten.
    pub(super) async fn take(&self) -> Vec<Vec<Ack>> {
        let mut all = Vec::new();
        for acks in &self.acks {
            all.push(std::mem::take(&mut *acks.lock().await));
        }
        all
    }

    /// The acknowledged writes of each caller that are not forgotten.
    async fn acks(&self) -> Vec<Vec<Ack>> {
        let mut all = Vec::new();
        for acks in &self.acks {
            all.push(acks.lock().await.clone());
        }
        all
    }

    /// Waits until each caller has a write that was acknowledged after `since`; returns how long after it the last of them
    /// had its first one.
    ///
    /// # Errors
    /// A caller's write is refused, or not acknowledged in time.
    pub(super) async fn all_after(&mut self, since: Instant) -> anyhow::Result<Duration> {
        loop {
            if let Some(ended) = self.tasks.try_join_next() {
                ended??;
                anyhow::bail!("a caller has ended");
            }
            let all = self.acks().await;
            let firsts = all.iter().map(|acks| acks.iter().map(|ack| ack.done).find(|done| *done > since));
            if let Some(firsts) = firsts.collect::<Option<Vec<Instant>>>() {
                let last = firsts.into_iter().max().context("there are no callers")?;
                return Ok(last - since);
            }
            anyhow::ensure!(since.elapsed() < PATIENCE, "writes are not accepted again");
            sleep(LOOK).await;
        }
    }

    /// Ends all callers after their writes.
    ///
    /// # Errors
    /// A write was refused.
    pub(super) async fn stop(mut self) -> anyhow::Result<()> {
        self.ends.store(true, Ordering::Relaxed);
        while let Some(ended) = self.tasks.join_next().await {
            ended??;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    const LONG: Duration = Duration::from_secs(600);

    #[tokio::test(start_paused = true)]
    async fn a_call_is_made_at_the_next_server_until_one_answers() {
        let asked = Cell::new(Vec::new());
        let call = |server: usize| {
            let mut all = asked.take();
            all.push(server);
            let count = all.len();
            asked.set(all);
            async move { if count < 5 { Err(Status::unavailable("electing")) } else { Ok(server) } }
        };
        assert_eq!(insist(3, 4, LONG, call).await.unwrap(), (2, 4));
        assert_eq!(asked.take(), [1, 2, 0, 1, 2]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_ends_it_and_silence_does_not() {
        let refused =
            insist(3, 0, LONG, |_| async { Err::<(), _>(Status::not_found("no definition")) }).await;
        assert!(refused.unwrap_err().to_string().contains("no definition"));
        let silent = |server: usize| async move {
            if server == 0 {
                std::future::pending::<()>().await;
            }
            Ok(server)
        };
        assert_eq!(insist(3, 0, LONG, silent).await.unwrap(), (1, 1));
    }
}
