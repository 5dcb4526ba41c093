//! Three members of etcd on this machine, each a process, and its gRPC API as far as it is measured. They encrypt what they
//! send each other, as the product does.

use anyhow::{Context as _, ensure};
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::process::{Child, Command};
use tokio::time::sleep;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status};
use tonic_prost::ProstCodec;

use super::servers::free_ports;

/// Members.
const COUNT: usize = 3;
/// What is stored: as much as a step's answer.
const VALUE_BYTES: usize = 256;
/// A start that takes longer has failed.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(50);

/// What a user without etcd reads.
pub(super) const MISSING: &str =
    "etcd is not installed (Debian: etcd-server), so nothing is compared with it";

#[derive(Clone, PartialEq, prost::Message)]
struct PutRequest {
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    value: Vec<u8>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct PutResponse {}

#[derive(Clone, PartialEq, prost::Message)]
struct StatusRequest {}

#[derive(Clone, PartialEq, prost::Message)]
struct StatusResponse {
    #[prost(message, optional, tag = "1")]
    header: Option<ResponseHeader>,
    #[prost(uint64, tag = "4")]
    leader: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct ResponseHeader {
    #[prost(uint64, tag = "2")]
    member_id: u64,
}

/// A connection to a member.
#[derive(Clone)]
pub(super) struct Client {
    grpc: Grpc<Channel>,
}

impl Client {
    /// A connection that is made when it is used.
    ///
    /// # Errors
    /// The address is malformed.
    pub(super) fn to(address: &str) -> anyhow::Result<Self> {
        let channel = Endpoint::from_shared(address.to_owned())?.tcp_nodelay(true).connect_lazy();
        Ok(Self { grpc: Grpc::new(channel) })
    }

    async fn call<M, R>(&mut self, path: &'static str, message: M) -> Result<R, Status>
    where
        M: prost::Message + Default + 'static,
        R: prost::Message + Default + 'static,
    {
        self.grpc.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
        let codec = ProstCodec::<M, R>::default();
        let response = self.grpc.unary(Request::new(message), PathAndQuery::from_static(path), codec).await?;
        Ok(response.into_inner())
    }

    /// Puts a value under a key.
    ///
    /// # Errors
    /// The member has not stored it, or did not say so.
    pub(super) async fn put(&mut self, key: &str) -> Result<(), Status> {
        let request = PutRequest { key: key.as_bytes().to_vec(), value: vec![b'x'; VALUE_BYTES] };
        self.call::<_, PutResponse>("/etcdserverpb.KV/Put", request).await.map(drop)
    }

    /// The ids of the member and of the leader that it knows; 0 for none.
    async fn status(&mut self) -> Result<(u64, u64), Status> {
        let status: StatusResponse = self.call("/etcdserverpb.Maintenance/Status", StatusRequest {}).await?;
        Ok((status.header.unwrap_or_default().member_id, status.leader))
    }
}

/// The members. They end with this value.
pub(super) struct Etcd {
    folder: PathBuf,
    clients: Vec<u16>,
    peers: Vec<u16>,
    running: Vec<Option<Child>>,
}

impl Etcd {
    /// Starts them in this folder; `None` if etcd is not installed.
    ///
    /// # Errors
    /// They elect no leader.
    pub(super) async fn start(folder: &Path) -> anyhow::Result<Option<Self>> {
        let free = free_ports(2 * COUNT)?;
        let (clients, peers) = free.split_at(COUNT);
        let mut etcd = Self {
            folder: folder.to_owned(),
            clients: clients.to_vec(),
            peers: peers.to_vec(),
            running: (0..COUNT).map(|_| None).collect(),
        };
        for at in 0..COUNT {
            if !etcd.begin(at)? {
                return Ok(None);
            }
        }
        etcd.leader().await?;
        Ok(Some(etcd))
    }

    /// Starts a member. Returns false if etcd is not installed.
    fn begin(&mut self, at: usize) -> anyhow::Result<bool> {
        let log = File::options().create(true).append(true).open(self.folder.join("etcd.log"))?;
        let peer = |at: usize| format!("https://127.0.0.1:{}", self.peers[at]);
        let all: Vec<String> = (0..COUNT).map(|at| format!("e{at}={}", peer(at))).collect();
        let mut command = Command::new("etcd");
        let set = std::env::vars_os().map(|(name, _)| name);
        for name in set.filter(|name| name.to_string_lossy().starts_with("ETCD_")) {
            command.env_remove(name);
        }
        command.args(["--name", &format!("e{at}"), "--logger", "zap", "--log-level", "error"]);
        command.args([
            "--listen-client-urls",
            &self.address(at),
            "--advertise-client-urls",
            &self.address(at),
        ]);
        command.args(["--listen-peer-urls", &peer(at), "--initial-advertise-peer-urls", &peer(at)]);
        command.arg("--peer-auto-tls");
        command.args(["--initial-cluster", &all.join(","), "--initial-cluster-state", "new"]);
        command.arg("--data-dir").arg(self.folder.join(format!("etcd-{at}")));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).kill_on_drop(true);
        match command.spawn() {
            Ok(child) => {
                self.running[at] = Some(child);
                Ok(true)
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error).context("failed to start etcd"),
        }
    }

    /// Where a member listens for clients.
    pub(super) fn address(&self, at: usize) -> String {
        format!("http://127.0.0.1:{}", self.clients[at])
    }

    /// The addresses of all members.
    pub(super) fn addresses(&self) -> Vec<String> {
        (0..COUNT).map(|at| self.address(at)).collect()
    }

    /// The member that leads, counted from 0; waits until all that run know it.
    ///
    /// # Errors
    /// None leads in time.
    pub(super) async fn leader(&self) -> anyhow::Result<usize> {
        let begun = Instant::now();
        loop {
            if let Some(leader) = self.known_leader().await {
                return Ok(leader);
            }
            ensure!(begun.elapsed() < PATIENCE, "etcd elects no leader");
            sleep(LOOK).await;
        }
    }

    /// The leader, if all members that run answer and know the same.
    async fn known_leader(&self) -> Option<usize> {
        let (mut leaders, mut found) = (Vec::new(), None);
        for at in (0..COUNT).filter(|at| self.running[*at].is_some()) {
            let (own, leader) = Client::to(&self.address(at)).ok()?.status().await.ok()?;
            leaders.push(leader);
            found = found.or((own == leader).then_some(at));
        }
        let agreed = leaders.iter().all(|leader| *leader != 0 && Some(leader) == leaders.first());
        found.filter(|_| agreed)
    }

    /// Ends a member by SIGKILL.
    ///
    /// # Errors
    /// It does not run.
    pub(super) async fn kill(&mut self, at: usize) -> anyhow::Result<()> {
        let mut process = self.running[at].take().context("the member of etcd does not run")?;
        Ok(process.kill().await?)
    }

    /// Starts a member again, and waits until all know a leader.
    ///
    /// # Errors
    /// They do not in time.
    pub(super) async fn run(&mut self, at: usize) -> anyhow::Result<()> {
        ensure!(self.begin(at)?, "etcd is gone");
        self.leader().await.map(drop)
    }
}
