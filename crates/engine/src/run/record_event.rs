//! An event comes from outside. It tries the guarded exits at once, the others wait for the end of a turn. See
//! `docs/formats-conversation-operations.md#guards` and `docs/formats-conversation.md#wait`.

use serde_json::{Value, json};
use switchward_machine::{Input, OpenId, Port, RunId, WaitOn, reserved_keys::EVENT_KEY};
use switchward_state::limits::{
    DATA_KEY_BYTES_MAX, EARLY_BYTES_MAX, EARLY_KEPT_MS, EARLY_MAX, RUNS_NAMED_MAX,
};
use switchward_state::run::{
    Json, Once, PendingInput, RecordEvent, RunEvent, WriteProblem, Writer, json_length,
};
use switchward_state::session::{EventSource, SessionEvent};
use switchward_state::work::WorkEvent;
use switchward_state::{Key, ReadRows as _, Reason, Rejection, Reply, ViewError};

use crate::approval::classify::ClassifyInput;
use crate::approval::record_reply::outcome::waiting;
use crate::approval::{classify, frozen};
use crate::next::Next;
use crate::run::address::none_fits;
use crate::run::writes::{self, Source};
use crate::run::{events, inputs};
use crate::session::intent;
use crate::turn::{Stop, Turn, check_text, not_paused};

pub(crate) fn run(turn: &mut Turn<'_, '_>, event: &RecordEvent) -> Result<Reply, Stop> {
    if let Some(token) = &event.token {
        crate::run::reply_token::check(turn, token)?;
    }
    // A copy is answered as one, whatever has become of the session since the first was recorded.
    new(turn, event)?;
    let session = turn.live_session()?;
    let leaves = turn.leaves()?;
    inputs::check_any(turn, &leaves, Input::Event)?;
    not_paused(&session)?;
    intent::known(&session)?;
    drop(session);
    well_formed(event)?;
    let run = match &event.token {
        Some(token) => stands_at(turn, crate::run::reply_token::addressed(turn, token)?, event)?,
        None => addressed(turn, &leaves, event)?,
    };
    let source = EventSource::of(event, &turn.command.actor);
    bound(turn, run, event, &source)?;
    let merged = Brought::of(turn, run, event)?;
    let listens = events::listens(turn, run, &event.key)?;
    if !listens {
        check_early_capacity(turn, event)?;
    }
    let until = turn.now().after_ms(EARLY_KEPT_MS);
    let data = Json(Value::Object(event.data.clone()));
    let early = (!listens).then_some((data, until, event.model));
    turn.emit(RunEvent::EventRecorded { run, key: event.key.clone(), early, source })?;
    let number = turn.session()?.sequence;
    if let Some(Once { message, known_ms }) = event.once {
        turn.emit(SessionEvent::MessageRecorded { message, until: turn.now().after_ms(known_ms) })?;
    }
    merged.enter(turn, run, event)?;
    match ended_wait(turn, run, event)? {
        Some(port) => turn.go(run, Next::Ended(port)),
        // A person is asked about an exit already: no other is tried meanwhile.
        None if turn.run(run)?.held.is_some() => {}
        // Somebody else has the state until that is done.
        None if kept(turn, run)? => {}
        None => turn.go(run, Next::Event),
    }
    let (session, sequence) = (turn.session_id()?, turn.session()?.sequence);
    Ok(Reply::Recorded { session, sequence, event: number, position: None })
}

/// Refuses a copy of a message that was recorded already.
fn new(turn: &Turn<'_, '_>, event: &RecordEvent) -> Result<(), Stop> {
    let Some(once) = event.once else { return Ok(()) };
    let known = turn.rows.recorded_at(&Key::recorded(turn.tenant(), turn.session_id()?, once.message))?;
    if known.is_some_and(|until| turn.now() < *until) {
        let message = "a message of this signature was recorded before";
        return Err(Rejection::new(Reason::RequestIdReused, message).into());
    }
    Ok(())
}

/// Refuses an event that the tenant has bound to other sources.
fn bound(turn: &Turn<'_, '_>, run: RunId, event: &RecordEvent, source: &EventSource) -> Result<(), Stop> {
    let (definition, people) = (turn.run(run)?.definition.clone(), turn.directory()?);
    let Some(sources) = people.other_sources(&definition, &event.key, source) else { return Ok(()) };
    let message = format!("the event {:?} of {definition} does not come from {}", event.key, source.label());
    let refusal = Rejection::new(Reason::EventSourceNotAllowed, message).fact("source", source.label());
    Err(refusal.allowed(sources.iter().map(String::as_str)).into())
}

/// What becomes of the data of an event.
enum Brought {
    /// They are merged into the run's, which hold these values then.
    Now(Vec<(String, Value)>),
    /// They wait for an approval to close.
    Later(OpenId, PendingInput),
}

impl Brought {
    /// Refuses data that do not fit, before anything is recorded.
    fn of(turn: &Turn<'_, '_>, run: RunId, event: &RecordEvent) -> Result<Self, Stop> {
        let bad = |problem: WriteProblem| {
            Rejection::new(problem.reason(), problem.to_string()).fact("field", "data")
        };
        let Some(gate) = frozen::gate(turn, run)? else {
            return Ok(Self::Now(events::merged(turn, run, &event.data)?.map_err(bad)?));
        };
        frozen::fits(turn, run, &event.data)?.map_err(bad)?;
        let data = Json(Value::Object(event.data.clone()));
        let input = PendingInput::Event { key: event.key.clone(), data };
        frozen::check_capacity(turn, run, gate, &input)?;
        Ok(Self::Later(gate, input))
    }

