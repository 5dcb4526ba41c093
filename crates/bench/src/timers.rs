//! Timers: what a pending one costs, how late they are if they fall due evenly, and how fast many are fired if all are due.

mod jumps;

use anyhow::Context as _;
use hdrhistogram::Histogram;
use prost_types::Timestamp;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use switchward_api::v1;
use switchward_api::v1::definition_service_client::DefinitionServiceClient;
use switchward_api::v1::session_service_client::SessionServiceClient;
use tokio::task::JoinSet;
use tonic::Request;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::Channel;

use crate::load::{bearer, channel};
use crate::parking::{DISK_BYTES_MAX, Look, MEMORY_BYTES_MAX};
use crate::process::Server;

/// The first look at memory and disk, timers.
const FIRST: u64 = 20_000;
/// From this many on the cost of one is judged; with fewer, the fixed cost of the server would dominate.
const JUDGED_FROM: u64 = 200_000;
/// Callers that start sessions, and the connections that they share.
const CALLERS: usize = 64;
const CONNECTIONS: usize = 8;
/// Timers that fall due evenly: how many a second, and for how many seconds.
const EVEN_A_SECOND: u64 = 1_000;
const EVEN_SECONDS: u64 = 15;
/// One in this many of them is watched from outside.
const WATCHED_OF: u64 = 15;
/// Timers that fall due at once.
const AT_ONCE: u64 = 50_000;
/// How long the pending ones wait: longer than any measurement.
const LONG_MS: u64 = 100 * 3_600_000;
/// How long those that fall due evenly wait: longer than it takes to start and watch them.
const EVEN_MS: u64 = 28_800;
/// How late the 99th of a hundred may be, and how many a second must be done, as the best of the others.
const LATE_MS_MAX: f64 = 13.3;
const DRAINED_A_SECOND_MIN: f64 = 8_000.0;
/// The grace period of every wait.
const PATIENCE: Duration = Duration::from_secs(120);
/// The longest lateness that is distinguished, microseconds.
const LATE_US_MAX: u64 = 600_000_000;

/// The definition of a conversation that waits `ms` and ends.
pub(crate) fn nap(name: &str, ms: u64) -> String {
    let hours = ms as f64 / 3_600_000.0;
    format!(
        r#"{{ "name": "{name}",
  "states": [
    {{ "name": "rest", "type": "wait", "wait_for": "timer", "timeout_hours": {hours} }},
    {{ "name": "up", "type": "output", "template": "Good morning.", "target": "conversation" }}
  ],
  "transitions": [{{ "from": "rest", "port": "received", "to": "up" }}] }}"#
    )
}

/// Measures, prints, and fails if timers are too late or too slow.
pub(crate) async fn run(binary: &Path, folder: &Path, pending: u64) -> anyhow::Result<()> {
    anyhow::ensure!(pending > FIRST, "the first measurement is at {FIRST} timers; use more timers");
    let server = Server::switchward(binary, folder, None)
        .with_context(|| format!("failed to start {}; build it with --release", binary.display()))?;
    let client = Client::connect(&server).await?;
    client.deploy("nap-long", LONG_MS).await?;
    client.deploy("nap-even", EVEN_MS).await?;
    let rate = pend(&server, &client, &folder.join("data"), pending).await?;
    let late = even(&client).await?;
    let drained = at_once(&server, &client, rate).await?;
    anyhow::ensure!(
        late <= LATE_MS_MAX,
        "evenly distributed timers may be at most {LATE_MS_MAX} ms late at p99"
    );
    anyhow::ensure!(
        drained >= DRAINED_A_SECOND_MIN,
        "timers that are due at once must fire at {DRAINED_A_SECOND_MIN} a second or more"
    );
    jumps::run(server, binary, folder, pending).await
}

