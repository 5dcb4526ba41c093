//! A gateway before three servers: it holds nothing, and answers like any of them.

use anyhow::{Context as _, bail, ensure};
use std::fs::File;
use std::process::Stdio;
use std::time::Duration;
use switchward_api::v1;
use switchward_testkit::free_port;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout};
use tonic::{Code, Status, Streaming};

use super::servers::{Caller, STOP_MAX, Servers, can_be_repeated};

/// Servers of the cluster.
const COUNT: usize = 3;
/// Sessions of one round.
const ROUND: usize = 10;
/// The longest that a caller waits for an answer, all repetitions together.
const ANSWER_MAX: Duration = Duration::from_secs(60);
/// How long a caller waits before it asks again.
const AGAIN: Duration = Duration::from_millis(50);

const DEPLOY_GATE: &str = include_str!("../../../../../tests/corpus/checkpoint/definitions/deploy-gate.json");

/// A gateway as a process.
struct Gateway {
    process: Child,
    port: u16,
    log: String,
}

impl Gateway {
    /// Makes its certificate and its configuration, and starts it.
    async fn start(servers: &Servers) -> anyhow::Result<Self> {
        servers.program(&["cluster", "certs", "--dir", &servers.path("certs"), "--gateway", "edge"]).await?;
        let port = free_port();
        let file = servers.path("gateway.toml");
        let text = format!(
            "listen = \"127.0.0.1:{port}\"\n[metrics]\nlisten = \"127.0.0.1:{metrics}\"\n\
             [cluster]\nroles = [\"gateway\"]\nca_file = {ca:?}\ncert_file = {cert:?}\nkey_file = {key:?}\n\
             peers = [{peers}]\n",
            metrics = free_port(),
            ca = servers.path("certs/ca.crt"),
            cert = servers.path("certs/gateway-edge.crt"),
            key = servers.path("certs/gateway-edge.key"),
            peers = servers.peers(),
        );
        std::fs::write(&file, text)?;
        let log = servers.path("gateway.log");
        let mut command = Servers::command();
        command.args(["server", "--config", &file, "-o", "json"]);
        command.stdout(Stdio::null()).stderr(File::create(&log)?);
        Ok(Self { process: command.spawn()?, port, log })
    }

    fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Asks it until it answers, as the shipped client policy does; every call here has a request id, or only reads.
    async fn insist<T, F>(&self, mut call: impl FnMut(Caller) -> F) -> anyhow::Result<T>
    where
        F: Future<Output = Result<T, Status>>,
    {
        let deadline = Instant::now() + ANSWER_MAX;
        let caller = Servers::caller_at(self.port)?;
        loop {
            match call(caller.clone()).await {
                Ok(answer) => return Ok(answer),
                Err(status) => {
                    let again = can_be_repeated(&status);
                    ensure!(
                        again && Instant::now() < deadline,
                        "the gateway answered {status}: {}",
                        self.said()
                    );
                }
            }
            sleep(AGAIN).await;
        }
    }

    /// Starts sessions, and returns their keys.
    async fn round(&self, name: &str) -> anyhow::Result<Vec<String>> {
        let mut keys = Vec::new();
        for number in 0..ROUND {
            let key = format!("{name}-{number}");
            let wanted = key.clone();
            self.insist(move |caller| {
                let key = wanted.clone();
                async move { caller.start("deploy-gate", &key).await }
            })
            .await?;
            keys.push(key);
        }
        Ok(keys)
    }

    /// Ends it by SIGTERM, and waits until it has ended.
    async fn stop(mut self) -> anyhow::Result<()> {
        let id = self.process.id().context("it runs")?.to_string();
        ensure!(Command::new("kill").args(["-TERM", &id]).status().await?.success(), "SIGTERM is sent");
        let ended = timeout(STOP_MAX, self.process.wait()).await.context("it does not end")??;
        ensure!(ended.success(), "the gateway ended with {ended}: {}", self.said());
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_answers_while_servers_die_and_cannot_join() -> anyhow::Result<()> {
    let mut servers = Servers::start(COUNT).await?;
    let gateway = Gateway::start(&servers).await?;
    gateway.insist(|caller| async move { caller.deploy(DEPLOY_GATE.to_owned()).await }).await?;
    let mut keys = gateway.round("all").await?;
    for number in 1..=COUNT {
        servers.kill(number).await?;
        keys.extend(gateway.round(&format!("without-{number}")).await?);
        for key in &keys {
            let wanted = key.clone();
            let session = gateway.insist(move |caller| {
                let key = wanted.clone();
                async move { caller.get(&key).await }
            });
            assert!(session.await?.name.contains("sessions/"), "{key}");
        }
        servers.run(number).await?;
    }
    cannot_join(&servers).await?;
    stops_politely(gateway, &keys[0]).await?;
    for number in 1..=COUNT {
        servers.stop(number).await?;
    }
    Ok(())
}

/// A watch that is open when the gateway stops ends with a status by which its client goes on elsewhere.
async fn stops_politely(gateway: Gateway, key: &str) -> anyhow::Result<()> {
    let mut watch = gateway.insist(|caller| async move { caller.watch(key).await }).await?;
    ensure!(watch.message().await?.is_some(), "the session has events");
    let ((), end) = tokio::try_join!(gateway.stop(), end_of(watch))?;
    ensure!(end.code() == Code::Unavailable && end.message() == "the gateway is stopping", "{end}");
    Ok(())
}

/// The status with which a watch of an open session ends.
async fn end_of(mut watch: Streaming<v1::WatchSessionResponse>) -> anyhow::Result<Status> {
    loop {
        match watch.message().await {
            Ok(Some(_)) => {}
            Ok(None) => bail!("it ends as if the session had ended"),
            Err(status) => return Ok(status),
        }
    }
}

/// A server with the certificate of the gateway is refused before it says a word.
async fn cannot_join(servers: &Servers) -> anyhow::Result<()> {
    let file = servers.path("intruder.toml");
    let text = format!(
        "data_dir = {data:?}\n[cluster]\nserver = 4\nlisten = \"127.0.0.1:{port}\"\nca_file = {ca:?}\n\
         cert_file = {cert:?}\nkey_file = {key:?}\npeers = [{peers}]\n",
        data = servers.path("intruder"),
        port = free_port(),
        ca = servers.path("certs/ca.crt"),
        cert = servers.path("certs/gateway-edge.crt"),
        key = servers.path("certs/gateway-edge.key"),
        peers = servers.peers(),
    );
    std::fs::write(&file, text)?;
    let refused = servers.program(&["cluster", "join", "--config", &file]).await;
    let refused = refused.expect_err("a gateway is no server").to_string();
    ensure!(refused.contains("is for gateway"), "{refused}");
    Ok(())
}
