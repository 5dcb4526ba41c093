//! A head beside a model of the index: whatever is applied, read, handed out, lost and refused, every entry is known
//! in one state, none is handed out early or twice at a time, and no more are held than allowed.

use std::collections::BTreeSet;
use std::time::Duration;
use switchward_machine::{Digest, OpenId, SessionId, TenantId, Time};
use switchward_state::{IndexKey, Key, Reason, Rejection};
use switchward_testkit::Rng;
use tokio::time::Instant;

use super::*;
use crate::limits::{FIRE_WAIT, REFUSED_MAX, TRANSPORT_WAIT};

const TERM: u64 = 3;
const RUNS: u64 = 12;
const STEPS: usize = 400;

fn session() -> SessionId {
    SessionId::from_key(TenantId(1), "s")
}

/// An index entry: one that a definition waits for, or the server's own.
fn entry(at: u64, number: u64, travels: bool) -> Key {
    let row = if travels {
        Key::item(TenantId(1), session(), OpenId(number))
    } else {
        Key::machine(TenantId(1), Digest::of(&number.to_be_bytes()))
    };
    let mut bytes = IndexKey::due();
    bytes.extend_from_slice(&at.to_be_bytes());
    bytes.extend_from_slice(row.as_bytes());
    Key::from_bytes(&bytes).unwrap()
}

fn rejected() -> Result<(), Failure> {
    Err(Failure::Rejected(Rejection::new(Reason::QuotaExceeded, "too long")))
}

/// The index as it is on disk, the head over it, and what is under way.
struct Simulation {
    index: BTreeSet<Key>,
    head: Head,
    now: u64,
    at: Instant,
    /// A read that was requested, with what it has seen so far.
    read: Option<(ReadFrom, Vec<Key>)>,
    /// Attempts, with what is believed to be out.
    out: Vec<(u64, bool, Vec<Key>)>,
    next: u64,
}

impl Simulation {
    fn new() -> Self {
        let mut head = Head::default();
        head.begin(Some(TERM));
        let (index, at) = (BTreeSet::new(), Instant::now());
        Self { index, head, now: 1_000, at, read: None, out: Vec::new(), next: 0 }
    }

    fn add(&mut self, at: u64, travels: bool) {
        self.next += 1;
        let entry = entry(at, self.next, travels);
        self.index.insert(entry.clone());
        self.head.changed(EntryChange::Added(entry));
    }

    fn remove(&mut self, entry: &Key) {
        self.index.remove(entry);
        self.head.changed(EntryChange::Removed(entry.clone()));
    }

    fn begin_read(&mut self) {
        if self.read.is_none() {
            self.read = self.head.begin_read(self.at).map(|asked| (asked, Vec::new()));
        }
    }

    /// A read sees each row as it is at some moment of it: `rows` more now.
    fn read_on(&mut self, rows: usize) {
        let Some((asked, found)) = &mut self.read else { return };
        let after = found.last().or(asked.after.as_ref()).cloned();
        let left = rows.min(asked.max - found.len());
        let behind = self.index.iter().filter(|entry| after.as_ref().is_none_or(|after| *entry > after));
        found.extend(behind.take(left).cloned());
    }

    fn end_read(&mut self) {
        self.read_on(usize::MAX);
        if let Some((asked, found)) = self.read.take() {
            self.head.end_read(&asked, Some(found), self.at);
        }
    }

    fn take(&mut self) {
        let taken = self.head.take_due(Time(self.now), self.at);
        for (entries, transport) in [(taken.travel, true), (taken.own, false)] {
            if entries.is_empty() {
                continue;
            }
            let early = entries.iter().filter(|entry| due_of(entry).unwrap().at > Time(self.now)).count();
            assert_eq!(early, 0, "no timer is early");
            let again = entries.iter().filter(|entry| self.head.flying.contains_key(*entry)).count();
            assert_eq!(again, 0, "no timer is handed out twice");
            assert!(entries.iter().all(|entry| travels(&due_of(entry).unwrap().key) == transport));
            let until = self.at + if transport { TRANSPORT_WAIT } else { FIRE_WAIT };
            let number = self.head.launch(&entries, until, transport);
            self.out.push((number, transport, entries));
        }
    }

