//! How faults are injected, and how it is seen that they had an effect.

use openraft::RaftMetrics;
use openraft::async_runtime::WatchReceiver;
use openraft::type_config::alias::LogIdOf;
use std::time::Duration;
use switchward_shard::{Cluster, Shard, TypeConfig};

use crate::disk::{End, MemoryLog};
use crate::network::{Blocked, GOOD, Quality};
use crate::plan::{Fault, Step};
use crate::simulation::Simulation;

/// Until a clock is believed that was set, and runs slower by more than servers overlook if it is behind, milliseconds.
const BELIEVED: u64 = 17 * 60_000;
/// How long a server with a wrong clock may lead, milliseconds.
const BARRED_WITHIN: u64 = 8_000;
/// How far a clock may be from the right time that does not follow its machine's, milliseconds.
const CLOCK_ERROR_MAX: u64 = 20;

/// Until another leader is elected, milliseconds.
const ELECTION: u64 = 1_100;
/// How long a fault of a leader waits for one, milliseconds: longer than any group is without a leader when nothing fails.
const LED_WITHIN: u64 = 10_000;
/// How often a fault of a leader is tried that had no effect.
const TRIES: usize = 3;
/// Until a leader has handed over, milliseconds: as long as the product waits, and a bare transfer after it.
const HANDED_OVER_WITHIN: u64 = 6_000;
/// How long an election may take after a bare transfer.
const BARE_TRANSFER: Duration = Duration::from_secs(1);

/// What is counted when a leader has handed over, when a server loses its power that has not synced its vote, and for each
/// millisecond in which a server runs and stands still.
const HANDED_OVER: &str = "leaders handed over";
const AT_STAKE: &str = "votes at stake";
pub(crate) const STOOD_STILL: &str = "milliseconds that servers stood still";

/// Begins a fault.
pub(crate) fn begin(simulation: &mut Simulation, step: Step) {
    let until = simulation.timeline.now() + step.lasts;
    match step.fault {
        Fault::Isolate(node, how) => {
            block(simulation, how, |from, to| from == node || to == node);
            if how == Blocked::Noticed {
                lose(simulation, |from, to| from == node || to == node);
            }
        }
        Fault::Behind(node) => block(simulation, Blocked::Silent, |from, to| from == node || to == node),
        Fault::Deaf(node) => block(simulation, Blocked::Silent, |_, to| to == node),
        Fault::Mute(node) => block(simulation, Blocked::Silent, |from, _| from == node),
        Fault::Shatter(how) => block(simulation, how, |_, _| true),
        Fault::Kill(node) => kill(simulation, node),
        Fault::PowerCut(node) => simulation.server(node).end(End::Cut),
        Fault::PowerCutOfAll => simulation.servers.iter_mut().for_each(|server| server.end(End::Cut)),
        Fault::Stall(node) => stall(simulation, until + 1_000, |server| server == node),
        Fault::StallOfMost(node) => stall(simulation, until, |server| server != node),
        Fault::SyncError(node) => {
            if let Some(log) = simulation.server(node).log() {
                log.fail();
            }
        }
        Fault::Transfer(group) => insist(simulation, HANDED_OVER, |it| transfer(it, group)),
        Fault::LostVotes(group) => insist(simulation, AT_STAKE, |it| lose_votes(it, group)),
        Fault::Pause(group) => pause(simulation, group, step.lasts),
        Fault::Breaks => simulation.network.set_quality(Quality { lost_in: 12, ..GOOD }),
        Fault::Repeats => simulation.network.set_quality(Quality { twice_in: 4, late_in: 6, ..GOOD }),
        Fault::Slow => {
            let slow = Quality { delay_max: 25, late_in: 8, late_max: 400, ..GOOD };
            simulation.network.set_quality(slow);
        }
        Fault::ClockSet(node, wrong_by) => set_clock(simulation, node, wrong_by),
        Fault::ClockBelieved(node, wrong_by) => {
            set_clock(simulation, node, wrong_by);
            simulation.lapse(BELIEVED);
        }
        Fault::ClockAtStart(node, wrong_by) => {
            let how = if simulation.rng.once_in(2) { End::Killed } else { End::Cut };
            simulation.server(node).end(how);
            set_clock(simulation, node, wrong_by);
            simulation.server(node).start();
        }
    }
}

