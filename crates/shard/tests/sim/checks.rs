//! What must hold during a run and at its end.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use switchward_engine::session_view;
use switchward_machine::{Micros, Status};
use switchward_shard::limits::CLOCK_APART_MAX_MS;
use switchward_shard::{Cluster, StateView};
use switchward_state::policy::LedgerRow;
use switchward_state::{IndexKey, Key, Kind, Reply, Row, View as _};
use switchward_testkit::linearizable;

use crate::commands::{BUDGET, CALLS_MAX, COST, COUNTER, ESTIMATE, TENANT, session};
use crate::records::{Did, Nap, Records};
use crate::simulation::Simulation;

/// How early a timer may fire by a right clock, milliseconds: a leader's clock may be as far ahead as it may be from the median,
/// and the leader that began the wait may have stood still before.
const EARLY_MAX: u64 = CLOCK_APART_MAX_MS + 1_500;

/// What the replicas of a group have applied.
fn applied(cluster: &Cluster, group: u64) -> Option<u64> {
    let shard = cluster.all().find(|shard| shard.number() == group)?;
    shard.group().applied()
}

/// Compares the rows of replicas that have applied the same entries. Returns what differs.
pub(crate) fn compare_digests(simulation: &mut Simulation) -> Option<String> {
    let open: Vec<_> = simulation.open().collect();
    for (node, cluster) in open {
        for shard in cluster.all().filter(|shard| shard.group().failed().is_none()) {
            let Some(at) = applied(&cluster, shard.number()) else { continue };
            let digest = shard.group().digest().unwrap();
            let known = *simulation.digests.entry((shard.number(), at)).or_insert(digest);
            if known != digest {
                let group = shard.number();
                return Some(format!(
                    "server {node} has other rows of group {group} at entry {at} than another"
                ));
            }
        }
    }
    None
}

/// What is still to be done: effects on their way between shards, sessions that wait for a timer.
pub(crate) fn pending(simulation: &Simulation) -> Option<String> {
    if let Some(apart) = diverged(simulation) {
        return Some(apart);
    }
    let (_, cluster) = simulation.open().next()?;
    for shard in cluster.all() {
        let mut relayed = 0;
        let read = shard.read_stale().scan(&IndexKey::relay(), None, &mut |_, _| {
            relayed += 1;
            ControlFlow::Continue(())
        });
        if relayed > 0 || read.is_err() {
            return Some(format!("{relayed} effects of group {} are on their way", shard.number()));
        }
    }
    let records = simulation.callers.records.lock();
    let waiting = |(key, _): (&String, &Nap)| {
        let found = nap(&cluster, key);
        let over = found.is_some_and(|(status, _)| status == Status::Completed);
        (!over).then(|| format!("{key} waits: {found:?}"))
    };
    // Those whose end was not seen yet come first: this is asked every millisecond.
    let unseen = records.naps.iter().filter(|(_, nap)| !nap.is_over).find_map(waiting);
    unseen.or_else(|| records.naps.iter().find_map(waiting))
}

/// How the replicas of a group differ that have not all applied the same entries, or that no leader is of.
pub(crate) fn diverged(simulation: &Simulation) -> Option<String> {
    let groups = simulation.open().next().map_or(0, |(_, cluster)| cluster.all().count() as u64);
    if groups == 0 || simulation.open().count() < simulation.servers.len() {
        return Some("not all servers are open".into());
    }
    (0..groups).find_map(|group| {
        let positions: Vec<_> =
            simulation.open().map(|(node, cluster)| (node, applied(&cluster, group))).collect();
        let leader = simulation.leader(group).map(|(node, _)| node);
        let same = positions.iter().all(|(_, position)| *position == positions[0].1);
        let apart = !same || leader.is_none();
        apart.then(|| format!("group {group} has the leader {leader:?} and the positions {positions:?}"))
    })
}

/// How a waiting session has ended, and how long it took by its shard's time, milliseconds.
fn nap(cluster: &Cluster, key: &str) -> Option<(Status, u64)> {
    let view = cluster.shard_of(session(key).bucket()).read_stale();
    let found = view.consistent(|view| session_view(view, TENANT, session(key))).ok()??;
    let ended = found.session.ended.unwrap_or(found.session.created);
    Some((found.session.status, ended.since_ms(found.session.created)))
}

/// No timer fires early by a right clock. Called again and again: it looks for sessions that have ended meanwhile.
pub(crate) fn early(simulation: &Simulation) -> Option<String> {
    let (_, cluster) = simulation.open().next()?;
    let now = simulation.timeline.true_time();
    let mut records = simulation.callers.records.lock();
    let waiting = records.naps.iter_mut().filter(|(_, nap)| !nap.is_over);
    let mut early = None;
    for (key, found) in waiting {
        found.is_over = nap(&cluster, key).is_some_and(|(status, _)| status == Status::Completed);
        let took = found.begun.map(|begun| now.since_ms(begun));
        if found.is_over && took.is_some_and(|took| took + EARLY_MAX < found.ms) {
            early = Some(format!("{key} waits {} ms and has ended after {took:?} ms of true time", found.ms));
        }
    }
    early
}

