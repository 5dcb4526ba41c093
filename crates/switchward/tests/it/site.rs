//! The server and its Redis as processes of the test, and a caller's way to the server.

use anyhow::{Context as _, bail, ensure};
use serde_json::Value;
use std::fs::File;
use std::future::Future;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use switchward_api::v1::{
    self, api_key_service_client::ApiKeyServiceClient, definition_service_client::DefinitionServiceClient,
    effect_service_client::EffectServiceClient, session_service_client::SessionServiceClient,
    worker_service_client::WorkerServiceClient,
};
use switchward_testkit::{Pages, free_port};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpStream,
    process::{Child, ChildStdout, Command},
    time::{Instant, sleep, timeout, timeout_at},
};
use tonic::{
    Code, Request, Response, Status,
    metadata::{Ascii, MetadataValue},
    transport::{Channel, Endpoint},
};

/// The secret of every admin's key, after the tenant's prefix.
const SECRET: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
/// A start that takes longer has failed.
const START_MAX: Duration = Duration::from_secs(60);
/// The longest that a caller waits for an answer, all repetitions together.
const ANSWER_MAX: Duration = Duration::from_secs(90);
/// How long a caller waits before it asks again.
const AGAIN: Duration = Duration::from_millis(50);

/// What a Redis still has after it was killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keeps {
    /// Nothing.
    Nothing,
    /// What is in its append-only file, as in the deployments of `deploy/`.
    File,
}

/// A Redis on a free port. Dropping it kills it.
pub(crate) struct Redis {
    folder: TempDir,
    port: u16,
    keeps: Keeps,
    process: Option<Child>,
}

impl Redis {
    /// One without persistence.
    pub(crate) async fn start() -> anyhow::Result<Self> {
        Self::that_keeps(Keeps::Nothing).await
    }

    pub(crate) async fn that_keeps(keeps: Keeps) -> anyhow::Result<Self> {
        let mut redis = Self { folder: tempfile::tempdir()?, port: free_port(), keeps, process: None };
        redis.run().await?;
        Ok(redis)
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Starts it again on the same port, and waits until it is ready.
    pub(crate) async fn run(&mut self) -> anyhow::Result<()> {
        let mut command = Command::new("redis-server");
        command.args(["--port", &self.port.to_string(), "--bind", "127.0.0.1", "--save", ""]);
        if self.keeps == Keeps::File {
            command.args(["--appendonly", "yes", "--appendfsync", "everysec"]);
        }
        command.arg("--dir").arg(self.folder.path()).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut process = command.kill_on_drop(true).spawn().context("redis-server is missing")?;
        let mut lines = BufReader::new(process.stdout.take().context("it has an output")?).lines();
        let deadline = Instant::now() + START_MAX;
        let late = "redis-server does not get ready";
        while let Some(line) = timeout_at(deadline, lines.next_line()).await.context(late)?? {
            if line.contains("Ready to accept connections") {
                // What it says later is of no interest, but it must be able to say it.
                tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
                self.process = Some(process);
                return Ok(());
            }
        }
        bail!("redis-server ended before it was ready")
    }

    pub(crate) async fn kill(&mut self) -> anyhow::Result<()> {
        if let Some(mut process) = self.process.take() {
            process.kill().await?;
        }
        Ok(())
    }

    /// The number of its keys.
    pub(crate) async fn keys(&self) -> anyhow::Result<u64> {
        let line = self.ask("DBSIZE").await?;
        line.trim_start_matches(':').parse().with_context(|| format!("no number of keys: {line}"))
    }

    /// Asks it something that has an answer of one line.
    pub(crate) async fn ask(&self, words: &str) -> anyhow::Result<String> {
        let mut stream = BufReader::new(TcpStream::connect(("127.0.0.1", self.port)).await?);
        stream.get_mut().write_all(format!("{words}\r\n").as_bytes()).await?;
        let mut line = String::new();
        timeout(ANSWER_MAX, stream.read_line(&mut line)).await.context("Redis does not answer")??;
        ensure!(!line.starts_with('-'), "Redis does not do {words:?}: {line}");
        Ok(line.trim().to_owned())
    }
}

/// The options of a server.
pub(crate) struct SiteOptions {
    pub(crate) tenants: u8,
    pub(crate) shards: u32,
    /// The ports that it may send to.
    pub(crate) ports: Vec<u16>,
    /// How long it waits after each failed attempt, seconds.
    pub(crate) retries: Vec<u64>,
    /// Effects of a shard that may wait.
    pub(crate) outbox_max: usize,
}

impl Default for SiteOptions {
    fn default() -> Self {
        Self { tenants: 1, shards: 2, ports: Vec::new(), retries: vec![1], outbox_max: 100_000 }
    }
}

/// A server's folder, and how it is started.
pub(crate) struct Site {
    folder: TempDir,
    port: u16,
    metrics: u16,
}

/// A server that is ready. Dropping it kills it.
pub(crate) struct Server {
    process: Child,
    _out: BufReader<ChildStdout>,
}

impl Site {
    /// A server over this Redis.
    pub(crate) fn new(redis: &Redis, options: &SiteOptions) -> anyhow::Result<Self> {
        let SiteOptions { tenants, shards, ports, retries, outbox_max } = options;
        let site = Self { folder: tempfile::tempdir()?, port: free_port(), metrics: free_port() };
        let mut file = format!(
            "data_dir = {:?}\nlisten = \"127.0.0.1:{}\"\nshards = {shards}\n[log]\nlevel = \"warn\"\n[delivery]\n\
             allow_http = true\nallow_loopback = true\nports = {ports:?}\nretry_seconds = {retries:?}\n\
             outbox_max = {outbox_max}\n[redis]\n\
             url = \"redis://127.0.0.1:{}\"\n[metrics]\nlisten = \"127.0.0.1:{}\"\n",
            site.path("data"),
            site.port,
            redis.port,
            site.metrics
        );
        for tenant in 0..*tenants {
            let path = site.path(&format!("admin-{tenant}.key"));
            switchward_store::write_secret(Path::new(&path), key(tenant).as_bytes())?;
            file += &format!("[[tenants]]\nname = \"tenant-{tenant}\"\nadmin_key_file = {path:?}\n");
        }
        std::fs::write(site.path("switchward.toml"), file)?;
        Ok(site)
    }

