//! The runs of many seeds.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::process::play;
use crate::simulation::Outcome;

/// The seeds of `make test`.
const SEEDS: Range<u64> = 0..200;
/// One seed in this many is played twice.
const TWICE_IN: u64 = 10;

/// The seeds to play: `SIM_SEEDS` names others, as in `0..200`.
pub(crate) fn seeds(usual: Range<u64>) -> Range<u64> {
    let Ok(text) = std::env::var("SIM_SEEDS") else { return usual };
    let range = text.split_once("..").and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?));
    range.unwrap_or_else(|| panic!("SIM_SEEDS is {text:?}, and not a range such as 0..200"))
}

/// Calls a function with each seed, on as many threads as there are cores, until one returns false.
pub(crate) fn each(seeds: Range<u64>, work: impl Fn(u64) -> bool + Sync) {
    let next = AtomicU64::new(seeds.start);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        return;
                    }
                    if !work(seed) {
                        next.store(seeds.end, Ordering::Relaxed);
                    }
                }
            });
        }
    });
}

/// What all runs have shown.
#[derive(Default)]
struct Sum {
    known: u64,
    faults: BTreeMap<String, u64>,
    counts: BTreeMap<String, u64>,
    bad: Vec<u64>,
}

impl Sum {
    fn add(&mut self, outcome: &Outcome) {
        let add = |sum: &mut BTreeMap<String, u64>, more: &BTreeMap<String, u64>| {
            more.iter().for_each(|(what, count)| *sum.entry(what.clone()).or_default() += count);
        };
        self.known += outcome.known;
        add(&mut self.faults, &outcome.faults);
        add(&mut self.counts, &outcome.counts);
    }
}

/// Plays the run of a seed, some twice. Returns its outcome, and why it shows that something is wrong, or shows nothing.
fn examine(seed: u64) -> (Outcome, Option<String>) {
    let outcome = match play(seed, None) {
        Ok(outcome) => outcome,
        Err(why) => return (Outcome::default(), Some(why)),
    };
    let objection = outcome.objection();
    if objection.is_some() || !seed.is_multiple_of(TWICE_IN) {
        return (outcome, objection);
    }
    let again = play(seed, None).map(|again| again.hash);
    let differs = again != Ok(outcome.hash);
    let hash = outcome.hash;
    (
        outcome,
        differs.then(|| format!("the run is another one when it is repeated: {hash:016x} and {again:x?}")),
    )
}

#[test]
fn servers_keep_their_promises_under_faults() {
    let sum = Mutex::new(Sum::default());
    each(seeds(SEEDS), |seed| {
        let started = Instant::now();
        let (outcome, objection) = examine(seed);
        let (took, again) = (started.elapsed().as_millis(), format!("SIM_SEEDS={seed}..{}", seed + 1));
        let Outcome { known, begun, hash, .. } = outcome;
        let mut sum = sum.lock();
        println!("{again}: {known} of {begun} outcomes known, {hash:016x}, {took} ms");
        if let Some(why) = objection {
            println!("{again}: {why}");
            sum.bad.push(seed);
        }
        sum.add(&outcome);
        true
    });
    let Sum { known, faults, counts, bad } = sum.into_inner();
    println!("{known} operations\nfaults: {faults:#?}\nseen: {counts:#?}");
    assert_eq!(bad, Vec::<u64>::new(), "these seeds fail");
}
