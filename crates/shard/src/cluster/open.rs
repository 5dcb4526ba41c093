//! Opening the groups of a server.

use openraft::{RaftNetworkFactory, async_runtime::WatchReceiver, network::NetSnapshot};
use parking_lot::Mutex;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use switchward_state::Levels;
use switchward_state::catalogue::ServerState;
use switchward_store::{
    DataDir, GroupId, GroupLog, LogOptions, SegmentLog, Snapshots, StateStore, StoreError,
};
use tokio::runtime::Handle;

use super::shutdown::stop;
use super::{Cluster, ClusterOptions, check_keys};
use crate::blocking::blocking;
use crate::clock_watch;
use crate::failure::{Failure, line};
use crate::group::{Group, GroupOptions, GroupStart, RaftSettings};
use crate::halt::once;
use crate::limits::{
    FOUND_READY_WAIT, JOIN_READY_WAIT, JOIN_WAIT, MEMBERSHIP_READ_WAIT, RAFT_THREADS, RESUME_READY_WAIT,
    SHARDS_MAX,
};
use crate::members::{self, MemberOptions, MemberStart};
use crate::no_peers::NoPeers;
use crate::own_runtime::OwnRuntime;
use crate::peers::RaftPeers;
use crate::remote::ToLeaders;
use crate::retention::LogRetention;
use crate::scrub;
use crate::shard::Shard;
use crate::shards::{CATALOGUE, Opened};
use crate::snapshot::SnapshotSource;
use crate::types::TypeConfig;

/// The node number of a server that is alone.
const ALONE: u64 = 1;

/// See [`Cluster::open`].
pub(super) async fn open(mut options: ClusterOptions) -> io::Result<Cluster> {
    let count = shard_count(&options).await?;
    let halt = once(std::mem::replace(&mut options.on_fatal, Box::new(|_| {})));
    let report = Arc::clone(&halt);
    let on_fatal = Box::new(move |error: &StoreError| report(&line(error)));
    let log = SegmentLog::open(&options.data, LogOptions { on_fatal, sync_fault: None })
        .map_err(io::Error::other)?;
    let log = Arc::new(log);
    let (own, raft) = raft_runtime(options.member.as_ref())?;
    let groups = open_groups(&options, count, &log, raft.as_ref()).await?;
    let opened = Opened { raft: Mutex::new(own), member: options.member.clone() };
    let cluster = Cluster::over(groups.clone(), Arc::clone(&options.clock), halt, log, opened);
    let begun = match &options.member {
        None => stand_alone(&cluster, &options.data).await,
        Some(member) => take_part(&cluster, &options.data, member, count).await,
    };
    if let Err(error) = begun {
        // Their tasks end, and do not report that the nodes have stopped.
        cluster.all().for_each(Shard::begin_drain);
        stop(&groups).await;
        cluster.0.end_raft().await;
        return Err(error);
    }
    cluster.begin_leader_tasks();
    Ok(cluster)
}

/// The runtime that is Raft's alone, if it was given none, and where its tasks run. Elections must not wait behind other work;
/// a server alone has none.
fn raft_runtime(member: Option<&MemberOptions>) -> io::Result<(Option<OwnRuntime>, Option<Handle>)> {
    let Some(member) = member else { return Ok((None, None)) };
    if let Some(given) = &member.runtime {
        return Ok((None, Some(given.clone())));
    }
    let own = OwnRuntime::start("raft", RAFT_THREADS)?;
    let handle = own.handle().clone();
    Ok((Some(own), Some(handle)))
}

