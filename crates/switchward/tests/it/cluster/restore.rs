//! A cluster is backed up under load, and a new one is founded from the backup: what was open goes on there, nothing goes out
//! before it is released, and servers of the old cluster are refused.

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{Instant, sleep};

use super::operating::{Calls, GROUPS, all_there, until, voters};
use super::servers::{KEY, Servers};
use crate::receiver::{Manner, Receiver};

const DEPLOY_GATE: &str = include_str!("../../../../../tests/corpus/checkpoint/definitions/deploy-gate.json");
/// Servers of each cluster.
const COUNT: usize = 3;
/// The approver of the gate.
const LEAD: &str = "lead@example.com";
/// When the timer fires: after the backup, and soon after the restore.
const TIMER_SECONDS: f64 = 40.0;
/// The longest wait for what a cluster does by itself.
const PATIENCE: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_millis(250);
/// The sessions that are open when the backup is taken: at a gate, at a timer, with an effect in the outbox.
const ASKED: &str = "asked-1";
const RESTING: &str = "resting-1";
const ORDERED: &str = "ordered-1";

/// Three definitions: one asks, one waits, one sends a webhook at once.
fn definitions(url: &str) -> [Value; 3] {
    let talk = |name: &str| json!({ "name": name, "type": "conversation" });
    [
        json!({ "name": "asks",
            "states": [{ "name": "decide", "type": "approval", "approvers": [LEAD] }, talk("fine"), talk("stop")],
            "transitions": [
                { "from": "decide", "port": "approved", "to": "fine" },
                { "from": "decide", "port": "rejected", "to": "stop" }] }),
        json!({ "name": "rests",
            "states": [
                { "name": "rest", "type": "wait", "wait_for": "timer", "timeout_hours": TIMER_SECONDS / 3_600.0 },
                talk("woken")],
            "transitions": [{ "from": "rest", "port": "received", "to": "woken" }] }),
        json!({ "name": "orders",
            "states": [
                { "name": "say", "type": "output", "target": "webhook", "template": "ordered",
                  "recipients": [format!("{url}/order")] },
                talk("sent")],
            "transitions": [{ "from": "say", "port": "done", "to": "sent" }] }),
    ]
}

/// Lets the servers reach the receiver, or disables what they deliver.
fn deliver(servers: &Servers, receiver: &Receiver, enabled: bool) -> anyhow::Result<()> {
    for number in 1..=COUNT {
        let file = servers.config(number);
        let config = std::fs::read_to_string(&file)?;
        let delivery = format!(
            "[delivery]\nenabled = {enabled}\nallow_http = true\nallow_loopback = true\nports = [{}]\n",
            receiver.port
        );
        std::fs::write(file, format!("{config}{delivery}"))?;
    }
    Ok(())
}

/// The states that a session is at.
async fn at(servers: &Servers, server: usize, key: &str) -> anyhow::Result<Vec<String>> {
    Ok(servers.caller(server)?.get(key).await?.at)
}

/// Waits until a session is at a state.
async fn arrives(servers: &Servers, key: &'static str, state: &str) -> anyhow::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let seen = servers.insist(|caller| async move { caller.get(key).await }).await?.at;
        if seen == [state] {
            return Ok(());
        }
        ensure!(Instant::now() < deadline, "{key} is at {seen:?}, not at {state}");
        sleep(LOOK).await;
    }
}

/// A cluster with open sessions, from which a backup was taken under load. Returns the sessions that were acknowledged before.
async fn backed_up(servers: &Servers, receiver: &Receiver) -> anyhow::Result<Vec<String>> {
    servers.insist(|caller| async move { caller.deploy(DEPLOY_GATE.to_owned()).await }).await?;
    for definition in definitions(&receiver.url()) {
        let text = &definition.to_string();
        servers.insist(|caller| async move { caller.deploy(text.clone()).await }).await?;
    }
    let first = Calls::begin("before", vec![servers.caller(1)?, servers.caller(2)?, servers.caller(3)?]);
    first.go_on(30).await?;
    let mut before = first.end().await?;
    for (definition, key) in [("asks", ASKED), ("rests", RESTING), ("orders", ORDERED)] {
        servers.insist(|caller| async move { caller.start(definition, key).await }).await?;
    }
    let load = Calls::begin("load", vec![servers.caller(1)?, servers.caller(2)?, servers.caller(3)?]);
    load.go_on(10).await?;
    before.extend(load.acknowledged());
    let config = servers.config(2);
    servers.program(&["backup", &servers.path("backup"), "--config", &config]).await?;
    // The load was not refused, and the timer did not fire before the backup.
    load.go_on(10).await?;
    load.end().await?;
    ensure!(at(servers, 2, RESTING).await? == ["rest"], "the timer fired before the backup was taken");
    servers.program(&["backup", "verify", &servers.path("backup")]).await?;
    Ok(before)
}

