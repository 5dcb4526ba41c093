//! Servers of one cluster in this process, which are founded, join and start again.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use switchward_machine::{Digest, TenantId};
use switchward_shard::{
    Cluster, ClusterOptions, Failure, ManualClock, MemberHandler, MemberOptions, MemberStart, RaftSettings,
    Shard,
};
use switchward_state::catalogue::{CatalogueCommand, ClusterChange, ServerState, SetServerState};
use switchward_state::seal::KeyRing;
use switchward_state::{Body, Command, Levels, Reply, Scope};
use switchward_store::{ClusterIdentity, Id};
use switchward_testkit::{PATIENCE, until};
use switchward_testnet::Network;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

use crate::commands::{DEPLOY_GATE, TENANTS, create_tenants, definition, deploys};
use crate::server::{BEGIN, unlocked};
use crate::trio::{in_memory, on_disk};

/// The cluster of all servers.
pub(crate) const CLUSTER: Id = Id([7; 16]);
/// Shards besides the catalogue, if a test needs no more.
const SHARDS: u32 = 2;
/// A leader stays leader on a machine that is busy for a second.
const PATIENT: RaftSettings =
    RaftSettings { heartbeat_ms: 100, election_min_ms: 2_000, election_max_ms: 4_000 };

/// One server.
struct Running {
    runtime: Runtime,
    cluster: Cluster,
    fatal: Arc<Mutex<Vec<String>>>,
}

/// The servers that run, and their network.
pub(crate) struct Ensemble {
    folders: TempDir,
    pub(crate) network: Network,
    raft: RaftSettings,
    /// Shards besides the catalogue.
    shards: u32,
    servers: BTreeMap<u64, Running>,
    /// The addresses of servers that have moved.
    moved: BTreeMap<u64, String>,
    /// The feature levels of servers that run another version.
    levels: BTreeMap<u64, Levels>,
}

/// A server that is being opened.
struct Opening {
    number: u64,
    runtime: Runtime,
    fatal: Arc<Mutex<Vec<String>>>,
    opens: tokio::task::JoinHandle<io::Result<Cluster>>,
}

impl Ensemble {
    /// Servers whose leaders stay on a machine that is busy for a second.
    pub(crate) fn new() -> Self {
        Self::timed(PATIENT, in_memory())
    }

    /// The same with this number of shards besides the catalogue.
    pub(crate) fn with_shards(shards: u32) -> Self {
        Self { shards, ..Self::new() }
    }

    fn timed(raft: RaftSettings, folders: TempDir) -> Self {
        Self {
            folders,
            network: Network::default(),
            raft,
            shards: SHARDS,
            servers: BTreeMap::new(),
            moved: BTreeMap::new(),
            levels: BTreeMap::new(),
        }
    }

    /// A cluster of three servers, each of which votes.
    pub(crate) fn of_three(callers: &Runtime) -> Self {
        Self::three_timed(callers, PATIENT, in_memory())
    }

    /// The same, in which a leader that dies is soon followed by another.
    pub(crate) fn of_three_brisk(callers: &Runtime) -> Self {
        Self::three_timed(callers, RaftSettings::default(), on_disk())
    }

    fn three_timed(callers: &Runtime, raft: RaftSettings, folders: TempDir) -> Self {
        let mut ensemble = Self::timed(raft, folders);
        ensemble.begin(1, MemberStart::FoundCluster).unwrap();
        callers.block_on(prepare(ensemble.cluster(1)));
        for number in [2, 3] {
            ensemble.begin(number, MemberStart::Join { peers: vec![1] }).unwrap();
        }
        callers.block_on(ensemble.votes(&[1, 2, 3]));
        ensemble
    }

    pub(crate) fn path(&self, number: u64) -> PathBuf {
        self.folders.path().join(format!("server-{number}"))
    }

    /// Gives a server that does not run another address, at which alone it is reached.
    pub(crate) fn moves(&mut self, number: u64, address: &str) {
        self.network.listen(number, address);
        self.moved.insert(number, address.to_owned());
    }

    /// Has a server that does not run start with these feature levels, as another version.
    pub(crate) fn knows(&mut self, number: u64, levels: Levels) {
        self.levels.insert(number, levels);
    }

    /// Opens a server and waits until it is open.
    pub(crate) fn begin(&mut self, number: u64, start: MemberStart) -> io::Result<()> {
        self.begin_all(&[(number, start)])
    }

    /// Opens several servers at the same time.
    pub(crate) fn begin_all(&mut self, servers: &[(u64, MemberStart)]) -> io::Result<()> {
        let ring = switchward_scenario::ring();
        let opening = servers.iter().map(|(number, start)| self.opening(*number, start.clone(), ring));
        let opening = opening.collect();
        self.opened(opening)
    }

    /// Opens a server that has this key ring.
    pub(crate) fn begin_with(&mut self, number: u64, start: MemberStart, ring: &KeyRing) -> io::Result<()> {
        let opening = self.opening(number, start, ring);
        self.opened(vec![opening])
    }

