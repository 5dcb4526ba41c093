//! One Raft group of this server: its log, its state, its node.

use openraft::{
    BasicNode, Config, RaftNetworkFactory, SnapshotPolicy, async_runtime::WatchReceiver, network::NetSnapshot,
};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use switchward_state::seal::KeyRing;
use switchward_store::{GroupId, GroupLog, Snapshots, StateOptions, StateStore};

use crate::log_store::LogStore;
use crate::metrics::ShardMetrics;
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
    /// The voters, this server included.
    pub voters: Vec<u64>,
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
}

/// Raft's timing, milliseconds.
#[derive(Debug, Clone, Copy)]
pub struct RaftSettings {
    /// The interval between two heartbeats of a leader.
    pub heartbeat_ms: u64,
    /// The shortest wait before an election.
    pub election_min_ms: u64,
    /// The longest wait before an election.
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
        let log = LogStore::new(Arc::clone(&options.log), options.group);
        let state_options = StateOptions { clean_bytes_max: options.cache_bytes, ..StateOptions::default() };
        let state = options.states.group(options.group, &state_options).map_err(io::Error::other)?;
        let shared = Shared::new(state, options.snapshots.clone(), options.ring.clone());
        let machine = StateMachine::open(Arc::new(shared))?;
        check_whole(options.group, machine.last_applied(), log.purged()?)?;
        Ok(Self { log, machine })
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
    pub(crate) alone: bool,
}

impl Group {
    /// Opens a group over a network of peers, and lets it vote for the first time if it is new.
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
        let group = Self { raft, shared, log, alone: options.voters.len() == 1 };
        if let Err(error) = group.begin(&options.voters).await {
            // A node without an owner must not go on in the background.
            if let Err(error) = group.raft.shutdown().await {
                tracing::warn!(%error, "failed to shut a Raft node down");
            }
            return Err(error);
        }
        Ok(group)
    }

    async fn begin(&self, voters: &[u64]) -> io::Result<()> {
        let raft = &self.raft;
        if !raft.is_initialized().await.map_err(io::Error::other)? {
            let voters: BTreeMap<u64, BasicNode> =
                voters.iter().map(|node| (*node, BasicNode::default())).collect();
            // Another voter may have initialized it first.
            if let Err(error) = raft.initialize(voters).await
                && !raft.is_initialized().await.map_err(io::Error::other)?
            {
                return Err(io::Error::other(error));
            }
        } else if self.alone {
            // No other server can lead, so waiting for a silent leader is pointless.
            raft.trigger().elect(false).await.map_err(io::Error::other)?;
        }
        Ok(())
    }

    /// The group's Raft node, for the code that carries its messages.
    #[must_use]
    pub fn raft(&self) -> &Raft {
        &self.raft
    }

    /// Fails with one line if the Raft node has stopped by itself.
    pub(crate) fn running(&self) -> Result<(), String> {
        let stopped = self.raft.metrics().borrow_watched().running_state.clone();
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

    /// A hash over all rows. Blocks.
    ///
    /// # Errors
    /// A row cannot be read.
    pub fn digest(&self) -> io::Result<[u8; 32]> {
        self.shared.state.digest().map_err(io::Error::other)
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
