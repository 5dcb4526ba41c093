//! A shard: the order of its entries, the replicas that apply them, and its leader.

use std::collections::{BTreeMap, VecDeque};
use std::ops::ControlFlow;
use std::sync::Arc;
use switchward_engine::{Decided, decide, evolve};
use switchward_machine::Time;
use switchward_state::planted::Bug;
use switchward_state::{Changes, Command, Decision, Due, IndexKey, Key, Kind, Row, View as _};
use switchward_testkit::Rows;

use crate::message::{Answer, Attempted, Failure, Message, ShardIx};
use crate::oracle::Oracle;
use crate::planted::Planted;

/// Commands that one batch has at most.
const BATCH_MAX: usize = 6;

/// See the module.
pub(crate) struct Shard {
    pub(crate) number: ShardIx,
    /// The committed entries, in their order.
    log: Vec<Entry>,
    /// One replica on each server.
    replicas: Vec<Replica>,
    pub(crate) leader: Option<Leader>,
    pub(crate) term: u64,
    /// The server that wins the next election; `None`: any.
    pub(crate) next_leader: Option<usize>,
    /// The time of the last entry that was looked at.
    last: Time,
    /// The bug that is planted in all replicas.
    bug: Option<Bug>,
}

/// A committed entry.
struct Entry {
    bytes: Vec<u8>,
    /// The rows that it changes in their stored form, as the first replica computed them.
    changes: Option<Vec<u8>>,
}

/// A replica.
#[derive(Clone)]
struct Replica {
    rows: Rows,
    applied: usize,
    /// The rows that its disk holds, and how many entries are in them.
    flushed: Rows,
    flushed_at: usize,
    /// The rows as they were last read back from a disk, and machines, which never change.
    read: Rows,
}

/// A leader, with all that it forgets when it leads no longer.
pub(crate) struct Leader {
    pub(crate) server: usize,
    pub(crate) queue: VecDeque<Message>,
    pub(crate) proposal: Option<Proposal>,
    /// True while the proposal is on its way to the followers.
    pub(crate) is_writing: bool,
    /// Inner effects that are under way, and until when.
    pub(crate) relayed: BTreeMap<Key, u64>,
    /// Confirmations that a fault holds back, and until when.
    pub(crate) held: BTreeMap<Key, u64>,
    /// Effects that are published, and until when.
    pub(crate) published: BTreeMap<Key, Published>,
    /// Timers that are being fired, and until when.
    pub(crate) firing: BTreeMap<Key, u64>,
}

/// An effect that is with a delivery worker.
pub(crate) struct Published {
    pub(crate) attempted: Attempted,
    pub(crate) until: u64,
}

/// An entry that is not committed yet.
pub(crate) struct Proposal {
    bytes: Vec<u8>,
    changes: Changes,
    pub(crate) answers: Vec<Answered>,
}

/// A message and its answer.
pub(crate) struct Answered {
    pub(crate) message: Message,
    pub(crate) answer: Answer,
}

/// What became of a proposal whose leader is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Lost,
    Committed,
}

impl Leader {
    fn of(server: usize) -> Self {
        Self {
            server,
            queue: VecDeque::new(),
            proposal: None,
            is_writing: false,
            relayed: BTreeMap::new(),
            held: BTreeMap::new(),
            published: BTreeMap::new(),
            firing: BTreeMap::new(),
        }
    }
}

impl Shard {
    /// A shard whose replicas hold these rows, and whose first leader is a server.
    pub(crate) fn new(number: ShardIx, servers: usize, rows: &Rows, bug: Option<Bug>) -> Self {
        let machines = rows.iter().filter(|(key, _)| key.is(Kind::Machine));
        let read = machines.map(|(key, row)| (key.clone(), Arc::clone(row))).collect();
        let replica = Replica { rows: rows.clone(), applied: 0, flushed: rows.clone(), flushed_at: 0, read };
        Self {
            number,
            log: Vec::new(),
            replicas: vec![replica; servers],
            leader: Some(Leader::of(number % servers)),
            term: 1,
            next_leader: None,
            last: Time(0),
            bug,
        }
    }

