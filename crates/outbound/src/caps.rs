//! Whether a mail may go out in this hour. The rows of the shards count the mails that have gone out, each those of its own
//! sessions; the server adds them up, with the mails that are in flight. A mail over a cap is deferred to the next hour, and
//! its session's history says so.
//!
//! In a cluster, the caps are those of the whole cluster: this server has a replica of every shard, and counts in it what
//! other servers have delivered. What is not counted is in flight from shards that other servers lead, or delivered and
//! not yet applied here. So within an hour a cap is exceeded by no more than that: each relay has at most
//! `2^LEVEL_MAX` = 16 mails out to one destination of a tenant (see `backoff.rs`), and half of its capacity of one tenant.
//! Chosen, because caps protect people from floods and not budgets. Rejected: a reservation for each mail in a row that all
//! shards share, which would cost each mail an entry more in the log of one group, and stop all mail while it has no leader.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use switchward_machine::{SessionId, TenantId};
use switchward_shard::{Cluster, Failure, Shard, StateView};
use switchward_state::delivery::{
    DeferEffect, DeliveryCommand, Effect, MailCount, MailFull, mail_counts, mail_full,
};
use switchward_state::{Body, Due, Key, Row, View as _, ViewError};

use super::effects::{submit, unreadable};
use super::failure_code::FailureCode;

/// The mails of all shards that are out, by the counts that they will be a part of. Cheap to clone.
#[derive(Clone)]
pub(super) struct Caps(Arc<Inner>);

struct Inner {
    cluster: Cluster,
    out: Mutex<BTreeMap<Key, u32>>,
}

/// Counts a mail as out until it is dropped: once a row counts the mail as delivered, or it was not delivered.
pub(super) struct Counted {
    caps: Caps,
    counts: Vec<MailCount>,
}

impl Caps {
    /// Counts the mails of the sessions of this cluster.
    pub(super) fn new(cluster: Cluster) -> Self {
        Self(Arc::new(Inner { cluster, out: Mutex::default() }))
    }

    /// Counts an effect as in flight, if mails of its kind are counted. Returns `None` if a cap is reached: the effect is
    /// deferred to the next hour, and its session says so.
    ///
    /// # Errors
    /// The shard takes nothing, or a row cannot be read.
    pub(super) async fn counted(
        &self,
        shard: &Shard,
        view: &StateView,
        due: &Due,
    ) -> Result<Option<Counted>, Failure> {
        let row = view.row(&due.key).map_err(|error| unreadable(&error))?;
        let (Some(Row::Outbox(effect)), Some(session)) = (row.as_deref(), due.key.session_of()) else {
            return Ok(Some(Counted { caps: self.clone(), counts: Vec::new() }));
        };
        let tenant = due.key.tenant_of();
        let full =
            match self.count(shard, view, tenant, session, effect).map_err(|error| unreadable(&error))? {
                Ok(counted) => return Ok(Some(counted)),
                Err(full) => full,
            };
        let (number, attempt) = (effect.number, effect.attempt());
        let (code, message) =
            (FailureCode::MailCap(full.cap).word().to_owned(), switchward_messages::mail_cap(full.cap));
        let now = view.due_by(shard.now()).map_err(|error| unreadable(&error))?;
        let wait_ms = full.until.since_ms(now);
        let defer = DeferEffect { number, attempt, wait_ms, code, message, made: false };
        submit(shard, tenant, session, Body::Delivery(DeliveryCommand::DeferEffect(defer)))
            .await
            .map(|()| None)
    }

    /// Counts an effect unless a cap of it is reached. Two shards cannot both take what is left of a cap.
    fn count(
        &self,
        shard: &Shard,
        view: &StateView,
        tenant: TenantId,
        session: SessionId,
        effect: &Effect,
    ) -> Result<Result<Counted, MailFull>, ViewError> {
        // As the shard counts mails that have gone out: by the time of its decisions.
        let now = view.due_by(shard.now())?;
        let counts = mail_counts(view, tenant, session, effect, now)?;
        // A mail that is delivered meanwhile is counted by a row before it stops counting as in flight: read in this order,
        // none is missed.
        let mut out = self.0.out.lock();
        let mut elsewhere = BTreeMap::new();
        for MailCount { key, .. } in &counts {
            elsewhere.insert(key, self.elsewhere(shard, key)?);
        }
        let under_way = |key: &Key| {
            let here = out.get(key).copied().unwrap_or_default();
            here.saturating_add(elsewhere.get(key).copied().unwrap_or_default())
        };
        if let Some(full) = mail_full(view, tenant, session, effect, &counts, now, under_way)? {
            return Ok(Err(full));
        }
        for MailCount { key, .. } in &counts {
            *out.entry(key.clone()).or_default() += 1;
        }
        Ok(Ok(Counted { caps: self.clone(), counts }))
    }

    /// Returns how many mails of the other shards have gone out that a row counts.
    fn elsewhere(&self, shard: &Shard, key: &Key) -> Result<u32, ViewError> {
        let mut sum = 0_u32;
        for other in self.0.cluster.shards().iter().filter(|other| other.number() != shard.number()) {
            if let Some(Row::Mailed(count)) = other.read_stale().row(key)?.as_deref() {
                sum = sum.saturating_add(*count);
            }
        }
        Ok(sum)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut out = self.caps.0.out.lock();
        for MailCount { key, .. } in &self.counts {
            if let Some(count) = out.get_mut(key) {
                *count -= 1;
                if *count == 0 {
                    out.remove(key);
                }
            }
        }
    }
}
