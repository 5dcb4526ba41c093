//! An event comes from outside. Source: workflows, *Guards*, `external_event`, and *Wait State*; an event tries the
//! guarded exits at once, the others wait for the end of a turn.

use serde_json::{Value, json};
use switchward_machine::{OpenId, Port, RunId, WaitOn};

use super::classify::{self, Said};
use super::record_reply::waiting;
use crate::command::RecordEvent;
use crate::event::{Flow, Writer};
use crate::events;
use crate::intent;
use crate::limits::{DATA_KEY_BYTES_MAX, EARLY_KEPT_MS, EARLY_MAX};
use crate::moves::{self, Next};
use crate::state::{Json, ThingBody};
use crate::turn::{Stop, Turn, check_text, not_paused};
use crate::{Key, Reason, Rejection, Reply, ViewError};

/// Under which key the data hold the key of the last event.
const EVENT_KEY: &str = "event_key";

pub(super) fn run(turn: &mut Turn<'_, '_>, event: &RecordEvent) -> Result<Reply, Stop> {
    let session = turn.live_session()?;
    let leaf = turn.leaf()?;
    super::conversation(turn, leaf)?;
    not_paused(&session)?;
    intent::known(&session)?;
    let full = session.early.len() >= EARLY_MAX;
    drop(session);
    well_formed(turn, leaf, event)?;
    let merged = events::merged(turn, leaf, &event.data)?
        .map_err(|bad| Rejection::new(Reason::SchemaViolation, bad.0).fact("field", "data"))?;
    let listens = events::listens(turn, leaf, &event.key)?;
    if !listens && full {
        let message = format!("{EARLY_MAX} events wait for something that listens to them");
        return Err(Rejection::new(Reason::QuotaExceeded, message).into());
    }
    let until = turn.now().after_ms(EARLY_KEPT_MS);
    let data = Json(Value::Object(event.data.clone()));
    let early = (!listens).then_some((data, until));
    turn.emit(Flow::EventRecorded { run: leaf, key: event.key.clone(), early })?;
    for (key, value) in merged.into_iter().chain([(EVENT_KEY.to_owned(), json!(event.key))]) {
        turn.emit(Flow::Wrote { run: leaf, key, value: Json(value), by: Writer::Event })?;
    }
    match ended_wait(turn, leaf, event)? {
        Some(port) => moves::drive(turn, leaf, Next::Ended(port))?,
        // A person is asked about an exit already: no other is tried meanwhile.
        None if turn.run(leaf)?.held.is_some() => {}
        // Somebody else has the state until that is done.
        None if kept(turn, leaf)? => {}
        None => moves::drive(turn, leaf, Next::Event)?,
    }
    turn.moved()
}

/// Whether the part of the body that a run is in lets it leave by its own end alone.
fn kept(turn: &Turn<'_, '_>, run: RunId) -> Result<bool, Stop> {
    let at = turn.run(run)?;
    let machine = turn.machine(&at)?;
    let act = machine.node(at.node).and_then(|node| node.acts.get(usize::from(at.act.0)));
    let over = at.rests || at.choice.is_some();
    Ok(!over && act.is_some_and(|act| act.kind.keeps()))
}

fn well_formed(turn: &Turn<'_, '_>, run: RunId, event: &RecordEvent) -> Result<(), Stop> {
    if event.key.is_empty() {
        return Err(Rejection::new(Reason::FieldInvalid, "an event has a key").fact("field", "key").into());
    }
    check_text("key", &event.key, DATA_KEY_BYTES_MAX)?;
    let at = turn.run(run)?;
    let machine = turn.machine(&at)?;
    let node = machine.node(at.node).ok_or_else(|| ViewError("the run stands nowhere".into()))?;
    if let Some(state) = event.state.as_ref().filter(|state| **state != node.name) {
        let message = format!("the session stands at {:?}, and the event is for {state:?}", node.name);
        return Err(Rejection::new(Reason::StateMismatch, message).fact("state", &node.name).into());
    }
    Ok(())
}

/// Ends the wait that the event was waited for by; how the act ends. An event that says nothing to a wait that sorts
/// leaves it open, and a model is asked where there is one and the author gave no phrases.
fn ended_wait(turn: &mut Turn<'_, '_>, run: RunId, event: &RecordEvent) -> Result<Option<Port>, Stop> {
    let Some(thing) = open_wait(turn, run)? else { return Ok(None) };
    let wait = waiting(turn, run)?;
    if let Some(port) = events::port_of(&wait, &event.key, &event.data) {
        turn.emit(Flow::ThingClosed { thing, run })?;
        events::remember(turn, run, &event.key, &Value::Object(event.data.clone()))?;
        return Ok(Some(port));
    }
    if let Some(sort) = wait.sort.filter(|sort| event.model && !sort.hinted) {
        let said = Said::Event { key: &event.key, data: &event.data };
        classify::ask(turn, run, thing, said, &sort.ports)?;
    }
    Ok(None)
}

/// The wait for an event that the run is in.
fn open_wait(turn: &Turn<'_, '_>, run: RunId) -> Result<Option<OpenId>, Stop> {
    for thing in &turn.run(run)?.things {
        let row = turn.rows.thing_at(&Key::thing(turn.tenant(), turn.session_id()?, *thing))?;
        if row.is_some_and(|row| matches!(row.body, ThingBody::Wait { on: WaitOn::Event, .. })) {
            return Ok(Some(*thing));
        }
    }
    Ok(None)
}
