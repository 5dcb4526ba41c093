//! Receivers that hang and receivers that send everybody away, beside those who work: what goes to the latter does not
//! wait for the former, whether they are another tenant's or another endpoint of the same one.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::ensure;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::receiver::{Manner, Receiver};
use crate::site::{Caller, Redis, Site, Wish};

/// Messages, and requests, that are measured in each half.
const MEASURED: u64 = 40;
/// Messages to each receiver that is of no use, and requests of each tenant to the one that hangs: more than may be out to
/// it at one time, and of requests more than one look of whoever sends them out could pass over.
const NOISE: u64 = 150;
const NOISE_REQUESTS: u64 = 1_500;
/// Requests that may be out at one time to two places of two tenants on both shards together: each has no more than a
/// seventh of what is free, of 128. And messages, where nobody knows yet whether the place takes any.
const OUT: usize = 2 * 30;
const OUT_UNKNOWN: usize = 2 * 2 * 2;
/// Two tenants have one request and one message of theirs hang each.
const HANGING: usize = OUT + OUT_UNKNOWN;
/// How much longer the slowest of a hundred may take beside them, and what is not told apart from a machine's whims.
const LONGER_MAX: f64 = 4.0;
const WHIM: Duration = Duration::from_millis(250);
const PATIENCE: Duration = Duration::from_secs(30);

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
    let site = Site::new(&redis, &Wish { tenants: 3, ports, retries: vec![3_600], ..Wish::default() })?;
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
    for number in 10_000..10_000 + NOISE {
        callers[1].begin("post", number).await?;
        callers[2].begin("post", number).await?;
        callers[0].begin("post-other", number).await?;
    }
    for number in 20_000..20_000 + NOISE_REQUESTS {
        tokio::try_join!(callers[1].begin("ask", number), callers[0].begin("ask-other", number))?;
    }
    // Each of the four kinds that hang is out as often as it may be.
    until(&hangs, HANGING).await?;
    let beside = [
        measured(&callers[0], &good, "post", 2_000).await?,
        measured(&callers[0], &good, "ask", 3_000).await?,
    ];
    ensure!(hangs.count() == HANGING, "{} attempts hang at one time, {} may", hangs.count(), HANGING);
    // It is left alone the longer the more it sends away, and what waits for it waits in the outbox.
    ensure!(busy.count() > 0, "{} were sent away", busy.count());
    for (what, (quiet, beside)) in ["messages", "requests"].into_iter().zip(quiet.into_iter().zip(beside)) {
        eprintln!("  {what}: p99 {quiet:.0?} alone, {beside:.0?} beside {} that hang", hangs.count());
        let most = quiet.max(WHIM).mul_f64(LONGER_MAX);
        ensure!(beside <= most, "{what} take {beside:?} beside the others, {quiet:?} alone");
    }
    server.kill().await
}

/// Waits until so many attempts were noted.
async fn until(receiver: &Arc<Receiver>, count: usize) -> anyhow::Result<()> {
    let begun = Instant::now();
    while receiver.count() < count {
        ensure!(begun.elapsed() < PATIENCE, "{} of {count} attempts came", receiver.count());
        sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}

/// How long it takes from the answer to a start until the receiver has what the session sends: the slowest but for one
/// of a hundred.
async fn measured(
    caller: &Caller,
    good: &Arc<Receiver>,
    definition: &str,
    first: u64,
) -> anyhow::Result<Duration> {
    let mut each = Vec::new();
    for number in first..first + MEASURED {
        let before = good.count();
        caller.begin(definition, number).await?;
        let begun = Instant::now();
        until(good, before + 1).await?;
        each.push(begun.elapsed());
    }
    each.sort_unstable();
    let at = (each.len() * 99).div_ceil(100).saturating_sub(1);
    Ok(each[at])
}
