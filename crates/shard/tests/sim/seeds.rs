//! The runs of many seeds.

use parking_lot::Mutex;
use std::ops::Range;
use std::time::Instant;
use switchward_testkit::{Counts, cores, each_seed, named_seeds, none_failed};

use crate::process::play;
use crate::simulation::Outcome;

/// The seeds of `make test`.
const SEEDS: Range<u64> = 0..200;
/// One seed in this many is played twice.
const TWICE_IN: u64 = 10;

/// The seeds to play: `SIM_SEEDS` names others.
pub(crate) fn seeds(usual: Range<u64>) -> Range<u64> {
    named_seeds("SIM_SEEDS").unwrap_or(usual)
}

/// Calls a function with each seed, on as many threads as there are cores, until one returns false.
pub(crate) fn each(seeds: Range<u64>, work: impl Fn(u64) -> bool + Sync) {
    each_seed(seeds, cores(), || (), |(), seed| work(seed));
}

/// What a run has shown, by the names under which `make sim` adds it up.
fn counts(outcome: &Outcome) -> Counts {
    let mut counts = Counts::default();
    counts.add("runs");
    counts.add_many("operations", outcome.begun);
    counts.add_many("operations of known outcome", outcome.known);
    outcome.faults.iter().for_each(|(kind, count)| counts.add_many(&format!("fault: {kind}"), *count));
    outcome.counts.iter().for_each(|(what, count)| counts.add_many(&format!("seen: {what}"), *count));
    counts
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
    let (seeds, sum) = (seeds(SEEDS), Mutex::new((Counts::default(), Vec::new())));
    each(seeds.clone(), |seed| {
        let started = Instant::now();
        let (outcome, objection) = examine(seed);
        let (took, again) = (started.elapsed().as_millis(), format!("SIM_SEEDS={seed}..{}", seed + 1));
        let Outcome { known, begun, hash, .. } = outcome;
        let (seen, bad) = &mut *sum.lock();
        println!("{again}: {known} of {begun} outcomes known, {hash:016x}, {took} ms");
        seen.add_all(&counts(&outcome));
        if let Some(why) = objection {
            println!("{again}: {why}");
            seen.add("runs that failed");
            bad.push(seed);
        }
        true
    });
    let (seen, bad) = sum.into_inner();
    println!("{}", seen.lines(&seeds));
    none_failed(bad, "SIM_SEEDS", "sim");
}
