//! Watchers of sessions, work and effects.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use switchward_machine::{SessionId, TenantId};
use switchward_state::{Decision, Event, Scope};
use tokio::sync::watch;

type Name = (TenantId, SessionId);

/// The watched sessions, and the watchers of work and effects.
#[derive(Default)]
pub(crate) struct Watchers {
    /// Changes whenever work is opened, given back or done.
    work: watch::Sender<()>,
    /// Changes whenever an effect is to go out, or has been delivered.
    outbox: watch::Sender<()>,
    /// Changes whenever a key becomes void, or a tenant changes or goes.
    credentials: watch::Sender<()>,
    /// The number of watched sessions, so that an empty map costs nothing.
    count: AtomicUsize,
    sessions: Mutex<HashMap<Name, watch::Sender<()>>>,
}

/// Changes whenever its session has changed. Only the newest change is kept: a slow reader sees several at once.
pub struct Watched(watch::Receiver<()>);

impl Watched {
    /// Waits for the next change. Returns false if the shard is gone.
    ///
    /// Cancel safe: a change is not lost.
    pub async fn changed(&mut self) -> bool {
        self.0.changed().await.is_ok()
    }
}

/// Notifies when a server begins or ceases to lead a shard.
pub struct LeadershipChanges(watch::Receiver<bool>);

impl LeadershipChanges {
    pub(crate) fn of(leads: watch::Receiver<bool>) -> Self {
        Self(leads)
    }

    /// Waits for the next change. Returns false if the shard is gone.
    ///
    /// Cancel safe: a change is not lost.
    pub async fn changed(&mut self) -> bool {
        self.0.changed().await.is_ok()
    }
}

impl Watchers {
    pub(crate) fn watch(&self, tenant: TenantId, session: SessionId) -> Watched {
        let mut sessions = self.sessions.lock();
        sessions.retain(|_, sender| sender.receiver_count() > 0);
        let sender = sessions.entry((tenant, session)).or_insert_with(|| watch::channel(()).0);
        let receiver = sender.subscribe();
        self.count.store(sessions.len(), Ordering::Release);
        Watched(receiver)
    }

    /// Notifies when work of this shard is opened, given back or done.
    pub(crate) fn watch_work(&self) -> Watched {
        Watched(self.work.subscribe())
    }

    /// Notifies when an effect of this shard is to go out, or has been delivered.
    pub(crate) fn watch_outbox(&self) -> Watched {
        Watched(self.outbox.subscribe())
    }

    /// Notifies when a key becomes void, or a tenant changes or goes.
    pub(crate) fn watch_credentials(&self) -> Watched {
        Watched(self.credentials.subscribe())
    }

    /// Notifies all watchers: the rows were replaced as a whole, and anything may have changed.
    pub(crate) fn replaced(&self) {
        for all in [&self.work, &self.outbox, &self.credentials] {
            all.send_replace(());
        }
        for session in self.sessions.lock().values() {
            session.send_replace(());
        }
    }

    pub(crate) fn moved(&self, decision: &Decision) {
        let any =
            |changes: fn(&Event) -> bool| decision.turns.iter().flat_map(|turn| &turn.events).any(changes);
        if self.credentials.receiver_count() > 0 && any(Event::changes_credentials) {
            self.credentials.send_replace(());
        }
        if self.work.receiver_count() > 0 && any(Event::changes_work) {
            self.work.send_replace(());
        }
        if self.outbox.receiver_count() > 0 && any(Event::changes_outbox) {
            self.outbox.send_replace(());
        }
        if self.count.load(Ordering::Acquire) == 0 {
            return;
        }
        let sessions = self.sessions.lock();
        for turn in &decision.turns {
            if let Scope::Session(id) = turn.scope
                && let Some(sender) = sessions.get(&(turn.tenant, id))
            {
                sender.send_replace(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use switchward_machine::{OpenId, Time};
    use switchward_state::work::WorkEvent;
    use switchward_state::{Actor, Level, Reply, TurnRecord};

    use super::*;

    #[test]
    fn a_decision_wakes_only_those_that_its_events_concern() {
        let watchers = Watchers::default();
        let (tenant, id) = (TenantId(1), SessionId::from_key(TenantId(1), "s"));
        let watched = [watchers.watch_work(), watchers.watch_outbox(), watchers.watch_credentials()];
        let turn = TurnRecord {
            tenant,
            scope: Scope::Session(id),
            by: Actor::server(),
            request: None,
            reply: Reply::Done,
            events: vec![WorkEvent::Released { item: OpenId(1), lapsed: false }.into()],
        };
        watchers.moved(&Decision::new(Level::FIRST, Time(1), vec![turn]));
        let woken = watched.map(|one| one.0.has_changed().expect("the watchers are here"));
        assert_eq!(woken, [true, false, false]);
    }

    #[tokio::test]
    async fn rows_that_are_replaced_as_a_whole_wake_every_watcher() {
        let watchers = Watchers::default();
        let (tenant, id) = (TenantId(1), SessionId::from_key(TenantId(1), "s"));
        let watched = [
            watchers.watch(tenant, id),
            watchers.watch_work(),
            watchers.watch_outbox(),
            watchers.watch_credentials(),
        ];
        watchers.replaced();
        for mut one in watched {
            assert!(one.changed().await);
        }
    }
}
