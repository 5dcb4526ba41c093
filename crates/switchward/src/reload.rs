//! Files that are read again while the process runs: when they change, and on SIGHUP.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Interval, MissedTickBehavior, interval};

/// How often the files are checked for changes.
const LOOK: Duration = Duration::from_secs(1);

/// Listens for SIGHUP from now on, which then no longer ends the process.
pub(crate) fn hangups() -> Option<Signal> {
    let hangups = signal(SignalKind::hangup());
    hangups.inspect_err(|error| tracing::error!(%error, "failed to listen for SIGHUP")).ok()
}

/// The same for a command that ends with its terminal; `None` also if the process was started so that it does not, such as by
/// `nohup`.
pub(crate) fn hangups_unless_ignored() -> Option<Signal> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    if ignores_hangups(&status) { None } else { hangups() }
}

/// Returns true if the status of a process says that it ignores SIGHUP, which is the lowest bit.
fn ignores_hangups(status: &str) -> bool {
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
    ignored.is_some_and(|bits| bits & 1 == 1)
}

/// What distinguishes a file from the one that it replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp([i64; 2], [u64; 3]);

/// Files that belong together, such as a certificate and its key.
pub(crate) struct WatchedFiles {
    files: Vec<PathBuf>,
    hangups: Option<Signal>,
    tick: Interval,
    /// The files as they were when they were read last.
    known: Vec<Option<Stamp>>,
    /// The files as they were at the last look.
    seen: Vec<Option<Stamp>>,
}

impl WatchedFiles {
    /// Watches files that were just read. Without files there is only SIGHUP.
    pub(crate) fn new(files: Vec<PathBuf>, hangups: Option<Signal>) -> Self {
        let mut tick = interval(LOOK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let known = stamps(&files);
        Self { seen: known.clone(), known, files, hangups, tick }
    }

    /// Waits until the files must be read again: they have changed and stand still, or SIGHUP has come. Files that are just
    /// being replaced, one after the other, do not stand still.
    pub(crate) async fn changed(&mut self) {
        loop {
            // Either may be dropped while it waits: neither loses a signal or a look.
            let hangup_came = tokio::select! {
                _ = self.tick.tick(), if !self.files.is_empty() => false,
                () = hangup(&mut self.hangups) => true,
            };
            let now = stamps(&self.files);
            let stand_still = now == self.seen;
            self.seen.clone_from(&now);
            if hangup_came || (stand_still && now != self.known) {
                self.known = now;
                return;
            }
        }
    }
}

fn stamps(files: &[PathBuf]) -> Vec<Option<Stamp>> {
    files.iter().map(|file| stamp(file)).collect()
}

fn stamp(file: &Path) -> Option<Stamp> {
    let of: Metadata = file.metadata().ok()?;
    Some(Stamp([of.mtime(), of.mtime_nsec()], [of.dev(), of.ino(), of.len()]))
}

/// Waits for the next SIGHUP; forever if it could not be listened for.
async fn hangup(hangups: &mut Option<Signal>) {
    let came = match hangups {
        Some(signal) => signal.recv().await.is_some(),
        None => false,
    };
    if !came {
        std::future::pending::<()>().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_outlives_its_terminal_says_so() {
        for (status, ignores) in [
            ("Name:\tx\nSigBlk:\t0000000000000001\nSigIgn:\t0000000000001001\n", true),
            ("Name:\tx\nSigBlk:\t0000000000000001\nSigIgn:\t0000000000001000\n", false),
            ("SigIgn:\tx\n", false),
            ("", false),
        ] {
            assert_eq!(ignores_hangups(status), ignores, "{status}");
        }
    }
    use tokio::time::timeout;

    /// Longer than some looks.
    const A_WHILE: Duration = Duration::from_secs(60);

    async fn is_read_again(watched: &mut WatchedFiles) -> bool {
        timeout(A_WHILE, watched.changed()).await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn files_are_read_again_once_after_each_change() {
        let folder = tempfile::tempdir().unwrap();
        let files = ["a.crt", "a.key"].map(|name| folder.path().join(name));
        files.iter().for_each(|file| std::fs::write(file, "one").unwrap());
        let mut watched = WatchedFiles::new(files.to_vec(), None);
        assert!(!is_read_again(&mut watched).await, "nothing has changed");
        for (file, text) in [(0, "second"), (1, "second"), (0, "third one")] {
            std::fs::write(&files[file], text).unwrap();
            assert!(is_read_again(&mut watched).await, "{text}");
            assert!(!is_read_again(&mut watched).await, "{text}, once");
        }
        std::fs::remove_file(&files[1]).unwrap();
        assert!(is_read_again(&mut watched).await, "a file that is gone is a change");
        let renamed = folder.path().join("next.key");
        std::fs::write(&renamed, "second").unwrap();
        std::fs::rename(&renamed, &files[1]).unwrap();
        assert!(is_read_again(&mut watched).await, "it is there again");
    }

    #[tokio::test(start_paused = true)]
    async fn without_files_and_signals_nothing_is_read() {
        assert!(!is_read_again(&mut WatchedFiles::new(Vec::new(), None)).await);
    }
}