/// Starts sessions that wait for long; returns how many were started a second.
async fn pend(server: &Server, client: &Client, data: &Path, pending: u64) -> anyhow::Result<f64> {
    client.start("nap-long", 0, FIRST, || ()).await?;
    let first = Look::take(server, data).await?;
    let begun = Instant::now();
    client.start("nap-long", FIRST, pending, || ()).await?;
    let rate = (pending - FIRST) as f64 / begun.elapsed().as_secs_f64();
    let second = Look::take(server, data).await?;
    let more = (pending - FIRST) as f64;
    let memory = (second.memory as f64 - first.memory as f64) / more;
    let disk = (second.disk as f64 - first.disk as f64) / more;
    println!("{pending} timers pending, started at {rate:.0} a second");
    println!(
        "one more pending timer and its session: {memory:.0} bytes of memory, {disk:.0} bytes of disk; {} MiB and {} MiB in all",
        second.memory >> 20,
        second.disk >> 20
    );
    if pending < JUDGED_FROM {
        return Ok(rate);
    }
    anyhow::ensure!(memory < MEMORY_BYTES_MAX, "a timer may use at most {MEMORY_BYTES_MAX} bytes of memory");
    anyhow::ensure!(disk < DISK_BYTES_MAX, "a timer may use at most {DISK_BYTES_MAX} bytes of disk");
    Ok(rate)
}

