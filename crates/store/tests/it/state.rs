use crate::support::{GROUP, Text, apply, open_state, open_state_with, range, rows, text};
use std::{
    fs,
    ops::{Bound, ControlFlow},
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering::Relaxed},
        mpsc,
    },
    thread,
};
use switchward_store::{DataDir, Record, State, StateOptions, StateStore, StoreError};

fn flush(state: &State<Text>, applied: &str) {
    apply::<_, &[u8]>(state, [], applied.to_owned());
    state.begin_flush().unwrap().run().unwrap();
}

#[test]
fn a_flush_takes_whole_entries_and_their_applied_blob() {
    let root = tempfile::tempdir().unwrap();
    let state = open_state(root.path());
    assert_eq!(state.applied(), None);
    assert!(state.begin_flush().is_none(), "there is nothing to flush");
    apply(&state, [(b"a", text("1"))], "first");
    let frozen = state.begin_flush().unwrap();
    apply(&state, [(b"a", text("2")), (b"b", text("2"))], "second, and lost");
    assert_eq!(rows(&state), [("a".into(), "2".into()), ("b".into(), "2".into())]);
    assert_eq!(frozen.rows(), 1, "the second entry is not in it");
    assert!(state.begin_flush().is_none(), "one flush at a time");
    frozen.run().unwrap();
    assert_eq!(state.persist().unwrap().unwrap(), "first");
    drop(state);

    let state = open_state(root.path());
    assert_eq!(rows(&state), [("a".into(), "1".into())], "nothing of the second entry is on disk");
    assert_eq!(state.applied().unwrap(), "first");
}

#[test]
fn an_entry_without_rows_still_moves_the_applied_blob() {
    let root = tempfile::tempdir().unwrap();
    let state = open_state(root.path());
    flush(&state, "no rows");
    drop(state);
    assert_eq!(open_state(root.path()).applied().unwrap(), "no rows");
}

#[test]
fn a_flush_that_never_ran_gives_its_rows_back() {
    let root = tempfile::tempdir().unwrap();
    let state = open_state(root.path());
    apply(&state, [(b"a", text("old")), (b"b", text("old"))], "one");
    let frozen = state.begin_flush().unwrap();
    apply(&state, [(b"a", text("new"))], "two");
    let bytes = state.dirty_bytes();
    drop(frozen);
    assert_eq!(state.dirty_bytes(), 2 * bytes);
    let frozen = state.begin_flush().unwrap();
    assert_eq!(frozen.rows(), 2);
    frozen.run().unwrap();
    drop(state);
    let state = open_state(root.path());
    assert_eq!(rows(&state), [("a".into(), "new".into()), ("b".into(), "old".into())]);
    assert_eq!(state.applied().unwrap(), "two");
}

#[test]
fn many_rows_become_a_table_and_are_newer_than_the_journal() {
    let root = tempfile::tempdir().unwrap();
    let options = StateOptions { ingested_bytes_min: 100_000, ..StateOptions::default() };
    let state = open_state_with(root.path(), &options);
    let long = "of a table".repeat(10_000);
    apply(&state, [("a", text("of a batch")), ("b", text("removed"))], "few");
    state.begin_flush().unwrap().run().unwrap();
    apply(&state, [("a", text(&long)), ("b", None), ("c", text("new"))], "many");
    state.begin_flush().unwrap().run().unwrap();
    drop(state);
    let journal = fs::read(root.path().join("state/0.jnl")).unwrap();
    let holds = |text: &str| journal.windows(text.len()).any(|bytes| bytes == text.as_bytes());
    assert!(holds("of a batch") && !holds("of a tableof a table"));

    let state = open_state_with(root.path(), &options);
    assert_eq!(rows(&state), [("a".into(), long), ("c".into(), "new".into())]);
    assert_eq!(state.applied().unwrap(), "many");
    apply(&state, [("c", text("newer"))], "few");
    state.begin_flush().unwrap().run().unwrap();
    drop(state);
    let state = open_state(root.path());
    assert_eq!(rows(&state)[1], ("c".into(), "newer".into()));
    assert_eq!(state.applied().unwrap(), "few");
}

