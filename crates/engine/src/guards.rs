//! Guards: whether an exit may be taken.

use serde_json::Value;
use switchward_expr::{compare, confirmed};
use switchward_machine::{Guard, RunId};

use crate::Key;
use crate::faults::Fault;
use crate::scope::Scope;
use crate::turn::{Stop, Turn};

/// What guards look at.
pub(crate) struct Looked {
    scope: Scope,
    called: Vec<(String, bool)>,
    seen: Vec<String>,
    said: String,
}

impl Looked {
    pub(crate) fn at(turn: &Turn<'_, '_>, run: RunId) -> Result<Self, Stop> {
        let said = turn.rows.said_at(&Key::said(turn.tenant(), turn.session_id()?))?;
        Ok(Self {
            scope: Scope::of_run(turn, run)?,
            called: turn.run(run)?.called.clone(),
            seen: turn.run(run)?.seen.clone(),
            said: said.map(|said| String::clone(&said)).unwrap_or_default(),
        })
    }

    /// Whether it holds. What cannot be judged is a fault and never true.
    pub(crate) fn holds(&self, guard: &Guard) -> Result<bool, Fault> {
        Ok(match guard {
            Guard::Always => true,
            Guard::All(all) => self.each(all)?.into_iter().all(|holds| holds),
            Guard::Any(any) => self.each(any)?.into_iter().any(|holds| holds),
            Guard::Present(path) => self.scope.get(path).is_some_and(|value| !value.is_null()),
            Guard::Compare { left, op, right } => {
                let right: Value =
                    serde_json::from_str(right).map_err(|error| Fault::guard(error.to_string()))?;
                compare(self.scope.get(left), *op, &right).map_err(|error| Fault::guard(error.to_string()))?
            }
            Guard::Called { tool, success } => {
                self.called.iter().any(|(name, worked)| name == tool && (*worked || !success))
            }
            Guard::Said(phrases) => confirmed(&self.said, phrases),
            Guard::Seen(key) => self.seen.contains(key),
        })
    }

    fn each(&self, guards: &[Guard]) -> Result<Vec<bool>, Fault> {
        guards.iter().map(|guard| self.holds(guard)).collect()
    }
}
