//! A server inside this process, whose log can be stopped before any sync.
//!
//! The log calls a hook before each sync. To cut the power, the hook copies the data folder, removes the last batch from the
//! copy's log, and lets the sync fail: so the copy holds only what earlier syncs covered. After that no write may be
//! acknowledged.

use anyhow::{Context as _, ensure};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use switchward_gateway::{
    Admission, Api, ConnectionLimits,
    one_port::{OneService, one_port},
    routes::Services,
    serve, services,
};
use switchward_shard::{
    Cluster, Group, GroupOptions, GroupStart, LogRetention, NoPeers, RaftSettings, SystemClock,
};
use switchward_state::Levels;
use switchward_state::seal::KeyRing;
use switchward_store::{DataDir, GroupId, GroupLog, LogOptions, SegmentLog, Snapshots, StateStore};
use tokio::{
    net::TcpListener,
    sync::{oneshot, watch},
    time::timeout,
};

/// What this rig shows, and what it cannot.
pub(crate) const CLAIM: &str = "what the log has written and not synced is lost; whether a sync reaches the disk is \
                                not seen by it";
/// The header sizes of a log batch, and of a segment.
const BATCH_HEAD_BYTES: usize = 24;
const SEGMENT_HEAD_BYTES: usize = 32;
/// The longest that a cut may need.
const CUT_MAX: Duration = Duration::from_secs(60);
const CACHE_BYTES: usize = 16 * 1024 * 1024;

/// What the hook and the test say to each other.
struct Cut {
    data: PathBuf,
    image: PathBuf,
    /// What was found fatal, by the log and by the shards.
    fatal: Mutex<Vec<String>>,
    fatal_to_shards: Mutex<Vec<String>>,
    stage: watch::Sender<Stage>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Stage {
    Serving,
    Wanted,
    Done(Result<(), String>),
}

impl Cut {
    fn before_sync(&self) -> Option<io::Error> {
        if *self.stage.borrow() == Stage::Serving {
            return None;
        }
        let taken = take(&self.data, &self.image).map_err(|error| format!("{error:#}"));
        self.stage.send_replace(Stage::Done(taken));
        Some(io::Error::other("the power is cut"))
    }
}

/// The data folder without what was written to the log and not synced.
fn take(data: &Path, image: &Path) -> anyhow::Result<()> {
    copy(data, image)?;
    let (path, bytes) = segment(image)?;
    // The last batch is written whole, and is what the sync is for.
    let last = batches(&bytes).pop().context("the log has no batch")?;
    let zeros = vec![0; bytes.len() - last];
    Ok(File::options().write(true).open(&path)?.write_all_at(&zeros, last as u64)?)
}

/// The newest files come first: the log removes its oldest ones meanwhile.
fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(to)?;
    fs::set_permissions(to, fs::Permissions::from_mode(0o700))?;
    for entry in files(from)?.into_iter().rev() {
        let target = to.join(entry.file_name().context("an entry has a name")?);
        if entry.is_dir() {
            copy(&entry, &target)?;
        } else if entry.is_file() {
            // A server that was killed leaves its control socket.
            match fs::copy(&entry, target) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                copied => drop(copied?),
            }
        }
    }
    Ok(())
}

/// The entries of a folder, by name.
fn files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    files.sort();
    Ok(files)
}

/// The newest segment of the log that was written to, and its bytes.
fn segment(data: &Path) -> anyhow::Result<(PathBuf, Vec<u8>)> {
    for path in files(&data.join("log"))?.into_iter().rev() {
        let bytes = fs::read(&path)?;
        if !batches(&bytes).is_empty() {
            return Ok((path, bytes));
        }
    }
    anyhow::bail!("the log has no batch")
}

/// The offsets of the batches of a segment.
fn batches(segment: &[u8]) -> Vec<usize> {
    let (mut starts, mut at) = (Vec::new(), SEGMENT_HEAD_BYTES);
    // Zeros follow the last one.
    while let Some(rest) = segment.get(at..).filter(|rest| rest.iter().take(4).any(|byte| *byte != 0)) {
        let body = rest.get(4..8).and_then(|body| body.try_into().ok()).map_or(0, u32::from_le_bytes);
        starts.push(at);
        at += BATCH_HEAD_BYTES + usize::try_from(body).unwrap_or(usize::MAX - at - BATCH_HEAD_BYTES);
    }
    starts
}

/// How many batches the log has.
fn count(data: &Path) -> anyhow::Result<usize> {
    let segments = files(&data.join("log"))?;
    let counts = segments.iter().map(|path| Ok(batches(&fs::read(path)?).len()));
    counts.sum()
}

/// A server in this process.
pub(crate) struct Inside {
    cut: Arc<Cut>,
    pub(crate) address: String,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<anyhow::Result<()>>,
}

