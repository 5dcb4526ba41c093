//! The servers of a cluster as processes of the test, and a caller's way to each.

use anyhow::{Context as _, ensure};
use serde_json::Value;
use std::fs::File;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;
use switchward_api::v1::{
    self, clock_service_client::ClockServiceClient, cluster_service_client::ClusterServiceClient,
    definition_service_client::DefinitionServiceClient, effect_service_client::EffectServiceClient,
    session_service_client::SessionServiceClient,
    webhook_endpoint_service_client::WebhookEndpointServiceClient,
};
use switchward_testkit::{Pages, free_port};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, ChildStdout, Command},
    time::{Instant, sleep, timeout},
};
use tonic::{
    Code, Request, Status, Streaming,
    metadata::{Ascii, MetadataValue},
    transport::{Channel, Endpoint},
};

use crate::site::metric_at;

/// The tenant's first key.
pub(crate) const KEY: &str =
    "swk_0000000000000001_0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
/// A start that takes longer has failed.
const START_MAX: Duration = Duration::from_secs(60);
/// A process that has got SIGTERM must have ended after this time, whatever its role is.
pub(crate) const STOP_MAX: Duration = Duration::from_secs(20);
/// The longest that a caller waits for an answer, all repetitions together.
const ANSWER_MAX: Duration = Duration::from_secs(60);
/// How long a caller waits before it asks again.
const AGAIN: Duration = Duration::from_millis(50);
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_switchward");

/// The ports of one server.
struct Ports {
    public: u16,
    peers: u16,
    metrics: u16,
}

/// The folders of a cluster's servers, and those that run.
pub(crate) struct Servers {
    folder: TempDir,
    /// The program that runs from now on.
    program: String,
    ports: Vec<Ports>,
    running: Vec<Option<Running>>,
}

struct Running {
    process: Child,
    out: BufReader<ChildStdout>,
}

impl Servers {
    /// Makes the certificates and configurations of this many servers; none runs.
    pub(crate) async fn prepare(count: usize) -> anyhow::Result<Self> {
        Self::prepare_with(PROGRAM, count).await
    }

    /// The same with another build of the program.
    async fn prepare_with(program: &str, count: usize) -> anyhow::Result<Self> {
        let ports = || Ports { public: free_port(), peers: free_port(), metrics: free_port() };
        let servers = Self {
            folder: tempfile::tempdir()?,
            program: program.to_owned(),
            ports: (0..count).map(|_| ports()).collect(),
            running: (0..count).map(|_| None).collect(),
        };
        let certs = servers.path("certs");
        servers.program(&["cluster", "certs", "--dir", &certs, "--servers", &count.to_string()]).await?;
        switchward_store::write_secret(&PathBuf::from(servers.path("admin.key")), KEY.as_bytes())?;
        for number in 1..=count {
            std::fs::write(servers.config(number), servers.configuration(number))?;
        }
        Ok(servers)
    }

    /// The first server runs, and the others have joined it.
    pub(crate) async fn start(count: usize) -> anyhow::Result<Self> {
        Self::start_of(count, count).await
    }

    /// The same with the first `count` of `prepared` servers.
    pub(crate) async fn start_of(count: usize, prepared: usize) -> anyhow::Result<Self> {
        Self::prepare(prepared).await?.founded(count).await
    }

    /// The same with another build of the program.
    pub(crate) async fn start_with(program: &str, count: usize) -> anyhow::Result<Self> {
        Self::prepare_with(program, count).await?.founded(count).await
    }

    /// Runs another build of the program from now on. Servers that run stay as they are.
    pub(crate) fn use_program(&mut self, program: &str) {
        program.clone_into(&mut self.program);
    }

    /// The first `count` servers run: the first one has founded the cluster, and the others have joined it.
    pub(crate) async fn founded(self, count: usize) -> anyhow::Result<Self> {
        let mut servers = self;
        servers.program(&["cluster", "init", "--config", &servers.config(1)]).await?;
        servers.run(1).await?;
        for number in 2..=count {
            servers.join(number).await?;
        }
        Ok(servers)
    }

