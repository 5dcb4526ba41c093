//! Events from outside: what listens to them, and those that come before anything does.

use serde_json::{Map, Value, json};
use switchward_machine::{ActKind, Node, RunId, WaitOn};

use crate::data;
use crate::event::{Flow, Writer};
use crate::scope::Scope;
use crate::state::Early;
use crate::turn::{Stop, Turn};

/// Under which key the data say what ended a wait, by its state.
pub(crate) const WAIT: &str = "wait";

/// Whether the run's node does something with an event of this key: it waits for one, or an exit asks for it.
pub(crate) fn listens(turn: &Turn<'_, '_>, run: RunId, key: &str) -> Result<bool, Stop> {
    let at = turn.run(run)?;
    let machine = turn.machine(&at)?;
    let Some(node) = machine.node(at.node) else { return Ok(false) };
    let waits = node.acts.get(usize::from(at.act.0)).is_some_and(|act| match &act.kind {
        ActKind::Wait(wait) => wait.on == WaitOn::Event,
        ActKind::Ask(_) | ActKind::Do(_) | ActKind::Work(_) | ActKind::Decide(_) | ActKind::Spawn(_) => false,
    });
    Ok(waits || node.exits.iter().any(|exit| exit.guard.listens(key)))
}

/// The oldest event that came early and is still kept.
pub(crate) fn earliest(turn: &Turn<'_, '_>) -> Result<Option<Early>, Stop> {
    let now = turn.now();
    Ok(turn.session()?.early.iter().find(|early| now < early.until).cloned())
}

/// The events that came early and that an exit of this node asks for: they count as come since it was entered.
pub(crate) fn take_early(turn: &mut Turn<'_, '_>, run: RunId, node: &Node) -> Result<(), Stop> {
    let session = turn.session()?;
    if session.early.is_empty() {
        return Ok(());
    }
    let now = turn.now();
    let asked = |early: &&Early| node.exits.iter().any(|exit| exit.guard.listens(&early.key));
    let kept = session.early.iter().filter(|early| now < early.until);
    let keys: Vec<String> = kept.filter(asked).map(|early| early.key.clone()).collect();
    drop(session);
    if !keys.is_empty() {
        turn.emit(Flow::EarlyTaken { run, keys })?;
    }
    Ok(())
}

/// Writes down what ended a wait: `wait.<state>`.
pub(crate) fn remember(turn: &mut Turn<'_, '_>, run: RunId, key: &str, value: &Value) -> Result<(), Stop> {
    data::keep_below(turn, run, WAIT, json!({ "event_key": key, "data": value }), Writer::Event)
}

/// What an event brings, merged into the data; refused where it does not fit, before anything is recorded.
pub(crate) fn merged(
    turn: &Turn<'_, '_>,
    run: RunId,
    values: &Map<String, Value>,
) -> Result<Result<Vec<(String, Value)>, data::BadWrite>, Stop> {
    let machine = turn.machine(&*turn.run(run)?)?;
    let mut scope = Scope::of_run(turn, run)?;
    for (key, value) in values {
        if let Err(bad) = data::merge(&machine, &mut scope, key, value.clone()) {
            return Ok(Err(bad));
        }
    }
    Ok(Ok(values.keys().filter_map(|key| Some((key.clone(), scope.key(key)?.clone()))).collect()))
}
