//! What a server knows of another one from their connections.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

use crate::hello::Hello;
use crate::limits::{OFFSET_ROUND_TRIP_MAX, OFFSET_SAMPLES};
use crate::request::Traffic;

/// What a server knows of another one from their connections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contact {
    /// When the last bytes came from it, on any connection.
    pub seen: Instant,
    /// The other server's wall clock minus this one's at present, milliseconds, by the fastest of the last pings, wrong by
    /// half of its round trip at most; `None` before a ping was answered within [`OFFSET_ROUND_TRIP_MAX`].
    pub clock_offset_ms: Option<i64>,
    /// The identity from its last handshake, with its feature levels.
    pub hello: Hello,
}

/// What all connections with one other server share.
#[derive(Debug)]
pub(crate) struct PeerCell {
    known: Mutex<Known>,
    /// The connections that it has dialled for requests: dropping a sender ends one.
    inbound: Mutex<[Option<oneshot::Sender<()>>; 3]>,
    streams: AtomicUsize,
    gone: watch::Sender<bool>,
}

#[derive(Debug)]
struct Known {
    seen: Instant,
    hello: Hello,
    pings: VecDeque<Sample>,
}

/// What one ping has measured. This server's own clock has no part in it, so that a sample stays right if that clock is
/// set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sample {
    /// How long the answer took: the measurement is wrong by half of it at most.
    round_trip: Duration,
    /// The middle between the ping and its answer, when the other server is taken to have read its clock.
    at: Instant,
    /// The other clock then, milliseconds.
    theirs_ms: i64,
}

impl Sample {
    /// The answer `theirs_ms` to a ping.
    pub(crate) fn of(sent: Instant, answered: Instant, theirs_ms: i64) -> Self {
        let round_trip = answered.saturating_duration_since(sent);
        Self { round_trip, at: sent + round_trip / 2, theirs_ms }
    }

    /// The other clock minus this server's clock, which shows `own_ms` now, milliseconds.
    fn offset_ms(self, now: Instant, own_ms: i64) -> i64 {
        let passed = now.saturating_duration_since(self.at).as_millis();
        let theirs = self.theirs_ms.saturating_add(i64::try_from(passed).unwrap_or(i64::MAX));
        theirs.saturating_sub(own_ms)
    }
}

impl PeerCell {
    pub(crate) fn new(hello: Hello) -> Self {
        let known = Known { seen: Instant::now(), hello, pings: VecDeque::with_capacity(OFFSET_SAMPLES) };
        Self {
            known: Mutex::new(known),
            inbound: Mutex::default(),
            streams: AtomicUsize::new(0),
            gone: watch::Sender::new(false),
        }
    }

    /// Notes a handshake. After a restart, what earlier pings have measured is dropped.
    pub(crate) fn shook_hands(&self, hello: &Hello) {
        let mut known = self.known.lock();
        if (known.hello.boot, known.hello.boot_id) != (hello.boot, hello.boot_id) {
            known.pings.clear();
        }
        known.hello = hello.clone();
        known.seen = Instant::now();
    }

    /// Notes that something came.
    pub(crate) fn seen(&self) {
        self.known.lock().seen = Instant::now();
    }

    /// Notes what a ping has measured, unless its answer was slow.
    pub(crate) fn measured(&self, sample: Sample) {
        if sample.round_trip > OFFSET_ROUND_TRIP_MAX {
            return;
        }
        let pings = &mut self.known.lock().pings;
        if pings.len() == OFFSET_SAMPLES {
            pings.pop_front();
        }
        pings.push_back(sample);
    }

    /// What is known at this moment, when this server's clock shows `own_ms`, milliseconds.
    pub(crate) fn contact(&self, now: Instant, own_ms: i64) -> Contact {
        let known = self.known.lock();
        let fastest = known.pings.iter().min_by_key(|sample| sample.round_trip);
        Contact {
            seen: known.seen,
            clock_offset_ms: fastest.map(|sample| sample.offset_ms(now, own_ms)),
            hello: known.hello.clone(),
        }
    }

    /// Registers a connection that the other server has dialled; an older one for the same traffic ends. The
    /// receiver completes when this one must end.
    pub(crate) fn begin_requests(&self, traffic: Traffic) -> oneshot::Receiver<()> {
        let (sender, ends) = oneshot::channel();
        let at = match traffic {
            Traffic::Control => 0,
            Traffic::Bulk => 1,
            Traffic::Commands => 2,
        };
        self.inbound.lock()[at] = Some(sender);
        ends
    }

