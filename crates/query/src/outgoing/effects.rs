//! Questions about effects.

use std::ops::ControlFlow;
use switchward_machine::{SessionId, TenantId, Time};
use switchward_state::delivery::Effect;
use switchward_state::{Due, IndexKey, Key, ReadRows as _, SharedRow, View as _, ViewError};

use super::ShardView;
use super::queues::Queue;

/// The key of an effect's row in an outbox.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct EffectKey(Key);

impl EffectKey {
    /// The tenant that it belongs to.
    pub fn tenant(&self) -> TenantId {
        self.0.tenant_of()
    }

    /// The session whose outbox it is in; the id that no session has, for the tenant's own outbox.
    pub fn session(&self) -> Option<SessionId> {
        self.0.session_of()
    }
}

/// An effect in the queue of its destination.
pub struct QueuedEffect {
    /// When it is due.
    pub at: Time,
    /// Its row in the outbox.
    pub key: EffectKey,
}

impl ShardView {
    /// An effect; `None` if it is not in the outbox any more.
    ///
    /// # Errors
    /// A row cannot be read.
    pub fn effect(&self, key: &EffectKey) -> Result<Option<SharedRow<Effect>>, ViewError> {
        self.0.outbox_at(&key.0)
    }

    /// The effect of this number; `None` if it is not in the outbox any more.
    ///
    /// # Errors
    /// A row cannot be read.
    pub fn effect_numbered(
        &self,
        tenant: TenantId,
        session: SessionId,
        number: u64,
    ) -> Result<Option<SharedRow<Effect>>, ViewError> {
        self.0.outbox_at(&Key::outbox(tenant, session, number))
    }

    /// Visits the effects of a queue, those that are due earlier first, behind `after` if it is given, until `visit` breaks
    /// off or fails.
    ///
    /// # Errors
    /// A row cannot be read.
    pub fn each_effect(
        &self,
        queue: &Queue,
        after: Option<&[u8]>,
        visit: &mut dyn FnMut(QueuedEffect) -> Result<ControlFlow<()>, ViewError>,
    ) -> Result<(), ViewError> {
        let mut failed = None;
        self.0.scan(&IndexKey::destination(&queue.0), after, &mut |entry, _| {
            let Some(Due { at, key }) = IndexKey::queued_of(entry) else { return ControlFlow::Break(()) };
            visit(QueuedEffect { at, key: EffectKey(key) }).unwrap_or_else(|error| {
                failed = Some(error);
                ControlFlow::Break(())
            })
        })?;
        failed.map_or(Ok(()), Err)
    }
}