#[test]
fn scans_merge_memory_and_disk() {
    let root = tempfile::tempdir().unwrap();
    let state = open_state(root.path());
    let named = |key: u32| format!("{key:04}");
    apply(&state, (0..3000).map(|key| (named(key), text("disk"))), "on disk");
    flush(&state, "disk");
    apply(&state, (0..3000).step_by(2).map(|key| (named(key), None)), "frozen");
    let frozen = state.begin_flush().unwrap();
    apply(&state, (0..3000).step_by(3).map(|key| (named(key), text("dirty"))), "dirty");
    apply(&state, [("0001", text("entry")), ("0003", None)], "dirtier");
    let expected = |key: &u32| match key {
        1 => Some("entry"),
        3 => None,
        key if key.is_multiple_of(3) => Some("dirty"),
        key if key.is_multiple_of(2) => None,
        _ => Some("disk"),
    };
    let all: Vec<(String, String)> =
        (0..3000).filter_map(|key| Some((format!("{key:04}"), expected(&key)?.to_owned()))).collect();
    let digest = state.digest().unwrap();
    let check = || {
        assert_eq!(rows(&state), all);
        let some = range(&state, Bound::Excluded(b"0001"), Bound::Included(b"0009"), 3);
        let keys: Vec<&str> = some.iter().map(|(key, _)| key.as_str()).collect();
        assert_eq!(keys, ["0005", "0006", "0007"]);
        assert!(range(&state, Bound::Included(b"0005"), Bound::Excluded(b"0005"), 9).is_empty());
        assert!(range(&state, Bound::Included(b"2"), Bound::Included(b"1"), 9).is_empty());
        assert!(range(&state, Bound::Unbounded, Bound::Unbounded, 0).is_empty());
        assert_eq!(state.digest().unwrap(), digest);
    };
    check();
    frozen.run().unwrap();
    check();
    flush(&state, "all");
    check();
    let mut visited = 0;
    let visit = |_: &[u8], _: &Text| {
        visited += 1;
        if visited == 5 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    state.scan(Bound::Unbounded, Bound::Unbounded, 9, visit).unwrap();
    assert_eq!(visited, 5);
}

#[test]
fn the_clean_cache_is_bounded_and_parked_rows_stay_out() {
    let root = tempfile::tempdir().unwrap();
    let store = StateStore::open(&DataDir::open(root.path()).unwrap()).unwrap();
    let options = StateOptions { clean_bytes_max: 100_000, ..StateOptions::default() };
    let state: State<Text> = store.group(GROUP, &options).unwrap();
    let fill = |parked, applied: &str| {
        let row = Text { text: "x".repeat(500), parked };
        apply(&state, (0..1000).map(|key| (format!("{key:04}"), Some(row.clone()))), "filled");
        assert!(state.dirty_bytes() >= 1000 * 500);
        flush(&state, applied);
        assert_eq!(state.dirty_bytes(), 0);
    };
    fill(false, "hot");
    let after_flush = state.clean_bytes();
    assert!((90_000..=100_000).contains(&after_flush), "{after_flush}");
    for key in 0..1000 {
        assert!(state.get(format!("{key:04}").as_bytes()).unwrap().is_some());
        assert!(state.clean_bytes() <= 100_000);
    }
    fill(true, "parked");
    assert_eq!(state.clean_bytes(), 0);
    assert!(state.get(b"0500").unwrap().unwrap().parked);
    assert_eq!(state.clean_bytes(), 0, "reading a parked row does not keep it");
}

#[test]
fn a_row_that_was_missed_is_found_once_it_is_there() {
    let root = tempfile::tempdir().unwrap();
    let state = open_state(root.path());
    for parked in [false, true] {
        let row = Some(Text { text: "it is there".to_owned(), parked });
        for _ in 0..2 {
            assert_eq!(state.get(b"key").unwrap(), None, "parked: {parked}");
        }
        apply(&state, [(b"key", row.clone())], "there");
        flush(&state, "on disk");
        assert_eq!(state.get(b"key").unwrap(), row, "parked: {parked}");
        apply(&state, [(b"key", None)], "gone");
        flush(&state, "gone from the disk");
    }
}

#[test]
fn a_group_has_one_state_at_a_time() {
    let root = tempfile::tempdir().unwrap();
    let store = StateStore::open(&DataDir::open(root.path()).unwrap()).unwrap();
    let state: State<Text> = store.group(GROUP, &StateOptions::default()).unwrap();
    let again = store.group::<Text>(GROUP, &StateOptions::default());
    assert!(matches!(again, Err(StoreError::AlreadyOpen(GROUP))));
    drop(state);
    store.group::<Text>(GROUP, &StateOptions::default()).unwrap();
}

/// Waits for its test in the first decoding: a reader has then read the disk and not yet filled the cache.
#[derive(Clone)]
struct Slow(Text);

static MEETING: Mutex<Option<(mpsc::Sender<()>, mpsc::Receiver<()>)>> = Mutex::new(None);

impl Record for Slow {
    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode(out);
    }

    fn decode(bytes: &[u8]) -> Result<Self, String> {
        if let Some((reached, go_on)) = MEETING.lock().unwrap().take() {
            reached.send(()).unwrap();
            go_on.recv().unwrap();
        }
        Text::decode(bytes).map(Slow)
    }

    fn weight(&self) -> usize {
        self.0.weight()
    }

    fn cache(&self) -> bool {
        self.0.cache()
    }
}

