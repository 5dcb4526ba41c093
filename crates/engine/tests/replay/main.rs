//! State built live equals state replayed from the first decision, over random definitions and random commands.
//!
//! Every world follows from its seed; a failing test says which. `ENGINE_TEST_SEED` plays one seed,
//! `ENGINE_TEST_RUNS` more of them.

#![expect(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test looks at what it is about, and stops where it cannot go on"
)]

mod caps;
mod chance;
mod counted;
mod definitions;
mod oracle;
mod planted;
mod rows;
mod votes;
mod wishes;
mod world;

use std::ops::Range;
use switchward_engine::evolve;
use world::{Mode, Seen, play};

/// Steps of a world that is replayed at its end.
const STEPS: usize = 200;
const RUNS: u64 = 150;
/// Steps of a world that is replayed after every one of them.
const STEPS_RESTARTED: usize = 50;
const RUNS_RESTARTED: u64 = 30;

/// Kinds of event that worlds bring about: all that there are.
const EVENT_KINDS: usize = 41;

#[test]
fn what_was_built_live_is_what_a_replay_builds() {
    let mut seen = Seen::default();
    let seeds = seeds(1, RUNS);
    for seed in seeds.clone() {
        let world = play(seed, STEPS, Mode::Live, evolve);
        seen.add(&world.unwrap_or_else(|broken| panic!("seed {seed}: {broken}")));
    }
    // It would be worth little if the worlds were dull.
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
        let world = play(seed, STEPS_RESTARTED, Mode::RestartAlways, evolve);
        world.unwrap_or_else(|broken| panic!("seed {seed}: {broken}"));
    }
}

/// The seeds of a test: so many from the first one on, unless the environment says otherwise.
#[expect(clippy::disallowed_methods, reason = "whoever looks for a failure names seeds by the environment")]
fn seeds(first: u64, runs: u64) -> Range<u64> {
    let told = |name| std::env::var(name).ok().and_then(|text: String| text.parse::<u64>().ok());
    match (told("ENGINE_TEST_SEED"), told("ENGINE_TEST_RUNS")) {
        (Some(seed), runs) => seed..seed + runs.unwrap_or(1),
        (None, more) => first..first + more.unwrap_or(runs),
    }
}
