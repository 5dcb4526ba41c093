//! Work that blocks, such as reads of the disk, on threads for it.

#[cfg(feature = "simulation")]
pub(crate) use crate::simulation::blocking;
#[cfg(not(feature = "simulation"))]
pub(crate) use tokio::task::spawn_blocking as blocking;

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::block_in_place;

/// Does work that may block, here and now, while another thread takes over the other tasks of this one. Costs the wake of a
/// thread: for many small pieces of work, call it once. On a runtime of one thread, and on a thread of no runtime, the work is
/// just done.
pub(crate) fn blocking_here<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => block_in_place(work),
        // Further kinds of runtimes may refuse it.
        Ok(_) | Err(_) => work(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn blocking_work_holds_up_no_other_task() {
        let ended = tokio::spawn(async {
            let (other, ran) = channel();
            tokio::spawn(async move { other.send(()) });
            blocking_here(move || ran.recv())
        });
        assert_eq!(ended.await.unwrap(), Ok(()));
    }

    #[tokio::test]
    async fn blocking_work_is_done_on_a_runtime_of_one_thread() {
        assert_eq!(blocking_here(|| 7), 7);
    }
}
