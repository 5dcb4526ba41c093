//! The runs of many seeds, in four tests that run side by side.

use std::ops::Range;
use switchward_testkit::{Counts, named_seeds};

use crate::phases::{Outcome, caught, play};
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
fn examine(seed: u64) -> Result<Outcome, String> {
    let outcome = play(seed, None)?;
    if (seed / PARTS).is_multiple_of(TWICE_IN) {
        let again = play(seed, None)?.hash;
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
    let (mut seen, mut bad) = (Counts::default(), Vec::new());
    for seed in seeds.clone().filter(|seed| seed % PARTS == number) {
        seen.add("runs");
        match caught(|| examine(seed)) {
            Ok(outcome) => seen.add_all(&outcome.seen),
            Err(why) => {
                println!("ORDER_SEEDS={seed}..{}: {why}", seed + 1);
                bad.push(seed);
                seen.add("runs that failed");
            }
        }
    }
    // Where one test runs after the other, its name stands in the line.
    println!("\npart {number}:\n{}", seen.lines(&seeds));
    assert_eq!(bad, Vec::<u64>::new(), "these seeds fail");
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
