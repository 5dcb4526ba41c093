//! Properties of exits: the guard of the exit that is taken held, and no guard before it did. The data that guards
//! look at are derived here from the history alone, and from nothing that the engine keeps.

use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use switchward_expr::{CmpOp, Fuel, Path, compare, confirmed};
use switchward_machine::{Exit, Guard, Machine, RunId, Trigger};
use switchward_state::Event;
use switchward_state::run::RunEvent;
use switchward_state::session::{SessionEvent, Speaker};

/// The input of guards.
struct Known {
    /// An object.
    data: Value,
    /// The keys of the events that have come since the node was entered.
    seen: BTreeSet<String>,
    /// The user's last message since the node was entered.
    said: String,
}

impl Default for Known {
    fn default() -> Self {
        Self { data: Value::Object(Map::new()), seen: BTreeSet::new(), said: String::new() }
    }
}

/// Evaluates a guard; `None` if only a judge knows, if it cannot be evaluated, and for the calls of tools.
fn holds(guard: &Guard, known: &Known) -> Option<bool> {
    let value = |path: &Path| path.get(&known.data).filter(|value| !value.is_null());
    match guard {
        Guard::Always => Some(true),
        Guard::All(all) => {
            let each: Vec<Option<bool>> = all.iter().map(|guard| holds(guard, known)).collect();
            if each.contains(&Some(false)) {
                Some(false)
            } else {
                each.into_iter().collect::<Option<Vec<bool>>>().map(|_| true)
            }
        }
        Guard::Any(any) => {
            let each: Vec<Option<bool>> = any.iter().map(|guard| holds(guard, known)).collect();
            if each.contains(&Some(true)) {
                Some(true)
            } else {
                each.into_iter().collect::<Option<Vec<bool>>>().map(|_| false)
            }
        }
        Guard::Present(path) => Some(value(path).is_some()),
        Guard::Compare { left, op, right } => {
            let right: Value = serde_json::from_str(right).ok()?;
            match (op, value(left)) {
                // Simple comparisons are repeated here, so that a mistake need not be in both.
                (CmpOp::Eq, Some(Value::Bool(left))) if right.is_boolean() => {
                    Some(right == Value::Bool(*left))
                }
                (CmpOp::Eq, Some(Value::String(left))) if right.is_string() => {
                    Some(right == Value::String(left.clone()))
                }
                (_, left) => compare(left, *op, &right).ok(),
            }
        }
        Guard::Confirmed(phrases) => Some(confirmed(&known.said, phrases)),
        Guard::Seen(key) => Some(known.seen.contains(key)),
        Guard::Logic(logic) => logic.holds(&known.data, &Fuel::unlimited()).ok(),
        Guard::Judge { .. } | Guard::Called { .. } => None,
    }
}

/// Checks a whole history.
pub(crate) fn check<'m>(events: &[Event], machine: impl Fn(RunId) -> &'m Machine) -> Result<u64, String> {
    let mut runs: BTreeMap<u32, Known> = BTreeMap::new();
    let mut looked = 0;
    for event in events {
        note(event, &mut runs);
        let Event::Run(RunEvent::Left { run, node, exit }) = event else { continue };
        let Some(node) = machine(*run).node(*node) else { continue };
        let (known, at) = (runs.entry(run.0).or_default(), usize::from(exit.0));
        let taken = &node.exits[at];
        // A person may have approved it long after its guard was evaluated.
        let asks = |exit: &Exit| matches!(exit.on, Trigger::Auto { event: true });
        if !matches!(taken.on, Trigger::Auto { .. }) || taken.hold.is_some() {
            continue;
        }
        if holds(&taken.guard, known) == Some(false) {
            return Err(format!(
                "{event:?}, but its guard {:?} does not hold: {:?}",
                taken.guard, known.data
            ));
        }
        let before =
            node.exits[..at].iter().find(|exit| asks(exit) && holds(&exit.guard, known) == Some(true));
        if let Some(before) = before {
            return Err(format!(
                "{event:?}, but the guard {:?} before it holds: {:?}",
                before.guard, known.data
            ));
        }
        looked += 1;
    }
    Ok(looked)
}

/// Records an event.
#[expect(clippy::wildcard_enum_match_arm, reason = "guards read few values")]
fn note(event: &Event, runs: &mut BTreeMap<u32, Known>) {
    match event {
        Event::Run(RunEvent::Entered { run, .. }) => {
            let known = runs.entry(run.0).or_default();
            known.seen.clear();
            known.said.clear();
        }
        Event::Run(RunEvent::Wrote { run, key, value, .. }) => {
            runs.entry(run.0).or_default().data[key.as_str()] = value.0.clone();
        }
        Event::Run(RunEvent::EventRecorded { run, key, early: None, .. }) => {
            runs.entry(run.0).or_default().seen.insert(key.clone());
        }
        Event::Run(RunEvent::EarlyUsed { run, keys, .. }) => {
            runs.entry(run.0).or_default().seen.extend(keys.iter().cloned());
        }
        Event::Session(SessionEvent::MessagePosted { text, speaker: Speaker::User }) => {
            runs.values_mut().for_each(|known| known.said.clone_from(text));
        }
        // A message that the agent relays replaces the user's, and confirms nothing.
        Event::Session(SessionEvent::MessagePosted { speaker: Speaker::Relayed, .. }) => {
            runs.values_mut().for_each(|known| known.said.clear());
        }
        _ => {}
    }
}