/// The number of groups besides the catalogue's. A server that joins asks the cluster.
async fn shard_count(options: &ClusterOptions) -> io::Result<u32> {
    let data = &options.data;
    let joins = options.member.as_ref().and_then(|member| match &member.start {
        MemberStart::Join { peers } => Some((member, peers)),
        MemberStart::FoundCluster | MemberStart::Resume => None,
    });
    let known = data.shards_known().map_err(io::Error::other)?;
    let count = match (&options.member, joins, known) {
        // It was admitted before: it may have voted since, and the others may need it to answer anything.
        (_, Some((member, _)), Some(count)) => members::check_claimed(data, member.number).map(|_| count)?,
        (_, Some((member, peers)), None) => {
            let map = members::join(data, member, peers).await?;
            u32::try_from(map.shards()).map_err(io::Error::other)?
        }
        (Some(member), None, known) => {
            members::check_claimed(data, member.number)?;
            if member.start == MemberStart::Resume && !data.is_initialized() {
                return Err(invalid(format!("server {} has not joined its cluster yet", member.number)));
            }
            known.unwrap_or_else(|| options.shards.clamp(1, SHARDS_MAX))
        }
        (None, None, known) => {
            check_stands_alone(data)?;
            known.unwrap_or_else(|| options.shards.clamp(1, SHARDS_MAX))
        }
    };
    if !(1..=SHARDS_MAX).contains(&count) {
        return Err(invalid(format!("the data folder has {count} shards, 1 to {SHARDS_MAX} are allowed")));
    }
    data.shards(count).map_err(io::Error::other)
}

fn invalid(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}

/// Fails if the folder belongs to a server of a cluster: alone it would take the place of the others.
fn check_stands_alone(data: &DataDir) -> io::Result<()> {
    match data.identity().cluster {
        None => Ok(()),
        Some(cluster) => Err(invalid(format!(
            "the data folder {} belongs to {cluster}, and not to a server alone",
            data.path().display()
        ))),
    }
}

/// Waits until this server leads every group, and checks its keys.
async fn stand_alone(cluster: &Cluster, data: &DataDir) -> io::Result<()> {
    settle(cluster).await?;
    // A server that leads a group has made its first vote and entry durable.
    data.set_initialized().map_err(io::Error::other)?;
    check_ring(cluster).await?;
    cluster.begin_leading();
    Ok(())
}

/// Fails if rows need keys that the ring lacks: work that is due must not start without them.
async fn check_ring(cluster: &Cluster) -> io::Result<()> {
    let under = cluster.sealed_under().await.map_err(io::Error::other)?;
    check_keys(&under, &cluster.ring().ids()).map_err(io::Error::other)
}

/// Waits until this server leads every group, but those that have failed, and has applied what it had.
async fn settle(cluster: &Cluster) -> io::Result<()> {
    for shard in cluster.all() {
        let mut changes = shard.group().raft().metrics();
        loop {
            match shard.read().await {
                Ok(_) => break,
                Err(_) if shard.group().failed().is_some() => break,
                Err(Failure::Electing) => changes.changed().await.map_err(io::Error::other)?,
                Err(failure) => return Err(io::Error::other(failure)),
            }
        }
    }
    Ok(())
}

/// Begins to answer the other servers, and waits until the replicas can be read.
async fn take_part(cluster: &Cluster, data: &DataDir, member: &MemberOptions, count: u32) -> io::Result<()> {
    let is_known = data.is_initialized();
    let start = start_of(cluster, member)?;
    match start {
        MemberStart::FoundCluster => check_members(cluster, member.number).await?,
        MemberStart::Join { .. } | MemberStart::Resume if is_known => check_server(cluster, data, member)?,
        MemberStart::Join { .. } | MemberStart::Resume => {}
    }
    check_ring_here(cluster)?;
    cluster.begin_leading();
    cluster.begin_answering(member);
    // It may have to do this to have leaders at all.
    let announced = (start != MemberStart::FoundCluster)
        .then(|| tokio::spawn(members::Announcement::of(data, member).work(Arc::downgrade(&cluster.0))));
    let shards: Vec<_> = cluster.all().cloned().collect();
    let missing = members::ready(&shards, patience(&start, is_known)).await?;
    if !missing.is_empty() && !is_known {
        return Err(io::Error::other(format!("the groups {missing:?} have no leader")));
    }
    if !missing.is_empty() {
        tracing::warn!(groups = ?missing, "these groups have no leader yet; the server opens without them");
        // Some groups may have a leader, and so newer rows.
        return check_ring_here(cluster);
    }
    // If this server leads the catalogue, it decides nothing before.
    clock_watch::known(&cluster.0).await;
    if start == MemberStart::FoundCluster {
        begin_with_rows(cluster).await?;
        members::found(cluster.catalogue(), data, member, count).await?;
    }
    if let Some(announced) = announced {
        // If it takes longer, it goes on beside what the server does.
        let _in_time = tokio::time::timeout(JOIN_WAIT, announced).await;
    }
    // The next start must find the server's own row, whatever becomes of the log.
    let group = cluster.catalogue().group().clone();
    let written = blocking(move || group.checkpoint()).await;
    written.map_err(io::Error::other)??;
    data.set_initialized().map_err(io::Error::other)?;
    check_ring_if_led(cluster).await
}

