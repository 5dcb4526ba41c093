//! Guards: whether an exit may be taken.

use serde_json::Value;
use switchward_expr::{CONFIRMATIONS, Fuel, Patterns, confirmed};
use switchward_machine::{ExitIx, Guard, RunId};
use switchward_state::limits::{PHRASE_FUEL, REFERENCE_FUEL, STEP_FUEL, WORD_FUEL};
use switchward_state::run::{Fault, FaultCause, Judged};
use switchward_state::{Key, ReadRows as _};

use crate::run::scope::Scope;
use crate::turn::{Stop, Turn};

/// What guards look at.
pub(crate) struct Looked {
    scope: Scope,
    called: Vec<(String, bool)>,
    seen: Vec<String>,
    /// The user's last message if it came since the node was entered, else empty.
    said: String,
}

impl Looked {
    pub(crate) fn at(turn: &Turn<'_, '_>, run: RunId) -> Result<Self, Stop> {
        Self::over(turn, run, Scope::of_run(turn, run)?)
    }

    /// The same over other data than the run's own.
    pub(crate) fn over(turn: &Turn<'_, '_>, run: RunId, scope: Scope) -> Result<Self, Stop> {
        let said = turn.rows.last_message_at(&Key::last_message(turn.tenant(), turn.session_id()?))?;
        let at = turn.run(run)?;
        let confirms =
            |said: &switchward_state::session::LastMessage| said.by_user && said.sequence > at.entered;
        Ok(Self {
            scope,
            called: at.called.clone(),
            seen: at.seen.clone(),
            said: said.filter(|said| confirms(said)).map(|said| said.text.clone()).unwrap_or_default(),
        })
    }

    /// What the guard of an exit evaluates to, with what was judged so far. All of it is looked at before anybody outside
    /// is asked; what cannot be judged is an error and never true.
    pub(crate) fn verdict(
        &self,
        exit: ExitIx,
        guard: &Guard,
        judged: &[Judged],
        patterns: &mut Patterns,
    ) -> GuardResult {
        let mut judges = 0;
        let mut judge = |rubric: &str, model: &str| {
            let nth = judges;
            judges += 1;
            match judged.iter().find(|known| (known.exit, known.nth) == (exit, nth)) {
                Some(known) => GuardResult::of(known.holds),
                None => GuardResult::Pending(NeededJudgement {
                    nth,
                    rubric: rubric.to_owned(),
                    model: model.to_owned(),
                }),
            }
        };
        self.look(guard, &mut judge, patterns)
    }

    fn look(
        &self,
        guard: &Guard,
        judge: &mut dyn FnMut(&str, &str) -> GuardResult,
        patterns: &mut Patterns,
    ) -> GuardResult {
        let fuel = self.scope.fuel();
        fuel.spend(STEP_FUEL);
        if fuel.is_used_up() {
            return GuardResult::Error(FaultCause::TurnFuel.into());
        }
        match guard {
            Guard::Always => GuardResult::Pass,
            Guard::All(all) => {
                let each = all.iter().map(|guard| self.look(guard, judge, patterns)).collect();
                joined(each, &GuardResult::Fail, GuardResult::Pass)
            }
            Guard::Any(any) => {
                let each = any.iter().map(|guard| self.look(guard, judge, patterns)).collect();
                joined(each, &GuardResult::Pass, GuardResult::Fail)
            }
            Guard::Present(path) => {
                GuardResult::of(self.scope.get(path).is_some_and(|value| !value.is_null()))
            }
            Guard::Compare { left, op, right } => {
                fuel.spend_bytes(right.len(), REFERENCE_FUEL);
                let right = serde_json::from_str::<Value>(right).map_err(|error| error.to_string());
                let holds = right.and_then(|right| {
                    let holds = patterns.compare(self.scope.get(left), *op, &right, fuel);
                    holds.map_err(|error| error.to_string())
                });
                holds.map_or_else(GuardResult::error, GuardResult::of)
            }
            Guard::Called { tool, success } => GuardResult::of(
                self.called.iter().any(|(name, worked)| name == tool && (*worked || !success)),
            ),
            Guard::Confirmed(phrases) => {
                spend_phrases(fuel, &self.said, phrases);
                GuardResult::of(confirmed(&self.said, phrases))
            }
            Guard::Seen(key) => GuardResult::of(self.seen.contains(key)),
            Guard::Judge { rubric, model } => judge(rubric, model),
            Guard::Logic(logic) => {
                let holds = logic.holds(self.scope.root(), fuel).map_err(|error| error.to_string());
                holds.map_or_else(GuardResult::error, GuardResult::of)
            }
        }
    }
}

/// Takes away what it costs to look for phrases in a message.
fn spend_phrases(fuel: &Fuel, said: &str, phrases: &[String]) {
    let count = if phrases.is_empty() { CONFIRMATIONS.len() } else { phrases.len() };
    fuel.spend_bytes(said.len() + phrases.iter().map(String::len).sum::<usize>(), WORD_FUEL);
    fuel.spend_bytes(said.len().saturating_mul(count), PHRASE_FUEL);
}

