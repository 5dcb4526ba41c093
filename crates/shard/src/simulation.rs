//! Servers of a simulation: several replicas on one thread. Only builds with the feature `simulation` contain it, which no
//! build of the product has.

use futures::future::Either;
use std::cell::Cell;
use std::future::{Future, ready};
use tokio::task::{JoinError, spawn_blocking};

thread_local! {
    static ON: Cell<bool> = const { Cell::new(false) };
}

/// Makes this thread the thread of a simulation, until [`end`]: what blocks is executed at once, and not on a thread of its
/// own. Every runtime that this thread drives must have no other thread.
pub fn begin() {
    ON.set(true);
}

/// Ends the simulation of this thread.
pub fn end() {
    ON.set(false);
}

/// Returns true on the thread of a simulation.
pub(crate) fn is_on() -> bool {
    ON.get()
}

/// Executes what blocks, on the thread of a simulation at once, else as [`spawn_blocking`] does.
///
/// # Errors
/// It panicked.
pub(crate) fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> impl Future<Output = Result<T, JoinError>> + Send {
    if is_on() { Either::Left(ready(Ok(work()))) } else { Either::Right(spawn_blocking(work)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[tokio::test]
    async fn what_blocks_is_executed_on_the_thread_of_a_simulation_only() {
        let ran_on = || blocking(|| thread::current().id());
        assert_ne!(ran_on().await.unwrap(), thread::current().id());
        begin();
        let on = ran_on().await.unwrap();
        end();
        assert_eq!(on, thread::current().id());
        assert!(!is_on());
    }
}