/// Purges the logs of all groups: a restored server has rows that no entry of its log makes, and a server that joins must get
/// them with a snapshot.
async fn begin_with_rows(cluster: &Cluster) -> io::Result<()> {
    for shard in cluster.all() {
        if !scrub::purge(shard.group()).await? {
            let message = format!(
                "failed to purge the log of group {} in time; found the cluster again",
                shard.number()
            );
            return Err(io::Error::other(message));
        }
    }
    Ok(())
}

/// As [`check_ring`], or by the rows that this server has if a group has no leader any more.
async fn check_ring_if_led(cluster: &Cluster) -> io::Result<()> {
    match cluster.sealed_under().await {
        Ok(under) => check_keys(&under, &cluster.ring().ids()).map_err(io::Error::other),
        Err(Failure::Stopped) => Err(io::Error::other(Failure::Stopped)),
        Err(failure) => {
            tracing::warn!(%failure, "failed to read the newest rows; the keys are checked by this server's own");
            check_ring_here(cluster)
        }
    }
}

/// As [`check_ring`], by the rows that this server has: there may be no leader to ask for newer ones.
fn check_ring_here(cluster: &Cluster) -> io::Result<()> {
    let under = cluster.sealed_here().map_err(io::Error::other)?;
    check_keys(&under, &cluster.ring().ids()).map_err(io::Error::other)
}

/// How the member begins: a cluster is founded once, and its founder resumes as soon as its folder knows the map.
fn start_of(cluster: &Cluster, member: &MemberOptions) -> io::Result<MemberStart> {
    let is_founded = members::map(&cluster.catalogue().read_stale())?.is_some();
    match &member.start {
        MemberStart::FoundCluster if is_founded => Ok(MemberStart::Resume),
        start @ (MemberStart::FoundCluster | MemberStart::Join { .. } | MemberStart::Resume) => {
            Ok(start.clone())
        }
    }
}

fn patience(start: &MemberStart, is_known: bool) -> Duration {
    if is_known {
        return RESUME_READY_WAIT;
    }
    match start {
        MemberStart::FoundCluster => FOUND_READY_WAIT,
        MemberStart::Join { .. } | MemberStart::Resume => JOIN_READY_WAIT,
    }
}

/// Fails if the groups have members without this server: the folder was founded under another number.
async fn check_members(cluster: &Cluster, number: u64) -> io::Result<()> {
    for shard in cluster.all() {
        let wait = shard.group().raft().wait(Some(MEMBERSHIP_READ_WAIT));
        let known =
            wait.metrics(|now| now.membership_config.nodes().next().is_some(), "it has members").await;
        let now = known.map_err(io::Error::other)?;
        if !now.membership_config.nodes().any(|(node, _)| *node == number) {
            let message = "the groups of this data folder were begun under another number; a server alone founds a \
                           cluster as number 1";
            return Err(invalid(message.into()));
        }
    }
    Ok(())
}

/// Fails if the catalogue does not know this server, has removed it, or has a feature level that it does not know. Rows of an earlier moment are enough: the server's
/// own row was on disk before the folder counted as initialised.
fn check_server(cluster: &Cluster, data: &DataDir, member: &MemberOptions) -> io::Result<()> {
    let servers = members::servers(&cluster.catalogue().read_stale())?;
    let number = member.number;
    let Some(known) = servers.into_iter().find(|server| server.number == number) else {
        return Err(invalid(format!(
            "the data folder holds another server's rows, not those of server {number}"
        )));
    };
    if known.folder != data.identity().folder.0 {
        return Err(invalid(format!("server {number} of the cluster has another data folder")));
    }
    if let Some(map) = members::map(&cluster.catalogue().read_stale())? {
        member.levels.check(map.level).map_err(invalid)?;
    }
    match known.state {
        ServerState::Active | ServerState::Draining => Ok(()),
        ServerState::Removed => Err(invalid(format!(
            "server {number} was removed from the cluster; its number is not used again"
        ))),
    }
}

