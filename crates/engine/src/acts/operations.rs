//! Operations that run through at once.

use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Display;
use std::sync::Arc;
use switchward_machine::{Case, Convert, Each, Initial, Machine, Next, Op, Port, RunId, Write, Writes};
use switchward_state::limits::{EFFECT_BYTES, ITEMS_MAX, OPS_MAX, STEP_FUEL, WRITTEN_BYTES_MAX};
use switchward_state::run::{Fault, FaultCause, Json, Loop, RunEvent, Writer};
use switchward_state::session::{SessionEvent, SessionWarning};

use crate::acts::Ran;
use crate::delivery::messages;
use crate::run::data;
use crate::run::scope::Scope;
use crate::run::writes::{self, Source};
use crate::turn::{Stop, Turn};

/// Runs them in order.
pub(crate) fn operate(turn: &mut Turn<'_, '_>, run: RunId, ops: &[Op]) -> Result<Ran, Stop> {
    if ops.is_empty() {
        return Ok(Ran::Ended(Port::Done));
    }
    turn.budget.next_act();
    let scope = Scope::of_run(turn, run)?;
    let at = turn.run(run)?;
    let machine = turn.machine(&at)?;
    let writes = machine.node(at.node).map(|node| node.writes.clone()).unwrap_or_default();
    drop(at);
    let mut work = Working {
        turn,
        run,
        machine,
        writes,
        scope,
        written: BTreeSet::new(),
        left: OPS_MAX,
        bytes: WRITTEN_BYTES_MAX,
    };
    let ran = match work.all(ops) {
        Ok(port) => Ran::Ended(port.unwrap_or(Port::Done)),
        Err(Broken::Fault(fault)) => Ran::Fault(fault),
        Err(Broken::Stop(stop)) => return Err(stop),
    };
    // Where the data have a schema, what the operations of an act write is one write.
    let is_whole = work.machine.data_schema.is_some();
    let kept = if is_whole && matches!(ran, Ran::Fault(_)) { None } else { work.keep()? };
    Ok(match (ran, kept) {
        (Ran::Ended(_), Some(fault)) => Ran::Fault(fault),
        (ran, _) => ran,
    })
}

/// Why operations do not go on.
enum Broken {
    Fault(Fault),
    Stop(Stop),
}

impl From<Fault> for Broken {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<FaultCause> for Broken {
    fn from(cause: FaultCause) -> Self {
        Self::Fault(cause.into())
    }
}

impl From<Stop> for Broken {
    fn from(stop: Stop) -> Self {
        Self::Stop(stop)
    }
}

impl From<switchward_state::ViewError> for Broken {
    fn from(error: switchward_state::ViewError) -> Self {
        Self::Stop(error.into())
    }
}

/// The cause of a fault whose expression cannot be evaluated.
fn expression(error: impl Display) -> FaultCause {
    FaultCause::Expression { diagnostic: error.to_string() }
}

/// Operations at work.
struct Working<'t, 'a, 'b> {
    turn: &'t mut Turn<'a, 'b>,
    run: RunId,
    machine: Arc<Machine>,
    /// What the node may write.
    writes: Writes,
    scope: Scope,
    /// Keys that hold another value than before.
    written: BTreeSet<String>,
    /// Operations that may still run.
    left: u32,
    /// Bytes that may still be written.
    bytes: usize,
}

