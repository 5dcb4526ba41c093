//! Work: something that an outside worker owes, and what becomes of its result. All of a result is taken, or nothing.

use serde_json::{Map, Value, json};
use switchward_machine::{Accept, ExitIx, FieldType, OpenId, Port, Reads, RunId, Wanted, Work, WorkKind};
use switchward_state::limits::WORK_INPUT_BYTES_MAX;
use switchward_state::run::{Deferral, Fault, FaultCause, ResultProblem, RunEvent};
use switchward_state::work::{About, OpenItemBody, Owed, WorkEvent, WorkItem};
use switchward_state::{ItemKind, Key, ReadRows as _, Reason, Rejection};

use crate::acts::contract;
use crate::delivery::capacity;
use crate::fault::{excerpt, no_object};
use crate::next::Next;
use crate::run::guards::NeededJudgement;
use crate::run::scope::{Scope, plain};
use crate::run::writes::Writing;
use crate::session::intent;
use crate::turn::{Stop, Turn};

/// The first status of HTTP that is an error.
const STATUS_ERROR: u64 = 400;
/// The status of an answer that names none.
const STATUS_FINE: u64 = 200;

pub(crate) fn begin(turn: &mut Turn<'_, '_>, run: RunId, work: &Work) -> Result<Next, Stop> {
    let scope = Scope::of_run(turn, run)?;
    let text = match &work.reads {
        None => None,
        Some(Reads::UserMessage) => {
            let said = turn.rows.last_message_at(&Key::last_message(turn.tenant(), turn.session_id()?))?;
            said.map(|said| said.text.clone())
        }
        Some(Reads::Data(path)) => scope.get(path).filter(|value| !value.is_null()).cloned().map(plain),
    };
    if text.is_none() && work.reads.is_some() {
        return Ok(Next::Ended(incomplete(work.accept.as_ref())));
    }
    let mut input = match handed(&scope, work) {
        Ok(input) => input,
        Err(fault) => return Ok(Next::Fault(fault)),
    };
    input.extend(text.map(|text| ("text".to_owned(), Value::String(text))));
    if let Some(Accept::Workflows) = work.accept {
        input.extend(intent::input(turn)?);
    }
    let input = Value::Object(input);
    let bytes = switchward_state::run::json_length(&input);
    if bytes > WORK_INPUT_BYTES_MAX {
        return Ok(Next::Fault(FaultCause::WorkInputBytes.into()));
    }
    if let Some(excess) = capacity::opened(turn, bytes) {
        return Ok(Next::Fault(excess.into()));
    }
    let queue = turn.run(run)?.definition.clone();
    let at = turn.run(run)?;
    let instead = at.unknown.filter(|known| known.of == at.name_of(&input)).map(|known| known.key);
    let owed = Owed { instead, ..Owed::new(input, &queue, About::Act) };
    turn.open(run, OpenItemBody::Work(WorkItem { kind: work.kind, owed }))?;
    Ok(Next::Rest)
}

fn incomplete(accept: Option<&Accept>) -> Port {
    match accept {
        Some(Accept::Fields { incomplete, .. }) => incomplete.clone(),
        Some(Accept::Data | Accept::Answer { .. } | Accept::Workflows | Accept::Contract(_)) | None => {
            Port::Done
        }
    }
}

/// What the worker is handed: the input, filled in, and what is handed over as it is.
fn handed(scope: &Scope, work: &Work) -> Result<Map<String, Value>, Fault> {
    let mut handed = match &work.input {
        Some(input) => members(scope.value(input)?)?,
        None => Map::new(),
    };
    if let Some(literal) = &work.literal {
        let literal: Value = serde_json::from_str(literal).map_err(|_| FaultCause::NoInputObject)?;
        handed.extend(members(literal)?);
    }
    Ok(handed)
}

fn members(input: Value) -> Result<Map<String, Value>, Fault> {
    match input {
        Value::Object(members) => Ok(members),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(FaultCause::NoInputObject.into())
        }
    }
}

/// Asks a judge what the guard of an exit leaves open, unless somebody is asked already.
pub(crate) fn ask_judge(
    turn: &mut Turn<'_, '_>,
    run: RunId,
    exit: ExitIx,
    asked: NeededJudgement,
) -> Result<(), Stop> {
    if !judges(turn, run)?.is_empty() {
        return Ok(());
    }
    let queue = turn.run(run)?.definition.clone();
    let input = json!({ "rubric": asked.rubric, "model": asked.model });
    let owed = Owed::new(input, &queue, About::Judge { exit, nth: asked.nth });
    turn.open(run, OpenItemBody::Work(WorkItem { kind: WorkKind::Judge, owed }))?;
    Ok(())
}

/// An exit is chosen: nobody need judge any more.
pub(crate) fn drop_judges(turn: &mut Turn<'_, '_>, run: RunId) -> Result<(), Stop> {
    if turn.run(run)?.choice.is_none() {
        return Ok(());
    }
    turn.emit(RunEvent::ChoiceOver { run })?;
    for item in judges(turn, run)? {
        turn.emit(WorkEvent::Closed { item, run })?;
    }
    Ok(())
}

/// The open work of judges in a run.
fn judges(turn: &Turn<'_, '_>, run: RunId) -> Result<Vec<OpenId>, Stop> {
    let mut judges = Vec::new();
    for item in turn.open_in(run, ItemKind::Work)? {
        let work = turn.rows.work_at(&turn.item_key(item)?)?;
        judges.extend(work.filter(|work| work.body.kind == WorkKind::Judge).map(|_| item));
    }
    Ok(judges)
}