/// What a guard evaluates to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum GuardResult {
    Pass,
    Fail,
    /// A judge must be asked first.
    Pending(NeededJudgement),
    /// It cannot be said.
    Error(Fault),
}

impl GuardResult {
    fn of(holds: bool) -> Self {
        if holds { Self::Pass } else { Self::Fail }
    }

    fn error(diagnostic: String) -> Self {
        Self::Error(FaultCause::Guard { diagnostic }.into())
    }
}

/// A question to a judge that must be answered before its guard is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NeededJudgement {
    /// Which of its exit's judgements, from 0.
    pub(crate) nth: u16,
    pub(crate) rubric: String,
    pub(crate) model: String,
}

/// One verdict of several: one of them decides, whatever the others are; an error beats what is open.
fn joined(each: Vec<GuardResult>, decides: &GuardResult, otherwise: GuardResult) -> GuardResult {
    if each.contains(decides) {
        return decides.clone();
    }
    let error = each.iter().position(|verdict| matches!(verdict, GuardResult::Error(_)));
    let open = error.or_else(|| each.iter().position(|verdict| matches!(verdict, GuardResult::Pending(_))));
    open.and_then(|at| each.into_iter().nth(at)).unwrap_or(otherwise)
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};
    use switchward_expr::{CmpOp, Logic, Path};

    use super::*;

    fn looked(fuel: &Fuel) -> Looked {
        let data = Map::from_iter([("text".to_owned(), json!("b".repeat(1_000)))]);
        Looked {
            scope: Scope::of(data, fuel),
            called: Vec::new(),
            seen: Vec::new(),
            said: "yes".repeat(1_000),
        }
    }

    fn verdict(looked: &Looked, guard: &Guard) -> GuardResult {
        looked.verdict(ExitIx(0), guard, &[], &mut Patterns::default())
    }

    fn compare(op: CmpOp, right: &str) -> Guard {
        Guard::Compare { left: Path::new("text").unwrap(), op, right: right.to_owned() }
    }

    /// Every kind of guard costs something, parts of others too, and what they read costs more.
    #[test]
    fn guards_are_paid_for() {
        let fuel = Fuel::new(u64::MAX);
        let looked = looked(&fuel);
        let spent = |guard: &Guard| {
            let before = fuel.left();
            verdict(&looked, guard);
            before - fuel.left()
        };
        assert_eq!(spent(&Guard::Always), STEP_FUEL);
        assert_eq!(spent(&Guard::All(vec![Guard::Always; 4])), 5 * STEP_FUEL);
        assert_eq!(spent(&Guard::Any(vec![Guard::Seen("paid".into()); 4])), 5 * STEP_FUEL);
        assert!(spent(&compare(CmpOp::Matches, r#""a""#)) > STEP_FUEL + 1_000);
        assert!(spent(&logic(json!({"in": ["c", {"var": "text"}]}))) > STEP_FUEL + 1_000);
        assert!(spent(&Guard::Confirmed(vec!["ok".into()])) > STEP_FUEL + 3_000 * (WORD_FUEL + PHRASE_FUEL));
    }

    fn logic(rule: Value) -> Guard {
        Guard::Logic(Logic::guard(&rule).unwrap())
    }

    /// An expression reads the data from their root. What it cannot compute is a fault of the guard and never true,
    /// also below a negation.
    #[test]
    fn logic_that_cannot_be_evaluated_never_holds() {
        let fuel = Fuel::new(u64::MAX);
        let looked = looked(&fuel);
        let equal = |text: &str| logic(json!({"==": [{"substr": [{"var": "text"}, 0, 2]}, text]}));
        assert_eq!(verdict(&looked, &equal("bb")), GuardResult::Pass);
        assert_eq!(verdict(&looked, &equal("b")), GuardResult::Fail);
        assert_eq!(verdict(&looked, &logic(json!({"var": "absent"}))), GuardResult::Fail);
        let broken = || logic(json!({"!": {">": [{"var": "text"}, 1]}}));
        let diagnostic = "> cannot compare a text with a number".to_owned();
        let fault = GuardResult::Error(FaultCause::Guard { diagnostic }.into());
        assert_eq!(verdict(&looked, &broken()), fault);
        assert_eq!(verdict(&looked, &Guard::All(vec![Guard::Always, broken()])), fault);
        assert_eq!(verdict(&looked, &Guard::Any(vec![broken(), Guard::Seen("paid".into())])), fault);
    }

    /// A guard that is not evaluated is an error; the caller ends the run before anything follows from it.
    #[test]
    fn guards_are_not_evaluated_without_fuel() {
        let fuel = Fuel::new(1_000_000);
        let looked = looked(&fuel);
        assert_eq!(verdict(&looked, &Guard::Always), GuardResult::Pass);
        fuel.spend(u64::MAX);
        let turn_fuel = GuardResult::Error(FaultCause::TurnFuel.into());
        assert_eq!(verdict(&looked, &Guard::Always), turn_fuel);
        assert_eq!(verdict(&looked, &compare(CmpOp::Eq, "1")), turn_fuel);
    }
}
