//! Effects: how many a second go through relay, Redis and delivery worker to a sink, compared with bare commands of Redis;
//! and how long one takes from its decision to its arrival, compared with the syncs and the round trip that it needs.

use anyhow::{Context as _, ensure};
use hdrhistogram::Histogram;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use switchward_api::v1;
use switchward_api::v1::api_key_service_client::ApiKeyServiceClient;
use switchward_api::v1::definition_service_client::DefinitionServiceClient;
use switchward_api::v1::session_service_client::SessionServiceClient;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tonic::Request;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::Channel;

use crate::judge::Judging;
use crate::load::{bearer, channel};
use crate::probe;
use crate::process::Server;

const KEY: &str = "swk_0123456789abcdef_0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
/// Sessions that are measured together, messages of each, and callers that start them.
const SESSIONS: u64 = 1_000;
const MESSAGES: u64 = 20;
const CALLERS: u64 = 16;
/// The approver.
const LEAD: &str = "lead@example.com";
/// Sinks, so that the limit of concurrent deliveries to one destination is not what is measured.
const SINKS: u64 = 4;
/// Decisions that are measured one after the other.
const DECISIONS: u64 = 300;
/// How long the bare commands are measured, and with how many connections.
const BARE: Duration = Duration::from_secs(3);
const CONNECTIONS: usize = 16;
/// The body of a bare entry, about as long as that of an effect.
const BODY_BYTES: usize = 400;
/// Round trips of which the median is taken.
const ROUND_TRIPS: usize = 1_000;
/// The aims: the ratio of effects to bare entries, and of a decision's latency to the time that it needs at least.
const RATIO_AIM: f64 = 0.1;
const WAY_AIM: f64 = 3.0;
const PATIENCE: Duration = Duration::from_secs(120);
const LATENCY_MAX_US: u64 = 60_000_000;

/// Measures and prints.
///
/// # Errors
/// Something could not be measured, or an aim is missed and judged.
pub(crate) async fn run(binary: &Path, folder: &Path, judging: Judging) -> anyhow::Result<()> {
    let redis = Redis::start(folder)?;
    redis.ready().await?;
    let bare = redis.bare().await?;
    let sinks = Sinks::start().await?;
    let server = server(binary, folder, &redis, &sinks)
        .with_context(|| format!("failed to start {}; build it with --release", binary.display()))?;
    let client = Client { channel: channel(&server).await? };
    client.deploy(&sinks).await?;
    let through = through(&client, &sinks).await?;
    let way = ways(&client, &sinks).await?;
    let again = redis.bare().await?;
    let bare = f64::midpoint(bare, again);
    let (_, sync_ms) = probe::syncs(folder)?;
    let trip_ms = redis.round_trip().await?;
    let needed = sync_ms.mul_add(2.0, trip_ms);
    let (ratio, longer) = (through / bare, way / needed);
    println!("bare XADD, XREADGROUP and XACK   {bare:>10.0} a second");
    println!(
        "effects to a receiver            {through:>10.0} a second, {ratio:.3} of that, target {RATIO_AIM}"
    );
    println!("two syncs and a round trip       {needed:>10.3} ms, {sync_ms:.3} and {trip_ms:.3} each");
    println!("decision to arrival, p50         {way:>10.3} ms, {longer:.2} times that, target {WAY_AIM}");
    server.end().await?;
    if judging == Judging::Shown {
        return Ok(());
    }
    ensure!(ratio >= RATIO_AIM, "too few effects are delivered per second");
    ensure!(longer <= WAY_AIM, "effects take too long from decision to arrival");
    Ok(())
}

/// A server over this Redis that may send to these sinks.
fn server(binary: &Path, folder: &Path, redis: &Redis, sinks: &Sinks) -> anyhow::Result<Server> {
    let (file, key) = (folder.join("delivery.toml"), folder.join("admin.key"));
    std::fs::write(&key, KEY)?;
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600))?;
    let text = format!(
        "data_dir = {:?}\nlisten = \"127.0.0.1:0\"\n[log]\nlevel = \"error\"\n\
         [quotas]\nrequests_per_second = 0\nsessions = 0\nbytes = 0\n[delivery]\nallow_http = true\n\
         allow_loopback = true\nports = {:?}\n[redis]\nurl = \"redis://127.0.0.1:{}\"\n[[tenants]]\nname = \"bench\"\n\
         admin_key_file = {key:?}\n",
        folder.join("delivery"),
        sinks.ports,
        redis.port
    );
    std::fs::write(&file, text)?;
    Server::configured(binary, &file)
}

/// A Redis that keeps nothing. It ends with this value.
struct Redis {
    child: Child,
    port: u16,
}

