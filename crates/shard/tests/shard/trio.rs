//! Three servers in this process, each with a replica of every group.

use openraft::async_runtime::WatchReceiver;
use parking_lot::Mutex;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use switchward_machine::Digest;
use switchward_shard::{
    Clock, Cluster, Failure, Group, GroupOptions, GroupStart, LogRetention, ManualClock, RaftSettings, Shard,
    ToLeaders,
};
use switchward_state::{Command, Levels, Reply};
use switchward_store::{GroupId, LogOptions, SegmentLog, Snapshots, StateStore};
use switchward_testkit::PATIENCE;
use switchward_testnet::Network;
use tempfile::TempDir;
use tokio::{
    runtime::{Builder, Runtime},
    sync::watch,
};

use crate::live::Answered;
use crate::server::{BEGIN, unlocked};
use crate::spoiled_log::Spoiled;
use crate::stalled_disk::Stall;

/// The servers' numbers.
pub(crate) const NODES: [u64; 3] = [1, 2, 3];
/// The catalogue's group and two shards.
pub(crate) const GROUPS: u64 = 3;

/// A leader that dies is soon followed by another.
const BRISK: RaftSettings = RaftSettings { heartbeat_ms: 40, election_min_ms: 150, election_max_ms: 300 };
/// A leader stays leader on a machine that is busy for seconds.
const PATIENT: RaftSettings =
    RaftSettings { heartbeat_ms: 200, election_min_ms: 10_000, election_max_ms: 20_000 };

/// Whether a server passes commands on to another one that leads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Passes {
    /// It refuses what it cannot execute itself.
    Nothing,
    Commands,
}

/// One of the three servers.
struct Voter {
    runtime: Runtime,
    cluster: Cluster,
    /// The errors that it reported as fatal; those while it is killed do not count.
    fatal: Arc<Mutex<Vec<String>>>,
}

/// The three servers and their network.
pub(crate) struct Trio {
    folders: TempDir,
    pub(crate) network: Network,
    /// The clock of all servers that were not given clocks of their own.
    pub(crate) clock: ManualClock,
    clocks: [Arc<dyn Clock>; 3],
    raft: RaftSettings,
    /// Those that vote from the beginning; the others are added later.
    founders: Vec<u64>,
    /// What each server reads from its log.
    pub(crate) spoiled: [Spoiled; 3],
    /// What each server's disk waits for.
    pub(crate) stalls: [Stall; 3],
    retention: LogRetention,
    /// The feature levels of each server.
    levels: [Levels; 3],
    passes: Passes,
    voters: [Option<Voter>; 3],
    current: watch::Sender<[Option<Cluster>; 3]>,
}

impl Trio {
    pub(crate) fn open() -> Self {
        let clock = ManualClock::new(BEGIN);
        Self::with(
            on_disk(),
            clock.clone(),
            shared(&clock),
            BRISK,
            NODES.to_vec(),
            LogRetention::default(),
            Passes::Nothing,
        )
    }

    /// The first server alone, and two that are not yet members.
    pub(crate) fn growing() -> Self {
        let clock = ManualClock::new(BEGIN);
        Self::with(
            on_disk(),
            clock.clone(),
            shared(&clock),
            BRISK,
            vec![NODES[0]],
            LogRetention::default(),
            Passes::Nothing,
        )
    }

    /// Servers whose leaders stay while no server dies. The first server stands for election at once in every group.
    pub(crate) fn patient() -> Self {
        Self::patient_retaining(LogRetention::default())
    }

    /// The same, which pass commands on to their leaders. Each must be killed in the end.
    pub(crate) fn patient_passing() -> Self {
        let clock = ManualClock::new(BEGIN);
        let (clocks, retention) = (shared(&clock), LogRetention::default());
        let voters = NODES.to_vec();
        Self::led(Self::with(in_memory(), clock, clocks, PATIENT, voters, retention, Passes::Commands))
    }

    /// The same, whose logs keep this for a server that is away.
    pub(crate) fn patient_retaining(retention: LogRetention) -> Self {
        let clock = ManualClock::new(BEGIN);
        Self::led(Self::with(
            in_memory(),
            clock.clone(),
            shared(&clock),
            PATIENT,
            NODES.to_vec(),
            retention,
            Passes::Nothing,
        ))
    }

    /// The same, with clocks of their own.
    pub(crate) fn patient_of(clocks: [Arc<dyn Clock>; 3]) -> Self {
        let clock = ManualClock::new(BEGIN);
        Self::led(Self::with(
            in_memory(),
            clock,
            clocks,
            PATIENT,
            NODES.to_vec(),
            LogRetention::default(),
            Passes::Nothing,
        ))
    }

