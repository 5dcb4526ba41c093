//! openraft's own suite for a log store and a state machine.

use openraft::StorageError;
use openraft::testing::log::{StoreBuilder, Suite};
use std::sync::Arc;
use switchward_shard::{
    GroupOptions, GroupParts, GroupStart, LogRetention, LogStore, RaftSettings, StateMachine, TypeConfig,
};
use switchward_state::Levels;
use switchward_store::{DataDir, GroupId, LogOptions, SegmentLog, Snapshots, StateStore};
use tempfile::TempDir;

/// A new data folder for every test of the suite.
struct Folders;

impl StoreBuilder<TypeConfig, LogStore, StateMachine, TempDir> for Folders {
    async fn build(&self) -> Result<(TempDir, LogStore, StateMachine), StorageError<TypeConfig>> {
        let folder = tempfile::tempdir().unwrap();
        let data = DataDir::open(folder.path()).unwrap();
        let on_fatal = Box::new(|error: &switchward_store::StoreError| panic!("the log is lost: {error}"));
        let log = SegmentLog::open(&data, LogOptions { on_fatal, sync_fault: None }).unwrap();
        let options = GroupOptions {
            group: GroupId(3),
            node: 1,
            start: GroupStart::Initialize(vec![1]),
            log: Arc::new(log),
            states: StateStore::open(&data).unwrap(),
            snapshots: Snapshots::open(&data).unwrap(),
            cache_bytes: 1024 * 1024,
            ring: switchward_scenario::ring().clone(),
            raft: RaftSettings::default(),
            leaders: None,
            retention: LogRetention::default(),
            levels: Levels::OF_PROGRAM,
        };
        let GroupParts { log, machine } = GroupParts::open(&options).unwrap();
        Ok((folder, log, machine))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn log_and_state_machine_pass_the_suite() {
    Suite::test_all(Folders).await.unwrap();
}
