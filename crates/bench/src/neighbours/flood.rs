//! One tenant that floods the server, as a process of its own that takes at most half a core.

use anyhow::Context as _;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::io::Read as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use switchward_api::v1;
use switchward_api::v1::session_service_client::SessionServiceClient;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tonic::Request;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Channel, Endpoint};

use crate::load::bearer;

/// What it floods the server with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// Starts with an input of 200 KB each.
    Starts,
    /// Lists whose filter matches nothing.
    Lists,
    /// Starts of sessions that render a template which takes long.
    Templates,
    /// A thousand streams that watch sessions, and the messages to these sessions.
    Watches,
    /// Calls that are given up after a millisecond.
    Abandoned,
    /// Lists of whole pages whose answers nobody reads.
    Unread,
}

/// The result of a flood.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Flooded {
    /// Answered calls, and events of streams; if no answer is awaited, calls that were sent.
    pub(crate) done: u64,
    /// Calls that were refused.
    pub(crate) refused: u64,
    /// How long it took, seconds.
    pub(crate) seconds: f64,
    /// The share of a core that the process used.
    pub(crate) cores: f64,
}

impl Flooded {
    /// Calls and events a second.
    pub(crate) fn rate(self) -> f64 {
        self.done as f64 / self.seconds
    }
}

/// The flooding process may take this part of a core.
const CORES_MAX: f64 = 0.5;
/// The CPU time that it may use in advance.
const AHEAD: Duration = Duration::from_millis(20);
const PACE_LOOK: Duration = Duration::from_millis(1);
/// The input of a start.
const INPUT_BYTES: usize = 200_000;
/// Connections, and callers on them.
const CONNECTIONS: usize = 8;
const CALLERS: usize = 32;
/// Streams, and the sessions that they watch.
const STREAMS: usize = 1_000;
const WATCHED: usize = 20;
/// After this a call is given up.
const GIVEN_UP: Duration = Duration::from_millis(1);
/// The timeout of sending one more call whose answer nobody reads.
const UNREAD_WRITE: Duration = Duration::from_millis(100);
/// Connections whose answers nobody reads, at one time.
const UNREAD_MAX: usize = 200;

/// Floods until the standard input ends, then prints the result.
pub(crate) async fn run(kind: Kind, address: &str, key: &str) -> anyhow::Result<()> {
    let pace = Arc::new(Pace { begun: Instant::now() });
    let mut channels = Vec::new();
    for _ in 0..CONNECTIONS {
        channels.push(Endpoint::from_shared(address.to_owned())?.tcp_nodelay(true).connect().await?);
    }
    let flood = Flood { key: bearer(key)?, host: host(address)?, counts: Arc::default(), pace, kind };
    let mut tasks = JoinSet::new();
    if kind == Kind::Watches {
        flood.watch(&channels, &mut tasks).await?;
    }
    for number in 0..CALLERS {
        let (flood, channel) = (flood.clone(), channels[number % CONNECTIONS].clone());
        tasks.spawn(async move { flood.call_on(channel, number).await });
    }
    // The parent closes it.
    tokio::task::spawn_blocking(|| std::io::stdin().read(&mut [0])).await??;
    println!("{}", serde_json::to_string(&flood.came_to()?)?);
    Ok(())
}

fn host(address: &str) -> anyhow::Result<Arc<str>> {
    Ok(address.strip_prefix("http://").context("the address is not a plain HTTP address")?.into())
}

/// Seconds of CPU that the main thread has used, which is the only one that works.
fn cpu() -> std::io::Result<f64> {
    let text = std::fs::read_to_string("/proc/self/schedstat")?;
    let nanoseconds = text.split_whitespace().next().and_then(|first| first.parse::<f64>().ok());
    Ok(nanoseconds.unwrap_or_default() / 1e9)
}

/// Holds the process to its part of a core.
struct Pace {
    begun: Instant,
}

impl Pace {
    async fn wait(&self) -> std::io::Result<()> {
        while cpu()? > CORES_MAX * (self.begun.elapsed() + AHEAD).as_secs_f64() {
            tokio::time::sleep(PACE_LOOK).await;
        }
        Ok(())
    }
}

#[derive(Default)]
struct Counts {
    done: AtomicU64,
    refused: AtomicU64,
}

#[derive(Clone)]
struct Flood {
    key: MetadataValue<Ascii>,
    host: Arc<str>,
    counts: Arc<Counts>,
    pace: Arc<Pace>,
    kind: Kind,
}

fn text(text: String) -> prost_types::Value {
    prost_types::Value { kind: Some(prost_types::value::Kind::StringValue(text)) }
}

/// A list that looks through all sessions and finds none.
fn nothing() -> v1::ListSessionsRequest {
    v1::ListSessionsRequest { page_size: 1_000, filter: "labels.x=\"y\"".into(), ..Default::default() }
}

