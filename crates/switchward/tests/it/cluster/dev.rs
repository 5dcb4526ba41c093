//! `switchward dev --servers 3`: a cluster that goes on while its servers are killed, paused and cut off by commands.

use anyhow::{Context as _, ensure};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, ChildStdout, Command},
    time::{Instant, sleep, timeout},
};
use tonic::Status;

use super::servers::{Caller, can_be_repeated};

const PROGRAM: &str = env!("CARGO_BIN_EXE_switchward");
const DEPLOY_GATE: &str = include_str!("../../../../../tests/corpus/checkpoint/definitions/deploy-gate.json");
/// Servers of the cluster.
const COUNT: u64 = 3;
/// A start, a command or an end that takes longer has failed.
const STEP_MAX: Duration = Duration::from_secs(180);
/// How long a caller asks again.
const ANSWER_MAX: Duration = Duration::from_secs(60);
const AGAIN: Duration = Duration::from_millis(50);

/// A development cluster that is ready. Dropping it kills the process that has started the servers.
struct Dev {
    folder: TempDir,
    process: Child,
    _out: BufReader<ChildStdout>,
    addresses: Vec<String>,
    person: String,
}

impl Dev {
    async fn start() -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let mut command = program(folder.path());
        let servers = COUNT.to_string();
        command.args(["dev", "--servers", &servers, "--port", "0", "--clock", "manual", "-o", "json"]);
        command.arg("--data-dir").arg(folder.path().join("data"));
        let mut process = command.stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
        let mut out = BufReader::new(process.stdout.take().context("it has an output")?);
        let mut line = String::new();
        timeout(STEP_MAX, out.read_line(&mut line)).await.context("it does not get ready")??;
        let ready: Value = serde_json::from_str(&line).context("it ended before it was ready")?;
        let text = |value: &Value| value.as_str().map(str::to_owned).context("no text");
        let servers = ready["servers"].as_array().context("no servers")?;
        let addresses = servers.iter().map(|one| text(&one["address"])).collect::<Result<_, _>>()?;
        let person = text(&ready["person_key"])?;
        Ok(Self { folder, process, _out: out, addresses, person })
    }

    /// Runs `switchward dev` with these words, and returns its JSON.
    async fn dev(&self, words: &[&str]) -> anyhow::Result<Value> {
        let mut command = program(self.folder.path());
        let done = command.arg("dev").args(words).args(["-o", "json"]).output();
        let done = timeout(STEP_MAX, done).await.context("it does not end")??;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        ensure!(done.status.success(), "{words:?}: {}{}", text(&done.stdout), text(&done.stderr));
        Ok(serde_json::from_slice(&done.stdout)?)
    }

    fn caller(&self, server: u64) -> anyhow::Result<Caller> {
        let address = usize::try_from(server - 1).ok().and_then(|at| self.addresses.get(at));
        Caller::to(address.context("no such server")?, &self.person)
    }

    /// Calls a server again until it answers; what is not certain has a request id.
    async fn insist<T, F>(&self, server: u64, mut call: impl FnMut(Caller) -> F) -> anyhow::Result<T>
    where
        F: Future<Output = Result<T, Status>>,
    {
        let deadline = Instant::now() + ANSWER_MAX;
        loop {
            match call(self.caller(server)?).await {
                Ok(answer) => return Ok(answer),
                Err(status) => {
                    let again = can_be_repeated(&status);
                    ensure!(again && Instant::now() < deadline, "server {server} answered {status}");
                }
            }
            sleep(AGAIN).await;
        }
    }

    /// Starts a session at a server, and reads it there.
    async fn session(&self, server: u64, key: &'static str) -> anyhow::Result<()> {
        self.insist(server, |caller| async move { caller.start("deploy-gate", key).await }).await?;
        self.insist(server, |caller| async move { caller.get(key).await }).await.map(drop)
    }

    /// Waits until a server but this one leads the first group of sessions, as `asked` knows it. There is no server 0.
    async fn leader_but(&self, old: u64, asked: u64) -> anyhow::Result<u64> {
        let deadline = Instant::now() + ANSWER_MAX;
        loop {
            let known = self.insist(asked, |caller| async move { caller.leader_of(1).await }).await?;
            if let Some(leader) = known.filter(|leader| *leader != old) {
                return Ok(leader);
            }
            ensure!(Instant::now() < deadline, "no server leads but {old}");
            sleep(AGAIN).await;
        }
    }

    /// A column of the status, by server.
    async fn status(&self, column: &str) -> anyhow::Result<Vec<String>> {
        let status = self.dev(&["status"]).await?;
        let servers = status["servers"].as_array().context("no servers")?;
        Ok(servers.iter().map(|one| one[column].as_str().unwrap_or_default().to_owned()).collect())
    }

    /// The processes of the servers.
    async fn pids(&self) -> anyhow::Result<Vec<u64>> {
        let status = self.dev(&["status"]).await?;
        let servers = status["servers"].as_array().context("no servers")?;
        Ok(servers.iter().filter_map(|one| one["pid"].as_u64()).collect())
    }
}

/// The program with contexts of its own, without what the environment says.
fn program(folder: &Path) -> Command {
    let mut command = Command::new(PROGRAM);
    let set = std::env::vars_os().map(|(name, _)| name);
    for name in set.filter(|name| name.to_string_lossy().starts_with("SWITCHWARD_")) {
        command.env_remove(name);
    }
    command.env("SWITCHWARD_CONTEXTS", folder.join("contexts")).stdin(Stdio::null());
    command
}

