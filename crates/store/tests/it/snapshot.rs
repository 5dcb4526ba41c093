use crate::support::{GROUP, Text, apply, open_state, rows, text};
use std::{
    fs,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};
use switchward_store::{
    DataDir, GroupId, SnapshotFile, Snapshots, State, StateOptions, StateStore, StoreError,
};

fn filled(root: &Path) -> (State<Text>, Snapshots) {
    let dir = DataDir::open(root).unwrap();
    let state: State<Text> = StateStore::open(&dir).unwrap().group(GROUP, &StateOptions::default()).unwrap();
    apply(&state, ["a", "b", "c"].map(|key| (key, text(&format!("row {key}")))), "entry 8");
    apply(&state, [(b"b", None)], "entry 9");
    (state, Snapshots::open(&dir).unwrap())
}

/// The path of the only file in the snapshots of a data folder.
fn only_file(root: &Path) -> PathBuf {
    let mut files = fs::read_dir(root.join("snapshots")).unwrap();
    let file = files.next().unwrap().unwrap().path();
    assert!(files.next().is_none(), "there is more than one file");
    file
}

fn content(snapshot: &SnapshotFile) -> Vec<u8> {
    snapshot.chunks(9).flat_map(|chunk| chunk.unwrap()).collect()
}

#[test]
fn a_snapshot_travels_in_pieces_and_replaces_another_state() {
    let root = tempfile::tempdir().unwrap();
    let (state, snapshots) = filled(&root.path().join("leader"));
    let sent = state.export(&snapshots).unwrap();
    assert_eq!((sent.rows(), sent.applied().unwrap().as_ref()), (2, &b"entry 9"[..]));
    apply(&state, [(b"d", text("written later"))], "entry 10");

    let path = root.path().join("follower");
    let dir = DataDir::open(&path).unwrap();
    let snapshots = Snapshots::open(&dir).unwrap();
    let mut receiver = snapshots.receive(GROUP).unwrap();
    for chunk in sent.chunks(7) {
        receiver.write(&chunk.unwrap()).unwrap();
    }
    let received = receiver.finish().unwrap();
    assert_eq!((received.digest(), content(&received)), (sent.digest(), content(&sent)));

    let follower: State<Text> =
        StateStore::open(&dir).unwrap().group(GROUP, &StateOptions::default()).unwrap();
    apply(&follower, [(b"old", text("before"))], "entry 2");
    follower.begin_flush().unwrap().run().unwrap();
    apply(&follower, [(b"dirty", text("before"))], "entry 3");
    follower.install(&received).unwrap();
    let check = |follower: &State<Text>| {
        assert_eq!(rows(follower), [("a".into(), "row a".into()), ("c".into(), "row c".into())]);
        assert_eq!(follower.get(b"old").unwrap(), None);
        assert_eq!(follower.applied().unwrap(), "entry 9");
        assert_eq!(follower.digest().unwrap(), sent.digest());
    };
    check(&follower);
    assert_eq!((follower.dirty_bytes(), follower.clean_bytes()), (0, 0));
    drop((follower, snapshots, received, dir));
    let follower = open_state(&path);
    check(&follower);
    apply(&follower, [(b"a", text("and on"))], "entry 10");
    follower.begin_flush().unwrap().run().unwrap();
    drop(follower);
    assert_eq!(open_state(&path).get(b"a").unwrap(), text("and on"));
}

#[test]
fn any_changed_byte_is_noticed() {
    let root = tempfile::tempdir().unwrap();
    let (state, snapshots) = filled(&root.path().join("data"));
    state.export(&snapshots).unwrap();
    let whole = fs::read(only_file(&root.path().join("data"))).unwrap();
    let path = root.path().join("copy.snap");
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        fs::write(&path, &bytes).unwrap();
        assert!(SnapshotFile::open(&path).is_err(), "byte {at} was changed");
    }
    for length in 0..whole.len() {
        fs::write(&path, &whole[..length]).unwrap();
        assert!(SnapshotFile::open(&path).is_err(), "cut at {length}");
    }
    fs::write(&path, [&whole[..], &[0]].concat()).unwrap();
    assert!(SnapshotFile::open(&path).is_err(), "one byte more");
}

