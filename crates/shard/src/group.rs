//! One Raft group of this server: its log, its state, its node.

use openraft::{
    BasicNode, Config, RaftNetworkFactory, SnapshotPolicy, async_runtime::WatchReceiver, error::Fatal,
    network::NetSnapshot,
};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use switchward_state::Levels;
use switchward_state::seal::KeyRing;
use switchward_store::{GroupId, GroupLog, Snapshots, StateOptions, StateStore};
use tokio::runtime::Handle;

use crate::level::WriteLevel;
use crate::limits::LEADER_LEASES;
use crate::limits::LOG_BYTES_FULL;
use crate::log_store::LogStore;
use crate::may_lead::LeadingChange;
use crate::membership::{Leading, Members};
use crate::metrics::ShardMetrics;
use crate::remote::{Remote, ToLeaders};
use crate::retention::LogRetention;
use crate::shared::Shared;
use crate::snapshot::SnapshotSource;
use crate::state_machine::StateMachine;
use crate::types::{LogId, Raft, TypeConfig};

/// The parts of a group.
pub struct GroupOptions {
    /// The group; the same number on every server that has a replica of it.
    pub group: GroupId,
    /// This server.
    pub node: u64,
    /// What becomes of a group that has neither a vote nor an entry here.
    pub start: GroupStart,
    /// The server's shared log.
    pub log: Arc<dyn GroupLog>,
    /// The server's shared state store.
    pub states: StateStore,
    /// The server's snapshots.
    pub snapshots: Snapshots,
    /// Clean rows that the group keeps in memory, bytes.
    pub cache_bytes: usize,
    /// Opens the secrets in the rows.
    pub ring: KeyRing,
    /// Timing.
    pub raft: RaftSettings,
    /// The way to the leaders on other servers, one for all groups of a server; `None` for a server that can have none.
    pub leaders: Option<ToLeaders>,
    /// What the log keeps for replicas that are away.
    pub retention: LogRetention,
    /// The feature levels of this server.
    pub levels: Levels,
}

/// How a group begins that has neither a vote nor an entry in this server's log. It makes no difference for any other
/// group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GroupStart {
    /// The group is new on all servers, and these are its voters, this server included.
    Initialize(Vec<u64>),
    /// The group exists on other servers, or should exist on this one: the server waits until a leader finds it.
    Join,
}

/// Why a replica has failed whose Raft node panicked.
pub(crate) const NODE_PANICKED: &str = "its Raft node panicked";

/// Raft's timing, milliseconds.
///
/// A heartbeat that is not answered before the next one is due is lost, so the interval is far above what a message
/// takes between two servers, and above the pauses of a busy machine. No heartbeat waits for a disk, so disks have no
/// part in these times. The longest wait before an election is the leader's lease, too: a leader that no majority has
/// answered for so long takes no writes, and followers wait for the lease and then for the time until an election. It
/// allows for four lost heartbeats in a row. Commands and reads that find the lease expired and no other leader wait up
/// to [`LEADER_WAIT`](crate::limits::LEADER_WAIT); they are not refused at once.
#[derive(Debug, Clone, Copy)]
pub struct RaftSettings {
    /// The interval between two heartbeats of a leader.
    pub heartbeat_ms: u64,
    /// The shortest wait before an election.
    pub election_min_ms: u64,
    /// The longest wait before an election, and the leader's lease.
    pub election_max_ms: u64,
}

impl Default for RaftSettings {
    fn default() -> Self {
        Self { heartbeat_ms: 100, election_min_ms: 300, election_max_ms: 450 }
    }
}

/// The parts of a Raft node: a group's log and its state.
pub struct GroupParts {
    /// The group's part of the server's log.
    pub log: LogStore,
    /// The group's rows.
    pub machine: StateMachine,
}

