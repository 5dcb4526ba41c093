//! The cluster as processes that `switchward dev` has started, and the commands about it.

use anyhow::{Context as _, ensure};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::UnixStream,
    process::{Child, ChildStdout, Command},
    time::{sleep, timeout},
};

use super::disks::Disks;
use super::plan::{Power, SERVERS};
use crate::site::{Keeps, Redis};

const PROGRAM: &str = env!("CARGO_BIN_EXE_switchward");
/// A start or a command that takes longer has failed.
const STEP_MAX: Duration = Duration::from_secs(180);
/// How often the processes are looked at.
const LOOK: Duration = Duration::from_millis(100);
/// The most bytes of the logs that a failure shows.
const SAID_BYTES_MAX: usize = 20_000;
/// The files that hold the number of the process whose syncs do not return, and of that whose syncs fail.
const HOLD: &str = "hold";
const FAIL: &str = "fail";

/// A process of a server.
#[derive(Debug, Clone)]
pub(crate) struct ProcessStatus {
    /// Such as `running`, `starting` or `killed`.
    pub(crate) state: String,
    /// Its number, if it lives.
    pub(crate) pid: Option<u64>,
    /// The links that are not open; `open` if all are.
    pub(crate) links: String,
}

/// A cluster that runs. Dropping it kills the process that has started the servers, and they end with it.
pub(crate) struct Cluster {
    folder: TempDir,
    _process: Child,
    /// `None` if none can be mounted here. They are unmounted after the process was killed.
    pub(crate) disks: Option<Disks>,
    pub(crate) redis: tokio::sync::Mutex<Redis>,
    _out: BufReader<ChildStdout>,
    /// The addresses of the servers, in the order of their numbers.
    pub(crate) addresses: Vec<String>,
    /// The key of a person, who may do everything.
    pub(crate) person: String,
    /// The key of an agent.
    pub(crate) agent: String,
    /// The servers that callers call: those that were not killed, and are ready.
    live: Mutex<BTreeSet<u64>>,
}

