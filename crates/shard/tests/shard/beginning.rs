//! Who may begin a group: a server whose folder is new, and nobody else.

use openraft::async_runtime::WatchReceiver;
use std::fs;
use std::sync::Arc;
use switchward_shard::{Group, GroupOptions, GroupStart, LogRetention, NoPeers, RaftSettings};
use switchward_state::Levels;
use switchward_store::{
    ClusterIdentity, DataDir, GroupId, GroupLog, Id, LogOptions, SegmentLog, Snapshots, StateStore,
};

use crate::server::{Server, Setup, unlocked};

fn refused(setup: &Setup) -> String {
    Server::try_open(setup).err().expect("the server must not start").to_string()
}

#[test]
fn a_server_that_lost_its_files_does_not_begin_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data");
    let setup = Setup { shards: 1, ..Setup::new(&path) };
    Server::open(&setup).shut_down();
    drop(unlocked(&path));
    fs::remove_dir_all(path.join("log")).unwrap();
    let message = refused(&setup);
    assert!(message.contains("batches were synced, and no segment in"), "{message}");
    // Also if nothing is left that says how long the log was.
    let fresh = folder.path().join("fresh");
    drop(DataDir::open(&fresh).unwrap());
    for mark in ["LOG_BEGIN", "LOG_SYNCED", "STATE_SYNCED"] {
        fs::copy(fresh.join(mark), path.join(mark)).unwrap();
    }
    fs::remove_dir_all(path.join("state")).unwrap();
    let message = refused(&setup);
    assert!(message.contains("group 0 is gone from the data folder"), "{message}");
}

#[test]
fn a_folder_of_a_cluster_is_not_opened_alone() {
    let folder = tempfile::tempdir().unwrap();
    let setup = Setup { shards: 1, ..Setup::new(folder.path()) };
    Server::open(&setup).shut_down();
    let data = unlocked(folder.path());
    data.claim(ClusterIdentity { cluster: Id([7; 16]), server: 2 }).unwrap();
    drop(data);
    let message = refused(&setup);
    assert!(message.contains("belongs to server 2 of cluster 0707"), "{message}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_that_is_to_join_does_not_begin_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let data = DataDir::open(folder.path()).unwrap();
    let on_fatal = Box::new(|error: &switchward_store::StoreError| panic!("the log is lost: {error}"));
    let log = Arc::new(SegmentLog::open(&data, LogOptions { on_fatal, sync_fault: None }).unwrap());
    let options = GroupOptions {
        group: GroupId(1),
        node: 1,
        start: GroupStart::Join,
        log: Arc::clone(&log) as Arc<dyn GroupLog>,
        states: StateStore::open(&data).unwrap(),
        snapshots: Snapshots::open(&data).unwrap(),
        cache_bytes: 1024,
        ring: switchward_scenario::ring().clone(),
        raft: RaftSettings { heartbeat_ms: 5, election_min_ms: 10, election_max_ms: 20 },
        retention: LogRetention::default(),
        levels: Levels::OF_PROGRAM,
        leaders: None,
    };
    let group = Group::open(options, NoPeers).await.unwrap();
    assert!(!group.is_initialized().await.unwrap());
    let metrics = group.raft().metrics().borrow_watched().clone();
    assert_eq!((metrics.current_term, metrics.last_log_index), (0, None));
    group.raft().shutdown().await.unwrap();
    assert_eq!(log.first_last(GroupId(1)).unwrap(), None);
}
