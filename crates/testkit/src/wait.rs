//! Waiting for what other tasks and threads bring about: never longer than [`PATIENCE`].

use std::thread;
use std::time::{Duration, Instant};

/// The longest wait of a test for what other tasks bring about, also on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The shortest and the longest pause between two looks at a condition.
const PAUSE_MIN: Duration = Duration::from_micros(50);
const PAUSE_MAX: Duration = Duration::from_millis(1);

/// The pause before the next look, by how long the wait has taken; `None` as long as it is short.
fn pause(waited: Duration) -> Option<Duration> {
    let pause = (waited / 8).min(PAUSE_MAX);
    (pause >= PAUSE_MIN).then_some(pause)
}

/// Waits until the condition holds, and lets other tasks run meanwhile. A wait that takes longer looks less
/// often, so that the machine's cores are free for what is waited for.
///
/// # Panics
/// The condition does not hold within [`PATIENCE`], by the clock of the machine; the message says `what` it is about.
pub async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let begun = Instant::now();
    while !holds().await {
        let waited = begun.elapsed();
        assert!(waited < PATIENCE, "not so within {PATIENCE:?}: {what}");
        match pause(waited) {
            // The runtime's own timers would move a clock that is paused.
            Some(pause) => drop(tokio::task::spawn_blocking(move || thread::park_timeout(pause)).await),
            None => tokio::task::yield_now().await,
        }
    }
}

/// Waits until the condition holds, and blocks the thread meanwhile.
///
/// # Panics
/// As [`until`].
#[track_caller]
pub fn until_blocking(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        let waited = begun.elapsed();
        assert!(waited < PATIENCE, "not so within {PATIENCE:?}: {what}");
        match pause(waited) {
            Some(pause) => thread::park_timeout(pause),
            None => thread::yield_now(),
        }
    }
}
