//! What a kill or a power cut leaves on disk.

use crate::support::{GROUP, apply, copy, durably, open_log, open_state, record, rows, text};
use bytes::Bytes;
use std::{
    fs::{self, File},
    os::unix::fs::FileExt,
    path::Path,
};
use switchward_store::{DataDir, FjallLog, GroupLog, LogOptions, StateStore, StoreError};

const PAGE: usize = 4096;

fn find(journal: &Path, needle: &[u8]) -> usize {
    let bytes = fs::read(journal).unwrap();
    bytes.windows(needle.len()).position(|window| window == needle).unwrap()
}

/// A copy of a log of three batches, with a page of zeros inside the value of the given record.
fn torn_log(root: &Path, index: u64) -> std::path::PathBuf {
    let log = open_log(&root.join("whole"));
    for (index, letter) in [(1, b'a'), (2, b'b'), (3, b'c')] {
        durably(|done| log.append(GROUP, vec![record(index, vec![letter; 4 * PAGE])], done)).unwrap();
    }
    let torn = root.join("torn");
    copy(&root.join("whole"), &torn);
    let journal = torn.join("log/0.jnl");
    let letter = [b'a' + u8::try_from(index).unwrap() - 1; 2 * PAGE];
    let hole = find(&journal, &letter) + PAGE / 2;
    File::options().write(true).open(&journal).unwrap().write_all_at(&[0; PAGE], hole as u64).unwrap();
    torn
}

#[test]
fn a_batch_that_was_torn_inside_a_value_is_cut_off() {
    let root = tempfile::tempdir().unwrap();
    let torn = torn_log(root.path(), 3);
    let log = open_log(&torn);
    assert_eq!(log.first_last(GROUP).unwrap(), Some((1, 2)));
    durably(|done| log.append(GROUP, vec![record(3, "again")], done)).unwrap();
    drop(log);
    assert_eq!(open_log(&torn).last(GROUP).unwrap(), Some(record(3, "again")));
}

#[test]
fn damage_before_the_last_batch_is_not_cut_off() {
    let root = tempfile::tempdir().unwrap();
    let torn = torn_log(root.path(), 2);
    let options = LogOptions { on_fatal: Box::new(|_| {}), sync_fault: None };
    let Err(error) = FjallLog::open(&DataDir::open(torn).unwrap(), options) else { panic!("it opened") };
    let StoreError::Damaged { what: "journal", detail } = &error else { panic!("{error}") };
    assert!(detail.contains("the batch at byte") && detail.contains("log/0.jnl"), "{detail}");
}

/// A state of four flushes, each with a row of several pages, and what it looked like after each.
fn flushed(path: &Path) -> Vec<Look> {
    let state = open_state(path);
    let mut looks = vec![(None, Vec::new())];
    for (entry, letter) in (0_u8..).zip(["a", "b", "c", "d"]) {
        let (row, long) = (text(&format!("of entry {entry}")), text(&letter.repeat(4 * PAGE)));
        apply(&state, [("row", row), (&format!("long {letter}"), long)], vec![entry]);
        state.begin_flush().unwrap().run().unwrap();
        looks.push((state.applied(), rows(&state)));
    }
    drop(state);
    // Without the room that it has in advance, which would have to be copied.
    let journal = path.join("state/0.jnl");
    let used = fs::read(&journal).unwrap().iter().rposition(|byte| *byte != 0).unwrap() + 1;
    File::options().write(true).open(&journal).unwrap().set_len(used as u64).unwrap();
    looks
}

type Look = (Option<Bytes>, Vec<(String, String)>);

/// Makes a hole in a journal: so many bytes of zeros, from an offset inside the value of one letter.
fn punch(journal: &Path, letter: u8, offset: isize, bytes: usize) {
    let value = isize::try_from(find(journal, &[letter; 2 * PAGE])).unwrap();
    let at = u64::try_from(value + offset).unwrap();
    File::options().write(true).open(journal).unwrap().write_all_at(&vec![0; bytes], at).unwrap();
}