    fn opened(&mut self, opening: Vec<Opening>) -> io::Result<()> {
        for Opening { number, runtime, fatal, opens } in opening {
            match runtime.block_on(opens).unwrap() {
                Ok(cluster) => drop(self.servers.insert(number, Running { runtime, cluster, fatal })),
                Err(error) => {
                    self.network.leave(number);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    fn opening(&self, number: u64, start: MemberStart, ring: &KeyRing) -> Opening {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let data = unlocked(&self.path(number));
        data.claim(ClusterIdentity { cluster: CLUSTER, server: number }).unwrap();
        let handler = Arc::new(MemberHandler::default());
        self.network.attach(number, Arc::clone(&handler), runtime.handle().clone());
        let fatal: Arc<Mutex<Vec<String>>> = Arc::default();
        let reported = Arc::clone(&fatal);
        let options = ClusterOptions {
            data,
            shards: self.shards,
            cache_bytes: 256 * 1024,
            clock: Arc::new(ManualClock::new(BEGIN)),
            ring: ring.clone(),
            on_fatal: Box::new(move |line| reported.lock().push(line.to_owned())),
            member: Some(MemberOptions {
                levels: self.levels.get(&number).copied().unwrap_or(Levels::OF_PROGRAM),
                number,
                transport: self.network.transport(number),
                handler,
                address: self.moved.get(&number).cloned().unwrap_or(format!("10.0.0.{number}:7001")),
                start,
                voters: 3,
                // Of three servers, two have threads for Raft alone.
                runtime: number.is_multiple_of(2).then(|| runtime.handle().clone()),
                raft: self.raft,
            }),
        };
        let opens = runtime.spawn(Cluster::open(options));
        Opening { number, runtime, fatal, opens }
    }

    /// Where a server does everything but what has threads of its own.
    pub(crate) fn runtime(&self, number: u64) -> &Runtime {
        &self.servers[&number].runtime
    }

    pub(crate) fn cluster(&self, number: u64) -> &Cluster {
        &self.servers[&number].cluster
    }

    /// A group's replica on a server; the catalogue's is the first.
    pub(crate) fn shard(&self, number: u64, group: usize) -> &Shard {
        self.cluster(number).all().nth(group).unwrap()
    }

    pub(crate) fn groups(&self) -> usize {
        usize::try_from(self.shards).unwrap() + 1
    }

    pub(crate) fn numbers(&self) -> Vec<u64> {
        self.servers.keys().copied().collect()
    }

    /// Ends a server as SIGKILL does.
    pub(crate) fn kill(&mut self, number: u64) {
        self.assert_sound();
        self.network.leave(number);
        let Running { runtime, cluster, .. } = self.servers.remove(&number).unwrap();
        drop(runtime);
        drop(cluster);
    }

    /// Ends a server as SIGTERM does.
    pub(crate) fn shut_down(&mut self, number: u64) {
        let Running { runtime, cluster, fatal } = self.servers.remove(&number).unwrap();
        runtime.block_on(cluster.shutdown()).unwrap();
        assert_eq!(*fatal.lock(), Vec::<String>::new());
        self.network.leave(number);
        drop(runtime);
        drop(cluster);
    }

    pub(crate) fn assert_sound(&self) {
        for server in self.servers.values() {
            assert_eq!(*server.fatal.lock(), Vec::<String>::new());
        }
    }

    /// The server that leads a group, once there is one.
    pub(crate) async fn leader(&self, group: usize) -> u64 {
        let mut leader = None;
        until("a server leads", async || {
            leader = self.numbers().into_iter().find(|number| self.shard(*number, group).leads());
            leader.is_some()
        })
        .await;
        leader.unwrap()
    }

    /// Waits until these are the voters of every group.
    pub(crate) async fn votes(&self, voters: &[u64]) {
        for group in 0..self.groups() {
            until("the voters are as they should be", async || {
                let leader = self.leader(group).await;
                let raft = self.shard(leader, group).group().raft();
                let mut now: Vec<u64> = raft.voter_ids().collect();
                now.sort_unstable();
                now == voters
            })
            .await;
        }
    }

    /// Waits until all servers have applied what each leader has, and have the same rows.
    pub(crate) async fn agree(&self) {
        for group in 0..self.groups() {
            until("all replicas are the same", async || {
                let digest = |number| Digest(self.shard(number, group).group().digest().unwrap());
                let all: Vec<Digest> = self.numbers().into_iter().map(digest).collect();
                all.iter().all(|digest| *digest == all[0])
            })
            .await;
        }
    }
}

/// Creates the tenants and deploys the gate.
pub(crate) async fn prepare(cluster: &Cluster) {
    let gate = definition(DEPLOY_GATE);
    for (command, tenant) in create_tenants().into_iter().zip(TENANTS) {
        let made = cluster.execute(command).await;
        assert!(matches!(&made, Ok(Reply::Tenant(made)) if made.id == tenant), "{made:?}");
    }
    for command in deploys(&gate, DEPLOY_GATE) {
        let deployed = cluster.execute(command).await.unwrap();
        assert!(matches!(deployed, Reply::Version { number: 1, created: true, .. }), "{deployed:?}");
    }
}

/// Drains a server, uses it again, or removes it for good, by a command to this one. The groups follow in their own time.
pub(crate) async fn set_server_state(cluster: &Cluster, number: u64, state: ServerState) -> ClusterChange {
    let set = SetServerState { number, state, replaced_by: None, epoch: None };
    let body = Body::Catalogue(CatalogueCommand::SetServerState(set));
    let command = Command::of_server(TenantId(0), Scope::Catalogue, body);
    let reply = cluster.catalogue().submit(command).await.unwrap();
    let Reply::Cluster(change) = reply else { panic!("{reply:?}") };
    *change
}

/// Sends a command to one server until it is answered; it has a request id, so it is executed once.
pub(crate) async fn insist(cluster: &Cluster, command: Command) -> Reply {
    let answered = async {
        loop {
            match cluster.execute(command.clone()).await {
                Ok(reply) => return reply,
                Err(Failure::Rejected(no)) => panic!("{command:?} was refused: {no:?}"),
                // The server waits before it answers so.
                Err(_) => tokio::task::yield_now().await,
            }
        }
    };
    tokio::time::timeout(PATIENCE, answered).await.expect("the server answers")
}
