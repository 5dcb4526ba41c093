//! The one path by which values enter a run's data, whatever they come from: what the node may write, then the key's type and
//! reducer, then the schema that the definition has for its data, then who wrote it. All of a write is recorded, or nothing.

use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::sync::Arc;
use switchward_expr::Fuel;
use switchward_machine::{Machine, Mapped, RunId, Writes};
use switchward_state::ViewError;
use switchward_state::limits::SCHEMA_STEP_FUEL;
use switchward_state::run::{Json, RunEvent, WriteProblem, Writer};

use crate::run::data;
use crate::run::scope::Scope;
use crate::turn::{Stop, Turn};

/// Values on their way into the data of one run. Nothing is recorded before [`record`].
pub(crate) struct Writing {
    machine: Arc<Machine>,
    /// What may be written.
    writes: Writes,
    /// What the data would be.
    scope: Scope,
    /// The keys that were written, in the order of their first values.
    keys: Vec<String>,
    /// The same keys.
    known: BTreeSet<String>,
}

impl Writing {
    /// Into the data of a run, as the node where it stands allows.
    pub(crate) fn at_node(turn: &Turn<'_, '_>, run: RunId) -> Result<Self, ViewError> {
        let at = turn.run(run)?;
        let machine = turn.machine(&at)?;
        let writes = machine.node(at.node).map(|node| node.writes.clone()).unwrap_or_default();
        Ok(Self::of(machine, writes, Scope::of_data(turn, run)?))
    }

    /// Into the data of a run that has not begun, which hold what its definition begins with.
    ///
    /// # Errors
    /// What the definition begins with is no JSON, or larger than data may be.
    pub(crate) fn beginning(machine: &Arc<Machine>, fuel: &Fuel) -> Result<Self, WriteProblem> {
        let mut begun = Self::of(Arc::clone(machine), Writes::Any, Scope::of(Map::new(), fuel));
        for initial in &machine.initial {
            let value = serde_json::from_str(&initial.value).map_err(|error| WriteProblem::Clash {
                key: initial.key.clone(),
                diagnostic: error.to_string(),
            })?;
            begun.put(&initial.key, value)?;
        }
        Ok(begun)
    }

    fn of(machine: Arc<Machine>, writes: Writes, scope: Scope) -> Self {
        Self { machine, writes, scope, keys: Vec::new(), known: BTreeSet::new() }
    }

    /// Merges a value into what a key holds.
    pub(crate) fn put(&mut self, key: &str, value: Value) -> Result<(), WriteProblem> {
        data::merge(&self.machine, &self.writes, &mut self.scope, key, value)?;
        self.wrote(key);
        Ok(())
    }

    /// Puts a value there that was merged before, as by a child at the run's side.
    pub(crate) fn replace(&mut self, key: &str, value: Value) -> Result<(), WriteProblem> {
        data::replace(&mut self.scope, key, value)?;
        self.wrote(key);
        Ok(())
    }

    /// The same of every field of an object.
    pub(crate) fn put_all(&mut self, values: &Map<String, Value>) -> Result<(), WriteProblem> {
        values.iter().try_for_each(|(key, value)| self.put(key, value.clone()))
    }

    /// Merges a value that was mapped from a run of the machine `from`.
    pub(crate) fn copy(&mut self, from: &Machine, mapped: &Mapped, value: Value) -> Result<(), WriteProblem> {
        data::copy(from, &self.machine, &self.writes, &mut self.scope, mapped, value)?;
        self.wrote(&mapped.to);
        Ok(())
    }

    fn wrote(&mut self, key: &str) {
        if self.known.insert(key.to_owned()) {
            self.keys.push(key.to_owned());
        }
    }

    /// What the data would be.
    pub(crate) fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Checks what the data would be against the definition's schema. Returns the keys that were written, each once, with
    /// what they would hold.
    pub(crate) fn checked(&self) -> Result<Vec<(String, Value)>, WriteProblem> {
        fits(&self.machine, self.scope.root(), self.scope.fuel())?;
        Ok(self.written())
    }

    /// The keys that were written, each once, with what they would hold; not checked against the schema.
    pub(crate) fn written(&self) -> Vec<(String, Value)> {
        self.keys.iter().filter_map(|key| Some((key.clone(), self.scope.key(key)?.clone()))).collect()
    }
}

/// Checks data against the schema of their definition, without the keys that are the engine's own.
pub(crate) fn fits(machine: &Machine, data: &Value, fuel: &Fuel) -> Result<(), WriteProblem> {
    let Some(schema) = &machine.data_schema else { return Ok(()) };
    let mut steps = 0;
    let found = if machine.reserved_keys.is_empty() {
        schema.validate_counted(data, &mut steps)
    } else {
        let mut own = data.clone();
        if let Value::Object(fields) = &mut own {
            fields.retain(|key, _| !machine.reserved_keys.contains(key));
        }
        schema.validate_counted(&own, &mut steps)
    };
    fuel.spend(steps.saturating_mul(SCHEMA_STEP_FUEL));
    found.map_err(|broken| WriteProblem::Schema {
        path: broken.first.first().map(|first| first.path.clone()).unwrap_or_default(),
        diagnostic: broken.to_string(),
    })
}

/// Checks what the data of a run would be if these keys held these values.
pub(crate) fn fits_with(
    turn: &Turn<'_, '_>,
    run: RunId,
    machine: &Machine,
    written: &[(String, Value)],
) -> Result<Result<(), WriteProblem>, ViewError> {
    if machine.data_schema.is_none() {
        return Ok(Ok(()));
    }
    let mut data = Scope::of_data(turn, run)?.root().clone();
    if let Value::Object(fields) = &mut data {
        fields.extend(written.iter().cloned());
    }
    Ok(fits(machine, &data, &turn.fuel))
}

/// Who writes.
pub(crate) struct Source<'s> {
    /// The kind of source.
    pub(crate) by: Writer,
    /// The name of the worker, of the caller or of another run; empty for the definition itself.
    pub(crate) who: &'s str,
}

/// Records that keys hold other values from now on, and who wrote them. They were checked before.
pub(crate) fn record(
    turn: &mut Turn<'_, '_>,
    run: RunId,
    written: Vec<(String, Value)>,
    source: &Source<'_>,
) -> Result<(), Stop> {
    let traced = turn.machine(&*turn.run(run)?)?.data_schema.is_some();
    for (key, value) in written {
        let who = traced.then(|| source.who.to_owned());
        turn.emit(RunEvent::Wrote { run, key, value: Json(value), by: source.by, who })?;
    }
    Ok(())
}
