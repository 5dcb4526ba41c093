//! Three servers as processes over real disks and a real Redis, under faults that are drawn from a seed: kills, pauses, disks
//! that hang, wrong clocks, and links that are cut, late, slow or reset. What callers did and were answered is recorded, and
//! must be what one server could have answered that never fails.
//!
//! A round has a seed. Its faults overlap in pairs, one of processes and one of links; then nothing fails any longer, and
//! callers go on for a while. All rounds are played on one cluster.

mod calls;
mod checks;
mod definitions;
mod faults;
mod harness;
mod plan;
mod records;
mod round;
mod workload;

use anyhow::ensure;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::receiver::{Manner, Receiver};
use crate::setting;
use harness::Cluster;
use round::{Outcome, Site};

/// The seeds of `make test`. Two seeds in a row have all kinds of faults.
const SEEDS: Range<u64> = 0..6;
/// The outcomes that must be known, of 100.
const KNOWN_MIN: u64 = 80;

/// The seeds to play: `CLUSTER_FAULT_SEEDS` names others, as in `0..200`.
fn seeds() -> Range<u64> {
    let Some(text) = std::env::var("CLUSTER_FAULT_SEEDS").ok().filter(|text| !text.is_empty()) else {
        return SEEDS;
    };
    let range = text.split_once("..").and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?));
    range.unwrap_or_else(|| panic!("CLUSTER_FAULT_SEEDS is {text:?}, and not a range such as 0..200"))
}

/// What all rounds have shown.
#[derive(Default)]
struct Sum {
    faults: BTreeMap<&'static str, usize>,
    operations: BTreeMap<&'static str, u64>,
    bad: Vec<u64>,
}

impl Sum {
    fn add(&mut self, outcome: &Outcome) {
        for fault in &outcome.faults {
            *self.faults.entry(fault.kind.name()).or_default() += 1;
        }
        for (kind, count) in &outcome.operations {
            *self.operations.entry(kind).or_default() += count;
        }
    }
}

/// Why a round is wrong, or shows nothing.
fn objections(outcome: &Outcome) -> Vec<String> {
    let mut all = outcome.wrong.clone();
    if outcome.known * 100 < outcome.begun * KNOWN_MIN {
        all.push(format!("it is empty: {} of {} outcomes are known", outcome.known, outcome.begun));
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_keeps_its_promises_under_faults() -> anyhow::Result<()> {
    let time = Duration::from_secs(setting("CLUSTER_FAULT_SECONDS", 600));
    let begun = Instant::now();
    let receiver = Receiver::start(SEEDS.start, Manner::Good).await?;
    let cluster = Arc::new(Cluster::start().await?);
    let site = Site::prepare(cluster, Arc::clone(&receiver)).await?;
    let (mut sum, mut effects) = (Sum::default(), checks::Effects::default());
    for seed in seeds().take_while(|_| begun.elapsed() < time) {
        let name = format!("CLUSTER_FAULT_SEEDS={seed}..{}", seed + 1);
        let outcome = round::play(&site, seed).await.map_err(|error| error.context(name.clone()))?;
        eprintln!("{name}: {outcome}");
        let objections = objections(&outcome);
        if !objections.is_empty() {
            objections.iter().for_each(|why| eprintln!("{name}: {why}"));
            sum.bad.push(seed);
        }
        sum.add(&outcome);
        effects.add(outcome);
    }
    eprintln!("faults: {:#?}\noperations: {:#?}", sum.faults, sum.operations);
    ensure!(
        sum.bad.is_empty(),
        "these seeds fail: {:?}; the servers said:\n{}",
        sum.bad,
        site.cluster.said()
    );
    effects.settle(&receiver).await?;
    let said = site.cluster.said();
    ensure!(!said.contains("panicked"), "a server panicked:\n{said}");
    Ok(())
}
