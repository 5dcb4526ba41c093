//! Three servers in this process, each with a replica of every group, and the delivery role over one bus.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use switchward_bus::{Bus, Memory};
use switchward_delivery::channels::MailChannel;
use switchward_delivery::mail::{Composed, Post, Sender};
use switchward_delivery::{DeliveryReason, Failed};
use switchward_gateway::proxy::AnswersDelivery as _;
use switchward_gateway::services::Pings;
use switchward_machine::Bucket;
use switchward_machine::Time;
use switchward_outbound::{
    AskServers, BusReach, DeliveryServer, FromServers, RelaySettings, Role, TenantRules, Worker,
    WorkerSettings,
};
use switchward_shard::{
    Cluster, Group, GroupOptions, GroupStart, LogRetention, ManualClock, RaftPeers, RaftSettings, Shard,
    ToLeaders,
};
use switchward_state::Levels;
use switchward_store::{DataDir, GroupId, LogOptions, SegmentLog, Snapshots, StateStore};
use switchward_testkit::{PATIENCE, until};
use tempfile::TempDir;

use crate::network::Network;

/// The servers' numbers.
pub(crate) const NODES: [u64; 3] = [1, 2, 3];
/// The catalogue's group and one shard.
const GROUPS: u64 = 2;
/// A leader stays leader until it hands over, also on a machine that is busy for seconds.
const PATIENT: RaftSettings =
    RaftSettings { heartbeat_ms: 200, election_min_ms: 10_000, election_max_ms: 20_000 };
/// The time at which a test begins, milliseconds since 1970.
const BEGIN_MS: u64 = 1_782_000_000_000;
/// How long after each failed attempt the next one is made, milliseconds.
const WAITS_MS: [u64; 1] = [1_000];
/// How long a handover may take before it is asked for again.
const HANDOVER: Duration = Duration::from_secs(5);
/// How often other tasks run while a mail is being sent.
const SENDING: usize = 200;

/// Counts the mails that were sent, by their message ids.
#[derive(Default)]
pub(crate) struct Sent {
    counts: Mutex<BTreeMap<String, u32>>,
    /// How often each mail is refused before it is accepted.
    pub(crate) refusals: AtomicU32,
}

impl Sent {
    /// The message ids, each with the number of attempts.
    pub(crate) fn counts(&self) -> BTreeMap<String, u32> {
        self.counts.lock().clone()
    }
}

#[async_trait]
impl Post for Sent {
    async fn send(&self, _tenant: u32, mail: &Composed) -> Result<(), Failed> {
        let count = {
            let mut counts = self.counts.lock();
            let count = counts.entry(mail.message_id.clone()).or_default();
            *count += 1;
            *count
        };
        // Leaders change while mails are being sent.
        for _ in 0..SENDING {
            tokio::task::yield_now().await;
        }
        if count <= self.refusals.load(Ordering::SeqCst) {
            return Err(Failed::quoting(DeliveryReason::Timeout, "the mail server is busy"));
        }
        Ok(())
    }
}

/// See the module.
pub(crate) struct Servers {
    clusters: Vec<Cluster>,
    roles: Vec<Role>,
    network: Network,
    pub(crate) bus: Arc<dyn Bus>,
    pub(crate) sent: Arc<Sent>,
    /// The clock of the first server.
    pub(crate) clock: ManualClock,
    _folders: TempDir,
}

impl Servers {
    /// Opens all servers, of which these have the delivery role; the first one leads every group.
    pub(crate) async fn open(delivering: &[u64]) -> Self {
        Self::with_clocks(delivering, [0; 3]).await
    }

    /// The same, whose clocks are off by this, milliseconds.
    pub(crate) async fn with_clocks(delivering: &[u64], off_ms: [i64; 3]) -> Self {
        let (folders, network) = (tempfile::tempdir().unwrap(), Network::default());
        let clocks = off_ms.map(|ms| ManualClock::new(Time(BEGIN_MS.checked_add_signed(ms).unwrap())));
        let mut clusters = Vec::new();
        for (node, clock) in NODES.into_iter().zip(&clocks) {
            let folder = folders.path().join(node.to_string());
            clusters.push(server(node, &folder, &network, clock).await);
        }
        let [clock, ..] = clocks;
        let (bus, sent): (Arc<dyn Bus>, _) = (Arc::new(Memory::default()), Arc::<Sent>::default());
        let mut servers = Self { clusters, roles: Vec::new(), network, bus, sent, clock, _folders: folders };
        for node in delivering {
            let (cluster, bus) = (servers.cluster(*node), servers.bus.clone());
            let settings = settings(&servers.sent);
            let role = Role::start(cluster, bus, BusReach::Cluster, settings, WAITS_MS.to_vec());
            servers.roles.push(role.unwrap());
        }
        servers.first_leads().await;
        servers
    }

    /// Servers that publish, while nobody takes anything from the bus.
    pub(crate) async fn without_worker() -> Self {
        let mut servers = Self::open(&[]).await;
        for node in NODES {
            servers.relay(node, BusReach::Cluster);
        }
        servers
    }

