//! Whether a mail may go out in this hour. The caps are those of the whole cluster, and a mail goes out only if both counts
//! allow it. A mail over a cap is deferred to the next hour, and its session's history says so.
//!
//! 1. **The bus** counts the attempts of mails that were published in this hour, in counters that all servers share. An
//!    attempt is counted before it is published, by its name, so that the next leader of its shard counts it once; it is
//!    removed when it is known to have failed. So no two servers both take what is left of a cap. If the bus cannot be
//!    reached, no mail goes out, as none can be published.
//! 2. **The rows** of the shards count the mails that have gone out, each those of its own sessions. The server adds them up,
//!    with the mails that it has in flight. So what the bus counted may be lost: then a cap is exceeded at most by what other
//!    servers have in flight or have delivered a moment ago.
//!
//! Without Redis each server has a bus of its own, and the second count alone connects them.
//!
//! Chosen, because a mail costs one call to the bus more and the log nothing. Rejected: a reservation for each mail in a row
//! that all shards share, which would cost each mail an entry more in the log of one group, and stop all mail while it has no
//! leader.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use switchward_bus::{Bus, BusError, Count, Counter, Counting};
use switchward_machine::{Digest, SessionId, TenantId, Time};
use switchward_query::outgoing::ShardView;
use switchward_shard::{Cluster, Failure, Shard};
use switchward_state::delivery::{
    DeferEffect, DeliveryCommand, Effect, FailureCode, MailCount, MailFull, mail_counts, mail_full,
    mail_limits,
};
use switchward_state::{Body, ViewError};

use super::effects::{submit, unreadable};

/// When a mail that could not be counted is tried again.
const UNCOUNTED_RETRY: Duration = Duration::from_secs(1);

/// The mails of all shards that are out, by the counts that they will be a part of. Cheap to clone.
#[derive(Clone)]
pub(super) struct Caps(Arc<Inner>);

struct Inner {
    cluster: Cluster,
    bus: Arc<dyn Bus>,
    out: Mutex<BTreeMap<MailCount, u32>>,
}

/// Counts a mail as out until it is dropped: once a row counts the mail as delivered, or it was not delivered.
pub(super) struct Counted {
    caps: Caps,
    counts: Vec<MailCount>,
    /// Where the bus counts it.
    shared: Count,
}

/// The attempt to deliver an effect that is to be counted.
pub(super) struct Attempted<'a> {
    pub(super) tenant: TenantId,
    pub(super) session: SessionId,
    pub(super) effect: &'a Effect,
    /// Its name on the bus.
    pub(super) name: String,
}

/// Whether an attempt may be made now.
pub(super) enum Admitted {
    /// The attempt may be made; it counts towards the caps.
    Counted(Counted),
    /// A cap is reached: the effect was deferred to the next hour, and its session says so.
    Deferred,
    /// The bus cannot count now; it is worth trying again after this time.
    Later(Duration),
}

impl Caps {
    /// Counts the mails of the sessions of this cluster, on this bus.
    pub(super) fn new(cluster: Cluster, bus: Arc<dyn Bus>) -> Self {
        Self(Arc::new(Inner { cluster, bus, out: Mutex::default() }))
    }

    /// Counts an attempt as in flight, if mails of its kind are counted.
    ///
    /// # Errors
    /// The shard takes nothing, or a row cannot be read.
    pub(super) async fn admit(
        &self,
        shard: &Shard,
        view: &ShardView,
        attempted: &Attempted<'_>,
    ) -> Result<Admitted, Failure> {
        // As the shard counts mails that have gone out: by the time of its decisions.
        let now = view.due_by(shard.now()).map_err(|error| unreadable(&error))?;
        let counted = self.count(shard, view, attempted, now).map_err(|error| unreadable(&error))?;
        let full = match counted {
            Ok(counted) if counted.counts.is_empty() => return Ok(Admitted::Counted(counted)),
            Ok(counted) => match self.0.bus.count(&counted.shared).await {
                Ok(Counting::Counted) => return Ok(Admitted::Counted(counted)),
                Ok(Counting::Reached(at)) => match counted.counts.get(at) {
                    Some(reached) => MailFull::of_hour(reached.cap, now),
                    None => return Ok(Admitted::Counted(counted)),
                },
                Err(error) => return later(error),
            },
            Err(full) => full,
        };
        let Attempted { tenant, session, effect, .. } = attempted;
        let (number, attempt, wait_ms) = (effect.number, effect.attempt(), full.until.since_ms(now));
        let code = FailureCode::MailCap(full.cap);
        let defer = DeferEffect { number, attempt, wait_ms, code, detail: None, made: false };
        let body = Body::Delivery(DeliveryCommand::DeferEffect(defer));
        submit(shard, *tenant, *session, body).await.map(|()| Admitted::Deferred)
    }

