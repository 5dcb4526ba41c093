//! A log whose unsynced writes are lost, at every sync that it makes: whatever was acknowledged before is there, and the
//! write that the sync was for is there as a whole or not at all.

use crate::{
    crash::{batches, segment},
    support::{copy, durably, record},
};
use bytes::Bytes;
use std::{
    fs::{self, File},
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
};
use switchward_store::{DataDir, GroupId, GroupLog, LogOptions, LogRecord, Meta, SegmentLog};

const GROUPS: [GroupId; 2] = [GroupId(1), GroupId(2)];

/// What one operation does to the log.
#[derive(Clone, Copy, Debug)]
enum Step {
    Append {
        group: GroupId,
        first: u64,
        records: u64,
    },
    Vote {
        group: GroupId,
        term: u64,
    },
    Truncate {
        group: GroupId,
        after: u64,
    },
    Purge {
        group: GroupId,
        to: u64,
    },
    Scrub,
    /// The log is closed and opened again, so that its next batch is in another segment.
    Restart,
}

const SCRIPT: [Step; 18] = {
    use Step::{Append, Purge, Restart, Scrub, Truncate, Vote};
    let [one, two] = GROUPS;
    [
        Vote { group: one, term: 1 },
        Append { group: one, first: 1, records: 2 },
        Vote { group: two, term: 1 },
        Append { group: two, first: 1, records: 1 },
        Restart,
        Vote { group: one, term: 2 },
        Append { group: one, first: 3, records: 3 },
        Truncate { group: one, after: 4 },
        Append { group: one, first: 5, records: 2 },
        Purge { group: one, to: 3 },
        Restart,
        Append { group: two, first: 2, records: 3 },
        Scrub,
        Vote { group: two, term: 5 },
        Purge { group: two, to: 4 },
        Restart,
        Append { group: two, first: 5, records: 1 },
        Vote { group: one, term: 7 },
    ]
};

/// What the log holds of both groups: records, vote, purged position.
type Look = Vec<(Vec<LogRecord>, Option<Bytes>, Option<Bytes>)>;

fn look(log: &SegmentLog) -> Look {
    let of = |group| {
        let meta = |slot| log.meta(group, slot).unwrap();
        (log.read(group, 0..u64::MAX, usize::MAX).unwrap(), meta(Meta::Vote), meta(Meta::Purged))
    };
    GROUPS.map(of).into()
}

/// Copies the data folder before each sync: an image of it holds the written batch, which was not synced.
#[derive(Default)]
struct Camera {
    root: PathBuf,
    images: AtomicU64,
    on: AtomicBool,
}

impl Camera {
    fn image(&self, number: u64) -> PathBuf {
        self.root.join(format!("image-{number}"))
    }

    fn open(self: &Arc<Self>, path: &Path) -> SegmentLog {
        let camera = Arc::clone(self);
        let path = path.to_path_buf();
        let of = path.clone();
        let hook = move |nth: u64| {
            if nth > 0 && camera.on.load(SeqCst) {
                copy(&of, &camera.image(camera.images.fetch_add(1, SeqCst)));
            }
            None
        };
        let options =
            LogOptions { on_fatal: Box::new(|error| panic!("{error}")), sync_fault: Some(Arc::new(hook)) };
        SegmentLog::open(&DataDir::open(path).unwrap(), options).unwrap()
    }
}

fn act(log: &SegmentLog, number: usize, step: Step) {
    match step {
        Step::Append { group, first, records } => {
            let new =
                (first..first + records).map(|index| record(index, format!("{index} of step {number}")));
            durably(|done| log.append(group, new.collect(), done)).unwrap();
        }
        Step::Vote { group, term } => {
            durably(|done| log.put_meta(group, Meta::Vote, term.to_string().into(), done)).unwrap();
        }
        Step::Truncate { group, after } => {
            durably(|done| log.truncate_after(group, Some(after), done)).unwrap();
        }
        Step::Purge { group, to } => {
            durably(|done| log.purge_to(group, to, to.to_string().into(), done)).unwrap();
        }
        Step::Scrub => assert!(log.scrub().unwrap()),
        Step::Restart => {}
    }
}

/// Opens what a power cut has left. Fails unless it is what was acknowledged, before or after the write that was under way.
fn check(image: &Path, looks: &[Look; 2], what: &str) {
    let open = || {
        let options = LogOptions { on_fatal: Box::new(|error| panic!("{error}")), sync_fault: None };
        SegmentLog::open(&DataDir::open(image).unwrap(), options)
    };
    let log = open().unwrap_or_else(|error| panic!("{what}: {error}"));
    let found = look(&log);
    assert!(looks.contains(&found), "{what}: {found:?} is neither of {looks:?}");
    // The log goes on from there.
    durably(|done| log.put_meta(GROUPS[0], Meta::Vote, Bytes::from_static(b"9"), done)).unwrap();
    let after = look(&log);
    drop(log);
    assert_eq!(look(&open().unwrap()), after, "{what}");
}

/// Lets the disk lose parts of the last batch of an image, one after the other.
fn check_all(image: &Path, lost: &Path, looks: &[Look; 2], what: &str) {
    let newest = segment_with_batch(image);
    let starts = batches(&newest);
    let [.., start, end] = starts[..] else { panic!("{what}: no batch") };
    let written = fs::read(&newest).unwrap();
    // Without the batch, with its first bytes only, and without its first bytes.
    let parts = (0..end - start).step_by(23).map(|kept| (start + kept, end));
    let parts = parts.chain([(start, start + 8), (start + 24, start + 30), (end - 1, end), (end, end)]);
    for (from, to) in parts {
        let _none = fs::remove_dir_all(lost);
        copy(image, lost);
        let torn = lost.join("log").join(newest.file_name().unwrap());
        let zeros = vec![0; written[from..to.max(from)].len()];
        File::options().write(true).open(torn).unwrap().write_all_at(&zeros, from as u64).unwrap();
        check(lost, looks, &format!("{what}, bytes {from} to {to} lost"));
    }
}

/// The newest segment that was written to.
fn segment_with_batch(path: &Path) -> PathBuf {
    let newest = segment(path);
    if batches(&newest).len() > 1 {
        return newest;
    }
    fs::remove_file(newest).unwrap();
    segment_with_batch(path)
}

#[test]
fn nothing_acknowledged_is_lost_at_any_sync() {
    let root = tempfile::tempdir().unwrap();
    let (path, lost) = (root.path().join("data"), root.path().join("lost"));
    let camera = Arc::new(Camera { root: root.path().to_path_buf(), ..Camera::default() });
    camera.on.store(true, SeqCst);
    let mut log = camera.open(&path);
    let mut before = look(&log);
    let mut seen = 0;
    for (number, step) in SCRIPT.into_iter().enumerate() {
        if let Step::Restart = step {
            drop(log);
            log = camera.open(&path);
        }
        act(&log, number, step);
        let after = look(&log);
        let looks = [before, after];
        while seen < camera.images.load(SeqCst) {
            check_all(&camera.image(seen), &lost, &looks, &format!("step {number}, image {seen}"));
            seen += 1;
        }
        let [_, after] = looks;
        before = after;
    }
    assert!(seen >= 15, "{seen} syncs");
}
