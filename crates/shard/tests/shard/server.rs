//! One server in this process, which can be shut down, or dropped as a crash would leave it.

use parking_lot::Mutex;
use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use switchward_machine::Time;
use switchward_shard::{Clock, Cluster, ClusterOptions, ManualClock};
use switchward_store::{DataDir, StoreError};
use switchward_testkit::until_blocking;
use tokio::runtime::{Builder, Runtime};

/// The start time of every test: a Monday, 9:00 UTC.
pub(crate) const BEGIN: Time = Time(1_750_064_400_000);

/// How a server is opened.
#[derive(Clone)]
pub(crate) struct Setup {
    pub(crate) path: PathBuf,
    pub(crate) shards: u32,
    pub(crate) cache_bytes: usize,
    pub(crate) clock: ManualClock,
}

impl Setup {
    pub(crate) fn new(path: &Path) -> Self {
        Self { path: path.to_path_buf(), shards: 4, cache_bytes: 1024 * 1024, clock: ManualClock::new(BEGIN) }
    }
}

/// A server with a runtime of its own: when the runtime is dropped, all of its tasks end where they stand.
pub(crate) struct Server {
    runtime: Runtime,
    cluster: Cluster,
    /// The errors that the server reported as fatal.
    fatal: Arc<Mutex<Vec<String>>>,
}

impl Server {
    pub(crate) fn open(setup: &Setup) -> Self {
        Self::try_open(setup).unwrap()
    }

    pub(crate) fn try_open(setup: &Setup) -> io::Result<Self> {
        Self::try_open_with(setup, Arc::new(setup.clock.clone()))
    }

    /// The same with another clock.
    pub(crate) fn open_with(setup: &Setup, clock: Arc<dyn Clock>) -> Self {
        Self::try_open_with(setup, clock).unwrap()
    }

    fn try_open_with(setup: &Setup, clock: Arc<dyn Clock>) -> io::Result<Self> {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let fatal: Arc<Mutex<Vec<String>>> = Arc::default();
        let reported = Arc::clone(&fatal);
        let data = unlocked(&setup.path);
        let options = ClusterOptions {
            data,
            shards: setup.shards,
            cache_bytes: setup.cache_bytes,
            clock,
            ring: switchward_scenario::ring().clone(),
            on_fatal: Box::new(move |line| reported.lock().push(line.to_owned())),
            member: None,
        };
        let cluster = runtime.block_on(Cluster::open(options))?;
        Ok(Self { runtime, cluster, fatal })
    }

    pub(crate) fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    pub(crate) fn run<T>(&self, what: impl Future<Output = T>) -> T {
        self.runtime.block_on(what)
    }

    /// Ends as SIGTERM does.
    pub(crate) fn shut_down(self) {
        self.runtime.block_on(self.cluster.shutdown()).unwrap();
        self.assert_sound();
    }

    /// Ends as SIGKILL does: no task gets to its next line, and nothing more is written. A write that the log's
    /// thread has begun is finished, as the kernel would.
    pub(crate) fn crash(self) {
        self.assert_sound();
        let Self { runtime, cluster, .. } = self;
        drop(runtime);
        drop(cluster);
    }

    pub(crate) fn assert_sound(&self) {
        assert_eq!(*self.fatal.lock(), Vec::<String>::new());
    }
}

/// The data folder, once nothing of an earlier server holds it: callers release it in their own time.
pub(crate) fn unlocked(path: &Path) -> DataDir {
    let mut data = None;
    until_blocking("the data folder is released", || match DataDir::open(path) {
        Err(StoreError::InUse { .. }) => false,
        opened => {
            data = Some(opened.unwrap());
            true
        }
    });
    data.unwrap()
}
