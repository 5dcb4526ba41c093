//! Reads of a disk that is slow.

use std::ops::Range;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use super::*;

/// A log without records, on a disk that answers once another task has run.
struct SlowDisk(Mutex<Receiver<()>>);

impl GroupLog for SlowDisk {
    fn read(&self, _: GroupId, _: Range<u64>, _: usize) -> Result<Vec<LogRecord>, StoreError> {
        self.0.lock().recv_timeout(Duration::from_secs(10)).expect("the read holds up the other task");
        Ok(Vec::new())
    }

    fn is_in_memory(&self, _: GroupId, _: u64) -> bool {
        false
    }

    fn meta(&self, _: GroupId, _: Meta) -> Result<Option<Bytes>, StoreError> {
        Ok(None)
    }

    fn append(&self, _: GroupId, _: Vec<LogRecord>, _: Done) {
        unreachable!("the test only reads");
    }

    fn put_meta(&self, _: GroupId, _: Meta, _: Bytes, _: Done) {
        unreachable!("the test only reads");
    }

    fn first_last(&self, _: GroupId) -> Result<Option<(u64, u64)>, StoreError> {
        Ok(None)
    }

    fn last(&self, _: GroupId) -> Result<Option<LogRecord>, StoreError> {
        Ok(None)
    }

    fn truncate_after(&self, _: GroupId, _: Option<u64>, _: Done) {
        unreachable!("the test only reads");
    }

    fn purge_to(&self, _: GroupId, _: u64, _: Bytes, _: Done) {
        unreachable!("the test only reads");
    }

    fn bytes(&self, _: GroupId) -> u64 {
        0
    }

    fn stretch(&self, _: GroupId, _: Range<u64>) -> (u64, u64) {
        (0, 0)
    }

    fn tail_within(&self, _: GroupId, _: u64, _: u64) -> u64 {
        0
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn entries_that_are_read_from_the_disk_hold_up_no_other_task() {
    let (other, ran) = channel();
    let mut store = LogStore::new(Arc::new(SlowDisk(Mutex::new(ran))), GroupId(0));
    let reading = tokio::spawn(async move {
        tokio::spawn(async move { other.send(()) });
        store.limited_get_log_entries(1, 2).await
    });
    assert!(reading.await.unwrap().unwrap().is_empty());
}