impl GroupParts {
    /// Opens the log and the state of a group.
    ///
    /// # Errors
    /// The log or the state cannot be read, the state is open already, or it is older than what the log begins with.
    pub fn open(options: &GroupOptions) -> io::Result<Self> {
        let log = LogStore::new(Arc::clone(&options.log), options.group).with_levels(options.levels);
        let state_options = StateOptions { clean_bytes_max: options.cache_bytes, ..StateOptions::default() };
        let state = options.states.group(options.group, &state_options).map_err(io::Error::other)?;
        let level = match &options.leaders {
            None => WriteLevel::of_server_alone(options.levels),
            Some(_) => WriteLevel::of_member(options.levels),
        };
        let shared = Shared::new(state, options.snapshots.clone(), options.ring.clone(), log.failed(), level);
        let machine = StateMachine::open(Arc::new(shared), Arc::clone(&options.log))?;
        let purged = log.purged()?;
        check_beginning(options.group, log.first()?, purged)?;
        check_whole(options.group, machine.last_applied(), purged)?;
        Ok(Self { log, machine })
    }
}

/// Fails unless the log begins right after what was purged.
fn check_beginning(group: GroupId, first: Option<u64>, purged: Option<LogId>) -> io::Result<()> {
    let expected = purged.map_or(0, |purged| purged.index + 1);
    match first.filter(|first| *first != expected) {
        None => Ok(()),
        Some(first) => {
            let group = group.0;
            let message =
                format!("the log of group {group} is damaged: it begins at entry {first}, not at {expected}");
            Err(io::Error::new(io::ErrorKind::InvalidData, message))
        }
    }
}

/// Fails unless the log continues from the rows' position. Rows that lack purged entries would differ from what
/// clients were answered.
fn check_whole(group: GroupId, rows: Option<LogId>, purged: Option<LogId>) -> io::Result<()> {
    if purged <= rows {
        return Ok(());
    }
    let describe = |id: Option<LogId>| id.map_or("no entry".to_owned(), |id| format!("entry {}", id.index));
    let (rows, purged) = (describe(rows), describe(purged));
    let message = format!(
        "the state of group {} is damaged: it ends at {rows}, and the log begins only after {purged}",
        group.0
    );
    Err(io::Error::new(io::ErrorKind::InvalidData, message))
}

/// An opened group.
#[derive(Clone)]
pub struct Group {
    pub(crate) raft: Raft,
    pub(crate) shared: Arc<Shared>,
    pub(crate) log: LogStore,
    /// The way to the leader, where it may be another server.
    pub(crate) remote: Option<Arc<Remote>>,
    pub(crate) members: Members,
    pub(crate) retention: LogRetention,
}

impl Group {
    /// Opens a group over a network of peers. A group that is new is initialised only if the options say so.
    ///
    /// # Errors
    /// The log or the state cannot be read.
    pub async fn open<N>(options: GroupOptions, network: N) -> io::Result<Self>
    where
        N: RaftNetworkFactory<TypeConfig>,
        N::Network: NetSnapshot<TypeConfig, SnapshotData = SnapshotSource>,
    {
        let GroupParts { log, machine } = GroupParts::open(&options)?;
        let shared = machine.shared();
        let config = Arc::new(config(&options.raft).map_err(io::Error::other)?);
        let raft =
            Raft::new(options.node, config, network, log.clone(), machine).await.map_err(io::Error::other)?;
        let remote = options
            .leaders
            .map(|leaders| Arc::new(Remote::of(leaders, raft.clone(), Arc::clone(&shared), options.node)));
        let lease = Duration::from_millis(options.raft.election_max_ms) * LEADER_LEASES;
        let members = Members::of(raft.clone(), lease);
        let group = Self { raft, shared, log, remote, members, retention: options.retention };
        if let Some(why) = group.shared.state.wrong().map_err(io::Error::other)? {
            group.fail(why);
            return Ok(group);
        }
        // A replica that fails while it replays its log is opened all the same: it says that it has failed.
        if let Err(error) = group.begin(options.start).await
            && group.failed().is_none()
        {
            // A node without an owner must not go on in the background.
            if let Err(error) = group.raft.shutdown().await {
                tracing::warn!(%error, "failed to shut a Raft node down");
            }
            return Err(error);
        }
        Ok(group)
    }

