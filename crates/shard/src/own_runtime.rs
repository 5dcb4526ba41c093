//! A runtime for one thing alone: Raft's timers, and the messages between servers, must not wait behind requests and reads of
//! the disk. Where both are on one, a message of Raft goes from its connection to Raft without another thread.

use std::io;
use tokio::runtime::{Builder, Handle, Runtime};

use crate::limits::RAFT_END_WAIT;

/// A runtime with threads of its own. Dropped, it ends its tasks and does not wait for them.
pub struct OwnRuntime(Option<Runtime>);

impl OwnRuntime {
    /// Starts threads of this name.
    ///
    /// # Errors
    /// The system has no thread left.
    pub fn start(name: &str, threads: usize) -> io::Result<Self> {
        Builder::new_multi_thread()
            .worker_threads(threads.max(1))
            .thread_name(name)
            .enable_all()
            .build()
            .map(Some)
            .map(Self)
    }

    /// Ends its tasks and waits for the threads, at most [`RAFT_END_WAIT`]: what they hold, such as the lock of the data
    /// folder, is free afterwards. Blocks.
    pub fn end(mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_timeout(RAFT_END_WAIT);
        }
    }

    /// The handle by which tasks are spawned on it.
    #[must_use]
    pub fn handle(&self) -> &Handle {
        self.0.as_ref().expect("it is there until it is dropped").handle()
    }
}

impl Drop for OwnRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}
