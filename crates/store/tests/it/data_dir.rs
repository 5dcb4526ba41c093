use std::fs;
use switchward_store::{ClusterIdentity, DataDir, ForeignPeer, Id, SeenPeer, limits};

#[test]
fn a_folder_has_one_user_and_keeps_its_id() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().canonicalize().unwrap().join("deep/data");
    let first = DataDir::open(&path).unwrap();
    let error = DataDir::open(&path).unwrap_err();
    assert_eq!(error.to_string(), format!("the data folder {} is in use by another process", path.display()));
    let clone = first.clone();
    let id = first.id().to_owned();
    drop(first);
    assert!(DataDir::open(&path).is_err(), "a clone holds the lock as well");
    drop(clone);
    assert_eq!(DataDir::open(&path).unwrap().id(), id);
    assert_eq!(id.len(), 32);
}

#[test]
fn another_format_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().canonicalize().unwrap();
    drop(DataDir::open(&path).unwrap());
    fs::write(path.join("FORMAT"), "7\n").unwrap();
    let expected = format!("the data folder {} has format 7, this program reads format 2", path.display());
    assert_eq!(DataDir::open(&path).unwrap_err().to_string(), expected);
}

#[test]
fn a_foreign_folder_is_left_alone() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("letters.txt"), "dear").unwrap();
    assert!(DataDir::open(root.path()).unwrap_err().to_string().ends_with("so it is not a data folder"));
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1, "nothing was created in it");
}

#[test]
fn a_data_folder_that_lost_its_format_is_not_taken_for_a_new_one() {
    let root = tempfile::tempdir().unwrap();
    drop(DataDir::open(root.path()).unwrap());
    fs::write(root.path().join("log/0.jnl"), "records").unwrap();
    fs::remove_file(root.path().join("FORMAT")).unwrap();
    assert!(DataDir::open(root.path()).is_err());
}

#[test]
fn an_interrupted_creation_is_taken_up() {
    let root = tempfile::tempdir().unwrap();
    for folder in ["log", "state"] {
        fs::create_dir(root.path().join(folder)).unwrap();
    }
    fs::write(root.path().join("ID.tmp"), "").unwrap();
    DataDir::open(root.path()).unwrap();
    assert!(root.path().join("snapshots").is_dir());
}

#[test]
fn the_boot_counter_is_raised_at_each_opening_and_never_goes_back() {
    let root = tempfile::tempdir().unwrap();
    for boot in 1..=3 {
        assert_eq!(DataDir::open(root.path()).unwrap().identity().boot, boot);
    }
    let boot_id = || DataDir::open(root.path()).unwrap().identity().boot_id;
    assert_ne!(boot_id(), boot_id(), "each opening has an id of its own");
    let file = root.path().join("BOOTS");
    let stored = fs::read_to_string(&file).unwrap();
    fs::write(&file, stored.replace('5', "4")).unwrap();
    let error = DataDir::open(root.path()).unwrap_err().to_string();
    assert!(error.contains("BOOTS do not match their checksum"), "{error}");
    fs::remove_file(&file).unwrap();
    let error = DataDir::open(root.path()).unwrap_err().to_string();
    assert!(error.contains("BOOTS is missing"), "{error}");
}

/// The folder of a server number, and the one of another data folder.
fn folder(digit: u8) -> Id {
    Id([digit; 16])
}

#[test]
fn a_folder_belongs_to_one_server_of_one_cluster() {
    let root = tempfile::tempdir().unwrap();
    let mine = ClusterIdentity { cluster: folder(7), server: 2 };
    let data = DataDir::open(root.path()).unwrap();
    assert_eq!(data.identity().cluster, None);
    data.claim(mine).unwrap();
    data.claim(mine).unwrap();
    assert_eq!(data.identity().cluster, Some(mine));
    drop(data);
    let data = DataDir::open(root.path()).unwrap();
    assert_eq!(data.identity().cluster, Some(mine));
    assert_eq!(data.identity().folder.to_string(), data.id());
    for other in [ClusterIdentity { server: 3, ..mine }, ClusterIdentity { cluster: folder(8), ..mine }] {
        let error = data.claim(other).unwrap_err().to_string();
        assert!(error.contains(&format!("belongs to {mine}, not to {other}")), "{error}");
    }
    assert_eq!(data.identity().cluster, Some(mine));
}