impl Flood {
    fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        request.metadata_mut().insert("authorization", self.key.clone());
        request
    }

    fn came_to(&self) -> anyhow::Result<Flooded> {
        let seconds = self.pace.begun.elapsed().as_secs_f64();
        let count = |of: &AtomicU64| of.load(Ordering::Relaxed);
        let (done, refused) = (count(&self.counts.done), count(&self.counts.refused));
        Ok(Flooded { done, refused, seconds, cores: cpu()? / seconds })
    }

    fn count<T>(&self, answer: &Result<T, tonic::Status>) {
        let of = if answer.is_ok() { &self.counts.done } else { &self.counts.refused };
        of.fetch_add(1, Ordering::Relaxed);
    }

    /// Runs one caller until the process ends.
    async fn call_on(self, channel: Channel, number: usize) -> anyhow::Result<()> {
        let mut client = SessionServiceClient::new(channel);
        let mut unread = Vec::new();
        loop {
            self.pace.wait().await?;
            match self.kind {
                Kind::Starts => {
                    let fields = [("text".to_owned(), text("x".repeat(INPUT_BYTES)))].into();
                    let input = Some(prost_types::Struct { fields });
                    self.count(&client.start_session(self.request(start("deploy-gate", input))).await);
                }
                Kind::Lists => self.count(&client.list_sessions(self.request(nothing())).await),
                Kind::Templates => {
                    self.count(&client.start_session(self.request(start("renders", None))).await);
                }
                Kind::Watches => {
                    let post = v1::PostMessageRequest {
                        name: watched(number % WATCHED),
                        text: "go on".into(),
                        ..v1::PostMessageRequest::default()
                    };
                    self.count(&client.post_message(self.request(post)).await);
                }
                Kind::Abandoned => {
                    self.counts.done.fetch_add(1, Ordering::Relaxed);
                    let calls = async {
                        let started = client.start_session(self.request(start("deploy-gate", None))).await;
                        started.and(client.list_sessions(self.request(nothing())).await)
                    };
                    let _gone = tokio::time::timeout(GIVEN_UP, calls).await;
                }
                Kind::Unread => {
                    unread.truncate(UNREAD_MAX / CALLERS);
                    unread.insert(0, self.unread().await?);
                }
            }
        }
    }

    /// Asks for pages over a connection until no more calls can be sent; the answers are never read.
    async fn unread(&self) -> anyhow::Result<TcpStream> {
        let mut stream = TcpStream::connect(&*self.host).await?;
        let body = r#"{"pageSize":1000}"#;
        let call = format!(
            "POST /switchward.v1.SessionService/ListSessions HTTP/1.1\r\nhost: {}\r\nauthorization: {}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            self.host,
            self.key.to_str()?,
            body.len()
        );
        while let Ok(written) = tokio::time::timeout(UNREAD_WRITE, stream.write_all(call.as_bytes())).await {
            if written.is_err() {
                break;
            }
            self.counts.done.fetch_add(1, Ordering::Relaxed);
            self.pace.wait().await?;
        }
        Ok(stream)
    }

    /// Opens the streams.
    async fn watch(
        &self,
        channels: &[Channel],
        tasks: &mut JoinSet<anyhow::Result<()>>,
    ) -> anyhow::Result<()> {
        let mut client = SessionServiceClient::new(channels[0].clone());
        let mut next = Vec::new();
        for number in 0..WATCHED {
            let start = v1::StartSessionRequest { session_id: watched(number), ..start("talk", None) };
            // The sessions of an earlier flood are watched again, from where they are.
            let _known = client.start_session(self.request(start)).await;
            let get = v1::GetSessionRequest { name: watched(number), ..v1::GetSessionRequest::default() };
            let got = client.get_session(self.request(get)).await?.into_inner();
            next.push(got.session.context("a session is missing")?.sequence + 1);
        }
        for number in 0..STREAMS {
            let (flood, channel) = (self.clone(), channels[number % CONNECTIONS].clone());
            let from_sequence = next[number % WATCHED];
            tasks.spawn(async move {
                let mut client = SessionServiceClient::new(channel);
                let name = watched(number % WATCHED);
                let watch = v1::WatchSessionRequest { name, from_sequence };
                let mut stream = client.watch_session(flood.request(watch)).await?.into_inner();
                while stream.message().await?.is_some() {
                    flood.counts.done.fetch_add(1, Ordering::Relaxed);
                }
                Ok(())
            });
        }
        Ok(())
    }
}

fn watched(number: usize) -> String {
    format!("watched-{number}")
}

fn start(definition: &str, input: Option<prost_types::Struct>) -> v1::StartSessionRequest {
    v1::StartSessionRequest { definition: definition.into(), input, ..v1::StartSessionRequest::default() }
}
