//! A head beside a model of the index: whatever is applied, read, handed out, lost and refused, every entry is known in one
//! place, none is handed out early or twice at a time, and no more are held than may be.

use std::collections::BTreeSet;
use std::time::Duration;
use switchward_engine::{IndexKey, Key, Reason, Rejection};
use switchward_machine::{Digest, OpenId, SessionId, TenantId, Time};
use tokio::time::Instant;

use super::*;
use crate::limits::{FIRE_WAIT, REFUSED_MAX, ROAD_WAIT};

#[path = "../../../../engine/tests/replay/chance.rs"]
#[expect(dead_code, reason = "other tests choose in more ways")]
mod chance;
use chance::Chance;

const TERM: u64 = 3;
const RUNS: u64 = 12;
const STEPS: usize = 400;

fn session() -> SessionId {
    SessionId::from_key(TenantId(1), "s")
}

/// An entry of the index: of what somebody waits for, or the server's own.
fn entry(at: u64, number: u64, travels: bool) -> Key {
    let row = if travels {
        Key::thing(TenantId(1), session(), OpenId(number))
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
struct World {
    index: BTreeSet<Key>,
    head: Head,
    now: u64,
    at: Instant,
    /// A read that has been asked for, with what it has seen so far.
    read: Option<(ReadFrom, Vec<Key>)>,
    /// Attempts, with what is believed to be out.
    out: Vec<(u64, bool, Vec<Key>)>,
    next: u64,
}

impl World {
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
        self.head.changed(entry, true);
    }

    fn remove(&mut self, entry: &Key) {
        self.index.remove(entry);
        self.head.changed(entry.clone(), false);
    }

    fn begin_read(&mut self) {
        if self.read.is_none() {
            self.read = self.head.begin_read(self.at).map(|asked| (asked, Vec::new()));
        }
    }

    /// A read sees each row as it is at some moment of it: so many more now.
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
        for (entries, road) in [(taken.travel, true), (taken.own, false)] {
            if entries.is_empty() {
                continue;
            }
            let early = entries.iter().filter(|entry| due_of(entry).unwrap().at > Time(self.now)).count();
            assert_eq!(early, 0, "none is early");
            let again = entries.iter().filter(|entry| self.head.flying.contains_key(*entry)).count();
            assert_eq!(again, 0, "none is out twice");
            assert!(entries.iter().all(|entry| travels(&due_of(entry).unwrap().key) == road));
            let until = self.at + if road { ROAD_WAIT } else { FIRE_WAIT };
            let number = self.head.launch(&entries, until, road);
            self.out.push((number, road, entries));
        }
    }

    /// Something becomes of an attempt.
    fn end(&mut self, chance: &mut Chance) {
        if self.out.is_empty() {
            return;
        }
        let (number, road, entries) = self.out.remove(chance.below(self.out.len()));
        if road && chance.once_in(4) {
            // Lost, or refused: it is recalled, and what is left goes out again.
            let left = self.head.recall(number);
            let again = self.head.launch(&left, self.at + FIRE_WAIT, false);
            self.out.push((again, false, left));
            return;
        }
        let entries = if road {
            let batch = TimerBatch { shard: 1, term: TERM, number, timers: entries };
            let stale = TimerBatch { term: TERM - 1, ..batch.clone() };
            assert_eq!(self.head.came(&stale, self.at + FIRE_WAIT), None, "of another term");
            // Nobody waits for one whose timers are all gone.
            let came = self.head.came(&batch, self.at + FIRE_WAIT).unwrap_or_default();
            assert_eq!(self.head.came(&batch, self.at + FIRE_WAIT), None, "and once more");
            came
        } else {
            entries
        };
        for entry in entries {
            let result = match chance.below(10) {
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
        let places = |entry: &Key| {
            [head.waiting.contains(entry), head.flying.contains_key(entry), head.resting.holds(entry)]
        };
        if head.anew.is_none() {
            for entry in self.index.iter().filter(|entry| head.known.covers(entry)) {
                assert_eq!(places(entry).iter().filter(|place| **place).count(), 1, "{:?}", due_of(entry));
            }
        }
        for entry in head.waiting.iter().chain(head.flying.keys()) {
            assert!(self.index.contains(entry), "what is gone is held no more");
        }
        let left: usize = head.attempts.values().map(|attempt| attempt.left).sum();
        assert_eq!(left, head.flying.len());
    }

    /// Goes on until nothing that is due is left.
    fn finish(&mut self, chance: &mut Chance) {
        for _ in 0..100_000 {
            if self.index.first().is_none_or(|entry| due_of(entry).unwrap().at > Time(self.now)) {
                return;
            }
            self.at += Duration::from_millis(500);
            self.begin_read();
            self.end_read();
            self.take();
            self.end(chance);
        }
        panic!("something due was never done: {:?}", self.head.counts());
    }
}

#[test]
fn whatever_happens_each_is_known_once_and_done() {
    for seed in 0..RUNS {
        let mut chance = Chance::new(seed);
        let mut world = World::new();
        for _ in 0..STEPS {
            match chance.below(9) {
                0 | 1 => {
                    for _ in 0..chance.below(40) {
                        let due = world.now + chance.from(0, 2_000) - 500;
                        world.add(due, !chance.once_in(5));
                    }
                }
                2 => {
                    let some: Vec<Key> = world.index.iter().filter(|_| chance.once_in(20)).cloned().collect();
                    some.iter().for_each(|entry| world.remove(entry));
                }
                3 => world.begin_read(),
                4 => world.read_on(chance.below(50)),
                5 => world.end_read(),
                6 => world.take(),
                7 => world.end(&mut chance),
                _ => {
                    world.now += chance.from(0, 200);
                    world.at += Duration::from_millis(chance.from(0, 500));
                }
            }
            world.check();
        }
        world.finish(&mut chance);
        world.check();
    }
}

#[test]
fn of_many_no_more_than_the_first_are_held() {
    let (mut world, mut chance) = (World::new(), Chance::new(1));
    world.begin_read();
    world.end_read();
    let most = u64::try_from(TIMERS_HEAD_MAX).unwrap();
    // The later ones come first, so that each of them has to make room.
    for number in 0..3 * most {
        world.add(1_000_000 + 3 * most - number, true);
    }
    assert_eq!(world.head.counts().waiting, TIMERS_HEAD_MAX);
    world.now = 2_000_000;
    world.finish(&mut chance);
    assert!(world.index.is_empty());
    assert!(world.head.reads >= 3, "the others were read when their turn came: {}", world.head.reads);
}

#[test]
fn what_is_applied_while_a_read_is_under_way_is_not_missed() {
    let mut world = World::new();
    for number in 0..10 {
        world.add(5_000 + number, true);
    }
    assert_eq!(world.head.counts().waiting, 0, "nothing is known yet");
    world.begin_read();
    world.read_on(5);
    let first = world.index.first().unwrap().clone();
    world.remove(&first);
    // One where the read has been already, one where it comes to yet.
    world.add(4_000, true);
    world.add(6_000, true);
    world.end_read();
    world.check();
    assert_eq!((world.head.counts().waiting, world.index.len()), (11, 11));
}

#[test]
fn more_refusals_than_can_rest_are_found_again() {
    let mut world = World::new();
    world.begin_read();
    world.end_read();
    let many = REFUSED_MAX + 500;
    for number in 0..many {
        world.add(500, number % 2 == 0);
    }
    let mut refused = BTreeSet::new();
    while refused.len() < many {
        world.take();
        assert!(!world.out.is_empty(), "{} of {many}", refused.len());
        for (number, _, entries) in std::mem::take(&mut world.out) {
            for entry in entries {
                refused.insert(entry.clone());
                world.head.settle(number, entry, rejected(), world.at);
            }
        }
        world.check();
    }
    assert_eq!(world.head.counts().resting, REFUSED_MAX);
    assert!(world.head.next().at.is_some());
    world.at += TIMERS_READ_AGAIN;
    world.begin_read();
    world.end_read();
    world.finish(&mut Chance::new(2));
    assert!(world.index.is_empty());
}

#[test]
fn attempts_end_with_their_time_and_another_term_begins_anew() {
    let mut world = World::new();
    world.begin_read();
    world.end_read();
    world.add(500, true);
    world.add(600, false);
    world.take();
    assert_eq!(world.head.overdue(world.at), []);
    let until = world.head.next().at.unwrap();
    assert_eq!(until, world.at + ROAD_WAIT);
    assert_eq!(world.head.overdue(until), [(1, true)], "lost on the road");
    assert_eq!(world.head.overdue(world.at + FIRE_WAIT), [(1, true), (2, false)]);
    let number = world.out[0].0;
    world.head.begin(Some(TERM + 1));
    assert_eq!(world.head.counts(), TimerCounts::default());
    world.head.settle(number, world.out[0].2[0].clone(), Ok(()), world.at);
    assert_eq!(world.head.counts(), TimerCounts::default(), "what an earlier term says is nothing");
    world.begin_read();
    world.end_read();
    world.out.clear();
    world.take();
    assert!(world.out[0].0 > number, "numbers go on");
    world.head.begin(None);
    assert!(!world.head.changed(entry(1, 1, true), true) && world.head.begin_read(world.at).is_none());
}