/// Ends a fault.
pub(crate) fn end(simulation: &mut Simulation, fault: Fault) {
    match fault {
        Fault::Isolate(..) | Fault::Deaf(_) | Fault::Mute(_) | Fault::Shatter(_) | Fault::LostVotes(_) => {
            simulation.network.heal();
        }
        Fault::Kill(node) | Fault::PowerCut(node) => {
            let server = simulation.server(node);
            if !server.runs() {
                server.start();
            }
        }
        Fault::PowerCutOfAll => {
            for server in simulation.servers.iter_mut().filter(|server| !server.runs()) {
                server.start();
            }
        }
        Fault::Behind(node) => {
            purge(simulation, node);
            simulation.pass(300);
            simulation.network.heal();
            simulation.pass(1_500);
        }
        Fault::Breaks | Fault::Repeats | Fault::Slow => simulation.network.set_quality(GOOD),
        Fault::ClockSet(node, _) => {
            follows_nothing(simulation, node);
            simulation.server(node).set_clock(0);
        }
        Fault::ClockBelieved(node, _) | Fault::ClockAtStart(node, _) => {
            leads_nothing(simulation, node);
            simulation.server(node).end(End::Killed);
            simulation.server(node).set_clock(0);
            simulation.server(node).start();
        }
        Fault::Stall(_) | Fault::StallOfMost(_) => {}
        Fault::SyncError(_) | Fault::Transfer(_) | Fault::Pause(_) => {}
    }
}

/// A number that rises when a fault of this kind has an effect.
pub(crate) fn evidence(simulation: &Simulation, fault: Fault) -> u64 {
    let counted = |what| simulation.timeline.counted(what);
    match fault {
        Fault::Isolate(..) | Fault::Deaf(_) | Fault::Mute(_) | Fault::Shatter(_) => {
            counted("messages blocked")
        }
        Fault::Kill(_) | Fault::PowerCut(_) | Fault::PowerCutOfAll => {
            simulation.servers.iter().map(|server| u64::from(server.starts)).sum()
        }
        Fault::Stall(_) | Fault::StallOfMost(_) => counted("syncs stalled"),
        Fault::SyncError(_) => counted("syncs failed"),
        Fault::Transfer(_) => counted(HANDED_OVER),
        Fault::Breaks => counted("connections broken"),
        Fault::Repeats => counted("messages repeated"),
        Fault::Slow => counted("messages late"),
        Fault::Behind(_) => counted("logs purged"),
        Fault::ClockSet(..) => counted("wrong clocks read"),
        Fault::ClockBelieved(..) | Fault::ClockAtStart(..) => counted("servers barred"),
        Fault::LostVotes(_) => counted(AT_STAKE),
        Fault::Pause(_) => counted(STOOD_STILL),
    }
}

/// Returns true if a fault has its effect when something else happens, and not by itself or at its end.
pub(crate) fn waits(fault: Fault) -> bool {
    match fault {
        Fault::SyncError(_) | Fault::Transfer(_) | Fault::Breaks | Fault::Repeats | Fault::Slow => true,
        Fault::Isolate(..) | Fault::Deaf(_) | Fault::Mute(_) | Fault::Shatter(_) => true,
        Fault::Stall(_) | Fault::StallOfMost(_) => false,
        Fault::Kill(_) | Fault::PowerCut(_) | Fault::PowerCutOfAll => false,
        Fault::Behind(_) | Fault::LostVotes(_) | Fault::Pause(_) => false,
        Fault::ClockSet(..) | Fault::ClockBelieved(..) | Fault::ClockAtStart(..) => false,
    }
}

