//! Events from outside: what listens to them, and those that come before anything does.

use serde_json::{Map, Value, json};
use switchward_expr::classify;
use switchward_machine::{Node, Port, RunId, Wait, reserved_keys::WAIT};
use switchward_state::limits::EVENT_WORDS_BYTES_MAX;
use switchward_state::run::{RunEvent, WriteProblem, Writer};
use switchward_state::session::Early;

use crate::run::data;
use crate::run::writes::Writing;
use crate::turn::{Stop, Turn};

/// Whether the run's node does something with an event of this key: it waits for one, or an exit asks for it.
pub(crate) fn listens(turn: &Turn<'_, '_>, run: RunId, key: &str) -> Result<bool, Stop> {
    let at = turn.run(run)?;
    let machine = turn.machine(&at)?;
    let Some(node) = machine.node(at.node) else { return Ok(false) };
    let waits = node.acts.get(usize::from(at.act.0)).is_some_and(|act| act.kind.waits_for_event());
    Ok(waits || node.exits.iter().any(|exit| exit.guard.listens(key)))
}

/// What an event that came early is to a wait that begins.
pub(crate) enum EarlyMatch {
    /// It ends the wait with this port.
    Ends(Early, u32, Port),
    /// A model is asked what it means, once the wait is open.
    Asks(Early, u32),
    /// None came that has to do with it.
    None,
}

/// The oldest event that came early, is still kept and ends this wait; else the newest that a model can be asked about.
pub(crate) fn earliest(turn: &Turn<'_, '_>, run: RunId, wait: &Wait) -> Result<EarlyMatch, Stop> {
    let session = turn.session()?;
    let usable = usable(turn, run)?;
    let kept = || (0u32..).zip(&session.early).filter(|(_, early)| usable(early));
    for (position, early) in kept() {
        let none = Map::new();
        if let Some(port) = port_of(wait, &early.key, early.data.0.as_object().unwrap_or(&none)) {
            return Ok(EarlyMatch::Ends(early.clone(), position, port));
        }
    }
    let asks = wait.sort.as_ref().is_some_and(|sort| !sort.hinted);
    let newest = kept().filter(|(_, early)| asks && early.model).last();
    Ok(newest.map_or(EarlyMatch::None, |(position, early)| EarlyMatch::Asks(early.clone(), position)))
}

/// Returns which events that came early a run may use: those that are still kept and that its definition takes from where
/// they came. They may have come when another definition was active.
fn usable(turn: &Turn<'_, '_>, run: RunId) -> Result<impl Fn(&Early) -> bool + use<>, Stop> {
    let (now, people, definition) = (turn.now(), turn.directory()?, turn.run(run)?.definition.clone());
    Ok(move |early: &Early| {
        now < early.until && people.other_sources(&definition, &early.key, &early.source).is_none()
    })
}

/// How an event ends a wait; `None` if the wait sorts and no phrase, or phrases of several ports, stand in the event: in
/// its key or in a text of its data.
pub(crate) fn port_of(wait: &Wait, key: &str, data: &Map<String, Value>) -> Option<Port> {
    let Some(sort) = &wait.sort else { return Some(wait.done.clone()) };
    let at = classify(&words(key, data), &sort.ports)?;
    sort.ports.get(at).map(|(port, _)| port.clone())
}

/// The texts of an event, one a line. Characters between the words of a key, as in `invoice.paid`, are left out.
fn words(key: &str, data: &Map<String, Value>) -> String {
    let mut lines: String =
        key.chars().map(|character| if character.is_alphanumeric() { character } else { ' ' }).collect();
    let mut left: Vec<&Value> = data.values().rev().collect();
    while let Some(value) = left.pop().filter(|_| lines.len() < EVENT_WORDS_BYTES_MAX) {
        match value {
            Value::String(text) => {
                lines.push('\n');
                lines.push_str(text);
            }
            Value::Array(list) => left.extend(list.iter().rev()),
            Value::Object(map) => left.extend(map.values().rev()),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    lines.truncate(lines.floor_char_boundary(EVENT_WORDS_BYTES_MAX));
    lines
}

/// The events that came early and that an exit of this node asks for: they count as come since it was entered.
pub(crate) fn take_early(turn: &mut Turn<'_, '_>, run: RunId, node: &Node) -> Result<(), Stop> {
    let session = turn.session()?;
    if session.early.is_empty() {
        return Ok(());
    }
    let usable = usable(turn, run)?;
    let asked = |early: &Early| node.exits.iter().any(|exit| exit.guard.listens(&early.key));
    let kept = (0u32..).zip(&session.early).filter(|(_, early)| usable(early));
    let found = kept.filter(|(_, early)| asked(early)).map(|(position, early)| (early.key.clone(), position));
    let (keys, positions): (Vec<String>, Vec<u32>) = found.unzip();
    drop(session);
    if !keys.is_empty() {
        turn.emit(RunEvent::EarlyUsed { run, keys, positions })?;
    }
    Ok(())
}

/// Writes down what ended a wait: `wait.<state>`.
pub(crate) fn remember(turn: &mut Turn<'_, '_>, run: RunId, key: &str, value: &Value) -> Result<(), Stop> {
    data::keep_below(turn, run, WAIT, json!({ "event_key": key, "data": value }), Writer::Event)
}

/// What an event brings, merged into the data; refused if it does not fit, before anything is recorded.
pub(crate) fn merged(
    turn: &Turn<'_, '_>,
    run: RunId,
    values: &Map<String, Value>,
) -> Result<Result<Vec<(String, Value)>, WriteProblem>, Stop> {
    let mut writing = Writing::at_node(turn, run)?;
    Ok(writing.put_all(values).and_then(|()| writing.checked()))
}
