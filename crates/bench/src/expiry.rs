//! Ended sessions expire in the background: what concurrent callers notice, and how much disk is freed.
//!
//! Callers leave more sessions behind than those that expire: these must go, too, before the disk is meaningful.

use anyhow::Context as _;
use hdrhistogram::Histogram;
use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use switchward_api::v1;
use switchward_api::v1::retention_service_client::RetentionServiceClient;
use tokio::time::sleep;
use tonic::Request;

use crate::load::{self, Load, Shape, Work, bearer, channel};
use crate::parking::{Look, disk};
use crate::process::Server;

/// The sessions that expire: one question, one answer. Their definition, its only state, and what is in the file.
const ENDED: (&str, &str) = ("once", "ready");
const DEFINITION: &str = r#"{ "name": "once", "initial": "ready",
  "states": { "ready": { "question": "Ready?", "answers": { "yes": { "next": null, "action": "complete" } } } } }"#;
/// The load of the callers meanwhile: a start and three answers of a definition without a retention rule.
const CALLERS: Shape = Shape { callers: 64, connections: 8, time: Duration::from_secs(2) };
const THEIRS: &str = "deploy-gate";
const STEPS_OF_THEIRS: u64 = 4;
/// Measuring windows without expiry: this many before it, and this many after it.
const ROUNDS: usize = 8;
/// The shortest retention of ended sessions.
const KEPT: Duration = Duration::from_secs(60);
/// The highest ratio of the callers' p99 while sessions expire to the mean of their p99 before and after.
const P99_RATIO_MAX: f64 = 1.5;
/// The disk is judged from this many sessions on: below it, the journals, some 150 MiB at most, outweigh the sessions.
const JUDGED_FROM: u64 = 50_000;
/// How often progress is reported while they are made, and while they expire; and how often the server is asked for it.
const REPORT_AFTER: u64 = 10_000;
const REPORT_EVERY: Duration = Duration::from_secs(1);
const ASKED_EACH: Duration = Duration::from_millis(100);
/// The longest time without progress.
const PATIENCE: Duration = Duration::from_secs(120);
/// For how long the disk is watched: tables are merged in the background, some time after their rows are gone.
const DISK_WATCHED: Duration = Duration::from_secs(180);
const DISK_LOOK: Duration = Duration::from_secs(2);

/// Measures, prints, and fails if callers notice too much or too little disk is freed.
pub(crate) async fn run(binary: &Path, folder: &Path, sessions: u64) -> anyhow::Result<()> {
    let data = folder.join("data");
    let server = Server::switchward(binary, folder, None)
        .with_context(|| format!("failed to start {}; build it with --release", binary.display()))?;
    load::deploy(&server).await?;
    load::deploy_file(&server, "once.json", DEFINITION).await?;
    let empty = Look::take(&server, &data).await?.disk;
    let begun = Instant::now();
    make(&server, sessions).await?;
    let ended = Instant::now();
    println!("{sessions} sessions started and ended in {:.0} s", (ended - begun).as_secs_f64());
    let full = Look::take(&server, &data).await?.disk;
    let before = Windows::some(&server).await?;
    before.print("before");
    // All of them are over then, so they expire as fast as they can.
    sleep((KEPT + Duration::from_secs(1)).saturating_sub(ended.elapsed())).await;
    let during = expire(&server, sessions).await?;
    during.print("while they expire");
    let beside = disk(&data)?;
    let after = Windows::some(&server).await?;
    after.print("after");
    let without = f64::midpoint(before.ms(0.99), after.ms(0.99));
    let ratio = during.ms(0.99) / without;
    println!("p99 while they expire by p99 without: {ratio:.2} (at most {P99_RATIO_MAX:.2})");
    let others = (before.steps + during.steps + after.steps) / STEPS_OF_THEIRS;
    retain(&server, &[ENDED.0, THEIRS]).await?;
    gone(&server, sessions + others).await?;
    let (lowest, then) = lowest(&data).await?;
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    println!(
        "disk: {:.0} MiB empty, {:.0} MiB with them, {:.0} MiB when they were gone and only the callers' sessions \
         were left; {:.0} MiB {:.0} s after those were gone, too ({others} sessions)",
        mib(empty),
        mib(full),
        mib(beside),
        mib(lowest),
        then.as_secs_f64()
    );
    anyhow::ensure!(
        ratio <= P99_RATIO_MAX,
        "the p99 may be at most {P99_RATIO_MAX} times the p99 without expiry"
    );
    if sessions >= JUDGED_FROM {
        anyhow::ensure!(lowest < beside / 2, "less than half of the disk space was freed");
    }
    Ok(())
}

async fn make(server: &Server, sessions: u64) -> anyhow::Result<()> {
    let mut from = 0;
    while from < sessions {
        let to = sessions.min(from + REPORT_AFTER);
        load::end(server, ENDED.0, ENDED.1, from, to).await?;
        eprint!("\r{to} of {sessions} sessions have ended   ");
        from = to;
    }
    eprintln!();
    Ok(())
}

/// What the callers achieved in some windows.
struct Windows {
    latency: Histogram<u64>,
    /// All acknowledged steps, including those of windows that do not count.
    steps: u64,
    time: Duration,
}

impl Windows {
    fn none() -> anyhow::Result<Self> {
        Ok(Self { latency: Histogram::new(3)?, steps: 0, time: Duration::ZERO })
    }

