//! The runs of many seeds, in four tests that run side by side.

use std::ops::Range;
use std::sync::Mutex;
use switchward_testkit::{Counts, Rows, caught, cores, each_seed, named_seeds, none_failed};

use crate::phases::{Outcome, installed, play};
use crate::plan::FAULTS;

/// The seeds of `make test`.
const SEEDS: Range<u64> = 0..2_000;
/// Tests that share the seeds.
const PARTS: u64 = 4;
/// One seed in this many is played twice.
const TWICE_IN: u64 = 20;
/// Every kind of fault must occur in this many runs.
const RUNS_FOR_ALL_FAULTS: u64 = 250;

/// The seeds that `ORDER_SEEDS` names.
pub(crate) fn named() -> Option<Range<u64>> {
    named_seeds("ORDER_SEEDS")
}

/// Plays the run of a seed, some twice: both must be the same.
fn examine(rows: &Rows, seed: u64) -> Result<Outcome, String> {
    let outcome = play(rows, seed, None)?;
    if (seed / PARTS).is_multiple_of(TWICE_IN) {
        let again = play(rows, seed, None)?.hash;
        if again != outcome.hash {
            let hash = outcome.hash;
            return Err(format!("the run is another one when it is repeated: {hash:016x} and {again:016x}"));
        }
    }
    Ok(outcome)
}

/// Plays one of the parts, and prints what it has shown: a line for each kind, which `make order` adds up over the parts and
/// over the ranges of several runs.
#[expect(clippy::disallowed_macros, reason = "`make order` shows what was played")]
fn part(number: u64) {
    let seeds = named().unwrap_or(SEEDS);
    let own = seeds.clone().filter(|seed| seed % PARTS == number);
    // The parts run side by side: together they use all cores.
    let threads = cores().div_ceil(PARTS as usize);
    let sum = Mutex::new((Counts::default(), Vec::new()));
    each_seed(own, threads, installed, |rows, seed| {
        let outcome = caught(|| examine(rows, seed));
        let mut sum = sum.lock().unwrap();
        let (seen, bad) = &mut *sum;
        seen.add("runs");
        match outcome {
            Ok(outcome) => seen.add_all(&outcome.seen),
            Err(why) => {
                println!("ORDER_SEEDS={seed}..{}: {why}", seed + 1);
                bad.push(seed);
                seen.add("runs that failed");
            }
        }
        true
    });
    let (seen, bad) = sum.into_inner().unwrap();
    // Where one test runs after the other, its name stands in the line.
    println!("\npart {number}:\n{}", seen.lines(&seeds));
    none_failed(bad, "ORDER_SEEDS", "order");
    if seen.of("runs") >= RUNS_FOR_ALL_FAULTS {
        let never: Vec<_> = FAULTS.into_iter().filter(|kind| seen.of(kind) == 0).collect();
        assert_eq!(never, Vec::<&str>::new(), "faults that never occurred: the runs show nothing about them");
    }
}

#[test]
fn limits_replies_effects_and_timers_hold_under_any_order_first_part() {
    part(0);
}

#[test]
fn limits_replies_effects_and_timers_hold_under_any_order_second_part() {
    part(1);
}

#[test]
fn limits_replies_effects_and_timers_hold_under_any_order_third_part() {
    part(2);
}

#[test]
fn limits_replies_effects_and_timers_hold_under_any_order_fourth_part() {
    part(3);
}