    /// A server joins the others.
    pub(crate) async fn join(&mut self, number: usize) -> anyhow::Result<()> {
        self.program(&["cluster", "join", "--config", &self.config(number)]).await?;
        self.run(number).await
    }

    /// Runs `switchward cluster` against a server.
    ///
    /// # Errors
    /// It fails: with what it has printed.
    pub(crate) async fn operate(&self, at: usize, args: &[&str]) -> anyhow::Result<String> {
        self.client(at, KEY, &[&["cluster"], args].concat()).await
    }

    /// Runs a command of the program against a server with this key.
    ///
    /// # Errors
    /// It fails: with what it has printed.
    pub(crate) async fn client(&self, at: usize, key: &str, args: &[&str]) -> anyhow::Result<String> {
        let address = format!("http://127.0.0.1:{}", self.ports[at - 1].public);
        let server = ["--address", &address, "--api-key", key, "--no-input"];
        self.program(&[args, &server].concat()).await
    }

    /// The cluster as a server sees it.
    pub(crate) async fn status(&self, at: usize) -> anyhow::Result<Value> {
        Ok(serde_json::from_str(&self.operate(at, &["status", "-o", "json"]).await?)?)
    }

    /// A file of the test.
    pub(crate) fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_string_lossy().into_owned()
    }

    /// The configuration file of a server.
    pub(crate) fn config(&self, number: usize) -> String {
        self.path(&format!("server-{number}.toml"))
    }

    /// Replaces parts of the configuration of a server, from its next start on.
    pub(crate) fn configure(&self, number: usize, parts: &[(&str, &str)]) -> anyhow::Result<()> {
        let mut text = std::fs::read_to_string(self.config(number))?;
        for (part, by) in parts {
            ensure!(text.contains(part), "the configuration has no {part:?}");
            text = text.replace(part, by);
        }
        Ok(std::fs::write(self.config(number), text)?)
    }

    /// What the metrics of a server say under this name.
    pub(crate) async fn metric(&self, number: usize, name: &str) -> anyhow::Result<f64> {
        metric_at(self.ports[number - 1].metrics, name).await
    }

    /// The port at which a server listens for clients.
    pub(crate) fn public_port(&self, number: usize) -> u16 {
        self.ports[number - 1].public
    }

    fn configuration(&self, number: usize) -> String {
        let ports = &self.ports[number - 1];
        let peers = self.ports.iter().zip(1..).filter(|(_, other)| *other != number);
        let peers: Vec<String> =
            peers.map(|(ports, other)| format!("\"{other}=127.0.0.1:{}\"", ports.peers)).collect();
        format!(
            "data_dir = {data:?}\nlisten = \"127.0.0.1:{public}\"\nshards = 2\n[log]\nlevel = \"info\"\n\
             [metrics]\nlisten = \"127.0.0.1:{metrics}\"\n\
             [[tenants]]\nname = \"acme\"\nadmin_key_file = {key:?}\n\
             [cluster]\nserver = {number}\nlisten = \"127.0.0.1:{own}\"\nca_file = {ca:?}\ncert_file = {cert:?}\n\
             key_file = {cert_key:?}\npeers = [{peers}]\n",
            data = self.path(&format!("data-{number}")),
            public = ports.public,
            metrics = ports.metrics,
            key = self.path("admin.key"),
            own = ports.peers,
            ca = self.path("certs/ca.crt"),
            cert = self.path(&format!("certs/server-{number}.crt")),
            cert_key = self.path(&format!("certs/server-{number}.key")),
            peers = peers.join(", "),
        )
    }

    /// The program, without settings of the environment.
    pub(crate) fn command() -> Command {
        Self::command_of(PROGRAM)
    }

    /// The same with another build of the program.
    fn command_of(program: &str) -> Command {
        let mut command = Command::new(program);
        let set = std::env::vars_os().map(|(name, _)| name);
        for name in set.filter(|name| name.to_string_lossy().starts_with("SWITCHWARD_")) {
            command.env_remove(name);
        }
        command.stdin(Stdio::null()).kill_on_drop(true);
        command
    }

    /// Runs a command of the program, and returns its output.
    ///
    /// # Errors
    /// It fails: with what it has printed.
    pub(crate) async fn program(&self, args: &[&str]) -> anyhow::Result<String> {
        let done = timeout(START_MAX, Self::command_of(&self.program).args(args).output())
            .await
            .context("it does not end")??;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        ensure!(done.status.success(), "{args:?} failed: {}{}", text(&done.stdout), text(&done.stderr));
        Ok(text(&done.stdout))
    }

    /// Starts a server and waits until it is ready.
    pub(crate) async fn run(&mut self, number: usize) -> anyhow::Result<()> {
        self.begin(number)?;
        self.ready(number).await
    }

    /// Starts a server.
    pub(crate) fn begin(&mut self, number: usize) -> anyhow::Result<()> {
        let config = self.config(number);
        self.begin_with(number, &["--config", &config])
    }

    /// Starts the program of a server with these arguments.
    pub(crate) fn begin_with(&mut self, number: usize, args: &[&str]) -> anyhow::Result<()> {
        let log = File::options().create(true).append(true).open(self.log(number))?;
        let mut command = Self::command_of(&self.program);
        command.args(["server", "-o", "json"]).args(args);
        command.stdout(Stdio::piped()).stderr(log);
        let mut process = command.spawn()?;
        let out = BufReader::new(process.stdout.take().context("it has an output")?);
        self.running[number - 1] = Some(Running { process, out });
        Ok(())
    }

    /// Waits until a server that was started is ready.
    pub(crate) async fn ready(&mut self, number: usize) -> anyhow::Result<()> {
        let out = &mut self.running[number - 1].as_mut().context("it runs")?.out;
        let mut line = String::new();
        let ready = timeout(START_MAX, out.read_line(&mut line)).await;
        ready.with_context(|| format!("server {number} does not get ready: {}", self.said(number)))??;
        ensure!(!line.is_empty(), "server {number} ended before it was ready: {}", self.said(number));
        Ok(())
    }

    fn log(&self, number: usize) -> String {
        self.path(&format!("server-{number}.log"))
    }

    /// What a server has logged.
    pub(crate) fn said(&self, number: usize) -> String {
        std::fs::read_to_string(self.log(number)).unwrap_or_default()
    }

    /// Ends a server by SIGKILL.
    pub(crate) async fn kill(&mut self, number: usize) -> anyhow::Result<()> {
        let mut running = self.running[number - 1].take().context("it runs")?;
        let ended = running.process.try_wait()?;
        ensure!(ended.is_none(), "server {number} ended by itself: {}", self.said(number));
        running.process.kill().await?;
        Ok(())
    }

    /// Sends a server a signal, such as `HUP`.
    pub(crate) async fn signal(&self, number: usize, name: &str) -> anyhow::Result<()> {
        let running = self.running[number - 1].as_ref().context("it runs")?;
        let id = running.process.id().context("it runs")?.to_string();
        let sent = Command::new("kill").args([&format!("-{name}"), &id]).status().await?;
        ensure!(sent.success(), "SIG{name} could not be sent");
        Ok(())
    }

    /// Ends a server by SIGTERM, and waits until it has ended.
    pub(crate) async fn stop(&mut self, number: usize) -> anyhow::Result<()> {
        self.signal(number, "TERM").await?;
        let mut running = self.running[number - 1].take().context("it runs")?;
        let ended = timeout(STOP_MAX, running.process.wait()).await.context("it does not end in time")??;
        ensure!(ended.success(), "server {number} ended with {ended}: {}", self.said(number));
        Ok(())
    }

    /// A caller's way to a server.
    pub(crate) fn caller(&self, number: usize) -> anyhow::Result<Caller> {
        Self::caller_at(self.ports[number - 1].public)
    }

    /// Where the servers listen for one another, as `cluster.peers` wants it.
    pub(crate) fn peers(&self) -> String {
        let peers = self.ports.iter().zip(1..);
        let peers = peers.map(|(ports, number)| format!("\"{number}=127.0.0.1:{}\"", ports.peers));
        peers.collect::<Vec<_>>().join(", ")
    }

    /// Changes the address at which the other servers look for a server, from their next starts on.
    pub(crate) fn reach(&self, number: usize, port: u16) -> anyhow::Result<()> {
        let [before, now] =
            [self.peer_port(number), port].map(|port| format!("\"{number}=127.0.0.1:{port}\""));
        for other in (1..=self.ports.len()).filter(|other| *other != number) {
            let config = std::fs::read_to_string(self.config(other))?;
            std::fs::write(self.config(other), config.replace(&before, &now))?;
        }
        Ok(())
    }

    /// The port at which a server listens for the others.
    pub(crate) fn peer_port(&self, number: usize) -> u16 {
        self.ports[number - 1].peers
    }

    /// A caller's way to a public port of this machine.
    pub(crate) fn caller_at(port: u16) -> anyhow::Result<Caller> {
        Caller::to(&format!("http://127.0.0.1:{port}"), KEY)
    }

    /// Asks the running servers in turn until one answers, as the shipped client policy does: what is certain not to have
    /// happened is asked again, and what has a request id also if it is unknown.
    pub(crate) async fn insist<T, F>(&self, mut call: impl FnMut(Caller) -> F) -> anyhow::Result<T>
    where
        F: Future<Output = Result<T, Status>>,
    {
        let deadline = Instant::now() + ANSWER_MAX;
        let numbers = (1..=self.running.len()).cycle();
        for number in numbers.filter(|number| self.running[number - 1].is_some()) {
            match call(self.caller(number)?).await {
                Ok(answer) => return Ok(answer),
                Err(status) => {
                    let again = can_be_repeated(&status);
                    ensure!(again && Instant::now() < deadline, "server {number} answered {status}");
                }
            }
            sleep(AGAIN).await;
        }
        anyhow::bail!("no server runs")
    }
}

