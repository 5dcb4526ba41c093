//! Servers that are added to the groups, removed from them, and replaced after their disks were lost.

use openraft::BasicNode;
use openraft::async_runtime::WatchReceiver;
use std::collections::BTreeSet;
use switchward_shard::{GroupStart, Raft};
use switchward_testkit::Rng;

use crate::disk::End;
use crate::network::Blocked;
use crate::server::{GROUPS, Server};
use crate::simulation::Simulation;

/// How long a change of members may take, milliseconds.
const CHANGE_WAIT: u64 = 30_000;
/// How often it is tried again, milliseconds.
const CHANGE_AGAIN: u64 = 1_500;
/// Until a server that was started is connected and follows, milliseconds.
const LOSS_PAUSE: u64 = 400;
/// Until another leader is elected and entries are acknowledged, milliseconds.
const LOSS_LASTS: u64 = 2_000;

/// How the members change in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// As many servers from the beginning to the end.
    Fixed(u64),
    /// One server, then three, then five, then four.
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
    /// These servers are added.
    Add(Vec<u64>),
    /// A server is removed, the leader of some groups perhaps.
    Remove(u64),
    /// A server loses what it has acknowledged, starts again under its old number, and is replaced by this one.
    Replace(u64, Loss, u64),
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
            Self::Fixed(count) => (1..=count).collect(),
            Self::Growing => vec![1],
            Self::Replacing(_) => vec![1, 2, 3],
        }
    }

    /// What changes, one after the other.
    pub(crate) fn changes(self, rng: &mut Rng) -> Vec<Change> {
        match self {
            Self::Fixed(_) => Vec::new(),
            Self::Growing => {
                vec![Change::Add(vec![2, 3]), Change::Add(vec![4, 5]), Change::Remove(rng.between(1, 5))]
            }
            Self::Replacing(loss) => vec![Change::Replace(rng.between(1, 3), loss, 4)],
        }
    }
}

/// Changes the members. Returns false if that cannot be done in time.
pub(crate) fn change(simulation: &mut Simulation, change: &Change) -> bool {
    simulation.timeline.note(format_args!("members: {change:?}"));
    let mut members: BTreeSet<u64> = simulation.servers.iter().map(|server| server.node).collect();
    match *change {
        Change::Add(ref nodes) => {
            for node in nodes {
                add(simulation, *node);
            }
            members.extend(nodes);
            simulation.timeline.count("servers added");
            agreed(simulation, &members, None)
        }
        Change::Remove(node) => {
            members.remove(&node);
            simulation.callers.members.lock().retain(|member| *member != node);
            simulation.timeline.count("servers removed");
            agreed(simulation, &members, Some(node))
        }
        Change::Replace(lost, loss, new) => {
            lose(simulation, lost, loss);
            add(simulation, new);
            members.remove(&lost);
            members.insert(new);
            simulation.timeline.count("servers replaced");
            agreed(simulation, &members, Some(lost))
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

fn add(simulation: &mut Simulation, node: u64) {
    let mut server = Server::new(node, &simulation.network, &simulation.setting, GroupStart::Join);
    server.start();
    simulation.servers.push(server);
}

/// Waits until these are the members of all groups. A server that is none of them any longer ends.
fn agreed(simulation: &mut Simulation, members: &BTreeSet<u64>, left: Option<u64>) -> bool {
    let until = simulation.timeline.now() + CHANGE_WAIT;
    loop {
        let open: Vec<u64> = (0..GROUPS).filter(|group| !has(simulation, *group, members)).collect();
        if open.is_empty() {
            break;
        }
        if simulation.timeline.now() > until || simulation.is_over() {
            return false;
        }
        for group in open {
            propose(simulation, group, members.clone());
        }
        simulation.pass(CHANGE_AGAIN);
    }
    if let Some(left) = left {
        simulation.server(left).end(End::Killed);
        simulation.servers.retain(|server| server.node != left);
    }
    *simulation.callers.members.lock() = members.iter().copied().collect();
    true
}

/// Returns true if the leader of a group knows these members as committed.
fn has(simulation: &Simulation, group: u64, members: &BTreeSet<u64>) -> bool {
    let Some(raft) = raft(simulation, group).map(|(_, raft)| raft) else { return false };
    let now = raft.metrics().borrow_watched().clone();
    let known = now.committed_membership_config;
    known.get_joint_config().len() == 1 && known.voter_ids().collect::<BTreeSet<u64>>() == *members
}

fn raft(simulation: &Simulation, group: u64) -> Option<(u64, Raft)> {
    let (node, cluster) = simulation.leader(group)?;
    let shard = cluster.all().find(|shard| shard.number() == group)?;
    Some((node, shard.group().raft().clone()))
}

/// Has the leader of a group change its members.
fn propose(simulation: &mut Simulation, group: u64, members: BTreeSet<u64>) {
    let Some((leader, raft)) = raft(simulation, group) else { return };
    simulation.server(leader).spawn(async move {
        let known: BTreeSet<u64> = {
            let now = raft.metrics().borrow_watched().clone();
            now.membership_config.nodes().map(|(node, _)| *node).collect()
        };
        for node in members.difference(&known) {
            if raft.add_learner(*node, BasicNode::default(), true).await.is_err() {
                // It is tried again.
                return;
            }
        }
        let _tried_again = raft.change_membership(members, false).await;
    });
}
