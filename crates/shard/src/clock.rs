//! Time: the only place that it comes from.

use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};
use switchward_machine::Time;
use tokio::sync::Notify;

/// Where time comes from.
pub trait Clock: Send + Sync + 'static {
    /// Milliseconds since 1970.
    fn now(&self) -> Time;
}

/// The system's clock.
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

    /// Is told whenever the clock moves.
    pub fn tell(&self, waiting: Arc<Notify>) {
        self.moved.lock().push(waiting);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Time {
        Time(self.now.load(Ordering::SeqCst))
    }
}
