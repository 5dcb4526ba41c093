//! Disks that stall: leaders stay leaders, and only what has to be on disk waits.

use bytes::Bytes;
use futures::FutureExt as _;
use openraft::RaftLogReader as _;
use openraft::async_runtime::WatchReceiver;
use openraft::storage::RaftLogStorage;
use openraft::type_config::alias::VoteOf;
use openraft::vote::leader_id_std::CommittedLeaderId;
use parking_lot::{Condvar, Mutex};
use std::path::Path;
use std::sync::Arc;
use switchward_shard::{LogStore, TypeConfig};
use switchward_store::{DataDir, GroupId, GroupLog, LogOptions, LogRecord, SegmentLog, SyncFault};
use switchward_testkit::PATIENCE;

use crate::commands::{DEPLOY_GATE, definition, start};
use crate::three_voters::{callers, install, key_in};
use crate::trio::{NODES, Trio, at};

/// The shard that is written to.
const GROUP: usize = 1;
/// Reads while the disks stall, each of which a majority confirms.
const READS: usize = 3;

/// A server's disk, which syncs nothing while it stalls; cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Stall(Arc<Gate>);

#[derive(Default)]
struct Gate {
    shut: Mutex<bool>,
    opened: Condvar,
}

/// A disk that stalls until this is dropped.
pub(crate) struct Stalled(Stall);

impl Stall {
    pub(crate) fn begin(&self) -> Stalled {
        *self.0.shut.lock() = true;
        Stalled(self.clone())
    }

    /// What the log calls before each sync.
    pub(crate) fn before_each_sync(&self) -> SyncFault {
        let gate = Arc::clone(&self.0);
        Arc::new(move |_| {
            let mut shut = gate.shut.lock();
            while *shut {
                gate.opened.wait(&mut shut);
            }
            None
        })
    }
}

impl Drop for Stalled {
    fn drop(&mut self) {
        *self.0.0.shut.lock() = false;
        self.0.0.opened.notify_all();
    }
}

#[test]
fn a_leader_goes_on_while_the_disks_of_all_others_stall() {
    let trio = Trio::patient();
    let runtime = callers();
    let (leader, others) = (NODES[0], &NODES[1..]);
    runtime.block_on(async {
        install(&trio).await;
        assert_eq!(trio.leader(GROUP, None).await, leader);
        let shard = trio.shard(leader, GROUP);
        let now = shard.group().raft().metrics().borrow_watched().clone();
        let begin = start(&definition(DEPLOY_GATE), &key_in(&trio, GROUP, "stalled"));

        let stalled: Vec<Stalled> = others.iter().map(|node| trio.stalls[at(*node)].begin()).collect();
        let mut caller = trio.callers();
        let started = tokio::spawn(async move { caller.insist(begin).await });
        let next = now.last_log_index.map(|last| last + 1);
        for node in others {
            let raft = trio.shard(*node, GROUP).group().raft();
            let waits = raft.wait(Some(PATIENCE));
            waits.log_index_at_least(next, "a follower has the entry").await.unwrap();
        }
        for _ in 0..READS {
            shard.read().await.unwrap();
        }
        assert!(!started.is_finished(), "no majority has synced the entry");

        drop(stalled);
        started.await.unwrap().unwrap();
        assert_eq!(shard.group().raft().metrics().borrow_watched().current_term, now.current_term);
    });
    trio.assert_sound();
}

/// A log in this folder, on a disk that may stall.
fn log_in(folder: &Path, stall: &Stall) -> Arc<SegmentLog> {
    let data = DataDir::open(folder).unwrap();
    let on_fatal = Box::new(|error: &switchward_store::StoreError| panic!("the log is lost: {error}"));
    let sync_fault = Some(stall.before_each_sync());
    Arc::new(SegmentLog::open(&data, LogOptions { on_fatal, sync_fault }).unwrap())
}

#[test]
fn a_purge_does_not_wait_for_the_disk() {
    let (folder, stall, group) = (tempfile::tempdir().unwrap(), Stall::default(), GroupId(1));
    let log = log_in(folder.path(), &stall);
    let (done, synced) = std::sync::mpsc::channel();
    let record = LogRecord { index: 0, bytes: Bytes::from_static(b"an entry") };
    log.append(group, vec![record], Box::new(move |result| done.send(result).unwrap()));
    synced.recv().unwrap().unwrap();

    let mut store = LogStore::new(Arc::clone(&log) as Arc<dyn GroupLog>, group);
    let stalled = stall.begin();
    let first = openraft::LogId { leader_id: CommittedLeaderId::new(0), index: 0 };
    let purged = store.purge(first).now_or_never();
    assert!(matches!(purged, Some(Ok(()))), "a node that waits answers no heartbeats");
    assert_eq!(log.first_last(group).unwrap(), None);
    drop(stalled);
}

#[test]
fn a_vote_waits_for_the_disk_and_the_grant_of_the_same_vote_does_not() {
    let (folder, stall, group) = (tempfile::tempdir().unwrap(), Stall::default(), GroupId(1));
    let (runtime, log) = (callers(), log_in(folder.path(), &stall));
    let mut store = LogStore::new(Arc::clone(&log) as Arc<dyn GroupLog>, group);
    let (vote, granted) = (VoteOf::<TypeConfig>::new(1, 2), VoteOf::<TypeConfig>::new_committed(1, 2));
    let other = VoteOf::<TypeConfig>::new_committed(2, 3);

    let stalled = stall.begin();
    assert!(store.save_vote(&granted).now_or_never().is_none(), "it has not voted for that server");
    assert!(store.save_vote(&vote).now_or_never().is_none());
    drop(stalled);
    runtime.block_on(store.save_vote(&vote)).unwrap();

    let stalled = stall.begin();
    assert!(matches!(store.save_vote(&granted).now_or_never(), Some(Ok(()))), "its vote is on disk");
    assert!(store.save_vote(&other).now_or_never().is_none(), "a later term");
    drop(stalled);
    runtime.block_on(store.save_vote(&other)).unwrap();
    assert_eq!(runtime.block_on(store.read_vote()).unwrap(), Some(other));
}