    /// Measures windows without expiry.
    async fn some(server: &Server) -> anyhow::Result<Self> {
        let mut windows = Self::none()?;
        for _ in 0..ROUNDS {
            let load = load::run(server, CALLERS, Work::Gate).await?;
            windows.steps += load.acknowledged;
            windows.add(&load)?;
        }
        Ok(windows)
    }

    fn add(&mut self, load: &Load) -> anyhow::Result<()> {
        self.time += load.time;
        Ok(self.latency.add(&load.latency)?)
    }

    fn ms(&self, quantile: f64) -> f64 {
        self.latency.value_at_quantile(quantile) as f64 / 1e3
    }

    fn print(&self, when: &str) {
        println!(
            "{} callers {when:<18} {:>6.0} steps a second, p50 {:>6.2} ms, p99 {:>6.2} ms, at most {:>6.1} ms",
            CALLERS.callers,
            self.latency.len() as f64 / self.time.as_secs_f64(),
            self.ms(0.5),
            self.ms(0.99),
            self.ms(1.0)
        );
    }
}

/// When the sessions began to expire, and when the last of them was gone.
#[derive(Default)]
struct Course {
    begun: OnceLock<Instant>,
    over: OnceLock<Instant>,
}

/// Lets the sessions expire while the callers work.
async fn expire(server: &Server, sessions: u64) -> anyhow::Result<Windows> {
    let course = Course::default();
    retain(server, &[ENDED.0]).await?;
    let put = Instant::now();
    let ((), windows) = tokio::try_join!(follow(server, sessions, &course), beside(server, &course))?;
    let (begun, over) = (course.begun.get(), course.over.get());
    let (begun, over) = begun.zip(over).context("nothing expired")?;
    let took = (*over - *begun).as_secs_f64();
    println!(
        "{sessions} sessions expired in {took:.1} s, {:.0} a second; the first {:.1} s after the rule was set",
        sessions as f64 / took,
        (*begun - put).as_secs_f64()
    );
    Ok(windows)
}

/// Returns the windows that began while sessions expired and ended before the last was gone; if there are none, the last
/// window.
async fn beside(server: &Server, course: &Course) -> anyhow::Result<Windows> {
    let mut windows = Windows::none()?;
    while course.over.get().is_none() {
        let began = course.begun.get().is_some();
        let load = load::run(server, CALLERS, Work::Gate).await?;
        windows.steps += load.acknowledged;
        let whole = began && course.over.get().is_none();
        let only = course.over.get().is_some() && windows.latency.is_empty();
        if only {
            println!("(all sessions were removed before one window ended: use more sessions)");
        }
        if whole || only {
            windows.add(&load)?;
        }
    }
    Ok(windows)
}

/// Waits until all sessions are gone.
async fn follow(server: &Server, sessions: u64, course: &Course) -> anyhow::Result<()> {
    let (mut last, mut moved, mut reported) = (0, Instant::now(), Instant::now());
    loop {
        let [expired, removed] = removals(server).await?;
        if expired > 0 {
            course.begun.get_or_init(Instant::now);
        }
        if removed >= sessions {
            course.over.get_or_init(Instant::now);
            eprintln!("\r{removed} of {sessions} sessions are gone   ");
            return Ok(());
        }
        if removed > last {
            (last, moved) = (removed, Instant::now());
        }
        if reported.elapsed() >= REPORT_EVERY {
            eprint!("\r{removed} of {sessions} sessions are gone   ");
            reported = Instant::now();
        }
        anyhow::ensure!(moved.elapsed() < PATIENCE, "only {removed} of {sessions} sessions are gone");
        sleep(ASKED_EACH).await;
    }
}

/// Waits until every session with a retention rule is gone.
async fn gone(server: &Server, sessions: u64) -> anyhow::Result<()> {
    follow(server, sessions, &Course::default()).await
}

/// Sessions that have begun to expire, and those whose last row is gone.
async fn removals(server: &Server) -> anyhow::Result<[u64; 2]> {
    server.counted(["switchward_sessions_expired_total", "switchward_sessions_removed_total"]).await
}

/// Sets the shortest retention for sessions of these definitions; all others never expire.
async fn retain(server: &Server, definitions: &[&str]) -> anyhow::Result<()> {
    let kept = prost_types::Duration { seconds: i64::try_from(KEPT.as_secs())?, nanos: 0 };
    let rule = |definition: &&str| v1::RetentionRule {
        definition: (*definition).to_owned(),
        ended_sessions: Some(kept),
        ..v1::RetentionRule::default()
    };
    let retention = v1::Retention { rules: definitions.iter().map(rule).collect(), ..Default::default() };
    let put = v1::PutRetentionRequest { retention: Some(retention), ..Default::default() };
    let mut request = Request::new(put);
    request.metadata_mut().insert("authorization", bearer(&server.person_key)?);
    let mut client = RetentionServiceClient::new(channel(server).await?);
    client.put_retention(request).await.context("failed to set how long sessions are kept")?;
    Ok(())
}

/// Returns the least disk that the folder uses within a few minutes, and when that was.
async fn lowest(data: &Path) -> anyhow::Result<(u64, Duration)> {
    let begun = Instant::now();
    let mut lowest = (disk(data)?, Duration::ZERO);
    while begun.elapsed() < DISK_WATCHED {
        sleep(DISK_LOOK).await;
        let now = disk(data)?;
        if now < lowest.0 {
            lowest = (now, begun.elapsed());
        }
    }
    Ok(lowest)
}
