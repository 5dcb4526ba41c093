//! What a conversation is about. A first message begins one or more runs, one after the other; see
//! `docs/formats-conversation-operations.md#runs`. If a session is with an assistant of several workflows and none was
//! named, intent work is opened first; until that is done the session has a run of its own, which is none of its
//! workflows'.

use serde_json::{Map, Value, json};
use std::sync::Arc;
use switchward_machine::{
    Accept, Act, ActKind, Attempts, Input, Layer, Machine, Meta, Node, NodeIx, Opening, Otherwise, Pattern,
    Policy, Port, Reads, RunId, StatusWords, Templates, Work, WorkKind,
};
use switchward_state::limits::{DESCRIPTION_SHOWN_BYTES_MAX, INTENT_ATTEMPTS_MAX};
use switchward_state::run::{Deferral, Fault, RUN, ResultProblem, RunEvent, Writer};
use switchward_state::session::{Attached, Session, SessionEvent, SessionWarning};
use switchward_state::{ItemKind, Key, ReadRows as _, Reason, Rejection, ViewError};

use crate::approval::resolve;
use crate::fault::excerpt;
use crate::next::Next;
use crate::run::leave;
use crate::run::writes::{self, Source, Writing};
use crate::turn::{Stop, Turn};

/// Where that run stands.
const NODE: NodeIx = NodeIx(0);
/// The status of a run that has not begun.
const PENDING: &str = "pending";

/// The machine of the session's own run: one node that asks, and asks again with the next message if none of the
/// workflows was meant. Nothing may be called in it.
pub(crate) fn machine() -> Machine {
    let accept = Some(Accept::Workflows);
    let ask = Work { reads: Some(Reads::UserMessage), accept, ..Work::plain(WorkKind::Intent) };
    let node = Node {
        turns: true,
        attempts: Attempts { max: INTENT_ATTEMPTS_MAX, backoff_ms: 0 },
        ..Node::new("intent", vec![Act { kind: ActKind::Work(ask), then: Vec::new() }])
    };
    let closed = Layer {
        name: "intent".into(),
        covers: Pattern::new("*").expect("a star alone is a pattern"),
        except: Vec::new(),
        deny: Vec::new(),
        ask: Vec::new(),
        allow: Vec::new(),
        otherwise: Otherwise::Deny,
        at: None,
    };
    let words = StatusWords { waiting: PENDING.into(), at_gate: PENDING.into(), suspended: PENDING.into() };
    Machine {
        start: NODE,
        nodes: vec![node],
        gates: Vec::new(),
        policy: Policy { layers: vec![closed], ask_gate: None },
        budgets: Vec::new(),
        params: Vec::new(),
        opening: Opening { input_is_data: true, ..Opening::default() },
        words,
        meta: Meta::default(),
        fields: Vec::new(),
        inputs: Input::ALL.to_vec(),
        reserved_keys: Vec::new(),
        callees: Vec::new(),
        data_schema: None,
        initial: Vec::new(),
        model: None,
        templates: Templates::Lenient,
    }
}

/// The refusal of what belongs to a workflow while it is not known which one it is.
pub(crate) fn known(session: &Session) -> Result<(), Rejection> {
    if session.root == RUN {
        let message = "which of the workflows the messages are about is not known yet";
        return Err(Rejection::new(Reason::StateMismatch, message));
    }
    Ok(())
}

/// The input of intent work beside the message.
pub(crate) fn input(turn: &Turn<'_, '_>) -> Result<Map<String, Value>, Stop> {
    let session = turn.session()?;
    let mut listed = Vec::new();
    for workflow in &session.workflows {
        let description = turn.rows.machine(turn.tenant(), workflow.machine)?;
        let description =
            description.and_then(|machine| machine.meta.description.clone()).unwrap_or_default();
        let end = description.floor_char_boundary(DESCRIPTION_SHOWN_BYTES_MAX);
        listed.push(json!({ "name": workflow.definition, "description": description[..end] }));
    }
    let mut input = Map::new();
    let instructions = session.assistant.iter().map(|assistant| &assistant.instructions);
    input.extend(
        instructions.filter(|text| !text.is_empty()).map(|text| ("instructions".into(), json!(text))),
    );
    input.insert("workflows".into(), Value::Array(listed));
    Ok(input)
}

/// What a result leads to, all of it or nothing. None of the workflows is an answer, too; if the user has said something
/// else since the question was put, that is asked about.
pub(crate) fn chosen(turn: &Turn<'_, '_>, result: &Value) -> Result<Result<Deferral, Fault>, Stop> {
    let names = match meant(&*turn.session()?, result) {
        Ok(names) => names,
        Err(fault) => return Ok(Err(fault)),
    };
    let follows = !names.is_empty() || said_since(turn)?;
    Ok(Ok(if follows { Deferral::Chosen(names) } else { Deferral::Ended(Port::Done) }))
}

/// The workflows that a result names.
fn meant(session: &Session, result: &Value) -> Result<Vec<String>, Fault> {
    let names = result.get("workflows").and_then(Value::as_array);
    let names = names.ok_or(ResultProblem::NoWorkflows)?;
    let mut found: Vec<String> = Vec::new();
    for (at, name) in (0..).zip(names) {
        let known = |workflow: &&Attached| name.as_str() == Some(workflow.definition.as_str());
        let Some(workflow) = session.workflows.iter().find(known) else {
            return Err(ResultProblem::UnknownWorkflow { at, name: excerpt(name) }.into());
        };
        if found.contains(&workflow.definition) {
            return Err(ResultProblem::RepeatedWorkflow { at, name: excerpt(name) }.into());
        }
        found.push(workflow.definition.clone());
    }
    Ok(found)
}

