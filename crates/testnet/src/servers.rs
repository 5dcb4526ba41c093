//! Three servers as one cluster, each with a replica of every group. Leaders are spread over the servers.

use std::io;
use std::path::Path;
use std::sync::Arc;
use switchward_shard::{
    Clock, Cluster, Failure, Group, GroupOptions, GroupStart, LogRetention, MemberHandler, MemberOptions,
    MemberStart, RaftSettings, ToLeaders,
};
use switchward_state::Levels;
use switchward_state::catalogue::JoinServer;
use switchward_state::seal::KeyRing;
use switchward_store::{DataDir, GroupId, GroupLog, LogOptions, SegmentLog, Snapshots, StateStore};
use tokio::runtime::Handle;

use crate::network::Network;

/// The numbers of the servers.
const NODES: [u64; 3] = [1, 2, 3];

/// How the three servers are opened.
pub struct ServerOptions<'o> {
    /// Holds a data folder for each server.
    pub folder: &'o Path,
    /// The number of shards besides the catalogue.
    pub shards: u64,
    /// Clean rows that each group keeps in memory, bytes.
    pub cache_bytes: usize,
    /// The clock of each server.
    pub clocks: [Arc<dyn Clock>; 3],
    /// Opens the secrets in the rows.
    pub ring: KeyRing,
    /// Timing.
    pub raft: RaftSettings,
    /// Called with the line that a server would end with.
    pub on_fatal: Arc<dyn Fn(&str) + Send + Sync>,
}

/// One of the servers.
#[derive(Clone)]
pub struct Server {
    /// Its number.
    pub node: u64,
    /// Its shards.
    pub cluster: Cluster,
    /// What it says of itself when it joins a cluster.
    pub join: JoinServer,
}

/// The files of a server.
struct Opened {
    folder: [u8; 16],
    log: Arc<SegmentLog>,
    states: StateStore,
    snapshots: Snapshots,
    groups: Vec<Group>,
}

/// Opens three servers on new data folders, and waits until each of them reaches a leader of every group. No catalogue knows
/// of them.
///
/// # Errors
/// A folder cannot be written.
pub async fn open(options: &ServerOptions<'_>, network: &Network) -> io::Result<Vec<Server>> {
    let mut servers = Vec::new();
    for ((node, one), clock) in NODES.into_iter().zip(groups(options, network).await?).zip(&options.clocks) {
        let join = join_of(node, &one);
        let cluster = Cluster::of_groups(one.groups, Arc::clone(clock), one.log, on_fatal(options))?;
        network.answer(node, &cluster);
        servers.push(Server { node, cluster, join });
    }
    reach_leaders(&servers).await?;
    Ok(servers)
}

/// The same with servers that follow the catalogue: the caller founds the cluster, and has it admit them, all at one time,
/// because all of them vote already.
///
/// # Errors
/// A folder cannot be written.
pub async fn open_members(options: &ServerOptions<'_>, network: &Network) -> io::Result<Vec<Server>> {
    let handlers = NODES.map(|_| Arc::<MemberHandler>::default());
    for (node, handler) in NODES.into_iter().zip(&handlers) {
        network.attach(node, Arc::clone(handler), Handle::current());
    }
    let opened = groups(options, network).await?;
    let mut servers = Vec::new();
    for (((node, one), clock), handler) in NODES.into_iter().zip(opened).zip(&options.clocks).zip(handlers) {
        let join = join_of(node, &one);
        let member = MemberOptions {
            number: node,
            transport: network.transport(node),
            handler,
            address: join.address.clone(),
            start: MemberStart::Resume,
            voters: u32::try_from(NODES.len()).unwrap(),
            runtime: None,
            raft: options.raft,
            levels: join.levels,
        };
        let cluster = Cluster::of_member(one.groups, Arc::clone(clock), one.log, on_fatal(options), &member)?;
        servers.push(Server { node, cluster, join });
    }
    reach_leaders(&servers).await?;
    Ok(servers)
}

/// Opens every group of each server. All servers vote in all groups, and lead them in turn.
async fn groups(options: &ServerOptions<'_>, network: &Network) -> io::Result<Vec<Opened>> {
    let mut opened: Vec<Opened> =
        NODES.iter().map(|node| files(options, *node)).collect::<io::Result<_>>()?;
    for group in (0..=options.shards).map(GroupId) {
        // The server that initialises a group leads it: by then, the others can be reached.
        let first = usize::try_from(group.0).unwrap() % NODES.len();
        for at in (0..NODES.len()).filter(|at| *at != first).chain([first]) {
            let start = if at == first { GroupStart::Initialize(NODES.to_vec()) } else { GroupStart::Join };
            let one = &opened[at];
            let group_options = GroupOptions {
                group,
                node: NODES[at],
                start,
                log: Arc::clone(&one.log) as Arc<dyn GroupLog>,
                states: one.states.clone(),
                snapshots: one.snapshots.clone(),
                cache_bytes: options.cache_bytes,
                ring: options.ring.clone(),
                raft: options.raft,
                leaders: Some(ToLeaders::over(network.transport(NODES[at]))),
                retention: LogRetention::default(),
                levels: Levels::OF_PROGRAM,
            };
            let replica = Group::open(group_options, network.of(NODES[at], group)).await?;
            network.join(NODES[at], group, &replica);
            opened[at].groups.push(replica);
        }
    }
    Ok(opened)
}

fn on_fatal(options: &ServerOptions<'_>) -> Box<dyn Fn(&str) + Send + Sync> {
    let report = Arc::clone(&options.on_fatal);
    Box::new(move |line: &str| report(line))
}

fn join_of(number: u64, opened: &Opened) -> JoinServer {
    let address = format!("10.0.0.{number}:7401");
    JoinServer { number, folder: opened.folder, address, levels: Levels::OF_PROGRAM }
}

fn files(options: &ServerOptions<'_>, node: u64) -> io::Result<Opened> {
    let data = DataDir::open(options.folder.join(format!("server-{node}"))).map_err(io::Error::other)?;
    let report = Arc::clone(&options.on_fatal);
    let on_fatal = Box::new(move |error: &switchward_store::StoreError| report(&error.to_string()));
    let log = SegmentLog::open(&data, LogOptions { on_fatal, sync_fault: None }).map_err(io::Error::other)?;
    Ok(Opened {
        folder: data.identity().folder.0,
        log: Arc::new(log),
        states: StateStore::open(&data).map_err(io::Error::other)?,
        snapshots: Snapshots::open(&data).map_err(io::Error::other)?,
        groups: Vec::new(),
    })
}

async fn reach_leaders(servers: &[Server]) -> io::Result<()> {
    for shard in servers.iter().flat_map(|server| server.cluster.all()) {
        while let Err(failure) = shard.read().await {
            if failure != Failure::Electing {
                return Err(io::Error::other(failure));
            }
        }
    }
    Ok(())
}
