//! The members of the cluster, which change as in the product: an operator's commands change the catalogue's map, and the leaders
//! make the groups follow it.

use openraft::async_runtime::WatchReceiver;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use switchward_machine::TenantId;
use switchward_shard::{Cluster, GroupStart};
use switchward_state::catalogue::{CatalogueCommand, FoundCluster, JoinServer, ServerState, SetServerState};
use switchward_state::{Body, Command, Levels, Scope};
use switchward_testkit::Rng;

use crate::callers::Callers;
use crate::disk::End;
use crate::network::Blocked;
use crate::server::{GROUPS, Server, address};
use crate::simulation::Simulation;

/// The server that founds the cluster.
pub(crate) const FOUNDER: u64 = 1;

/// The id of the cluster.
const CLUSTER: [u8; 16] = [7; 16];
/// How long a change of members may take, milliseconds: a server counts as lost after ten seconds.
const CHANGE_WAIT: u64 = 45_000;
/// How often an operator tries something that is refused now.
const TRIES_MAX: usize = 200;
/// How often somebody tries to move a leader.
const MOVE_TRIES_MAX: usize = 3;
/// Until a server that was started is connected and follows, milliseconds.
const LOSS_PAUSE: u64 = 400;
/// Until another leader is elected and entries are acknowledged, milliseconds.
const LOSS_LASTS: u64 = 2_000;

/// How the members change in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// As many servers from the beginning to the end.
    Fixed(u32),
    /// One server, then three, then five, then three.
    Growing,
    /// Three servers, one of which loses what it has acknowledged and is replaced.
    Replacing(Loss),
}

/// How a server loses what it has acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loss {
    /// Its disk is empty.
    Wiped,
    /// Its disk is an earlier copy.
    Restored,
}

/// A change of members, between two parts of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    /// These servers join.
    Add(Vec<u64>),
    /// These servers are drained and removed, leaders of some groups perhaps.
    Remove([u64; 2]),
    /// A server loses what it has acknowledged, starts again under its old number, and is replaced by this one.
    Replace(u64, Loss, u64),
}

/// What an operator has a server do.
#[derive(Debug, Clone)]
enum Order {
    FoundCluster(FoundCluster),
    Join(JoinServer),
    Drain(u64),
    Remove(u64),
    Replace { lost: u64, by: u64 },
    Lead { group: u64, to: u64 },
}

impl Shape {
    pub(crate) fn draw(rng: &mut Rng) -> Self {
        match rng.below(8) {
            0 => Self::Fixed(5),
            1 | 2 => Self::Growing,
            3 => Self::Replacing(Loss::Wiped),
            4 => Self::Replacing(Loss::Restored),
            _ => Self::Fixed(3),
        }
    }

    /// The servers of the beginning.
    pub(crate) fn founders(self) -> Vec<u64> {
        match self {
            Self::Fixed(count) => (1..=u64::from(count)).collect(),
            Self::Growing => vec![FOUNDER],
            Self::Replacing(_) => vec![1, 2, 3],
        }
    }

    /// The most voters of a group.
    fn voters_max(self) -> u32 {
        match self {
            Self::Fixed(count) => count,
            Self::Growing => 5,
            Self::Replacing(_) => 3,
        }
    }

    /// What changes, one after the other.
    pub(crate) fn changes(self, rng: &mut Rng) -> Vec<Change> {
        match self {
            Self::Fixed(_) => Vec::new(),
            Self::Growing => {
                let first = rng.between(1, 5);
                let second = (first + rng.between(0, 3)) % 5 + 1;
                vec![Change::Add(vec![2, 3]), Change::Add(vec![4, 5]), Change::Remove([first, second])]
            }
            Self::Replacing(loss) => vec![Change::Replace(rng.between(1, 3), loss, 4)],
        }
    }
}

