//! Lists are computed on blocking threads, within a time budget and a few at a time for each tenant, so that they do not
//! delay other calls, however large they are and whether or not the caller still waits.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};
use std::time::{Duration, Instant};
use switchward_machine::TenantId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::{Reason, Refusal};
use crate::limits::{SCAN_MS_MAX, SCAN_SLICE_MS, SCANS_MAX, SCANS_WAITING_MAX};

/// The lists that are being computed.
#[derive(Default)]
pub(crate) struct Scans(Mutex<HashMap<TenantId, Arc<Slots>>>);

/// The lists of one tenant.
struct Slots {
    at_once: Arc<Semaphore>,
    waiting: AtomicUsize,
}

impl Scans {
    /// Waits until this tenant may compute one more.
    ///
    /// # Errors
    /// QUOTA_EXCEEDED if [`SCANS_WAITING_MAX`] of its calls wait already.
    pub(crate) async fn begin(&self, tenant: TenantId) -> Result<Scan, Refusal> {
        let slots = Arc::clone(self.0.lock().entry(tenant).or_insert_with(|| {
            Arc::new(Slots { at_once: Arc::new(Semaphore::new(SCANS_MAX)), waiting: AtomicUsize::new(0) })
        }));
        let waiting = Waiting::begin(&slots)?;
        let permit = Arc::clone(&slots.at_once).acquire_owned().await;
        drop(waiting);
        let permit = permit.map_err(|_| Refusal::new(Reason::Draining, "the server is stopping"))?;
        Ok(Scan { _permit: permit, gone: Arc::default() })
    }
}

/// A call that waits for a slot.
struct Waiting<'p>(&'p Slots);

impl<'p> Waiting<'p> {
    fn begin(slots: &'p Slots) -> Result<Self, Refusal> {
        let waiting = Self(slots);
        if slots.waiting.fetch_add(1, Ordering::Relaxed) < SCANS_WAITING_MAX {
            return Ok(waiting);
        }
        let message = format!(
            "{SCANS_MAX} lists of this tenant are being read and {SCANS_WAITING_MAX} are waiting; send it again later"
        );
        Err(Refusal::new(Reason::QuotaExceeded, message.clone()).quota("lists", message))
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

/// One list that is being computed, as long as its caller waits for it.
pub(crate) struct Scan {
    _permit: OwnedSemaphorePermit,
    gone: Arc<AtomicBool>,
}

impl Scan {
    /// Returns the share of the time budget for one of this many shards.
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

/// How a scan continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pace {
    /// Immediately.
    On,
    /// After other waiting calls have had their turn.
    Rests,
    /// Not at all: its time is used up, so the page ends here.
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

    /// Returns how the scan continues after an entry; see [`Pace`].
    ///
    /// # Errors
    /// DEADLINE_EXCEEDED if nobody waits for it any more.
    pub(crate) fn pace(&mut self) -> Result<Pace, Refusal> {
        if self.gone.load(Ordering::Relaxed) {
            return Err(Refusal::new(Reason::DeadlineExceeded, "the caller has disconnected"));
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
            held.push(scans.begin(TenantId(1)).await.expect("a slot is free"));
        }
        let waiting: Vec<_> = (0..SCANS_WAITING_MAX)
            .map(|_| {
                let scans = Arc::clone(&scans);
                tokio::spawn(async move { scans.begin(TenantId(1)).await.map(drop) })
            })
            .collect();
        let all_wait = async {
            while scans.0.lock()[&TenantId(1)].waiting.load(Ordering::Relaxed) < SCANS_WAITING_MAX {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), all_wait).await.expect("as many wait as may");
        let refused = scans.begin(TenantId(1)).await.err().expect("too many calls wait");
        assert_eq!(refused.reason(), Reason::QuotaExceeded);
        scans.begin(TenantId(2)).await.expect("other tenants have their own slots");
        held.clear();
        for one in waiting {
            one.await.expect("the task ends").expect("a slot is free now");
        }
    }

    #[tokio::test]
    async fn it_stops_when_nobody_waits_and_when_its_time_is_over() {
        let scan = Scans::default().begin(TenantId(1)).await.expect("a slot is free");
        let (mut share, mut short) = (scan.share(2), scan.share(usize::MAX));
        short.left = Duration::ZERO;
        assert_eq!(short.pace().expect("the caller waits"), Pace::Ends);
        let slice = Duration::from_millis(SCAN_SLICE_MS);
        let mut slices = 0;
        loop {
            share.begin();
            share.since -= slice;
            match share.pace().expect("the caller waits") {
                Pace::Rests => slices += 1,
                Pace::Ends => break,
                Pace::On => panic!("the slice is used up"),
            }
        }
        assert!((1..SCAN_MS_MAX / SCAN_SLICE_MS).contains(&slices), "{slices} slices");
        drop(scan);
        assert!(share.pace().is_err(), "the caller is gone");
    }
}
