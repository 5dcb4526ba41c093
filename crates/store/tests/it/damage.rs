//! Every byte of a small log is damaged, and the log is cut at every length: the damage is found and refused, or nothing
//! is missing that was acknowledged.

use crate::support::{GROUP, copy, durably, open_log, open_state, record, rows, text};
use bytes::Bytes;
use std::{
    fs,
    path::{Path, PathBuf},
};
use switchward_store::{DataDir, GroupLog, LogOptions, LogRecord, Meta, SegmentLog, StateStore, StoreError};

/// How a byte is changed.
const FLIPS: [u8; 3] = [1, 0x80, 0xff];
/// Zeros that are left at the end of a segment.
const ZEROS_KEPT: usize = 40;

/// The contents of a log.
type Look = (Vec<LogRecord>, Option<Bytes>);

fn try_open(path: &Path) -> Result<SegmentLog, StoreError> {
    let options = LogOptions { on_fatal: Box::new(|_| {}), sync_fault: None };
    SegmentLog::open(&DataDir::open(path)?, options)
}

fn look(log: &SegmentLog) -> Look {
    (log.read(GROUP, 0..u64::MAX, usize::MAX).unwrap(), log.meta(GROUP, Meta::Vote).unwrap())
}

/// A log of three segments, with an entry and a vote in each, that was closed. Returns what it holds, and its segments
/// without most of the zeros at their ends.
fn small_log(path: &Path) -> (Look, Vec<PathBuf>) {
    for index in 1..=3 {
        let log = open_log(path);
        durably(|done| log.append(GROUP, vec![record(index, format!("entry {index}"))], done)).unwrap();
        durably(|done| log.put_meta(GROUP, Meta::Vote, Bytes::from(format!("term {index}")), done)).unwrap();
    }
    let mut segments: Vec<_> =
        fs::read_dir(path.join("log")).unwrap().map(|entry| entry.unwrap().path()).collect();
    segments.sort();
    for segment in &segments {
        let mut bytes = fs::read(segment).unwrap();
        let used = bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
        bytes.truncate(used + ZEROS_KEPT);
        fs::write(segment, bytes).unwrap();
    }
    assert_eq!(segments.len(), 3);
    (look(&try_open(path).unwrap()), segments)
}

/// Opens a damaged copy. Fails unless the damage is refused in one line that names the file, or nothing is missing.
fn check(whole: &Path, damaged: &Path, file: &Path, bytes: &[u8], expected: &Look, what: &str) -> bool {
    let _none = fs::remove_dir_all(damaged);
    copy(whole, damaged);
    fs::write(damaged.join(file), bytes).unwrap();
    match try_open(damaged) {
        Ok(log) => {
            assert_eq!(look(&log), *expected, "{}: {what}", file.display());
            true
        }
        Err(error) => {
            let line = error.to_string();
            let name = file.file_name().unwrap().to_str().unwrap();
            assert!(!line.contains('\n') && line.contains("byte"), "{what}: {line}");
            // If nothing is left of a segment, the error names what is missing after it.
            assert!(line.contains(name) || line.contains(".log"), "{}: {what}: {line}", file.display());
            false
        }
    }
}

#[test]
fn no_changed_byte_of_a_log_takes_anything_with_it() {
    let root = tempfile::tempdir().unwrap();
    let (whole, damaged) = (root.path().join("whole"), root.path().join("damaged"));
    let (expected, segments) = small_log(&whole);
    for (number, segment) in segments.iter().enumerate() {
        let file = segment.strip_prefix(&whole).unwrap();
        let bytes = fs::read(segment).unwrap();
        let used = bytes.len() - ZEROS_KEPT;
        for at in 0..bytes.len() {
            for flip in FLIPS {
                let mut changed = bytes.clone();
                changed[at] ^= flip;
                let opened =
                    check(&whole, &damaged, file, &changed, &expected, &format!("byte {at} ^ {flip}"));
                // Beyond the last batch of the newest segment nothing was acknowledged.
                let harmless = number + 1 == segments.len() && at >= used;
                assert_eq!(opened, harmless, "{}: byte {at} ^ {flip}", file.display());
            }
        }
    }
    for mark in ["LOG_SYNCED", "LOG_BEGIN"] {
        let bytes = fs::read(whole.join(mark)).unwrap();
        let _none = fs::remove_dir_all(&damaged);
        copy(&whole, &damaged);
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            fs::write(damaged.join(mark), changed).unwrap();
            let error = try_open(&damaged).err().expect("the mark is broken").to_string();
            assert!(error.contains(&format!("{mark} do not match")), "{error}");
        }
        fs::remove_file(damaged.join(mark)).unwrap();
        let error = try_open(&damaged).err().expect("the mark is gone").to_string();
        assert!(error.contains(&format!("{mark} is missing")), "{error}");
    }
}