/// Has the first server found the cluster and the others join it, and gives each group some leader. Returns false if that
/// cannot be done in time.
pub(crate) fn found(simulation: &mut Simulation) -> bool {
    let members: BTreeSet<u64> = simulation.servers.iter().map(|server| server.node).collect();
    let found = FoundCluster {
        cluster: CLUSTER,
        server: joining(simulation, FOUNDER),
        shards: GROUPS - 1,
        voters: simulation.shape.voters_max(),
    };
    if !order(simulation, Order::FoundCluster(found)) {
        return false;
    }
    let others = members.iter().copied().filter(|node| *node != FOUNDER);
    if !others.into_iter().all(|node| join(simulation, node)) || !settled(simulation, &members) {
        return false;
    }
    let nodes: Vec<u64> = members.into_iter().collect();
    for group in 0..GROUPS {
        let to = *simulation.rng.pick(&nodes);
        if simulation.leader(group).is_none_or(|(leader, _)| leader != to) {
            // Where the leader stays, the run goes on all the same.
            let _moved = order(simulation, Order::Lead { group, to });
        }
    }
    true
}

/// Changes the members. Returns false if that cannot be done in time.
pub(crate) fn change(simulation: &mut Simulation, change: &Change) -> bool {
    simulation.timeline.note(format_args!("members: {change:?}"));
    let mut members: BTreeSet<u64> = simulation.servers.iter().map(|server| server.node).collect();
    match *change {
        Change::Add(ref nodes) => {
            nodes.iter().for_each(|node| add(simulation, *node));
            members.extend(nodes);
            simulation.timeline.count("servers added");
            nodes.iter().all(|node| join(simulation, *node)) && settled(simulation, &members)
        }
        Change::Remove(nodes) => {
            members.retain(|member| !nodes.contains(member));
            simulation.callers.members.lock().retain(|member| !nodes.contains(member));
            simulation.timeline.count("servers removed");
            let gone = nodes.map(Order::Drain).into_iter().chain(nodes.map(Order::Remove));
            let is_done = gone.into_iter().all(|it| order(simulation, it)) && settled(simulation, &members);
            nodes.iter().for_each(|node| forget(simulation, *node));
            is_done
        }
        Change::Replace(lost, loss, by) => {
            lose(simulation, lost, loss);
            // An operator has turned it off.
            forget(simulation, lost);
            add(simulation, by);
            members.remove(&lost);
            members.insert(by);
            simulation.timeline.count("servers replaced");
            join(simulation, by)
                && order(simulation, Order::Replace { lost, by })
                && settled(simulation, &members)
        }
    }
}

/// A server of three loses what it has acknowledged, together with a server that is cut off next. The third has lacked it:
/// with the one that has lost it, it would be a majority.
fn lose(simulation: &mut Simulation, lost: u64, loss: Loss) {
    let mut others: Vec<u64> =
        simulation.servers.iter().map(|server| server.node).filter(|node| *node != lost).collect();
    let first = simulation.rng.below(others.len());
    others.rotate_left(first);
    let (ahead, behind) = (others[0], others[1]);
    let copied = match loss {
        Loss::Wiped => None,
        Loss::Restored => Some(simulation.server(lost).copy()),
    };
    if copied.is_some() {
        // It starts twice: of a copy that was started as often as its original, the boot counter says nothing.
        simulation.server(lost).start();
        simulation.pass(LOSS_PAUSE);
        simulation.server(lost).end(End::Killed);
        simulation.server(lost).start();
        simulation.pass(LOSS_PAUSE);
    }
    cut_off(simulation, behind);
    simulation.pass(LOSS_LASTS);
    simulation.callers.members.lock().retain(|member| *member != lost);
    match copied {
        None => simulation.server(lost).wipe(),
        Some(copied) => simulation.server(lost).restore(copied),
    }
    simulation.network.heal();
    cut_off(simulation, ahead);
    simulation.server(lost).start();
    simulation.pass(LOSS_LASTS);
    simulation.network.heal();
    simulation.pass(LOSS_PAUSE);
}

fn cut_off(simulation: &Simulation, node: u64) {
    for other in simulation.servers.iter().map(|server| server.node).filter(|other| *other != node) {
        simulation.network.block(node, other, Blocked::Noticed);
        simulation.network.block(other, node, Blocked::Noticed);
    }
}

/// Starts a new server.
fn add(simulation: &mut Simulation, node: u64) {
    let mut server = Server::new(node, &simulation.network, &simulation.setting, GroupStart::Join);
    server.start();
    simulation.servers.push(server);
}

/// Ends a server for good.
fn forget(simulation: &mut Simulation, node: u64) {
    simulation.server(node).end(End::Killed);
    simulation.forget(node);
}