/// Lets timers fall due evenly; returns how late they were at p99 for a watcher outside, milliseconds.
async fn even(client: &Client) -> anyhow::Result<f64> {
    let seen = Arc::new(none_seen());
    let (begun, mut starting, mut watching) = (Instant::now(), JoinSet::new(), JoinSet::new());
    for number in 0..EVEN_A_SECOND * EVEN_SECONDS {
        tokio::time::sleep_until((begun + Duration::from_secs(1) / 1_000 * u32::try_from(number)?).into())
            .await;
        let (client, seen) = (client.clone(), Arc::clone(&seen));
        starting.spawn(async move {
            let due = client.start_one("nap-even", number).await? + Duration::from_millis(EVEN_MS);
            anyhow::Ok(Nap { client, number, due, seen })
        });
        while let Some(started) = starting.try_join_next() {
            watch(&mut watching, started??);
        }
    }
    while let Some(started) = starting.join_next().await {
        watch(&mut watching, started??);
    }
    anyhow::ensure!(begun.elapsed() < Duration::from_millis(EVEN_MS), "the sessions were started too slowly");
    let all = async {
        while let Some(watched) = watching.join_next().await {
            watched??;
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(Duration::from_millis(EVEN_MS) + PATIENCE, all)
        .await
        .context("timers were not fired")??;
    client.wait_for_end("nap-even", EVEN_A_SECOND * EVEN_SECONDS - 1).await?;
    let stamped = client.stamps("nap-even", EVEN_A_SECOND * EVEN_SECONDS, EVEN_MS).await?;
    let seen = seen.lock().map_err(|_| anyhow::anyhow!("a task panicked"))?;
    println!("{} timers due evenly, {EVEN_A_SECOND} a second, late by:", EVEN_A_SECOND * EVEN_SECONDS);
    let late = print("in the log, all of them", &stamped);
    println!("  (none of them early, to the millisecond: {})", stamped.len());
    let outside = print("as seen by a watcher, some of them", &seen);
    println!(
        "  ({late:.1} ms and {outside:.1} ms at p99; {LATE_MS_MAX} ms is what the best of the others needs)"
    );
    Ok(outside)
}

type Seen = std::sync::Mutex<Histogram<u64>>;

fn none_seen() -> Seen {
    std::sync::Mutex::new(Histogram::new_with_max(LATE_US_MAX, 3).expect("three digits are allowed"))
}

/// A session with a timer that will fall due.
struct Nap {
    client: Client,
    number: u64,
    /// When the timer is due, since the epoch.
    due: Duration,
    seen: Arc<Seen>,
}

/// Watches a session to its end, if it is one of those that are watched.
fn watch(watching: &mut JoinSet<anyhow::Result<()>>, nap: Nap) {
    let Nap { client, number, due, seen } = nap;
    if !number.is_multiple_of(WATCHED_OF) {
        return;
    }
    watching.spawn(async move {
        let end = client.end_of("nap-even", number).await?;
        let late = end.checked_sub(due).context("a timer was early")?;
        let mut seen = seen.lock().map_err(|_| anyhow::anyhow!("a task panicked"))?;
        seen.saturating_record(u64::try_from(late.as_micros())?.max(1));
        Ok(())
    });
}

fn print(what: &str, late: &Histogram<u64>) -> f64 {
    let at = |quantile: f64| late.value_at_quantile(quantile) as f64 / 1e3;
    println!("  {what}: p50 {:.1} ms, p99 {:.1} ms, at most {:.1} ms", at(0.5), at(0.99), at(1.0));
    at(0.99)
}

/// Stops the process until many timers are due, and continues it; returns how many it fires a second then.
async fn at_once(server: &Server, client: &Client, rate: f64) -> anyhow::Result<f64> {
    // Twice as long as it takes to start them, in whole tenths of an hour's hundredth.
    let wait = Duration::from_secs_f64((2.0 * AT_ONCE as f64 / rate).max(18.0));
    let wait_ms = (u64::try_from(wait.as_millis())? / 3_600 + 1) * 3_600;
    client.deploy("nap-once", wait_ms).await?;
    let before = fired(server).await?;
    let begun = Instant::now();
    client.start("nap-once", 0, AT_ONCE, || ()).await?;
    let last = Instant::now();
    anyhow::ensure!(begun.elapsed() < Duration::from_millis(wait_ms), "the sessions were started too slowly");
    anyhow::ensure!(fired(server).await? == before, "a timer was early");
    server.signal("-STOP")?;
    tokio::time::sleep_until((last + Duration::from_millis(wait_ms + 50)).into()).await;
    server.signal("-CONT")?;
    let goes_on = Instant::now();
    loop {
        let done = fired(server).await? - before;
        let took = goes_on.elapsed();
        if done >= AT_ONCE {
            let drained = AT_ONCE as f64 / took.as_secs_f64();
            println!(
                "{AT_ONCE} timers due at once: done in {:.2} s, {drained:.0} a second",
                took.as_secs_f64()
            );
            return Ok(drained);
        }
        anyhow::ensure!(took < PATIENCE, "only {done} of {AT_ONCE} timers were fired");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Timers that the server has fired.
async fn fired(server: &Server) -> anyhow::Result<u64> {
    let [fired] = server.counted(["switchward_timers_fired_total"]).await?;
    Ok(fired)
}

/// Since 1970.
pub(crate) fn since(at: Option<Timestamp>) -> anyhow::Result<Duration> {
    let at = at.context("a session does not have this time")?;
    Ok(Duration::new(u64::try_from(at.seconds)?, u32::try_from(at.nanos)?))
}

/// Connections to the server.
#[derive(Clone)]
struct Client {
    channels: Arc<Vec<Channel>>,
    agent: MetadataValue<Ascii>,
    person: MetadataValue<Ascii>,
}

impl Client {
    async fn connect(server: &Server) -> anyhow::Result<Self> {
        let mut channels = Vec::new();
        for _ in 0..CONNECTIONS {
            channels.push(channel(server).await?);
        }
        let (agent, person) = (bearer(&server.agent_key)?, bearer(&server.person_key)?);
        Ok(Self { channels: Arc::new(channels), agent, person })
    }

    fn sessions(&self, number: u64) -> SessionServiceClient<Channel> {
        let at = usize::try_from(number).unwrap_or(0) % self.channels.len();
        SessionServiceClient::new(self.channels[at].clone())
    }

    fn request<T>(key: &MetadataValue<Ascii>, message: T) -> Request<T> {
        let mut request = Request::new(message);
        request.metadata_mut().insert("authorization", key.clone());
        request
    }

    async fn deploy(&self, name: &str, ms: u64) -> anyhow::Result<()> {
        let file = v1::DefinitionFile { path: format!("{name}.json"), content: nap(name, ms).into() };
        let deploy = v1::DeployDefinitionRequest { files: vec![file], ..Default::default() };
        let mut definitions = DefinitionServiceClient::new(self.channels[0].clone());
        definitions
            .deploy_definition(Self::request(&self.person, deploy))
            .await
            .context("failed to deploy")?;
        Ok(())
    }

    /// Starts one session; returns its creation time.
    async fn start_one(&self, definition: &str, number: u64) -> anyhow::Result<Duration> {
        let start = v1::StartSessionRequest {
            definition: definition.into(),
            session_id: format!("{definition}-{number}"),
            request_id: format!("{definition}-{number}"),
            ..v1::StartSessionRequest::default()
        };
        let reply =
            self.sessions(number).start_session(Self::request(&self.agent, start)).await?.into_inner();
        since(reply.session.context("the reply to a start has no session")?.create_time)
    }

    /// Starts sessions by number, with many callers; calls `on_start` before each.
    async fn start(
        &self,
        definition: &'static str,
        from: u64,
        to: u64,
        on_start: impl Fn() + Clone + Send + 'static,
    ) -> anyhow::Result<()> {
        let (next, mut callers) = (Arc::new(AtomicU64::new(from)), JoinSet::new());
        for _ in 0..CALLERS {
            let (client, next, on_start) = (self.clone(), Arc::clone(&next), on_start.clone());
            callers.spawn(async move {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= to {
                        return anyhow::Ok(());
                    }
                    on_start();
                    client.start_one(definition, number).await?;
                }
            });
        }
        while let Some(done) = callers.join_next().await {
            done??;
        }
        Ok(())
    }

    /// When the end of a session was seen here, since 1970.
    async fn end_of(&self, definition: &str, number: u64) -> anyhow::Result<Duration> {
        let watch = v1::WatchSessionRequest { name: format!("{definition}-{number}"), from_sequence: 0 };
        let mut updates =
            self.sessions(number).watch_session(Self::request(&self.agent, watch)).await?.into_inner();
        let mut seen = None;
        while updates.message().await?.is_some() {
            seen = Some(SystemTime::now().duration_since(UNIX_EPOCH)?);
        }
        seen.context("a session had no events")
    }

    async fn wait_for_end(&self, definition: &str, number: u64) -> anyhow::Result<()> {
        let end = self.end_of(definition, number);
        tokio::time::timeout(PATIENCE, end).await.context("a timer was not fired")?.map(drop)
    }

    /// Returns how late the ends of a definition's sessions were, which wait `wait_ms`, by the times in the log.
    async fn stamps(&self, definition: &str, count: u64, wait_ms: u64) -> anyhow::Result<Histogram<u64>> {
        let mut late = Histogram::new_with_max(LATE_US_MAX, 3)?;
        let mut page = String::new();
        while late.len() < count {
            let list = v1::ListSessionsRequest {
                page_size: 1_000,
                page_token: page,
                filter: format!("definition=\"{definition}\""),
                ..v1::ListSessionsRequest::default()
            };
            let listed =
                self.sessions(0).list_sessions(Self::request(&self.person, list)).await?.into_inner();
            for session in &listed.sessions {
                let due = since(session.create_time)? + Duration::from_millis(wait_ms);
                let end = since(session.end_time)?;
                let by = end.checked_sub(due).context("a timer was early")?;
                late.saturating_record(u64::try_from(by.as_micros())?.max(1));
            }
            page = listed.next_page_token;
            anyhow::ensure!(
                !page.is_empty() || late.len() >= count,
                "only {} sessions were found",
                late.len()
            );
        }
        Ok(late)
    }
}
