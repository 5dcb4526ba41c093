//! A runtime for Raft alone: its timers must not wait behind requests and reads of the disk.

use std::io;
use tokio::runtime::{Builder, Handle, Runtime};

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
