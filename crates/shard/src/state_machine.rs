//! openraft's state machine: decisions are evolved into the state store.

use futures::{FutureExt as _, Stream, StreamExt as _};
use openraft::{
    EntryPayload, OptionalSend,
    storage::{EntryResponder, RaftSnapshotBuilder, RaftStateMachine},
};
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, atomic::Ordering};
use std::time::Instant;
use switchward_state::catalogue::{CatalogueEvent, TenantFact};
use switchward_state::session::{RemovalFact, Removing, SessionEvent};
use switchward_state::{Decision, Event, IndexKey, Kind};
use switchward_store::GroupLog;

use crate::blocking::{blocking, blocking_here};
use crate::clock::instant;
use crate::codec::{Applied, AppliedEncoder};
use crate::evolved::evolved;
use crate::limits::{APPLY_READY_BYTES_MAX, APPLY_READY_MAX, APPLY_STRETCH, DISK_WAIT};
use crate::mark::Mark;
use crate::metrics::ShardMetrics;
use crate::record::{Puts, Stored};
use crate::shared::{Persisted, Shared, broken};
use crate::snapshot::{SnapshotSource, of_state};
use crate::timers::EntryChange;
use crate::types::{LogId, Membership, Snapshot, SnapshotMeta, TypeConfig};

/// What openraft hands over to be applied.
type Next = Result<EntryResponder<TypeConfig>, io::Error>;

/// One group's state, and the tasks that are notified when it changes.
pub struct StateMachine {
    shared: Arc<Shared>,
    log: Arc<dyn GroupLog>,
    applied: Applied,
    encoder: AppliedEncoder,
    /// The prefixes of the index entries that the leader's tasks are notified of.
    relay: Vec<u8>,
    due: Vec<u8>,
    removals: Vec<u8>,
}

impl StateMachine {
    /// The state machine of an opened state.
    ///
    /// # Errors
    /// The stored position cannot be read or synced, or the rows are of a feature level that this server does not know.
    pub(crate) fn open(shared: Arc<Shared>, log: Arc<dyn GroupLog>) -> io::Result<Self> {
        // What an earlier process wrote may not be on disk yet, and the log is purged up to what is.
        let applied = shared.persist()?.unwrap_or_default();
        shared.check_level()?;
        shared.at(applied.last);
        shared.outbox.count(&shared.view()).map_err(io::Error::other)?;
        let (relay, due, removals) = (IndexKey::relay(), IndexKey::due(), IndexKey::removals());
        Ok(Self { shared, log, applied, encoder: AppliedEncoder::default(), relay, due, removals })
    }

    /// The last entry that the rows hold.
    pub(crate) fn last_applied(&self) -> Option<LogId> {
        self.applied.last
    }

    /// Returns true if this server never had an entry or a row of the group.
    fn is_new(&self) -> io::Result<bool> {
        let logged = self.log.first_last(self.shared.state.group()).map_err(broken)?;
        Ok(self.applied.last.is_none() && logged.is_none())
    }

