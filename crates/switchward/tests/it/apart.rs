//! Two servers that were given the same Redis and the same prefix: neither takes what is the other's.

use anyhow::ensure;
use serde_json::json;
use std::time::{Duration, Instant};
use tokio::time::sleep;

use crate::receiver::{Manner, Receiver};
use crate::site::{Redis, Site, SiteOptions};

/// Requests of each server; with shared streams nearly half of them would reach the wrong delivery worker.
const REQUESTS: u64 = 20;
const PATIENCE: Duration = Duration::from_secs(90);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_under_one_prefix_stay_apart() -> anyhow::Result<()> {
    let redis = Redis::start().await?;
    let (mut servers, mut all) = (Vec::new(), Vec::new());
    for seed in 0..2 {
        // A delivery worker may only send to the receiver of its own server.
        let receiver = Receiver::start(seed, Manner::Good).await?;
        let site = Site::new(&redis, &SiteOptions { ports: vec![receiver.port], ..SiteOptions::default() })?;
        servers.push(site.start().await?);
        let asked = json!({ "type": "http_request", "config": {
            "method": "POST", "url": format!("{}/{{gathered_data.n}}", receiver.url()), "body": {}, "into": "order" } });
        let always = json!({ "from": "push", "to": "fine", "guards": [{ "type": "always" }] });
        let states = json!([
            { "name": "push", "type": "logic", "operations": [asked] }, { "name": "fine", "type": "conversation" } ]);
        let caller = site.caller(0)?;
        caller.deploy(&json!({ "name": "order", "states": states, "transitions": [always] })).await?;
        all.push((site, receiver, caller));
    }
    for number in 0..REQUESTS {
        for (_, _, caller) in &all {
            caller.begin("order", number).await?;
        }
    }
    let begun = Instant::now();
    for (site, receiver, caller) in &all {
        for number in 0..REQUESTS {
            while caller.session(&format!("order-{number}")).await?.at != ["fine"] {
                ensure!(begun.elapsed() < PATIENCE, "order-{number} has no answer");
                sleep(Duration::from_millis(20)).await;
            }
        }
        ensure!(receiver.count() == usize::try_from(REQUESTS)?, "{} attempts came", receiver.count());
        let owner = std::fs::read_to_string(site.path("data/ID"))?;
        let known = redis.ask(&format!("EXISTS switchward:{}:http", owner.trim())).await?;
        ensure!(known == ":1", "its stream has another name: {known}");
    }
    for server in servers {
        server.kill().await?;
    }
    Ok(())
}