    /// An attempt ends in some way.
    fn end(&mut self, rng: &mut Rng) {
        if self.out.is_empty() {
            return;
        }
        let (number, transport, entries) = self.out.remove(rng.below(self.out.len()));
        if transport && rng.once_in(4) {
            // Lost, or refused: it is recalled, and what is left goes out again.
            let left = self.head.recall(number);
            let again = self.head.launch(&left, self.at + FIRE_WAIT, false);
            self.out.push((again, false, left));
            return;
        }
        let entries = if transport {
            let batch = TimerBatch { shard: 1, term: TERM, number, timers: entries };
            let stale = TimerBatch { term: TERM - 1, ..batch.clone() };
            assert_eq!(
                self.head.came(&stale, self.at + FIRE_WAIT),
                None,
                "a batch of another term is ignored"
            );
            // Nobody waits for one whose timers are all gone.
            let came = self.head.came(&batch, self.at + FIRE_WAIT).unwrap_or_default();
            assert_eq!(
                self.head.came(&batch, self.at + FIRE_WAIT),
                None,
                "a batch is ignored if it comes again"
            );
            came
        } else {
            entries
        };
        for entry in entries {
            let result = match rng.below(10) {
                0 => rejected(),
                1 => Err(Failure::Overloaded),
                _ => {
                    self.remove(&entry);
                    Ok(())
                }
            };
            self.head.settle(number, entry, result, self.at);
        }
    }

    fn check(&self) {
        let head = &self.head;
        assert!(head.waiting.len() <= TIMERS_HEAD_MAX && head.flying.len() <= TIMERS_IN_FLIGHT_MAX);
        assert!(head.resting.len() <= REFUSED_MAX);
        let holders = |entry: &Key| {
            [head.waiting.contains(entry), head.flying.contains_key(entry), head.resting.holds(entry)]
        };
        if head.reread_at.is_none() {
            for entry in self.index.iter().filter(|entry| head.known.covers(entry)) {
                assert_eq!(holders(entry).iter().filter(|holds| **holds).count(), 1, "{:?}", due_of(entry));
            }
        }
        for entry in head.waiting.iter().chain(head.flying.keys()) {
            assert!(self.index.contains(entry), "a removed timer is still in the head");
        }
        let left: usize = head.attempts.values().map(|attempt| attempt.left).sum();
        assert_eq!(left, head.flying.len());
    }

    /// Continues until nothing that is due is left.
    fn finish(&mut self, rng: &mut Rng) {
        for _ in 0..100_000 {
            if self.index.first().is_none_or(|entry| due_of(entry).unwrap().at > Time(self.now)) {
                return;
            }
            self.at += Duration::from_millis(500);
            self.begin_read();
            self.end_read();
            self.take();
            self.end(rng);
        }
        panic!("a due timer was never fired: {:?}", self.head.counts());
    }
}

#[test]
fn whatever_happens_each_is_known_once_and_done() {
    for seed in 0..RUNS {
        let mut rng = Rng::new(seed);
        let mut simulation = Simulation::new();
        for _ in 0..STEPS {
            match rng.below(9) {
                0 | 1 => {
                    for _ in 0..rng.below(40) {
                        let due = simulation.now + rng.between(0, 2_000) - 500;
                        simulation.add(due, !rng.once_in(5));
                    }
                }
                2 => {
                    let some: Vec<Key> =
                        simulation.index.iter().filter(|_| rng.once_in(20)).cloned().collect();
                    some.iter().for_each(|entry| simulation.remove(entry));
                }
                3 => simulation.begin_read(),
                4 => simulation.read_on(rng.below(50)),
                5 => simulation.end_read(),
                6 => simulation.take(),
                7 => simulation.end(&mut rng),
                _ => {
                    simulation.now += rng.between(0, 200);
                    simulation.at += Duration::from_millis(rng.between(0, 500));
                }
            }
            simulation.check();
        }
        simulation.finish(&mut rng);
        simulation.check();
    }
}

#[test]
fn of_many_no_more_than_the_first_are_held() {
    let (mut simulation, mut rng) = (Simulation::new(), Rng::new(1));
    simulation.begin_read();
    simulation.end_read();
    let most = u64::try_from(TIMERS_HEAD_MAX).unwrap();
    // The later ones come first, so that each of them has to replace another.
    for number in 0..3 * most {
        simulation.add(1_000_000 + 3 * most - number, true);
    }
    assert_eq!(simulation.head.counts().waiting, TIMERS_HEAD_MAX);
    simulation.now = 2_000_000;
    simulation.finish(&mut rng);
    assert!(simulation.index.is_empty());
    assert!(
        simulation.head.reads >= 3,
        "the others were not read in several steps: {}",
        simulation.head.reads
    );
}