    /// The part that the shard's loop and its tasks need.
    pub(crate) fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }

    fn decision(&mut self, bytes: &[u8], log_id: LogId) -> io::Result<()> {
        let (decision, puts) = match self.shared.take_pending_decision(bytes, self.applied.last) {
            Some(pending) => (pending.decision, pending.puts),
            None => {
                #[cfg(feature = "planted")]
                let dropped =
                    if planted!(FieldDropped) { crate::planted::with_a_field_dropped(bytes) } else { None };
                #[cfg(feature = "planted")]
                let bytes = dropped.as_deref().unwrap_or(bytes);
                let evolved = evolved(bytes, &self.shared.view());
                let puts = evolved.and_then(|(decision, changes, before)| {
                    Ok((decision, self.shared.puts(changes, before)?))
                });
                puts.map_err(|why| self.cannot_apply(log_id, &why))?
            }
        };
        let erases = erases(&decision);
        if erases {
            if let Err(error) = self.shared.state.mark() {
                tracing::warn!(%error, "failed to record that the files still hold erased data; a restart forgets it");
            }
            let later = |known: u64| Some(decision.at.0.max(known.saturating_add(1)));
            let _known = self.shared.erased.fetch_update(Ordering::SeqCst, Ordering::SeqCst, later);
        }
        let removed: usize = decision.turns.iter().flat_map(|turn| &turn.events).map(rows_removed).sum();
        self.shared.removed.fetch_add(removed, Ordering::Relaxed);
        // A tenant's record holds its retention rules.
        let ruled = puts.iter().any(|(key, row)| key.is(Kind::Tenancy) && row.is_some());
        let maps = puts.iter().any(|(key, _)| key.is(Kind::ClusterMap));
        let (mut relays, mut due, mut removes) = (false, Vec::new(), erases || ruled);
        for (key, row) in puts.iter().filter(|(key, _)| key.is(Kind::Index)) {
            if key.as_bytes().starts_with(&self.relay) {
                relays |= row.is_some();
            } else if key.as_bytes().starts_with(&self.due) {
                let change = if row.is_some() { EntryChange::Added } else { EntryChange::Removed };
                due.push(change(key.clone()));
            } else if key.as_bytes().starts_with(&self.removals) {
                removes |= row.is_some();
            }
        }
        let outbox = &self.shared.outbox;
        let moved = puts.iter().filter(|(key, _)| key.is(Kind::Index));
        moved.for_each(|(key, row)| if row.is_some() { outbox.added(key) } else { outbox.removed(key) });
        self.put(puts, log_id, None)?;
        if maps {
            self.shared.follow_map()?;
        }
        self.shared.timers.changed(due);
        self.shared.watchers.moved(&decision);
        let metrics = &self.shared.metrics;
        ShardMetrics::add(&metrics.events, decision.turns.iter().map(|turn| turn.events.len()).sum());
        ShardMetrics::add(&metrics.bytes, bytes.len());
        if relays {
            self.shared.leader_tasks.notify_one();
        }
        if removes {
            self.shared.removals.notify_one();
        }
        Ok(())
    }

    /// Applies entries until none is left or a stretch that began then is over. To read their rows may take as long as the disk
    /// does to sync, and heartbeats do not wait for it. A decision that waits here for its entry needs no reads.
    fn apply_ready(&mut self, ready: &mut VecDeque<Next>, begun: Instant) -> io::Result<()> {
        if ready.front().is_some_and(|next| self.needs_no_reads(next)) {
            return ready.pop_front().map_or(Ok(()), |own| self.entry(own?));
        }
        blocking_here(|| {
            while let Some(next) = ready.pop_front() {
                self.entry(next?)?;
                if instant() - begun >= APPLY_STRETCH {
                    break;
                }
            }
            Ok(())
        })
    }

    /// Returns true for the entry of a decision that this server has made on the current rows.
    fn needs_no_reads(&self, next: &Next) -> bool {
        let Ok((entry, _)) = next else { return false };
        let EntryPayload::Normal(payload) = &entry.payload else { return false };
        self.shared.has_pending_decision(&payload.0, self.applied.last)
    }

    fn entry(&mut self, (entry, responder): EntryResponder<TypeConfig>) -> io::Result<()> {
        // An installed snapshot may hold more than its position in the log says.
        if self.applied.last.is_none_or(|last| last < entry.log_id) {
            match entry.payload {
                EntryPayload::Blank => self.put(Vec::new(), entry.log_id, None)?,
                EntryPayload::Normal(payload) => match Mark::read(&payload.0) {
                    None => self.decision(&payload.0, entry.log_id)?,
                    Some(mark) => self.mark(mark, entry.log_id)?,
                },
                EntryPayload::Membership(members) => {
                    let membership = Membership::new(Some(entry.log_id), members);
                    self.put(Vec::new(), entry.log_id, Some(membership))?;
                }
            }
        }
        if let Some(responder) = responder {
            responder.send(());
        }
        Ok(())
    }

    /// Ends a mark's entry, which changes no rows, and takes what it asks for.
    fn mark(&mut self, mark: Result<Mark, String>, log_id: LogId) -> io::Result<()> {
        let mark = mark.map_err(|why| self.cannot_apply(log_id, &why))?;
        self.put(Vec::new(), log_id, None)?;
        self.shared.marks.reach(&self.shared.state, &mark, log_id.index);
        Ok(())
    }

    /// The error that stops the group's Raft node. Unless the state store failed, only this replica has failed.
    fn cannot_apply(&self, log_id: LogId, why: &str) -> io::Error {
        let why = format!("cannot apply entry {}: {why}", log_id.index);
        if !self.shared.is_unreadable() {
            self.shared.failed.set(why.clone());
        }
        io::Error::other(why)
    }

    /// Ends an entry: its rows and the position after it become visible, and later reach the disk, atomically.
    fn put(&mut self, puts: Puts, log_id: LogId, membership: Option<Membership>) -> io::Result<()> {
        self.applied.last = Some(log_id);
        if let Some(membership) = membership {
            self.applied.membership = membership;
        }
        let applied = self.encoder.encode(&self.applied)?;
        let tenancies = puts.iter().any(|(key, _)| key.is(Kind::Tenancy));
        // Readers hold it while they read the disk.
        let whole = &self.shared.whole;
        let _alone = whole.try_write().unwrap_or_else(|| blocking_here(|| whole.write()));
        let rows = puts.into_iter().map(|(key, row)| (key.into_bytes(), row.map(Stored)));
        self.shared.state.apply(rows, applied);
        if tenancies {
            self.shared.tenancies.changed();
        }
        self.shared.at(self.applied.last);
        Ok(())
    }
}

