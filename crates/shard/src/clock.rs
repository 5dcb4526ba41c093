//! The only source of time.

mod agreed;
mod agreement;
mod monotonic;

use parking_lot::Mutex;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use switchward_machine::Time;
use tokio::sync::Notify;

use crate::limits::CLOCK_LOOK;
pub(crate) use agreed::AgreedClock;
pub(crate) use agreement::{AgreementState, Comparison, judge};
pub use agreement::{ClockAgreement, ClockOffset};
pub use monotonic::{MachineClocks, MonotonicClock, RawClocks};

/// A source of time.
pub trait Clock: Send + Sync + 'static {
    /// Milliseconds since 1970.
    fn now(&self) -> Time;

    /// How long a task that waits for this time may sleep before it looks at the clock again.
    fn patience(&self, until: Time) -> Duration {
        Duration::from_millis(until.since_ms(self.now())).min(CLOCK_LOOK)
    }

    /// Returns false if the clock is moved by hand. Who waits for it waits for a notification.
    fn runs(&self) -> bool {
        true
    }

    /// Notifies `waiting` whenever the clock is moved by hand. A clock that runs by itself never notifies.
    fn subscribe(&self, _waiting: Arc<Notify>) {}

    /// Returns true if a leader may decide by this clock. A member of a cluster compares it with the others' first.
    fn is_known(&self) -> bool {
        true
    }

    /// The log goes up to this time: from now on the clock returns no earlier time, and continues from there. A
    /// manual clock does not move.
    fn not_before(&self, _at: Time) {}
}

/// The monotonic time, to measure how long something takes. It stands still while tokio's time is paused.
pub(crate) fn instant() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// The machine's clock with all of its jumps. Shards need a [`MonotonicClock`].
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Time {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Time(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }
}

/// A clock that is moved by hand; for development and tests.
#[derive(Debug, Clone)]
pub struct ManualClock {
    now: Arc<AtomicU64>,
    moved: Arc<Mutex<Vec<Arc<Notify>>>>,
}

impl ManualClock {
    /// Creates a clock that stands at this time.
    #[must_use]
    pub fn new(now: Time) -> Self {
        Self { now: Arc::new(AtomicU64::new(now.0)), moved: Arc::default() }
    }

    /// Moves on by this many milliseconds, and notifies the subscribers.
    pub fn advance(&self, ms: u64) -> Time {
        let now = self.now.fetch_add(ms, Ordering::SeqCst).saturating_add(ms);
        self.notify();
        Time(now)
    }

    /// Moves on to this time, unless it is later already, and notifies the subscribers.
    pub fn advance_to(&self, time: Time) {
        self.now.fetch_max(time.0, Ordering::SeqCst);
        self.notify();
    }

    fn notify(&self) {
        self.moved.lock().iter().for_each(|waiting| waiting.notify_one());
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Time {
        Time(self.now.load(Ordering::SeqCst))
    }

    fn patience(&self, _until: Time) -> Duration {
        CLOCK_LOOK
    }

    fn runs(&self) -> bool {
        false
    }

    fn subscribe(&self, waiting: Arc<Notify>) {
        let mut moved = self.moved.lock();
        // A task that still waits holds its own reference.
        moved.retain(|waiting| Arc::strong_count(waiting) > 1);
        moved.push(waiting);
    }
}
