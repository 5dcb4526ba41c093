//! What happens in a session is published to the endpoints of its tenant: at the end of each turn, in the same entry of
//! the log, a message for each event that an endpoint wants.

use minicbor::{Decode, Encode};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;
use switchward_machine::{SessionId, TenantId, Time};
use switchward_state::delivery::{
    DeliveryEvent, EffectBody, Endpoint, EventSubject, PublishedEvent, PublishedType,
};
use switchward_state::limits::{PUBLISHED_ABOUT_BYTES_MAX, PUBLISHED_MAX, PUBLISHED_TURN_MAX, REPUBLISH_MAX};
use switchward_state::session::{SessionEvent, SessionWarning};
use switchward_state::{Event, Key, Kind, PublicEvent, PublicValue, ReadRows, Row, Scope, View, ViewError};

use crate::public::{machines_in, public_events, published_type};
use crate::turn::{Stop, Turn};

/// Puts a message for each event of the turn and each endpoint that wants it into the outbox.
pub(crate) fn run(turn: &mut Turn<'_, '_>) -> Result<(), Stop> {
    let Scope::Session(id) = turn.command.scope else { return Ok(()) };
    if turn.events.is_empty() {
        return Ok(());
    }
    let tenancy = turn.rows.tenancy_at(&Key::tenancy(turn.tenant()))?;
    let Some(tenancy) = tenancy.filter(|known| known.endpoints.iter().any(|one| one.disabled.is_none()))
    else {
        return Ok(());
    };
    let machines = machines_in(turn.rows, turn.tenant(), id, &turn.events)?;
    let (root, sequence, waiting) = {
        let session = turn.session()?;
        (session.root, session.sequence, usize::try_from(session.outbox().published).unwrap_or(usize::MAX))
    };
    let first = sequence.saturating_sub(u64::try_from(turn.events.len()).unwrap_or(u64::MAX));
    let free = PUBLISHED_TURN_MAX.min(PUBLISHED_MAX.saturating_sub(waiting));
    let (mut bodies, mut beyond) = (Vec::new(), 0_u64);
    for (at, event) in public_events(&turn.events, &machines) {
        let Some(kind) = published_type(&event) else { continue };
        let failed = failed(&turn.events[at]);
        // A failed message to an endpoint is published to no endpoint.
        if published(turn.rows, turn.tenant(), id, failed)? {
            continue;
        }
        let message = message_of(first, at, turn.now(), kind, &event);
        for endpoint in tenancy.endpoints.iter().filter(|one| one.wants(kind)) {
            if bodies.len() < free {
                bodies.push(body(endpoint, message.clone()));
            } else {
                beyond += 1;
            }
        }
    }
    for body in bodies {
        turn.send(root, body)?;
    }
    if beyond > 0 {
        let warning = SessionWarning::EndpointsFull { count: beyond };
        turn.emit(SessionEvent::Warned { warning })?;
    }
    Ok(())
}

/// The effect that cannot be delivered, if the event says so.
fn failed(event: &Event) -> Option<u64> {
    if let Event::Delivery(DeliveryEvent::Failed { number, .. }) = event { Some(*number) } else { None }
}

/// Whether an effect is a message to an endpoint.
fn published(
    rows: &dyn ReadRows,
    tenant: TenantId,
    session: SessionId,
    number: Option<u64>,
) -> Result<bool, ViewError> {
    let Some(number) = number else { return Ok(false) };
    let effect = rows.outbox_at(&Key::outbox(tenant, session, number))?;
    Ok(effect.is_some_and(|effect| effect.body.published()))
}

/// The message about the event at index `at` of a turn, whose `first` event had the sequence before it.
fn message_of(first: u64, at: usize, time: Time, kind: PublishedType, event: &PublicEvent) -> PublishedEvent {
    let sequence = first.saturating_add(u64::try_from(at).unwrap_or(u64::MAX)).saturating_add(1);
    PublishedEvent { kind, sequence, at: time, about: about(kind, event) }
}

fn body(endpoint: &Endpoint, message: PublishedEvent) -> EffectBody {
    let PublishedEvent { kind, sequence, at, about } = message;
    EffectBody::Publish { endpoint: endpoint.id.clone(), kind, sequence, at, about }
}

/// What an endpoint has missed of a session. Stored form.
#[derive(Debug, Clone, Default, PartialEq, Eq, Encode, Decode)]
pub struct Missed {
    /// Messages to it that could not be delivered, by their numbers.
    #[n(0)]
    pub retry: Vec<u64>,
    /// Events that it wants and that are not on their way to it.
    #[n(1)]
    pub events: Vec<PublishedEvent>,
    /// The sequence up to which the session was looked through; the rest is read from here; `None` at the end.
    #[n(2)]
    pub upto: Option<u64>,
}

/// Which events of a session an endpoint gets again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Republished {
    /// Those that have not arrived there.
    Missed,
    /// All that it wants, also those that have arrived there.
    All,
}