/// Takes the entries that are ready, as far as the bounds of one stretch allow.
fn take_ready(entries: &mut (impl Stream<Item = Next> + Unpin), ready: &mut VecDeque<Next>, begun: Instant) {
    let mut bytes: usize = ready.iter().map(payload_bytes).sum();
    while ready.len() < APPLY_READY_MAX
        && bytes < APPLY_READY_BYTES_MAX
        && instant() - begun < APPLY_STRETCH
        && let Some(Some(next)) = entries.next().now_or_never()
    {
        bytes += payload_bytes(&next);
        ready.push_back(next);
    }
}

fn payload_bytes(next: &Next) -> usize {
    let Ok((entry, _)) = next else { return 0 };
    if let EntryPayload::Normal(payload) = &entry.payload { payload.0.len() } else { 0 }
}

/// Returns true if an erasure or a deletion begins, of a session or of a tenant.
fn erases(decision: &Decision) -> bool {
    let mut events = decision.turns.iter().flat_map(|turn| &turn.events);
    events.any(|event| {
        if let Event::Catalogue(CatalogueEvent::TenancyPut(tenancy)) = event {
            return tenancy.deletion.as_ref().is_some_and(|deletion| deletion.done.is_none());
        }
        if let Event::Catalogue(CatalogueEvent::Tenants(TenantFact::Deleted { .. })) = event {
            return true;
        }
        let Event::Session(SessionEvent::Removals(RemovalFact::Begun { how, .. })) = event else {
            return false;
        };
        matches!(how, Removing::Erased | Removing::Deleted)
    })
}

fn rows_removed(event: &Event) -> usize {
    if let Event::Session(SessionEvent::Removals(fact)) = event { fact.rows() } else { 0 }
}

impl RaftStateMachine<TypeConfig> for StateMachine {
    type SnapshotData = SnapshotSource;
    type SnapshotBuilder = Builder;

    async fn applied_state(&mut self) -> Result<(Option<LogId>, Membership), io::Error> {
        Ok((self.applied.last, self.applied.membership.clone()))
    }

    async fn apply<S>(&mut self, mut entries: S) -> Result<(), io::Error>
    where
        S: Stream<Item = Next> + Unpin + OptionalSend,
    {
        let (mut ready, mut begun) = (VecDeque::new(), instant());
        while let Some(next) = entries.next().await {
            ready.push_back(next);
            take_ready(&mut entries, &mut ready, begun);
            while !ready.is_empty() {
                self.apply_ready(&mut ready, begun)?;
                // The entries of a replay are all ready, and there may be many: heartbeats do not wait for the last of them.
                if instant() - begun >= APPLY_STRETCH {
                    tokio::task::yield_now().await;
                    begun = instant();
                }
            }
        }
        Ok(())
    }

    async fn get_snapshot_builder(&mut self) -> Builder {
        Builder(Arc::clone(&self.shared))
    }

    async fn install_snapshot(
        &mut self,
        _: &SnapshotMeta,
        snapshot: SnapshotSource,
    ) -> Result<(), io::Error> {
        let is_new = self.is_new()?;
        self.applied = loop {
            let (shared, snapshot) = (Arc::clone(&self.shared), snapshot.clone());
            let installed = blocking(move || shared.install(&snapshot));
            match installed.await.map_err(io::Error::other)?? {
                Persisted::To(applied) => break applied.unwrap_or_default(),
                // A node that waits here may not end. Not before: the end of a node that serves ends its server as a failure.
                Persisted::DiskFull if self.shared.drains.load(Ordering::SeqCst) => {
                    return Err(io::ErrorKind::StorageFull.into());
                }
                Persisted::DiskFull => tokio::time::sleep(DISK_WAIT).await,
            }
        };
        self.shared.tenancies.changed();
        self.shared.at(self.applied.last);
        self.shared.check_level().inspect_err(|error| self.shared.failed.set(error.to_string()))?;
        let shared = &self.shared;
        blocking_here(|| {
            if !is_new {
                shared.owe_after_snapshot()?;
            }
            shared.follow_map()?;
            shared.watchers.replaced();
            shared.outbox.count(&shared.view()).map_err(io::Error::other)
        })
    }

    async fn get_current_snapshot(&mut self) -> Result<Option<Snapshot>, io::Error> {
        let flushed = self.shared.flushed();
        Ok(flushed.filter(|applied| applied.last.is_some()).map(|applied| of_state(&self.shared, applied)))
    }
}

/// Builds a snapshot: the state store on disk is one, so nothing is copied before it is needed.
pub struct Builder(Arc<Shared>);

impl RaftSnapshotBuilder<TypeConfig> for Builder {
    type SnapshotData = SnapshotSource;

    async fn build_snapshot(&mut self) -> Result<Snapshot, io::Error> {
        loop {
            let shared = Arc::clone(&self.0);
            let persisted = blocking(move || shared.persisted());
            match persisted.await.map_err(io::Error::other)?? {
                Persisted::To(applied) => return Ok(of_state(&self.0, applied.unwrap_or_default())),
                Persisted::DiskFull => tokio::time::sleep(DISK_WAIT).await,
            }
        }
    }
}

#[cfg(test)]
mod tests;