    /// Takes attempts that have failed from the counts of the bus. What cannot be taken from it counts until its hour ends.
    pub(super) async fn give_back(&self, failed: Vec<Counted>) {
        for counted in failed.iter().filter(|counted| !counted.counts.is_empty()) {
            if let Err(error) = self.0.bus.uncount(&counted.shared).await {
                tracing::debug!(%error, "failed to take a mail from the counts of this hour");
                return;
            }
        }
    }

    /// Counts an attempt unless a cap of its effect is reached here. Two shards of this server cannot both take what is left
    /// of a cap.
    fn count(
        &self,
        shard: &Shard,
        view: &ShardView,
        attempted: &Attempted<'_>,
        now: Time,
    ) -> Result<Result<Counted, MailFull>, ViewError> {
        let Attempted { tenant, session, effect, name } = attempted;
        let counts = mail_counts(view.rows(), *tenant, *session, effect, now)?;
        let limits = mail_limits(view.rows(), *tenant, *session, effect, &counts)?;
        // A mail that is delivered meanwhile is counted by a row before it stops counting as in flight: read in this order,
        // none is missed.
        let mut out = self.0.out.lock();
        let mut elsewhere = BTreeMap::new();
        for count in &counts {
            elsewhere.insert(count, self.elsewhere(shard, count)?);
        }
        let under_way = |count: &MailCount| {
            let here = out.get(count).copied().unwrap_or_default();
            here.saturating_add(elsewhere.get(count).copied().unwrap_or_default())
        };
        if let Some(full) = mail_full(view.rows(), *tenant, *session, effect, &counts, now, under_way)? {
            return Ok(Err(full));
        }
        for count in &counts {
            *out.entry(count.clone()).or_default() += 1;
        }
        let counters = counts.iter().zip(limits).map(|(count, most)| counter(*tenant, count, most));
        let shared = Count { id: name.clone(), counters: counters.collect() };
        Ok(Ok(Counted { caps: self.clone(), counts, shared }))
    }

    /// Returns how many mails of the other shards have gone out that are a part of this count.
    fn elsewhere(&self, shard: &Shard, count: &MailCount) -> Result<u32, ViewError> {
        let mut sum = 0_u32;
        for other in self.0.cluster.shards().iter().filter(|other| other.number() != shard.number()) {
            sum = sum.saturating_add(ShardView::stale(other).mailed(count)?);
        }
        Ok(sum)
    }
}

/// The counter of a count on the bus.
fn counter(tenant: TenantId, count: &MailCount, most: u32) -> Counter {
    Counter { name: format!("mail:{}:{}", tenant.0, Digest::of(count.key.as_bytes())), most }
}

/// When an attempt is worth counting again.
///
/// # Errors
/// The bus is closed.
fn later(error: BusError) -> Result<Admitted, Failure> {
    match error {
        BusError::Full { retry_after, .. } | BusError::Unreachable { retry_after, .. } => {
            Ok(Admitted::Later(retry_after))
        }
        BusError::Closed => Err(Failure::Draining),
        BusError::Size { .. } => {
            tracing::error!(%error, "the bus cannot count a mail; it waits");
            Ok(Admitted::Later(UNCOUNTED_RETRY))
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut out = self.caps.0.out.lock();
        for count in &self.counts {
            if let Some(mails) = out.get_mut(count) {
                *mails -= 1;
                if *mails == 0 {
                    out.remove(count);
                }
            }
        }
    }
}
