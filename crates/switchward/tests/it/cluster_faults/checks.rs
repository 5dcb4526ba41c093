//! What must hold at the end of a round, when nothing fails.

use anyhow::ensure;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use switchward_api::v1;
use switchward_testkit::{Counts, Operation, Versioned, linearizable, ordered_by_version};
use tokio::time::sleep;

use super::calls::{Answer, Caller, Line, Repeat};
use super::definitions::{CALLS_MAX, paths};
use super::faults::Fired;
use super::plan::SERVERS;
use super::records::{Call, Did, Nap, Records, Register};
use super::replicas;
use super::round::{Outcome, Site};
use super::workload::{COUNTERS, Shared, authorize, register_of};
use crate::receiver::{Attempt, Outcome as Became, Receiver};

/// The longest wait for what must come about.
const PATIENCE: Duration = Duration::from_secs(60);
/// The longest wait for the messages: those of a delivery worker that was killed go to another one after half a minute.
const ARRIVED_MAX: Duration = Duration::from_secs(240);
const LOOK: Duration = Duration::from_millis(100);
/// How long a server may take to record a delivery after the receiver's answer: a message that was answered so shortly
/// before a fault counts as in flight.
const UNRECORDED: Duration = Duration::from_secs(1);
/// How long it may take after a fault until the server that delivers reaches the leader again.
const MENDED: Duration = Duration::from_secs(3);

/// Waits for everything that is still to come, and compares it with what callers were answered. Returns what is wrong.
pub(crate) async fn at_the_end(
    site: &Site,
    shared: &Arc<Shared>,
    agent: &mut Caller,
) -> anyhow::Result<Vec<String>> {
    let mut wrong = Vec::new();
    resolve_calls(shared, agent).await?;
    exhaust(shared, agent).await?;
    read_all(shared, agent).await?;
    let naps = shared.records.lock().naps.clone();
    for (key, nap) in naps {
        wrong.extend(slept(agent, &key, nap).await?);
    }
    for server in SERVERS {
        let state = site.cluster.status(server).await?.state;
        if state != "running" {
            wrong.push(format!("server {server} is {state}"));
        }
    }
    let mut person = Caller::person(&site.cluster, shared.seed)?;
    wrong.extend(differ(&mut person).await);
    wrong.extend(replicas::at_rest(shared, &mut person).await);
    let mut records = shared.records.lock();
    wrong.append(&mut records.wrong);
    wrong.extend(registers(&records, site.step));
    wrong.extend(calls(&records.calls));
    Ok(wrong)
}

/// Repeats the calls that have no answer yet: their request ids find out what became of them.
async fn resolve_calls(shared: &Shared, agent: &mut Caller) -> anyhow::Result<()> {
    let open: Vec<(usize, Call)> = {
        let records = shared.records.lock();
        let calls = records.calls.iter().cloned().enumerate();
        calls.filter(|(_, call)| call.allowed.is_none()).collect()
    };
    for (at, call) in open {
        let allowed = asked(agent, &call.session, &call.name).await?;
        shared.records.lock().calls[at].allowed = Some(allowed);
    }
    Ok(())
}

/// Asks until there is an answer.
async fn asked(agent: &mut Caller, session: &str, name: &str) -> anyhow::Result<bool> {
    let begun = Instant::now();
    loop {
        if let Some(allowed) = authorize(agent, session, name).await.map_err(anyhow::Error::msg)? {
            return Ok(allowed);
        }
        ensure!(begun.elapsed() < PATIENCE, "{name} of {session} has no answer");
    }
}