/// What an endpoint gets again of what happened in a session since this time and after this sequence, in order, at most
/// [`REPUBLISH_MAX`].
///
/// # Errors
/// A row cannot be read.
pub fn missed(
    view: &dyn View,
    tenant: TenantId,
    session: SessionId,
    endpoint: &Endpoint,
    since: Time,
    after: u64,
    which: Republished,
) -> Result<Missed, ViewError> {
    let rows: &dyn ReadRows = view;
    let prefix = Key::prefix_of_session(tenant, session, Kind::History);
    let mut turns: Vec<(u64, Arc<Row>)> = Vec::new();
    view.scan(&prefix, None, &mut |key, row| {
        if matches!(&**row, Row::History(turn) if turn.at >= since) {
            turns.push((sequence_of(key), Arc::clone(row)));
        }
        ControlFlow::Continue(())
    })?;
    let events = || {
        turns.iter().filter_map(
            |(first, row)| {
                if let Row::History(turn) = &**row { Some((*first, turn)) } else { None }
            },
        )
    };
    let machines = machines_in(rows, tenant, session, events().flat_map(|(_, turn)| &turn.events))?;
    let queued = queued(events().flat_map(|(_, turn)| &turn.events));
    let mut missed = Missed::default();
    for (first, turn) in events() {
        for (at, event) in public_events(&turn.events, &machines) {
            let kind = published_type(&event).filter(|kind| endpoint.wants(*kind));
            let Some(kind) = kind else { continue };
            let message = message_of(first, at, turn.at, kind, &event);
            let of_us = failed(&turn.events[at]).is_some_and(|number| queued.all.contains(&number))
                || published(rows, tenant, session, failed(&turn.events[at]))?;
            if of_us || message.sequence <= after {
                continue;
            }
            if missed.retry.len() + missed.events.len() == REPUBLISH_MAX {
                return Ok(missed);
            }
            missed.upto = Some(message.sequence);
            let Some(number) = queued.of.get(&(endpoint.id.as_str(), message.sequence)) else {
                missed.events.push(message);
                continue;
            };
            match rows.outbox_at(&Key::outbox(tenant, session, *number))? {
                Some(effect) if effect.dead_letter().is_some() => missed.retry.push(*number),
                Some(_) => {}
                None => missed.events.extend(Some(message).filter(|_| which == Republished::All)),
            }
        }
    }
    missed.upto = None;
    Ok(missed)
}

fn sequence_of(key: &Key) -> u64 {
    let rest = key.rest();
    let last = rest.len().checked_sub(8).and_then(|at| rest[at..].try_into().ok());
    last.map_or(0, u64::from_be_bytes)
}

/// Messages that were queued: all their numbers, and the last one of each endpoint and event.
#[derive(Default)]
struct Queued<'e> {
    all: BTreeSet<u64>,
    of: BTreeMap<(&'e str, u64), u64>,
}

fn queued<'e>(events: impl Iterator<Item = &'e Event>) -> Queued<'e> {
    let mut queued = Queued::default();
    for event in events {
        if let Event::Delivery(DeliveryEvent::Queued { effect }) = event
            && let EffectBody::Publish { endpoint, sequence, .. } = &effect.body
        {
            queued.all.insert(effect.number);
            queued.of.insert((endpoint, *sequence), effect.number);
        }
    }
    queued
}

/// What an event is about: never what was said or decided in words.
fn about(kind: PublishedType, event: &PublicEvent) -> Option<EventSubject> {
    if kind == PublishedType::BudgetExhausted {
        let usd = event.fields.iter().any(|(name, _)| *name == "cap_usd");
        return Some(EventSubject::OfSession(if usd { "usd" } else { "mails" }.to_owned()));
    }
    let name = field_of_subject(kind)?;
    let (_, value) = event.fields.iter().find(|(known, _)| *known == name)?;
    let PublicValue::Text(value) = value else { return None };
    let value = &value[..value.floor_char_boundary(PUBLISHED_ABOUT_BYTES_MAX)];
    Some(EventSubject::OfSession(value.to_owned()))
}

/// The field of an event for readers that has what the event is about; `None` if no field has it.
fn field_of_subject(kind: PublishedType) -> Option<&'static str> {
    match kind {
        PublishedType::ApprovalRequested
        | PublishedType::ApprovalReminded
        | PublishedType::ApprovalEscalated
        | PublishedType::ApprovalVoted
        | PublishedType::ApprovalDecided
        | PublishedType::ApprovalTimedOut
        | PublishedType::ApprovalUndeliverable
        | PublishedType::ApprovalAssigned
        | PublishedType::TaskCreated
        | PublishedType::TaskCompleted => Some("gate"),
        PublishedType::PolicyDenied | PublishedType::PolicyAsked => Some("capability"),
        PublishedType::SessionStateEntered => Some("state"),
        PublishedType::DeliveryExhausted => Some("number"),
        PublishedType::SessionStarted
        | PublishedType::SessionPaused
        | PublishedType::SessionResumed
        | PublishedType::SessionBlocked
        | PublishedType::SessionWarned
        | PublishedType::SessionCompleted
        | PublishedType::SessionFailed
        | PublishedType::SessionCancelled
        | PublishedType::SessionAbandoned
        | PublishedType::BudgetExhausted
        | PublishedType::DefinitionDeployed
        | PublishedType::DefinitionActivated
        | PublishedType::DefinitionRetired
        | PublishedType::EndpointDisabled => None,
    }
}