impl Working<'_, '_, '_> {
    /// Runs them in order; the port is that of a branch that matched, or of a loop that has an item.
    fn all(&mut self, ops: &[Op]) -> Result<Option<Port>, Broken> {
        for op in ops {
            self.step()?;
            self.left = self.left.checked_sub(1).ok_or(FaultCause::TooManyOperations)?;
            let ended = match op {
                Op::Log(text) => self.log(text)?,
                Op::Write(write) => self.write(write)?,
                Op::Convert(convert) => self.convert(convert)?,
                Op::Send(message) => match messages::send(self.turn, self.run, &self.scope, message)? {
                    Some(fault) => return Err(fault.into()),
                    None => None,
                },
                Op::Branch(cases) => self.branch(cases)?,
                Op::Each(each) => self.each(each)?,
                Op::Next(next) => self.next(next)?,
                Op::Set(set) => self.set(set)?,
            };
            if ended.is_some() {
                return Ok(ended);
            }
        }
        Ok(None)
    }

    /// An operation, a condition or an item of a loop, which counts even if it does nothing.
    fn step(&self) -> Result<(), FaultCause> {
        let fuel = &self.turn.fuel;
        fuel.spend(STEP_FUEL);
        if fuel.is_used_up() { Err(FaultCause::TurnFuel) } else { Ok(()) }
    }

    fn log(&mut self, text: &str) -> Result<Option<Port>, Broken> {
        self.turn.budget.check_bytes(text.len() + EFFECT_BYTES).map_or(Ok(()), Err)?;
        self.turn.emit(SessionEvent::Warned { warning: SessionWarning::Logged { text: text.to_owned() } })?;
        Ok(None)
    }

    fn write(&mut self, write: &Write) -> Result<Option<Port>, Broken> {
        let value = self.scope.value(&write.value)?;
        self.put(&write.key, value)
    }

    fn set(&mut self, set: &Initial) -> Result<Option<Port>, Broken> {
        let value = self.scope.literal(&set.value)?;
        self.put(&set.key, value)
    }

    fn convert(&mut self, convert: &Convert) -> Result<Option<Port>, Broken> {
        let Some(value) = self.scope.get(&convert.from) else {
            return Err(FaultCause::NoValue { path: convert.from.as_str().to_owned() }.into());
        };
        self.turn.fuel.spend_reads(value, 4);
        let value = convert.how.apply(value).map_err(expression)?;
        self.put(&convert.into, value)
    }

    fn put(&mut self, key: &str, value: Value) -> Result<Option<Port>, Broken> {
        let bytes = data::merge(&self.machine, &self.writes, &mut self.scope, key, value);
        let bytes = bytes.map_err(FaultCause::Write)?;
        self.bytes = self.bytes.checked_sub(bytes).ok_or(FaultCause::WrittenBytes)?;
        self.written.insert(key.to_owned());
        Ok(None)
    }

    /// Records what was written, each key once with its final value; nothing is recorded if that is too much.
    fn keep(self) -> Result<Option<Fault>, Stop> {
        let long =
            |key: &String| key.len() + self.scope.key(key).map_or(0, switchward_state::run::json_length);
        if let Some(fault) = self.turn.budget.check_bytes(self.written.iter().map(long).sum()) {
            return Ok(Some(fault));
        }
        let value = |key: &String| self.scope.key(key).cloned().unwrap_or(Value::Null);
        let written: Vec<_> = self.written.iter().map(|key| (key.clone(), value(key))).collect();
        if let Err(problem) = writes::fits_with(self.turn, self.run, &self.machine, &written)? {
            return Ok(Some(FaultCause::Write(problem).into()));
        }
        writes::record(self.turn, self.run, written, &Source { by: Writer::Operation, who: "" })?;
        Ok(None)
    }

    fn branch(&mut self, cases: &[Case]) -> Result<Option<Port>, Broken> {
        for case in cases {
            self.step()?;
            let right = self.scope.value(&case.right)?;
            let (left, fuel) = (self.scope.get(&case.left), self.scope.fuel());
            let holds = self.turn.patterns.compare(left, case.op, &right, fuel);
            if holds.map_err(expression)? {
                return Ok(Some(case.port.clone()));
            }
        }
        Ok(None)
    }

    /// The list that a loop goes through; an absent one is empty.
    fn list(&self, path: &switchward_expr::Path) -> Result<Vec<Value>, Fault> {
        let items = match self.scope.get(path) {
            None | Some(Value::Null) => Vec::new(),
            Some(list @ Value::Array(items)) => {
                self.turn.fuel.spend_reads(list, 2);
                items.clone()
            }
            Some(_) => return Err(FaultCause::NoList { path: path.as_str().to_owned() }.into()),
        };
        if items.len() > ITEMS_MAX {
            return Err(FaultCause::TooManyItems { path: path.as_str().to_owned() }.into());
        }
        Ok(items)
    }

    fn each(&mut self, each: &Each) -> Result<Option<Port>, Broken> {
        for (index, item) in self.list(&each.over)?.into_iter().enumerate() {
            self.step()?;
            let before = self.scope.enter_item(&each.as_, index, item);
            let ended = self.all(&each.ops);
            self.scope.leave_item(&each.as_, before);
            if let Some(port) = ended? {
                return Ok(Some(port));
            }
        }
        Ok(None)
    }

    /// The head of a loop whose operations are acts: it begins, goes to its next item, or is over.
    fn next(&mut self, next: &Next) -> Result<Option<Port>, Broken> {
        let level = next.level;
        let at = self.turn.run(self.run)?.loops.get(usize::from(level)).cloned();
        let now = match at {
            Some(at) => Loop { at: at.at + 1, ..at },
            None => {
                let items = Json(Value::Array(self.list(&next.over)?));
                Loop { name: next.as_.clone(), items, at: 0 }
            }
        };
        let Json(Value::Array(items)) = &now.items else { return Ok(None) };
        self.turn.budget.check_bytes(switchward_state::run::json_length(&now.items.0)).map_or(Ok(()), Err)?;
        let more = usize::try_from(now.at).is_ok_and(|at| at < items.len());
        self.turn.emit(RunEvent::Looped { run: self.run, level, at: more.then_some(now) })?;
        Ok(more.then_some(Port::Item))
    }
}
