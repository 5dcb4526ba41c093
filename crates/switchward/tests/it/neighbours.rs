//! Receivers that hang and receivers that send everybody away, beside those who work: what goes to the latter does not
//! wait for the former, whether they are another tenant's or another endpoint of the same one.

use anyhow::ensure;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::{task::JoinSet, time::sleep};

use crate::receiver::{Manner, Receiver};
use crate::site::{Caller, Redis, Site, SiteOptions};

/// Messages, and requests, that are measured in each half.
const MEASURED: u64 = 40;
/// Messages to each failing receiver, and requests of each tenant to the hanging one: more than may be in flight to it, and
/// more requests than the relay can skip in one scan.
const NOISE: u64 = 150;
const NOISE_REQUESTS: u64 = 1_500;
/// Concurrent requests to two destinations of two tenants on both shards together: each gets at most a seventh of the free
/// permits, of 128. And messages, while the state of the destination is unknown.
const OUT: usize = 2 * 30;
const OUT_UNKNOWN: usize = 2 * 2 * 2;
/// Two tenants have one request and one message of theirs hang each.
const HANGING: usize = OUT + OUT_UNKNOWN;
/// Callers that start at one time what sends all of that.
const STARTERS: usize = 16;
/// How much longer the median and the slowest may take beside them, and the part of each that is noise. A delivery that
/// waited for a hanging one would take 20 seconds.
const LONGER_MAX: f64 = 4.0;
const WHIM: Took = Took { middle: Duration::from_millis(100), slowest: Duration::from_secs(1) };
const PATIENCE: Duration = Duration::from_secs(90);

/// Definitions of a tenant: `post` and `ask` to the one receiver, `post-other` and `ask-other` to the other one.
fn definitions(url: &str, other: &str) -> Vec<Value> {
    let mut all = Vec::new();
    for (suffix, url) in [("", url), ("-other", other)] {
        let to = format!("{url}/{{gathered_data.n}}");
        let states = json!([
            { "name": "told", "type": "output", "target": "webhook", "template": "x", "recipients": [to] },
            { "name": "fine", "type": "conversation" } ]);
        let transitions = json!([{ "from": "told", "port": "done", "to": "fine" }]);
        all.push(json!({ "name": format!("post{suffix}"), "states": states, "transitions": transitions }));
        let asked = json!({ "type": "http_request", "config": {
            "method": "POST", "url": to, "body": {}, "into": "order" } });
        let states = json!([
            { "name": "push", "type": "logic", "operations": [asked] }, { "name": "fine", "type": "conversation" } ]);
        let transitions = json!([{ "from": "push", "to": "fine", "guards": [{ "type": "always" }] }]);
        all.push(json!({ "name": format!("ask{suffix}"), "states": states, "transitions": transitions }));
    }
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whose_receiver_hangs_or_is_busy_delays_nobody_else() -> anyhow::Result<()> {
    let [good, hangs, busy] = [Manner::Good, Manner::Hangs, Manner::Busy(3_600)];
    let (good, hangs, busy) =
        (Receiver::start(1, good).await?, Receiver::start(2, hangs).await?, Receiver::start(3, busy).await?);
    let redis = Redis::start().await?;
    let ports = vec![good.port, hangs.port, busy.port];
    let site = Site::new(
        &redis,
        &SiteOptions { tenants: 3, ports, retries: vec![3_600], ..SiteOptions::default() },
    )?;
    let server = site.start().await?;
    let callers = [site.caller(0)?, site.caller(1)?, site.caller(2)?];
    let urls = [(&good, &hangs), (&hangs, &hangs), (&busy, &busy)];
    for (caller, (one, other)) in callers.iter().zip(urls) {
        for definition in definitions(&one.url(), &other.url()) {
            caller.deploy(&definition).await?;
        }
    }
    let quiet =
        [measured(&callers[0], &good, "post", 0).await?, measured(&callers[0], &good, "ask", 1_000).await?];
    // Messages last: they are given up sooner than requests, and all are to hang at one time.
    let [_, hung, sent_away] = &callers;
    noise(20_000, NOISE_REQUESTS, &[(hung, "ask"), (&callers[0], "ask-other")]).await?;
    noise(10_000, NOISE, &[(hung, "post"), (sent_away, "post"), (&callers[0], "post-other")]).await?;
    // Each of the four kinds that hang is out as often as it may be.
    until("attempts hang", HANGING, || hangs.hanging_most()).await?;
    let beside = [
        measured(&callers[0], &good, "post", 2_000).await?,
        measured(&callers[0], &good, "ask", 3_000).await?,
    ];
    let most = hangs.hanging_most();
    ensure!(most == HANGING, "{most} attempts hung at one time, {HANGING} may");
    // It is left alone the longer the more it sends away, and what waits for it waits in the outbox.
    ensure!(busy.count() > 0, "{} were sent away", busy.count());
    for (what, (quiet, beside)) in ["messages", "requests"].into_iter().zip(quiet.into_iter().zip(beside)) {
        eprintln!("  {what}: {quiet:.0?} alone, {beside:.0?} beside {most} that hang");
        let longer = |quiet: Duration, whim: Duration| quiet.max(whim).mul_f64(LONGER_MAX);
        ensure!(
            beside.middle <= longer(quiet.middle, WHIM.middle)
                && beside.slowest <= longer(quiet.slowest, WHIM.slowest),
            "{what} take {beside:?} beside the others, {quiet:?} alone"
        );
    }
    server.kill().await
}

/// Starts this many sessions of each, several at one time.
async fn noise(first: u64, count: u64, kinds: &[(&Caller, &'static str)]) -> anyhow::Result<()> {
    let mut starters = JoinSet::new();
    for starter in first..first + STARTERS as u64 {
        let kinds: Vec<_> =
            kinds.iter().map(|(caller, definition)| ((*caller).clone(), *definition)).collect();
        starters.spawn(async move {
            for number in (starter..first + count).step_by(STARTERS) {
                for (caller, definition) in &kinds {
                    caller.begin(definition, number).await?;
                }
            }
            anyhow::Ok(())
        });
    }
    while let Some(started) = starters.join_next().await {
        started??;
    }
    Ok(())
}

/// Waits until there are this many.
async fn until(what: &str, wanted: usize, count: impl Fn() -> usize) -> anyhow::Result<()> {
    let begun = Instant::now();
    while count() < wanted {
        ensure!(begun.elapsed() < PATIENCE, "{what}: {} of {wanted}", count());
        sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}

/// How long it takes from the answer to a start until the receiver has what the session sends.
#[derive(Debug, Clone, Copy)]
struct Took {
    middle: Duration,
    slowest: Duration,
}

async fn measured(
    caller: &Caller,
    good: &Arc<Receiver>,
    definition: &str,
    first: u64,
) -> anyhow::Result<Took> {
    let mut each = Vec::new();
    for number in first..first + MEASURED {
        let before = good.count();
        caller.begin(definition, number).await?;
        let begun = Instant::now();
        until("attempts came", before + 1, || good.count()).await?;
        each.push(begun.elapsed());
    }
    each.sort_unstable();
    Ok(Took { middle: each[each.len() / 2], slowest: each[each.len() - 1] })
}
