use crate::support::{Text, apply, text};
use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::symlink,
    path::Path,
    sync::Mutex,
    sync::atomic::{AtomicBool, Ordering::SeqCst},
    thread,
};
use switchward_store::{
    Backup, BackupFolder, BackupOf, ClusterIdentity, Cut, DataDir, GroupId, Id, State, StateOptions,
    StateStore, StoreError, write_backup,
};

fn states(dir: &DataDir, count: u64) -> Vec<State<Text>> {
    let store = StateStore::open(dir).unwrap();
    (0..count).map(|group| store.group(GroupId(group), &StateOptions::default()).unwrap()).collect()
}

fn of(shards: u32) -> BackupOf {
    BackupOf { program: "test".into(), taken_ms: 5, shards }
}

/// Writes a backup of these states to this folder.
fn back_up(dir: &DataDir, states: &[State<Text>], folder: &Path) -> Result<(), StoreError> {
    let cut = Cut::of(states.iter().map(|state| (3, state.moment())).collect());
    let mut to = BackupFolder::create(folder)?;
    let shards = u32::try_from(states.len()).unwrap() - 1;
    let manifest = write_backup(dir, &cut, of(shards), &mut to)?;
    to.finish(&manifest)
}

fn checked(folder: &Path) -> Result<u64, StoreError> {
    let backup = Backup::open(folder)?;
    let mut rows = 0;
    for file in &backup.manifest().files {
        backup.check(file, |_, _| {
            rows += 1;
            Ok(())
        })?;
    }
    Ok(rows)
}

fn restored(folder: &Path, data: &Path) -> DataDir {
    let dir = DataDir::begin_restore(data).unwrap();
    Backup::open(folder).unwrap().restore(&dir, &|_| true).unwrap();
    dir.end_restore().unwrap();
    dir
}

fn texts(state: &State<Text>) -> BTreeMap<String, String> {
    crate::support::rows(state).into_iter().collect()
}

#[test]
fn a_mail_that_cannot_be_opened_ends_the_backup_and_one_that_was_deleted_does_not() {
    let root = tempfile::tempdir().unwrap();
    let dir = DataDir::open(root.path().join("data")).unwrap();
    let states = states(&dir, 1);
    apply(&states[0], [("a", text("a row"))], "an entry");
    let mails = dir.path().join("quarantine");
    fs::create_dir(&mails).unwrap();
    // The target of the link is missing, as a mail is that is deleted after the folder was listed.
    symlink("gone", mails.join("0a.mail")).unwrap();
    back_up(&dir, &states, &root.path().join("backup")).unwrap();
    symlink("0b.mail", mails.join("0b.mail")).unwrap();
    let error = back_up(&dir, &states, &root.path().join("another")).unwrap_err().to_string();
    assert!(error.contains("0b.mail"), "{error}");
}

#[test]
fn a_backup_is_what_the_data_folder_was() {
    let root = tempfile::tempdir().unwrap();
    let (data, folder) = (root.path().join("data"), root.path().join("backup"));
    let dir = DataDir::open(&data).unwrap();
    let states = states(&dir, 3);
    for (number, state) in states.iter().enumerate() {
        for row in 0..500 {
            let key = format!("{number}-{row:04}");
            apply(state, [(key.as_str(), text(&format!("row {row}")))], "an entry");
        }
    }
    fs::create_dir(data.join("quarantine")).unwrap();
    fs::write(data.join("quarantine/0a.mail"), "a mail").unwrap();
    fs::write(data.join("quarantine/note.txt"), "none of ours").unwrap();
    back_up(&dir, &states, &folder).unwrap();
    apply(&states[0], [("later", text("is not in it"))], "another entry");
    assert_eq!(checked(&folder).unwrap(), 1_500);
    let again = restored(&folder, &root.path().join("again"));
    assert_ne!(again.id(), dir.id(), "the restored folder has its own id");
    assert_eq!(again.shards(9).unwrap(), 2, "the number of shards is restored");
    assert_eq!(fs::read(again.path().join("quarantine/0a.mail")).unwrap(), b"a mail");
    assert!(!again.path().join("quarantine/note.txt").exists());
    let copies = states_of(&again);
    for (number, (copy, state)) in copies.iter().zip(&states).enumerate() {
        let mut expected = texts(state);
        expected.remove("later");
        assert_eq!(texts(copy), expected, "group {number}");
        assert_eq!(copy.applied(), None, "its log begins again");
    }
}

