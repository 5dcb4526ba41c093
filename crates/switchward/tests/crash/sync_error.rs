//! A sync that fails: no write is acknowledged after it, and the process ends with one clear line.

use anyhow::{Context as _, bail, ensure};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::book::Book;
use crate::crew::{CALLERS, Crew};
use crate::front::Front;
use crate::plan::{DEFINITION, Notes, deploy};
use crate::power::{looked_at, prepared};
use crate::rig::Rig;
use crate::rig::disk::Disk;
use crate::rig::layer::Inside;
use crate::rng::Rng;
use crate::server::{Host, Server};
use crate::{scratch, verify};

/// Acknowledged steps before a sync fails.
const STEPS: u64 = 200;
const NOTES: Notes = Notes { long_bytes: 4 * 1024, long_each: 8 };
/// The disk size, and its space in memory: enough for a start and some thousand steps.
const DISK_BYTES: u64 = 512 * 1024 * 1024;
const GROUND_BYTES: u64 = 160 * 1024 * 1024;
/// The longest file that a server may write whose files are limited: what it says fits, and its log does not.
const FILE_BYTES_MAX: u64 = 64 * 1024;
/// The longest that a server may live on a disk that refuses all writes.
const END_MAX: Duration = Duration::from_secs(120);

/// The log's own hook lets one sync fail, inside this process.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_sync_is_reported_once_and_nothing_is_acknowledged_after_it() -> anyhow::Result<()> {
    let rng = Rng::of("a failed sync, inside");
    let scratch = scratch::folder()?;
    let host = Host::new(scratch.path(), scratch.path().join("data"));
    let (mut ready, front) = prepared(&host).await?;
    let image = scratch.path().join("image");
    let inside = Inside::open(host.data(), &image).await?;
    ready.address.clone_from(&inside.address);
    let book = Book::new(rng.seed, NOTES);
    front.open(&ready).await?;
    let mut crew = book.callers(&front, CALLERS);
    crew.until(STEPS).await?;
    inside.cut().await?;
    front.close();
    let (line, lost) = inside.end().await?;
    eprintln!("  it said: {line}");
    ensure!(line.contains("failed to sync the log") && line.contains("the power is cut"), "it says {line:?}");
    ensure!(lost, "the sync that failed was for nothing");
    // The image has none of the failed sync's data, so an acknowledged write of it would be missing here.
    looked_at(&host.on(image)?, &front, &book).await
}

/// The real server, whose log the kernel refuses to write: on a disk that is full below its file system, if a disk can be
/// mounted, else with limited file sizes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_that_fails_ends_the_server_with_one_line() -> anyhow::Result<()> {
    let rng = Rng::of("a failed sync, of the kernel");
    let scratch = scratch::folder()?;
    match Rig::here(scratch.path())? {
        Rig::Loop => on_a_full_disk(scratch.path(), rng).await,
        Rig::Layer => with_files_that_are_limited(scratch.path(), rng).await,
    }
}

async fn on_a_full_disk(scratch: &Path, rng: Rng) -> anyhow::Result<()> {
    let disk = Disk::on_memory(scratch, DISK_BYTES, GROUND_BYTES)?;
    let host = Host::new(scratch, disk.path().join("data"));
    let server = host.start().await?;
    let front = Front::found(&server.ready).await?;
    let mut loaded = Loaded::begin(front, &server, rng).await?;
    loaded.crew.until(STEPS).await?;
    let full = disk.fill_ground()?;
    let loaded = loaded.ended(&host, server).await?;
    drop(full);
    let disk = disk.again().context("the disk cannot be mounted again")?;
    loaded.nothing_is_missing(&host.on(disk.path().join("data"))?).await
}

async fn with_files_that_are_limited(scratch: &Path, rng: Rng) -> anyhow::Result<()> {
    let host = Host::new(scratch, scratch.join("data"));
    let (_, front) = prepared(&host).await?;
    let server = host.surviving_limits().start().await?;
    let mut loaded = Loaded::begin(front, &server, rng).await?;
    loaded.crew.until(STEPS).await?;
    server.limit_files(FILE_BYTES_MAX)?;
    let loaded = loaded.ended(&host, server).await?;
    loaded.nothing_is_missing(&host).await
}

/// A server that cannot say why it ends, ends as well: it would go on without a log.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_that_fails_ends_a_server_that_can_say_nothing() -> anyhow::Result<()> {
    let rng = Rng::of("a failed sync, silent");
    let scratch = scratch::folder()?;
    let host = Host::new(scratch.path(), scratch.path().join("data"));
    let (_, front) = prepared(&host).await?;
    let server = host.surviving_limits().silent().start().await?;
    let mut loaded = Loaded::begin(front, &server, rng).await?;
    loaded.crew.until(STEPS).await?;
    server.limit_files(FILE_BYTES_MAX)?;
    let status = server.ended(END_MAX).await?;
    loaded.front.close();
    ensure!(status.code() == Some(1), "it ended with {status}");
    loaded.nothing_is_missing(&host).await
}

/// Callers of a server that is about to fail.
struct Loaded {
    front: Arc<Front>,
    book: Arc<Book>,
    crew: Crew,
}

impl Loaded {
    async fn begin(front: Arc<Front>, server: &Server, rng: Rng) -> anyhow::Result<Self> {
        let book = Book::new(rng.seed, NOTES);
        let live = front.aside(&server.ready).await?;
        deploy(&live, DEFINITION).await?;
        front.show(live);
        let crew = book.callers(&front, CALLERS);
        Ok(Self { front, book, crew })
    }

    /// Waits until the server has ended by itself, with exactly one line that says why.
    async fn ended(self, host: &Host, server: Server) -> anyhow::Result<Self> {
        let status = server.ended(END_MAX).await?;
        self.front.close();
        let said = host.said()?;
        eprintln!(
            "  {} steps were acknowledged; it ended with {status} and said:\n{said}",
            self.book.steps.now()
        );
        ensure!(status.code().is_some_and(|code| code != 0), "it ended with {status}");
        // The disk fails the tables, too, of which the database below the rows says something itself.
        let (of_database, lines): (Vec<&str>, Vec<&str>) =
            said.lines().partition(|line| line.contains(" ERROR fjall::worker_pool: "));
        let [line] = lines.as_slice() else { bail!("it said {} lines: {said}", lines.len()) };
        ensure!(line.starts_with("switchward: failed to "), "it said {line:?}");
        let said_before = line.contains("an ERROR line before this one says why")
            && of_database.iter().any(|line| line.contains("Os { code: "));
        ensure!(line.contains("(os error ") || said_before, "it does not say why: {said}");
        Ok(self)
    }

    /// A server that can write again has all that was acknowledged.
    async fn nothing_is_missing(self, host: &Host) -> anyhow::Result<()> {
        let server = host.start().await?;
        self.front.open(&server.ready).await?;
        self.book.close();
        self.crew.finish().await?;
        verify::the_end(&self.book, &self.front.live().await?).await?;
        server.kill().await
    }
}