#[test]
fn a_damaged_or_foreign_snapshot_is_not_received() {
    let root = tempfile::tempdir().unwrap();
    let (state, snapshots) = filled(root.path());
    let sent = state.export(&snapshots).unwrap();
    let mut receiver = snapshots.receive(GROUP).unwrap();
    receiver.write(b"SWSN and then noise, for longer than a header is").unwrap();
    assert!(receiver.finish().is_err());
    let mut receiver = snapshots.receive(GroupId(8)).unwrap();
    sent.chunks(1 << 20).for_each(|chunk| receiver.write(&chunk.unwrap()).unwrap());
    assert!(matches!(receiver.finish(), Err(StoreError::WrongGroup { .. })));
    assert_eq!(
        fs::read(only_file(root.path())).unwrap(),
        content(&sent),
        "only the one that was sent is there"
    );
}

#[test]
fn the_newest_snapshot_of_a_group_is_kept() {
    let root = tempfile::tempdir().unwrap();
    let (state, snapshots) = filled(root.path());
    let first = state.export(&snapshots).unwrap();
    let written = fs::read(only_file(root.path())).unwrap();
    apply(&state, [(b"a", None)], "entry 10");
    let second = state.export(&snapshots).unwrap();
    assert_ne!(fs::read(only_file(root.path())).unwrap(), written);
    assert_eq!(content(&first), written, "an open snapshot can still be read");
    fs::write(root.path().join("snapshots/unfinished.tmp"), "").unwrap();
    drop((state, snapshots));

    Snapshots::open(&DataDir::open(root.path()).unwrap()).unwrap();
    let newest = SnapshotFile::open(&only_file(root.path())).unwrap();
    assert_eq!((newest.digest(), newest.applied().unwrap().as_ref()), (second.digest(), &b"entry 10"[..]));
}

#[test]
fn an_installation_that_fails_changes_nothing() {
    let root = tempfile::tempdir().unwrap();
    let (state, snapshots) = filled(root.path());
    let exported = state.export(&snapshots).unwrap();
    apply(&state, [(b"z", text("after"))], "entry 10");
    let path = only_file(root.path());
    let whole = fs::read(&path).unwrap();
    let end = whole.len() as u64 - 20;
    let file = fs::File::options().write(true).open(&path).unwrap();
    file.write_all_at(b"noise", end).unwrap();
    assert!(matches!(state.install(&exported), Err(StoreError::Damaged { .. })));
    assert_eq!((rows(&state).len(), state.applied().unwrap().as_ref()), (3, &b"entry 10"[..]));
    file.write_all_at(&whole, 0).unwrap();
    state.install(&exported).unwrap();
    assert_eq!((rows(&state).len(), state.applied().unwrap().as_ref()), (2, &b"entry 9"[..]));
}

#[test]
fn an_installation_counts_from_the_moment_it_is_whole() {
    let root = tempfile::tempdir().unwrap();
    let (state, _) = filled(root.path());
    state.begin_flush().unwrap().run().unwrap();
    drop(state);
    let keyspace = |generation: &str, rows: &[(&[u8], &[u8])]| {
        let database = fjall::Database::builder(root.path().join("state")).open().unwrap();
        let name = format!("state-0000000000000007-{generation:0>16}");
        let keyspace = database.keyspace(&name, Default::default).unwrap();
        rows.iter().for_each(|(key, row)| keyspace.insert(*key, *row).unwrap());
        database.keyspace_count()
    };
    assert_eq!(keyspace("2", &[(b"\x01new", b"\x01\0new")]), 2);
    let state = open_state(root.path());
    assert_eq!((rows(&state).len(), state.get(b"new").unwrap()), (2, None), "it has no marker");
    drop(state);
    assert_eq!(keyspace("2", &[(b"\0", b"\x01\x01entry 12"), (b"\x01new", b"\x01\0new")]), 2);
    let state = open_state(root.path());
    assert_eq!(rows(&state), [("new".into(), "new".into())]);
    assert_eq!(state.applied().unwrap(), "entry 12");
    drop(state);
    assert_eq!(keyspace("2", &[]), 1, "the older state is removed");
}

#[test]
fn a_snapshot_file_is_as_it_was() {
    let root = tempfile::tempdir().unwrap();
    let (state, snapshots) = filled(root.path());
    state.export(&snapshots).unwrap();
    let bytes = fs::read(only_file(root.path())).unwrap();
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(
        hex,
        include_str!("../golden/snapshot.v1.hex").trim(),
        "the form of snapshot files has changed"
    );
}
