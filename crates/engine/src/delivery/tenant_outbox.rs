//! Publishes events of the tenant itself to its endpoints: its definitions, and endpoints that are disabled. The messages
//! wait in the catalogue, go out as those of sessions do, and are no dead letters: one that is given up is gone.

use switchward_machine::{NodeIx, RunId};
use switchward_state::catalogue::TenantOutbox;
use switchward_state::delivery::{AckEffect, DeferEffect, Effect, EffectBody, EndpointFact, FailEffect};
use switchward_state::limits::{PUBLISHED_ABOUT_BYTES_MAX, TENANT_OUTBOX_MAX};
use switchward_state::{Key, Reply, TENANT_ITSELF};

use crate::turn::{Stop, Turn};

/// Queues a message for each endpoint that wants it; see [`EffectBody::Publish`] for what it is about.
pub(crate) fn publish(turn: &mut Turn<'_, '_>, kind: &str, about: &str) -> Result<(), Stop> {
    let tenancy = turn.rows.tenancy_at(&Key::tenancy_record(turn.tenant()))?;
    let Some(tenancy) = tenancy else { return Ok(()) };
    let TenantOutbox { last, waiting } = tenancy.outbox.unwrap_or_default();
    let free = usize::try_from(TENANT_OUTBOX_MAX.saturating_sub(waiting)).unwrap_or(0);
    let wanting: Vec<String> =
        tenancy.endpoints.iter().filter(|one| one.wants(kind)).map(|one| one.id.clone()).collect();
    drop(tenancy);
    // All messages about one event carry one sequence.
    let sequence = last + 1;
    let about = Some(about[..about.floor_char_boundary(PUBLISHED_ABOUT_BYTES_MAX)].to_owned());
    for (number, endpoint) in (sequence..).zip(wanting.into_iter().take(free)) {
        let (kind, at, about) = (kind.to_owned(), turn.now(), about.clone());
        let effect = Effect {
            run: RunId(0),
            node: NodeIx(0),
            entry: 0,
            number,
            deliver_at: at,
            trace: turn.trace.clone(),
            body: EffectBody::Publish { endpoint, kind, sequence, at, about },
            fate: None,
        };
        turn.emit(EndpointFact::Queued { effect: Box::new(effect) })?;
    }
    Ok(())
}

/// It has arrived. Said twice, it changes nothing.
pub(crate) fn ack(turn: &mut Turn<'_, '_>, ack: &AckEffect) -> Result<Reply, Stop> {
    if waiting(turn, ack.number)?.is_some() {
        turn.emit(EndpointFact::Gone { number: ack.number, arrived: true })?;
    }
    Ok(Reply::Done)
}

/// It is given up.
pub(crate) fn fail(turn: &mut Turn<'_, '_>, fail: &FailEffect) -> Result<Reply, Stop> {
    if waiting(turn, fail.number)?.is_some() {
        turn.emit(EndpointFact::Gone { number: fail.number, arrived: false })?;
    }
    Ok(Reply::Done)
}

/// It is tried again later.
pub(crate) fn defer(turn: &mut Turn<'_, '_>, defer: &DeferEffect) -> Result<Reply, Stop> {
    let found = waiting(turn, defer.number)?;
    if found.is_some_and(|effect| effect.attempt() == defer.attempt) {
        let (number, code, message) = (defer.number, defer.code.clone(), defer.message.clone());
        let until = defer.until.max(turn.now());
        turn.emit(EndpointFact::Deferred { number, until, code, message })?;
    }
    Ok(Reply::Done)
}

fn waiting(turn: &Turn<'_, '_>, number: u64) -> Result<Option<Effect>, Stop> {
    let key = Key::outbox(turn.tenant(), TENANT_ITSELF, number);
    Ok(turn.rows.outbox_at(&key)?.map(|effect| Effect::clone(&effect)))
}