#[test]
fn a_slow_reader_does_not_bring_an_old_row_back() {
    let root = tempfile::tempdir().unwrap();
    let put = |state: &State<Slow>, text: &str| {
        let row = Slow(Text { text: text.to_owned(), parked: false });
        apply(state, [(b"key", Some(row))], text.to_owned());
        state.begin_flush().unwrap().run().unwrap();
    };
    let open = || -> State<Slow> {
        let store = StateStore::open(&DataDir::open(root.path()).unwrap()).unwrap();
        store.group(GROUP, &StateOptions::default()).unwrap()
    };
    put(&open(), "old");
    let state = open();
    let (reached, in_decode) = mpsc::channel();
    let (release, go_on) = mpsc::channel();
    *MEETING.lock().unwrap() = Some((reached, go_on));
    thread::scope(|scope| {
        let reader = scope.spawn(|| state.get(b"key").unwrap().unwrap().0.text.clone());
        in_decode.recv().unwrap();
        put(&state, "new");
        release.send(()).unwrap();
        assert_eq!(reader.join().unwrap(), "old", "the read began before the write");
    });
    assert_eq!(state.get(b"key").unwrap().unwrap().0.text, "new");
}

/// A writer counts up, a flusher flushes without pause, and no reader may ever see a count go down. The cache
/// is too small for all rows, so that readers go to disk as well.
#[test]
fn reads_never_go_back_in_time() {
    const KEYS: usize = 8;
    let root = tempfile::tempdir().unwrap();
    let store = StateStore::open(&DataDir::open(root.path()).unwrap()).unwrap();
    let state: State<Text> =
        store.group(GROUP, &StateOptions { clean_bytes_max: 600, ..StateOptions::default() }).unwrap();
    let stop = AtomicBool::new(false);
    let count = |row: Option<Text>| row.map_or(0, |row| row.text.parse::<u64>().unwrap());
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Relaxed) {
                if let Some(flush) = state.begin_flush() {
                    flush.run().unwrap();
                }
            }
        });
        for _ in 0..2 {
            scope.spawn(|| {
                let mut last = [0; KEYS];
                while !stop.load(Relaxed) {
                    for (key, last) in last.iter_mut().enumerate() {
                        let now = count(state.get(&[u8::try_from(key).unwrap()]).unwrap());
                        assert!(now >= *last, "{now} after {last}");
                        *last = now;
                    }
                    let visit = |key: &[u8], row: &Text| {
                        let (now, last) = (count(Some(row.clone())), &mut last[usize::from(key[0])]);
                        assert!(now >= *last, "{now} after {last} in a scan");
                        *last = now;
                        ControlFlow::Continue(())
                    };
                    state.scan(Bound::Unbounded, Bound::Unbounded, usize::MAX, visit).unwrap();
                }
            });
        }
        for entry in 1..=4000_u64 {
            let key = [u8::try_from(entry % KEYS as u64).unwrap()];
            let row = text(&(count(state.get(&key).unwrap()) + 1).to_string());
            apply(&state, [(key, row)], entry.to_be_bytes().to_vec());
        }
        stop.store(true, Relaxed);
    });
    assert_eq!(rows(&state).iter().map(|(_, text)| text.parse::<u64>().unwrap()).sum::<u64>(), 4000);
}