impl Redis {
    fn start(folder: &Path) -> anyhow::Result<Self> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let mut command = Command::new("redis-server");
        command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--dir"]).arg(folder);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn();
        Ok(Self { child: child.context("redis-server is missing")?, port })
    }

    async fn ready(&self) -> anyhow::Result<()> {
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.port)).await.is_err() {
            ensure!(begun.elapsed() < PATIENCE, "redis-server does not become ready");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    async fn connect(&self) -> anyhow::Result<Wire> {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).await?;
        stream.set_nodelay(true)?;
        Ok(Wire(BufReader::new(stream)))
    }

    /// Entries a second that are added, taken and acknowledged, by several connections at one time.
    async fn bare(&self) -> anyhow::Result<f64> {
        let mut first = self.connect().await?;
        first.ask(&["DEL", "bare"]).await?;
        first.ask(&["XGROUP", "CREATE", "bare", "g", "0", "MKSTREAM"]).await?;
        let (done, begun, mut all) = (Arc::new(AtomicU64::new(0)), Instant::now(), JoinSet::new());
        for number in 0..CONNECTIONS {
            let (mut wire, done) = (self.connect().await?, Arc::clone(&done));
            all.spawn(async move {
                let (body, name) = ("x".repeat(BODY_BYTES), format!("c{number}"));
                while begun.elapsed() < BARE {
                    wire.ask(&["XADD", "bare", "*", "body", &body]).await?;
                    let read = ["XREADGROUP", "GROUP", "g", &name, "COUNT", "1", "STREAMS", "bare", ">"];
                    let taken = wire.ask(&read).await?;
                    // Stream, its name, entries, the entry: the first text after the name is its id.
                    let id = taken.get(1).context("an entry is missing")?;
                    wire.ask(&["XACK", "bare", "g", id]).await?;
                    done.fetch_add(1, Ordering::Relaxed);
                }
                anyhow::Ok(())
            });
        }
        while let Some(ended) = all.join_next().await {
            ended??;
        }
        Ok(done.load(Ordering::Relaxed) as f64 / begun.elapsed().as_secs_f64())
    }

    /// The median of a round trip, milliseconds.
    async fn round_trip(&self) -> anyhow::Result<f64> {
        let mut wire = self.connect().await?;
        let mut each = Vec::new();
        for _ in 0..ROUND_TRIPS {
            let begun = Instant::now();
            wire.ask(&["PING"]).await?;
            each.push(begun.elapsed());
        }
        each.sort_unstable();
        Ok(each.get(each.len() / 2).copied().unwrap_or_default().as_secs_f64() * 1e3)
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        // It may have ended by itself; either way it is gone then.
        let _killed = self.child.kill();
        let _waited = self.child.wait();
    }
}

/// A connection to Redis.
struct Wire(BufReader<TcpStream>);

impl Wire {
    /// Sends one command; returns the texts of its answer, in order, flattened.
    async fn ask(&mut self, words: &[&str]) -> anyhow::Result<Vec<String>> {
        let mut text = format!("*{}\r\n", words.len());
        for word in words {
            text += &format!("${}\r\n{word}\r\n", word.len());
        }
        self.0.get_mut().write_all(text.as_bytes()).await?;
        let (mut open, mut found) = (1_usize, Vec::new());
        while open > 0 {
            let mut line = String::new();
            ensure!(self.0.read_line(&mut line).await? > 0, "Redis closed the connection");
            let (sort, rest) = line.trim_end().split_at(1);
            open -= 1;
            match sort {
                "*" => open += usize::try_from(rest.parse::<i64>()?.max(0))?,
                "$" => {
                    let length = usize::try_from(rest.parse::<i64>()?.max(0))?;
                    let mut body = vec![0; length + 2];
                    self.0.read_exact(&mut body).await?;
                    body.truncate(length);
                    found.push(String::from_utf8(body)?);
                }
                "-" => anyhow::bail!("Redis refused {words:?}: {rest}"),
                _ => found.push(rest.to_owned()),
            }
        }
        Ok(found)
    }
}

/// The receivers: count requests, and answer at once.
struct Sinks {
    ports: Vec<u16>,
    count: watch::Sender<u64>,
}

impl Sinks {
    async fn start() -> anyhow::Result<Self> {
        let (mut ports, count) = (Vec::new(), watch::Sender::new(0));
        for _ in 0..SINKS {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
            ports.push(listener.local_addr()?.port());
            let count = count.clone();
            tokio::spawn(async move {
                while let Ok((stream, _)) = listener.accept().await {
                    tokio::spawn(serve(stream, count.clone()));
                }
            });
        }
        Ok(Self { ports, count })
    }

    fn url(&self, number: u64) -> String {
        let at = usize::try_from(number).unwrap_or(0) % self.ports.len();
        format!("http://127.0.0.1:{}/{number}", self.ports[at])
    }

    /// Waits until `wanted` requests have arrived.
    async fn until(&self, wanted: u64) -> anyhow::Result<()> {
        let mut count = self.count.subscribe();
        let come = count.wait_for(|count| *count >= wanted);
        tokio::time::timeout(PATIENCE, come).await.context("effects do not arrive")??;
        Ok(())
    }
}

/// Serves one connection.
async fn serve(stream: TcpStream, count: watch::Sender<u64>) -> anyhow::Result<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).await? == 0 {
                return Ok(());
            }
            let line = line.trim_end().to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse()?;
            }
        }
        stream.read_exact(&mut vec![0; length]).await?;
        count.send_modify(|count| *count += 1);
        stream.get_mut().write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await?;
    }
}

