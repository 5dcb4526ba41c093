//! A reproducible random number generator.

use rand::seq::IndexedRandom as _;
use rand::{Rng as _, RngCore as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

/// A generator that returns the same numbers for the same seed on every machine. A test prints the seed if it fails.
///
/// ChaCha8, because its numbers are the same in every version; those of `StdRng` and `SmallRng` may change.
#[derive(Debug, Clone)]
pub struct Rng(ChaCha8Rng);

impl Rng {
    /// Creates the generator of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(ChaCha8Rng::seed_from_u64(seed))
    }

    /// Draws 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Draws a number below `end`, which is not 0.
    pub fn below(&mut self, end: usize) -> usize {
        self.0.random_range(..end)
    }

    /// Draws a number from `first` to `last`, both included.
    pub fn between(&mut self, first: u64, last: u64) -> u64 {
        self.0.random_range(first..=last)
    }

    /// Returns true once in `times` calls on average.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// Draws one of a list that is not empty.
    pub fn pick<'t, T>(&mut self, from: &'t [T]) -> &'t T {
        from.choose(&mut self.0).unwrap()
    }

    /// Draws one of a list, each as often as its weight says. At least one weight is not 0.
    pub fn weighted<'t, T>(&mut self, from: &'t [(T, u32)]) -> &'t T {
        &from.choose_weighted(&mut self.0, |(_, weight)| *weight).unwrap().0
    }
}