#[test]
fn a_log_that_lost_its_end_or_a_segment_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let (whole, damaged) = (root.path().join("whole"), root.path().join("damaged"));
    let (expected, segments) = small_log(&whole);
    for segment in &segments {
        let file = segment.strip_prefix(&whole).unwrap();
        let bytes = fs::read(segment).unwrap();
        for length in 0..bytes.len() {
            let opened =
                check(&whole, &damaged, file, &bytes[..length], &expected, &format!("{length} bytes"));
            assert_eq!(opened, length >= bytes.len() - ZEROS_KEPT, "{}: {length} bytes", file.display());
        }
    }
    // Without its last segments, and without all of them, as the folder of a new server is.
    for kept in (0..segments.len()).rev() {
        let _none = fs::remove_dir_all(&damaged);
        copy(&whole, &damaged);
        for segment in &segments[kept..] {
            fs::remove_file(damaged.join(segment.strip_prefix(&whole).unwrap())).unwrap();
        }
        let error = try_open(&damaged).err().expect("batches are missing").to_string();
        assert!(error.contains("synced"), "{error}");
    }
}

#[test]
fn what_is_found_damaged_is_left_as_it_is() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("data");
    let (_, segments) = small_log(&path);
    let newest = segments.last().unwrap();
    let mut bytes = fs::read(newest).unwrap();
    let last = bytes.len() - ZEROS_KEPT - 1;
    bytes[last] ^= 1;
    fs::write(newest, &bytes).unwrap();
    for _ in 0..2 {
        let error = try_open(&path).err().expect("it is damaged").to_string();
        assert!(error.contains("it was synced, and is broken now"), "{error}");
        assert_eq!(fs::read(newest).unwrap(), bytes);
    }
}

#[test]
fn a_last_batch_that_was_never_synced_is_synced_before_it_is_read() {
    let root = tempfile::tempdir().unwrap();
    drop(small_log(root.path()));
    let fault = |nth: u64| (nth == 0).then(|| std::io::Error::other("the disk is gone"));
    let options = LogOptions { on_fatal: Box::new(|_| {}), sync_fault: Some(std::sync::Arc::new(fault)) };
    let error = SegmentLog::open(&DataDir::open(root.path()).unwrap(), options).err();
    let error = error.expect("what cannot be synced must not be read").to_string();
    assert!(error.contains("failed to sync") && error.contains(".log"), "{error}");
}

/// A state of three flushes, of which two were synced, and its rows after the second and the third.
fn small_state(path: &Path) -> [Vec<(String, String)>; 2] {
    let state = open_state(path);
    let mut looks = Vec::new();
    for (entry, word) in ["one", "two", "three"].into_iter().enumerate() {
        crate::support::apply(&state, [("row", text(word)), (word, text(word))], vec![entry as u8]);
        state.begin_flush().unwrap().run().unwrap();
        if entry == 1 {
            state.persist().unwrap();
        }
        looks.push(rows(&state));
    }
    drop(state);
    let journal = path.join("state/0.jnl");
    let mut bytes = fs::read(&journal).unwrap();
    bytes.truncate(bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1);
    fs::write(&journal, bytes).unwrap();
    let [_, two, three] = looks.try_into().unwrap();
    [two, three]
}

/// The unit tests of the journal change every byte; this one shows what a reader of the state sees.
#[test]
fn a_damaged_journal_of_a_state_is_refused_or_lacks_only_what_was_not_synced() {
    let root = tempfile::tempdir().unwrap();
    let (whole, damaged) = (root.path().join("whole"), root.path().join("damaged"));
    let [synced, all] = small_state(&whole);
    let bytes = fs::read(whole.join("state/0.jnl")).unwrap();
    let (mut refused, mut opened) = (0, 0);
    for at in (0..bytes.len()).step_by(3) {
        let mut changed = bytes.clone();
        changed[at] ^= FLIPS[at % FLIPS.len()];
        let _none = fs::remove_dir_all(&damaged);
        copy(&whole, &damaged);
        fs::write(damaged.join("state/0.jnl"), changed).unwrap();
        let store = StateStore::open(&DataDir::open(&damaged).unwrap());
        match store {
            Err(error) => {
                let line = error.to_string();
                assert!(line.contains("byte ") && line.contains("state/0.jnl: it was synced"), "{line}");
                refused += 1;
            }
            Ok(store) => {
                drop(store);
                let found = rows(&open_state(&damaged));
                assert!(found == synced || found == all, "byte {at}: {found:?}");
                opened += 1;
            }
        }
    }
    assert!(refused > opened && opened > 0, "{refused} refused, {opened} opened");
}
