//! Lists are looked for beside the async workers, within a budget, a few at a time for each tenant: whoever lists holds up
//! nobody else's calls, whatever there is to look through and whether or not anybody waits for it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use switchward_machine::TenantId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::{Reason, Refusal};
use crate::limits::{SCAN_MS_MAX, SCAN_SLICE_MS, SCANS_MAX, SCANS_WAITING_MAX};

/// The lists that are being looked for.
#[derive(Default)]
pub(crate) struct Scans(Mutex<HashMap<TenantId, Arc<Places>>>);

/// Those of one tenant.
struct Places {
    at_once: Arc<Semaphore>,
    waiting: AtomicUsize,
}

impl Scans {
    /// Waits until this tenant has room for one more.
    ///
    /// # Errors
    /// QUOTA_EXCEEDED where [`SCANS_WAITING_MAX`] of its calls wait already.
    pub(crate) async fn begin(&self, tenant: TenantId) -> Result<Scan, Refusal> {
        let places = Arc::clone(self.0.lock().entry(tenant).or_insert_with(|| {
            Arc::new(Places { at_once: Arc::new(Semaphore::new(SCANS_MAX)), waiting: AtomicUsize::new(0) })
        }));
        let waiting = Waiting::begin(&places)?;
        let permit = Arc::clone(&places.at_once).acquire_owned().await;
        drop(waiting);
        let permit = permit.map_err(|_| Refusal::new(Reason::Draining, "the server is stopping"))?;
        Ok(Scan { _permit: permit, gone: Arc::default() })
    }
}

/// A call that waits for room.
struct Waiting<'p>(&'p Places);

impl<'p> Waiting<'p> {
    fn begin(places: &'p Places) -> Result<Self, Refusal> {
        let waiting = Self(places);
        if places.waiting.fetch_add(1, Ordering::Relaxed) < SCANS_WAITING_MAX {
            return Ok(waiting);
        }
        let message = format!(
            "{SCANS_WAITING_MAX} lists of this tenant wait for {SCANS_MAX} that are being looked for; ask again later"
        );
        Err(Refusal::new(Reason::QuotaExceeded, message.clone()).quota("lists", message))
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

/// One list that is being looked for, as long as somebody waits for it.
pub(crate) struct Scan {
    _permit: OwnedSemaphorePermit,
    gone: Arc<AtomicBool>,
}

impl Scan {
    /// What one of so many shards may take of it.
    pub(crate) fn share(&self, shards: usize) -> Share {
        let left = Duration::from_millis(SCAN_MS_MAX) / u32::try_from(shards.max(1)).unwrap_or(u32::MAX);
        Share { gone: Arc::clone(&self.gone), left, since: Instant::now() }
    }
}

impl Drop for Scan {
    fn drop(&mut self) {
        self.gone.store(true, Ordering::Relaxed);
    }
}

/// How a list goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pace {
    /// At once.
    On,
    /// After those who wait have had their turn.
    Rests,
    /// No further: its time is over, so that the page ends here.
    Ends,
}

/// One shard's share of the budget, which is used in slices of [`SCAN_SLICE_MS`]. The time between them does not count.
pub(crate) struct Share {
    gone: Arc<AtomicBool>,
    /// What is left of it at the beginning of this slice.
    left: Duration,
    since: Instant,
}

impl Share {
    /// Begins a slice.
    pub(crate) fn begin(&mut self) {
        self.since = Instant::now();
    }

    /// How it goes on after the entry that was looked at; see [`Pace`].
    ///
    /// # Errors
    /// DEADLINE_EXCEEDED where nobody waits for it any more.
    pub(crate) fn pace(&mut self) -> Result<Pace, Refusal> {
        if self.gone.load(Ordering::Relaxed) {
            return Err(Refusal::new(Reason::DeadlineExceeded, "the caller has gone"));
        }
        let used = self.since.elapsed();
        if used >= self.left {
            return Ok(Pace::Ends);
        }
        if used < Duration::from_millis(SCAN_SLICE_MS) {
            return Ok(Pace::On);
        }
        self.left -= used;
        Ok(Pace::Rests)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_tenant_has_so_many_at_once_and_others_have_theirs() {
        let scans = Arc::new(Scans::default());
        let mut held = Vec::new();
        for _ in 0..SCANS_MAX {
            held.push(scans.begin(TenantId(1)).await.expect("there is room"));
        }
        let waiting: Vec<_> = (0..SCANS_WAITING_MAX)
            .map(|_| {
                let scans = Arc::clone(&scans);
                tokio::spawn(async move { scans.begin(TenantId(1)).await.map(drop) })
            })
            .collect();
        while scans.0.lock()[&TenantId(1)].waiting.load(Ordering::Relaxed) < SCANS_WAITING_MAX {
            tokio::task::yield_now().await;
        }
        let refused = scans.begin(TenantId(1)).await.err().expect("too many wait");
        assert_eq!(refused.reason(), Reason::QuotaExceeded);
        scans.begin(TenantId(2)).await.expect("others have their own");
        held.clear();
        for one in waiting {
            one.await.expect("it ends").expect("there is room now");
        }
    }

    #[tokio::test]
    async fn it_stops_when_nobody_waits_and_when_its_time_is_over() {
        let scan = Scans::default().begin(TenantId(1)).await.expect("there is room");
        let (mut share, mut short) = (scan.share(2), scan.share(usize::MAX));
        short.left = Duration::ZERO;
        assert_eq!(short.pace().expect("somebody waits"), Pace::Ends);
        let slice = Duration::from_millis(SCAN_SLICE_MS);
        let mut slices = 0;
        loop {
            share.begin();
            share.since -= slice;
            match share.pace().expect("somebody waits") {
                Pace::Rests => slices += 1,
                Pace::Ends => break,
                Pace::On => panic!("a slice is over"),
            }
        }
        assert!((1..SCAN_MS_MAX / SCAN_SLICE_MS).contains(&slices), "{slices} slices");
        drop(scan);
        assert!(share.pace().is_err(), "nobody waits");
    }
}
