//! The demo's servers: `switchward dev --servers 3` as a separate process, with a process for each server.

use anyhow::Context as _;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde::Deserialize;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader, Lines},
    process::{Child, ChildStderr, ChildStdout, Command},
    task::JoinHandle,
    time::{sleep, timeout},
};

use crate::commands::dev::remote::RemoteCluster;
use crate::exit::Exit;
use crate::program::this_program;

/// Servers of the cluster.
pub(super) const COUNT: u64 = 3;
/// How long each server may take to be ready.
const READY_MAX: Duration = Duration::from_secs(120);
/// How long the servers may take to stop; then they are killed.
const STOP_MAX: Duration = Duration::from_secs(100);
/// How long a killed process may take to be gone.
const GONE_MAX: Duration = Duration::from_secs(10);
/// The pause before a process is looked for again.
const LOOK: Duration = Duration::from_millis(20);

/// The process that runs the servers. Dropping it kills it, and the servers end with it.
pub(super) struct Servers {
    child: Child,
    cluster: RemoteCluster,
    log: PathBuf,
    errors: Option<Lines<BufReader<ChildStderr>>>,
    output: Lines<BufReader<ChildStdout>>,
    /// Copies what the process logs.
    copying: Option<JoinHandle<()>>,
    /// The processes of the servers that were seen.
    pids: Vec<u32>,
}

/// What a development cluster prints when it is ready.
#[derive(Debug, Deserialize)]
pub(super) struct Ready {
    pub(super) agent_key: String,
    pub(super) person_key: String,
    /// By number, from 1.
    pub(super) servers: Vec<ReadyServer>,
}

/// What the cluster's ready line says about a server.
#[derive(Debug, Deserialize)]
pub(super) struct ReadyServer {
    pub(super) server: u64,
    pub(super) address: String,
}

impl Servers {
    /// Starts the process, with all its files in this folder.
    ///
    /// # Errors
    /// It cannot be started.
    pub(super) fn launch(scratch: &Path) -> anyhow::Result<Self> {
        let data = scratch.join("data");
        let mut child = Command::new(this_program()?)
            .args([
                "dev",
                "--servers",
                &COUNT.to_string(),
                "--port",
                "0",
                "--shards",
                "1",
                "--output",
                "json",
            ])
            .args(["--without-redis", "--end-with-parent", "--data-dir"])
            .arg(&data)
            // The contexts of the user are left alone.
            .env("SWITCHWARD_CONTEXTS", scratch.join("contexts"))
            .env_remove("CLICOLOR_FORCE")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-c is for this process, which then stops the servers.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .context("failed to start the servers")?;
        let output = BufReader::new(child.stdout.take().context("the servers have no output")?).lines();
        let errors = BufReader::new(child.stderr.take().context("the servers have no log")?).lines();
        Ok(Self {
            child,
            cluster: RemoteCluster::of(data),
            log: scratch.join("servers.log"),
            errors: Some(errors),
            output,
            copying: None,
            pids: Vec::new(),
        })
    }

    /// Waits until this server is ready. Servers become ready in the order of their numbers.
    ///
    /// # Errors
    /// The process ends before that, or the server takes too long.
    pub(super) async fn server_ready(&mut self, server: u64) -> anyhow::Result<()> {
        let wait = async {
            let errors = self.errors.as_mut().context("the log is copied already")?;
            while let Some(line) = errors.next_line().await? {
                append(&self.log, &line)?;
                if RemoteCluster::says_ready(&line, server) {
                    return anyhow::Ok(());
                }
            }
            let log = fs::read_to_string(&self.log).unwrap_or_default();
            anyhow::bail!("the servers did not start: {}", log.trim())
        };
        timeout(READY_MAX, wait).await.with_context(|| format!("server {server} was not ready in time"))?
    }

    /// Waits until the cluster is ready.
    ///
    /// # Errors
    /// The process ends before that, or takes too long.
    pub(super) async fn all_ready(&mut self) -> Result<Ready, Exit> {
        if let Some(errors) = self.errors.take() {
            self.copying = Some(tokio::spawn(copy(errors, self.log.clone())));
        }
        let line = timeout(READY_MAX, self.output.next_line()).await;
        let line = line.context("the cluster was not ready in time")?.context("the output is no text")?;
        let line = line.context("the servers ended before the cluster was ready")?;
        let ready = serde_json::from_str(&line).context("the cluster's line is not the expected JSON")?;
        self.note_pids().await?;
        Ok(ready)
    }

    /// Kills a server.
    ///
    /// # Errors
    /// It does not run.
    pub(super) async fn kill(&mut self, server: u64) -> Result<(), Exit> {
        self.cluster.kill(server).await
    }

    /// Starts a server again.
    ///
    /// # Errors
    /// It runs, or does not start.
    pub(super) async fn start(&mut self, server: u64) -> Result<(), Exit> {
        self.cluster.start(server).await?;
        self.note_pids().await
    }

    async fn note_pids(&mut self) -> Result<(), Exit> {
        let pids = self.cluster.pids().await?;
        self.pids.extend(pids);
        Ok(())
    }

    /// Stops all servers, and waits until their processes are gone.
    ///
    /// # Errors
    /// A process lives on.
    pub(super) async fn stop(&mut self) -> anyhow::Result<()> {
        // A process that has ended needs no signal.
        let _ended = self.child.id().and_then(pid).map(|pid| kill_process(pid, Signal::TERM));
        if timeout(STOP_MAX, self.child.wait()).await.is_err() {
            self.child.kill().await.context("failed to kill the servers")?;
        }
        if let Some(copying) = self.copying.take() {
            copying.abort();
        }
        let gone = async {
            while self.pids.iter().filter_map(|&one| pid(one)).any(|pid| test_kill_process(pid).is_ok()) {
                sleep(LOOK).await;
            }
        };
        timeout(GONE_MAX, gone).await.context("a server lives on")
    }
}

fn pid(number: u32) -> Option<Pid> {
    i32::try_from(number).ok().and_then(Pid::from_raw)
}

fn append(log: &Path, line: &str) -> anyhow::Result<()> {
    let mut file = fs::File::options().create(true).append(true).open(log)?;
    Ok(writeln!(file, "{line}")?)
}

/// Copies a log until its end, so that its writer never waits.
async fn copy(mut lines: Lines<BufReader<ChildStderr>>, log: PathBuf) {
    while let Ok(Some(line)) = lines.next_line().await {
        // A log that is incomplete is no error of the demo.
        let _lost = append(&log, &line);
    }
}
