//! The log against a plain map, through scrubs and through starts on what a power cut has left.

use crate::support::{copy, durably, open_log, record};
use bytes::Bytes;
use proptest::{prelude::*, test_runner::Config};
use std::{collections::BTreeMap, fs, path::Path};
use switchward_store::{GroupId, GroupLog, Meta, SegmentLog, limits};

#[derive(Clone, Debug)]
enum Step {
    /// Appends `records` records of `bytes` bytes each.
    Append {
        group: u64,
        records: u64,
        bytes: usize,
    },
    /// Removes the last `last` records.
    Truncate {
        group: u64,
        last: u64,
    },
    /// Removes all but the last `last` records.
    Purge {
        group: u64,
        last: u64,
    },
    Vote {
        group: u64,
        term: u8,
    },
    Scrub,
    /// The process dies.
    Crash,
    /// The power is cut while a batch is written that was not synced: some of its pages are zeros.
    Tear {
        group: u64,
        pages: u8,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let group = || 0..3_u64;
    let bytes = prop_oneof![4 => 0..200_usize, 2 => 4_000..60_000_usize, 1 => 200_000..900_000_usize];
    let step = prop_oneof![
        8 => (group(), 1..5_u64, bytes).prop_map(|(group, records, bytes)| Step::Append { group, records, bytes }),
        2 => (group(), 0..6_u64).prop_map(|(group, last)| Step::Truncate { group, last }),
        3 => (group(), 0..6_u64).prop_map(|(group, last)| Step::Purge { group, last }),
        2 => (group(), any::<u8>()).prop_map(|(group, term)| Step::Vote { group, term }),
        1 => Just(Step::Scrub),
        2 => Just(Step::Crash),
        1 => (group(), any::<u8>()).prop_map(|(group, pages)| Step::Tear { group, pages }),
    ];
    proptest::collection::vec(step, 1..40)
}

/// The expected contents of a group's log.
#[derive(Clone, Debug, Default, PartialEq)]
struct Group {
    /// The index of the next record.
    next: u64,
    records: BTreeMap<u64, Vec<u8>>,
    vote: Option<Bytes>,
    purged: Option<Bytes>,
}

impl Group {
    /// The record before the nth of the last ones.
    fn before(&self, last: u64) -> u64 {
        self.next.saturating_sub(last + 1)
    }
}

fn look(log: &SegmentLog, group: u64) -> Group {
    let group = GroupId(group);
    let records = log.read(group, 0..u64::MAX, usize::MAX).unwrap();
    let meta = |slot| log.meta(group, slot).unwrap();
    Group {
        next: 0,
        records: records.into_iter().map(|record| (record.index, record.bytes.to_vec())).collect(),
        vote: meta(Meta::Vote),
        purged: meta(Meta::Purged),
    }
}

fn check(log: &SegmentLog, groups: &[Group; 3]) {
    for (group, expected) in (0..).zip(groups) {
        assert_eq!(look(log, group), Group { next: 0, ..expected.clone() });
    }
}

fn append(log: &SegmentLog, group: u64, of: &mut Group, records: u64, bytes: usize) {
    let new: Vec<_> =
        (0..records).map(|at| record(of.next + at, vec![(of.next + at) as u8; bytes])).collect();
    for record in &new {
        of.records.insert(record.index, record.bytes.to_vec());
    }
    of.next += records;
    durably(|done| log.append(GroupId(group), new, done)).unwrap();
}

fn change(log: &SegmentLog, groups: &mut [Group; 3], step: &Step) {
    match *step {
        Step::Append { group, records, bytes } => {
            append(log, group, &mut groups[group as usize], records, bytes);
        }
        Step::Truncate { group, last } => {
            let of = &mut groups[group as usize];
            // What was purged does not come back.
            let index = of.before(last).max(of.records.keys().next().map_or(of.next, |first| *first));
            if of.records.is_empty() {
                return;
            }
            of.records.split_off(&(index + 1));
            of.next = index + 1;
            durably(|done| log.truncate_after(GroupId(group), Some(index), done)).unwrap();
        }
        Step::Purge { group, last } => {
            let of = &mut groups[group as usize];
            let index = of.before(last);
            let meta = Bytes::from(index.to_be_bytes().to_vec());
            of.records = of.records.split_off(&(index + 1));
            of.purged = Some(meta.clone());
            durably(|done| log.purge_to(GroupId(group), index, meta, done)).unwrap();
        }
        Step::Vote { group, term } => {
            let vote = Bytes::from(vec![term]);
            groups[group as usize].vote = Some(vote.clone());
            durably(|done| log.put_meta(GroupId(group), Meta::Vote, vote, done)).unwrap();
        }
        Step::Scrub => assert!(log.scrub().unwrap()),
        Step::Crash | Step::Tear { .. } => {}
    }
}

/// Writes the pages that a batch has changed in the newest segment of a log to an earlier copy of it, except for
/// some.
fn tear(log: &Path, earlier: &Path, pages: u8) {
    const HEAD_BYTES: usize = 32;
    const PAGE_BYTES: usize = 4096;
    let mut segments: Vec<_> =
        fs::read_dir(log.join("log")).unwrap().map(|entry| entry.unwrap().path()).collect();
    segments.sort();
    let newest = segments.into_iter().rev().find_map(|path| {
        let bytes = fs::read(&path).unwrap();
        // A segment that is being made for later may still be empty.
        let written = bytes.get(HEAD_BYTES..).is_some_and(|rest| rest.iter().any(|byte| *byte != 0));
        written.then_some((path, bytes))
    });
    let (path, bytes) = newest.unwrap();
    let torn = earlier.join("log").join(path.file_name().unwrap());
    // A segment is made before it is written to.
    let mut old = fs::read(&torn)
        .ok()
        .filter(|old| old.len() == bytes.len())
        .unwrap_or_else(|| [&bytes[..HEAD_BYTES], &vec![0; bytes.len() - HEAD_BYTES]].concat());
    let changed = (0..bytes.len())
        .step_by(PAGE_BYTES)
        .filter(|at| old[*at..][..PAGE_BYTES] != bytes[*at..][..PAGE_BYTES]);
    let changed: Vec<usize> = changed.collect();
    for (number, at) in changed.into_iter().enumerate() {
        // At least the first page does not reach the disk.
        if number > 0 && pages >> (number % 8) & 1 == 1 {
            old[at..][..PAGE_BYTES].copy_from_slice(&bytes[at..][..PAGE_BYTES]);
        }
    }
    fs::write(&torn, old).unwrap();
}

fn run(steps: Vec<Step>) {
    let root = tempfile::tempdir().unwrap();
    let mut path = root.path().join("0");
    let mut log = open_log(&path);
    let mut groups: [Group; 3] = Default::default();
    groups.iter_mut().for_each(|group| group.next = 1);
    for (number, step) in steps.iter().enumerate() {
        let next = root.path().join((number + 1).to_string());
        match step {
            Step::Crash => {
                copy(&path, &next);
                path = next;
                log = open_log(&path);
            }
            Step::Tear { group, pages } => {
                copy(&path, &next);
                let mut lost = groups[*group as usize].clone();
                append(&log, *group, &mut lost, 3, 5_000);
                tear(&path, &next, *pages);
                path = next;
                log = open_log(&path);
            }
            step @ (Step::Append { .. }
            | Step::Truncate { .. }
            | Step::Purge { .. }
            | Step::Vote { .. }
            | Step::Scrub) => change(&log, &mut groups, step),
        }
        check(&log, &groups);
    }
    drop(log);
    check(&open_log(&path), &groups);
}

proptest! {
    #![proptest_config(Config { cases: 40, failure_persistence: None, ..Config::default() })]

    #[test]
    fn a_log_is_a_map_whatever_happens(steps in steps()) {
        run(steps);
    }
}

/// Bytes of all segments.
fn bytes_on_disk(path: &Path) -> u64 {
    let sizes = fs::read_dir(path.join("log")).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len());
    sizes.sum()
}

