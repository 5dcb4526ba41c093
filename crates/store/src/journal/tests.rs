use super::*;
use fjall::{Database, KeyspaceCreateOptions, PersistMode};
use std::{cell::RefCell, os::unix::fs::MetadataExt as _, time::SystemTime};
use xxhash_rust::xxh3::xxh3_64;

/// Returns the bytes of a journal of three batches of which two are synced, and how much that is.
fn journal() -> (Vec<u8>, Synced) {
    let root = tempfile::tempdir().unwrap();
    let database = Database::builder(root.path()).open().unwrap();
    let rows = database.keyspace("rows", KeyspaceCreateOptions::default).unwrap();
    let mut follower = Follower::new(root.path().to_path_buf());
    let mut synced = None;
    for value in ["first", "second", "third"] {
        let mut batch = database.batch().durability(Some(PersistMode::Buffer));
        batch.insert(&rows, "key", value);
        batch.remove(&rows, "other");
        batch.commit().unwrap();
        if value != "third" {
            synced = follower.look();
        }
    }
    let mut bytes = fs::read(root.path().join("0.jnl")).unwrap();
    bytes.truncate(bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1);
    (bytes, synced.unwrap())
}

/// Repairs a journal. Returns the bytes that are left.
fn repaired(bytes: &[u8], synced: Synced) -> Result<Vec<u8>, String> {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("0.jnl");
    fs::write(&path, bytes).unwrap();
    repair(root.path(), synced).map_err(|error| error.to_string())?;
    Ok(fs::read(&path).unwrap())
}

/// The offsets of a journal's batches, and of its end.
fn starts(bytes: &[u8]) -> Vec<usize> {
    let magic = |at: &usize| bytes[*at..].starts_with(&MAGIC);
    let ends = (0..bytes.len()).filter(magic).map(|at| at + MAGIC.len());
    std::iter::once(0).chain(ends).collect()
}

#[test]
fn no_changed_byte_of_what_was_synced_is_cut_off() {
    let (whole, synced) = journal();
    let [_, second, third, end] = starts(&whole)[..] else { panic!("{:?}", starts(&whole)) };
    assert_eq!((repaired(&whole, synced).unwrap(), end), (whole.clone(), whole.len()));
    for at in 0..end {
        for flip in [1, 2, 4, 8, 0x10, 0x20, 0x40, 0x80, 0xff] {
            let mut changed = whole.clone();
            changed[at] ^= flip;
            match repaired(&changed, synced) {
                // The checksum leaves the sequence number of the last batch out.
                Ok(left) => {
                    assert!(at >= third && (left == whole[..third] || left == changed), "{at} {flip}")
                }
                Err(error) => {
                    let named = error.contains("byte ") && error.contains("0.jnl: it was synced");
                    assert!(at < third && named, "byte {at} ^ {flip}: {error}");
                }
            }
        }
    }
    for length in 0..end {
        let left = repaired(&whole[..length], synced);
        assert_eq!(left.is_ok(), length >= third, "{length} bytes");
    }
    let lost = repaired(&whole[..second], synced).unwrap_err();
    assert!(lost.contains(&format!("the batch at byte {second} of ")), "{lost}");
}

#[test]
fn a_journal_that_was_synced_and_is_gone_is_reported() {
    let root = tempfile::tempdir().unwrap();
    let synced = Synced { journal: 3, bytes: 7, digest: 8 };
    repair(root.path(), Synced::default()).unwrap();
    for older in [None, Some("2.jnl")] {
        if let Some(older) = older {
            fs::write(root.path().join(older), "").unwrap();
        }
        let error = repair(root.path(), synced).unwrap_err().to_string();
        assert!(error.contains("3.jnl in ") && error.ends_with("is missing"), "{error}");
    }
    fs::write(root.path().join("4.jnl"), "").unwrap();
    repair(root.path(), synced).unwrap();
}

#[test]
fn a_hole_ends_a_journal_unless_something_follows_it() {
    let (whole, synced) = journal();
    for (rest, left) in [("", 1 << 20), ("rest", whole.len() as u64)] {
        let root = tempfile::tempdir().unwrap();
        let file = File::create_new(root.path().join("0.jnl")).unwrap();
        file.set_len(1 << 20).unwrap();
        file.write_all_at(&whole, 0).unwrap();
        file.write_all_at(rest.as_bytes(), 1 << 19).unwrap();
        repair(root.path(), synced).unwrap();
        assert_eq!(file.metadata().unwrap().len(), left, "{rest:?}");
    }
}