fn block(simulation: &Simulation, how: Blocked, which: impl Fn(u64, u64) -> bool) {
    let nodes: Vec<u64> = simulation.servers.iter().map(|server| server.node).collect();
    for (from, to) in nodes.iter().flat_map(|from| nodes.iter().map(move |to| (*from, *to))) {
        if from != to && which(from, to) {
            simulation.network.block(from, to, how);
        }
    }
}

/// Lets syncs of some servers take until then.
fn stall(simulation: &Simulation, until: u64, which: impl Fn(u64) -> bool) {
    for server in simulation.servers.iter().filter(|server| which(server.node)) {
        if let Some(log) = server.log() {
            log.stall(until);
        }
    }
}

/// Kills the process of a server. The others notice that nothing listens any more.
pub(crate) fn kill(simulation: &mut Simulation, node: u64) {
    simulation.server(node).end(End::Killed);
    lose(simulation, |_, to| to == node);
}

/// Servers notice that others cannot be reached any more; those which still reach them do not.
fn lose(simulation: &Simulation, which: impl Fn(u64, u64) -> bool) {
    let nodes: Vec<u64> = simulation.servers.iter().map(|server| server.node).collect();
    for server in &simulation.servers {
        for to in nodes.iter().filter(|to| **to != server.node && which(server.node, **to)) {
            server.lose(*to);
            simulation.timeline.count("servers lost");
        }
    }
}

/// Sets the clock of a server's machine.
fn set_clock(simulation: &mut Simulation, node: u64, wrong_by: i64) {
    simulation.server(node).set_clock(wrong_by);
    simulation.timeline.count(if wrong_by < 0 { "clocks set back" } else { "clocks set ahead" });
}

/// A server's own clock must not have followed its machine's, which was set just now.
fn follows_nothing(simulation: &mut Simulation, node: u64) {
    let error = simulation.server(node).clock_error().unwrap_or(0);
    if error > CLOCK_ERROR_MAX {
        simulation.object(format!("server {node} has followed its machine's clock, and is {error} ms off"));
    }
}

/// A server whose clock differs from all others' must be barred from leading soon, and lead nothing.
fn leads_nothing(simulation: &mut Simulation, node: u64) {
    let found = |simulation: &Simulation| {
        let cluster = simulation.open().find(|(open, _)| *open == node)?.1;
        let leads: Vec<u64> = cluster.all().filter(|shard| shard.leads()).map(Shard::number).collect();
        Some((cluster.clock_agreement(), leads))
    };
    let is_barred = |simulation: &Simulation| {
        found(simulation).is_some_and(|(agreement, leads)| agreement.bars_from_leading() && leads.is_empty())
    };
    if simulation.comes(BARRED_WITHIN, is_barred) {
        simulation.timeline.count("servers barred");
    } else if !simulation.is_over() {
        let found = found(simulation);
        simulation.object(format!("server {node} has a wrong clock, and may lead: {found:?}"));
    }
}

/// The server that leads a group; waits for one while others elect it. `None` if none comes: the fault has no effect then.
fn led(simulation: &mut Simulation, group: u64) -> Option<(u64, Cluster)> {
    simulation.comes(LED_WITHIN, |it| it.leader(group).is_some());
    simulation.leader(group)
}

/// Tries a fault again until something is counted that shows its effect.
fn insist(simulation: &mut Simulation, effect: &'static str, mut inject: impl FnMut(&mut Simulation)) {
    let before = simulation.timeline.counted(effect);
    for _ in 0..TRIES {
        inject(simulation);
        if simulation.timeline.counted(effect) > before || simulation.is_over() {
            return;
        }
    }
}

