//! The runtime of a server.

use std::io;
use std::num::NonZeroUsize;

use tokio::runtime::{Builder, Runtime};

/// Workers for each core. While some of them decide, write or decode, the others answer cheap requests: the system gives
/// each its share of the cores, whereas the tasks of one worker wait for one another.
const WORKERS_OF_CORE: usize = 2;
/// The fewest workers.
const WORKERS_MIN: usize = 4;

/// Makes it.
///
/// # Errors
/// The system gives no threads.
pub(crate) fn make() -> io::Result<Runtime> {
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let workers = (cores * WORKERS_OF_CORE).max(WORKERS_MIN);
    Builder::new_multi_thread().worker_threads(workers).enable_all().build()
}
