//! What a relay has in flight.

use std::collections::BTreeMap;

use switchward_bus::Stream;
use switchward_query::outgoing::{Destinations, EffectKey, ShardView};
use switchward_shard::Failure;
use switchward_state::ViewError;
use switchward_state::delivery::Attempt;
use tokio::time::Instant;

use super::{DESTINATION_PART, unreadable};
use crate::backoff::{Backoff, Destination};
use crate::capacity::{Capacities, Capacity};
use crate::caps::Counted;

/// An effect that is out.
pub(super) struct Sent {
    pub(super) attempt: Attempt,
    pub(super) stream: Stream,
    pub(super) destination: Destination,
    /// Counts it, if it is a mail.
    pub(super) counted: Counted,
    /// When it is taken for lost.
    pub(super) until: Instant,
}

/// What the relay remembers between its rounds of effects that were published and whose outcome is not recorded.
#[derive(Default)]
pub(super) struct Out {
    pub(super) sent: BTreeMap<EffectKey, Sent>,
    pub(super) backoff: Backoff,
    pub(super) destinations: Destinations,
    /// The end of the queue behind which the next round begins, so that the first destination has no advantage.
    pub(super) turn: Option<Vec<u8>>,
    /// Whether it was logged that mails are given up because this server sends none.
    pub(super) mail_reported: bool,
}

impl Out {
    /// The capacities of the streams, `most` each, less what is in flight.
    pub(super) fn capacities(&self, most: usize) -> Capacities {
        let mut capacities: Capacities = [Stream::Mail, Stream::Webhook]
            .map(|stream| (stream, Capacity::new(most, DESTINATION_PART)))
            .into();
        for Sent { stream, destination: (tenant, destination), .. } in self.sent.values() {
            if let Some(capacity) = capacities.get_mut(stream) {
                capacity.take(*tenant, destination);
            }
        }
        capacities
    }
}

/// What has become of an effect that went out.
enum Progress {
    /// It may still arrive.
    Out,
    /// Its row is gone: it was delivered, or nobody wants it any more.
    Gone,
    /// This attempt has failed, and another one follows.
    Deferred,
    /// It was given up.
    Dead,
    /// There is no outcome in its time.
    Lost,
}

/// Forgets what was delivered, deferred or lost, and records it in the backoff of its destination. Returns the counts of the
/// attempts that have failed.
pub(super) fn forget(view: &ShardView, out: &mut Out) -> Result<Vec<Counted>, Failure> {
    let (now, mut failed) = (Instant::now(), Vec::new());
    let mut ended = Vec::new();
    for (key, sent) in &out.sent {
        match progress(view, key, sent, now).map_err(|error| unreadable(&error))? {
            Progress::Out => {}
            progress @ (Progress::Gone | Progress::Deferred | Progress::Dead | Progress::Lost) => {
                ended.push((key.clone(), progress))
            }
        }
    }
    for (key, progress) in ended {
        let Some(Sent { destination, counted, .. }) = out.sent.remove(&key) else { continue };
        match progress {
            Progress::Gone => out.backoff.succeeded(&destination),
            // A deferred effect is a failure of its destination; one that was given up is not.
            Progress::Deferred => {
                out.backoff.failed(&destination, now);
                failed.push(counted);
            }
            Progress::Dead => failed.push(counted),
            // It may have been delivered, and counts under the same name when it is published again.
            Progress::Out | Progress::Lost => {}
        }
    }
    Ok(failed)
}

fn progress(view: &ShardView, key: &EffectKey, sent: &Sent, now: Instant) -> Result<Progress, ViewError> {
    let Some(effect) = view.effect(key)? else { return Ok(Progress::Gone) };
    Ok(if effect.dead_letter().is_some() {
        Progress::Dead
    } else if effect.attempt() != sent.attempt {
        Progress::Deferred
    } else if sent.until > now {
        Progress::Out
    } else {
        Progress::Lost
    })
}
