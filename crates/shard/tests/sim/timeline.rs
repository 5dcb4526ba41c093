//! The time of a simulation, what happens next in it, and the record of what has happened.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::fmt::{Arguments, Write as _};
use std::fs::File;
use std::hash::{DefaultHasher, Hasher as _};
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;
use switchward_machine::Time;
use switchward_testkit::Rng;

use crate::clocks::BEGIN;

/// What happens at a time.
pub(crate) type Event = Box<dyn FnOnce() + Send>;

/// The one timeline of a simulation; cheap to clone.
#[derive(Clone)]
pub(crate) struct Timeline(Arc<Mutex<Inner>>);

struct Inner {
    /// Milliseconds since the beginning.
    now: u64,
    /// The time that a right clock shows.
    true_time: Time,
    /// Until when servers do not know yet how much time has passed, milliseconds since the beginning.
    unsettled: u64,
    /// Counts what is put in an order: events, and what callers see.
    stamps: u64,
    events: BTreeMap<(u64, u64), Event>,
    rng: Rng,
    trace: DefaultHasher,
    line: String,
    file: Option<File>,
    counts: BTreeMap<&'static str, u64>,
}

impl Timeline {
    /// The timeline of a seed. With `SIM_TRACE`, its events are written to that file.
    pub(crate) fn new(seed: u64) -> Self {
        let file = std::env::var_os("SIM_TRACE").map(|path| File::create(path).unwrap());
        Self(Arc::new(Mutex::new(Inner {
            now: 0,
            true_time: BEGIN,
            unsettled: 0,
            stamps: 0,
            events: BTreeMap::new(),
            rng: Rng::new(seed),
            trace: DefaultHasher::new(),
            line: String::new(),
            file,
            counts: BTreeMap::new(),
        })))
    }

    /// Milliseconds since the beginning.
    pub(crate) fn now(&self) -> u64 {
        self.0.lock().now
    }

    /// The time that a right clock shows.
    pub(crate) fn true_time(&self) -> Time {
        self.0.lock().true_time
    }

    /// Lets this time pass on all clocks, milliseconds.
    pub(crate) fn move_clocks(&self, ms: u64) {
        let mut inner = self.0.lock();
        inner.true_time = inner.true_time.after_ms(ms);
    }

    /// Time passes faster than the servers' timers know: they need this long until all of them know it, milliseconds.
    pub(crate) fn unsettle(&self, ms: u64) {
        let mut inner = self.0.lock();
        inner.unsettled = inner.now + ms;
    }

    /// Returns true while servers may not know yet how much time has passed.
    pub(crate) fn is_unsettled(&self) -> bool {
        let inner = self.0.lock();
        inner.now < inner.unsettled
    }

    /// A number that is higher than all that were given before.
    pub(crate) fn stamp(&self) -> u64 {
        let mut inner = self.0.lock();
        inner.stamps += 1;
        inner.stamps
    }

    /// Has something happen after this many milliseconds, at least one.
    pub(crate) fn after(&self, ms: u64, event: impl FnOnce() + Send + 'static) {
        let mut inner = self.0.lock();
        inner.stamps += 1;
        let at = (inner.now + ms.max(1), inner.stamps);
        inner.events.insert(at, Box::new(event));
    }

    /// Moves on by a millisecond.
    pub(crate) fn step(&self) {
        self.0.lock().now += 1;
    }

    /// Takes the next event whose time has come.
    pub(crate) fn due(&self) -> Option<Event> {
        let mut inner = self.0.lock();
        let (at, _) = inner.events.first_key_value()?;
        if at.0 > inner.now {
            return None;
        }
        inner.events.pop_first().map(|(_, event)| event)
    }

    /// Drops what has not happened yet.
    pub(crate) fn clear(&self) {
        let events = std::mem::take(&mut self.0.lock().events);
        drop(events);
    }

    /// Draws random numbers.
    pub(crate) fn draw<T>(&self, draw: impl FnOnce(&mut Rng) -> T) -> T {
        draw(&mut self.0.lock().rng)
    }

    /// Counts something that has happened.
    pub(crate) fn count(&self, what: &'static str) {
        *self.0.lock().counts.entry(what).or_default() += 1;
    }

    /// How often that has happened.
    pub(crate) fn counted(&self, what: &'static str) -> u64 {
        self.0.lock().counts.get(what).copied().unwrap_or(0)
    }

    /// All counts.
    pub(crate) fn counts(&self) -> BTreeMap<String, u64> {
        self.0.lock().counts.iter().map(|(what, count)| ((*what).to_owned(), *count)).collect()
    }

    /// Records what has happened, for the hash of the run.
    pub(crate) fn note(&self, what: Arguments<'_>) {
        let mut inner = self.0.lock();
        let Inner { now, line, trace, file, .. } = &mut *inner;
        line.clear();
        write!(line, "{now} {what}").unwrap();
        trace.write(line.as_bytes());
        if let Some(file) = file {
            writeln!(file, "{line}").unwrap();
        }
    }

    /// The hash of all that was recorded.
    pub(crate) fn hash(&self) -> u64 {
        self.0.lock().trace.finish()
    }
}

/// Lets milliseconds of a runtime's paused time pass.
pub(crate) async fn pass(ms: u64) {
    let passed = tokio::time::timeout(Duration::from_millis(ms), std::future::pending::<()>()).await;
    drop(passed);
}

/// A short name for bytes in the record.
pub(crate) fn hash_of(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}
