//! An operator drains, uses again, replaces and removes servers while callers go on, with the commands of the program.

use serde_json::Value;
use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tonic::Status;

use super::servers::{Caller, Servers, can_be_repeated};

const DEPLOY_GATE: &str = include_str!("../../../../../tests/corpus/checkpoint/definitions/deploy-gate.json");
/// The longest wait for what the cluster does by itself.
const PATIENCE: Duration = Duration::from_secs(120);
/// How often the cluster is looked at meanwhile.
const LOOK: Duration = Duration::from_millis(500);
/// How long a caller rests after each answer.
const PAUSE: Duration = Duration::from_millis(20);
/// Groups of the cluster: the catalogue and two shards.
pub(super) const GROUPS: usize = 3;

/// What an operator watches of a server that leads one group of three, all lines of a name together: the least and the most.
const METRICS: [(&str, f64, f64); 9] = [
    ("switchward_replica_leads", 1.0, 1.0),
    ("switchward_replica_lag_entries", 0.0, 1_000.0),
    ("switchward_replica_silent_ms", 0.0, 10_000.0),
    ("switchward_replica_log_entries", 0.0, f64::MAX),
    ("switchward_shard_log_bytes", 0.0, f64::MAX),
    ("switchward_clock_offset_ms", -2_000.0, 2_000.0),
    ("switchward_disk_free_bytes", 1.0, f64::MAX),
    ("switchward_certificate_expire_seconds", 1.0, f64::MAX),
    ("switchward_feature_level", 1.0, f64::MAX),
];

/// A number of the API: 64 bits are texts in JSON, and 0 is left out.
fn number(value: &Value) -> u64 {
    value.as_str().and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// A server of the cluster.
pub(super) fn server(cluster: &Value, wanted: u64) -> Value {
    let servers = cluster["servers"].as_array().cloned().unwrap_or_default();
    servers.into_iter().find(|server| number(&server["number"]) == wanted).unwrap_or_default()
}

/// The groups that a server leads.
fn led(cluster: &Value, server: u64) -> Vec<u64> {
    let groups = cluster["groups"].as_array().cloned().unwrap_or_default();
    let led = groups.iter().filter(|group| number(&group["leader"]) == server);
    led.map(|group| number(&group["number"])).collect()
}

/// How many groups a server leads.
pub(super) fn leads(cluster: &Value, server: u64) -> usize {
    led(cluster, server).len()
}

/// The voters of each group.
pub(super) fn voters(cluster: &Value) -> Vec<Vec<u64>> {
    let groups = cluster["groups"].as_array().cloned().unwrap_or_default();
    let of = |group: &Value| {
        let replicas = group["replicas"].as_array().cloned().unwrap_or_default();
        let votes = replicas.iter().filter(|replica| replica["voter"] == true);
        let mut votes: Vec<u64> = votes.map(|replica| number(&replica["server"])).collect();
        votes.sort_unstable();
        votes
    };
    groups.iter().map(of).collect()
}

/// Waits until the cluster is as wanted, as this server sees it.
pub(super) async fn until(
    servers: &Servers,
    at: usize,
    what: &str,
    holds: impl Fn(&Value) -> bool,
) -> anyhow::Result<Value> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let seen = servers.status(at).await?;
        if holds(&seen) {
            return Ok(seen);
        }
        anyhow::ensure!(Instant::now() < deadline, "not so within {PATIENCE:?}: {what}: {seen}");
        sleep(LOOK).await;
    }
}

/// Returns true if each server and each replica is shown with what an operator watches.
fn shows_all(cluster: &Value) -> bool {
    let all = |list: &Value, names: &[&str]| {
        let shown = |one: &Value| names.iter().all(|name| one[*name].is_string());
        list.as_array().is_some_and(|list| list.len() == 3 && list.iter().all(shown))
    };
    let groups = cluster["groups"].as_array().cloned().unwrap_or_default();
    let of_replicas = ["lagEntries", "silentMs", "logBytes", "logEntries"];
    all(&cluster["servers"], &["diskFreeBytes", "clockOffsetMs", "certificateExpireTime"])
        && groups.iter().all(|group| all(&group["replicas"], &of_replicas))
}

/// The status says what an operator watches, and so do the metrics of each server.
async fn watched(servers: &Servers) -> anyhow::Result<()> {
    until(servers, 2, "the status shows all", shows_all).await?;
    let deadline = Instant::now() + PATIENCE;
    for number in 1..=3 {
        for (name, least, most) in METRICS {
            loop {
                let found = servers.metric(number, name).await;
                if found.as_ref().is_ok_and(|found| (least..=most).contains(found)) {
                    break;
                }
                anyhow::ensure!(Instant::now() < deadline, "server {number}: {name} is {found:?}");
                sleep(LOOK).await;
            }
        }
    }
    Ok(())
}