    /// The same, with these feature levels.
    pub(crate) fn patient_at(levels: [Levels; 3]) -> Self {
        let mut trio = Self::patient();
        NODES.into_iter().for_each(|node| trio.kill(node));
        trio.levels = levels;
        NODES.into_iter().for_each(|node| trio.begin(node));
        Self::led(trio)
    }

    /// Gives a server that does not run other feature levels.
    pub(crate) fn knows(&mut self, node: u64, levels: Levels) {
        self.levels[at(node)] = levels;
    }

    /// Has the first server stand for election in every group.
    fn led(trio: Self) -> Self {
        let first = trio.voters[at(NODES[0])].as_ref().unwrap();
        for group in 0..usize::try_from(GROUPS).unwrap() {
            let raft = trio.shard(NODES[0], group).group().raft();
            first.runtime.block_on(raft.trigger().elect(false)).unwrap();
        }
        trio
    }

    /// Servers with clocks of their own.
    pub(crate) fn of(clocks: [Arc<dyn Clock>; 3]) -> Self {
        Self::with(
            on_disk(),
            ManualClock::new(BEGIN),
            clocks,
            BRISK,
            NODES.to_vec(),
            LogRetention::default(),
            Passes::Nothing,
        )
    }

    fn with(
        folders: TempDir,
        clock: ManualClock,
        clocks: [Arc<dyn Clock>; 3],
        raft: RaftSettings,
        founders: Vec<u64>,
        retention: LogRetention,
        passes: Passes,
    ) -> Self {
        let mut trio = Self {
            folders,
            network: Network::default(),
            clock,
            clocks,
            raft,
            founders,
            spoiled: Default::default(),
            stalls: Default::default(),
            retention,
            levels: [Levels::OF_PROGRAM; 3],
            passes,
            voters: [None, None, None],
            current: watch::channel([None, None, None]).0,
        };
        NODES.into_iter().for_each(|node| trio.begin(node));
        trio
    }

    /// The data folder of a server.
    pub(crate) fn path(&self, node: u64) -> PathBuf {
        self.folders.path().join(format!("server-{node}"))
    }

    /// Opens a server on its data folder, which may be a new one.
    pub(crate) fn begin(&mut self, node: u64) {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let data = unlocked(&self.path(node));
        let fatal: Arc<Mutex<Vec<String>>> = Arc::default();
        let reported = Arc::clone(&fatal);
        let on_fatal =
            Box::new(move |error: &switchward_store::StoreError| reported.lock().push(error.to_string()));
        let sync_fault = Some(self.stalls[at(node)].before_each_sync());
        let log = Arc::new(SegmentLog::open(&data, LogOptions { on_fatal, sync_fault }).unwrap());
        let states = StateStore::open(&data).unwrap();
        let snapshots = Snapshots::open(&data).unwrap();
        let passes = self.passes == Passes::Commands;
        let leaders = passes.then(|| ToLeaders::over(self.network.transport(node)));
        let reported = Arc::clone(&fatal);
        let start = if self.founders.contains(&node) {
            GroupStart::Initialize(self.founders.clone())
        } else {
            GroupStart::Join
        };
        let cluster = runtime.block_on(async {
            let mut groups = Vec::new();
            for group in (0..GROUPS).map(GroupId) {
                let options = GroupOptions {
                    group,
                    node,
                    start: start.clone(),
                    log: self.spoiled[at(node)].over(Arc::clone(&log)),
                    states: states.clone(),
                    snapshots: snapshots.clone(),
                    cache_bytes: 64 * 1024,
                    ring: switchward_scenario::ring().clone(),
                    raft: self.raft,
                    leaders: leaders.clone(),
                    retention: self.retention,
                    levels: self.levels[at(node)],
                };
                let opened = Group::open(options, self.network.of(node, group)).await.unwrap();
                self.network.join(node, group, &opened);
                groups.push(opened);
            }
            let on_fatal = Box::new(move |line: &str| reported.lock().push(line.to_owned()));
            Cluster::of_groups(groups, Arc::clone(&self.clocks[at(node)]), log, on_fatal).unwrap()
        });
        if passes {
            self.network.answer(node, &cluster);
        }
        self.current.send_modify(|current| current[at(node)] = Some(cluster.clone()));
        self.voters[at(node)] = Some(Voter { runtime, cluster, fatal });
    }

    /// Ends a server as SIGKILL does.
    pub(crate) fn kill(&mut self, node: u64) {
        self.assert_sound();
        self.network.leave(node);
        let Voter { runtime, cluster, .. } = self.voters[at(node)].take().unwrap();
        drop(runtime);
        drop(cluster);
        self.current.send_modify(|current| current[at(node)] = None);
    }