/// A peer's folder with a boot id that only depends on the boot counter.
fn peer(server: u64, folder: Id, boot: u64) -> SeenPeer {
    SeenPeer { server, folder, boot, boot_id: Id(u128::from(boot).to_be_bytes()) }
}

#[test]
fn a_peer_whose_folder_was_wiped_copied_or_restored_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let data = DataDir::open(root.path()).unwrap();
    let seen = |server, boot| peer(server, folder(server as u8), boot);
    for noted in [seen(2, 5), seen(3, 1), seen(2, 5), seen(2, 9)] {
        data.note_peer(noted).unwrap();
    }
    drop(data);
    let data = DataDir::open(root.path()).unwrap();
    let noted = || fs::read_to_string(root.path().join("PEERS")).unwrap();
    let line = |SeenPeer { server, folder, boot, boot_id }| format!("{server} {folder} {boot} {boot_id}\n");
    let before = noted();
    assert!(before.starts_with(&(line(seen(2, 9)) + &line(seen(3, 1)))), "{before}");
    let refused = |server, of, boot| data.note_peer(peer(server, of, boot)).unwrap_err();
    assert!(matches!(refused(2, folder(2), 8), ForeignPeer::Older { known: 9, found: 8, .. }), "restored");
    assert!(matches!(refused(2, folder(4), 1), ForeignPeer::OtherFolder { .. }), "wiped");
    assert!(matches!(refused(4, folder(3), 2), ForeignPeer::OtherServer { of: 3, .. }), "copied");
    assert!(
        matches!(refused(4, data.identity().folder, 2), ForeignPeer::OtherServer { .. }),
        "a copy of this one"
    );
    // Both copies were opened equally often.
    let twin = SeenPeer { boot_id: folder(99), ..seen(2, 9) };
    let error = data.note_peer(twin).unwrap_err();
    assert!(matches!(error, ForeignPeer::OtherBoot { server: 2, boot: 9 }), "restored and started once");
    let line = "the data folder of server 2 is another copy: it was seen with the boot counter 9 before, at another start";
    assert_eq!(error.to_string(), line);
    assert_eq!(noted(), before, "nothing of it is noted");
    data.note_peer(SeenPeer { boot_id: folder(99), ..seen(2, 10) }).unwrap();
}

#[test]
fn a_new_peer_beyond_the_limit_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let data = DataDir::open(root.path()).unwrap();
    let of = |server: u64| Id(u128::from(server).to_be_bytes());
    // The file as it is after as many peers, without their syncs.
    drop(data);
    let lines: String = (1..=limits::PEERS_MAX as u64)
        .map(|server| format!("{server} {} 1 {}\n", of(server), of(1)))
        .collect();
    let checksum = xxhash_rust::xxh3::xxh3_64(lines.as_bytes());
    fs::write(root.path().join("PEERS"), format!("{lines}{checksum:016x}\n")).unwrap();
    let data = DataDir::open(root.path()).unwrap();
    let one_more = limits::PEERS_MAX as u64 + 1;
    let refused = data.note_peer(peer(one_more, of(one_more), 1));
    assert!(matches!(refused, Err(ForeignPeer::TooMany { .. })), "{refused:?}");
    data.note_peer(peer(1, of(1), 2)).unwrap();
}

#[test]
fn that_groups_were_initialized_is_remembered() {
    let root = tempfile::tempdir().unwrap();
    let data = DataDir::open(root.path()).unwrap();
    assert!(!data.is_initialized());
    data.set_initialized().unwrap();
    drop(data);
    assert!(DataDir::open(root.path()).unwrap().is_initialized());
}
