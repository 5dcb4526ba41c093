//! A simulated server: real groups and the real loops of their shards, on a runtime of one thread whose time is ours.

use parking_lot::Mutex;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use switchward_shard::{
    Clock, Cluster, Group, GroupOptions, GroupStart, LogRetention, MemberHandler, MemberOptions, MemberStart,
    RaftPeers, RaftSettings, ToLeaders,
};
use switchward_state::Levels;
use switchward_state::limits::VOTERS_MAX;
use switchward_store::{
    DataDir, GroupId, GroupLog, LogOptions, SegmentLog, Snapshots, StateStore, StoreError,
};
use switchward_testkit::until_blocking;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

use crate::clocks::{Machine, ServerClock};
use crate::disk::{End, Logs, MemoryLog};
use crate::faults::STOOD_STILL;
use crate::network::{Endpoint, Network};
use crate::process::FOLDER;
use crate::timeline::pass;

/// The catalogue's group and two shards.
pub(crate) const GROUPS: u64 = 3;

/// The timing of a product's server.
const RAFT: RaftSettings = RaftSettings { heartbeat_ms: 100, election_min_ms: 300, election_max_ms: 450 };

/// What the cluster knows as the address of a server.
pub(crate) fn address(node: u64) -> String {
    format!("server-{node}:7401")
}

/// One server, which may be down.
pub(crate) struct Server {
    pub(crate) node: u64,
    machine: Machine,
    network: Network,
    folder: PathBuf,
    spare: Arc<SegmentLog>,
    /// The number of its data folder.
    generation: u64,
    start: GroupStart,
    durable: Logs,
    running: Option<Running>,
    /// Until when it stands still, milliseconds.
    paused: u64,
    /// How often it was started.
    pub(crate) starts: u32,
}

struct Running {
    runtime: Runtime,
    log: Arc<MemoryLog>,
    handler: Arc<MemberHandler>,
    clock: Arc<ServerClock>,
    fatal: Arc<Mutex<Vec<String>>>,
    opened: Arc<Mutex<Option<Result<Cluster, String>>>>,
}