    /// Starts the relays of a server, over a bus of this reach.
    pub(crate) fn relay(&mut self, node: u64, reach: BusReach) {
        let settings = RelaySettings { models: false, mail: true };
        let role = Role::start_relays(self.cluster(node), self.bus.clone(), reach, &settings);
        self.roles.push(role);
    }

    /// Opens all servers, whose jobs a worker in another process does; the first server leads every group.
    pub(crate) async fn with_worker_apart() -> (Self, Worker) {
        let servers = Self::without_worker().await;
        let answering = NODES.map(|node| servers.delivery_server(node));
        let from = FromServers::new(RotatingServers { answering, turn: AtomicU32::default() });
        let answers = Arc::new(from.clone());
        let worker = Worker::start(servers.bus.clone(), answers, from, settings(&servers.sent));
        (servers, worker.unwrap())
    }

    /// What sends single messages at the first server.
    pub(crate) fn pinger(&self) -> Arc<dyn Pings> {
        self.roles[0].pinger()
    }

    /// What answers delivery processes at a server.
    pub(crate) fn delivery_server(&self, node: u64) -> DeliveryServer {
        DeliveryServer::new(self.cluster(node).clone(), WAITS_MS.to_vec())
    }

    async fn first_leads(&self) {
        for group in 0..GROUPS {
            let shard = self.shard(NODES[0], group);
            shard.group().raft().trigger().elect(false).await.unwrap();
            until("the first server leads", async || shard.leads()).await;
        }
    }

    pub(crate) fn cluster(&self, node: u64) -> &Cluster {
        &self.clusters[usize::try_from(node).unwrap() - 1]
    }

    /// A group's shard on a server; the catalogue's group is 0.
    pub(crate) fn shard(&self, node: u64, group: u64) -> &Shard {
        self.cluster(node).all().find(|shard| shard.number() == group).unwrap()
    }

    /// Hands the leadership of a group over to a server.
    pub(crate) async fn hand_over(&self, group: u64, to: u64) {
        let next = self.shard(to, group);
        let begun = tokio::time::Instant::now();
        while !next.leads() {
            assert!(begun.elapsed() < PATIENCE, "server {to} does not lead");
            if let Some(leader) = NODES.into_iter().find(|node| self.shard(*node, group).leads()) {
                self.shard(leader, group).group().raft().trigger().transfer_leader(to).await.unwrap();
            }
            let leads = async {
                let mut changes = next.watch_leadership();
                while !next.leads() && changes.changed().await {}
            };
            let _late = tokio::time::timeout(HANDOVER, leads).await;
        }
    }

    /// Ends all servers.
    pub(crate) async fn end(self) {
        for role in self.roles {
            role.end().await;
        }
        for cluster in &self.clusters {
            cluster.shutdown().await.unwrap();
        }
        self.network.clear();
    }
}

/// Asks the servers in turn. Every third question gets no answer, although it is answered.
struct RotatingServers {
    answering: [DeliveryServer; 3],
    turn: AtomicU32,
}

#[async_trait]
impl AskServers for RotatingServers {
    async fn ask(&self, _: Option<Bucket>, question: Bytes) -> Result<Bytes, String> {
        let turn = self.turn.fetch_add(1, Ordering::SeqCst);
        let server = &self.answering[usize::try_from(turn).unwrap() % NODES.len()];
        let answer = server.answer(question).await;
        if turn % 3 == 2 { Err("the answer was lost".to_owned()) } else { answer }
    }
}

async fn server(node: u64, folder: &Path, network: &Network, clock: &ManualClock) -> Cluster {
    let data = DataDir::open(folder).unwrap();
    let options = LogOptions { on_fatal: Box::new(|error| panic!("{error}")), sync_fault: None };
    let log = Arc::new(SegmentLog::open(&data, options).unwrap());
    let (states, snapshots) = (StateStore::open(&data).unwrap(), Snapshots::open(&data).unwrap());
    let peers = RaftPeers::new(node, network.transport(node));
    let leaders = ToLeaders::over(network.transport(node));
    let mut groups = Vec::new();
    for group in (0..GROUPS).map(GroupId) {
        let options = GroupOptions {
            group,
            node,
            start: GroupStart::Initialize(NODES.to_vec()),
            log: log.clone(),
            states: states.clone(),
            snapshots: snapshots.clone(),
            cache_bytes: 4 * 1024 * 1024,
            ring: switchward_testkit::ring().clone(),
            raft: PATIENT,
            leaders: Some(leaders.clone()),
            retention: LogRetention::default(),
            levels: Levels::OF_PROGRAM,
        };
        let opened = Group::open(options, peers.network(group)).await.unwrap();
        network.join(node, group, &opened);
        groups.push(opened);
    }
    let on_fatal = Box::new(|why: &str| eprintln!("{why}"));
    let cluster = Cluster::of_groups(groups, Arc::new(clock.clone()), log, on_fatal).unwrap();
    network.open(node, &cluster);
    cluster
}

fn settings(sent: &Arc<Sent>) -> WorkerSettings {
    let sender = Sender {
        from: "switchward@acme.example".to_owned(),
        reply: None,
        pages: None,
        authors: Vec::new(),
        dkim: None,
    };
    WorkerSettings {
        rules: TenantRules::default(),
        model: None,
        mail: Some(MailChannel { sender: Arc::new(sender), post: sent.clone() }),
    }
}
