//! What the oracle knows of effects: which attempt is the next one, and what became of them.

use std::collections::{BTreeMap, BTreeSet};
use switchward_machine::{Channel, SessionId};
use switchward_state::delivery::{Attempt, DeliveryDetail, DeliveryEvent, EffectBody};

/// An effect of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EffectId {
    pub(crate) session: SessionId,
    pub(crate) number: u64,
}

/// Effects that have neither arrived nor been dismissed, counted by the events of the log alone.
#[derive(Default)]
pub(crate) struct Effects {
    pending: BTreeMap<EffectId, Pending>,
    /// Those that a receiver outside has taken.
    received: BTreeSet<EffectId>,
}

#[derive(Debug, Default)]
struct Pending {
    attempt: Attempt,
    is_dead: bool,
    /// True for what only another shard gets.
    is_inner: bool,
}

/// The text of a report; empty if it has none.
fn text_of(detail: Option<&DeliveryDetail>) -> &str {
    if let Some(DeliveryDetail::Quoted { text }) = detail { text } else { "" }
}

/// The words of a report: which attempt it is about. They stand in the event that the report causes.
pub(crate) fn words(attempt: Attempt) -> String {
    format!("attempt {}.{}", attempt.round, attempt.number)
}

impl Effects {
    /// A receiver outside has taken an effect.
    pub(crate) fn receive(&mut self, id: EffectId) {
        self.received.insert(id);
    }

    /// What a report of this attempt finds: the attempt that is next, or `None` if the effect is gone.
    pub(crate) fn next(&self, id: EffectId) -> Option<Attempt> {
        self.pending.get(&id).map(|pending| pending.attempt)
    }

    /// Effects for the outside that are neither gone nor dead letters.
    pub(crate) fn waiting(&self) -> Vec<EffectId> {
        let waits = |pending: &Pending| !pending.is_dead && !pending.is_inner;
        self.pending.iter().filter(|(_, pending)| waits(pending)).map(|(id, _)| *id).collect()
    }

    /// Follows an event of a session.
    pub(crate) fn look(&mut self, session: SessionId, event: &DeliveryEvent) -> Result<(), String> {
        match event {
            DeliveryEvent::Queued { effect } => {
                let stays = matches!(
                    effect.body,
                    EffectBody::Message { channel: Channel::Chat, .. } | EffectBody::Notice { .. }
                );
                if !stays {
                    let pending = Pending { is_inner: effect.body.inner(), ..Pending::default() };
                    self.pending.insert(EffectId { session, number: effect.number }, pending);
                }
                Ok(())
            }
            DeliveryEvent::Acked { number } => self.acked(EffectId { session, number: *number }),
            DeliveryEvent::Deferred { number, detail, .. } => {
                let pending = self.reported(EffectId { session, number: *number }, detail.as_ref())?;
                pending.attempt.number += 1;
                Ok(())
            }
            DeliveryEvent::Held { number, detail, .. } => {
                self.reported(EffectId { session, number: *number }, detail.as_ref()).map(|_| ())
            }
            DeliveryEvent::Failed { number, detail, .. } => {
                let id = EffectId { session, number: *number };
                let pending =
                    self.pending.get_mut(&id).ok_or_else(|| format!("{id:?} is gone, and fails"))?;
                let of_round =
                    text_of(detail.as_ref()).starts_with(&format!("attempt {}.", pending.attempt.round));
                if pending.is_dead || !of_round {
                    return Err(format!("{id:?} fails by the report {detail:?}, and is {pending:?}"));
                }
                pending.is_dead = true;
                Ok(())
            }
            DeliveryEvent::Retried { number } => {
                let id = EffectId { session, number: *number };
                let pending = self.pending.get_mut(&id).filter(|pending| pending.is_dead);
                let pending = pending.ok_or_else(|| format!("{id:?} is sent again and is no dead letter"))?;
                pending.attempt = Attempt { round: pending.attempt.round + 1, number: 0 };
                pending.is_dead = false;
                Ok(())
            }
            DeliveryEvent::Dismissed { number } => {
                let id = EffectId { session, number: *number };
                let was = self.pending.remove(&id).filter(|pending| pending.is_dead);
                was.map(|_| ()).ok_or_else(|| format!("{id:?} is dismissed and is no dead letter"))
            }
            _ => Ok(()),
        }
    }

    fn acked(&mut self, id: EffectId) -> Result<(), String> {
        let Some(pending) = self.pending.remove(&id) else {
            return Err(format!("{id:?} is acknowledged twice, or was never sent"));
        };
        if !pending.is_inner && !self.received.contains(&id) {
            return Err(format!("{id:?} is acknowledged, and nobody has received it"));
        }
        Ok(())
    }

    /// A report counts only for the attempt that is next.
    fn reported(&mut self, id: EffectId, detail: Option<&DeliveryDetail>) -> Result<&mut Pending, String> {
        let pending = self.pending.get_mut(&id).ok_or_else(|| format!("{id:?} is gone, and is deferred"))?;
        if pending.is_dead || words(pending.attempt) != text_of(detail) {
            return Err(format!("{id:?} is deferred by the report {detail:?}, and is {pending:?}"));
        }
        Ok(pending)
    }
}
