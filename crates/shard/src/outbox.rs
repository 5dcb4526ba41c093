//! How much of a shard waits to go out, and who may add to it. Where nothing goes out, as the bus is away or a receiver
//! is, sessions go on; what begins something new is refused first, so that what ends work still gets in.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};

use switchward_engine::{Body, IndexKey, Key, Reason, Rejection, View, ViewError};

use crate::bearing::Bearing;
use crate::limits::{OUTBOX_MAX, OUTBOX_RESERVED, OUTBOX_RETRY_MS};

/// The effects of one shard that are to go out and are no dead letters. Messages to endpoints are not among them: they are
/// bounded in each session, and an endpoint that takes nothing must keep nobody from beginning anything.
pub(crate) struct Outbox {
    /// How the entries of their index begin.
    index: Vec<u8>,
    waiting: AtomicUsize,
    max: AtomicUsize,
}

impl Default for Outbox {
    fn default() -> Self {
        let (waiting, max) = (AtomicUsize::new(0), AtomicUsize::new(OUTBOX_MAX));
        Self { index: IndexKey::deliveries(), waiting, max }
    }
}

impl Outbox {
    /// Counts what stands in the index: once, when the rows are opened or come from elsewhere.
    ///
    /// # Errors
    /// The index cannot be read.
    pub(crate) fn count(&self, view: &dyn View) -> Result<(), ViewError> {
        let mut waiting = 0;
        view.scan(&self.index, None, &mut |entry, _| {
            waiting += usize::from(!IndexKey::is_published(entry));
            ControlFlow::Continue(())
        })?;
        self.waiting.store(waiting, Ordering::Release);
        Ok(())
    }

    /// An entry of an index came or went.
    pub(crate) fn changed(&self, entry: &Key, came: bool) {
        if !entry.as_bytes().starts_with(&self.index) || IndexKey::is_published(entry) {
            return;
        }
        let step = |now: usize| Some(if came { now.saturating_add(1) } else { now.saturating_sub(1) });
        // It always steps, so there is nothing that could fail.
        let _before = self.waiting.fetch_update(Ordering::AcqRel, Ordering::Acquire, step);
    }

    /// Lets so many effects wait from now on.
    pub(crate) fn set_max(&self, max: usize) {
        self.max.store(max, Ordering::Release);
    }

    /// How many effects wait.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Acquire)
    }

    /// Why a command cannot begin anything now; nothing where it can, or begins nothing.
    pub(crate) fn refusal(&self, body: &Body) -> Option<Rejection> {
        let max = self.max.load(Ordering::Acquire);
        let room = max - max / OUTBOX_RESERVED;
        if self.waiting() < room || Bearing::of(body) != Bearing::Begins {
            return None;
        }
        let message = format!(
            "{room} effects of this shard wait to go out; the rest of its {max} is kept for what ends work that is under way"
        );
        let no = Rejection::new(Reason::QuotaExceeded, message).fact("limit", room);
        Some(no.retry_after_ms(Some(OUTBOX_RETRY_MS)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use switchward_engine::{AckEffect, RetryEffect};

    #[test]
    fn what_begins_is_refused_before_what_ends_and_only_where_it_is_full() {
        let outbox = Outbox::default();
        outbox.set_max(10);
        let entry = Key::from_bytes(&IndexKey::deliveries()).expect("the beginning is a key");
        let (begin, end) =
            (Body::RetryEffect(RetryEffect { number: 1 }), Body::AckEffect(AckEffect { number: 1 }));
        for waiting in 0..12 {
            assert_eq!(outbox.waiting(), waiting);
            assert_eq!(outbox.refusal(&begin).is_some(), waiting >= 8, "{waiting} wait");
            assert_eq!(outbox.refusal(&end), None);
            outbox.changed(&entry, true);
        }
        let no = outbox.refusal(&begin).expect("it is full");
        assert_eq!((no.reason, no.retry_after_ms), (Reason::QuotaExceeded, Some(OUTBOX_RETRY_MS)));
        outbox.changed(&Key::clock(), false);
        assert_eq!(outbox.waiting(), 12, "other rows are not counted");
    }
}