/// Cuts the leader of a group off, and the power of servers that have elected another one, whose disks were slow. With them
/// it would be a majority: if they have forgotten their votes, they may elect it in the same term.
fn lose_votes(simulation: &mut Simulation, group: u64) {
    simulation.network.heal();
    let Some((leader, _)) = led(simulation, group) else { return };
    let nodes: Vec<u64> = simulation.servers.iter().map(|server| server.node).collect();
    let mut voters: Vec<u64> = nodes.iter().copied().filter(|node| *node != leader).collect();
    let first = simulation.rng.below(voters.len());
    voters.rotate_left(first);
    voters.truncate(nodes.len() / 2);
    block(simulation, Blocked::Noticed, |from, to| from == leader || to == leader);
    let stalled = simulation.timeline.now() + 2 * ELECTION;
    for log in voters.iter().filter_map(|node| simulation.servers.iter().find(|it| it.node == *node)?.log()) {
        log.stall(stalled);
    }
    simulation.pass(ELECTION);
    for node in &voters {
        if simulation.server(*node).log().is_some_and(MemoryLog::has_unsynced_vote) {
            simulation.timeline.count(AT_STAKE);
        }
        simulation.server(*node).end(End::Cut);
    }
    simulation.network.heal();
    let own = |node: u64| node == leader || voters.contains(&node);
    block(simulation, Blocked::Noticed, |from, to| own(from) != own(to));
    for node in voters {
        if !simulation.server(node).runs() {
            simulation.server(node).start();
        }
    }
}

/// Lets the leader of a group stand still for this long, milliseconds.
fn pause(simulation: &mut Simulation, group: u64, lasts: u64) {
    if let Some((leader, _)) = led(simulation, group) {
        let until = simulation.timeline.now() + lasts;
        simulation.server(leader).pause(until);
    }
}

/// Has the leader of a group hand over to another voter.
fn transfer(simulation: &mut Simulation, group: u64) {
    let Some((leader, cluster)) = led(simulation, group) else { return };
    let Some(shard) = cluster.all().find(|shard| shard.number() == group).cloned() else { return };
    let now = shard.group().raft().metrics().borrow_watched().clone();
    let others: Vec<u64> = now.membership_config.voter_ids().filter(|voter| *voter != leader).collect();
    if others.is_empty() {
        return;
    }
    let (to, timeline) = (*simulation.rng.pick(&others), simulation.timeline.clone());
    let before = timeline.counted(HANDED_OVER);
    simulation.server(leader).spawn(async move {
        if shard.hand_over(Some(to)).await.is_ok() || transfer_bare(&shard, to).await {
            timeline.count(HANDED_OVER);
        }
    });
    simulation.comes(HANDED_OVER_WITHIN, |it| it.timeline.counted(HANDED_OVER) > before);
}

/// Has Raft itself hand over. A server that lags is not handed to, except by this.
async fn transfer_bare(shard: &Shard, to: u64) -> bool {
    let raft = shard.group().raft();
    let own = *raft.node_id();
    if raft.trigger().transfer_leader(to).await.is_err() {
        return false;
    }
    let follows = |now: &RaftMetrics<TypeConfig>| now.current_leader.is_some_and(|leader| leader != own);
    raft.wait(Some(BARE_TRANSFER)).metrics(follows, "another server leads").await.is_ok()
}

/// Purges the logs of all servers but one, as far as their rows are on disk.
fn purge(simulation: &mut Simulation, but: u64) {
    let others: Vec<_> = simulation.open().filter(|(node, _)| *node != but).collect();
    for (node, cluster) in others {
        for group in cluster.all().map(|shard| shard.group().clone()) {
            let timeline = simulation.timeline.clone();
            simulation.server(node).spawn(async move {
                let raft = group.raft();
                let index = |id: Option<LogIdOf<TypeConfig>>| id.map(|id| id.index);
                let upto = index(raft.metrics().borrow_watched().last_applied);
                if raft.trigger().snapshot().await.is_err() {
                    return;
                }
                let built = raft.wait(Some(Duration::from_millis(250)));
                let Ok(now) = built.metrics(|now| index(now.snapshot) >= upto, "the rows are on disk").await
                else {
                    return;
                };
                let Some(covered) = index(now.snapshot) else { return };
                if raft.trigger().purge_log(covered).await.is_ok() {
                    timeline.count("logs purged");
                }
            });
        }
    }
}
