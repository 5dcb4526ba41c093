//! A log and a state that lose what was not synced, at every sync of the log: acknowledged votes and entries are there, no
//! vote goes back, and the log is never purged behind rows that are on disk.

use futures::stream;
use openraft::storage::{
    RaftLogStorage as _, RaftLogStorageExt as _, RaftSnapshotBuilder as _, RaftStateMachine as _,
};
use openraft::type_config::alias::{EntryOf, LogIdOf, VoteOf};
use openraft::vote::leader_id_std::CommittedLeaderId;
use openraft::{EntryPayload, RaftLogReader as _};
use std::fs::{self, File};
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use switchward_shard::{GroupOptions, GroupParts, GroupStart, LogRetention, RaftSettings, TypeConfig};
use switchward_state::Levels;
use switchward_store::{DataDir, GroupId, GroupLog, LogOptions, SegmentLog, Snapshots, StateStore};
use switchward_testkit::until;

const GROUP: GroupId = GroupId(3);
/// The heads of a segment and of a batch of the log, bytes.
const SEGMENT_HEAD: usize = 32;
const BATCH_HEAD: usize = 24;

#[derive(Clone, Copy, Debug)]
enum Step {
    /// Votes in a term.
    Vote(u64),
    /// Appends and applies entries of a term.
    Append { term: u64, entries: u64 },
    /// Removes the last entries, which are not applied yet, and appends others of a later term.
    Replace { term: u64, entries: u64 },
    /// Makes the rows durable, and purges the log up to them but for the last entries.
    Purge { kept: u64 },
    /// The process ends and another one opens the folder.
    Restart,
}

const SCRIPT: [Step; 14] = [
    Step::Vote(1),
    Step::Append { term: 1, entries: 3 },
    Step::Purge { kept: 1 },
    Step::Append { term: 1, entries: 2 },
    Step::Vote(2),
    Step::Replace { term: 2, entries: 3 },
    Step::Restart,
    Step::Append { term: 2, entries: 4 },
    Step::Purge { kept: 0 },
    Step::Vote(4),
    Step::Append { term: 4, entries: 1 },
    Step::Restart,
    Step::Purge { kept: 0 },
    Step::Append { term: 4, entries: 2 },
];

/// The lowest term that was voted in, and the entries, that must be there.
#[derive(Clone, Debug, Default)]
struct Acknowledged {
    vote: u64,
    /// Terms of the entries by their indexes.
    entries: Vec<u64>,
}

fn log_id(term: u64, index: u64) -> LogIdOf<TypeConfig> {
    LogIdOf::<TypeConfig> { leader_id: CommittedLeaderId::new(term), index }
}

fn blank(term: u64, index: u64) -> EntryOf<TypeConfig> {
    EntryOf::<TypeConfig> { log_id: log_id(term, index), payload: EntryPayload::Blank }
}

/// The record of how much of the state was synced, in a data folder.
const SYNCED: &str = "STATE_SYNCED";

/// Takes a copy of the data folder before each sync of the log, with the state as it was last synced.
struct Camera {
    data: PathBuf,
    /// A copy of the state's folder as of its last sync.
    synced: PathBuf,
    root: PathBuf,
    images: AtomicUsize,
    /// Held while files are copied.
    copies: Mutex<()>,
}

impl Camera {
    fn image(&self, number: usize) -> PathBuf {
        self.root.join(format!("image-{number}"))
    }

    /// The record of what was synced belongs to the copy of the state: the one in the folder may be newer.
    fn take(&self) {
        let _alone = self.copies.lock().unwrap();
        let image = self.image(self.images.load(SeqCst));
        copy(&self.data, &image, "state");
        if self.synced.is_dir() {
            copy(&self.synced, &image.join("state"), SYNCED);
            fs::copy(self.synced.join(SYNCED), image.join(SYNCED)).unwrap();
        }
        // Now the image is whole, and may be read.
        self.images.fetch_add(1, SeqCst);
    }