    /// The same on a given runtime: the node's tasks run there, with its log's callbacks and all that its network does.
    ///
    /// # Errors
    /// The log or the state cannot be read.
    pub async fn open_on<N>(runtime: &Handle, options: GroupOptions, network: N) -> io::Result<Self>
    where
        N: RaftNetworkFactory<TypeConfig>,
        N::Network: NetSnapshot<TypeConfig, SnapshotData = SnapshotSource>,
    {
        runtime.spawn(Self::open(options, network)).await.map_err(io::Error::other)?
    }

    async fn begin(&self, start: GroupStart) -> io::Result<()> {
        if self.is_initialized().await? {
            if self.members.is_alone() {
                // No other server can lead, so waiting for a silent leader is pointless.
                self.raft.trigger().elect(false).await.map_err(io::Error::other)?;
            }
            return Ok(());
        }
        let GroupStart::Initialize(voters) = start else { return Ok(()) };
        let voters: BTreeMap<u64, BasicNode> =
            voters.into_iter().map(|node| (node, BasicNode::default())).collect();
        // Another voter may have initialized it first.
        if let Err(error) = self.raft.initialize(voters).await
            && !self.is_initialized().await?
        {
            return Err(io::Error::other(error));
        }
        Ok(())
    }

    /// Returns true if the group has a vote or an entry on this server.
    ///
    /// # Errors
    /// The Raft node has stopped.
    pub async fn is_initialized(&self) -> io::Result<bool> {
        self.raft.is_initialized().await.map_err(io::Error::other)
    }

    /// The length of the log at which its leader writes no further entry before a purge has shortened it, bytes.
    pub(crate) fn log_bytes_full(&self) -> u64 {
        if self.members.is_alone() {
            LOG_BYTES_FULL
        } else {
            LOG_BYTES_FULL.saturating_add(self.retention.bytes_max)
        }
    }

    /// The group's Raft node, for the code that carries its messages.
    #[must_use]
    pub fn raft(&self) -> &Raft {
        &self.raft
    }

    /// Why this server's replica has failed; `None` if it has not. Such a replica answers and acknowledges nothing until
    /// the server is started again.
    #[must_use]
    pub fn failed(&self) -> Option<&str> {
        self.shared.failed.why()
    }

    /// Ends this server's replica, and nothing else: another server may lead the group.
    pub(crate) fn fail(&self, why: impl Into<String>) {
        self.shared.failed.set(why);
        self.look();
        let raft = self.raft.clone();
        tokio::spawn(async move {
            if let Err(error) = raft.shutdown().await {
                tracing::warn!(%error, "failed to shut a Raft node down");
            }
        });
    }

    /// Publishes whether this server leads, and wakes the leader's tasks if that has changed.
    pub(crate) fn look(&self) -> Leading {
        let leading = if self.failed().is_some() { Leading::No } else { self.members.leading() };
        let leads = leading == Leading::Yes;
        if self.shared.leads.send_if_modified(|before| std::mem::replace(before, leads) != leads) {
            self.shared.wake();
        }
        leading
    }

    /// Returns true if this server leads the group and is no voter of it: it keeps the others from electing, and counts as no
    /// leader.
    pub(crate) fn leads_without_vote(&self) -> bool {
        self.members.leads_without_vote()
    }

    /// Takes in whether this server may lead. If it leads and must not, its owner hands the group over.
    pub(crate) fn note(&self, change: LeadingChange) {
        self.shared.may_lead.note(change, |may_lead| self.raft.runtime_config().elect(may_lead));
    }

    /// Returns true if this server may lead the group: its clock does not bar it, and it does not stop.
    #[must_use]
    pub fn may_lead(&self) -> bool {
        self.shared.may_lead.may_lead()
    }

