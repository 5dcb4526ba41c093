//! The process of one server of a development cluster.

use anyhow::Context as _;
use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::task::{Context, Poll};
use std::time::Duration;
use switchward_messages::cli::dev as texts;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::watch;
use tokio::time::timeout;

use super::logs::{Lines, Source, follow, say};
use crate::program::this_program;

/// A start that takes longer has failed.
const START_MAX: Duration = Duration::from_secs(90);
/// A server that is stopped may take this long; then it is killed.
const STOP_MAX: Duration = Duration::from_secs(30);

/// Whether a server makes sure that the tenant and its keys exist. Only a majority of the servers can.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyCheck {
    /// Before it is ready.
    Ensure,
    /// Not at all.
    Skip,
}

/// What a server prints when it is ready.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Started {
    /// Where its metrics are.
    pub(super) metrics: Option<String>,
}

/// A process that was started. Dropping it kills it.
pub(super) struct Process {
    child: Child,
    /// Held open while this process lives: the server ends when it closes.
    _input: Option<ChildStdin>,
    started: watch::Receiver<Option<Started>>,
    paused: bool,
}

impl Process {
    /// Starts a server. Must be called on the main thread: the process is killed when the thread ends that started it.
    ///
    /// # Errors
    /// The program cannot be started.
    pub(super) fn start(number: u64, file: &Path, keys: KeyCheck) -> anyhow::Result<Self> {
        let mut child = Command::new(this_program()?)
            .args(["dev", "member"])
            .arg(file)
            .args((keys == KeyCheck::Ensure).then_some("--ensure-keys"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-c is for the process that starts the servers, which then stops them in order.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("failed to start server {number}"))?;
        let input = child.stdin.take();
        let (ready, started) = watch::channel(None);
        tokio::spawn(follow(Source::Server(number), child.stderr.take().context("it has no log")?));
        tokio::spawn(listen(number, child.stdout.take().context("it has no output")?, ready));
        Ok(Self { child, _input: input, started, paused: false })
    }

    /// Waits until the server is ready.
    ///
    /// # Errors
    /// It ends before that, or takes too long.
    pub(super) async fn ready(&self) -> anyhow::Result<()> {
        let mut started = self.started.clone();
        let ready = timeout(START_MAX, started.wait_for(Option::is_some)).await;
        ready.context("it was not ready in time")?.map(drop).context("it ended before it was ready")
    }

    /// What it has printed, if it is ready.
    pub(super) fn started(&self) -> Option<Started> {
        self.started.borrow().clone()
    }

    /// Returns true if it takes calls now.
    pub(super) fn serves(&self) -> bool {
        !self.paused && self.started.borrow().is_some()
    }

    /// `running`, `starting` or `paused`.
    pub(super) fn state(&self) -> &'static str {
        if self.paused {
            "paused"
        } else if self.started.borrow().is_some() {
            "running"
        } else {
            "starting"
        }
    }

    /// Returns true if it is paused.
    pub(super) fn is_paused(&self) -> bool {
        self.paused
    }

    /// The number of the process; `None` if it has ended.
    pub(super) fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// Stops it for a while.
    ///
    /// # Errors
    /// It has ended.
    pub(super) fn pause(&mut self) -> anyhow::Result<()> {
        self.signal(Signal::STOP)?;
        self.paused = true;
        Ok(())
    }

    /// Continues it.
    ///
    /// # Errors
    /// It has ended.
    pub(super) fn resume(&mut self) -> anyhow::Result<()> {
        self.signal(Signal::CONT)?;
        self.paused = false;
        Ok(())
    }

    /// Kills it, and waits until it has ended.
    ///
    /// # Errors
    /// The system does not end it.
    pub(super) async fn kill(&mut self) -> anyhow::Result<()> {
        Ok(self.child.kill().await?)
    }

    /// Has it hand its groups over and end; kills it if it takes too long.
    pub(super) async fn stop(&mut self) {
        if self.is_paused() {
            // A process that has ended needs no signal.
            let _ended = self.resume();
        }
        let _ended = self.signal(Signal::TERM);
        if timeout(STOP_MAX, self.child.wait()).await.is_err() {
            let _ended = self.child.kill().await;
        }
    }

    /// The status, once it has ended.
    pub(super) fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<std::io::Result<ExitStatus>> {
        pin!(self.child.wait()).poll(cx)
    }

    fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        let pid = self.pid().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
        Ok(kill_process(pid.context("the process has ended")?, signal)?)
    }
}

/// How a process has ended, such as `exited with 1` or `killed by signal 9`.
pub(super) fn ended_in_words(status: std::io::Result<ExitStatus>) -> String {
    match status.map(|status| (status.code(), status.signal())) {
        Ok((Some(code), _)) => texts::exited(code),
        Ok((None, Some(signal))) => texts::killed_by(signal),
        Ok((None, None)) => texts::ENDED.to_owned(),
        Err(error) => texts::lost(&error),
    }
}

/// Takes the line of a ready server, and prints what it writes after that.
async fn listen(number: u64, output: ChildStdout, ready: watch::Sender<Option<Started>>) {
    let mut lines = Lines::of(output);
    while let Some(line) = lines.next().await {
        match serde_json::from_str(&line) {
            Ok(started) if ready.borrow().is_none() => {
                ready.send_replace(Some(started));
            }
            Ok(_) | Err(_) => say(Source::Server(number), &line),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_process_has_words() {
        let words = |raw| ended_in_words(Ok(ExitStatus::from_raw(raw)));
        assert_eq!(
            [words(0), words(1 << 8), words(9)],
            ["exited with 0", "exited with 1", "killed by signal 9"]
        );
        assert_eq!(ended_in_words(Err(std::io::Error::other("gone"))), "lost: gone");
    }
}
