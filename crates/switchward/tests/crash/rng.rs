//! What the environment says about a run, and its seed.

use rand::SeedableRng as _;
use rand::rngs::StdRng;
use std::fmt::Display;
use std::str::FromStr;

/// A number of the environment, or what holds without it.
pub(crate) fn setting<T: FromStr>(name: &str, otherwise: T) -> T
where
    T::Err: Display,
{
    let Some(text) = std::env::var(name).ok().filter(|text| !text.is_empty()) else { return otherwise };
    text.parse().unwrap_or_else(|error| panic!("{name}={text}: {error}"))
}

/// The random source of one test. Its seed is printed, so that a failure can be reproduced, apart from the kernel's
/// scheduling.
pub(crate) struct Rng {
    pub(crate) seed: u64,
    pub(crate) rng: StdRng,
}

impl Rng {
    pub(crate) fn of(test: &str) -> Self {
        let seed = setting("CRASH_SEED", rand::random::<u32>().into());
        eprintln!("{test}: CRASH_SEED={seed}");
        Self { seed, rng: StdRng::seed_from_u64(seed) }
    }
}
