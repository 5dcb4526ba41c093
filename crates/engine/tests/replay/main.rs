//! State built live equals state replayed from the first decision, over random definitions and random commands.
//!
//! Every run is determined by its seed; a failing test names it. `ENGINE_TEST_SEED` runs one seed,
//! `ENGINE_TEST_RUNS` several.

#![expect(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test looks at what it is about, and stops where it cannot go on"
)]

mod caps;
mod commands;
mod counted;
mod definitions;
mod harness;
mod oracle;
mod planted;
mod rng;
mod rows;
mod votes;

use harness::{Mode, Seen, play};
use std::ops::Range;
use switchward_engine::evolve;

/// Steps of a run that is replayed at its end.
const STEPS: usize = 200;
const RUNS: u64 = 150;
/// Steps of a run that is replayed after every step.
const STEPS_RESTARTED: usize = 50;
const RUNS_RESTARTED: u64 = 30;

/// Kinds of event that the runs produce: all of them.
const EVENT_KINDS: usize = 41;

#[test]
fn what_was_built_live_is_what_a_replay_builds() {
    let mut seen = Seen::default();
    let seeds = seeds(1, RUNS);
    for seed in seeds.clone() {
        let harness = play(seed, STEPS, Mode::Live, evolve);
        seen.add(&harness.unwrap_or_else(|broken| panic!("seed {seed}: {broken}")));
    }
    // The runs must cover enough to be worth something.
    if seeds == (1..1 + RUNS) {
        let rare: Vec<_> = seen.events().filter(|(_, count)| *count < 3).collect();
        assert!(rare.is_empty(), "events that hardly happen: {rare:?}");
        assert_eq!(seen.events().count(), EVENT_KINDS, "{seen:?}");
        assert!(seen.rejections() > 1_000 && seen.repetitions() > 200, "{seen:?}");
    }
}

#[test]
fn so_it_is_with_a_restart_after_every_step() {
    for seed in seeds(1_000, RUNS_RESTARTED) {
        let harness = play(seed, STEPS_RESTARTED, Mode::RestartAlways, evolve);
        harness.unwrap_or_else(|broken| panic!("seed {seed}: {broken}"));
    }
}

/// The seeds of a test: `runs` of them from the first one, unless the environment overrides it.
#[expect(clippy::disallowed_methods, reason = "a search for a failure names seeds by the environment")]
fn seeds(first: u64, runs: u64) -> Range<u64> {
    let number = |name| std::env::var(name).ok().and_then(|text: String| text.parse::<u64>().ok());
    match (number("ENGINE_TEST_SEED"), number("ENGINE_TEST_RUNS")) {
        (Some(seed), runs) => seed..seed + runs.unwrap_or(1),
        (None, more) => first..first + more.unwrap_or(runs),
    }
}