/// Another server than this one.
fn other(than: u64) -> u64 {
    than % COUNT + 1
}

/// Waits until none of these processes exists.
async fn gone(pids: &[u64]) -> anyhow::Result<()> {
    let deadline = Instant::now() + ANSWER_MAX;
    let exists = |pid: &&u64| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // One that nobody has waited for yet has ended all the same.
        stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
    };
    while let Some(pid) = pids.iter().find(exists) {
        ensure!(Instant::now() < deadline, "the process {pid} lives on");
        sleep(AGAIN).await;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_development_cluster_goes_on_while_commands_kill_and_cut_off_its_servers() -> anyhow::Result<()> {
    let mut dev = Dev::start().await?;
    assert_eq!(dev.status("process").await?, ["running"; 3]);
    let redis = std::fs::metadata(dev.folder.path().join("data/redis/redis.sock"))?;
    assert_eq!(redis.permissions().mode() & 0o777, 0o600, "nobody else may connect to Redis");
    dev.insist(1, |caller| async move { caller.deploy(DEPLOY_GATE.to_owned()).await }).await?;
    dev.session(1, "begun").await?;
    killed(&dev).await?;
    cut_off(&dev).await?;
    paused(&dev).await?;
    advanced(&dev).await?;
    for key in ["begun", "killed", "cut-off", "paused"] {
        dev.insist(1, |caller| async move { caller.get(key).await }).await?;
    }
    let pids = dev.pids().await?;
    assert_eq!(pids.len(), 3);
    let id = dev.process.id().context("it runs")?.to_string();
    ensure!(Command::new("kill").args(["-TERM", &id]).status().await?.success(), "no signal");
    let ended = timeout(STEP_MAX, dev.process.wait()).await.context("it does not end")??;
    ensure!(ended.success(), "it ended with {ended}");
    gone(&pids).await
}

/// A leader is killed, the others go on, and it comes back.
async fn killed(dev: &Dev) -> anyhow::Result<()> {
    let leader = dev.leader_but(0, 1).await?;
    let number = leader.to_string();
    dev.dev(&["kill", &number]).await?;
    let processes = dev.status("process").await?;
    assert_eq!(processes[usize::try_from(leader - 1)?], "killed");
    dev.session(other(leader), "killed").await?;
    assert!(dev.dev(&["pause", &number]).await.is_err(), "it does not run");
    dev.dev(&["start", &number]).await?;
    assert_eq!(dev.status("process").await?, ["running"; 3]);
    dev.insist(leader, |caller| async move { caller.get("killed").await }).await.map(drop)
}

/// A leader is cut off, the others go on, and it follows when the links are open again.
async fn cut_off(dev: &Dev) -> anyhow::Result<()> {
    let leader = dev.leader_but(0, 1).await?;
    dev.dev(&["partition", &leader.to_string()]).await?;
    let links = dev.status("links").await?;
    assert!(links.iter().all(|link| link.contains("cut")), "{links:?}");
    dev.session(other(leader), "cut-off").await?;
    dev.leader_but(leader, other(leader)).await?;
    dev.dev(&["heal"]).await?;
    assert_eq!(dev.status("links").await?, ["open"; 3]);
    dev.insist(leader, |caller| async move { caller.get("cut-off").await }).await.map(drop)
}

/// A leader is paused, the others go on, and it resumes.
async fn paused(dev: &Dev) -> anyhow::Result<()> {
    let leader = dev.leader_but(0, 1).await?;
    let number = leader.to_string();
    dev.dev(&["pause", &number]).await?;
    assert_eq!(dev.status("process").await?[usize::try_from(leader - 1)?], "paused");
    dev.session(other(leader), "paused").await?;
    dev.dev(&["resume", &number]).await?;
    dev.insist(leader, |caller| async move { caller.get("paused").await }).await.map(drop)
}

/// All clocks move together. A command that moves one of them says so.
async fn advanced(dev: &Dev) -> anyhow::Result<()> {
    let mut one = program(dev.folder.path());
    one.args(["clock", "advance", "1s", "--context", "dev-2-person"]);
    let one = timeout(STEP_MAX, one.output()).await.context("it does not end")??;
    let warned = String::from_utf8_lossy(&one.stderr).into_owned();
    ensure!(one.status.success() && warned.contains("only the clock of server 2"), "{warned}");
    let before = dev.insist(1, |caller| async move { caller.seconds().await }).await?;
    dev.dev(&["advance", "1h"]).await?;
    let mut after = Vec::new();
    for server in 1..=COUNT {
        after.push(dev.insist(server, |caller| async move { caller.seconds().await }).await?);
    }
    let first = after[0];
    assert!(first >= before + 3_600 && after.iter().all(|time| *time == first), "{before}, {after:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_servers_end_with_the_process_that_has_started_them() -> anyhow::Result<()> {
    let mut dev = Dev::start().await?;
    dev.dev(&["pause", "2"]).await?;
    let pids = dev.pids().await?;
    assert_eq!(pids.len(), 3);
    dev.process.kill().await?;
    gone(&pids).await?;
    assert!(dev.dev(&["status"]).await.is_err(), "no cluster runs");
    Ok(())
}