#[test]
fn what_is_applied_while_a_read_is_under_way_is_not_missed() {
    let mut simulation = Simulation::new();
    for number in 0..10 {
        simulation.add(5_000 + number, true);
    }
    assert_eq!(simulation.head.counts().waiting, 0, "timers are unknown before the first read");
    simulation.begin_read();
    simulation.read_on(5);
    let first = simulation.index.first().unwrap().clone();
    simulation.remove(&first);
    // One entry that the read has passed, one that it has not reached yet.
    simulation.add(4_000, true);
    simulation.add(6_000, true);
    simulation.end_read();
    simulation.check();
    assert_eq!((simulation.head.counts().waiting, simulation.index.len()), (11, 11));
}

#[test]
fn more_refusals_than_can_rest_are_found_again() {
    let mut simulation = Simulation::new();
    simulation.begin_read();
    simulation.end_read();
    let many = REFUSED_MAX + 500;
    for number in 0..many {
        simulation.add(500, number % 2 == 0);
    }
    let mut refused = BTreeSet::new();
    while refused.len() < many {
        simulation.take();
        assert!(!simulation.out.is_empty(), "{} of {many}", refused.len());
        for (number, _, entries) in std::mem::take(&mut simulation.out) {
            for entry in entries {
                refused.insert(entry.clone());
                simulation.head.settle(number, entry, rejected(), simulation.at);
            }
        }
        simulation.check();
    }
    assert_eq!(simulation.head.counts().resting, REFUSED_MAX);
    assert!(simulation.head.next().at.is_some());
    simulation.at += TIMERS_READ_AGAIN;
    simulation.begin_read();
    simulation.end_read();
    simulation.finish(&mut Rng::new(2));
    assert!(simulation.index.is_empty());
}

#[test]
fn what_waits_for_something_else_is_not_looked_at_meanwhile() {
    let mut simulation = Simulation::new();
    simulation.begin_read();
    let (asked, _) = simulation.read.take().unwrap();
    simulation.head.end_read(&asked, None, simulation.at);
    let again = simulation.at + TIMERS_READ_AGAIN;
    assert_eq!(simulation.head.next().at, Some(again), "the index could not be read");
    simulation.at = again;
    simulation.begin_read();
    assert_eq!(simulation.head.next().at, None, "the end of the read wakes the dispatcher");
    simulation.end_read();

    simulation.add(500, false);
    simulation.take();
    let (number, _, entries) = simulation.out.remove(0);
    simulation.head.settle(number, entries[0].clone(), rejected(), simulation.at);
    let next = simulation.head.next();
    assert!(next.rested.is_some_and(|rested| rested > simulation.at));
    assert_eq!(
        Next { rested: None, ..next },
        Next::default(),
        "a rest alone is looked at if batches may go out"
    );
}

#[test]
fn attempts_end_with_their_time_and_another_term_begins_again() {
    let mut simulation = Simulation::new();
    simulation.begin_read();
    simulation.end_read();
    simulation.add(500, true);
    simulation.add(600, false);
    simulation.take();
    assert_eq!(simulation.head.overdue(simulation.at), []);
    let until = simulation.head.next().at.unwrap();
    assert_eq!(until, simulation.at + TRANSPORT_WAIT);
    assert_eq!(simulation.head.overdue(until), [(1, true)], "the transport lost the batch");
    assert_eq!(simulation.head.overdue(simulation.at + FIRE_WAIT), [(1, true), (2, false)]);
    let number = simulation.out[0].0;
    simulation.head.begin(Some(TERM + 1));
    assert_eq!(simulation.head.counts(), TimerCounts::default());
    simulation.head.settle(number, simulation.out[0].2[0].clone(), Ok(()), simulation.at);
    assert_eq!(simulation.head.counts(), TimerCounts::default(), "results of an earlier term are ignored");
    simulation.begin_read();
    simulation.end_read();
    simulation.out.clear();
    simulation.take();
    assert!(simulation.out[0].0 > number, "numbers keep growing");
    simulation.head.begin(None);
    assert!(
        !simulation.head.changed(EntryChange::Added(entry(1, 1, true)))
            && simulation.head.begin_read(simulation.at).is_none()
    );
}
