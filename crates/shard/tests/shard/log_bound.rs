//! A log stays within its bound, however large its entries are.

use openraft::async_runtime::WatchReceiver;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use switchward_shard::{
    Raft,
    limits::{LOG_BYTES_FULL, LOG_BYTES_KEPT, LOG_BYTES_MAX},
};
use switchward_state::session::SessionCommand;
use switchward_state::{Body, Command};
use switchward_testkit::until;

use crate::commands::{DEPLOY_GATE, definition, start};
use crate::one_server::{digests, prepare};
use crate::server::{Server, Setup};

/// Entries of a length of which a thousand far exceed the bound; all together are more than twice the bound.
const ENTRIES: usize = 1_150;
const ENTRY_BYTES: usize = 128 * 1024;
/// By how much the log's bytes for two of these entries may differ: by the lengths of the numbers in them.
const DIFFERENCE_BYTES: u64 = 64;

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
        until("the log is purged", async || group.log_bytes() <= LOG_BYTES_MAX).await;
        longest
    })
}

/// Writes the entry with the longest number to a short log. Returns an upper bound on the log's bytes for each of the entries.
fn longest_entry(server: &Server) -> u64 {
    let bytes = || server.cluster().shards()[0].group().log_bytes();
    let before = bytes();
    server.run(server.cluster().execute(long_start(ENTRIES))).unwrap();
    bytes() - before + DIFFERENCE_BYTES
}

#[test]
fn a_log_of_large_entries_is_purged_for_its_bytes_and_seldom() {
    let folder = tempfile::tempdir().unwrap();
    let setup = Setup { shards: 1, ..Setup::new(folder.path()) };
    let (server, flushes) = opened(&setup);
    let entry = longest_entry(&server);
    let longest = written(&server, 0..ENTRIES);
    // However slow the disk is: an entry is written only to a log that is not yet full.
    assert!(longest <= LOG_BYTES_FULL + entry, "the log had {longest} bytes");
    // However slow the disk is: rows are flushed only if that lets half of the bound go.
    let seen: Vec<u64> = flushes.lock().iter().copied().collect();
    assert!(!seen.is_empty(), "the log was longer than its bound");
    for (before, after) in std::iter::once(0).chain(seen.iter().copied()).zip(&seen) {
        let covered = (after - before) * entry;
        assert!(covered >= LOG_BYTES_MAX / 2, "a flush for {covered} bytes, at {seen:?}");
    }
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
    let group = server.cluster().shards()[0].group();
    let seen: Vec<u64> = flushes.lock().iter().copied().collect();
    let [covered] = seen[..] else { panic!("the rows are those of the shutdown, and not of {seen:?}") };
    let purged = || group.raft().metrics().borrow_watched().purged.map(|id| id.index);
    server.run(until("the purge is shown", async || purged().is_some()));
    assert!(purged() <= Some(covered), "{:?} was purged of {covered}", purged());
    // The tail is kept, but for less than an entry.
    let (log, kept) = (group.log_bytes(), LOG_BYTES_KEPT - 2 * ENTRY_BYTES as u64);
    assert!((kept..=LOG_BYTES_MAX).contains(&log), "the log has {log} bytes");
}
