//! Waiting for what other tasks and threads bring about: never longer than [`PATIENCE`].

use std::thread;
use std::time::{Duration, Instant};

/// The longest wait of a test for what other tasks bring about, also on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until the condition holds, and lets other tasks run meanwhile.
///
/// # Panics
/// The condition does not hold within [`PATIENCE`], by the clock of the machine; the message says `what` it is about.
pub async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds().await {
        assert!(Instant::now() < deadline, "not so within {PATIENCE:?}: {what}");
        tokio::task::yield_now().await;
    }
}

/// Waits until the condition holds, and blocks the thread meanwhile.
///
/// # Panics
/// As [`until`].
#[track_caller]
pub fn until_blocking(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "not so within {PATIENCE:?}: {what}");
        thread::yield_now();
    }
}
