//! An endpoint gets the events that it has missed, also those of a session that has ended.

use switchward_state::delivery::{DeliveryEvent, EffectBody, EventSubject, PublishedEvent, Republish};
use switchward_state::limits::{PUBLISHED_ABOUT_BYTES_MAX, PUBLISHED_MAX, REPUBLISH_MAX};
use switchward_state::{Key, ReadRows as _, Reason, Rejection, Reply};

use crate::turn::{Stop, Turn, check_size};

pub(crate) fn run(turn: &mut Turn<'_, '_>, republish: &Republish) -> Result<Reply, Stop> {
    turn.expect_sequence(&*turn.session()?)?;
    check_size(
        "events",
        republish.retry.len().saturating_add(republish.events.len()),
        REPUBLISH_MAX,
        "messages",
    )?;
    takes(turn, &republish.endpoint)?;
    let (root, waiting) = {
        let session = turn.session()?;
        (session.root, usize::try_from(session.outbox().published).unwrap_or(usize::MAX))
    };
    if waiting.saturating_add(republish.events.len()) > PUBLISHED_MAX {
        let message = format!("the session has {PUBLISHED_MAX} messages to endpoints that have not arrived");
        return Err(Rejection::new(Reason::QuotaExceeded, message).into());
    }
    republish.events.iter().try_for_each(check)?;
    for number in &republish.retry {
        let key = Key::outbox(turn.tenant(), turn.session_id()?, *number);
        let dead = turn.rows.outbox_at(&key)?.is_some_and(|effect| {
            let ours =
                matches!(&effect.body, EffectBody::Publish { endpoint, .. } if *endpoint == republish.endpoint);
            ours && effect.dead_letter().is_some()
        });
        if dead {
            turn.emit(DeliveryEvent::Retried { number: *number })?;
        }
    }
    for event in &republish.events {
        let (endpoint, kind, about) = (republish.endpoint.clone(), event.kind, event.about.clone());
        let (sequence, at) = (event.sequence, event.at);
        turn.send(root, EffectBody::Publish { endpoint, kind, sequence, at, about })?;
    }
    turn.moved()
}

/// Refuses an event that no session has, or whose subject is too long.
fn check(event: &PublishedEvent) -> Result<(), Rejection> {
    let about = event.about.as_ref().map_or(0, EventSubject::bytes);
    check_size("about", about, PUBLISHED_ABOUT_BYTES_MAX, "bytes")?;
    if !event.kind.is_of_session() {
        let message = format!("no session has events of type {}", event.kind);
        return Err(Rejection::new(Reason::FieldInvalid, message));
    }
    Ok(())
}

/// Whether the endpoint is there and is sent messages.
fn takes(turn: &Turn<'_, '_>, id: &str) -> Result<(), Stop> {
    let tenancy = turn.rows.tenancy_at(&Key::tenancy(turn.tenant()))?;
    let Some(endpoint) = tenancy.as_ref().and_then(|known| known.endpoint(id)) else {
        return Err(Rejection::new(Reason::NotFound, "there is no such endpoint").into());
    };
    match &endpoint.disabled {
        None => Ok(()),
        Some(why) => {
            let message = format!("the endpoint is disabled: {why}; put it again to have it sent messages");
            Err(Rejection::new(Reason::StateMismatch, message).into())
        }
    }
}