    /// Notes the state as it is: it was just synced.
    fn state_is_synced(&self) {
        let _alone = self.copies.lock().unwrap();
        let _first = fs::remove_dir_all(&self.synced);
        copy(&self.data.join("state"), &self.synced, "");
        fs::copy(self.data.join(SYNCED), self.synced.join(SYNCED)).unwrap();
    }

    fn open(self: &Arc<Self>) -> GroupParts {
        let camera = Arc::clone(self);
        let hook = move |nth: u64| {
            if nth > 0 {
                camera.take();
            }
            None
        };
        parts(&self.data, Some(Arc::new(hook)))
    }
}

fn parts(path: &Path, sync_fault: Option<switchward_store::SyncFault>) -> GroupParts {
    let data = crate::server::unlocked(path);
    let on_fatal = Box::new(|error: &switchward_store::StoreError| panic!("the log is lost: {error}"));
    let log = SegmentLog::open(&data, LogOptions { on_fatal, sync_fault }).unwrap();
    let options = options(&data, Arc::new(log));
    GroupParts::open(&options).unwrap()
}

fn options(data: &DataDir, log: Arc<dyn GroupLog>) -> GroupOptions {
    GroupOptions {
        group: GROUP,
        node: 1,
        start: GroupStart::Join,
        log,
        states: StateStore::open(data).unwrap(),
        snapshots: Snapshots::open(data).unwrap(),
        cache_bytes: 1024 * 1024,
        ring: switchward_scenario::ring().clone(),
        raft: RaftSettings::default(),
        retention: LogRetention::default(),
        levels: Levels::OF_PROGRAM,
        leaders: None,
    }
}

/// Copies a folder but for one entry, the newest files first; of journals without the zeros at their ends.
pub(crate) fn copy(from: &Path, to: &Path, but: &str) {
    fs::create_dir_all(to).unwrap();
    fs::set_permissions(to, fs::Permissions::from_mode(0o700)).unwrap();
    let mut entries: Vec<_> = fs::read_dir(from).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for entry in entries.into_iter().rev().filter(|entry| entry.file_name().unwrap() != but) {
        let target = to.join(entry.file_name().unwrap());
        if entry.is_dir() {
            copy(&entry, &target, "");
            continue;
        }
        // A segment or a table may be removed meanwhile.
        let Ok(mut bytes) = fs::read(&entry) else { continue };
        if entry.extension().is_some_and(|ending| ending == "jnl") {
            bytes.truncate(bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1));
        }
        fs::write(target, bytes).unwrap();
    }
}

/// Removes the last batch from the log of an image.
fn drop_last_batch(image: &Path) {
    let mut segments: Vec<_> =
        fs::read_dir(image.join("log")).unwrap().map(|entry| entry.unwrap().path()).collect();
    segments.sort();
    for path in segments.into_iter().rev() {
        let bytes = fs::read(&path).unwrap();
        let (mut at, mut last) = (SEGMENT_HEAD, None);
        while bytes.get(at..at + 4).is_some_and(|mark| mark != [0; 4]) {
            last = Some(at);
            at += BATCH_HEAD + u32::from_le_bytes(bytes[at + 4..at + 8].try_into().unwrap()) as usize;
        }
        if let Some(last) = last {
            let file = File::options().write(true).open(&path).unwrap();
            file.write_all_at(&vec![0; at - last], last as u64).unwrap();
            return;
        }
    }
    panic!("the log has no batch");
}

async fn append(parts: &mut GroupParts, to: &mut Acknowledged, term: u64, entries: u64, applied: bool) {
    let first = to.entries.len() as u64;
    let new: Vec<_> = (first..first + entries).map(|index| blank(term, index)).collect();
    parts.log.blocking_append(new.clone()).await.unwrap();
    to.entries.extend(new.iter().map(|_| term));
    if applied {
        parts.machine.apply(stream::iter(new.into_iter().map(|entry| Ok((entry, None))))).await.unwrap();
    }
}