    /// A file of its folder.
    pub(crate) fn path(&self, name: &str) -> String {
        Path::join(self.folder.path(), name).to_string_lossy().into_owned()
    }

    /// Starts it, and waits until it is ready.
    pub(crate) async fn start(&self) -> anyhow::Result<Server> {
        let log = File::options().create(true).append(true).open(self.path("server.log"))?;
        let mut command = Command::new(env!("CARGO_BIN_EXE_switchward"));
        let set = std::env::vars_os().map(|(name, _)| name);
        for name in set.filter(|name| name.to_string_lossy().starts_with("SWITCHWARD_")) {
            command.env_remove(name);
        }
        command.args(["server", "--config", &self.path("switchward.toml"), "-o", "json"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).kill_on_drop(true);
        let mut process = command.spawn()?;
        let mut out = BufReader::new(process.stdout.take().context("it has an output")?);
        let mut line = String::new();
        timeout(START_MAX, out.read_line(&mut line)).await.context("the server does not get ready")??;
        ensure!(!line.is_empty(), "the server ended before it was ready: {}", self.said()?);
        Ok(Server { process, _out: out })
    }

    /// All that the servers here have said.
    pub(crate) fn said(&self) -> anyhow::Result<String> {
        Ok(std::fs::read_to_string(self.path("server.log"))?)
    }

    /// What the server says of itself under this name, all its lines together.
    pub(crate) async fn metric(&self, name: &str) -> anyhow::Result<f64> {
        metric_at(self.metrics, name).await
    }

    /// A tenant's way to the server, whichever is there.
    pub(crate) fn caller(&self, tenant: u8) -> anyhow::Result<Caller> {
        let endpoint = Endpoint::from_shared(format!("http://127.0.0.1:{}", self.port))?;
        let channel = endpoint.tcp_nodelay(true).timeout(Duration::from_secs(10)).connect_lazy();
        Ok(Caller { channel, key: format!("Bearer {}", key(tenant)).parse()? })
    }
}

/// What a server whose metrics are at this port says under this name, all its lines together.
pub(crate) async fn metric_at(port: u16, name: &str) -> anyhow::Result<f64> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await?;
    let mut page = String::new();
    stream.read_to_string(&mut page).await?;
    let of_name = page.lines().filter(|line| line.starts_with(name));
    let values: Vec<f64> = of_name.filter_map(|line| line.rsplit(' ').next()?.parse().ok()).collect();
    ensure!(!values.is_empty(), "nothing is said of {name}: {page}");
    Ok(values.iter().sum())
}

fn key(tenant: u8) -> String {
    format!("swk_{tenant:016x}_{SECRET}")
}

impl Server {
    /// Ends it by SIGKILL.
    pub(crate) async fn kill(mut self) -> anyhow::Result<()> {
        ensure!(self.process.try_wait()?.is_none(), "the server ended by itself");
        self.process.kill().await?;
        Ok(())
    }

    /// Sends it `STOP` or `CONT`.
    pub(crate) async fn signal(&self, name: &str) -> anyhow::Result<()> {
        let id = self.process.id().context("it runs")?.to_string();
        let sent = Command::new("kill").args([&format!("-{name}"), &id]).status().await?;
        ensure!(sent.success(), "SIG{name} could not be sent");
        Ok(())
    }
}

/// A tenant's way to the server.
#[derive(Clone)]
pub(crate) struct Caller {
    channel: Channel,
    key: MetadataValue<Ascii>,
}

impl Caller {
    pub(crate) fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        request.metadata_mut().insert("authorization", self.key.clone());
        request
    }