    /// Counts a stream that the other server has opened, until the guard is dropped.
    ///
    /// # Errors
    /// It has `max` streams open.
    pub(crate) fn begin_stream(self: &Arc<Self>, max: usize) -> Result<StreamCount, String> {
        let counted = StreamCount(Arc::clone(self));
        if self.streams.fetch_add(1, Ordering::Relaxed) < max {
            return Ok(counted);
        }
        Err(format!("server {} has {max} streams open", self.known.lock().hello.server))
    }

    /// Ends all connections with this server.
    pub(crate) fn end(&self) {
        self.gone.send_replace(true);
    }

    /// Waits until [`end`](Self::end) is called.
    pub(crate) async fn ended(&self) {
        // The sender lives as long as `self`.
        let mut gone = self.gone.subscribe();
        let _gone = gone.wait_for(|gone| *gone).await;
    }
}

/// Counts an open stream of a peer until it is dropped.
#[derive(Debug)]
pub(crate) struct StreamCount(Arc<PeerCell>);

impl Drop for StreamCount {
    fn drop(&mut self) {
        self.0.streams.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: i64 = 1_750_075_200_000;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn hello(boot: u64) -> Hello {
        Hello {
            cluster: [1; 16],
            server: 2,
            folder: [2; 16],
            boot,
            boot_id: [1; 16],
            protocol: 1,
            lowest_level: 1,
            highest_level: 1,
            keys: [0; 32],
            clock_ms: 0,
        }
    }

    #[test]
    fn the_other_clock_is_read_in_the_middle_of_the_round_trip() {
        let sent = Instant::now();
        // It shows the same time: half of 80 ms have passed here since the ping.
        assert_eq!(Sample::of(sent, sent + ms(80), NOON + 40).offset_ms(sent + ms(80), NOON + 80), 0);
        // It is 5 s ahead, and 5 s behind.
        assert_eq!(Sample::of(sent, sent + ms(80), NOON + 5_040).offset_ms(sent + ms(80), NOON + 80), 5_000);
        assert_eq!(Sample::of(sent, sent + ms(80), NOON - 4_960).offset_ms(sent + ms(80), NOON + 80), -5_000);
    }

    #[test]
    fn a_sample_holds_later_and_when_the_own_clock_is_set() {
        let sent = Instant::now();
        let sample = Sample::of(sent, sent + ms(10), NOON + 5);
        assert_eq!(sample.offset_ms(sent + ms(4_000), NOON + 4_000), 0);
        assert_eq!(sample.offset_ms(sent + ms(4_000), NOON + 3_604_000), -3_600_000);
    }

    #[test]
    fn no_clock_value_overflows_the_difference() {
        let now = Instant::now();
        assert_eq!(Sample::of(now, now, i64::MAX).offset_ms(now + ms(9), i64::MIN), i64::MAX);
        assert_eq!(Sample::of(now, now, i64::MIN).offset_ms(now, i64::MAX), i64::MIN);
        // An answer before its ping counts as a round trip of nothing.
        assert_eq!(Sample::of(now + ms(5), now, NOON).round_trip, Duration::ZERO);
    }

    #[test]
    fn the_fastest_of_the_last_pings_says_how_far_the_clock_is_off() {
        let (cell, now) = (PeerCell::new(hello(1)), Instant::now());
        let offset = |cell: &PeerCell| cell.contact(now, NOON).clock_offset_ms;
        assert_eq!(offset(&cell), None);
        cell.measured(Sample::of(now, now + OFFSET_ROUND_TRIP_MAX + ms(1), NOON));
        assert_eq!(offset(&cell), None, "a slow answer says nothing");
        cell.measured(Sample::of(now, now + ms(2), NOON + 1));
        // A slow answer, whose way there was the longer one by far.
        cell.measured(Sample::of(now, now + ms(900), NOON + 880));
        assert_eq!(offset(&cell), Some(1));
        for _ in 0..OFFSET_SAMPLES {
            cell.measured(Sample::of(now, now + ms(4), NOON + 7_000));
        }
        assert_eq!(offset(&cell), Some(7_000), "the clock was set meanwhile");
        cell.shook_hands(&hello(2));
        assert_eq!(offset(&cell), None, "another process has another clock");
        cell.measured(Sample::of(now, now + ms(4), NOON + 7_000));
        cell.shook_hands(&hello(2));
        assert!(offset(&cell).is_some(), "the same process has connected again");
        cell.shook_hands(&Hello { boot_id: [2; 16], ..hello(2) });
        assert_eq!(offset(&cell), None, "another copy of the folder has another clock");
    }
}
