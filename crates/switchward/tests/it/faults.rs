//! Effects against receivers that fail three times in ten, while the server and its Redis are killed, emptied, stopped and
//! cut off in turn: none is lost, and what arrives twice was on its way when something was done to it.

use anyhow::{Context as _, ensure};
use rand::{Rng as _, SeedableRng as _, rngs::StdRng, seq::SliceRandom as _};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};
use std::time::{Duration, Instant};
use tokio::{task::JoinSet, time::sleep};

use crate::receiver::{Attempt, Manner, Outcome, Receiver};
use crate::setting;
use crate::site::{Caller, Redis, Server, Site, SiteOptions};

/// How often each kind of fault must have happened.
const EACH_MIN: usize = 5;
/// Callers at one time.
const CALLERS: u64 = 6;
/// How long each of them waits between two sessions.
const BETWEEN: Duration = Duration::from_millis(150);
/// Every this many sessions, one makes a request and waits for its answer; the others send three messages.
const REQUEST_EACH: u64 = 5;
/// Messages of one session that sends some.
const MESSAGES: [&str; 3] = ["a", "b", "c"];
/// A run with fewer acknowledged effects is not significant.
const EFFECTS_MIN: usize = 200;
/// How long the server may take to record a delivery after the receiver's answer: an effect that was answered so shortly
/// before a fault counts as in flight.
const UNRECORDED: Duration = Duration::from_secs(1);
/// How long it may take after a fault until queued jobs are taken again: a worker that was cut off waits before it retries.
const MENDED: Duration = Duration::from_secs(3);
/// Concurrent messages to one destination, and requests, of both shards together.
const OUT: usize = 2 * 16 + 2 * 16;
/// How long it may take at the end until everything has arrived: jobs that a flush deleted go out again after 105 seconds,
/// and a request whose server died after 90.
const LAST_MAX: Duration = Duration::from_secs(240);
/// The waits after failed attempts, seconds. An effect becomes a dead letter only if all attempts fail.
const RETRIES: [u64; 10] = [1, 1, 1, 2, 2, 2, 3, 3, 4, 4];

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// SIGKILL, and a new start on the same folder: its delivery workers and its relay die with it.
    ServerKilled,
    /// SIGKILL of a Redis without persistence, and a new start.
    RedisKilled,
    /// FLUSHALL.
    RedisFlushed,
    /// The server with its delivery workers is stopped for a second, and then continues.
    Stalled,
    /// All connections to Redis end: a delivery worker cannot report its results.
    CutOff,
}

const KINDS: [Kind; 5] =
    [Kind::ServerKilled, Kind::RedisKilled, Kind::RedisFlushed, Kind::Stalled, Kind::CutOff];

/// One fault, and when it was mended.
#[derive(Debug, Clone, Copy)]
struct Fault {
    kind: Kind,
    begun: Instant,
    ended: Instant,
}

/// The sessions that were acknowledged to callers.
#[derive(Default)]
struct Book {
    next: AtomicU64,
    closed: AtomicBool,
    acknowledged: parking_lot::Mutex<BTreeSet<u64>>,
}

