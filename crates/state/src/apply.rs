//! From a decision to changed rows. Nothing is judged here; values are copied out of events.

use switchward_machine::Digest;

use crate::session::{ReplySource, remember};
use crate::{
    Answered, Decision, Event, Key, Level, ReadRows, Request, Row, Scope, Site, StoredHistory, TurnRecord,
    ViewError, WriteRows, approval, catalogue, delivery, policy, run, session, work,
};

/// Applies a decision.
///
/// # Errors
/// A row cannot be read, or the decision does not fit the rows; the replica must stop.
pub fn apply_decision(rows: &mut dyn WriteRows, decision: &Decision) -> Result<(), ViewError> {
    for turn in &decision.turns {
        let site = Site { tenant: turn.tenant, scope: &turn.scope, at: decision.at };
        for event in &turn.events {
            apply(rows, &site, event)?;
        }
        finish(rows, &site, turn)?;
    }
    stamp(rows, decision)
}

/// Writes down the time and the level of a decision.
///
/// # Errors
/// A row cannot be read.
pub fn stamp(rows: &mut dyn WriteRows, decision: &Decision) -> Result<(), ViewError> {
    if decision.level > level(rows)? {
        rows.put(Key::level(), Row::Level(decision.level));
    }
    rows.put(Key::clock(), Row::Clock(decision.at));
    Ok(())
}

/// The level of the last decision.
///
/// # Errors
/// The row cannot be read.
pub fn level(rows: &dyn ReadRows) -> Result<Level, ViewError> {
    Ok(rows.level_at(&Key::level())?.map_or(Level::FIRST, |level| *level))
}

/// Applies one event.
///
/// # Errors
/// A row cannot be read, or the event does not fit the rows.
pub fn apply(rows: &mut dyn WriteRows, site: &Site<'_>, event: &Event) -> Result<(), ViewError> {
    match event {
        Event::Session(event) => session::apply::apply(rows, site, event)?,
        Event::Run(event) => run::apply::apply(rows, site, event)?,
        Event::Approval(event) => approval::apply::apply(rows, site, event)?,
        Event::Work(event) => work::apply::apply(rows, site, event)?,
        Event::Delivery(event) => delivery::apply::apply(rows, site, event)?,
        Event::Policy(event) => policy::apply_calls::apply(rows, site, event)?,
        Event::Catalogue(event) => catalogue::apply::apply(rows, site, event)?,
    }
    // The catalogue's own events are in no history.
    if event.counts() && matches!(site.scope, Scope::Session(_)) {
        let session = rows.session_at_mut(&site.session_key()?)?;
        session.stable_from =
            if event.is_progress() { session.stable_from.or(Some(session.sequence)) } else { None };
        session.sequence += 1;
    }
    Ok(())
}

/// Writes down what a whole turn leaves: its history, and the reply under its request id.
pub fn finish(rows: &mut dyn WriteRows, site: &Site<'_>, turn: &TurnRecord) -> Result<(), ViewError> {
    if let Scope::Session(id) = site.scope {
        if turn.events.is_empty() {
            return unchanged(rows, site, turn);
        }
        let session = rows.session_at_mut(&site.session_key()?)?;
        session.updated = site.at;
        let count = u64::try_from(turn.events.len()).unwrap_or(u64::MAX);
        let first = session.sequence.saturating_sub(count);
        if let Some((request, _)) = &turn.request {
            remember::remember(rows, site, hash(request), ReplySource::History(first))?;
        }
        let history = StoredHistory::of(turn, site.at);
        let bytes = history.bytes();
        let session = rows.session_at_mut(&site.session_key()?)?;
        session.head = history.link(session.head);
        session.bytes = session.bytes.saturating_add(bytes);
        catalogue::apply_usage::grew(rows, site.tenant, bytes)?;
        rows.put(Key::history(site.tenant, *id, first), Row::History(history));
    } else if let Some((id, body)) = &turn.request {
        let request = Request { body: *body, reply: turn.reply.clone(), at: site.at };
        rows.put(Key::request(site.tenant, site.scope, hash(id)), Row::Request(request));
    }
    Ok(())
}

/// Writes down the reply to a command of a session that has changed nothing: it stands in no history.
fn unchanged(rows: &mut dyn WriteRows, site: &Site<'_>, turn: &TurnRecord) -> Result<(), ViewError> {
    let Some((request, body)) = &turn.request else { return Ok(()) };
    let answered = Box::new(Answered { body: *body, reply: turn.reply.clone() });
    remember::remember(rows, site, hash(request), ReplySource::Here(answered))
}

fn hash(request: &str) -> [u8; 16] {
    let digest = Digest::of(request.as_bytes());
    let mut hash = [0u8; 16];
    hash.copy_from_slice(&digest.0[..16]);
    hash
}
