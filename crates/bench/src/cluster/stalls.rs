//! Stalls of the disk of one server after another.

use anyhow::{Context as _, ensure};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::process::Command;
use tokio::time::{MissedTickBehavior, interval, sleep};

/// The library that holds the syncs of a process, of whatever file or folder; the tests of clusters stall disks with it, too.
const SOURCE: &str = include_str!("../../../switchward/tests/it/cluster_faults/hold-sync.c");
/// How often a disk stalls, and for how long.
const EVERY: Duration = Duration::from_secs(1);
const STALL: Duration = Duration::from_millis(200);

/// What stalls the disks of servers that were started with its environment.
pub(super) struct Stalls {
    library: PathBuf,
    /// Holds the number of the process whose syncs do not return.
    hold: PathBuf,
}

/// How often a disk stalled, and how often a sync was held by that.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct StallCounts {
    pub(super) stalls: u64,
    pub(super) held: u64,
}

impl Stalls {
    /// Builds the library in this folder.
    ///
    /// # Errors
    /// There is no C compiler.
    pub(super) async fn prepare(folder: &Path) -> anyhow::Result<Self> {
        let (source, library) = (folder.join("hold-sync.c"), folder.join("hold-sync.so"));
        std::fs::write(&source, SOURCE)?;
        let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
        let mut command = Command::new(compiler);
        command.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(source).arg("-ldl");
        let built = command.status().await.context("stalls of disks need a C compiler")?;
        ensure!(built.success(), "the library that holds syncs cannot be built");
        // Servers may have another working directory.
        let folder = folder.canonicalize()?;
        Ok(Self { library: folder.join("hold-sync.so"), hold: folder.join("hold") })
    }

    /// What the servers need in their environment.
    pub(super) fn environment(&self) -> Vec<(&'static str, OsString)> {
        vec![("LD_PRELOAD", self.library.clone().into()), ("HOLD_SYNC_FILE", self.hold.clone().into())]
    }

    /// Stalls the disk of one of these processes after the other, one a second, until it is over.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(super) async fn run(&self, processes: &[u32], over: &AtomicBool) -> anyhow::Result<StallCounts> {
        let (mut counts, mut ticks) = (StallCounts::default(), interval(EVERY));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        for process in processes.iter().cycle() {
            ticks.tick().await;
            if over.load(Ordering::Relaxed) {
                break;
            }
            let before = self.seen();
            self.hold(*process)?;
            sleep(STALL).await;
            std::fs::remove_file(&self.hold)?;
            counts.stalls += 1;
            counts.held += u64::from(self.seen() > before);
        }
        Ok(counts)
    }

    /// Lets no sync of a process return. The file is replaced, so that nobody reads a part of it.
    fn hold(&self, process: u32) -> anyhow::Result<()> {
        let new = self.hold.with_extension("new");
        std::fs::write(&new, process.to_string())?;
        Ok(std::fs::rename(new, &self.hold)?)
    }

    /// Grows with each sync that is held, bytes.
    fn seen(&self) -> u64 {
        std::fs::metadata(self.hold.with_extension("seen")).map_or(0, |about| about.len())
    }
}
