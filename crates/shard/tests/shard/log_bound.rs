//! A log stays within its bound, however large its entries are.

use openraft::async_runtime::WatchReceiver;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use switchward_shard::{
    Group, Raft,
    limits::{LOG_BYTES_FULL, LOG_BYTES_KEPT, LOG_BYTES_MAX},
};
use switchward_state::session::SessionCommand;
use switchward_state::{Body, Command};

use crate::commands::{DEPLOY_GATE, definition, start};
use crate::one_server::{digests, prepare};
use crate::server::{Server, Setup};

/// Entries of a length of which a thousand far exceed the bound; all together are more than twice the bound.
const ENTRIES: usize = 1_150;
const ENTRY_BYTES: usize = 128 * 1024;
/// The longest wait for the last purge.
const PURGE_WAIT: Duration = Duration::from_secs(60);

fn long_start(number: usize) -> Command {
    let mut start = start(&definition(DEPLOY_GATE), &format!("session {number}"));
    if let Body::Session(SessionCommand::Start(start)) = &mut start.body {
        start.input = format!("\"{number} {}\"", "x".repeat(ENTRY_BYTES)).into_bytes();
    }
    start
}

/// Records the positions at which rows are flushed and synced to shorten the log, as long as the node lives.
async fn note_flushes(raft: Raft, seen: Arc<Mutex<BTreeSet<u64>>>) {
    let mut changes = raft.metrics();
    loop {
        seen.lock().extend(changes.borrow_watched().snapshot.map(|id| id.index));
        if changes.changed().await.is_err() {
            return;
        }
    }
}

/// Waits until the log is within its bound.
async fn short(group: &Group) {
    while group.log_bytes() > LOG_BYTES_MAX {
        tokio::task::yield_now().await;
    }
}

/// One shard with a definition, and the positions at which its rows were flushed to shorten its log.
fn opened(setup: &Setup) -> (Server, Arc<Mutex<BTreeSet<u64>>>) {
    let server = Server::open(setup);
    prepare(&server);
    let flushes: Arc<Mutex<BTreeSet<u64>>> = Arc::default();
    let raft = server.cluster().shards()[0].group().raft().clone();
    let seen = Arc::clone(&flushes);
    server.run(async move { drop(tokio::spawn(note_flushes(raft, seen))) });
    (server, flushes)
}

/// Writes long entries, and waits until the log is short again. Returns its greatest length, bytes.
fn written(server: &Server, numbers: Range<usize>) -> u64 {
    server.run(async {
        let group = server.cluster().shards()[0].group();
        let mut longest = 0;
        for number in numbers {
            server.cluster().execute(long_start(number)).await.unwrap();
            longest = longest.max(group.log_bytes());
        }
        tokio::time::timeout(PURGE_WAIT, short(group)).await.expect("the log is purged");
        longest
    })
}

#[test]
fn a_log_of_large_entries_is_purged_for_its_bytes_and_seldom() {
    let folder = tempfile::tempdir().unwrap();
    let setup = Setup { shards: 1, ..Setup::new(folder.path()) };
    let (server, flushes) = opened(&setup);
    let longest = written(&server, 0..ENTRIES);
    // However slow the disk is, one entry may be written to a log that is not yet full, plus its head.
    assert!(longest <= LOG_BYTES_FULL + 2 * ENTRY_BYTES as u64, "the log had {longest} bytes");
    let all = (ENTRIES * ENTRY_BYTES) as u64;
    let (seen, worth) = (flushes.lock().len() as u64, all / (LOG_BYTES_MAX - LOG_BYTES_KEPT) + 1);
    assert!((1..=worth).contains(&seen), "{seen} flushes for {all} bytes");
    let before = digests(&server);
    server.crash();
    assert_eq!(digests(&Server::open(&setup)), before);
}

/// Entries that the rows on disk already cover are purged without a flush.
#[test]
fn rows_are_not_flushed_again_for_a_purge_that_needs_no_more_of_them() {
    /// Just below the limit.
    const MANY: usize = LOG_BYTES_MAX as usize / ENTRY_BYTES - 10;
    /// Above the limit.
    const ALL: usize = MANY + 40;
    let folder = tempfile::tempdir().unwrap();
    let setup = Setup { shards: 1, ..Setup::new(folder.path()) };
    let (server, flushes) = opened(&setup);
    written(&server, 0..MANY);
    assert_eq!(*flushes.lock(), BTreeSet::new(), "the log was not too long");
    server.shut_down();
    let (server, flushes) = opened(&setup);
    written(&server, MANY..ALL);
    // The length between two checks depends on the disk; the missing entries show that it was purged.
    let log = server.cluster().shards()[0].group().log_bytes();
    assert!(log < (ALL * ENTRY_BYTES) as u64, "the log has all {log} bytes that were written");
    assert_eq!(flushes.lock().len(), 1, "the rows are those of the shutdown");
}