impl Server {
    pub(crate) fn new(node: u64, network: &Network, setting: &Setting, start: GroupStart) -> Self {
        Self {
            node,
            machine: Machine::new(network.timeline.clone()),
            network: network.clone(),
            folder: setting.folders.path().join(format!("server-{node}")),
            spare: Arc::clone(&setting.spare),
            generation: 0,
            start,
            durable: Logs::default(),
            running: None,
            paused: 0,
            starts: 0,
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.with_extension(self.generation.to_string())
    }

    /// Starts the server: its groups are open some milliseconds later.
    pub(crate) fn start(&mut self) {
        assert!(self.running.is_none(), "server {} runs", self.node);
        let timeline = &self.network.timeline;
        timeline.note(format_args!("{} starts", self.node));
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let log = MemoryLog::open(self.node, timeline.clone(), std::mem::take(&mut self.durable));
        let data = unlocked(&self.path());
        let (states, snapshots) = (StateStore::open(&data).unwrap(), Snapshots::open(&data).unwrap());
        let running = Running {
            runtime,
            log,
            handler: Arc::default(),
            clock: Arc::new(ServerClock::over(&self.machine)),
            fatal: Arc::default(),
            opened: Arc::default(),
        };
        let endpoint = Endpoint {
            runtime: running.runtime.handle().clone(),
            handler: Arc::clone(&running.handler),
            cluster: None,
            clock: Arc::clone(&running.clock),
            data,
        };
        self.network.join(self.node, endpoint.clone());
        let opening = Opening {
            node: self.node,
            start: self.start.clone(),
            network: self.network.clone(),
            clock: Arc::clone(&running.clock) as Arc<dyn Clock>,
            log: Arc::clone(&running.log),
            fatal: Arc::clone(&running.fatal),
            states,
            snapshots,
            spare: Arc::clone(&self.spare),
        };
        let opened = Arc::clone(&running.opened);
        drop(running.runtime.spawn(async move {
            let outcome = opening.open(endpoint).await;
            *opened.lock() = Some(outcome);
        }));
        self.running = Some(running);
        self.paused = 0;
        self.starts += 1;
    }

    /// Ends the server. What it had in memory is gone.
    pub(crate) fn end(&mut self, how: End) {
        let Some(running) = self.running.take() else { return };
        self.network.leave(self.node);
        self.durable = running.log.end(how);
        let Running { runtime, log, handler, clock, fatal: _, opened } = running;
        drop(runtime);
        drop((log, handler, clock, opened));
    }

    /// Notes that the connection to another server has ended, and cannot be made again.
    pub(crate) fn lose(&self, other: u64) {
        let Some(running) = &self.running else { return };
        let handler = Arc::clone(&running.handler);
        drop(running.runtime.spawn(async move { handler.raft().lost(other).await }));
    }

    /// Ends a server that runs, and removes all of its files.
    pub(crate) fn wipe(&mut self) {
        self.end(End::Cut);
        self.durable.clear();
        self.generation += 1;
        self.start = GroupStart::Join;
    }

    /// Ends a server that runs, and copies its disk.
    pub(crate) fn copy(&mut self) -> Copied {
        self.end(End::Killed);
        drop(unlocked(&self.path()));
        let files = self.folder.with_extension("copy");
        copy_folder(&self.path(), &files);
        Copied { files, log: self.durable.clone() }
    }

    /// Ends a server that runs, and replaces its disk by an earlier copy.
    pub(crate) fn restore(&mut self, copied: Copied) {
        self.wipe();
        std::fs::rename(copied.files, self.path()).unwrap();
        self.durable = copied.log;
    }

    /// Lets the server stand still until then, milliseconds, and its monotonic clock with it.
    pub(crate) fn pause(&mut self, until: u64) {
        self.paused = until;
    }

    /// Lets a millisecond pass.
    pub(crate) fn tick(&self) {
        let Some(running) = &self.running else { return };
        if self.network.timeline.now() < self.paused {
            self.network.timeline.count(STOOD_STILL);
            return;
        }
        running.log.tick();
        running.runtime.block_on(pass(1));
    }

    pub(crate) fn runs(&self) -> bool {
        self.running.is_some()
    }

    /// Its shards, once its groups are open.
    pub(crate) fn cluster(&self) -> Option<Cluster> {
        let running = self.running.as_ref()?;
        running.opened.lock().as_ref().and_then(|opened| opened.as_ref().ok().cloned())
    }

    /// Its log, while it runs.
    pub(crate) fn log(&self) -> Option<&MemoryLog> {
        self.running.as_ref().map(|running| &*running.log)
    }

    /// Sets its machine's wall clock, to the right time plus these milliseconds.
    pub(crate) fn set_clock(&self, wrong_by: i64) {
        self.machine.set(wrong_by);
    }

    /// How far its own clock is from the right time, milliseconds; `None` while it is down.
    pub(crate) fn clock_error(&self) -> Option<u64> {
        let now = self.running.as_ref()?.clock.now();
        Some(now.0.abs_diff(self.network.timeline.true_time().0))
    }

    /// Has what waits on it for a time look at its clock.
    pub(crate) fn wake(&self) {
        if let Some(running) = &self.running {
            running.clock.wake();
        }
    }

    /// Runs a task on the server.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        if let Some(running) = &self.running {
            drop(running.runtime.spawn(task));
        }
    }

    /// Returns true if its disk has failed: its process must end.
    pub(crate) fn must_end(&self) -> bool {
        self.log().is_some_and(MemoryLog::failed)
    }

    /// What is wrong with the server, if anything is.
    pub(crate) fn complaint(&self) -> Option<String> {
        let running = self.running.as_ref()?;
        if running.log.failed() {
            return None;
        }
        if let Some(fatal) = running.fatal.lock().first() {
            return Some(format!("server {} reports {fatal}", self.node));
        }
        match &*running.opened.lock() {
            Some(Err(error)) => Some(format!("server {} cannot be opened: {error}", self.node)),
            Some(Ok(cluster)) => cluster.all().find_map(|shard| {
                let why = shard.group().failed()?;
                Some(format!(
                    "server {}: the replica of group {} has failed: {why}",
                    self.node,
                    shard.number()
                ))
            }),
            None => None,
        }
    }
}