/// What a server that runs says of itself.
fn joining(simulation: &Simulation, node: u64) -> JoinServer {
    let folder = simulation.network.endpoint(node).unwrap().data.identity().folder;
    JoinServer { number: node, folder: folder.0, address: address(node), levels: Levels::OF_PROGRAM }
}

fn join(simulation: &mut Simulation, node: u64) -> bool {
    let joining = joining(simulation, node);
    order(simulation, Order::Join(joining))
}

/// Has some server carry out an order, as often as it is refused. Returns false if it is not carried out in time.
fn order(simulation: &mut Simulation, order: Order) -> bool {
    let tries = if matches!(order, Order::Lead { .. }) { MOVE_TRIES_MAX } else { TRIES_MAX };
    let what = format!("{order:?}");
    let is_done = Arc::new(AtomicBool::new(false));
    let done = Arc::clone(&is_done);
    let ended = simulation.task(|callers| async move {
        done.store(insist(callers, order, tries).await, Ordering::Relaxed);
    });
    let _in_time = simulation.comes(CHANGE_WAIT, |_| ended.load(Ordering::Relaxed));
    let is_done = is_done.load(Ordering::Relaxed);
    simulation.timeline.note(format_args!("{what}: {is_done}"));
    is_done
}

async fn insist(callers: Callers, order: Order, tries: usize) -> bool {
    for _ in 0..tries {
        let order = order.clone();
        let carried_out = callers.at(callers.server(), |cluster| carry_out(cluster, order)).await;
        if let Ok(Ok(())) = carried_out {
            return true;
        }
        callers.pause(100, 300).await;
    }
    false
}

/// Carries out an order as the API does: what the servers report is checked first, and the catalogue refuses the command if
/// the servers have changed since.
async fn carry_out(cluster: Cluster, order: Order) -> Result<(), String> {
    cluster.catalogue().read().await.map_err(text)?;
    let status = cluster.status().await.map_err(text)?;
    let set = |number, state, replaced_by| {
        let epoch = Some(status.epoch);
        CatalogueCommand::SetServerState(SetServerState { number, state, replaced_by, epoch })
    };
    let command = match order {
        Order::FoundCluster(found) => CatalogueCommand::FoundCluster(found),
        Order::Join(joining) => CatalogueCommand::JoinServer(joining),
        Order::Drain(node) => {
            status.check_drain(node).map_err(text)?;
            set(node, ServerState::Draining, None)
        }
        Order::Remove(node) => {
            status.check_remove(node).map_err(text)?;
            set(node, ServerState::Removed, None)
        }
        Order::Replace { lost, by } => {
            if status.servers.iter().any(|server| server.number == lost && server.replaced_by == Some(by)) {
                return Ok(());
            }
            status.check_replace(lost, by).map_err(text)?;
            set(lost, ServerState::Draining, Some(by))
        }
        Order::Lead { group, to } => return cluster.hand_over(group, Some(to)).await.map(drop).map_err(text),
    };
    let command = Command::of_server(TenantId(0), Scope::Catalogue, Body::Catalogue(command));
    cluster.execute(command).await.map(drop).map_err(text)
}

fn text(error: impl ToString) -> String {
    error.to_string()
}

/// Waits until all groups have these members, and as many voters as they should.
fn settled(simulation: &mut Simulation, members: &BTreeSet<u64>) -> bool {
    let seats = members.len().min(simulation.shape.voters_max() as usize);
    // An even number survives no more failures than one less.
    let voters = seats - usize::from(seats.is_multiple_of(2));
    let all = |simulation: &Simulation| (0..GROUPS).all(|group| has(simulation, group, members, voters));
    let is_settled = simulation.comes(CHANGE_WAIT, all);
    *simulation.callers.members.lock() = members.iter().copied().collect();
    is_settled
}

/// Returns true if the leader of a group knows these members as committed, this number of which votes.
fn has(simulation: &Simulation, group: u64, members: &BTreeSet<u64>, voters: usize) -> bool {
    let Some((_, cluster)) = simulation.leader(group) else { return false };
    let Some(shard) = cluster.all().find(|shard| shard.number() == group) else { return false };
    let now = shard.group().raft().metrics().borrow_watched().clone();
    let known = now.committed_membership_config;
    let nodes: BTreeSet<u64> = known.nodes().map(|(node, _)| *node).collect();
    known.get_joint_config().len() == 1 && known.voter_ids().count() == voters && nodes == *members
}