/// Makes calls until as many were allowed as may be, and one more. Capacity that was reserved for a call that never came to
/// be is free after a while.
async fn exhaust(shared: &Shared, agent: &mut Caller) -> anyhow::Result<()> {
    let begun = Instant::now();
    for number in 0.. {
        let (session, name) = (shared.counter(number % COUNTERS), format!("last-{}-{number}", shared.seed));
        let allowed = asked(agent, &session, &name).await?;
        let all = {
            let mut records = shared.records.lock();
            records.calls.push(Call { session, name, allowed: Some(allowed) });
            records.calls.iter().filter(|call| call.allowed == Some(true)).count()
        };
        if !allowed {
            if all >= CALLS_MAX || begun.elapsed() > PATIENCE {
                break;
            }
            sleep(LOOK).await;
        }
        if all > CALLS_MAX {
            break;
        }
    }
    Ok(())
}

/// Exactly as many calls are allowed as the limit holds.
fn calls(calls: &[Call]) -> Option<String> {
    let allowed = calls.iter().filter(|call| call.allowed == Some(true)).count();
    (allowed != CALLS_MAX).then(|| format!("{allowed} calls were allowed; the limit is {CALLS_MAX}"))
}

/// Reads every register at each server, after all else.
async fn read_all(shared: &Shared, agent: &mut Caller) -> anyhow::Result<()> {
    let keys: Vec<String> = shared.records.lock().registers.keys().cloned().collect();
    for key in keys {
        for server in SERVERS {
            let line = agent.line_to(server);
            let invoked = shared.moments.now();
            let found = agent.need(|_| line.clone().get(key.clone())).await?;
            let returned = Some(shared.moments.now());
            let found = register_of(found.session);
            let found = found.ok_or_else(|| anyhow::anyhow!("{key} is no register at the end"))?;
            shared.record(key.clone(), invoked, returned, Did::Read(found));
        }
    }
    Ok(())
}

/// Reads and writes of each register are linearizable, as both checkers say.
fn registers(records: &Records, step: u64) -> Vec<String> {
    let mut wrong = Vec::new();
    for (key, operations) in &records.registers {
        match records.made.get(key) {
            Some(made) => wrong.extend(register(key, *made, operations, step)),
            None => wrong.push(format!("{key} was never made")),
        }
    }
    wrong
}

fn register(key: &str, made: Register, operations: &[Operation<Did>], step: u64) -> Vec<String> {
    let mut wrong = Vec::new();
    if let Err(longest) = linearizable(&made, operations, |register, did| did.apply(*register, step)) {
        let line = |at: usize| {
            let operation = &operations[at];
            let mark = if longest.contains(&at) { ' ' } else { '!' };
            format!("\n  {mark} {}..{:?} {:?}", operation.invoked, operation.returned, operation.what)
        };
        let lines: String = (0..operations.len()).map(line).collect();
        wrong.push(format!("{key} is not linearizable from {made:?}; with ! what fits nowhere:{lines}"));
    }
    let seen = |operation: &Operation<Did>| Operation {
        invoked: operation.invoked,
        returned: operation.returned,
        what: operation.what.seen(step),
    };
    let seen: Vec<_> = operations.iter().map(seen).collect();
    let first = Versioned { version: made.0, value: made.1, step };
    if let Err(why) = ordered_by_version(&first, &seen) {
        wrong.push(format!("{key} from {made:?}: {why}"));
    }
    wrong
}

fn ms(time: Option<prost_types::Timestamp>) -> Option<i64> {
    let time = time?;
    Some(time.seconds * 1_000 + i64::from(time.nanos) / 1_000_000)
}

/// A session that waits ends, and not early by the time of its shard. Returns what is wrong.
async fn slept(agent: &mut Caller, key: &str, nap: Nap) -> anyhow::Result<Option<String>> {
    let begun = Instant::now();
    loop {
        let session = agent.need(|line| line.get(key.to_owned())).await?.session.unwrap_or_default();
        let waits = i64::try_from(nap.ms)?;
        if let (Some(created), Some(ended)) = (ms(session.create_time), ms(session.end_time)) {
            let early = ended - created < waits;
            let how = session.status();
            if early || how != v1::SessionStatus::Completed {
                return Ok(Some(format!(
                    "{key} waits {waits} ms; {} ms after its start: {how:?}",
                    ended - created
                )));
            }
            return Ok(None);
        }
        if begun.elapsed() > PATIENCE {
            return Ok(Some(format!("{key} waits {waits} ms, and has not ended {PATIENCE:?} later")));
        }
        sleep(LOOK).await;
    }
}

