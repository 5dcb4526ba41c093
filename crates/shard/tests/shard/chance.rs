//! Chance that can be played again: every number follows from a seed, and a failing test prints its seed.

/// How often a random test runs; `SHARD_TEST_RUNS` raises it.
pub(crate) fn runs(usual: u64) -> u64 {
    std::env::var("SHARD_TEST_RUNS").ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// The seed of the first run; `SHARD_TEST_SEED` plays another one.
pub(crate) fn seed(usual: u64) -> u64 {
    std::env::var("SHARD_TEST_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// Runs a test with one seed after the other, and says which one failed.
pub(crate) fn each_seed(first: u64, usual_runs: u64, test: impl Fn(&mut Chance)) {
    for seed in (seed(first)..).take(usize::try_from(runs(usual_runs)).unwrap()) {
        let told = Told(seed);
        test(&mut Chance::new(seed));
        std::mem::forget(told);
    }
}

/// Prints its seed where a panic drops it.
struct Told(u64);

impl Drop for Told {
    fn drop(&mut self) {
        println!("failed with SHARD_TEST_SEED={} SHARD_TEST_RUNS=1", self.0);
    }
}

/// Splitmix64.
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Below `end`, which is not 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(end).unwrap()).unwrap()
    }

    /// True once in so many times.
    pub(crate) fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }
}