/// A caller's connection to the server.
#[derive(Clone)]
struct Client {
    channel: Channel,
}

impl Client {
    fn request<T>(message: T) -> anyhow::Result<Request<T>> {
        let mut request = Request::new(message);
        request.metadata_mut().insert("authorization", bearer(KEY)?);
        Ok(request)
    }

    /// Creates the key of an operator who approves, as the requester may not.
    async fn lead(&self) -> anyhow::Result<MetadataValue<Ascii>> {
        let role = v1::KeyRole::Operator.into();
        let wanted =
            v1::CreateApiKeyRequest { role, subject: LEAD.to_owned(), ..v1::CreateApiKeyRequest::default() };
        let mut keys = ApiKeyServiceClient::new(self.channel.clone());
        bearer(&keys.create_api_key(Self::request(wanted)?).await?.into_inner().secret)
    }

    fn sessions(&self) -> SessionServiceClient<Channel> {
        SessionServiceClient::new(self.channel.clone())
    }

    /// Deploys one definition that sends many messages at once, and one that sends one message after an approval.
    async fn deploy(&self, sinks: &Sinks) -> anyhow::Result<()> {
        let many: Vec<String> = (0..MESSAGES).map(|number| sinks.url(number)).collect();
        let sent = |to: &[String]| {
            serde_json::json!({ "name": "told", "type": "output", "target": "webhook", "template": "Done.",
                                "recipients": to })
        };
        let fine = serde_json::json!({ "name": "fine", "type": "conversation" });
        let end = serde_json::json!({ "from": "told", "port": "done", "to": "fine" });
        let asked = serde_json::json!({ "name": "decide", "type": "approval", "approvers": [LEAD] });
        let approved = serde_json::json!({ "from": "decide", "port": "approved", "to": "told" });
        let rejected = serde_json::json!({ "from": "decide", "port": "rejected", "to": "fine" });
        let one = sent(&[sinks.url(0)]);
        let all = [
            serde_json::json!({ "name": "burst", "states": [sent(&many), fine], "transitions": [end] }),
            serde_json::json!({ "name": "gate", "states": [asked, one, fine], "transitions": [approved, rejected, end] }),
        ];
        for definition in all {
            let content = definition.to_string();
            let file = v1::DefinitionFile { path: "definition.json".into(), content: content.into() };
            let wanted = v1::DeployDefinitionRequest { files: vec![file], ..Default::default() };
            let mut definitions = DefinitionServiceClient::new(self.channel.clone());
            definitions.deploy_definition(Self::request(wanted)?).await.context("failed to deploy")?;
        }
        Ok(())
    }

    async fn start(&self, definition: &str, number: u64) -> anyhow::Result<()> {
        let name = format!("{definition}-{number}");
        let wanted = v1::StartSessionRequest {
            definition: definition.into(),
            session_id: name.clone(),
            request_id: name,
            ..v1::StartSessionRequest::default()
        };
        self.sessions().start_session(Self::request(wanted)?).await?;
        Ok(())
    }
}

/// Effects a second, from the first start to the last arrival.
async fn through(client: &Client, sinks: &Sinks) -> anyhow::Result<f64> {
    let (next, begun, mut callers) = (Arc::new(AtomicU64::new(0)), Instant::now(), JoinSet::new());
    for _ in 0..CALLERS {
        let (client, next) = (client.clone(), Arc::clone(&next));
        callers.spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= SESSIONS {
                    return anyhow::Ok(());
                }
                client.start("burst", number).await?;
            }
        });
    }
    while let Some(ended) = callers.join_next().await {
        ended??;
    }
    sinks.until(SESSIONS * MESSAGES).await?;
    Ok((SESSIONS * MESSAGES) as f64 / begun.elapsed().as_secs_f64())
}

/// The median from sending a decision to the arrival of the message that it sends, milliseconds.
async fn ways(client: &Client, sinks: &Sinks) -> anyhow::Result<f64> {
    let mut ways = Histogram::<u64>::new_with_max(LATENCY_MAX_US, 3)?;
    let lead = client.lead().await?;
    for number in 0..DECISIONS {
        client.start("gate", number).await?;
        let before = *sinks.count.borrow();
        let reply = v1::RecordReplyRequest {
            name: format!("gate-{number}"),
            from: LEAD.into(),
            text: "yes".into(),
            ..v1::RecordReplyRequest::default()
        };
        let begun = Instant::now();
        let (mut sessions, mut reply) = (client.sessions(), Request::new(reply));
        reply.metadata_mut().insert("authorization", lead.clone());
        let decided = async { sessions.record_reply(reply).await.map_err(anyhow::Error::from) };
        tokio::try_join!(decided, sinks.until(before + 1))?;
        ways.saturating_record(u64::try_from(begun.elapsed().as_micros())?.max(1));
    }
    Ok(ways.value_at_quantile(0.5) as f64 / 1e3)
}