/// All replicas apply the same entries, and none has failed. Returns how they differ, if that does not come about.
async fn differ(person: &mut Caller) -> Option<String> {
    let begun = Instant::now();
    loop {
        let why = match person.insist(Repeat::All, Line::cluster).await {
            Answer::Done(cluster) => apart(&cluster),
            other @ (Answer::Refused(_) | Answer::Nothing | Answer::Unknown) => {
                Some(format!("no server says: {other:?}"))
            }
        };
        if why.is_none() || begun.elapsed() > PATIENCE {
            return why;
        }
        sleep(LOOK).await;
    }
}

fn apart(cluster: &v1::GetClusterResponse) -> Option<String> {
    let whole = |group: &&v1::ClusterGroup| {
        let same = |replica: &v1::ClusterReplica| {
            replica.applied_index == Some(group.last_index) && replica.failure.is_empty()
        };
        group.leader.is_some() && group.replicas.len() == SERVERS.len() && group.replicas.iter().all(same)
    };
    let broken = cluster.groups.iter().find(|group| !whole(group));
    broken.map(|group| format!("the replicas of a group differ: {group:?}"))
}

/// The messages of all rounds.
#[derive(Default)]
pub(crate) struct Effects {
    notified: Vec<String>,
    faults: Vec<Fired>,
}

impl Effects {
    /// Adds those of a round.
    pub(crate) fn add(&mut self, outcome: Outcome) {
        self.notified.extend(outcome.notified);
        self.faults.extend(outcome.faults);
    }

    /// Waits until each message has arrived, and checks that only what was in flight during a fault arrived again. Counts both.
    pub(crate) async fn settle(&self, receiver: &Receiver, seen: &mut Counts) -> anyhow::Result<()> {
        let begun = Instant::now();
        let wanted: Vec<String> = self.notified.iter().flat_map(|key| paths(key)).collect();
        loop {
            let attempts = receiver.attempts();
            let taken = by_path(&attempts);
            let open: Vec<&String> =
                wanted.iter().filter(|path| !taken.contains_key(path.as_str())).collect();
            if open.is_empty() {
                break;
            }
            ensure!(begun.elapsed() < ARRIVED_MAX, "{} messages do not arrive: {open:?}", open.len());
            sleep(LOOK).await;
        }
        let attempts = receiver.attempts();
        let taken = by_path(&attempts);
        for path in &wanted {
            seen.add("messages");
            seen.add_many("messages that came again", self.repeated(path, &taken[path.as_str()])?);
        }
        Ok(())
    }

    /// How often a message came again.
    fn repeated(&self, path: &str, taken: &[&Attempt]) -> anyhow::Result<u64> {
        let same = taken.iter().all(|one| !one.id.is_empty() && one.id == taken[0].id);
        ensure!(same, "{path} has several ids: {taken:?}");
        let in_flight = |fault: &Fired, attempt: &Attempt| {
            attempt.begun <= fault.ended + MENDED && attempt.ended + UNRECORDED >= fault.begun
        };
        let at_fault = |fault: &&Fired| taken.iter().any(|attempt| in_flight(fault, attempt));
        let (again, explained) = (taken.len() - 1, self.faults.iter().filter(at_fault).count());
        ensure!(again <= explained, "{path} came {again} times again, at {explained} faults: {taken:?}");
        Ok(again as u64)
    }
}

/// The attempts that were taken, by their paths.
fn by_path(attempts: &[Attempt]) -> BTreeMap<&str, Vec<&Attempt>> {
    let mut taken: BTreeMap<&str, Vec<&Attempt>> = BTreeMap::new();
    for attempt in attempts.iter().filter(|attempt| attempt.outcome == Became::Accepted) {
        taken.entry(&attempt.path).or_default().push(attempt);
    }
    taken
}
