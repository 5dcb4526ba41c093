//! Machines whose clocks jump, and a bus that loses, doubles, delays and refuses.

use futures::future::BoxFuture;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use switchward_machine::Time;
use switchward_shard::{
    Clock, Cluster, Failure, Fired, NotAccepted, RawClocks, SteadyClock, TimerBatch, TimerRoad,
};
use tokio::sync::Notify;

use crate::chance::Chance;
use crate::server::BEGIN;

/// The clocks of one machine. All machines count alike; what each says the time is may jump.
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
    steady: Arc<SteadyClock>,
    jumped_ms: Arc<AtomicU64>,
    told: Arc<Mutex<Vec<Arc<Notify>>>>,
}

impl Clock for Jumping {
    fn now(&self) -> Time {
        self.steady.now()
    }

    fn patience(&self, _until: Time) -> Duration {
        Duration::from_secs(60)
    }

    fn tell(&self, waiting: Arc<Notify>) {
        self.told.lock().push(waiting);
    }

    fn not_before(&self, at: Time) {
        self.steady.not_before(at);
    }
}

impl Jumping {
    pub(crate) fn new() -> Self {
        Self::over(Machine::default())
    }

    fn over(machine: Machine) -> Self {
        let steady = Arc::new(SteadyClock::over(Box::new(machine.clone())));
        Self { machine, steady, jumped_ms: Arc::default(), told: Arc::default() }
    }

    /// The clock of another machine, which counts alike.
    pub(crate) fn another(&self) -> Self {
        Self::over(Machine { counted_ms: Arc::clone(&self.machine.counted_ms), ..Machine::default() })
    }

    /// The clock of the next server on this machine.
    pub(crate) fn reboot(&self) -> Self {
        Self::over(self.machine.clone())
    }

    /// Milliseconds that have truly passed.
    pub(crate) fn passed(&self) -> u64 {
        self.machine.counted_ms.load(Ordering::SeqCst)
    }

    /// Lets time pass on all machines that count alike.
    pub(crate) fn pass(&self, ms: u64) {
        self.machine.counted_ms.fetch_add(ms, Ordering::SeqCst);
    }

    /// The machine's clock is now so far off.
    pub(crate) fn jump(&self, ahead_ms: i64) {
        self.jumped_ms.store(self.passed(), Ordering::SeqCst);
        self.machine.ahead_ms.store(ahead_ms, Ordering::SeqCst);
    }

    /// For how long it has stood where it jumped to.
    pub(crate) fn stands(&self) -> u64 {
        self.passed() - self.jumped_ms.load(Ordering::SeqCst)
    }

    /// Whoever waits looks at it.
    pub(crate) fn look(&self) {
        self.told.lock().iter().for_each(|waiting| waiting.notify_one());
    }
}

/// How a road treats the batches that it gets, each once in so many.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Faults {
    pub(crate) lost: usize,
    pub(crate) refused: usize,
    pub(crate) twice: usize,
    pub(crate) late: usize,
}

/// A road with faults; without, batches come back at once.
pub(crate) struct Road {
    takers: Vec<Cluster>,
    chance: Mutex<Chance>,
    faults: Option<Faults>,
    late: Mutex<Vec<TimerBatch>>,
    /// Batches that were handed out to it.
    pub(crate) given: AtomicUsize,
    /// Timers that were fired by what it brought back.
    pub(crate) fired: Arc<AtomicUsize>,
    /// Batches that nobody waited for any more.
    pub(crate) stale: Arc<AtomicUsize>,
}

impl Road {
    pub(crate) fn new(takers: Vec<Cluster>, seed: u64, faults: Option<Faults>) -> Arc<Self> {
        Arc::new(Self {
            takers,
            chance: Mutex::new(Chance::new(seed)),
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
        let mut chance = self.chance.lock();
        let Some(faults) = self.faults else {
            self.bring(&batch);
            return Ok(());
        };
        if chance.once_in(faults.refused) {
            return Err(NotAccepted("it is full".into()));
        }
        let mut late = self.late.lock();
        for batch in late.drain(..) {
            self.bring(&batch);
        }
        if chance.once_in(faults.lost) {
            return Ok(());
        }
        if chance.once_in(faults.late) {
            late.push(batch);
            return Ok(());
        }
        self.bring(&batch);
        if chance.once_in(faults.twice) {
            self.bring(&batch);
        }
        Ok(())
    }
}

impl TimerRoad for Road {
    fn hand_out(&self, batch: TimerBatch) -> BoxFuture<'_, Result<(), NotAccepted>> {
        Box::pin(async move { self.take(batch) })
    }
}