    fn enter(self, turn: &mut Turn<'_, '_>, run: RunId, event: &RecordEvent) -> Result<(), Stop> {
        let merged = match self {
            Self::Now(merged) => merged,
            Self::Later(gate, input) => return frozen::keep(turn, run, gate, input),
        };
        let reserves = turn.machine(&*turn.run(run)?)?.reserves(EVENT_KEY);
        let event_key = reserves.then(|| (EVENT_KEY.to_owned(), json!(event.key)));
        let written = merged.into_iter().chain(event_key).collect();
        let source = EventSource::of(event, &turn.command.actor);
        writes::record(turn, run, written, &Source { by: Writer::Event, who: &source.label() })
    }
}

/// Checks that one more event that nothing listens to yet can be kept.
fn check_early_capacity(turn: &Turn<'_, '_>, event: &RecordEvent) -> Result<(), Stop> {
    let (session, now) = (turn.session()?, turn.now());
    let kept = session.early.iter().filter(|early| now < early.until);
    let (count, bytes) = kept.fold((0, 0), |(count, bytes), early| {
        (count + 1, bytes + early.key.len() + json_length(&early.data.0))
    });
    let own = event.key.len() + json_length(&Value::Object(event.data.clone()));
    if count < EARLY_MAX && bytes + own <= EARLY_BYTES_MAX {
        return Ok(());
    }
    let message =
        format!("{EARLY_MAX} events or {EARLY_BYTES_MAX} bytes of them wait for what listens to them");
    Err(Rejection::new(Reason::QuotaExceeded, message).into())
}

/// Whether the part of the body that a run is in lets it leave by its own end alone.
fn kept(turn: &Turn<'_, '_>, run: RunId) -> Result<bool, Stop> {
    let at = turn.run(run)?;
    let machine = turn.machine(&at)?;
    let act = machine.node(at.node).and_then(|node| node.acts.get(usize::from(at.act.0)));
    let over = at.rests || at.choice.is_some();
    Ok(!over && act.is_some_and(|act| act.kind.keeps()))
}

fn well_formed(event: &RecordEvent) -> Result<(), Stop> {
    if event.key.is_empty() {
        return Err(Rejection::new(Reason::FieldInvalid, "an event has a key").fact("field", "key").into());
    }
    Ok(check_text("key", &event.key, DATA_KEY_BYTES_MAX)?)
}

/// The run that the event is for: the one that listens to it; if none does, the only active leaf. Of an event that names a
/// state, that run must stand there. It is refused if several runs fit.
fn addressed(turn: &Turn<'_, '_>, leaves: &[RunId], event: &RecordEvent) -> Result<RunId, Stop> {
    let mut found: Vec<RunId> = Vec::new();
    for leaf in leaves {
        if found.len() > RUNS_NAMED_MAX {
            break;
        }
        if let Some(run) = listening(turn, *leaf, event)?.filter(|run| !found.contains(run)) {
            found.push(run);
        }
    }
    match (&found[..], leaves) {
        ([one], _) => Ok(*one),
        ([], [leaf]) => stands_at(turn, *leaf, event),
        ([], _) if event.state.is_some() => Err(none_fits().into()),
        ([], _) => Err(turn.active(&*turn.session()?)?.several(leaves)?.into()),
        _ => Err(turn.active(&*turn.session()?)?.several(&found)?.into()),
    }
}

/// The run that an event is for of an active leaf and those that have called it: the first that listens. `None` if none
/// does.
fn listening(turn: &Turn<'_, '_>, leaf: RunId, event: &RecordEvent) -> Result<Option<RunId>, Stop> {
    let mut next = Some(leaf);
    while let Some(run) = next {
        let at = turn.run(run)?;
        let machine = turn.machine(&at)?;
        let node = machine.node(at.node).ok_or_else(|| ViewError("the run stands nowhere".into()))?;
        let here = event.state.as_ref().is_none_or(|state| *state == node.name);
        // The leaf is where the session stands, whether it listens or not.
        let leaf = run == leaf && event.state.is_some();
        if here && (leaf || events::listens(turn, run, &event.key)?) {
            return Ok(Some(run));
        }
        next = at.parent.map(|parent| parent.run);
    }
    Ok(None)
}

/// Returns the run if it stands in the state that the event names, or if the event names none.
fn stands_at(turn: &Turn<'_, '_>, run: RunId, event: &RecordEvent) -> Result<RunId, Stop> {
    let Some(state) = &event.state else { return Ok(run) };
    let at = turn.run(run)?;
    let machine = turn.machine(&at)?;
    let stands = machine.node(at.node).map_or("", |node| node.name.as_str());
    if stands == state {
        return Ok(run);
    }
    let message = format!("the session stands at {stands:?}, and the event is for {state:?}");
    Err(Rejection::new(Reason::StateMismatch, message).fact("state", stands).into())
}

/// Ends the wait for this event and returns the act's port. An event that means nothing to a wait that sorts leaves it
/// open; a model is asked if there is one and the author gave no phrases.
fn ended_wait(turn: &mut Turn<'_, '_>, run: RunId, event: &RecordEvent) -> Result<Option<Port>, Stop> {
    let Some(item) = turn.open_wait(run, WaitOn::Event)? else { return Ok(None) };
    let wait = waiting(turn, run)?;
    if let Some(port) = events::port_of(&wait, &event.key, &event.data) {
        turn.emit(WorkEvent::Closed { item, run })?;
        events::remember(turn, run, &event.key, &Value::Object(event.data.clone()))?;
        return Ok(Some(port));
    }
    if let Some(sort) = wait.sort.filter(|sort| event.model && !sort.hinted) {
        let said = ClassifyInput::Event { key: &event.key, data: &event.data };
        classify::ask(turn, run, item, said, &sort.ports)?;
    }
    Ok(None)
}