impl Inside {
    /// Opens a data folder that a server has made, and serves it. A cut copies the folder to `image`.
    pub(crate) async fn open(data: &Path, image: &Path) -> anyhow::Result<Self> {
        let cut = Arc::new(Cut {
            data: data.to_owned(),
            image: image.to_owned(),
            fatal: Mutex::default(),
            fatal_to_shards: Mutex::default(),
            stage: watch::Sender::new(Stage::Serving),
        });
        let (stop, stopped) = oneshot::channel();
        let (announce, announced) = oneshot::channel();
        let inner = Arc::clone(&cut);
        // A separate runtime: dropping it aborts all tasks.
        let thread = std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
            let cluster = runtime.block_on(cluster(&inner))?;
            runtime.spawn(serve_at(cluster.clone(), announce));
            // Both a message and a dropped sender end it.
            let _ordered = runtime.block_on(stopped);
            drop(runtime);
            drop(cluster);
            Ok(())
        });
        let Ok(address) = announced.await else {
            thread.join().expect("the server's thread does not panic")?;
            anyhow::bail!("the server does not listen");
        };
        Ok(Self { cut, address, stop, thread })
    }

    /// Cuts the power before the next sync, and waits until that is done.
    pub(crate) async fn cut(&self) -> anyhow::Result<()> {
        self.cut.stage.send_replace(Stage::Wanted);
        let mut stage = self.cut.stage.subscribe();
        let done = stage.wait_for(|stage| matches!(stage, Stage::Done(_)));
        let done = timeout(CUT_MAX, done).await.context("nothing is synced any more")??.clone();
        match done {
            Stage::Done(Err(error)) => anyhow::bail!("the data folder cannot be copied: {error}"),
            Stage::Serving | Stage::Wanted | Stage::Done(Ok(())) => Ok(()),
        }
    }

    /// Ends what is left of it after a cut. Returns the one line that it ends with, and whether the failed sync was
    /// for something, which the image has not got.
    pub(crate) async fn end(self) -> anyhow::Result<(String, bool)> {
        let Self { cut, stop, thread, .. } = self;
        // It may have ended already.
        let _sent = stop.send(());
        let joined = tokio::task::spawn_blocking(move || thread.join()).await?;
        joined.expect("the server's thread does not panic")?;
        let lines = cut.fatal.lock().unwrap().clone();
        let [line] = lines.as_slice() else {
            anyhow::bail!("the log was lost {} times: {lines:?}", lines.len())
        };
        ensure!(!line.contains('\n'), "more than one line: {line:?}");
        let repeated = cut.fatal_to_shards.lock().unwrap().clone();
        ensure!(repeated.len() < 2, "the shards say more than once that they end: {repeated:?}");
        Ok((line.clone(), count(&cut.data)? > count(&cut.image)?))
    }
}

/// An error with its causes, in one line.
fn describe(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

async fn cluster(cut: &Arc<Cut>) -> anyhow::Result<Cluster> {
    let data = DataDir::open(&cut.data)?;
    let shards = data.shards(1)?;
    let (to_log, to_shards, hook) = (Arc::clone(cut), Arc::clone(cut), Arc::clone(cut));
    let options = LogOptions {
        on_fatal: Box::new(move |error| to_log.fatal.lock().unwrap().push(describe(error))),
        sync_fault: Some(Arc::new(move |_| hook.before_sync())),
    };
    let log = Arc::new(SegmentLog::open(&data, options)?);
    let (states, snapshots) = (StateStore::open(&data)?, Snapshots::open(&data)?);
    let mut groups = Vec::new();
    for number in 0..=u64::from(shards) {
        let options = GroupOptions {
            group: GroupId(number),
            node: 1,
            start: GroupStart::Initialize(vec![1]),
            log: Arc::clone(&log) as Arc<dyn GroupLog>,
            states: states.clone(),
            snapshots: snapshots.clone(),
            cache_bytes: CACHE_BYTES,
            ring: KeyRing::default(),
            raft: RaftSettings::default(),
            leaders: None,
            retention: LogRetention::default(),
            levels: Levels::OF_PROGRAM,
        };
        groups.push(Group::open(options, NoPeers).await?);
    }
    let on_fatal =
        Box::new(move |line: &str| to_shards.fatal_to_shards.lock().unwrap().push(line.to_owned()));
    Ok(Cluster::of_groups(groups, Arc::new(SystemClock), log, on_fatal)?)
}

async fn serve_at(cluster: Cluster, announce: oneshot::Sender<String>) -> anyhow::Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let address = format!("http://{}", listener.local_addr()?);
    let (all, health) = Services::new().await;
    let api = Api::new(cluster, None);
    let routes = OneService::of(services::all(all, &api));
    let app = one_port(routes, health.pages(), Vec::new(), &Admission::of(&api));
    // The test may be gone.
    let _sent = announce.send(address);
    serve::serve(listener, None, app, ConnectionLimits::default(), std::future::pending()).await;
    Ok(())
}