/// Whether the user's last message is another one than the one that is asked about.
pub(crate) fn said_since(turn: &Turn<'_, '_>) -> Result<bool, Stop> {
    let said = turn.rows.last_message_at(&Key::last_message(turn.tenant(), turn.session_id()?))?;
    for item in turn.open_in(RUN, ItemKind::Work)? {
        if let Some(work) = turn.rows.work_at(&turn.item_key(item)?)? {
            let asked = work.body.owed.input.0.get("text").and_then(Value::as_str);
            return Ok(asked != said.as_ref().map(|said| said.text.as_str()));
        }
    }
    Ok(false)
}

/// The JSON Schema of a result, by what was handed out.
pub(crate) fn schema(input: &Value) -> Value {
    let workflows = input.get("workflows").and_then(Value::as_array);
    let names: Vec<&Value> = workflows.into_iter().flatten().filter_map(|one| one.get("name")).collect();
    json!({
        "type": "object",
        "properties": {
            "workflows": { "type": "array", "items": { "type": "string", "enum": names }, "uniqueItems": true },
        },
        "required": ["workflows"],
    })
}

/// Opens intent work for the user's new message unless some is already open; of a paused session on resuming.
pub(crate) fn ask_again(turn: &mut Turn<'_, '_>) -> Result<(), Stop> {
    let run = turn.run(RUN)?;
    let nobody = match &run.due {
        None => run.rests,
        // The message before meant nothing, and the session was paused when that was known.
        Some(Deferral::Ended(_)) => true,
        Some(
            Deferral::Take(_)
            | Deferral::End(_)
            | Deferral::Again
            | Deferral::Judged
            | Deferral::Fault(_)
            | Deferral::Chosen(_)
            | Deferral::Begin
            | Deferral::Try(_),
        ) => false,
    };
    drop(run);
    if nobody { resolve::now_or_later(turn, RUN, Deferral::Chosen(Vec::new())) } else { Ok(()) }
}

/// These of the session's workflows begin: the first now, with what the session began with, the others one after the
/// other behind it. If none is named, intent work is opened for the user's last message.
pub(crate) fn begin(turn: &mut Turn<'_, '_>, names: &[String]) -> Result<Option<(RunId, Next)>, Stop> {
    if names.is_empty() {
        return Ok(Some((RUN, Next::Enter(NODE))));
    }
    let session = turn.session()?;
    let find = |name: &String| session.workflows.iter().find(|known| known.definition == *name).cloned();
    let chosen: Vec<Attached> = names.iter().filter_map(find).collect();
    drop(session);
    let Some(first) = chosen.first().cloned() else { return Ok(None) };
    let machine = turn.rows.machine(turn.tenant(), first.machine)?;
    let machine = machine.ok_or_else(|| ViewError(format!("machine {} is not installed", first.machine)))?;
    leave::void(turn, RUN)?;
    for text in &machine.opening.warnings {
        let warning = SessionWarning::Definition { text: text.clone() };
        turn.emit(SessionEvent::Warned { warning })?;
    }
    let mut run = RUN;
    let who = turn.requester();
    for next in chosen {
        run = RunId(run.0.saturating_add(1));
        let of = Some((next.definition, next.version));
        turn.emit(RunEvent::Created { run, machine: next.machine, of, queued: true })?;
        if run.0 > RUN.0 + 1 {
            let own = turn.rows.machine(turn.tenant(), next.machine)?;
            let begun = own.map(|own| begun(&own, turn)).unwrap_or_default();
            writes::record(turn, run, begun, &Source { by: Writer::Start, who: &who })?;
        }
    }
    let run = RunId(RUN.0 + 1);
    turn.emit(RunEvent::Activated { run })?;
    let given = turn.rows.data_at(&Key::data(turn.tenant(), turn.session_id()?, RUN))?;
    let given = given.map(|data| data.values.clone()).unwrap_or_default();
    let written = begins_with(turn, &machine, given)?;
    writes::record(turn, run, written, &Source { by: Writer::Start, who: &who })?;
    Ok(Some((run, Next::Enter(machine.start))))
}

/// What the data of the first run begin with. It was tried with every workflow when the session began.
fn begins_with(
    turn: &mut Turn<'_, '_>,
    machine: &Arc<Machine>,
    given: Map<String, Value>,
) -> Result<Vec<(String, Value)>, Stop> {
    let mut problems = Vec::new();
    let written = Writing::beginning(machine, &turn.fuel).and_then(|mut begun| {
        problems.extend(given.into_iter().filter_map(|(key, value)| begun.put(&key, value).err()));
        begun.checked()
    });
    let written = written.unwrap_or_else(|problem| {
        problems.push(problem);
        Vec::new()
    });
    for problem in problems {
        turn.emit(SessionEvent::Warned { warning: SessionWarning::NotMerged { problem } })?;
    }
    Ok(written)
}

/// What the data of a run begin with whose workflow waits for the one before it.
fn begun(machine: &Arc<Machine>, turn: &Turn<'_, '_>) -> Vec<(String, Value)> {
    Writing::beginning(machine, &turn.fuel).map(|begun| begun.written()).unwrap_or_default()
}