impl Cluster {
    /// Starts three servers, each on a disk of its own, and their Redis.
    pub(crate) async fn start() -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        fs::write(folder.path().join("clock-offset"), "0")?;
        let library = sync_library(folder.path()).await?;
        let disks = Disks::mount(&folder.path().join("data"))?;
        let redis = Redis::that_keeps(Keeps::File).await?;
        let mut command = Command::new(PROGRAM);
        let set = std::env::vars_os().map(|(name, _)| name);
        for name in set.filter(|name| name.to_string_lossy().starts_with("SWITCHWARD_")) {
            command.env_remove(name);
        }
        command.env("SWITCHWARD_CONTEXTS", folder.path().join("contexts"));
        command.env("LD_PRELOAD", library).env("HOLD_SYNC_FILE", folder.path().join(HOLD));
        command.env("FAIL_SYNC_FILE", folder.path().join(FAIL));
        command.args(["dev", "--servers", "3", "--port", "0", "--shards", "2", "-o", "json"]);
        command.arg("--data-dir").arg(folder.path().join("data")).args(["--redis", &redis.url()]);
        command.arg("--clock-off").arg(folder.path().join("clock-offset"));
        let log = File::create(folder.path().join("log"))?;
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).kill_on_drop(true);
        let mut process = command.spawn()?;
        let mut out = BufReader::new(process.stdout.take().context("it has an output")?);
        let mut line = String::new();
        timeout(STEP_MAX, out.read_line(&mut line)).await.context("it does not get ready")??;
        let ready: Value = serde_json::from_str(&line).with_context(|| {
            let said = fs::read_to_string(folder.path().join("log")).unwrap_or_default();
            format!("it ended before it was ready: {said}")
        })?;
        let text = |value: &Value| value.as_str().map(str::to_owned).context("no text");
        let servers = ready["servers"].as_array().context("no servers")?;
        let addresses = servers.iter().map(|one| text(&one["address"])).collect::<Result<_, _>>()?;
        let (person, agent) = (text(&ready["person_key"])?, text(&ready["agent_key"])?);
        let live = Mutex::new(SERVERS.into());
        let redis = redis.into();
        Ok(Self { folder, _process: process, disks, redis, _out: out, addresses, person, agent, live })
    }

    /// Whether the power of servers can be cut.
    pub(crate) fn power(&self) -> Power {
        if self.disks.is_some() { Power::CanBeCut } else { Power::Stays }
    }

    /// The end of what the servers have logged.
    pub(crate) fn said(&self) -> String {
        let said = fs::read(self.folder.path().join("log")).unwrap_or_default();
        String::from_utf8_lossy(&said[said.len().saturating_sub(SAID_BYTES_MAX)..]).into_owned()
    }

    /// The length of the log of all servers, bytes.
    pub(crate) fn log_bytes(&self) -> anyhow::Result<usize> {
        Ok(usize::try_from(fs::metadata(self.folder.path().join("log"))?.len())?)
    }

    /// The line by which a server said why it ends, if it has since the log had this length.
    pub(crate) fn why_ended(&self, server: u64, log_bytes: usize) -> anyhow::Result<Option<String>> {
        let said = fs::read(self.folder.path().join("log"))?;
        let said = String::from_utf8_lossy(said.get(log_bytes..).unwrap_or_default());
        let of_server = format!("server {server} | switchward: ");
        Ok(said.lines().find_map(|line| line.strip_prefix(&of_server)).map(str::to_owned))
    }

    /// What a server has logged of a panic, if one panicked.
    pub(crate) fn panic(&self) -> anyhow::Result<Option<String>> {
        let said = fs::read(self.folder.path().join("log"))?;
        let said = String::from_utf8_lossy(&said);
        Ok(said.find("panicked").map(|at| said[at..].chars().take(SAID_BYTES_MAX).collect()))
    }

    /// Sends a request over the control channel, and returns the answer.
    async fn ask(&self, request: &Value) -> anyhow::Result<Value> {
        let asking = async {
            let mut stream = UnixStream::connect(self.folder.path().join("data/dev.sock")).await?;
            stream.write_all(format!("{request}\n").as_bytes()).await?;
            let mut line = String::new();
            BufReader::new(stream).read_line(&mut line).await?;
            anyhow::Ok(serde_json::from_str(&line)?)
        };
        timeout(STEP_MAX, asking).await.context("it does not answer")?
    }

    /// Sends a request that must be carried out.
    async fn act(&self, request: Value) -> anyhow::Result<()> {
        let answer = self.ask(&request).await?;
        ensure!(answer["answer"] == "done", "{request} was answered with {answer}");
        Ok(())
    }

    /// The process of a server.
    pub(crate) async fn status(&self, server: u64) -> anyhow::Result<ProcessStatus> {
        let answer = self.ask(&json!({ "command": "status" })).await?;
        let servers = answer["servers"].as_array().with_context(|| format!("no status: {answer}"))?;
        let one = servers.iter().find(|one| one["server"] == server).context("no such server")?;
        let text = |name: &str| one[name].as_str().unwrap_or_default().to_owned();
        Ok(ProcessStatus { state: text("process"), pid: one["pid"].as_u64(), links: text("links") })
    }

    /// Kills a server. Callers know of it, and call it no longer.
    pub(crate) async fn kill(&self, server: u64) -> anyhow::Result<()> {
        self.live.lock().remove(&server);
        self.act(json!({ "command": "kill", "server": server })).await
    }

    /// Callers call a server no longer that has ended by itself.
    pub(crate) fn forget(&self, server: u64) {
        self.live.lock().remove(&server);
    }

    /// Starts a server, and does not wait for it.
    pub(crate) async fn start_again(&self, server: u64) -> anyhow::Result<()> {
        self.act(json!({ "command": "start", "server": server, "at_once": true })).await
    }

    /// Pauses a server. Callers do not know of it.
    pub(crate) async fn pause(&self, server: u64) -> anyhow::Result<()> {
        self.act(json!({ "command": "pause", "server": server })).await
    }

    /// Continues a server.
    pub(crate) async fn resume(&self, server: u64) -> anyhow::Result<()> {
        self.act(json!({ "command": "resume", "server": server })).await
    }

    /// Cuts a server off from the others.
    pub(crate) async fn isolate(&self, server: u64) -> anyhow::Result<()> {
        self.act(json!({ "command": "partition", "server": server })).await
    }

    /// Sets the link that one server opens to another one.
    pub(crate) async fn link(&self, from: u64, to: u64, mode: &str) -> anyhow::Result<()> {
        self.act(json!({ "command": "link", "from": from, "to": to, "mode": mode })).await
    }

    /// Opens all links.
    pub(crate) async fn heal(&self) -> anyhow::Result<()> {
        self.act(json!({ "command": "heal", "server": null })).await
    }

    /// Sets the offset of the clock of all servers that are started from now on, milliseconds.
    pub(crate) fn set_clock_offset(&self, ms: i64) -> anyhow::Result<()> {
        self.replace("clock-offset", &ms.to_string())
    }

    /// Lets no sync of this process return.
    pub(crate) fn hold_syncs(&self, pid: u64) -> anyhow::Result<()> {
        self.replace(HOLD, &pid.to_string())
    }

    /// Lets all syncs return.
    pub(crate) fn release_syncs(&self) -> anyhow::Result<()> {
        Ok(fs::remove_file(self.folder.path().join(HOLD))?)
    }

    /// How many syncs of this process were held until now.
    pub(crate) fn held(&self, pid: u64) -> usize {
        self.noted(HOLD, pid)
    }

    /// Lets all syncs of this process fail.
    pub(crate) fn fail_syncs(&self, pid: u64) -> anyhow::Result<()> {
        self.replace(FAIL, &pid.to_string())
    }

    /// Lets no sync fail any longer.
    pub(crate) fn mend_syncs(&self) -> anyhow::Result<()> {
        Ok(fs::remove_file(self.folder.path().join(FAIL))?)
    }

    /// How many syncs of this process have failed until now.
    pub(crate) fn failed(&self, pid: u64) -> usize {
        self.noted(FAIL, pid)
    }

    /// How often the library has noted a sync of this process beside a file.
    fn noted(&self, file: &str, pid: u64) -> usize {
        let seen = fs::read_to_string(self.folder.path().join(format!("{file}.seen"))).unwrap_or_default();
        seen.lines().filter(|line| *line == pid.to_string()).count()
    }

    /// Replaces a file, so that nobody reads a part of it.
    fn replace(&self, name: &str, text: &str) -> anyhow::Result<()> {
        let new = self.folder.path().join("new");
        fs::write(&new, text)?;
        Ok(fs::rename(new, self.folder.path().join(name))?)
    }

    /// The servers that callers call now.
    pub(crate) fn live(&self) -> Vec<u64> {
        self.live.lock().iter().copied().collect()
    }

    /// Keeps the servers up to date that callers call. Never ends.
    pub(crate) async fn watch(&self) -> anyhow::Result<()> {
        loop {
            for server in SERVERS {
                if !self.live.lock().contains(&server) && self.status(server).await?.state == "running" {
                    self.live.lock().insert(server);
                }
            }
            sleep(LOOK).await;
        }
    }
}

/// Builds the library that holds syncs and lets them fail.
async fn sync_library(folder: &Path) -> anyhow::Result<PathBuf> {
    let library = folder.join("hold-sync.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/cluster_faults/hold-sync.c");
    let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
    let mut command = Command::new(compiler);
    command.args(["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-o"]).arg(&library).arg(source).arg("-ldl");
    let built = command.status().await.context("the faults of disks need a C compiler")?;
    ensure!(built.success(), "the library that holds syncs cannot be built");
    Ok(library)
}