/// Its pages may be clean although they never reached the disk, if an earlier sync failed.
#[test]
fn what_is_not_known_to_be_synced_is_written_again_and_synced() {
    let (whole, part) = journal();
    let all = Synced { journal: 0, bytes: whole.len() as u64, digest: xxh3_64(&whole) };
    let cases = [
        (Synced::default(), vec![3, 4, 5]),
        (Synced { journal: 3, ..part }, vec![3, 4, 5]),
        (Synced { journal: 4, ..part }, vec![4, 5]),
        (Synced { journal: 4, ..all }, vec![5]),
        (Synced { journal: 5, ..part }, vec![5]),
        (Synced { journal: 5, ..all }, vec![]),
    ];
    for (synced, expected) in cases {
        let root = tempfile::tempdir().unwrap();
        let path = |number: u64| root.path().join(format!("{number}.jnl"));
        let numbers = [3, 4, 5];
        for number in numbers {
            fs::write(path(number), &whole).unwrap();
            let file = File::options().write(true).open(path(number)).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        }
        let files = RefCell::new(Vec::new());
        let sync = |file: &File| -> io::Result<()> {
            files.borrow_mut().push(file.metadata()?.ino());
            Ok(())
        };
        repair_with(root.path(), synced, &sync).unwrap();
        let of = |number: &u64| fs::metadata(path(*number)).unwrap();
        let written = |number: &u64| of(number).modified().unwrap() > SystemTime::UNIX_EPOCH;
        let again: Vec<u64> = numbers.into_iter().filter(written).collect();
        assert_eq!(again, expected, "{synced:?}");
        let expected: Vec<u64> = expected.iter().map(|number| of(number).ino()).collect();
        assert_eq!(*files.borrow(), expected, "{synced:?}");
        assert!(numbers.iter().all(|number| fs::read(path(*number)).unwrap() == whole), "{synced:?}");
    }
}

#[test]
fn bytes_that_are_written_again_stay_as_they_are() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("0.jnl");
    let whole: Vec<u8> = (0..3 * BLOCK + 5).map(|at| (at % 251) as u8).collect();
    fs::write(&path, &whole).unwrap();
    let file = File::options().read(true).write(true).open(&path).unwrap();
    let end = whole.len() as u64;
    for bytes in [0..end, 7..end - 9, u64::MAX..end] {
        write_again(&file, bytes).unwrap();
    }
    assert_eq!(fs::read(&path).unwrap(), whole);
}

#[test]
fn a_journal_that_cannot_be_synced_is_not_opened() {
    let (whole, synced) = journal();
    let torn = whole.len() - 1;
    for bytes in [&whole[..], &whole[..torn]] {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("0.jnl"), bytes).unwrap();
        let sync = |_: &File| -> io::Result<()> { Err(io::Error::other("the disk is gone")) };
        let error = repair_with(root.path(), synced, &sync).unwrap_err().to_string();
        assert!(error.contains("failed to sync") && error.contains("0.jnl"), "{error}");
    }
}

#[test]
fn an_older_journal_that_lost_what_was_synced_is_reported() {
    let (whole, synced) = journal();
    let root = tempfile::tempdir().unwrap();
    let second = starts(&whole)[1];
    fs::write(root.path().join("3.jnl"), &whole[..second]).unwrap();
    fs::write(root.path().join("4.jnl"), &whole).unwrap();
    let error = repair(root.path(), Synced { journal: 3, ..synced }).unwrap_err().to_string();
    let expected = format!("the batch at byte {second} of ");
    assert!(error.contains(&expected), "{error}");
    assert!(error.contains("3.jnl: it was synced, and is missing"), "{error}");
    repair(root.path(), Synced { journal: 4, ..synced }).unwrap();
}

/// Its sync failed, another one was begun after a sync that succeeded without having written anything, and then the power was
/// cut.
#[test]
fn an_older_journal_that_was_torn_takes_all_later_ones_with_it() {
    let (whole, synced) = journal();
    let [_, second, third, end] = starts(&whole)[..] else { panic!("{:?}", starts(&whole)) };
    let names = ["3.jnl", "4.jnl", "5.jnl"];
    for (marked, at, left) in [
        (Synced::default(), end - 1, Some(third)),
        (Synced::default(), third - 1, Some(second)),
        (Synced { journal: 3, ..synced }, end - 1, Some(third)),
        (Synced { journal: 3, ..synced }, third - 1, None),
        (Synced { journal: 4, ..synced }, end - 1, None),
    ] {
        let root = tempfile::tempdir().unwrap();
        let path = |name: &str| root.path().join(name);
        for name in names {
            fs::write(path(name), &whole).unwrap();
        }
        let mut torn = whole.clone();
        torn[at] ^= 1;
        fs::write(path("3.jnl"), &torn).unwrap();
        // A restart that cannot sync what it has cut is followed by another one.
        let failing = |_: &File| -> io::Result<()> { Err(io::Error::other("the disk is gone")) };
        repair_with(root.path(), marked, &failing).unwrap_err();
        let repaired = repair(root.path(), marked);
        let found = names.map(|name| fs::read(path(name)).ok());
        if let Some(left) = left {
            repaired.unwrap();
            assert_eq!(found, [Some(whole[..left].to_vec()), None, None], "{marked:?} {at}");
        } else {
            let error = repaired.unwrap_err().to_string();
            assert!(error.contains("3.jnl: it "), "{error}");
            assert_eq!(found, [Some(torn), Some(whole.clone()), Some(whole.clone())], "{marked:?} {at}");
        }
    }
}
