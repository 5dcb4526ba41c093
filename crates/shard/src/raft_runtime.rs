//! A runtime for Raft alone: its timers must not wait behind requests and reads of the disk.

use std::io;
use tokio::runtime::{Builder, Handle, Runtime};

use crate::limits::RAFT_END_WAIT;

/// A runtime with one thread, `raft`. Dropped, it ends its tasks and does not wait for them.
pub(crate) struct RaftRuntime(Option<Runtime>);

impl RaftRuntime {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system has no thread left.
    pub(crate) fn start() -> io::Result<Self> {
        Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("raft")
            .enable_all()
            .build()
            .map(Some)
            .map(Self)
    }

    /// Ends its tasks and waits for the thread, at most [`RAFT_END_WAIT`]: what they hold, such as the lock of the data
    /// folder, is free afterwards. Blocks.
    pub(crate) fn end(mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_timeout(RAFT_END_WAIT);
        }
    }

    /// The runtime's handle.
    pub(crate) fn handle(&self) -> &Handle {
        self.0.as_ref().expect("it is there until it is dropped").handle()
    }
}

impl Drop for RaftRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