    pub(crate) fn entries(&self) -> usize {
        self.log.len()
    }

    /// The leader's rows; `None` between two leaders.
    pub(crate) fn read(&self) -> Option<&Rows> {
        self.leader.as_ref().map(|leader| &self.replicas[leader.server].rows)
    }

    /// The time of the shard, where its leader's clock shows `now`.
    pub(crate) fn time(&self, now: Time) -> Time {
        let clock = self.read().and_then(|rows| rows.row(&Key::clock()).unwrap());
        match clock.as_deref() {
            Some(Row::Clock(last)) => now.max(*last),
            _ => now,
        }
    }

    /// The entries of an index that are due by then, at most `max`.
    pub(crate) fn due(&self, index: &[u8], by: Time, max: usize) -> Vec<Due> {
        let mut found = Vec::new();
        let Some(rows) = self.read() else { return found };
        let look = &mut |entry: &Key, _: &Arc<Row>| {
            let due = IndexKey::due_of(entry).filter(|due| due.at <= by && found.len() < max);
            let more = due.is_some();
            found.extend(due);
            if more { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        rows.scan(index, None, look).unwrap();
        found
    }

    /// Decides the first commands of the queue, if no entry is under way. Returns the answers that need no entry.
    pub(crate) fn decide(&mut self, now: Time, most: usize) -> Result<Vec<Answered>, String> {
        let Some(leader) = &mut self.leader else { return Ok(Vec::new()) };
        if leader.proposal.is_some() || leader.queue.is_empty() {
            return Ok(Vec::new());
        }
        let count = leader.queue.len().min(most.clamp(1, BATCH_MAX));
        let batch: Vec<Message> = leader.queue.drain(..count).collect();
        let commands: Vec<Command> = batch.iter().map(|message| message.command.clone()).collect();
        let rows = Planted { rows: &self.replicas[leader.server].rows, bug: self.bug };
        let Decided { decision, changes, answers, .. } =
            decide(&commands, &rows, now).map_err(|error| format!("{commands:?}: {error}"))?;
        if answers.len() != batch.len() {
            return Err(format!("{} commands have {} answers", batch.len(), answers.len()));
        }
        let answers = batch.into_iter().zip(answers);
        let answers = answers
            .map(|(message, answer)| Answered { message, answer: answer.map_err(Failure::Refused) })
            .collect();
        let Some(decision) = decision else { return Ok(answers) };
        leader.proposal = Some(Proposal { bytes: decision.encode(), changes, answers });
        Ok(Vec::new())
    }

    /// The entry that is under way is committed: the leader applies it.
    pub(crate) fn commit(&mut self, oracle: &mut Oracle) -> Result<Vec<Answered>, String> {
        let Some(leader) = &mut self.leader else { return Ok(Vec::new()) };
        let Some(proposal) = leader.proposal.take() else { return Ok(Vec::new()) };
        let server = leader.server;
        self.log.push(Entry { bytes: proposal.bytes, changes: None });
        let (decision, evolved) = self.evolved(server)?;
        let rows = &self.replicas[server].rows;
        rows.agree(&evolved, &proposal.changes, "what was decided on is not what comes of it")?;
        self.apply(server, &decision, evolved, oracle)?;
        Ok(proposal.answers)
    }

    /// A replica applies entries, at most `most`.
    pub(crate) fn follow(&mut self, server: usize, most: usize, oracle: &mut Oracle) -> Result<(), String> {
        for _ in 0..most.min(self.lags(server)) {
            let (decision, changes) = self.evolved(server)?;
            self.apply(server, &decision, changes, oracle)?;
        }
        Ok(())
    }

    /// The next entry of a replica, and the rows that it changes there.
    fn evolved(&self, server: usize) -> Result<(Decision, Changes), String> {
        let replica = &self.replicas[server];
        let decision =
            Decision::decode(&self.log[replica.applied].bytes).map_err(|error| error.to_string())?;
        let rows = Planted { rows: &replica.rows, bug: self.bug };
        let changes = evolve(&decision, &rows).map_err(|error| error.to_string())?;
        Ok((decision, changes))
    }

    /// A replica applies its next entry: it changes the same rows as everywhere.
    fn apply(
        &mut self,
        server: usize,
        decision: &Decision,
        changes: Changes,
        oracle: &mut Oracle,
    ) -> Result<(), String> {
        let replica = &mut self.replicas[server];
        let (at, shard) = (replica.applied, self.number);
        let entry = &mut self.log[at];
        let stored = stored(&changes, entry.changes.as_ref().map_or(0, Vec::len));
        match &entry.changes {
            None => {
                if decision.encode() != entry.bytes {
                    return Err(format!("a decision is another one when it is read back: {decision:?}"));
                }
                if decision.at < self.last {
                    return Err(format!("the time of shard {shard} goes back at entry {at}: {decision:?}"));
                }
                self.last = decision.at;
                oracle.look(decision, &entry.bytes)?;
                entry.changes = Some(stored);
            }
            Some(known) if *known == stored => {}
            Some(_) => {
                return Err(format!("server {server} makes other rows of entry {at} of shard {shard}"));
            }
        }
        replica.rows.apply(changes);
        replica.applied += 1;
        Ok(())
    }

    /// How many entries a replica lacks.
    pub(crate) fn lags(&self, server: usize) -> usize {
        self.log.len() - self.replicas[server].applied
    }

    /// A replica writes its rows down.
    pub(crate) fn flush(&mut self, server: usize) {
        let replica = &mut self.replicas[server];
        (replica.flushed, replica.flushed_at) = (replica.rows.clone(), replica.applied);
    }

    /// A replica starts again with the rows that it has written down. Returns how many entries they lack.
    pub(crate) fn restart(&mut self, server: usize) -> Result<usize, String> {
        let replica = &mut self.replicas[server];
        replica.rows = replica.flushed.reopened_after(&replica.read)?;
        (replica.flushed, replica.read) = (replica.rows.clone(), replica.rows.clone());
        let lost = replica.applied - replica.flushed_at;
        replica.applied = replica.flushed_at;
        Ok(lost)
    }

    /// A replica gets the rows of another one.
    pub(crate) fn snapshot(&mut self, from: usize, to: usize) -> Result<(), String> {
        let source = &self.replicas[from];
        let (rows, applied) = (source.rows.reopened_after(&source.read)?, source.applied);
        source.rows.same(&rows, "rows are others when they are read back")?;
        let (flushed, read) = (rows.clone(), rows.clone());
        self.replicas[to] = Replica { rows, applied, flushed, flushed_at: applied, read };
        Ok(())
    }

    /// The leader leads no longer. Returns what it had under way.
    pub(crate) fn depose(&mut self, outcome: Outcome) -> Option<Leader> {
        let mut leader = self.leader.take()?;
        self.term += 1;
        if outcome == Outcome::Committed
            && let Some(proposal) = &mut leader.proposal
        {
            let bytes = std::mem::take(&mut proposal.bytes);
            self.log.push(Entry { bytes, changes: None });
        }
        Some(leader)
    }

    /// A server leads: it decides nothing before it has applied all entries.
    pub(crate) fn elect(&mut self, server: usize, oracle: &mut Oracle) -> Result<(), String> {
        self.follow(server, usize::MAX, oracle)?;
        self.leader = Some(Leader::of(server));
        Ok(())
    }

    /// All replicas apply all entries, and have the same rows then.
    pub(crate) fn compare(&mut self, oracle: &mut Oracle) -> Result<(), String> {
        for server in 0..self.replicas.len() {
            self.follow(server, usize::MAX, oracle)?;
            self.replicas[0].rows.same(&self.replicas[server].rows, "replicas differ at the same entry")?;
        }
        self.replicas[0].rows.indexed()
    }
}

/// Changed rows in their stored form, which is expected to have this many bytes.
fn stored(changes: &Changes, expected: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(expected);
    for (key, row) in changes {
        bytes.extend_from_slice(key.as_bytes());
        match row {
            Some(row) => row.encode_into(&mut bytes),
            None => bytes.push(0),
        }
    }
    bytes
}
