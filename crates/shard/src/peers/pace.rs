//! A bandwidth cap.
//!
//! Not governor, which limits calls at the gateway: it refuses what is larger than its burst, and a message of any size goes
//! through here, which the next ones pay for by waiting. And it waits by its own timer; here tokio's clock counts, which
//! simulations move.

use parking_lot::Mutex;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// Spreads bytes over time.
pub(super) struct Pace {
    bytes_per_second: u64,
    /// When all that was granted is through.
    free: Mutex<Option<Instant>>,
}

impl Pace {
    /// A cap of this many bytes per second, at least 1.
    pub(super) fn new(bytes_per_second: u64) -> Self {
        Self { bytes_per_second: bytes_per_second.max(1), free: Mutex::new(None) }
    }

    /// Waits until this many bytes may be sent, counting what was granted before. Cancel safe.
    pub(super) async fn grant(&self, bytes: usize) {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let nanos = u128::from(bytes) * 1_000_000_000 / u128::from(self.bytes_per_second);
        let cost = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX / 4));
        let begin = {
            let mut free = self.free.lock();
            let now = Instant::now();
            let begin = free.map_or(now, |free| free.max(now));
            *free = Some(begin + cost);
            begin
        };
        sleep_until(begin).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn bytes_take_the_time_that_the_cap_says() {
        let (pace, begun) = (Pace::new(1_000), Instant::now());
        for _ in 0..5 {
            pace.grant(500).await;
        }
        assert_eq!(begun.elapsed().as_millis(), 2_000);
        tokio::time::advance(Duration::from_secs(10)).await;
        let idle = Instant::now();
        pace.grant(1).await;
        assert_eq!(idle.elapsed(), Duration::ZERO, "time that nobody used is not waited for");
    }
}
