//! Machines whose clocks jump, and a bus that loses, doubles, delays and refuses.

use futures::future::BoxFuture;
use parking_lot::Mutex;
use std::sync::{
    Arc,
    atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering},
};
use std::time::Duration;
use switchward_machine::Time;
use switchward_shard::{
    Clock, Cluster, Failure, Fired, MonotonicClock, NotAccepted, RawClocks, TimerBatch, TimerTransport,
};
use switchward_testkit::Rng;
use tokio::sync::Notify;

use crate::server::BEGIN;

/// The clocks of one machine. All machines count alike; their wall clocks may jump.
#[derive(Clone, Default)]
struct Machine {
    counted_ms: Arc<AtomicU64>,
    ahead_ms: Arc<AtomicI64>,
}

impl RawClocks for Machine {
    fn wall(&self) -> Duration {
        let ahead = self.ahead_ms.load(Ordering::SeqCst);
        let right = BEGIN.0 + self.counted_ms.load(Ordering::SeqCst);
        Duration::from_millis(right.saturating_add_signed(ahead))
    }

    fn counted(&self) -> Duration {
        Duration::from_millis(self.counted_ms.load(Ordering::SeqCst))
    }
}

/// A server's clock over a machine of a test.
#[derive(Clone)]
pub(crate) struct Jumping {
    machine: Machine,
    monotonic: Arc<MonotonicClock>,
    jumped_ms: Arc<AtomicU64>,
    subscribers: Arc<Mutex<Vec<Arc<Notify>>>>,
}

impl Clock for Jumping {
    fn now(&self) -> Time {
        self.monotonic.now()
    }

    fn patience(&self, _until: Time) -> Duration {
        Duration::from_secs(60)
    }

    fn runs(&self) -> bool {
        false
    }

    fn subscribe(&self, waiting: Arc<Notify>) {
        self.subscribers.lock().push(waiting);
    }

    fn not_before(&self, at: Time) {
        self.monotonic.not_before(at);
    }
}

impl Jumping {
    pub(crate) fn new() -> Self {
        Self::over(Machine::default())
    }

    fn over(machine: Machine) -> Self {
        let monotonic = Arc::new(MonotonicClock::over(Box::new(machine.clone())));
        Self { machine, monotonic, jumped_ms: Arc::default(), subscribers: Arc::default() }
    }

    /// The clock of another machine, which counts alike.
    pub(crate) fn another(&self) -> Self {
        Self::over(Machine { counted_ms: Arc::clone(&self.machine.counted_ms), ..Machine::default() })
    }

    /// The clock of the next server on this machine.
    pub(crate) fn reboot(&self) -> Self {
        Self::over(self.machine.clone())
    }

    /// Milliseconds that have really passed.
    pub(crate) fn passed(&self) -> u64 {
        self.machine.counted_ms.load(Ordering::SeqCst)
    }

    /// Lets time pass on all machines that count alike.
    pub(crate) fn pass(&self, ms: u64) {
        self.machine.counted_ms.fetch_add(ms, Ordering::SeqCst);
    }

    /// Sets how far the machine's clock is off.
    pub(crate) fn jump(&self, ahead_ms: i64) {
        self.jumped_ms.store(self.passed(), Ordering::SeqCst);
        self.machine.ahead_ms.store(ahead_ms, Ordering::SeqCst);
    }

    /// How long ago the clock jumped last, milliseconds.
    pub(crate) fn stands(&self) -> u64 {
        self.passed() - self.jumped_ms.load(Ordering::SeqCst)
    }

    /// Makes the waiting tasks look at the clock.
    pub(crate) fn look(&self) {
        self.subscribers.lock().iter().for_each(|waiting| waiting.notify_one());
    }
}

/// How a transport treats its batches; each fault occurs once in this many.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Faults {
    pub(crate) lost: usize,
    pub(crate) refused: usize,
    pub(crate) twice: usize,
    pub(crate) late: usize,
}

/// A transport with faults; without, batches come back at once.
pub(crate) struct FaultyTransport {
    takers: Vec<Cluster>,
    rng: Mutex<Rng>,
    faults: Option<Faults>,
    late: Mutex<Vec<TimerBatch>>,
    /// Batches that were handed out to it.
    pub(crate) given: AtomicUsize,
    /// Timers that were fired by the batches it brought back.
    pub(crate) fired: Arc<AtomicUsize>,
    /// Batches that nobody waited for any more.
    pub(crate) stale: Arc<AtomicUsize>,
}

impl FaultyTransport {
    pub(crate) fn new(takers: Vec<Cluster>, seed: u64, faults: Option<Faults>) -> Arc<Self> {
        Arc::new(Self {
            takers,
            rng: Mutex::new(Rng::new(seed)),
            faults,
            late: Mutex::default(),
            given: AtomicUsize::new(0),
            fired: Arc::default(),
            stale: Arc::default(),
        })
    }

    /// Brings a batch back, as bytes, to one server after the other until one leads its shard.
    fn bring(&self, batch: &TimerBatch) {
        let batch = TimerBatch::decode(&batch.encode()).unwrap();
        let takers = self.takers.clone();
        let (fired, stale) = (Arc::clone(&self.fired), Arc::clone(&self.stale));
        tokio::spawn(async move {
            for taker in takers {
                match taker.fire(&batch).await {
                    Ok(Fired::Timers(count)) => drop(fired.fetch_add(count, Ordering::SeqCst)),
                    Ok(Fired::Stale) => drop(stale.fetch_add(1, Ordering::SeqCst)),
                    Err(Failure::Electing) => continue,
                    Err(_) => {}
                }
                return;
            }
        });
    }

    fn take(&self, batch: TimerBatch) -> Result<(), NotAccepted> {
        self.given.fetch_add(1, Ordering::SeqCst);
        let mut rng = self.rng.lock();
        let Some(faults) = self.faults else {
            self.bring(&batch);
            return Ok(());
        };
        if rng.once_in(faults.refused) {
            return Err(NotAccepted("the transport is full".into()));
        }
        let mut late = self.late.lock();
        for batch in late.drain(..) {
            self.bring(&batch);
        }
        if rng.once_in(faults.lost) {
            return Ok(());
        }
        if rng.once_in(faults.late) {
            late.push(batch);
            return Ok(());
        }
        self.bring(&batch);
        if rng.once_in(faults.twice) {
            self.bring(&batch);
        }
        Ok(())
    }
}

impl TimerTransport for FaultyTransport {
    fn hand_out(&self, batch: TimerBatch) -> BoxFuture<'_, Result<(), NotAccepted>> {
        Box::pin(async move { self.take(batch) })
    }
}
