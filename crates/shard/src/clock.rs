//! Time: the only place that it comes from.

mod steady;

use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use switchward_machine::Time;
use tokio::sync::Notify;

use crate::limits::CLOCK_LOOK;
pub use steady::{MachineClocks, RawClocks, SteadyClock};

/// Where time comes from.
pub trait Clock: Send + Sync + 'static {
    /// Milliseconds since 1970.
    fn now(&self) -> Time;

    /// How long somebody who waits for this time may sleep before looking at the clock again.
    fn patience(&self, until: Time) -> Duration {
        Duration::from_millis(until.since_ms(self.now())).min(CLOCK_LOOK)
    }

    /// Is told from now on whenever the clock is moved by hand; a clock that runs by itself tells nobody.
    fn tell(&self, _waiting: Arc<Notify>) {}

    /// A log goes up to this time: from now on the clock says no less, and runs on from there. A clock that is moved by
    /// hand stays where it is.
    fn not_before(&self, _at: Time) {}
}

/// The machine's clock as it is at this moment, with all of its jumps. Shards want a [`SteadyClock`].
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Time {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Time(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }
}

/// A clock that moves when it is told to; for development and tests.
#[derive(Debug, Clone)]
pub struct ManualClock {
    now: Arc<AtomicU64>,
    moved: Arc<Mutex<Vec<Arc<Notify>>>>,
}

impl ManualClock {
    /// A clock that stands at this time.
    #[must_use]
    pub fn new(now: Time) -> Self {
        Self { now: Arc::new(AtomicU64::new(now.0)), moved: Arc::default() }
    }

    /// Moves on by this many milliseconds, and tells who waits for it.
    pub fn advance(&self, ms: u64) -> Time {
        let now = self.now.fetch_add(ms, Ordering::SeqCst).saturating_add(ms);
        self.moved.lock().iter().for_each(|waiting| waiting.notify_one());
        Time(now)
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Time {
        Time(self.now.load(Ordering::SeqCst))
    }

    fn patience(&self, _until: Time) -> Duration {
        CLOCK_LOOK
    }

    fn tell(&self, waiting: Arc<Notify>) {
        let mut moved = self.moved.lock();
        // Whoever waits holds it too.
        moved.retain(|waiting| Arc::strong_count(waiting) > 1);
        moved.push(waiting);
    }
}