/// Opens the catalogue's group and `count` others. A group is initialised only if the folder is new: one that is gone
/// from an older folder has lost its votes and entries.
///
/// # Errors
/// A group cannot be opened, or is gone; those opened before are stopped.
async fn open_groups(
    options: &ClusterOptions,
    count: u32,
    log: &Arc<SegmentLog>,
    raft: Option<&Handle>,
) -> io::Result<Vec<Group>> {
    let states = StateStore::open(&options.data).map_err(io::Error::other)?;
    let snapshots = Snapshots::open(&options.data).map_err(io::Error::other)?;
    let cache_bytes = options.cache_bytes / (usize::try_from(count).unwrap_or(1) + 1);
    let begins = begins(options);
    let node = options.member.as_ref().map_or(ALONE, |member| member.number);
    // One for all groups: what is limited, such as streams to another server, is limited for all of them together.
    let peers = options.member.as_ref().map(|member| RaftPeers::new(node, Arc::clone(&member.transport)));
    let leaders = options.member.as_ref().map(|member| ToLeaders::over(Arc::clone(&member.transport)));
    let mut groups = Vec::new();
    for number in CATALOGUE..=u64::from(count) {
        let group = GroupOptions {
            group: GroupId(number),
            node,
            start: begins.start(node),
            log: Arc::clone(log) as Arc<dyn GroupLog>,
            states: states.clone(),
            snapshots: snapshots.clone(),
            cache_bytes,
            ring: options.ring.clone(),
            raft: options.member.as_ref().map_or_else(RaftSettings::default, |member| member.raft),
            retention: LogRetention::default(),
            levels: options.member.as_ref().map_or(Levels::OF_PROGRAM, |member| member.levels),
            leaders: leaders.clone(),
        };
        let opened = open_group(raft, group, options.member.as_ref(), peers.as_ref(), begins).await;
        match opened {
            Ok(group) => groups.push(group),
            Err(error) => {
                stop(&groups).await;
                return Err(error);
            }
        }
    }
    Ok(groups)
}

/// How the groups of a folder begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Begins {
    /// The groups are new.
    New,
    /// The groups exist here.
    Again,
    /// The groups exist on other servers, and perhaps here.
    Elsewhere,
}

impl Begins {
    fn start(self, node: u64) -> GroupStart {
        match self {
            Self::New => GroupStart::Initialize(vec![node]),
            Self::Again | Self::Elsewhere => GroupStart::Join,
        }
    }
}

fn begins(options: &ClusterOptions) -> Begins {
    if options.data.is_initialized() {
        return Begins::Again;
    }
    match options.member.as_ref().map(|member| &member.start) {
        None | Some(MemberStart::FoundCluster) => Begins::New,
        Some(MemberStart::Join { .. } | MemberStart::Resume) => Begins::Elsewhere,
    }
}

async fn opened<N>(raft: Option<&Handle>, options: GroupOptions, network: N) -> io::Result<Group>
where
    N: RaftNetworkFactory<TypeConfig>,
    N::Network: NetSnapshot<TypeConfig, SnapshotData = SnapshotSource>,
{
    match raft {
        Some(raft) => Group::open_on(raft, options, network).await,
        None => Group::open(options, network).await,
    }
}

/// Opens one group, and makes it reachable for the other servers.
async fn open_group(
    raft: Option<&Handle>,
    options: GroupOptions,
    member: Option<&MemberOptions>,
    peers: Option<&RaftPeers>,
    begins: Begins,
) -> io::Result<Group> {
    let id = options.group;
    let group = match peers {
        None => opened(raft, options, NoPeers).await?,
        Some(peers) => opened(raft, options, peers.network(id)).await?,
    };
    // A replica that fails while it replays its log is opened all the same: it says that it has failed.
    let may_be_new = begins == Begins::Elsewhere || group.failed().is_some();
    if !may_be_new && !group.is_initialized().await? {
        stop(std::slice::from_ref(&group)).await;
        let number = id.0;
        return Err(invalid(format!(
            "group {number} is gone from the data folder: it has neither a vote nor an entry"
        )));
    }
    if let Some(member) = member {
        member.handler.raft().register(id, &group);
    }
    Ok(group)
}
