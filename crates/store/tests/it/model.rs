//! The state against a plain map, through flushes, crashes and snapshots.

use crate::support::{self, GROUP, Text, open_state, open_state_with, range, text};
use proptest::{prelude::*, test_runner::Config};
use std::{collections::BTreeMap, ops::Bound, path::Path};
use switchward_store::{DataDir, Snapshots, State, StateOptions, StateStore};

#[derive(Clone, Debug)]
enum Step {
    /// An entry: each change appends a character to a row, or removes it. Applying it twice would show.
    Entry(Vec<(u8, Option<char>)>),
    Flush,
    /// Frozen, and not yet written when the next step comes.
    Freeze,
    /// The process dies, and the log is replayed. After that, a flush of at least this many bytes becomes a table.
    Crash(usize),
    Scan(u8, u8, usize),
    /// The state moves to an empty folder.
    Move,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let change = (0..12_u8, proptest::option::weighted(0.7, proptest::char::range('a', 'z')));
    let step = prop_oneof![
        8 => proptest::collection::vec(change, 0..6).prop_map(Step::Entry),
        3 => Just(Step::Flush),
        2 => Just(Step::Freeze),
        2 => prop_oneof![Just(0), Just(600), Just(usize::MAX)].prop_map(Step::Crash),
        3 => (0..13_u8, 0..13_u8, 0..9_usize).prop_map(|(from, to, limit)| Step::Scan(from, to, limit)),
        1 => Just(Step::Move),
    ];
    proptest::collection::vec(step, 1..40)
}

type Entry = Vec<(u8, Option<char>)>;
type Model = BTreeMap<String, String>;

fn apply(state: &State<Text>, index: usize, entry: &Entry) {
    let mut rows = BTreeMap::new();
    for (key, suffix) in entry {
        let key = format!("{key:02}");
        let stored = || state.get(key.as_bytes()).unwrap();
        let old: Option<Text> = rows.get(&key).cloned().unwrap_or_else(stored);
        let new =
            suffix.and_then(|suffix| text(&format!("{}{suffix}", old.map_or(String::new(), |old| old.text))));
        rows.insert(key, new);
    }
    support::apply(state, rows, index.to_be_bytes().to_vec());
}

fn apply_to_model(model: &mut Model, entry: &Entry) {
    for (key, suffix) in entry {
        let key = format!("{key:02}");
        match suffix {
            Some(suffix) => model.entry(key).or_default().push(*suffix),
            None => drop(model.remove(&key)),
        }
    }
}

fn replay(state: &State<Text>, log: &[Entry]) {
    let applied = state.applied().map(|blob| usize::from_be_bytes(blob[..].try_into().unwrap()));
    for (index, entry) in log.iter().enumerate().skip(applied.map_or(0, |index| index + 1)) {
        apply(state, index, entry);
    }
}

fn move_to(state: &State<Text>, path: &Path) -> State<Text> {
    let dir = DataDir::open(path).unwrap();
    let exported = state.export(&Snapshots::open(&dir).unwrap()).unwrap();
    let fresh = StateStore::open(&dir).unwrap().group(GROUP, &StateOptions::default()).unwrap();
    fresh.install(&exported).unwrap();
    assert_eq!(exported.digest(), state.digest().unwrap());
    fresh
}

fn run(steps: Vec<Step>) {
    let root = tempfile::tempdir().unwrap();
    let mut path = root.path().join("0");
    let mut state = open_state(&path);
    let (mut frozen, mut log, mut model) = (None, Vec::new(), Model::new());
    for (number, step) in steps.into_iter().enumerate() {
        match step {
            Step::Entry(entry) => {
                apply(&state, log.len(), &entry);
                apply_to_model(&mut model, &entry);
                log.push(entry);
            }
            Step::Flush => {
                if let Some(flush) = frozen.take().or_else(|| state.begin_flush()) {
                    flush.run().unwrap();
                }
            }
            Step::Freeze => frozen = frozen.or_else(|| state.begin_flush()),
            Step::Crash(ingested_bytes_min) => {
                drop((frozen.take(), state));
                let options = StateOptions { ingested_bytes_min, ..StateOptions::default() };
                state = open_state_with(&path, &options);
                replay(&state, &log);
            }
            Step::Scan(from, to, limit) => {
                let (from, to) = (format!("{from:02}"), format!("{to:02}"));
                let bounds = (Bound::Included(from.as_bytes()), Bound::Excluded(to.as_bytes()));
                let rows = model.iter().filter(|(key, _)| **key >= from && **key < to).take(limit);
                let expected: Vec<_> = rows.map(|(key, row)| (key.clone(), row.clone())).collect();
                assert_eq!(range(&state, bounds.0, bounds.1, limit), expected);
            }
            Step::Move => {
                drop(frozen.take());
                path = root.path().join((number + 1).to_string());
                state = move_to(&state, &path);
            }
        }
        let all = range(&state, Bound::Unbounded, Bound::Unbounded, usize::MAX);
        assert_eq!(all.into_iter().collect::<Model>(), model);
    }
}

proptest! {
    #![proptest_config(Config { cases: 40, failure_persistence: None, ..Config::default() })]

    #[test]
    fn a_state_is_a_map_whatever_happens(steps in steps()) {
        run(steps);
    }
}
