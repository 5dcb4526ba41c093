use crate::support::{GROUP, apply, durably, open_log, open_state, record, rows, text};
use bytes::Bytes;
use std::{
    fs,
    path::{Path, PathBuf},
};
use switchward_store::GroupLog as _;

const SECRET: &str = "zanzibar-4711";

/// The files below a folder that hold the secret.
fn holding(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(holding(&path));
        } else if fs::read(&path).unwrap().windows(SECRET.len()).any(|part| part == SECRET.as_bytes()) {
            found.push(path);
        }
    }
    found
}

#[test]
fn a_row_that_was_removed_leaves_the_files() {
    let root = tempfile::tempdir().unwrap();
    let state = open_state(root.path());
    apply(&state, [("a", text(SECRET)), ("b", text("stays"))], "entry 1");
    state.begin_flush().unwrap().run().unwrap();
    state.settle().unwrap();
    apply(&state, [("a", text(&format!("{SECRET} again")))], "entry 2");
    state.begin_flush().unwrap().run().unwrap();
    apply(&state, [(b"a", None)], "entry 3");
    state.begin_flush().unwrap().run().unwrap();
    assert!(!holding(root.path()).is_empty(), "without a scrub, removed bytes stay in the files");
    assert!(state.scrub().unwrap());
    assert_eq!(holding(root.path()), Vec::<PathBuf>::new());
    let left = [("b".to_owned(), "stays".to_owned())];
    assert_eq!(rows(&state), left);
    apply(&state, [("c", text("later"))], "entry 4");
    state.begin_flush().unwrap().run().unwrap();
    state.persist().unwrap();
    drop(state);
    let state = open_state(root.path());
    assert_eq!(rows(&state), [left[0].clone(), ("c".to_owned(), "later".to_owned())]);
    assert!(state.scrub().unwrap(), "a scrub can be repeated");
}

#[test]
fn an_entry_that_was_purged_leaves_the_files() {
    let root = tempfile::tempdir().unwrap();
    let log = open_log(root.path());
    let records = vec![record(1, SECRET), record(2, "stays")];
    durably(|done| log.append(GROUP, records, done)).unwrap();
    durably(|done| log.purge_to(GROUP, 1, Bytes::from_static(b"at 1"), done)).unwrap();
    assert!(!holding(root.path()).is_empty(), "without a scrub, purged bytes stay in the files");
    assert!(log.scrub().unwrap());
    assert_eq!(holding(root.path()), Vec::<PathBuf>::new());
    durably(|done| log.append(GROUP, vec![record(3, "later")], done)).unwrap();
    drop(log);
    let log = open_log(root.path());
    let left = log.read(GROUP, 0..9, usize::MAX).unwrap();
    assert_eq!(left, [record(2, "stays"), record(3, "later")]);
}

#[test]
fn what_is_owed_is_known_after_a_restart() {
    let root = tempfile::tempdir().unwrap();
    let state = open_state(root.path());
    assert!(!state.is_marked());
    state.mark().unwrap();
    drop(state);
    let state = open_state(root.path());
    assert!(state.is_marked());
    state.unmark().unwrap();
    state.unmark().unwrap();
    assert!(!state.is_marked());
}
