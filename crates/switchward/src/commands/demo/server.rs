//! The demo's server: this program, as a separate process.

use anyhow::Context as _;
use serde::Deserialize;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader, Lines},
    process::{Child, ChildStdout, Command},
};

use crate::client::{Client, Target};
use crate::exit::Exit;
use crate::program::this_program;

/// How long a server may take to be ready.
const READY_MAX: Duration = Duration::from_secs(60);
/// How long one call may take.
const CALL_MAX: Duration = Duration::from_secs(30);

/// The pause before a killed server is looked for again, and how often it is.
const LOOK: Duration = Duration::from_millis(5);
const LOOKS: usize = 1_000;

/// A running server. Dropping it kills it.
pub(super) struct Server {
    process: Process,
    ready: Ready,
    /// Held open, so that the server never gets a broken pipe.
    _stdout: Lines<BufReader<ChildStdout>>,
}

/// A process that is killed when this is dropped, which waits for its end: what it still wrote would make its folder come back.
struct Process(Child);

/// What a development server prints when it is ready.
#[derive(Deserialize)]
struct Ready {
    address: String,
    agent_key: String,
    person_key: String,
}

/// The files of a server: its data, and what it writes beside it.
#[derive(Clone)]
pub(super) struct Files {
    data: PathBuf,
    contexts: PathBuf,
    log: PathBuf,
}

impl Files {
    /// The data in `data`, everything else in the scratch folder.
    pub(super) fn of(scratch: &Path, data: &Path) -> Self {
        let in_scratch = |name| scratch.join(name);
        Self { data: data.to_owned(), contexts: in_scratch("contexts"), log: in_scratch("server.log") }
    }
}

impl Server {
    /// Starts a server on a data folder, and waits until it is ready.
    pub(super) async fn start(files: &Files) -> anyhow::Result<Self> {
        let log = fs::File::options().create(true).append(true).open(&files.log);
        let child = Command::new(this_program()?)
            .args(["dev", "--port", "0", "--clock", "manual", "--output", "json"])
            .args(["--end-with-parent", "--data-dir"])
            .arg(&files.data)
            // The contexts of the user are left alone.
            .env("SWITCHWARD_CONTEXTS", &files.contexts)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log.with_context(|| format!("failed to write {}", files.log.display()))?)
            .spawn()
            .context("failed to start the server")?;
        let mut process = Process(child);
        let stdout = process.0.stdout.take().context("the server has no output")?;
        let mut lines = BufReader::new(stdout).lines();
        let line = tokio::time::timeout(READY_MAX, lines.next_line()).await;
        let line = line.context("the server was not ready in time")??.with_context(|| files.why_not())?;
        let ready =
            serde_json::from_str(&line).context("the server's first line is not the expected JSON")?;
        Ok(Self { process, ready, _stdout: lines })
    }

    /// Where it is.
    pub(super) fn address(&self) -> &str {
        &self.ready.address
    }

    /// A client that calls it as the agent.
    pub(super) async fn agent(&self) -> Result<Client, Exit> {
        self.client(&self.ready.agent_key).await
    }

    /// A client that calls it as the person.
    pub(super) async fn person(&self) -> Result<Client, Exit> {
        self.client(&self.ready.person_key).await
    }

    async fn client(&self, key: &str) -> Result<Client, Exit> {
        let target = Target { address: self.ready.address.clone(), key: key.to_owned(), ca: None };
        Client::connect(&target, CALL_MAX).await
    }

    /// Ends it as a power cut would end its process: with SIGKILL, in the middle of whatever it does.
    pub(super) async fn kill(&mut self) -> anyhow::Result<()> {
        self.process.0.kill().await.context("failed to kill the server")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // One that has ended needs no kill.
        let _ended = self.0.start_kill();
        for _ in 0..LOOKS {
            if !matches!(self.0.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(LOOK);
        }
    }
}

impl Files {
    /// What a server wrote that ended before it was ready.
    fn why_not(&self) -> anyhow::Error {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        anyhow::anyhow!("the server did not start: {}", log.trim())
    }
}