/// What a result of work leads to.
pub(crate) struct AcceptedResult {
    /// The keys that it writes, as the result has them.
    pub(crate) brought: Map<String, Value>,
    /// What the data hold then.
    pub(crate) written: Vec<(String, Value)>,
    /// What follows.
    pub(crate) due: Deferral,
}

/// Returns what a result of work leads to, or what is wrong with it; writes nothing. An exit that is named beside it is
/// refused where workers name none.
pub(crate) fn accepted(
    turn: &Turn<'_, '_>,
    run: RunId,
    accept: Option<&Accept>,
    result: &Value,
    next: Option<&str>,
) -> Result<Result<AcceptedResult, Fault>, Stop> {
    if let Some(Accept::Contract(contract)) = accept {
        return contract::accepted(turn, run, contract, result, next);
    }
    no_next(next)?;
    let (values, port) = match accept {
        // A contract is looked at above.
        None | Some(Accept::Contract(_)) => (Map::new(), Port::Done),
        Some(Accept::Data) => match result {
            Value::Null => (Map::new(), Port::Done),
            Value::Object(values) => (values.clone(), Port::Done),
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                return Ok(Err(no_object()));
            }
        },
        Some(Accept::Fields { fields, complete, incomplete }) => match found(fields, result) {
            Err(fault) => return Ok(Err(fault)),
            Ok((values, true)) => (values, complete.clone()),
            Ok((values, false)) => (values, incomplete.clone()),
        },
        Some(Accept::Answer { into }) => match answer(into.as_deref(), result) {
            Err(fault) => return Ok(Err(fault)),
            Ok(values) => (values, Port::Done),
        },
        Some(Accept::Workflows) => {
            let chosen = intent::chosen(turn, result)?;
            return Ok(chosen.map(|due| AcceptedResult { brought: Map::new(), written: Vec::new(), due }));
        }
    };
    let mut writing = Writing::at_node(turn, run)?;
    Ok(match writing.put_all(&values).and_then(|()| writing.checked()) {
        Ok(written) => Ok(AcceptedResult { brought: values, written, due: Deferral::Ended(port) }),
        Err(problem) => Err(ResultProblem::Write(problem).into()),
    })
}

/// Refuses the name of an exit beside the result of work that names none.
pub(crate) fn no_next(next: Option<&str>) -> Result<(), Rejection> {
    if next.is_none() {
        return Ok(());
    }
    let message = "the result of this work names no transition: leave `next` out";
    Err(Rejection::new(Reason::TransitionIllegal, message).fact("field", "next"))
}

/// The fields that a result has, and whether none that is required is missing.
fn found(fields: &[Wanted], result: &Value) -> Result<(Map<String, Value>, bool), Fault> {
    let Value::Object(result) = result else { return Err(no_object()) };
    if let Some(other) = result.keys().find(|key| fields.iter().all(|field| field.name != **key)) {
        return Err(ResultProblem::UnknownField { field: excerpt(other) }.into());
    }
    let mut values = Map::new();
    for field in fields {
        let Some(value) = result.get(&field.name).filter(|value| !value.is_null()) else { continue };
        if !fits(field.holds, value) {
            let (field, wanted) = (excerpt(&field.name), field.holds);
            return Err(ResultProblem::FieldType { field, wanted, value: excerpt(value) }.into());
        }
        values.insert(field.name.clone(), value.clone());
    }
    let whole = fields.iter().all(|field| !field.required || values.contains_key(&field.name));
    Ok((values, whole))
}

fn fits(holds: FieldType, value: &Value) -> bool {
    match holds {
        FieldType::String => value.is_string(),
        FieldType::Number => value.is_number(),
        FieldType::Boolean => value.is_boolean(),
        FieldType::List => value.is_array(),
        FieldType::Date => value.as_str().is_some_and(is_date),
    }
}

/// A day of the calendar as the schema's `format: date` has it: `YYYY-MM-DD`.
fn is_date(day: &str) -> bool {
    let number = |range: std::ops::Range<usize>| {
        let digits = day.get(range)?;
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse::<u32>().ok()).flatten()
    };
    let shaped = day.len() == 10 && day.get(4..5) == Some("-") && day.get(7..8) == Some("-");
    let (Some(year), Some(month), Some(of_month)) = (number(0..4), number(5..7), number(8..10)) else {
        return false;
    };
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 => 28 + u32::from(leap),
        _ => 0,
    };
    shaped && (1..=days).contains(&of_month)
}

/// The body of an answer of HTTP, under its key.
fn answer(into: Option<&str>, result: &Value) -> Result<Map<String, Value>, Fault> {
    let Value::Object(result) = result else { return Err(no_object()) };
    let status = match result.get("status") {
        None => STATUS_FINE,
        Some(status) => whole(status).ok_or_else(|| ResultProblem::HttpStatus { status: excerpt(status) })?,
    };
    if status >= STATUS_ERROR {
        return Err(FaultCause::HttpStatus { status }.into());
    }
    let body = result.get("body").cloned().unwrap_or(Value::Null);
    Ok(into.map(|key| (key.to_owned(), body)).into_iter().collect())
}

/// What JSON Schema calls an integer, at least 0: 200 and 200.0 alike.
fn whole(number: &Value) -> Option<u64> {
    let Value::Number(text) = number else { return None };
    number.as_u64().or_else(|| text.to_string().strip_suffix(".0")?.parse().ok())
}