/// Flushes are written without a sync, so a power cut may leave a hole in any of them, inside a value or anywhere
/// else: what is left is the state before it, and whatever follows can be written again.
#[test]
fn a_state_that_was_torn_anywhere_is_an_earlier_one() {
    let root = tempfile::tempdir().unwrap();
    let looks = flushed(&root.path().join("whole"));
    // Inside a value; from the length of a value on, from that of its key on, from its tag on; the tag alone, the
    // length of the key alone; from somewhere in the entry before.
    let inside = PAGE as isize;
    let holes =
        [(inside, PAGE), (-13, PAGE), (-19, PAGE), (-30, PAGE), (-30, 1), (-19, 2), (-40, PAGE), (-47, 20)];
    for (number, (offset, bytes)) in holes.into_iter().enumerate() {
        for (batch, letter) in (1..).zip(*b"abcd") {
            let torn = root.path().join(format!("torn-{number}-{batch}"));
            copy(&root.path().join("whole"), &torn);
            punch(&torn.join("state/0.jnl"), letter, offset, bytes);
            let state = open_state(&torn);
            assert_eq!((state.applied(), rows(&state)), looks[batch - 1], "hole {number} in flush {batch}");
            apply(&state, [("row", text("again"))], "again");
            state.begin_flush().unwrap().run().unwrap();
            let look = (state.applied(), rows(&state));
            drop(state);
            let state = open_state(&torn);
            assert_eq!((state.applied(), rows(&state)), look);
        }
    }
}

/// An older journal was synced before the newer one was begun, whose batches are nothing without the older ones'.
#[test]
fn damage_to_an_older_journal_of_a_state_is_told_with_its_place() {
    // Inside a value, and the tag before one.
    for (offset, bytes) in [(PAGE as isize, PAGE), (-30, 1)] {
        let root = tempfile::tempdir().unwrap();
        flushed(root.path());
        let folder = root.path().join("state");
        fs::copy(folder.join("0.jnl"), folder.join("1.jnl")).unwrap();
        punch(&folder.join("0.jnl"), b'b', offset, bytes);
        let Err(error) = StateStore::open(&DataDir::open(root.path()).unwrap()) else { panic!("it opened") };
        let StoreError::Damaged { what: "journal", detail } = &error else { panic!("{error}") };
        assert!(detail.contains("the batch at byte") && detail.contains("state/0.jnl"), "{detail}");
    }
}

#[test]
fn a_log_that_was_hardly_created_opens() {
    for left in ["0.jnl", "version", "lock"] {
        let root = tempfile::tempdir().unwrap();
        drop(DataDir::open(root.path()).unwrap());
        let file = File::create(root.path().join("log").join(left)).unwrap();
        file.set_len(if left == "0.jnl" { 64 << 20 } else { 0 }).unwrap();
        let log = open_log(root.path());
        durably(|done| log.append(GROUP, vec![record(1, "first")], done)).unwrap();
    }
}

/// Wherever the journal is cut, the rows are those of the entry that the applied blob names: never half of a
/// flush.
#[test]
fn a_flush_is_on_disk_whole_or_not_at_all() {
    let root = tempfile::tempdir().unwrap();
    let whole = root.path().join("whole");
    let state = open_state(&whole);
    let mut expected = vec![(None, Vec::new())];
    for entry in 0..4 {
        let five = (0..5).map(|row| (format!("row {row}"), text(&format!("of entry {entry}"))));
        apply(&state, five.chain([(format!("row {entry}"), None)]), vec![entry]);
        state.begin_flush().unwrap().run().unwrap();
        expected.push((Some(vec![entry].into()), rows(&state)));
    }
    let journal = fs::read(whole.join("state/0.jnl")).unwrap();
    let used = journal.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    let mut seen = Vec::new();
    for cut in (0..=used).step_by(used / 24).chain([used]) {
        let torn = root.path().join(format!("torn at {cut}"));
        copy(&whole, &torn);
        let journal = File::options().write(true).open(torn.join("state/0.jnl")).unwrap();
        journal.set_len(cut as u64).unwrap();
        journal.set_len(64 << 20).unwrap();
        let state = open_state(&torn);
        let found = (state.applied(), rows(&state));
        seen.push(expected.iter().position(|whole| *whole == found).expect("a whole flush"));
    }
    seen.dedup();
    assert_eq!(seen, [0, 1, 2, 3, 4], "every prefix of the flushes was met");
}
