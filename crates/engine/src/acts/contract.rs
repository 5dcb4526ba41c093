//! Results that keep to a contract. What the data would be with a result, and whether the exit that it names could be taken
//! then, is tried before anything is recorded; a result that does not pass is a failed attempt and changes nothing.

use serde_json::{Map, Value};
use switchward_expr::{Fuel, Patterns};
use switchward_machine::reserved_keys::NEXT_NODE;
use switchward_machine::{Contract, ExitIx, NextRule, Node, Port, ResultUse, RunId, Trigger, Writes};
use switchward_state::ViewError;
use switchward_state::limits::{EXITS_SHOWN_MAX, SCHEMA_STEP_FUEL};
use switchward_state::run::{Deferral, Fault, FaultCause, ResultProblem, WriteProblem};

use crate::acts::AcceptedResult;
use crate::fault::excerpt;
use crate::run::guards::{GuardResult, Looked};
use crate::run::writes::Writing;
use crate::turn::{Stop, Turn};

/// Returns what a result leads to that names this exit beside it, or what is wrong with it; writes nothing.
pub(crate) fn accepted(
    turn: &Turn<'_, '_>,
    run: RunId,
    contract: &Contract,
    result: &Value,
    beside: Option<&str>,
) -> Result<Result<AcceptedResult, Fault>, Stop> {
    let at = turn.run(run)?;
    let machine = turn.machine(&at)?;
    let node = machine.node(at.node).ok_or_else(|| ViewError("the run stands nowhere".into()))?;
    drop(at);
    let checked = checked(node, contract, result, beside, &turn.fuel);
    let Checked { values, exits } = match checked {
        Ok(checked) => checked,
        Err(problem) => return Ok(Err(problem.into())),
    };
    let mut writing = Writing::at_node(turn, run)?;
    let written = match writing.put_all(&values).and_then(|()| writing.checked()) {
        Ok(written) => written,
        Err(problem) => return Ok(Err(ResultProblem::Write(problem).into())),
    };
    let looked = Looked::over(turn, run, writing.scope().clone())?;
    let due = match due(node, contract.next, exits.as_deref(), &looked) {
        Ok(due) => due,
        Err(problem) => return Ok(Err(problem.into())),
    };
    // An unknown part of a guard would count as one that does not hold.
    if turn.fuel.is_used_up() {
        return Ok(Err(FaultCause::TurnFuel.into()));
    }
    Ok(Ok(AcceptedResult { brought: values, written, due }))
}

/// A result by itself, without the data that it is for.
struct Checked {
    /// The keys that it writes.
    values: Map<String, Value>,
    /// The exits of the name that it gives, in the author's order; `None` if it names none.
    exits: Option<Vec<ExitIx>>,
}

fn checked(
    node: &Node,
    contract: &Contract,
    result: &Value,
    beside: Option<&str>,
    fuel: &Fuel,
) -> Result<Checked, ResultProblem> {
    let mut body = result.clone();
    let inside = body.as_object_mut().and_then(|fields| fields.remove(NEXT_NODE));
    let exits = named(node, inside.as_ref(), beside)?;
    if contract.into == ResultUse::Update && body.is_null() {
        body = Value::Object(Map::new());
    }
    let values = match contract.into {
        ResultUse::Update => update(&node.writes, &body)?,
        ResultUse::Deduce => deduced(&node.writes, &body)?,
    };
    if let Some(schema) = &contract.schema {
        let mut steps = 0;
        let found = schema.validate_counted(&body, &mut steps);
        fuel.spend(steps.saturating_mul(SCHEMA_STEP_FUEL));
        found.map_err(|broken| ResultProblem::Schema { diagnostic: broken.to_string() })?;
    }
    Ok(Checked { values, exits })
}