async fn act(parts: &mut GroupParts, camera: &Camera, to: &mut Acknowledged, step: Step) {
    match step {
        Step::Vote(term) => {
            parts.log.save_vote(&VoteOf::<TypeConfig>::new(term, 1)).await.unwrap();
            to.vote = term;
        }
        Step::Append { term, entries } => append(parts, to, term, entries, true).await,
        Step::Replace { term, entries } => {
            append(parts, to, term - 1, 2, false).await;
            let kept = to.entries.len() - 2;
            let last = log_id(to.entries[kept - 1], kept as u64 - 1);
            parts.log.truncate_after(Some(last)).await.unwrap();
            to.entries.truncate(kept);
            append(parts, to, term, entries, true).await;
        }
        Step::Purge { kept } => {
            let snapshot = parts.machine.get_snapshot_builder().await.build_snapshot().await.unwrap();
            camera.state_is_synced();
            let last = snapshot.meta.last_log_id.unwrap().index;
            if let Some(upto) = last.checked_sub(kept) {
                parts.log.purge(log_id(to.entries[upto as usize], upto)).await.unwrap();
            }
        }
        Step::Restart => {}
    }
}

/// Opens what a power cut has left. Fails unless all that was acknowledged is there.
async fn check(image: &Path, expected: &Acknowledged, what: &str) {
    let GroupParts { mut log, mut machine } = parts(image, None);
    let vote = log.read_vote().await.unwrap().map_or(0, |vote| vote.leader_id().term);
    assert!(vote >= expected.vote, "{what}: the vote has gone back from {} to {vote}", expected.vote);
    let state = log.get_log_state().await.unwrap();
    let (applied, _) = machine.applied_state().await.unwrap();
    assert!(state.last_purged_log_id <= applied, "{what}: the log is purged behind the rows");
    let first = state.last_purged_log_id.map_or(0, |purged| purged.index + 1);
    let there = log.try_get_log_entries(first..).await.unwrap();
    for (index, term) in expected.entries.iter().enumerate().skip(usize::try_from(first).unwrap()) {
        let found = there.iter().find(|entry| entry.log_id.index == index as u64);
        assert_eq!(found.map(|entry| entry.log_id), Some(log_id(*term, index as u64)), "{what}");
    }
}

/// What must be there whether or not the write that is under way gets to the disk.
fn at_least(before: &Acknowledged, after: &Acknowledged) -> Acknowledged {
    let same = before.entries.iter().zip(&after.entries).take_while(|(one, other)| one == other);
    Acknowledged { vote: before.vote.min(after.vote), entries: same.map(|(term, _)| *term).collect() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_at_any_sync() {
    let root = tempfile::tempdir().unwrap();
    let camera = Arc::new(Camera {
        data: root.path().join("data"),
        synced: root.path().join("synced"),
        root: root.path().to_path_buf(),
        images: AtomicUsize::new(0),
        copies: Mutex::default(),
    });
    let mut parts = camera.open();
    camera.state_is_synced();
    let (mut acknowledged, mut seen) = (Acknowledged::default(), 0);
    for (number, step) in SCRIPT.into_iter().enumerate() {
        if let Step::Restart = step {
            drop(parts);
            parts = camera.open();
            // An opening syncs the state.
            camera.state_is_synced();
        }
        let before = acknowledged.clone();
        act(&mut parts, &camera, &mut acknowledged, step).await;
        if let Step::Purge { .. } = step {
            // It does not wait for its sync, which the next write would share.
            until("the purge is synced", async || camera.images.load(SeqCst) > seen).await;
        }
        let expected = at_least(&before, &acknowledged);
        while seen < camera.images.load(SeqCst) {
            let (image, what) = (camera.image(seen), format!("step {number}, sync {seen}"));
            let torn = camera.root.join("torn");
            let _none = fs::remove_dir_all(&torn);
            copy(&image, &torn, "");
            drop_last_batch(&torn);
            check(&torn, &expected, &format!("{what}, lost")).await;
            check(&image, &expected, &format!("{what}, written")).await;
            seen += 1;
        }
    }
    assert!(seen >= 14, "{seen} syncs");
}