/// The folder of a stopped server may lack what the others have acknowledged: it is not backed up.
async fn refused_when_stopped(servers: &Servers, number: usize) -> anyhow::Result<()> {
    let (to, config) = (servers.path("stopped"), servers.config(number));
    let refused = servers.program(&["backup", &to, "--config", &config]).await;
    let refused = refused.err().context("a stopped server of a cluster is not backed up")?.to_string();
    let named = format!("belongs to server {number} of cluster ");
    for part in
        [named.as_str(), "may lack steps that were acknowledged", "on a server of the cluster that runs"]
    {
        ensure!(refused.contains(part), "{part}: {refused}");
    }
    Ok(())
}

/// Restores the backup of three servers into the folder of server 1, which is a server alone for that. It has these sessions
/// then, and is stopped.
async fn restored(servers: &mut Servers, backup: &str, before: &[String]) -> anyhow::Result<()> {
    let (config, alone) = (std::fs::read_to_string(servers.config(1))?, servers.path("alone.toml"));
    let (own, cluster) = config.split_once("[cluster]").context("it is a server of a cluster")?;
    let delivery = cluster.find("[delivery]").map_or("", |begins| &cluster[begins..]);
    std::fs::write(&alone, format!("{own}{delivery}"))?;
    let in_cluster = servers.config(1);
    let refused = servers.program(&["server", "--config", &in_cluster, "--restore", backup]).await;
    let refused = refused.err().context("a backup is restored into a server alone")?.to_string();
    ensure!(refused.contains("restored into a server alone"), "{refused}");
    servers.begin_with(1, &["--config", &alone, "--restore", backup])?;
    servers.ready(1).await?;
    all_there(servers, &[1], before).await?;
    servers.stop(1).await
}

/// What a restored folder cannot be: a server of the cluster that was backed up.
async fn stays_apart(servers: &Servers, old: &Servers) -> anyhow::Result<()> {
    let config = std::fs::read_to_string(servers.config(1))?;
    let [new_certs, old_certs] = [servers, old].map(|servers| servers.path("certs"));
    let file = servers.path("old-certificates.toml");
    std::fs::write(&file, config.replace(&new_certs, &old_certs))?;
    let refused = servers.program(&["cluster", "init", "--config", &file]).await;
    let refused = refused.err().context("the id of the old cluster is not used again")?.to_string();
    ensure!(refused.contains("a restored cluster needs a new id"), "{refused}");
    Ok(())
}

/// Waits until a server has logged this.
async fn logs(servers: &Servers, number: usize, line: &str) -> anyhow::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while !servers.said(number).lines().any(|logged| logged.contains(line)) {
        ensure!(Instant::now() < deadline, "server {number} does not log {line:?}: {}", servers.said(number));
        sleep(LOOK).await;
    }
    Ok(())
}

/// Nothing goes out until one command releases the effects of all tenants.
async fn held_until_released(servers: &Servers, receiver: &Receiver) -> anyhow::Result<()> {
    let seen = until(servers, 2, "the effects are held", |seen| seen["effectsHeldTenants"] == 1).await?;
    ensure!(receiver.count() == 0, "something went out: {:?}, {seen}", receiver.attempts());
    let text = servers.operate(3, &["status"]).await?;
    ensure!(text.contains("effects_held  1 tenant"), "{text}");
    let listed = servers.client(2, KEY, &["list", "effects", "-o", "json"]).await?;
    let listed: Value = serde_json::from_str(&listed)?;
    let webhooks = listed["effects"].as_array().into_iter().flatten();
    ensure!(webhooks.filter(|effect| effect["kind"] == "webhook").count() == 1, "{listed}");
    let release = ["effect", "release", "--all-tenants"];
    servers.client(3, KEY, &release).await?;
    let deadline = Instant::now() + PATIENCE;
    while receiver.count() == 0 {
        ensure!(Instant::now() < deadline, "what was released does not go out");
        sleep(LOOK).await;
    }
    servers.client(1, KEY, &release).await.context("nothing is held any more")?;
    until(servers, 1, "nothing is held", |seen| seen["effectsHeldTenants"].is_null()).await.map(drop)
}

