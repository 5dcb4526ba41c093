//! Three servers as processes over real disks and a real Redis, under faults that are drawn from a seed: kills, power cuts,
//! pauses, disks that hang or fail, wrong clocks, links that are cut, late, slow or reset, and a Redis that is killed or emptied.
//! What callers did and were answered is recorded, and must be what one server could have answered that never fails.
//!
//! A round has a seed. Its faults overlap in pairs, one of servers and one of links or Redis; then nothing fails any longer, and
//! callers go on for a while. All rounds are played on one cluster.

mod calls;
mod checks;
mod definitions;
mod disks;
mod endings;
mod faults;
mod harness;
mod plan;
mod records;
mod replicas;
mod round;
mod workload;

use anyhow::ensure;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};
use switchward_testkit::{Counts, named_seeds};

use crate::receiver::{Manner, Receiver};
use crate::setting;
use harness::Cluster;
use round::{Outcome, Site};

/// The seeds of `make test`. Two seeds in a row have all kinds of faults.
const SEEDS: Range<u64> = 0..6;

/// What all rounds have shown.
struct Sum {
    /// The seeds that were played.
    played: Range<u64>,
    seen: Counts,
    bad: Vec<u64>,
    effects: checks::Effects,
}

/// Why a round is wrong, or shows nothing.
fn objections(outcome: &Outcome) -> Vec<String> {
    let mut all = outcome.wrong.clone();
    if !outcome.endings.show_something() {
        all.push(format!("it is empty: {}", outcome.endings));
    }
    if outcome.faults.len() < outcome.planned {
        all.push(format!(
            "it is empty: {} of {} faults were injected",
            outcome.faults.len(),
            outcome.planned
        ));
    }
    all
}

/// Plays rounds until all seeds were played or the time is over.
///
/// # Errors
/// A round could not be played to its end.
async fn rounds(site: &Site, seeds: Range<u64>, sum: &mut Sum) -> anyhow::Result<()> {
    let (begun, time) = (Instant::now(), Duration::from_secs(setting("CLUSTER_FAULT_SECONDS", 600)));
    for seed in seeds {
        let took = begun.elapsed();
        if took >= time {
            break;
        }
        let name = format!("CLUSTER_FAULT_SEEDS={seed}..{}", seed + 1);
        sum.played.end = seed + 1;
        sum.seen.add("rounds");
        let outcome = round::play(site, seed).await;
        sum.seen.add_many("seconds played", (begun.elapsed() - took).as_secs());
        let outcome = match outcome {
            Ok(outcome) => outcome,
            Err(error) => {
                eprintln!("{name}: {error:#}");
                sum.seen.add("rounds that failed");
                return Err(error.context(name));
            }
        };
        eprintln!("{name}: {outcome}");
        let objections = objections(&outcome);
        if !objections.is_empty() {
            objections.iter().for_each(|why| eprintln!("{name}: {why}"));
            sum.seen.add("rounds that failed");
            sum.bad.push(seed);
        }
        sum.seen.add_all(&outcome.seen);
        sum.effects.add(outcome);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_keeps_its_promises_under_faults() -> anyhow::Result<()> {
    let receiver = Receiver::start(SEEDS.start, Manner::Good).await?;
    let cluster = Arc::new(Cluster::start().await?);
    let site = Site::prepare(cluster, Arc::clone(&receiver)).await?;
    let seeds = named_seeds("CLUSTER_FAULT_SEEDS").unwrap_or(SEEDS);
    let (seen, bad, effects) = Default::default();
    let mut sum = Sum { played: seeds.start..seeds.start, seen, bad, effects };
    let played = rounds(&site, seeds, &mut sum).await;
    let settled = match played {
        Ok(()) => {
            let settled = sum.effects.settle(&receiver, &mut sum.seen).await;
            // No round shows it, and the sum of several runs must.
            if settled.is_err() {
                sum.seen.add("runs whose messages failed");
            }
            settled
        }
        Err(error) => Err(error),
    };
    let panic = site.cluster.panic();
    if !matches!(panic, Ok(None)) {
        sum.seen.add("runs in which a server panicked");
    }
    println!("{}", sum.seen.lines(&sum.played));
    ensure!(
        sum.bad.is_empty(),
        "these seeds fail: {:?}; the servers said:\n{}",
        sum.bad,
        site.cluster.said()
    );
    settled?;
    let panic = panic?;
    ensure!(panic.is_none(), "a server panicked: {panic:?}");
    Ok(())
}