#[test]
fn a_record_that_stays_does_not_keep_all_that_came_after_it() {
    let root = tempfile::tempdir().unwrap();
    let log = open_log(root.path());
    let (idle, busy) = (GroupId(1), GroupId(2));
    durably(|done| log.append(idle, vec![record(1, "stays")], done)).unwrap();
    durably(|done| log.put_meta(idle, Meta::Vote, Bytes::from_static(b"term 1"), done)).unwrap();
    let bytes = 1 << 20;
    for index in 1..=200 {
        durably(|done| log.append(busy, vec![record(index, vec![7; bytes])], done)).unwrap();
        durably(|done| log.purge_to(busy, index, Bytes::new(), done)).unwrap();
    }
    // The segment made in advance and the one just left.
    let most = limits::LOG_GARBAGE_BYTES + 3 * limits::LOG_SEGMENT_BYTES_MAX;
    drop(log);
    let left = bytes_on_disk(root.path());
    assert!(left <= most, "{left} bytes are left");
    let log = open_log(root.path());
    assert_eq!(log.read(idle, 0..9, usize::MAX).unwrap(), [record(1, "stays")]);
    assert_eq!(log.meta(idle, Meta::Vote).unwrap().unwrap(), "term 1");
    assert_eq!(log.first_last(busy).unwrap(), None);
}