/// The doctor of server 1 finds that the servers have in common what they must.
async fn healthy(servers: &Servers) -> anyhow::Result<()> {
    let done =
        Servers::command().args(["doctor", "--config", &servers.config(1), "-o", "json"]).output().await?;
    // What it finds about this machine makes no difference here.
    let report: Value = serde_json::from_slice(&done.stdout)?;
    let checks = report["checks"].as_array().context("its checks")?;
    for name in ["cluster", "peers", "clocks", "levels", "certificates", "rings", "shared-redis"] {
        let found: Vec<&Value> = checks.iter().filter(|check| check["check"] == name).collect();
        ensure!(matches!(found[..], [one] if one["status"] == "ok"), "{name}: {found:?}");
    }
    let peers = checks.iter().find(|check| check["check"] == "peers").context("the peers")?;
    ensure!(peers["message"].as_str().is_some_and(|said| said.contains("2, 3")), "{peers}");
    Ok(())
}

/// The gate is decided and the timer fires.
async fn goes_on(servers: &Servers) -> anyhow::Result<()> {
    let key = ["keys", "create", "approver", "--subject", LEAD, "-o", "json"];
    let key: Value = serde_json::from_str(&servers.client(1, KEY, &key).await?)?;
    let key = key["secret"].as_str().context("a key")?.to_owned();
    let gates: Value =
        serde_json::from_str(&servers.client(2, KEY, &["list", "gates", "-o", "json"]).await?)?;
    let gate = gates["gates"][0]["name"].as_str().context("an open gate")?.to_owned();
    servers.client(3, &key, &["decide", &gate, "approve"]).await?;
    arrives(servers, ASKED, "fine").await?;
    arrives(servers, RESTING, "woken").await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_is_restored_as_a_new_one_that_the_old_one_cannot_reach() -> anyhow::Result<()> {
    let receiver = Receiver::start(1, Manner::Good).await?;
    let (mut old, mut new) = (Servers::prepare(COUNT).await?, Servers::prepare(COUNT).await?);
    // The old cluster does not deliver, so that the effect is pending in the backup.
    deliver(&old, &receiver, false)?;
    deliver(&new, &receiver, true)?;
    old = old.founded(COUNT).await?;
    let before = backed_up(&old, &receiver).await?;
    let was = old.status(1).await?["clusterId"].clone();
    old.kill(1).await?;
    refused_when_stopped(&old, 1).await?;

    restored(&mut new, &old.path("backup"), &before).await?;
    stays_apart(&new, &old).await?;
    new = new.founded(COUNT).await?;
    until(&new, 1, "all three vote", |seen| voters(seen) == vec![vec![1, 2, 3]; GROUPS]).await?;
    let is = new.status(2).await?["clusterId"].clone();
    ensure!(was.is_string() && is.is_string() && was != is, "a new cluster has a new id: {was}, {is}");
    all_there(&new, &[1, 2, 3], &before).await?;
    ensure!(at(&new, 2, ASKED).await? == ["decide"], "the gate is open");

    // An operator mixes them up: a server of the old cluster dials one of the new cluster.
    let (was, is) = (was.as_str().context("an id")?, is.as_str().context("an id")?);
    old.reach(1, new.peer_port(1))?;
    old.stop(3).await?;
    old.begin(3)?;
    let line = format!("server 1 belongs to another cluster: its certificate is of the cluster {is}");
    logs(&old, 3, &line).await?;
    logs(&old, 3, &format!("and this server belongs to {was}")).await?;
    logs(&new, 1, "the other side belongs to another cluster").await?;

    healthy(&new).await?;
    held_until_released(&new, &receiver).await?;
    goes_on(&new).await?;
    let calls = Calls::begin("after", vec![new.caller(1)?, new.caller(2)?, new.caller(3)?]);
    calls.go_on(10).await?;
    let after = calls.end().await?;
    all_there(&new, &[3, 1, 2], &after).await?;
    for number in 1..=COUNT {
        new.stop(number).await?;
    }
    Ok(())
}