/// A tenant's way to a server.
#[derive(Clone)]
pub(crate) struct Caller {
    channel: Channel,
    key: MetadataValue<Ascii>,
}

/// Returns true if a call with a request id may be made again: nothing happened, the outcome is unknown, or the connection broke,
/// which the client's own library says with whatever code.
pub(crate) fn can_be_repeated(status: &Status) -> bool {
    let of_connection = std::error::Error::source(status).is_some();
    of_connection || matches!(status.code(), Code::Unavailable | Code::Aborted | Code::DeadlineExceeded)
}

impl Caller {
    /// A way to the server at this address with this key.
    pub(crate) fn to(address: &str, key: &str) -> anyhow::Result<Self> {
        let endpoint = Endpoint::from_shared(address.to_owned())?;
        let channel = endpoint.tcp_nodelay(true).timeout(Duration::from_secs(10)).connect_lazy();
        Ok(Self { channel, key: format!("Bearer {key}").parse()? })
    }

    fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        request.metadata_mut().insert("authorization", self.key.clone());
        request
    }

    /// Makes a definition known.
    pub(crate) async fn deploy(&self, content: String) -> Result<(), Status> {
        let file = v1::DefinitionFile { path: "definition.json".into(), content: content.into() };
        let wanted = v1::DeployDefinitionRequest { files: vec![file], ..Default::default() };
        DefinitionServiceClient::new(self.channel.clone())
            .deploy_definition(self.request(wanted))
            .await
            .map(drop)
    }

    /// Starts a session under this key, which is its request id too.
    pub(crate) async fn start(&self, definition: &str, key: &str) -> Result<v1::Session, Status> {
        self.started(definition, key, None).await
    }

    /// The same with a text under this name as its input.
    pub(crate) async fn start_with(
        &self,
        definition: &str,
        key: &str,
        name: &str,
        text: &str,
    ) -> Result<v1::Session, Status> {
        let kind = prost_types::value::Kind::StringValue(text.to_owned());
        let value = prost_types::Value { kind: Some(kind) };
        let input = prost_types::Struct { fields: [(name.to_owned(), value)].into() };
        self.started(definition, key, Some(input)).await
    }

    async fn started(
        &self,
        definition: &str,
        key: &str,
        input: Option<prost_types::Struct>,
    ) -> Result<v1::Session, Status> {
        let wanted = v1::StartSessionRequest {
            definition: definition.into(),
            session_id: key.into(),
            request_id: key.into(),
            input,
            ..Default::default()
        };
        let started =
            SessionServiceClient::new(self.channel.clone()).start_session(self.request(wanted)).await?;
        started.into_inner().session.ok_or_else(|| Status::internal("no session"))
    }

    /// The effects of this status, `pending` or `dead_letter`: all that there are. UNAVAILABLE if a shard cannot be read.
    pub(crate) async fn effects(&self, status: &str) -> Result<Vec<v1::Effect>, Status> {
        let (mut found, mut pages) = (Vec::new(), Pages::default());
        while let Some(page_token) = pages.next_token() {
            let wanted = v1::ListEffectsRequest {
                page_size: 1000,
                page_token,
                filter: format!("status=\"{status}\""),
                ..Default::default()
            };
            let mut client = EffectServiceClient::new(self.channel.clone());
            let page = client.list_effects(self.request(wanted)).await?.into_inner();
            if !page.unreachable.is_empty() {
                return Err(Status::unavailable(format!("{:?} cannot be read", page.unreachable)));
            }
            found.extend(page.effects);
            pages.read(page.next_page_token);
        }
        Ok(found)
    }

    /// The server that leads a group, if one is known.
    pub(crate) async fn leader_of(&self, group: u64) -> Result<Option<u64>, Status> {
        let wanted = self.request(v1::GetClusterRequest {});
        let cluster = ClusterServiceClient::new(self.channel.clone()).get_cluster(wanted).await?.into_inner();
        Ok(cluster.groups.into_iter().find(|one| one.number == group).and_then(|one| one.leader))
    }

    /// The time of the server's manual clock, seconds since 1970.
    pub(crate) async fn seconds(&self) -> Result<i64, Status> {
        let wanted = self.request(v1::GetClockRequest {});
        let clock = ClockServiceClient::new(self.channel.clone()).get_clock(wanted).await?.into_inner();
        Ok(clock.time.unwrap_or_default().seconds)
    }

    /// Creates an endpoint for webhooks that wants events of one type.
    pub(crate) async fn put_endpoint(self, name: &str, url: &str, event_type: &str) -> Result<(), Status> {
        let endpoint = v1::WebhookEndpoint {
            name: name.into(),
            url: url.into(),
            event_types: vec![event_type.into()],
            ..Default::default()
        };
        let wanted = v1::PutWebhookEndpointRequest { endpoint: Some(endpoint), ..Default::default() };
        let mut client = WebhookEndpointServiceClient::new(self.channel.clone());
        client.put_webhook_endpoint(self.request(wanted)).await.map(drop)
    }

    /// Sends a single message to an endpoint.
    pub(crate) async fn ping(self, endpoint: &str) -> Result<v1::PingWebhookEndpointResponse, Status> {
        let wanted = v1::PingWebhookEndpointRequest { name: endpoint.into(), ..Default::default() };
        let mut client = WebhookEndpointServiceClient::new(self.channel.clone());
        Ok(client.ping_webhook_endpoint(self.request(wanted)).await?.into_inner())
    }

    /// The session of this key.
    pub(crate) async fn get(&self, key: &str) -> Result<v1::Session, Status> {
        let wanted = v1::GetSessionRequest { name: key.into(), ..Default::default() };
        let found = SessionServiceClient::new(self.channel.clone()).get_session(self.request(wanted)).await?;
        found.into_inner().session.ok_or_else(|| Status::internal("no session"))
    }

    /// Watches the session of this key, from its first event on.
    pub(crate) async fn watch(&self, key: &str) -> Result<Streaming<v1::WatchSessionResponse>, Status> {
        let wanted = v1::WatchSessionRequest { name: key.into(), ..Default::default() };
        let mut client = SessionServiceClient::new(self.channel.clone());
        Ok(client.watch_session(self.request(wanted)).await?.into_inner())
    }
}