/// A command that must be refused, and with which reason.
async fn refused(servers: &Servers, at: usize, args: &[&str], reason: &str) -> anyhow::Result<()> {
    match servers.operate(at, &[args, &["-o", "json"]].concat()).await {
        Ok(out) => anyhow::bail!("{args:?} was accepted: {out}"),
        Err(error) => {
            let text = error.to_string();
            anyhow::ensure!(text.contains(reason), "{args:?}: {reason} is expected: {text}");
            Ok(())
        }
    }
}

/// A caller who starts one session after the other at some servers, until it is stopped.
pub(super) struct Calls {
    name: &'static str,
    stop: Arc<AtomicBool>,
    done: Arc<AtomicUsize>,
    task: JoinHandle<Result<Vec<String>, Status>>,
}

impl Calls {
    pub(super) fn begin(name: &'static str, callers: Vec<Caller>) -> Self {
        let (stop, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let (stopped, counted) = (Arc::clone(&stop), Arc::clone(&done));
        let task = tokio::spawn(async move {
            let mut keys = Vec::new();
            for (at, caller) in callers.iter().cycle().enumerate() {
                if stopped.load(Ordering::SeqCst) {
                    break;
                }
                let key = format!("{name}-{at}");
                insist(caller, &key).await?;
                keys.push(key);
                counted.fetch_add(1, Ordering::SeqCst);
                sleep(PAUSE).await;
            }
            Ok(keys)
        });
        Self { name, stop, done, task }
    }

    /// The sessions that have been acknowledged so far.
    pub(super) fn acknowledged(&self) -> Vec<String> {
        (0..self.done.load(Ordering::SeqCst)).map(|at| format!("{}-{at}", self.name)).collect()
    }

    /// Waits until the caller has been answered this often more.
    pub(super) async fn go_on(&self, more: usize) -> anyhow::Result<()> {
        let (wanted, deadline) = (self.done.load(Ordering::SeqCst) + more, Instant::now() + PATIENCE);
        while self.done.load(Ordering::SeqCst) < wanted {
            anyhow::ensure!(
                Instant::now() < deadline && !self.task.is_finished(),
                "the caller does not go on"
            );
            sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    pub(super) async fn end(self) -> anyhow::Result<Vec<String>> {
        self.stop.store(true, Ordering::SeqCst);
        Ok(self.task.await??)
    }
}

/// Starts a session; what is certain not to have happened, and what has the same request id, is sent again.
async fn insist(caller: &Caller, key: &str) -> Result<(), Status> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match caller.start("deploy-gate", key).await {
            Ok(_) => return Ok(()),
            Err(status) => {
                let again = can_be_repeated(&status);
                if !again || Instant::now() >= deadline {
                    return Err(status);
                }
                sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

/// Each session is at one of these servers.
pub(super) async fn all_there(servers: &Servers, at: &[usize], keys: &[String]) -> anyhow::Result<()> {
    for (key, at) in keys.iter().zip(at.iter().cycle()) {
        let session = servers.caller(*at)?.get(key).await?;
        assert!(session.name.contains("sessions/"), "{session:?}");
    }
    Ok(())
}

/// Drains server 1 under calls, transfers a leader, and uses server 1 again.
async fn drain_and_activate(servers: &Servers, calls: &Calls) -> anyhow::Result<()> {
    let printed = servers.operate(2, &["drain", "1", "--wait"]).await?;
    assert!(printed.contains("draining"), "{printed}");
    let seen = servers.status(3).await?;
    assert_eq!(leads(&seen, 1), 0, "{seen}");
    assert_eq!(server(&seen, 1)["state"], "CLUSTER_SERVER_STATE_DRAINING");
    calls.go_on(10).await?;
    refused(servers, 2, &["drain", "2"], "TOO_FEW_VOTERS").await?;
    refused(servers, 2, &["remove", "1", "--yes"], "SERVER_VOTES").await?;
    refused(servers, 2, &["transfer", "--from", "2", "--to", "2"], "FIELD_INVALID").await?;
    let (from, to) = if leads(&seen, 2) > 0 { ("2", "3") } else { ("3", "2") };
    refused(servers, 2, &["transfer", "--from", from, "--to", "1"], "SERVER_NOT_READY").await?;
    let moved = led(&seen, from.parse()?);
    assert!(!moved.is_empty(), "{seen}");
    servers.operate(2, &["transfer", "--from", from, "--to", to]).await?;
    // A moved group stays for a while: leaders are spread only when it has been stable.
    let to: u64 = to.parse()?;
    let has_moved = |seen: &Value| moved.iter().all(|group| led(seen, to).contains(group));
    until(servers, 2, "the groups have moved", has_moved).await?;
    calls.go_on(10).await?;
    servers.operate(3, &["activate", "1"]).await?;
    let text = servers.operate(3, &["status"]).await?;
    assert!(text.contains("SERVER") && text.contains("LEARNERS"), "{text}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_drains_replaces_and_removes_servers_while_callers_go_on() -> anyhow::Result<()> {
    let mut servers = Servers::start_of(3, 5).await?;
    servers.insist(|caller| async move { caller.deploy(DEPLOY_GATE.to_owned()).await }).await?;
    until(&servers, 1, "all three vote", |seen| voters(seen) == vec![vec![1, 2, 3]; GROUPS]).await?;
    let seen =
        until(&servers, 2, "the leaders are spread", |seen| (1..=3).all(|number| leads(seen, number) == 1))
            .await?;
    for number in 1..=3 {
        let known = server(&seen, number);
        assert_eq!(known["reachable"], true, "{seen}");
        assert_eq!(known["version"], env!("CARGO_PKG_VERSION"));
    }
    watched(&servers).await?;
    let calls = Calls::begin("drained", vec![servers.caller(1)?, servers.caller(2)?, servers.caller(3)?]);
    drain_and_activate(&servers, &calls).await?;
    let mut keys = calls.end().await?;

    // Server 3 is lost with its disk.
    servers.kill(3).await?;
    let calls = Calls::begin("replaced", vec![servers.caller(1)?, servers.caller(2)?]);
    calls.go_on(10).await?;
    let seen =
        until(&servers, 1, "the groups have leaders", |seen| leads(seen, 1) + leads(seen, 2) == GROUPS)
            .await?;
    assert_ne!(server(&seen, 3)["reachable"], true, "{seen}");
    refused(&servers, 1, &["drain", "2"], "TOO_FEW_VOTERS").await?;
    // It cannot change the number of groups.
    servers.configure(4, &[("shards = 2", "shards = 5")])?;
    servers.join(4).await?;
    let deadline = Instant::now() + PATIENCE;
    // It counts as lost after ten seconds, and server 4 needs all entries.
    while let Err(error) = servers.operate(1, &["replace", "3", "--by", "4", "--yes", "--wait"]).await {
        let text = error.to_string();
        let early = ["SERVER_NOT_LOST", "SERVER_NOT_READY", "SHARD_ELECTING"];
        anyhow::ensure!(early.iter().any(|reason| text.contains(reason)), "{text}");
        anyhow::ensure!(Instant::now() < deadline, "{text}");
        sleep(LOOK).await;
    }
    until(&servers, 4, "server 3 is removed", |seen| {
        voters(seen) == vec![vec![1, 2, 4]; GROUPS]
            && server(seen, 3)["state"] == "CLUSTER_SERVER_STATE_REMOVED"
            && number(&server(seen, 3)["replacedBy"]) == 4
    })
    .await?;
    calls.go_on(10).await?;
    keys.extend(calls.end().await?);

    // A fourth server gets its share of the seats, gives them back, and can be removed.
    servers.join(5).await?;
    until(&servers, 1, "server 5 has seats", |seen| {
        let has_seat = |group: &&Vec<u64>| group.contains(&5);
        voters(seen).iter().filter(has_seat).count() >= 2 && voters(seen).iter().all(|group| group.len() == 3)
    })
    .await?;
    refused(&servers, 1, &["remove", "5", "--yes"], "SERVER_VOTES").await?;
    servers.operate(1, &["drain", "5", "--wait"]).await?;
    until(&servers, 1, "server 5 has no seats", |seen| voters(seen) == vec![vec![1, 2, 4]; GROUPS]).await?;
    servers.operate(1, &["remove", "5", "--yes"]).await?;
    refused(&servers, 1, &["activate", "5"], "STATE_MISMATCH").await?;
    until(&servers, 2, "server 5 is removed", |seen| {
        voters(seen) == vec![vec![1, 2, 4]; GROUPS]
            && server(seen, 5)["state"] == "CLUSTER_SERVER_STATE_REMOVED"
    })
    .await?;
    all_there(&servers, &[1, 2, 4], &keys).await?;
    for number in [1, 2, 4] {
        servers.stop(number).await?;
    }
    Ok(())
}