/// The exits that a result names in it or beside it.
fn named(
    node: &Node,
    inside: Option<&Value>,
    beside: Option<&str>,
) -> Result<Option<Vec<ExitIx>>, ResultProblem> {
    let inside = match inside {
        None => None,
        Some(Value::String(name)) => Some(name.as_str()),
        Some(other) => {
            return Err(ResultProblem::NextUnknown { next: excerpt(other), exits: names(node) });
        }
    };
    let name = match (inside, beside) {
        (Some(inside), Some(beside)) if inside != beside => {
            let (inside, beside) = (excerpt(&inside), excerpt(&beside));
            return Err(ResultProblem::NextClash { inside, beside });
        }
        (None, None) => return Ok(None),
        (Some(name), _) | (None, Some(name)) => name,
    };
    let exits: Vec<ExitIx> =
        node.agent_exits().filter(|(_, known)| *known == name).map(|(exit, _)| exit).collect();
    if exits.is_empty() {
        return Err(ResultProblem::NextUnknown { next: excerpt(&name), exits: names(node) });
    }
    Ok(Some(exits))
}

/// The names of the exits that a worker can name, each once, as many as a message shows.
fn names(node: &Node) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (_, name) in node.agent_exits() {
        if names.len() < EXITS_SHOWN_MAX && !names.iter().any(|known| known == name) {
            names.push(excerpt(&name));
        }
    }
    names
}

/// An object whose keys are written.
fn update(writes: &Writes, body: &Value) -> Result<Map<String, Value>, ResultProblem> {
    let Value::Object(fields) = body else { return Err(ResultProblem::NoObject) };
    match fields.keys().find(|key| !writes.covers(key)) {
        Some(key) => Err(ResultProblem::Write(WriteProblem::NotDeclared { key: excerpt(key) })),
        None => Ok(fields.clone()),
    }
}

/// What a result writes that says nothing of keys: see [`ResultUse::Deduce`].
fn deduced(writes: &Writes, body: &Value) -> Result<Map<String, Value>, ResultProblem> {
    let problem = match update(writes, body) {
        Ok(values) => return Ok(values),
        Err(problem) => problem,
    };
    match writes.listed() {
        Some([]) => Ok(Map::new()),
        Some([only]) => Ok(Map::from_iter([(only.clone(), body.clone())])),
        Some(_) | None => Err(problem),
    }
}

/// What follows from a result, with the data as they would be. A guard that cannot be evaluated is no fault of the worker:
/// the result counts, and the fault is that of the node.
fn due(
    node: &Node,
    rule: NextRule,
    exits: Option<&[ExitIx]>,
    looked: &Looked,
) -> Result<Deferral, ResultProblem> {
    let Some(exits) = exits else {
        let is_needed = rule == NextRule::Needed && !any_automatic(node, looked);
        let missing = || ResultProblem::NextMissing { exits: names(node) };
        return if is_needed { Err(missing()) } else { Ok(Deferral::Ended(Port::Done)) };
    };
    for exit in exits {
        let Some(found) = node.exits.get(usize::from(exit.0)) else { continue };
        match looked.verdict(*exit, &found.guard, &[], &mut Patterns::default()) {
            GuardResult::Pass => return Ok(Deferral::Try(*exit)),
            // Nobody is asked outside: what a worker names is taken at once or not at all.
            GuardResult::Fail | GuardResult::Pending(_) => {}
            GuardResult::Error(fault) => return Ok(Deferral::Fault(fault)),
        }
    }
    let name = exits.first().and_then(|exit| node.exits.get(usize::from(exit.0))?.agent());
    Err(ResultProblem::NextGuard { next: excerpt(&name.unwrap_or_default()) })
}

/// Whether an automatic exit is taken, or its guard is still to be judged or cannot be evaluated.
fn any_automatic(node: &Node, looked: &Looked) -> bool {
    let mut patterns = Patterns::default();
    let mut automatic = (0u16..).map(ExitIx).zip(&node.exits).filter(|(_, exit)| match exit.on {
        Trigger::Auto { .. } => true,
        Trigger::Answer(_) | Trigger::Port(_) | Trigger::Agent(_) => false,
    });
    automatic.any(|(at, exit)| match looked.verdict(at, &exit.guard, &[], &mut patterns) {
        GuardResult::Pass | GuardResult::Pending(_) | GuardResult::Error(_) => true,
        GuardResult::Fail => false,
    })
}
