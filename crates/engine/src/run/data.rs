//! The write path of a run's data: limits, then the key's type and reducer.

use serde_json::{Map, Value};
use switchward_expr::{DataType, Reducer, reduce};
use switchward_machine::{Machine, Mapped, RunId, Writes};
use switchward_state::limits::{DATA_BYTES_MAX, DATA_DEPTH_MAX, DATA_KEY_BYTES_MAX, DATA_KEYS_MAX};
use switchward_state::run::{Fault, FaultCause, WriteProblem, Writer, json_depth, json_length};
use switchward_state::session::{SessionEvent, SessionWarning};

use crate::run::scope::Scope;
use crate::run::writes::{self, Source};
use crate::turn::{Stop, Turn};

/// Merges a value into what a key holds. Returns how many bytes of JSON it holds then. Nobody but the engine writes
/// the machine's reserved keys, whatever the value's origin, and nobody writes what the node does not declare.
pub(crate) fn merge(
    machine: &Machine,
    writes: &Writes,
    scope: &mut Scope,
    key: &str,
    value: Value,
) -> Result<usize, WriteProblem> {
    if !writes.covers(key) {
        return Err(WriteProblem::NotDeclared { key: key.to_owned() });
    }
    if machine.reserves(key) {
        return Err(WriteProblem::Reserved { key: key.to_owned() });
    }
    put(machine, scope, key, value)
}

/// Merges a value that was mapped from a run of the machine `from`. What the engine wrote there goes to the same key here
/// and to no other reserved one; nothing else goes to a reserved key.
pub(crate) fn copy(
    from: &Machine,
    machine: &Machine,
    writes: &Writes,
    scope: &mut Scope,
    mapped: &Mapped,
    value: Value,
) -> Result<usize, WriteProblem> {
    if mapped.from.as_str() == mapped.to && from.reserves(&mapped.to) {
        return put(machine, scope, &mapped.to, value);
    }
    merge(machine, writes, scope, &mapped.to, value)
}

fn put(machine: &Machine, scope: &mut Scope, key: &str, value: Value) -> Result<usize, WriteProblem> {
    if key.is_empty() || key.len() > DATA_KEY_BYTES_MAX {
        return Err(WriteProblem::KeyLength);
    }
    if json_depth(&value) > DATA_DEPTH_MAX {
        return Err(WriteProblem::TooDeep { key: key.to_owned() });
    }
    let before = scope.key(key);
    if before.is_none() && scope.keys() >= DATA_KEYS_MAX {
        return Err(WriteProblem::TooManyKeys);
    }
    let (holds, reducer) =
        machine.field(key).map_or((DataType::Any, Reducer::Overwrite), |field| (field.holds, field.reducer));
    scope.fuel().spend_reads(&value, 3);
    let merged = reduce(before, reducer, holds, value, scope.fuel());
    let merged =
        merged.map_err(|clash| WriteProblem::Clash { key: key.to_owned(), diagnostic: clash.to_string() })?;
    scope.fuel().spend_reads(&merged, 2);
    let (was, grown) = (before.map_or(0, json_length), json_length(&merged));
    let all = scope.bytes().saturating_sub(was).saturating_add(grown);
    if all > DATA_BYTES_MAX {
        return Err(WriteProblem::TooLarge { key: key.to_owned() });
    }
    scope.hold(key, merged, all);
    Ok(grown)
}

/// Replaces what a key holds with a value that was merged before, in the data of a child.
pub(crate) fn replace(scope: &mut Scope, key: &str, value: Value) -> Result<(), WriteProblem> {
    let before = scope.key(key);
    if before.is_none() && scope.keys() >= DATA_KEYS_MAX {
        return Err(WriteProblem::TooManyKeys);
    }
    scope.fuel().spend_reads(&value, 2);
    let was = before.map_or(0, json_length);
    let all = scope.bytes().saturating_sub(was).saturating_add(json_length(&value));
    if all > DATA_BYTES_MAX {
        return Err(WriteProblem::TooLarge { key: key.to_owned() });
    }
    scope.hold(key, value, all);
    Ok(())
}

/// The data would become too large if something was written below a reserved key.
pub(crate) struct DataFull {
    key: String,
    /// The name of the state below that key.
    state: String,
}

impl From<DataFull> for SessionWarning {
    fn from(DataFull { key, state }: DataFull) -> Self {
        Self::DataFull { key, state }
    }
}

impl From<DataFull> for Fault {
    fn from(DataFull { key, state }: DataFull) -> Self {
        FaultCause::DataFull { key, state }.into()
    }
}

/// Writes something of the run's state below a reserved key of the data, under the state's name; nothing if the machine
/// does not reserve the key. What does not fit any more is warned of and not written: by then it is a fact, and cannot be
/// refused.
pub(crate) fn keep_below(
    turn: &mut Turn<'_, '_>,
    run: RunId,
    key: &str,
    value: Value,
    by: Writer,
) -> Result<(), Stop> {
    if let Some(full) = put_below(turn, run, key, value, by)? {
        turn.emit(SessionEvent::Warned { warning: full.into() })?;
    }
    Ok(())
}

/// The same; returns why nothing is written, if that is so.
pub(crate) fn put_below(
    turn: &mut Turn<'_, '_>,
    run: RunId,
    key: &str,
    value: Value,
    by: Writer,
) -> Result<Option<DataFull>, Stop> {
    let at = turn.run(run)?;
    let machine = turn.machine(&at)?;
    if !machine.reserves(key) {
        return Ok(None);
    }
    let state = machine.node(at.node).map(|node| node.name.clone()).unwrap_or_default();
    drop(at);
    let scope = Scope::of_run(turn, run)?;
    let mut all = scope.key(key).and_then(Value::as_object).cloned().unwrap_or_else(Map::new);
    if scope.bytes().saturating_add(json_length(&value)).saturating_add(state.len()) > DATA_BYTES_MAX {
        return Ok(Some(DataFull { key: key.to_owned(), state }));
    }
    all.insert(state, value);
    let who = turn.command.actor.subject.clone();
    let written = vec![(key.to_owned(), Value::Object(all))];
    writes::record(turn, run, written, &Source { by, who: &who })?;
    Ok(None)
}

/// Whether something of this name stands below a reserved key, for the run's state.
pub(crate) fn has_below(turn: &Turn<'_, '_>, run: RunId, key: &str, name: &str) -> Result<bool, Stop> {
    Ok(below(turn, run, key)?.is_some_and(|fields| fields.contains_key(name)))
}

/// Writes fields of an object as [`put_below`] writes a value; what else the object has stays.
pub(crate) fn merge_below(
    turn: &mut Turn<'_, '_>,
    run: RunId,
    key: &str,
    fields: Value,
    by: Writer,
) -> Result<Option<DataFull>, Stop> {
    let mut all = below(turn, run, key)?.unwrap_or_default();
    if let Value::Object(fields) = fields {
        all.extend(fields);
    }
    put_below(turn, run, key, Value::Object(all), by)
}

/// The object that stands below a reserved key, for the run's state.
fn below(turn: &Turn<'_, '_>, run: RunId, key: &str) -> Result<Option<Map<String, Value>>, Stop> {
    let at = turn.run(run)?;
    let machine = turn.machine(&at)?;
    let state = machine.node(at.node).map(|node| node.name.as_str()).unwrap_or_default();
    let scope = Scope::of_run(turn, run)?;
    Ok(scope.key(key).and_then(|all| all.get(state)?.as_object()).cloned())
}