    /// An operator of the same tenant, who has not asked for what the caller asks for.
    pub(crate) async fn operator(&self, subject: &str) -> anyhow::Result<Self> {
        let role = v1::KeyRole::Operator.into();
        let wanted = v1::CreateApiKeyRequest {
            role,
            subject: subject.to_owned(),
            ..v1::CreateApiKeyRequest::default()
        };
        let mut keys = ApiKeyServiceClient::new(self.channel.clone());
        let made = keys.create_api_key(self.request(wanted)).await?.into_inner();
        Ok(Self { channel: self.channel.clone(), key: format!("Bearer {}", made.secret).parse()? })
    }

    pub(crate) fn sessions(&self) -> SessionServiceClient<Channel> {
        SessionServiceClient::new(self.channel.clone())
    }

    pub(crate) fn work(&self) -> WorkerServiceClient<Channel> {
        WorkerServiceClient::new(self.channel.clone())
    }

    pub(crate) fn effects(&self) -> EffectServiceClient<Channel> {
        EffectServiceClient::new(self.channel.clone())
    }

    /// Makes a definition known.
    pub(crate) async fn deploy(&self, definition: &Value) -> anyhow::Result<()> {
        let content = definition.to_string();
        let file = v1::DefinitionFile { path: "definition.json".into(), content: content.into() };
        let wanted = v1::DeployDefinitionRequest { files: vec![file], ..Default::default() };
        DefinitionServiceClient::new(self.channel.clone()).deploy_definition(self.request(wanted)).await?;
        Ok(())
    }

    /// Asks the same until it is answered: an error says either that the server is away, or that it is asked again.
    pub(crate) async fn answered<T, F>(&self, call: impl Fn() -> F) -> anyhow::Result<T>
    where
        F: Future<Output = Result<Response<T>, Status>>,
    {
        let asking = async {
            loop {
                match call().await {
                    Ok(response) => return anyhow::Ok(response.into_inner()),
                    // A connection that broke, and a server that is just starting or ending.
                    Err(status) if away(&status) => sleep(AGAIN).await,
                    Err(status) => bail!("refused: {status}"),
                }
            }
        };
        timeout(ANSWER_MAX, asking).await.context("there is no answer")?
    }

    /// Starts a session of this number, whose request id and business key are of it.
    pub(crate) async fn begin(&self, definition: &str, number: u64) -> anyhow::Result<v1::Session> {
        let session = self.answered(|| self.clone().start(definition.to_owned(), number)).await?;
        session.session.context("a start was answered without a session")
    }

    /// The same, asked once.
    pub(crate) async fn start(
        self,
        definition: String,
        number: u64,
    ) -> Result<Response<v1::StartSessionResponse>, Status> {
        let text =
            prost_types::Value { kind: Some(prost_types::value::Kind::StringValue(number.to_string())) };
        let input = prost_types::Struct { fields: [("n".to_owned(), text)].into() };
        let wanted = v1::StartSessionRequest {
            session_id: format!("{definition}-{number}"),
            request_id: format!("{definition}-{number}"),
            definition,
            input: Some(input),
            ..Default::default()
        };
        self.sessions().start_session(self.request(wanted)).await
    }

    /// The session of this name or business key.
    pub(crate) async fn session(&self, name: &str) -> anyhow::Result<v1::Session> {
        let wanted = || v1::GetSessionRequest { name: name.to_owned(), ..Default::default() };
        let call = || async { self.sessions().get_session(self.request(wanted())).await };
        self.answered(call).await?.session.context("a session was not shown")
    }

    /// Effects that are `pending` or `dead_letter`: all that there are.
    pub(crate) async fn effects_that_are(&self, status: &str) -> anyhow::Result<Vec<v1::Effect>> {
        let (mut found, mut pages) = (Vec::new(), Pages::default());
        while let Some(page_token) = pages.next_token() {
            let wanted = v1::ListEffectsRequest {
                page_size: 1000,
                page_token,
                filter: format!("status=\"{status}\""),
                ..Default::default()
            };
            let call = || async { self.effects().list_effects(self.request(wanted.clone())).await };
            let page = self.answered(call).await?;
            found.extend(page.effects);
            pages.read(page.next_page_token);
        }
        Ok(found)
    }
}

/// Returns true if an error says nothing about the request.
fn away(status: &Status) -> bool {
    matches!(
        status.code(),
        Code::Unavailable | Code::Unknown | Code::Internal | Code::Cancelled | Code::DeadlineExceeded
    )
}