    pub(crate) fn assert_sound(&self) {
        for voter in self.voters.iter().flatten() {
            assert_eq!(*voter.fatal.lock(), Vec::<String>::new());
        }
    }

    pub(crate) fn cluster(&self, node: u64) -> &Cluster {
        &self.voters[at(node)].as_ref().unwrap().cluster
    }

    /// A shard of a server; the catalogue's is the first.
    pub(crate) fn shard(&self, node: u64, group: usize) -> &Shard {
        self.cluster(node).all().nth(group).unwrap()
    }

    pub(crate) fn living(&self) -> impl Iterator<Item = u64> {
        NODES.into_iter().filter(|node| self.voters[at(*node)].is_some())
    }

    /// The leader of a group, other than this server, once there is one.
    pub(crate) async fn leader(&self, group: usize, but: Option<u64>) -> u64 {
        let asked: Vec<u64> = self.living().filter(|node| Some(*node) != but).collect();
        let elected = async {
            loop {
                for node in &asked {
                    if self.shard(*node, group).read().await.is_ok() {
                        return *node;
                    }
                }
                self.changed(asked[0], group).await;
            }
        };
        tokio::time::timeout(PATIENCE, elected).await.expect("a leader is elected")
    }

    /// Waits until something happens in a group, and not for long: the relevant change may happen elsewhere.
    async fn changed(&self, node: u64, group: usize) {
        let mut changes = self.shard(node, group).group().raft().metrics();
        let _silent = tokio::time::timeout(Duration::from_millis(50), changes.changed()).await;
    }

    /// The callers' view of the servers.
    pub(crate) fn callers(&self) -> Callers {
        Callers { current: self.current.subscribe(), first: 0 }
    }

    /// Waits until all three have applied the same entries. Returns each group's digests.
    pub(crate) async fn settled(&self) -> Vec<[Digest; 3]> {
        let mut all = Vec::new();
        for group in 0..usize::try_from(GROUPS).unwrap() {
            let leader = self.leader(group, None).await;
            let last = self.shard(leader, group).group().raft().metrics().borrow_watched().last_log_index;
            for node in NODES {
                let raft = self.shard(node, group).group().raft();
                raft.wait(Some(PATIENCE)).applied_index_at_least(last, "a replica catches up").await.unwrap();
            }
            let digest = |node: u64| Digest(self.shard(node, group).group().digest().unwrap());
            all.push(NODES.map(digest));
        }
        all
    }
}

/// Folders on a disk, whose writes take their time: a server that is killed dies in the middle of them.
pub(crate) fn on_disk() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// Folders in memory if the machine has a file system there, for servers that stay: they need not wait for a
/// disk.
pub(crate) fn in_memory() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// One clock for all servers.
fn shared(clock: &ManualClock) -> [Arc<dyn Clock>; 3] {
    [(); 3].map(|()| Arc::new(clock.clone()) as Arc<dyn Clock>)
}

pub(crate) fn at(node: u64) -> usize {
    usize::try_from(node).unwrap() - 1
}

/// A caller that knows three addresses.
#[derive(Clone)]
pub(crate) struct Callers {
    current: watch::Receiver<[Option<Cluster>; 3]>,
    first: usize,
}

impl Callers {
    /// Sends a command from one server to the next until one has answered it.
    pub(crate) async fn insist(&mut self, command: Command) -> Answered {
        let answered = tokio::time::timeout(PATIENCE, self.retried(&command)).await;
        answered.unwrap_or_else(|_| panic!("no server has answered {command:?} within {PATIENCE:?}"))
    }

    async fn retried(&mut self, command: &Command) -> Answered {
        loop {
            match self.once(command).await {
                Some(Ok(reply)) => return Ok(reply),
                Some(Err(Failure::Rejected(rejection))) => return Err(rejection),
                Some(Err(_)) | None => {
                    self.first = (self.first + 1) % NODES.len();
                    // A caller that has tried them all rests for a moment, as any client does.
                    if self.first == 0 {
                        let _rested =
                            tokio::time::timeout(Duration::from_millis(5), self.current.changed()).await;
                    }
                }
            }
        }
    }

    /// Sends a command to the server that answered last; `None` if it is dead, or dies meanwhile.
    async fn once(&mut self, command: &Command) -> Option<Result<Reply, Failure>> {
        let at = self.first;
        let cluster = self.current.borrow_and_update()[at].clone()?;
        tokio::select! {
            outcome = cluster.execute(command.clone()) => Some(outcome),
            _ = self.current.wait_for(|current| current[at].is_none()) => None,
        }
    }
}