    /// Fails with one line if the Raft node has stopped by itself.
    pub(crate) fn running(&self) -> Result<(), String> {
        let stopped = self.raft.metrics().borrow_watched().running_state.clone();
        if let Err(Fatal::Panicked) = &stopped {
            self.shared.failed.set(NODE_PANICKED);
        }
        stopped.map_err(|error| format!("the Raft node of a shard has stopped: {error}"))
    }

    /// Returns true if erased bytes may still be in this server's files.
    pub(crate) fn owes(&self) -> bool {
        self.shared.erased.load(std::sync::atomic::Ordering::SeqCst) != 0
    }

    /// The group's metrics.
    #[must_use]
    pub fn metrics(&self) -> &ShardMetrics {
        &self.shared.metrics
    }

    /// Bytes of changed rows in memory that are not yet in the state store.
    #[must_use]
    pub fn dirty_bytes(&self) -> usize {
        self.shared.state.dirty_bytes()
    }

    /// Bytes of rows in memory that are on disk too.
    #[must_use]
    pub fn clean_bytes(&self) -> usize {
        self.shared.state.clean_bytes()
    }

    /// Bytes of the group's log that are not yet purged.
    #[must_use]
    pub fn log_bytes(&self) -> u64 {
        self.log.size().0
    }

    /// The index of the last entry that the rows hold; `None` before the first.
    #[must_use]
    pub fn applied(&self) -> Option<u64> {
        self.shared.position().map(|position| position.index)
    }

    /// Writes what has changed to the state store and syncs it. Blocks.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn checkpoint(&self) -> io::Result<()> {
        self.shared.checkpoint()?;
        self.shared.persist().map(|_| ())
    }
}

fn config(settings: &RaftSettings) -> Result<Config, openraft::ConfigError> {
    Config {
        cluster_name: "switchward".into(),
        heartbeat_interval: settings.heartbeat_ms,
        election_timeout_min: settings.election_min_ms,
        election_timeout_max: settings.election_max_ms,
        max_payload_entries: 1024,
        snapshot_policy: SnapshotPolicy::Never,
        // Each purge says what goes and what stays.
        max_in_snapshot_log_to_keep: u64::MAX,
        enable_pre_vote: Some(true),
        // A leader that comes back as one in its old term would take the rows as last flushed for the newest ones,
        // and forget what it acknowledged after them. In a new term its blank entry distinguishes the two.
        enable_leader_restore: Some(false),
        ..Config::default()
    }
    .validate()
}

#[cfg(test)]
mod tests {
    use super::*;
    use openraft::vote::leader_id_std::CommittedLeaderId;

    const GROUP: GroupId = GroupId(3);

    fn entry(index: u64) -> LogId {
        LogId { leader_id: CommittedLeaderId::new(1), index }
    }

    #[test]
    fn a_log_without_its_beginning_is_refused() {
        assert!(check_beginning(GROUP, None, None).is_ok() && check_beginning(GROUP, Some(0), None).is_ok());
        assert!(check_beginning(GROUP, None, Some(entry(7))).is_ok());
        assert!(check_beginning(GROUP, Some(8), Some(entry(7))).is_ok());
        for (first, purged) in [(1, None), (9, Some(entry(7))), (7, Some(entry(7)))] {
            let error = check_beginning(GROUP, Some(first), purged).unwrap_err().to_string();
            assert!(error.starts_with("the log of group 3 is damaged: it begins at entry"), "{error}");
        }
    }

    #[test]
    fn rows_older_than_what_the_log_begins_with_are_refused() {
        assert!(check_whole(GROUP, None, None).is_ok() && check_whole(GROUP, Some(entry(7)), None).is_ok());
        assert!(check_whole(GROUP, Some(entry(7)), Some(entry(7))).is_ok());
        let error = check_whole(GROUP, Some(entry(6)), Some(entry(7))).unwrap_err().to_string();
        assert!(error.contains("it ends at entry 6, and the log begins only after entry 7"), "{error}");
        assert!(check_whole(GROUP, None, Some(entry(7))).is_err());
    }
}
