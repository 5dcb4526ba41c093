//! The agent records data: all of the values, or none. See `docs/formats-conversation-operations.md#data`.

use serde_json::{Map, Value};
use switchward_machine::{Input, RunId};
use switchward_state::run::{Json, RecordData, RunEvent, Writer};
use switchward_state::{Reason, Rejection, Reply};

use crate::approval::frozen;
use crate::run::scope::Scope;
use crate::run::{data, inputs};
use crate::session::intent;
use crate::turn::{Stop, Turn, not_paused};

pub(crate) fn run(turn: &mut Turn<'_, '_>, record: &RecordData) -> Result<Reply, Stop> {
    let session = turn.live_session()?;
    let leaf = turn.leaf()?;
    inputs::check(turn, leaf, Input::Data)?;
    not_paused(&session)?;
    intent::known(&session)?;
    drop(session);
    frozen::may_record(turn, leaf)?;
    let merged = merged(turn, leaf, &record.values)?;
    write(turn, leaf, merged, Writer::Agent)?;
    turn.moved()
}

/// What the keys hold once the values are merged into them. A value that does not fit refuses them all.
pub(crate) fn merged(
    turn: &Turn<'_, '_>,
    run: RunId,
    values: &Map<String, Value>,
) -> Result<Vec<(String, Value)>, Stop> {
    let machine = turn.machine(&*turn.run(run)?)?;
    let mut scope = Scope::of_data(turn, run)?;
    for (key, value) in values {
        data::merge(&machine, &mut scope, key, value.clone()).map_err(|problem| {
            Rejection::new(Reason::SchemaViolation, problem.to_string())
                .fact("field", format!("values.{key}"))
        })?;
    }
    Ok(values.keys().filter_map(|key| Some((key.clone(), scope.key(key)?.clone()))).collect())
}

pub(crate) fn write(
    turn: &mut Turn<'_, '_>,
    run: RunId,
    values: Vec<(String, Value)>,
    by: Writer,
) -> Result<(), Stop> {
    for (key, value) in values {
        turn.emit(RunEvent::Wrote { run, key, value: Json(value), by })?;
    }
    Ok(())
}