fn definitions(url: &str) -> [Value; 2] {
    let path = |last: &str| format!("{url}/{{gathered_data.n}}/{last}");
    let always = json!([{ "type": "always" }]);
    let to: Vec<String> = MESSAGES.iter().map(|message| path(message)).collect();
    let notification = json!({ "type": "send_notification", "config": {
        "channel": "webhook", "recipients": to, "body": "{gathered_data.n}" } });
    let asked = json!({ "type": "http_request", "config": {
        "method": "POST", "url": path("order"), "body": { "n": "{gathered_data.n}" }, "into": "order" } });
    [
        json!({
            "name": "tell",
            "states": [
                { "name": "tell", "type": "logic", "operations": [notification] }, { "name": "fine", "type": "conversation" },
            ],
            "transitions": [{ "from": "tell", "to": "fine", "guards": always }],
        }),
        json!({
            "name": "order",
            "states": [
                { "name": "push", "type": "logic", "operations": [asked], "on_error": "retry_then_port",
                  "retry_policy": { "max_attempts": 10, "backoff_seconds": 1 } },
                { "name": "fine", "type": "conversation" }, { "name": "sorry", "type": "conversation" },
            ],
            "transitions": [
                { "from": "push", "to": "fine", "guards": always }, { "from": "push", "port": "error", "to": "sorry" },
            ],
        }),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_arrives_whatever_fails() -> anyhow::Result<()> {
    let seed = setting("FAULTS_SEED", rand::random::<u32>().into());
    eprintln!("faults: FAULTS_SEED={seed}");
    let receiver = Receiver::start(seed, Manner::Flaky).await?;
    let mut redis = Redis::start().await?;
    let site = Site::new(
        &redis,
        &SiteOptions { ports: vec![receiver.port], retries: RETRIES.to_vec(), ..SiteOptions::default() },
    )?;
    let server = site.start().await?;
    let caller = site.caller(0)?;
    for definition in definitions(&receiver.url()) {
        caller.deploy(&definition).await?;
    }
    let book = Arc::new(Book::default());
    let mut crew = callers(&book, &caller);
    let storm = storm(seed, &site, &mut redis, server, (&book, &receiver)).await?;
    book.closed.store(true, Ordering::Relaxed);
    while let Some(ended) = crew.join_next().await {
        ended??;
    }
    let sorry = calm(&book, &caller, &receiver).await?;
    let dead = caller.effects_that_are("dead_letter").await?;
    let dead: BTreeSet<String> = dead.iter().map(|effect| path_of(&effect.to)).collect();
    assess(&storm.faults, &book, &receiver.attempts(), (&dead, &sorry))?;
    storm.server.kill().await?;
    let said = site.said()?;
    ensure!(!said.contains("panicked") && !said.contains("ERROR"), "the servers said:\n{said}");
    Ok(())
}

/// Callers that start sessions until the book is closed, and write down each that was acknowledged.
fn callers(book: &Arc<Book>, caller: &Caller) -> JoinSet<anyhow::Result<()>> {
    let mut crew = JoinSet::new();
    for _ in 0..CALLERS {
        let (book, caller) = (Arc::clone(book), caller.clone());
        crew.spawn(async move {
            while !book.closed.load(Ordering::Relaxed) {
                let number = book.next.fetch_add(1, Ordering::Relaxed);
                let definition = definition_of(number);
                caller.begin(definition, number).await.with_context(|| format!("{definition}-{number}"))?;
                book.acknowledged.lock().insert(number);
                sleep(BETWEEN).await;
            }
            Ok(())
        });
    }
    crew
}

fn definition_of(number: u64) -> &'static str {
    if number.is_multiple_of(REQUEST_EACH) { "order" } else { "tell" }
}

/// The paths that an acknowledged session must have asked for.
fn paths(number: u64) -> Vec<String> {
    match definition_of(number) {
        "order" => vec![format!("/{number}/order")],
        _ => MESSAGES.iter().map(|message| format!("/{number}/{message}")).collect(),
    }
}

fn path_of(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.find('/').map_or_else(String::new, |at| rest[at..].to_owned())
}

/// What is left after the faults.
struct Storm {
    server: Server,
    faults: Vec<Fault>,
}

/// Makes faults, each kind in each round, until the time is over and each kind was there often enough. The last one is a
/// kill of the server, after which what Redis lost goes out at once.
async fn storm(
    seed: u64,
    site: &Site,
    redis: &mut Redis,
    mut server: Server,
    (book, receiver): (&Book, &Receiver),
) -> anyhow::Result<Storm> {
    let mut rng = StdRng::seed_from_u64(seed);
    let time = Duration::from_secs(setting("FAULTS_SECONDS", 45));
    let rounds = usize::try_from(time.as_secs() / 40)?.max(EACH_MIN);
    let number = rounds * KINDS.len();
    let pause = time.div_f64(number as f64);
    let (begun, mut faults) = (Instant::now(), Vec::new());
    let mut next = begun;
    for round in 0..rounds {
        let mut kinds = KINDS;
        kinds.shuffle(&mut rng);
        for kind in kinds.into_iter().chain((round + 1 == rounds).then_some(Kind::ServerKilled)) {
            next += pause.mul_f64(rng.random_range(0.5..1.5));
            sleep(next.saturating_duration_since(Instant::now())).await;
            let struck = Instant::now();
            server = strike(kind, site, redis, server).await.with_context(|| format!("{kind:?}"))?;
            faults.push(Fault { kind, begun: struck, ended: Instant::now() });
        }
        let (acknowledged, came) = (book.acknowledged.lock().len(), receiver.count());
        eprintln!(
            "  round {} of {rounds}, {:.0?}: {} faults, {acknowledged} sessions acknowledged, {came} attempts",
            round + 1,
            begun.elapsed(),
            faults.len()
        );
    }
    Ok(Storm { server, faults })
}

/// Makes one fault, and mends it.
async fn strike(kind: Kind, site: &Site, redis: &mut Redis, server: Server) -> anyhow::Result<Server> {
    match kind {
        Kind::ServerKilled => {
            server.kill().await?;
            return site.start().await;
        }
        Kind::RedisKilled => {
            redis.kill().await?;
            redis.run().await?;
        }
        Kind::RedisFlushed => drop(redis.ask("FLUSHALL").await?),
        Kind::Stalled => {
            server.signal("STOP").await?;
            sleep(Duration::from_secs(1)).await;
            server.signal("CONT").await?;
        }
        Kind::CutOff => drop(redis.ask("CLIENT KILL TYPE normal SKIPME yes").await?),
    }
    Ok(server)
}

/// Waits until no effect is pending. Returns the requests that were given up, as their sessions show.
async fn calm(book: &Book, caller: &Caller, receiver: &Receiver) -> anyhow::Result<BTreeSet<String>> {
    let (begun, mut sorry) = (Instant::now(), BTreeSet::new());
    let acknowledged: Vec<u64> = book.acknowledged.lock().iter().copied().collect();
    let mut open: Vec<u64> =
        acknowledged.into_iter().filter(|number| definition_of(*number) == "order").collect();
    loop {
        let mut still = Vec::new();
        for number in open {
            let session = caller.session(&format!("order-{number}")).await?;
            match session.at.first().map(String::as_str) {
                Some("fine") => {}
                Some("sorry") => drop(sorry.insert(format!("/{number}/order"))),
                _ => still.push(number),
            }
        }
        open = still;
        let pending = caller.effects_that_are("pending").await?;
        eprintln!(
            "  {:.0?} after the last fault: {} messages and {} requests have not arrived, {} attempts",
            begun.elapsed(),
            pending.len(),
            open.len(),
            receiver.count()
        );
        if pending.is_empty() && open.is_empty() {
            return Ok(sorry);
        }
        ensure!(begun.elapsed() < LAST_MAX, "these do not arrive: {open:?} {pending:?}");
        sleep(Duration::from_secs(5)).await;
    }
}

/// Returns true if an attempt was in flight during this fault, as far as the receiver knows.
fn under_way(attempt: &Attempt, fault: &Fault) -> bool {
    attempt.begun <= fault.ended + MENDED && attempt.ended + UNRECORDED >= fault.begun
}

/// Checks what the receiver has seen of the acknowledged effects.
fn assess(
    faults: &[Fault],
    book: &Book,
    attempts: &[Attempt],
    (dead, sorry): (&BTreeSet<String>, &BTreeSet<String>),
) -> anyhow::Result<()> {
    let mut seen: BTreeMap<&str, Vec<&Attempt>> = BTreeMap::new();
    for attempt in attempts {
        seen.entry(&attempt.path).or_default().push(attempt);
    }
    let acknowledged: Vec<u64> = book.acknowledged.lock().iter().copied().collect();
    let wanted: Vec<String> = acknowledged.into_iter().flat_map(paths).collect();
    let taken = |path: &str| {
        let all = seen.get(path).into_iter().flatten();
        all.filter(|attempt| attempt.outcome == Outcome::Accepted).copied().collect::<Vec<_>>()
    };
    let lost = |path: &&String| taken(path).is_empty() && !dead.contains(*path) && !sorry.contains(*path);
    let lost: Vec<&String> = wanted.iter().filter(lost).collect();
    ensure!(lost.is_empty(), "{} of {} effects are lost: {lost:?}", lost.len(), wanted.len());

    let mut owners: BTreeMap<&str, &str> = BTreeMap::new();
    let mut twice = 0;
    for path in &wanted {
        let (all, taken) = (seen.get(path.as_str()).cloned().unwrap_or_default(), taken(path));
        for attempt in &all {
            ensure!(!attempt.id.is_empty(), "an attempt has no id: {attempt:?}");
            let owner = owners.entry(&attempt.id).or_insert(path);
            ensure!(*owner == path, "{} is the id of {owner} and of {path}", attempt.id);
        }
        // The definition retries a request that was answered with an error as a new one; a retried message keeps its id, and
        // so does a request that may have been carried out.
        let same = if path.ends_with("/order") { &taken } else { &all };
        ensure!(same.windows(2).all(|two| two[0].id == two[1].id), "{path} has several ids: {same:?}");
        let explained = faults.iter().filter(|fault| taken.iter().any(|one| under_way(one, fault))).count();
        let again = taken.len().saturating_sub(1);
        ensure!(
            again <= explained,
            "{path} was taken {again} times too often, at {explained} faults: {taken:?}"
        );
        twice += again;
    }
    let on_way = |fault: &Fault| {
        let paths = attempts.iter().filter(|attempt| under_way(attempt, fault)).map(|one| one.path.as_str());
        paths.collect::<BTreeSet<_>>().len().min(OUT)
    };
    let bound: usize = faults.iter().map(on_way).sum();
    ensure!(twice <= bound, "{twice} came twice, {bound} were on their way at faults");
    let failed = attempts.iter().filter(|attempt| attempt.outcome == Outcome::Failed).count();
    eprintln!(
        "faults: {} effects, none lost, {} dead letters, {} requests given up; {} attempts, {failed} failed; {twice} came \
         twice, {bound} were on their way at {} faults",
        wanted.len(),
        dead.len(),
        sorry.len(),
        attempts.len(),
        faults.len()
    );
    for kind in KINDS {
        let times = faults.iter().filter(|fault| fault.kind == kind).count();
        ensure!(times >= EACH_MIN, "{kind:?} happened {times} times: this shows too little");
    }
    ensure!(wanted.len() >= EFFECTS_MIN, "{} effects show too little", wanted.len());
    let share = failed * 100 / attempts.len().max(1);
    ensure!((20..=40).contains(&share), "{share} of 100 attempts failed");
    Ok(())
}