/// Servers of the cluster that was backed up may still run: a restored folder must not become one of theirs.
#[test]
fn a_restored_folder_cannot_be_bound_to_the_cluster_of_its_backup() {
    let root = tempfile::tempdir().unwrap();
    let (data, folder, again) =
        (root.path().join("data"), root.path().join("backup"), root.path().join("again"));
    let dir = DataDir::open(&data).unwrap();
    let old = ClusterIdentity { cluster: Id([7; 16]), server: 1 };
    dir.claim(old).unwrap();
    back_up(&dir, &states(&dir, 2), &folder).unwrap();
    let first = restored(&folder, &again);
    assert!(matches!(first.claim(old), Err(StoreError::ClusterOfBackup { .. })));
    drop(first);
    let again = DataDir::open(&again).unwrap();
    for server in [1, 2] {
        let error = again.claim(ClusterIdentity { server, ..old }).unwrap_err().to_string();
        let said = format!("was restored from a backup of the cluster {}", old.cluster);
        assert!(error.contains(&said) && !error.contains('\n'), "{error}");
    }
    assert_eq!(again.identity().cluster, None);
    let new = ClusterIdentity { cluster: Id([8; 16]), server: 1 };
    again.claim(new).unwrap();
    assert_eq!(again.identity().cluster, Some(new));
}

fn states_of(dir: &DataDir) -> Vec<State<Text>> {
    states(dir, 3)
}

/// If a writer writes to one group and then to another, no cut shows it the other way round, however often it is
/// taken.
#[test]
fn all_groups_are_cut_at_one_moment() {
    let root = tempfile::tempdir().unwrap();
    let dir = DataDir::open(root.path().join("data")).unwrap();
    let states = states(&dir, 4);
    let (whole, stop) = (Mutex::new(()), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut number = 0_u64;
            while !stop.load(SeqCst) {
                for state in &states {
                    let _still = whole.lock().unwrap();
                    apply(state, [("n", text(&number.to_string()))], "an entry");
                    number += 1;
                }
            }
        });
        for round in 0..20 {
            let cut = {
                let _still = whole.lock().unwrap();
                Cut::of(states.iter().map(|state| (1, state.moment())).collect())
            };
            let folder = root.path().join(format!("backup-{round}"));
            let mut to = BackupFolder::create(&folder).unwrap();
            let manifest = write_backup(&dir, &cut, of(3), &mut to).unwrap();
            to.finish(&manifest).unwrap();
            let mut seen = Vec::new();
            let backup = Backup::open(&folder).unwrap();
            for file in &backup.manifest().files {
                let read = backup.check(file, |_, row| {
                    seen.push(String::from_utf8(row[1..].to_vec()).unwrap().parse::<u64>().unwrap());
                    Ok(())
                });
                read.unwrap();
            }
            // The groups are written in turn: at one moment their numbers are within one turn of each other.
            let (least, most) = (seen.iter().min().copied(), seen.iter().max().copied());
            if let (4, Some(least), Some(most)) = (seen.len(), least, most) {
                assert_eq!(most - least, 3, "{seen:?}");
            }
        }
        stop.store(true, SeqCst);
    });
}

#[test]
fn every_changed_byte_of_a_backup_is_found() {
    let root = tempfile::tempdir().unwrap();
    let (data, folder) = (root.path().join("data"), root.path().join("backup"));
    let dir = DataDir::open(&data).unwrap();
    let states = states(&dir, 2);
    apply(&states[1], [("a", text("one")), ("b", text("two"))], "an entry");
    fs::create_dir(data.join("quarantine")).unwrap();
    fs::write(data.join("quarantine/0a.mail"), "a mail").unwrap();
    back_up(&dir, &states, &folder).unwrap();
    assert_eq!(checked(&folder).unwrap(), 2);
    let names = ["group-0000000000000000.snap", "group-0000000000000001.snap", "quarantine/0a.mail"];
    for name in names {
        let path = folder.join(name);
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            fs::write(&path, &bytes).unwrap();
            let found = checked(&folder).unwrap_err().to_string();
            assert!(found.contains(name), "byte {at}: {found}");
        }
        fs::write(&path, &whole[..whole.len() - 1]).unwrap();
        assert!(checked(&folder).unwrap_err().to_string().contains("bytes, not"));
        fs::remove_file(&path).unwrap();
        assert!(checked(&folder).unwrap_err().to_string().contains(name), "{name} is missing");
        fs::write(&path, &whole).unwrap();
    }
    fs::remove_file(folder.join("BACKUP")).unwrap();
    assert!(matches!(checked(&folder), Err(StoreError::NoBackup { .. })));
}

