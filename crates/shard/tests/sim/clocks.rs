//! The clocks of the simulated machines, which may be wrong, and the clocks that their servers make of them.

use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use switchward_machine::Time;
use switchward_shard::{Clock, MonotonicClock, RawClocks};
use tokio::sync::Notify;

use crate::timeline::Timeline;

/// The time at which every simulation begins: a Monday, 9:00 UTC.
pub(crate) const BEGIN: Time = Time(1_750_064_400_000);

/// The two clocks of a machine; cheap to clone. It counts time right, and its wall clock may be wrong.
#[derive(Clone)]
pub(crate) struct Machine {
    timeline: Timeline,
    /// How far the wall clock is ahead, milliseconds; negative if it is behind.
    wrong_by: Arc<AtomicI64>,
}

impl Machine {
    pub(crate) fn new(timeline: Timeline) -> Self {
        Self { timeline, wrong_by: Arc::default() }
    }

    /// Sets the wall clock, to the right time plus these milliseconds.
    pub(crate) fn set(&self, wrong_by: i64) {
        self.wrong_by.store(wrong_by, Ordering::Relaxed);
    }
}

impl RawClocks for Machine {
    fn wall(&self) -> Duration {
        let (now, wrong_by) = (self.timeline.true_time(), self.wrong_by.load(Ordering::Relaxed));
        if wrong_by != 0 {
            self.timeline.count("wrong clocks read");
        }
        Duration::from_millis(now.0.saturating_add_signed(wrong_by))
    }

    fn counted(&self) -> Duration {
        Duration::from_millis(self.timeline.true_time().since_ms(BEGIN))
    }
}

/// The clock of a server from one start to its end: the product's, over its machine's clocks. Who waits for it is notified
/// after time has passed faster than the server's timers know.
pub(crate) struct ServerClock {
    product: MonotonicClock,
    waiting: Mutex<Vec<Arc<Notify>>>,
}

impl ServerClock {
    pub(crate) fn over(machine: &Machine) -> Self {
        Self { product: MonotonicClock::over(Box::new(machine.clone())), waiting: Mutex::default() }
    }

    /// Has all that wait for a time look at the clock.
    pub(crate) fn wake(&self) {
        self.waiting.lock().iter().for_each(|waiting| waiting.notify_one());
    }
}

impl Clock for ServerClock {
    fn now(&self) -> Time {
        self.product.now()
    }

    fn not_before(&self, at: Time) {
        self.product.not_before(at);
    }

    fn subscribe(&self, waiting: Arc<Notify>) {
        self.waiting.lock().push(waiting);
    }
}
