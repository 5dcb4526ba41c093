//! Delivery processes beside servers that deliver nothing themselves: what sessions send goes out through them alone.

use anyhow::{Context as _, ensure};
use serde_json::json;
use std::collections::BTreeMap;
use std::fs::File;
use std::process::Stdio;
use switchward_testkit::{free_port, until};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::servers::{STOP_MAX, Servers};
use crate::receiver::{Manner, Outcome, Receiver};
use crate::site::Redis;

/// Servers of the cluster.
const COUNT: usize = 3;
/// Sessions of each kind in one round.
const ROUND: usize = 10;

/// A delivery process.
pub(super) struct Delivery {
    process: Child,
    log: String,
}

impl Delivery {
    /// Makes its certificate and its configuration, and starts it. It may send to this receiver.
    async fn start(
        servers: &Servers,
        redis: &Redis,
        receiver: &Receiver,
        name: &str,
    ) -> anyhow::Result<Self> {
        Self::start_with(servers, redis, receiver, name, "").await
    }

    /// The same with further tables in its configuration.
    pub(super) async fn start_with(
        servers: &Servers,
        redis: &Redis,
        receiver: &Receiver,
        name: &str,
        tables: &str,
    ) -> anyhow::Result<Self> {
        servers.program(&["cluster", "certs", "--dir", &servers.path("certs"), "--delivery", name]).await?;
        let more = format!(
            "[redis]\nurl = {:?}\n[delivery]\nallow_http = true\nallow_loopback = true\nports = [{}]\n{tables}",
            redis.url(),
            receiver.port
        );
        let file = configuration(servers, name, "[\"delivery\"]", &more)?;
        let log = servers.path(&format!("{name}.log"));
        let mut command = Servers::command();
        command.args(["server", "--config", &file, "-o", "json"]);
        command.stdout(Stdio::null()).stderr(File::create(&log)?);
        Ok(Self { process: command.spawn()?, log })
    }

    fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Sends it a signal.
    async fn signal(&self, name: &str) -> anyhow::Result<()> {
        let id = self.process.id().context("it runs")?.to_string();
        let sent = Command::new("kill").args([&format!("-{name}"), &id]).status().await?;
        ensure!(sent.success(), "SIG{name} could not be sent");
        Ok(())
    }

    /// Sends it SIGHUP, and waits until it has read its certificates again.
    async fn hang_up(&self) -> anyhow::Result<()> {
        until("it delivers", async || self.said().contains("delivering")).await;
        self.signal("HUP").await?;
        until("it has read them", async || self.said().contains("reloaded the certificates")).await;
        Ok(())
    }

    /// Ends it by SIGTERM, and waits until it has ended.
    pub(super) async fn stop(mut self) -> anyhow::Result<()> {
        self.signal("TERM").await?;
        let ended = timeout(STOP_MAX, self.process.wait()).await.context("it does not end")??;
        ensure!(ended.success(), "the delivery process ended with {ended}: {}", self.said());
        Ok(())
    }
}

/// Writes the configuration of a process without data that has the certificate of the delivery process `name`.
pub(super) fn configuration(
    servers: &Servers,
    name: &str,
    roles: &str,
    more: &str,
) -> anyhow::Result<String> {
    let file = servers.path(&format!("{name}.toml"));
    let text = format!(
        "listen = \"127.0.0.1:{listen}\"\n[metrics]\nlisten = \"127.0.0.1:{metrics}\"\n\
         [cluster]\nroles = {roles}\nca_file = {ca:?}\ncert_file = {cert:?}\nkey_file = {key:?}\npeers = [{peers}]\n{more}",
        listen = free_port(),
        metrics = free_port(),
        ca = servers.path("certs/ca.crt"),
        cert = servers.path(&format!("certs/delivery-{name}.crt")),
        key = servers.path(&format!("certs/delivery-{name}.key")),
        peers = servers.peers(),
    );
    std::fs::write(&file, text)?;
    Ok(file)
}

/// One definition makes a request and waits for its answer, the other one sends a message.
fn definitions(url: &str) -> [String; 2] {
    let always = json!([{ "type": "always" }]);
    let asked = json!({ "type": "http_request", "config": {
        "method": "POST", "url": format!("{url}/order"), "body": {}, "into": "order" } });
    let said = json!({ "type": "send_notification", "config": {
        "channel": "webhook", "recipients": [format!("{url}/tell")], "body": "hello" } });
    [("order", asked), ("tell", said)].map(|(name, operation)| {
        json!({
            "name": name,
            "states": [
                { "name": "push", "type": "logic", "operations": [operation] }, { "name": "fine", "type": "conversation" } ],
            "transitions": [{ "from": "push", "to": "fine", "guards": always }],
        })
        .to_string()
    })
}

/// Starts sessions of both definitions.
async fn round(servers: &Servers, name: &str) -> anyhow::Result<()> {
    for number in 0..ROUND {
        for definition in ["order", "tell"] {
            let key = format!("{definition}-{name}-{number}");
            let start = |caller: super::servers::Caller| {
                let key = key.clone();
                async move { caller.start(definition, &key).await }
            };
            servers.insist(start).await?;
        }
    }
    Ok(())
}