/// Compares what callers were answered with what the servers hold. Returns what is wrong.
pub(crate) fn all(simulation: &mut Simulation) -> Vec<String> {
    let mut wrong: Vec<String> = compare_digests(simulation).into_iter().collect();
    let Some((_, cluster)) = simulation.open().next() else { return vec!["no server is open".into()] };
    let records = simulation.callers.records.lock();
    wrong.extend(registers(&records));
    wrong.extend(histories(&cluster, &records));
    wrong.extend(naps(&cluster, &records));
    wrong.extend(calls(&records));
    wrong.extend(costs(&cluster, &records));
    wrong
}

/// Reads and writes of each register must be linearizable.
fn registers(records: &Records) -> Vec<String> {
    let mut wrong = Vec::new();
    for (key, operations) in &records.registers {
        let Some(made) = records.made.get(key) else {
            wrong.push(format!("{key} was never made"));
            continue;
        };
        if let Err(longest) = linearizable(made, operations, Did::step) {
            let line = |at: usize| {
                let operation = &operations[at];
                let mark = if longest.contains(&at) { ' ' } else { '!' };
                format!("\n  {mark} {}..{:?} {:?}", operation.invoked, operation.returned, operation.what)
            };
            let lines: String = (0..operations.len()).map(line).collect();
            wrong.push(format!("{key} is not linearizable from {made:?}; with ! what fits nowhere:{lines}"));
        }
    }
    wrong
}

/// The rows of a session's history: requests, and the sequences that they were answered with.
fn history(view: &StateView, key: &str) -> Vec<(Option<String>, Option<u64>)> {
    let mut found = Vec::new();
    let prefix = Key::prefix_of_session(TENANT, session(key), Kind::History);
    let read = view.scan(&prefix, None, &mut |_, row| {
        if let Row::History(history) = &**row {
            let sequence = history.answered.as_ref().and_then(|answered| {
                if let Reply::Session { sequence, .. } = &answered.reply { Some(*sequence) } else { None }
            });
            found.push((history.request.clone(), sequence));
        }
        ControlFlow::Continue(())
    });
    read.unwrap();
    found
}

/// Each request has one row of history, and each answered one has its answer there.
fn histories(cluster: &Cluster, records: &Records) -> Vec<String> {
    let mut wrong = Vec::new();
    for key in records.registers.keys() {
        let view = cluster.shard_of(session(key).bucket()).read_stale();
        let mut rows: BTreeMap<String, Option<u64>> = BTreeMap::new();
        for (request, sequence) in history(&view, key) {
            let Some(request) = request else { continue };
            if rows.insert(request.clone(), sequence).is_some() {
                wrong.push(format!("{key}: {request} has two rows of history"));
            }
        }
        for (_, request, sequence) in records.answered.iter().filter(|(of, ..)| of == key) {
            if rows.get(request) != Some(&Some(*sequence)) {
                let found = rows.get(request);
                wrong.push(format!("{key}: {request} was answered with {sequence}, and has {found:?}"));
            }
        }
    }
    wrong
}

/// No timer fires early by its shard's own time.
fn naps(cluster: &Cluster, records: &Records) -> Vec<String> {
    let early = records.naps.iter().filter_map(|(key, Nap { ms, .. })| {
        let (_, took) = nap(cluster, key)?;
        (took < *ms).then(|| format!("{key} waits {ms} ms and has ended after {took} ms"))
    });
    early.collect()
}

/// As many calls are allowed as may be made: callers went on until one was refused.
fn calls(records: &Records) -> Option<String> {
    let bash = || records.calls.iter().filter(|call| call.capability == "bash");
    let (allowed, unknown) = (
        bash().filter(|call| call.allowed == Some(true)).count(),
        bash().filter(|call| call.allowed.is_none()).count(),
    );
    let exact = allowed <= CALLS_MAX && allowed + unknown >= CALLS_MAX;
    (!exact).then(|| format!("{allowed} calls were allowed, {unknown} perhaps; the limit is {CALLS_MAX}"))
}

/// The ledger holds exactly what was reported, and reservations for nothing else than calls without a report.
fn costs(cluster: &Cluster, records: &Records) -> Vec<String> {
    let pay = || records.calls.iter().filter(|call| call.capability == "pay");
    let unknown = pay().filter(|call| call.allowed.is_none() || call.reported == Some(false)).count() as u64;
    let reported = pay().filter(|call| call.reported == Some(true)).count() as u64;
    let ledger = ledger(cluster, "pay");
    let spent = ledger.spent.iter().map(|spent| spent.micros.0).max().unwrap_or(0);
    let mut wrong = Vec::new();
    if !(reported * COST.0..=(reported + unknown) * COST.0).contains(&spent) {
        wrong
            .push(format!("{reported} calls were reported, {unknown} perhaps, and {spent} micros are spent"));
    }
    let held = ledger.reservations.iter().filter(|held| held.confirmed).count() as u64;
    if held > unknown {
        wrong.push(format!("{held} calls hold money, and {unknown} may not have been reported"));
    }
    if Micros(spent + held * ESTIMATE.0) > BUDGET {
        wrong.push(format!("{spent} micros are spent and {held} calls hold more: the budget is {BUDGET:?}"));
    }
    wrong
}

fn ledger(cluster: &Cluster, capability: &str) -> LedgerRow {
    let key = Key::ledger(TENANT, COUNTER, "agent", capability);
    let rows = cluster.all().filter_map(|shard| shard.read_stale().row(&key).unwrap());
    rows.into_iter()
        .find_map(|row| if let Row::Ledger(row) = &*row { Some(row.clone()) } else { None })
        .unwrap_or_default()
}
