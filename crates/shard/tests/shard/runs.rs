//! How often random tests run, and with which seeds. A failing test prints its seed.

use switchward_testkit::Rng;

/// How often a random test runs; `SHARD_TEST_RUNS` raises it.
pub(crate) fn runs(usual: u64) -> u64 {
    std::env::var("SHARD_TEST_RUNS").ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// The seed of the first run; `SHARD_TEST_SEED` plays another one.
pub(crate) fn seed(usual: u64) -> u64 {
    std::env::var("SHARD_TEST_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// Runs a test with one seed after the other, and prints the one that failed.
pub(crate) fn each_seed(first: u64, usual_runs: u64, test: impl Fn(&mut Rng)) {
    for seed in (seed(first)..).take(usize::try_from(runs(usual_runs)).unwrap()) {
        let on_panic = SeedOnPanic(seed);
        test(&mut Rng::new(seed));
        std::mem::forget(on_panic);
    }
}

/// Prints its seed if a panic drops it.
struct SeedOnPanic(u64);

impl Drop for SeedOnPanic {
    fn drop(&mut self) {
        println!("failed with SHARD_TEST_SEED={} SHARD_TEST_RUNS=1", self.0);
    }
}
