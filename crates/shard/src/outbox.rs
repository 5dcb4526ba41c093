//! The limit of effects that wait to go out in a shard, shared fairly by its tenants. While the bus or a receiver is
//! unreachable, sessions go on; commands that begin something new are refused first, so that those that end work get in.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::{
    Mutex, MutexGuard, PoisonError,
    atomic::{AtomicUsize, Ordering},
};
use switchward_machine::TenantId;
use switchward_state::{AdmissionClass, Command, IndexKey, Key, Reason, Rejection, View, ViewError};

use crate::limits::{OUTBOX_MAX, OUTBOX_RESERVED, OUTBOX_RETRY_MS};

/// Counts the effects of one shard that are to go out and are no dead letters, except for messages to endpoints: each
/// session has a limit for those, and an endpoint that is down must not prevent sessions from starting.
pub(crate) struct Outbox {
    /// The prefix of the entries in their index.
    index: Vec<u8>,
    waiting: AtomicUsize,
    /// The same by tenant; a tenant without any has no entry.
    tenants: Mutex<HashMap<TenantId, usize>>,
    max: AtomicUsize,
}

impl Default for Outbox {
    fn default() -> Self {
        Self {
            index: IndexKey::deliveries(),
            waiting: AtomicUsize::new(0),
            tenants: Mutex::default(),
            max: AtomicUsize::new(OUTBOX_MAX),
        }
    }
}

impl Outbox {
    /// Counts the entries of the index: once, when the rows are opened or replaced.
    ///
    /// # Errors
    /// The index cannot be read.
    pub(crate) fn count(&self, view: &dyn View) -> Result<(), ViewError> {
        let mut waiting: HashMap<TenantId, usize> = HashMap::new();
        view.scan(&self.index, None, &mut |entry, _| {
            if let Some(tenant) = self.tenant_of(entry) {
                *waiting.entry(tenant).or_default() += 1;
            }
            ControlFlow::Continue(())
        })?;
        let mut tenants = self.tenants();
        self.waiting.store(waiting.values().sum(), Ordering::Release);
        *tenants = waiting;
        Ok(())
    }

    /// Counts an index entry that was added.
    pub(crate) fn added(&self, entry: &Key) {
        self.changed(entry, true);
    }

    /// Stops counting an index entry that was removed.
    pub(crate) fn removed(&self, entry: &Key) {
        self.changed(entry, false);
    }

    fn changed(&self, entry: &Key, added: bool) {
        let Some(tenant) = self.tenant_of(entry) else { return };
        let mut tenants = self.tenants();
        if added {
            *tenants.entry(tenant).or_default() += 1;
            self.waiting.fetch_add(1, Ordering::AcqRel);
        } else if let Some(of) = tenants.get_mut(&tenant) {
            *of -= 1;
            if *of == 0 {
                tenants.remove(&tenant);
            }
            self.waiting.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Sets how many effects may wait.
    pub(crate) fn set_max(&self, max: usize) {
        self.max.store(max, Ordering::Release);
    }

    /// How many effects wait.
    fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Acquire)
    }

    /// The error for a command that begins something if too many effects wait and its tenant has at least an equal share
    /// of them. Returns `None` if the command may go on. A tenant below its share is never refused, so the total stays
    /// below twice the limit.
    pub(crate) fn refusal(&self, command: &Command) -> Option<Rejection> {
        let max = self.max.load(Ordering::Acquire);
        let capacity = max - max / OUTBOX_RESERVED;
        if self.waiting() < capacity || command.body.admission() != AdmissionClass::Begins {
            return None;
        }
        let tenants = self.tenants();
        let own = tenants.get(&command.tenant).copied().unwrap_or_default();
        let others = tenants.len() - usize::from(own > 0);
        let share = capacity / (others + 1);
        if own < share {
            return None;
        }
        let message = format!(
            "{own} effects of this tenant wait in this shard; its share is {share}, the rest is reserved for other \
             tenants and for commands that end work"
        );
        let no = Rejection::new(Reason::QuotaExceeded, message).fact("limit", share);
        Some(no.retry_after_ms(Some(OUTBOX_RETRY_MS)))
    }

    /// The tenant of an entry that counts.
    fn tenant_of(&self, entry: &Key) -> Option<TenantId> {
        let counts = entry.as_bytes().starts_with(&self.index) && !IndexKey::is_published(entry);
        counts.then(|| IndexKey::tenant_of_queued(entry)).flatten()
    }

    fn tenants(&self) -> MutexGuard<'_, HashMap<TenantId, usize>> {
        self.tenants.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use switchward_state::delivery::DeliveryCommand;
    use switchward_state::{
        Body, Scope,
        delivery::{AckEffect, RetryEffect},
    };

    const BEGIN: Body = Body::Delivery(DeliveryCommand::RetryEffect(RetryEffect { number: 1 }));
    const END: Body = Body::Delivery(DeliveryCommand::AckEffect(AckEffect { number: 1 }));

    /// An index entry of a tenant's effect.
    fn entry(tenant: u32) -> Key {
        let bytes = [IndexKey::deliveries().as_slice(), &tenant.to_be_bytes(), &[0]].concat();
        Key::from_bytes(&bytes).expect("the bytes are a key")
    }

    fn refused(outbox: &Outbox, tenant: u32, body: Body) -> Option<Rejection> {
        outbox.refusal(&Command::of_server(TenantId(tenant), Scope::Shard, body))
    }

    #[test]
    fn what_begins_is_refused_before_what_ends_and_only_where_it_is_full() {
        let outbox = Outbox::default();
        outbox.set_max(10);
        for waiting in 0..12 {
            assert_eq!(outbox.waiting(), waiting);
            assert_eq!(refused(&outbox, 1, BEGIN).is_some(), waiting >= 8, "{waiting} wait");
            assert_eq!(refused(&outbox, 1, END), None);
            outbox.changed(&entry(1), true);
        }
        let no = refused(&outbox, 1, BEGIN).expect("the outbox is full");
        assert_eq!((no.reason, no.retry_after_ms), (Reason::QuotaExceeded, Some(OUTBOX_RETRY_MS)));
        outbox.changed(&Key::clock(), false);
        assert_eq!(outbox.waiting(), 12, "other rows are not counted");
    }

    #[test]
    fn a_tenant_that_fills_it_keeps_no_other_from_its_share() {
        let outbox = Outbox::default();
        outbox.set_max(10);
        (0..20).for_each(|_| outbox.changed(&entry(1), true));
        for own in 0..6 {
            assert_eq!(refused(&outbox, 2, BEGIN).is_some(), own >= 4, "the other has {own}");
            assert!(refused(&outbox, 1, BEGIN).is_some());
            outbox.changed(&entry(2), true);
        }
        (0..20).for_each(|_| outbox.changed(&entry(1), false));
        assert_eq!((outbox.waiting(), refused(&outbox, 2, BEGIN)), (6, None), "the outbox has space again");
        outbox.changed(&entry(1), false);
        assert_eq!(outbox.waiting(), 6, "effects that were not counted are not subtracted");
    }
}