/// The disk of a server at an earlier time.
pub(crate) struct Copied {
    files: PathBuf,
    log: Logs,
}

fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    std::fs::set_permissions(to, from.metadata().unwrap().permissions()).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let (name, from) = entry.map(|entry| (entry.file_name(), entry.path())).unwrap();
        if from.is_dir() {
            copy_folder(&from, &to.join(name));
        } else {
            std::fs::copy(from, to.join(name)).unwrap();
        }
    }
}

/// A start of a server.
struct Opening {
    node: u64,
    start: GroupStart,
    network: Network,
    clock: Arc<dyn Clock>,
    log: Arc<MemoryLog>,
    fatal: Arc<Mutex<Vec<String>>>,
    states: StateStore,
    snapshots: Snapshots,
    spare: Arc<SegmentLog>,
}

impl Opening {
    async fn open(self, endpoint: Endpoint) -> Result<Cluster, String> {
        let transport = self.network.transport(self.node);
        let peers = RaftPeers::new(self.node, Arc::clone(&transport));
        let leaders = ToLeaders::over(Arc::clone(&transport));
        let mut groups = Vec::new();
        for group in (0..GROUPS).map(GroupId) {
            let options = GroupOptions {
                group,
                node: self.node,
                start: self.start.clone(),
                log: Arc::clone(&self.log) as Arc<dyn GroupLog>,
                states: self.states.clone(),
                snapshots: self.snapshots.clone(),
                cache_bytes: 64 * 1024,
                ring: switchward_scenario::ring().clone(),
                raft: RAFT,
                leaders: Some(leaders.clone()),
                retention: LogRetention::default(),
                levels: Levels::OF_PROGRAM,
            };
            let opened =
                Group::open(options, peers.network(group)).await.map_err(|error| error.to_string())?;
            endpoint.handler.raft().register(group, &opened);
            groups.push(opened);
        }
        let fatal = Arc::clone(&self.fatal);
        let on_fatal = Box::new(move |line: &str| fatal.lock().push(line.to_owned()));
        let member = MemberOptions {
            number: self.node,
            transport,
            handler: Arc::clone(&endpoint.handler),
            address: address(self.node),
            start: MemberStart::Resume,
            voters: VOTERS_MAX,
            runtime: None,
            raft: RAFT,
            levels: Levels::OF_PROGRAM,
        };
        let cluster = Cluster::of_member(groups, self.clock, self.spare, on_fatal, &member);
        let cluster = cluster.map_err(|error| error.to_string())?;
        self.network.join(self.node, Endpoint { cluster: Some(cluster.clone()), ..endpoint });
        self.network.timeline.note(format_args!("{} is open", self.node));
        Ok(cluster)
    }
}

/// What all servers of a simulation share.
pub(crate) struct Setting {
    pub(crate) folders: TempDir,
    /// A log that clusters ask only for its disk and its statistics.
    spare: Arc<SegmentLog>,
}

impl Setting {
    pub(crate) fn new() -> Self {
        let folders = folders();
        let spare = spare_log(folders.path());
        Self { folders, spare }
    }
}

/// Where the folders of simulated servers are: where the process is told, or in memory, if the machine has a file system there.
pub(crate) fn folders() -> TempDir {
    let (named, memory) = (std::env::var_os(FOLDER), Path::new("/dev/shm"));
    let made = match named {
        Some(folder) => tempfile::tempdir_in(folder),
        None if memory.is_dir() => tempfile::tempdir_in(memory),
        None => tempfile::tempdir(),
    };
    made.unwrap()
}

fn spare_log(folders: &Path) -> Arc<SegmentLog> {
    let data = DataDir::open(folders.join("spare")).unwrap();
    let on_fatal = Box::new(|error: &StoreError| panic!("{error}"));
    Arc::new(SegmentLog::open(&data, LogOptions { on_fatal, sync_fault: None }).unwrap())
}

/// The data folder, once nothing of an earlier start holds it: the threads of its database end in their own time.
fn unlocked(path: &Path) -> DataDir {
    let mut data = None;
    until_blocking("the data folder is released", || match DataDir::open(path) {
        Err(StoreError::InUse { .. }) => false,
        opened => {
            data = Some(opened.unwrap());
            true
        }
    });
    data.unwrap()
}
