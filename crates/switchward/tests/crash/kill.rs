//! SIGKILL at any moment, again and again.

use anyhow::ensure;
use rand::Rng as _;
use std::path::Path;
use std::sync::{Arc, atomic::Ordering};
use std::time::{Duration, Instant};
use switchward_shard::limits::LOG_BYTES_MAX;
use switchward_store::{DataDir, GroupId, GroupLog as _, LogOptions, SegmentLog};

use crate::book::Book;
use crate::crew::CALLERS;
use crate::front::Front;
use crate::plan::{DEFINITION, Notes, deploy};
use crate::rng::{Rng, setting};
use crate::server::Host;
use crate::verify::Look;
use crate::{scratch, verify};

/// One of this many starts is killed before it is ready.
const STARTS_KILLED: u32 = 4;

/// What callers do between two kills or cuts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    pub(crate) callers: usize,
    pub(crate) notes: Notes,
    /// Acknowledged steps, at least and at most.
    pub(crate) steps: (u64, u64),
    /// Arguments of the server.
    pub(crate) args: &'static [&'static str],
    /// What is looked at after each cut.
    pub(crate) look: Look,
}

/// Some answers cover more than a page of the journal.
const LIGHT: Load = Load {
    callers: CALLERS,
    notes: Notes { long_bytes: 6 * 1024, long_each: 8 },
    steps: (1, 120),
    args: &[],
    look: Look::All,
};

/// Enough goes into one shard that its rows are written behind and its log is purged. Few callers make small
/// batches, so that there are many entries in what stays of the log.
pub(crate) const HEAVY: Load = Load {
    callers: 12,
    notes: Notes { long_bytes: 15 * 1024, long_each: 1 },
    steps: (400, 1_600),
    args: &["--shards", "1"],
    look: Look::Unsettled,
};

impl Load {
    /// Draws the number of steps until the next kill.
    pub(crate) fn drawn(&self, rng: &mut Rng) -> u64 {
        rng.rng.random_range(self.steps.0..=self.steps.1)
    }
}

/// Times of one kind.
#[derive(Default)]
pub(crate) struct Times(Vec<Duration>);

impl Times {
    pub(crate) fn add(&mut self, time: Duration) {
        self.0.push(time);
    }

    /// The shortest, the middle and the longest one.
    pub(crate) fn summary(&mut self) -> String {
        self.0.sort();
        let last = self.0.len().saturating_sub(1);
        let at_index = |at: usize| self.0.get(at).map_or("none".to_owned(), |time| format!("{time:.0?}"));
        format!("{} / {} / {}", at_index(0), at_index(last / 2), at_index(last))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_acknowledged_step_survives_kills() -> anyhow::Result<()> {
    let scratch = scratch::folder()?;
    let kills = Kills { name: "kills", load: LIGHT, count: setting("CRASH_KILLS", 200) };
    kills.run(scratch.path()).await.map(drop)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_acknowledged_step_survives_kills_while_the_log_is_purged() -> anyhow::Result<()> {
    let scratch = scratch::folder()?;
    let kills = Kills { name: "kills under a purge", load: HEAVY, count: setting("CRASH_HEAVY_KILLS", 12) };
    let data = kills.run(scratch.path()).await?;
    was_purged(data.data())
}

/// Fails unless the log of the one shard has lost its beginning to a purge, and is about within its bound.
pub(crate) fn was_purged(data: &Path) -> anyhow::Result<()> {
    const SHARD: GroupId = GroupId(1);
    /// A log that was not purged begins before this entry.
    const BEGINNING: u64 = 100;
    let options = LogOptions { on_fatal: Box::new(|_| {}), sync_fault: None };
    let log = SegmentLog::open(&DataDir::open(data)?, options)?;
    let range = log.first_last(SHARD)?;
    let bytes = log.bytes(SHARD);
    eprintln!("  the shard's log has the entries {range:?}, {bytes} bytes");
    ensure!(bytes < LOG_BYTES_MAX * 3 / 2, "the log is far longer than its bound");
    ensure!(
        range.is_some_and(|(first, _)| first > BEGINNING),
        "the log was not purged: this shows too little"
    );
    Ok(())
}

struct Kills {
    name: &'static str,
    load: Load,
    count: u32,
}

impl Kills {
    /// Returns how the servers were started; none is left.
    async fn run(&self, scratch: &Path) -> anyhow::Result<Host> {
        let mut rng = Rng::of(self.name);
        let host = Host::new(scratch, scratch.join("data")).with(self.load.args);
        let book = Book::new(rng.seed, self.load.notes);
        let mut server = host.start().await?;
        let front = Front::found(&server.ready).await?;
        let live = front.aside(&server.ready).await?;
        deploy(&live, DEFINITION).await?;
        front.show(live);
        let mut crew = book.callers(&front, self.load.callers);
        let (begun, mut starts, mut killed_early) = (Instant::now(), Times::default(), 0);
        for kill in 1..=self.count {
            crew.until(book.steps.now() + self.load.drawn(&mut rng)).await?;
            front.close();
            let usual = server.took;
            server.kill().await?;
            while rng.rng.random_ratio(1, STARTS_KILLED) {
                let time = usual.mul_f64(rng.rng.random_range(0.0..1.2));
                host.spawn()?.killed_within(time).await?;
                killed_early += 1;
            }
            server = host.start().await?;
            starts.add(server.took);
            front.open(&server.ready).await?;
            if kill % 20 == 0 || kill == self.count {
                let steps = book.steps.now();
                eprintln!(
                    "  kill {kill} of {}: {steps} steps acknowledged, {:.1?}",
                    self.count,
                    begun.elapsed()
                );
            }
        }
        book.close();
        crew.finish().await?;
        // What is looked at now was written down before, and not kept in memory.
        front.close();
        server.kill().await?;
        let counted = shown(&host, &front, &book).await?;
        eprintln!(
            "{}: {} while serving and {killed_early} while starting, {} steps, {} requests sent more than once, \
             {counted}, starts {}, {:.1?} in all",
            self.name,
            self.count,
            book.steps.now(),
            book.retried.load(Ordering::Relaxed),
            starts.summary(),
            begun.elapsed()
        );
        host.assert_sound()?;
        Ok(host)
    }
}

/// Lets a server show all that is there, at the end.
async fn shown(host: &Host, front: &Front, book: &Arc<Book>) -> anyhow::Result<String> {
    let server = host.start().await?;
    let counted = verify::the_end(book, &front.aside(&server.ready).await?).await?;
    server.kill().await?;
    Ok(counted)
}