#[test]
fn what_is_unfinished_is_neither_a_backup_nor_a_data_folder() {
    let root = tempfile::tempdir().unwrap();
    let (data, folder) = (root.path().join("data"), root.path().join("backup"));
    let dir = DataDir::open(&data).unwrap();
    let states = states(&dir, 2);
    apply(&states[1], [("a", text("one"))], "an entry");
    let unfinished = BackupFolder::create(&folder).unwrap();
    assert!(matches!(BackupFolder::create(&folder), Err(StoreError::FolderExists { .. })), "it goes on");
    assert!(root.path().join("backup.incomplete/quarantine").exists(), "it still has its files");
    drop(unfinished);
    assert!(
        !folder.exists() && !root.path().join("backup.incomplete").exists(),
        "a dropped backup leaves files"
    );
    back_up(&dir, &states, &folder).unwrap();
    assert!(matches!(back_up(&dir, &states, &folder), Err(StoreError::FolderExists { .. })));
    let other = root.path().join("other");
    let half = DataDir::begin_restore(&other).unwrap();
    Backup::open(&folder).unwrap().restore(&half, &|_| true).unwrap();
    drop(half);
    assert!(matches!(DataDir::open(&other), Err(StoreError::RestoreUnfinished { .. })));
    let again = restored(&folder, &other);
    assert_eq!(texts(&self::states(&again, 2)[1]).len(), 1, "the restore can be repeated");
    drop(again);
    DataDir::open(&other).unwrap();
    assert!(
        matches!(DataDir::begin_restore(&other), Err(StoreError::FolderExists { .. })),
        "a folder with data is refused"
    );
}

/// A moment is not changed by what is written, flushed or removed afterwards, and its digest is that of its rows.
#[test]
fn a_moment_keeps_its_rows_and_their_digest() {
    let root = tempfile::tempdir().unwrap();
    let dir = DataDir::open(root.path().join("data")).unwrap();
    let state = states(&dir, 1).remove(0);
    apply(&state, [("a", text("one")), ("b", text("two"))], "1");
    state.begin_flush().unwrap().run().unwrap();
    apply(&state, [("b", None), ("c", text("three"))], "2");
    let (moment, digest) = (state.moment(), state.digest().unwrap());
    assert_eq!(moment.digest().unwrap(), digest);
    apply(&state, [("a", text("other")), ("c", None)], "3");
    state.begin_flush().unwrap().run().unwrap();
    assert_ne!(state.digest().unwrap(), digest);
    assert_eq!(moment.digest().unwrap(), digest);
    let mut file = Vec::new();
    assert_eq!(moment.write(Path::new("a test"), &mut file).unwrap(), (2, digest));
}

#[test]
fn rows_that_are_not_kept_are_not_restored() {
    let root = tempfile::tempdir().unwrap();
    let (data, folder) = (root.path().join("data"), root.path().join("backup"));
    let dir = DataDir::open(&data).unwrap();
    let states = states(&dir, 2);
    apply(&states[1], [("a", text("one")), ("b", text("two"))], "an entry");
    back_up(&dir, &states, &folder).unwrap();
    let other = DataDir::begin_restore(root.path().join("other")).unwrap();
    Backup::open(&folder).unwrap().restore(&other, &|key| key != b"a").unwrap();
    other.end_restore().unwrap();
    let kept = texts(&self::states(&other, 2)[1]);
    assert_eq!(kept.into_iter().collect::<Vec<_>>(), [("b".to_owned(), "two".to_owned())]);
}
