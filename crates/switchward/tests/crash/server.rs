//! The server as a process: started on a data folder, killed, started again.

use anyhow::{Context as _, bail};
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde::Deserialize;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader, Lines},
    process::{Child, ChildStdout, Command},
    time::timeout,
};

use crate::rng::setting;

/// A start that takes longer has failed.
const START_MAX: Duration = Duration::from_secs(120);

/// How servers are started here.
#[derive(Clone)]
pub(crate) struct Host {
    binary: PathBuf,
    data: PathBuf,
    scratch: PathBuf,
    args: Vec<String>,
    environment: Vec<(String, String)>,
    /// Whether a write beyond the file size limit is an error, instead of ending the process.
    survives_limits: bool,
    /// Whether nothing can be written to their standard error.
    silent: bool,
}

/// What a server prints when it is ready.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Ready {
    pub(crate) address: String,
    pub(crate) agent_key: String,
    pub(crate) person_key: String,
}

impl Host {
    /// Servers on the folder `data`, whose other files go to `scratch`.
    pub(crate) fn new(scratch: &Path, data: PathBuf) -> Self {
        let binary = setting("CRASH_SERVER", env!("CARGO_BIN_EXE_switchward").to_owned()).into();
        Self {
            binary,
            data,
            scratch: scratch.to_owned(),
            args: Vec::new(),
            environment: Vec::new(),
            survives_limits: false,
            silent: false,
        }
    }

    /// With more arguments of `dev`.
    pub(crate) fn with(mut self, args: &[&str]) -> Self {
        self.args.extend(args.iter().map(|arg| (*arg).to_owned()));
        self
    }

    /// Adds an environment variable.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The same on another data folder, with a copy of the key ring if there is one already.
    pub(crate) fn on(&self, data: PathBuf) -> anyhow::Result<Self> {
        let (ring, beside) = (self.data.with_extension("keys"), data.with_extension("keys"));
        if ring.exists() && !beside.exists() {
            std::fs::copy(&ring, &beside).with_context(|| format!("failed to copy {}", ring.display()))?;
            // A power cut may follow, and the test is not about a ring that is lost in it.
            File::open(&beside)?.sync_all()?;
            beside.parent().map(|folder| File::open(folder)?.sync_all()).transpose()?;
        }
        Ok(Self { data, ..self.clone() })
    }

    /// The same, whose servers see an error if [`Server::limit_files`] refuses a write.
    pub(crate) fn surviving_limits(&self) -> Self {
        Self { survives_limits: true, ..self.clone() }
    }

    /// The same, whose servers can say nothing: their standard error is on a disk that is full.
    pub(crate) fn silent(&self) -> Self {
        Self { silent: true, ..self.clone() }
    }

    /// The data folder.
    pub(crate) fn data(&self) -> &Path {
        &self.data
    }

    fn log_file(&self) -> PathBuf {
        self.scratch.join("server.log")
    }

    /// Begins to start a server. Dropped, it is killed.
    pub(crate) fn spawn(&self) -> anyhow::Result<Starting> {
        let log = if self.silent {
            File::options().write(true).open("/dev/full")?
        } else {
            File::options().create(true).append(true).open(self.log_file())?
        };
        let mut command = Command::new(if self.survives_limits { Path::new("sh") } else { &self.binary });
        if self.survives_limits {
            // Without the trap the kernel's signal would end the process before it sees the error.
            command.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""]).arg(&self.binary);
        }
        command.args(["dev", "--port", "0", "-o", "json", "--data-dir"]).arg(&self.data).args(&self.args);
        command.env("SWITCHWARD_CONTEXTS", self.scratch.join("contexts"));
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).kill_on_drop(true);
        let mut child =
            command.spawn().with_context(|| format!("failed to run {}", self.binary.display()))?;
        let out = child.stdout.take().context("the server has no output")?;
        Ok(Starting { begun: Instant::now(), child, out: BufReader::new(out).lines() })
    }

    /// Starts a server and waits until it is ready.
    pub(crate) async fn start(&self) -> anyhow::Result<Server> {
        match self.spawn()?.ready().await {
            Ok(server) => Ok(server),
            Err(error) => Err(error.context(format!("the servers said:\n{}", self.said()?))),
        }
    }

    /// All that the servers here have said on their standard error.
    pub(crate) fn said(&self) -> anyhow::Result<String> {
        match std::fs::read_to_string(self.log_file()) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
            said => Ok(said?),
        }
    }

    /// Fails if a server has ended by itself, without a kill.
    pub(crate) fn assert_sound(&self) -> anyhow::Result<()> {
        let said = self.said()?;
        for word in ["panicked", "switchward: ", "ERROR"] {
            anyhow::ensure!(!said.contains(word), "a server was in trouble:\n{said}");
        }
        if !said.is_empty() {
            eprintln!("the servers said:\n{said}");
        }
        Ok(())
    }
}

/// A process that is not ready yet.
pub(crate) struct Starting {
    begun: Instant,
    child: Child,
    out: Lines<BufReader<ChildStdout>>,
}

impl Starting {
    async fn line(&mut self) -> anyhow::Result<String> {
        match self.out.next_line().await? {
            Some(line) => Ok(line),
            None => bail!("the server ended with {} before it was ready", self.child.wait().await?),
        }
    }

    /// Waits for the line that says that it is ready.
    pub(crate) async fn ready(mut self) -> anyhow::Result<Server> {
        let line = timeout(START_MAX, self.line()).await.context("the server does not get ready")??;
        let ready = serde_json::from_str(&line).with_context(|| format!("the server said {line:?}"))?;
        let Self { begun, child, out } = self;
        Ok(Server { child, ready, took: begun.elapsed(), _out: out })
    }

    /// Kills it after this time, or as soon as it is ready. Returns whether it was.
    pub(crate) async fn killed_within(mut self, time: Duration) -> anyhow::Result<bool> {
        let ready = match timeout(time, self.line()).await {
            Ok(line) => line.map(|_| true)?,
            Err(_) => false,
        };
        self.child.kill().await?;
        Ok(ready)
    }
}

/// A process that serves; dropped, it is killed.
pub(crate) struct Server {
    child: Child,
    pub(crate) ready: Ready,
    /// How long it took to get ready.
    pub(crate) took: Duration,
    /// Kept open: a server that cannot print would have a reason to end.
    _out: Lines<BufReader<ChildStdout>>,
}

impl Server {
    /// Ends it by SIGKILL, and waits for its end.
    pub(crate) async fn kill(mut self) -> anyhow::Result<()> {
        self.child.start_kill().context("the server ended before it was killed")?;
        let status = self.child.wait().await?;
        anyhow::ensure!(status.code().is_none(), "the server ended by itself with {status}");
        Ok(())
    }

    /// Lets it write no file beyond this many bytes from now on: the kernel refuses a write that wants more.
    pub(crate) fn limit_files(&self, bytes: u64) -> anyhow::Result<()> {
        let id = self.child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let limit = Rlimit { current: Some(bytes), maximum: Some(bytes) };
        prlimit(id, Resource::Fsize, limit).context("the server's files cannot be limited")?;
        Ok(())
    }

    /// Waits until it ends by itself.
    pub(crate) async fn ended(mut self, within: Duration) -> anyhow::Result<ExitStatus> {
        let ended = timeout(within, self.child.wait()).await;
        Ok(ended.context("the server goes on")??)
    }
}