/// How often each request or message was taken, by its path and idempotency key.
fn taken(receiver: &Receiver) -> BTreeMap<(String, String), usize> {
    let mut taken = BTreeMap::new();
    let attempts = receiver.attempts().into_iter().filter(|attempt| attempt.outcome == Outcome::Accepted);
    for attempt in attempts {
        *taken.entry((attempt.path, attempt.id)).or_default() += 1;
    }
    taken
}

/// Waits until the requests and messages of this many rounds have arrived.
async fn arrived(receiver: &Receiver, rounds: usize) {
    let all = 2 * rounds * ROUND;
    until("everything has arrived", async || taken(receiver).len() == all).await;
}

/// Of the servers, two answer clients, and one answers only what they pass on. None of them may send to this machine.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_are_done_by_delivery_processes_alone() -> anyhow::Result<()> {
    let (receiver, redis) = (Receiver::start(1, Manner::Good).await?, Redis::start().await?);
    let servers = Servers::prepare(COUNT).await?;
    let ring = servers.path("switchward-keys");
    servers.program(&["secrets", "create", &ring]).await?;
    for number in 1..=COUNT {
        let roles = if number == COUNT { "[\"engine\"]" } else { "[\"gateway\", \"engine\"]" };
        servers.configure(number, &[("[cluster]\n", &format!("[cluster]\nroles = {roles}\n"))])?;
        servers.configure(number, &[("[log]\n", &format!("[redis]\nurl = {:?}\n[log]\n", redis.url()))])?;
        servers.configure(number, &[("data_dir =", &format!("keys_file = {ring:?}\ndata_dir ="))])?;
    }
    let mut servers = servers.founded(COUNT).await?;
    ensure!(
        tokio::net::TcpStream::connect(("127.0.0.1", servers.public_port(COUNT))).await.is_err(),
        "a server without the role gateway has no port for clients"
    );
    for definition in definitions(&receiver.url()) {
        servers
            .insist(|caller| {
                let text = definition.clone();
                async move { caller.deploy(text).await }
            })
            .await?;
    }
    round(&servers, "early").await?;
    ensure!(receiver.count() == 0, "a server has delivered by itself");
    let start = |name| Delivery::start(&servers, &redis, &receiver, name);
    let (first, second) = (start("one").await?, start("two").await?);
    round(&servers, "both").await?;
    second.hang_up().await?;
    first.stop().await?;
    round(&servers, "second").await?;
    // What the killed server has leased and not put on the bus is published by the next leader, long before the lease ends.
    servers.kill(1).await?;
    arrived(&receiver, 3).await;
    round(&servers, "leaderless").await?;
    servers.run(1).await?;
    arrived(&receiver, 4).await;
    for name in ["early", "both", "second", "leaderless"] {
        for number in 0..ROUND {
            let key = format!("order-{name}-{number}");
            until("its answer has come", async || {
                let got = servers.insist(|caller| {
                    let key = key.clone();
                    async move { caller.get(&key).await }
                });
                got.await.is_ok_and(|session| session.at == ["fine"])
            })
            .await;
        }
    }
    pinged(&servers, &receiver).await?;
    refused(&servers).await?;
    let twice = taken(&receiver).into_iter().filter(|(_, count)| *count > 1).count();
    ensure!(twice == 0, "{twice} came twice");
    second.stop().await?;
    for number in 1..=COUNT {
        servers.stop(number).await?;
    }
    Ok(())
}

/// A single message to an endpoint goes out through the delivery process, and the caller gets the endpoint's answer.
async fn pinged(servers: &Servers, receiver: &Receiver) -> anyhow::Result<()> {
    let url = format!("{}/endpoint", receiver.url());
    servers.insist(|caller| caller.put_endpoint("ops", &url, "ping")).await?;
    let pinged = servers.insist(|caller| caller.ping("ops")).await?;
    ensure!((pinged.http_status, pinged.code.as_str()) == (200, ""), "{pinged:?}");
    let sent = taken(receiver).remove(&("/endpoint".to_owned(), pinged.message_id.clone()));
    ensure!(sent == Some(1), "{} came {sent:?} times", pinged.message_id);
    Ok(())
}

/// With the certificate of a delivery process nobody is a gateway, and no mail comes in at a delivery process.
async fn refused(servers: &Servers) -> anyhow::Result<()> {
    let file = configuration(servers, "two", "[\"gateway\"]", "")?;
    let refused = servers.program(&["server", "--config", &file]).await;
    let refused = refused.expect_err("a delivery process is no gateway").to_string();
    ensure!(refused.contains("is for delivery process two"), "{refused}");
    let more = "[redis]\nurl = \"redis://127.0.0.1:1\"\n[mail]\nfrom = \"a@acme.example\"\n\
                reply = \"r+{token}@acme.example\"\npages = \"https://acme.example\"\n\
                smtp = { host = \"smtp.acme.example\" }\nin = { lmtp = \"127.0.0.1:2400\" }\n";
    let file = configuration(servers, "two", "[\"delivery\"]", more)?;
    let refused = servers.program(&["server", "--config", &file]).await;
    let refused = refused.expect_err("mail comes in elsewhere").to_string();
    ensure!(refused.contains("mail.in: a delivery process receives no mail"), "{refused}");
    Ok(())
}
