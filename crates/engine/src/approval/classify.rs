//! A model is asked what a reply or an event means that no phrase decides. What it says is a proposal: it never approves,
//! and if its answer is not allowed, the reply counts as undecided. See
//! `tests/corpus/conversation/sentences.tsv#7c-1e`.

use serde_json::{Map, Value, json};
use switchward_machine::{Decision, OpenId, Port, RunId, Sort, WorkKind};
use switchward_state::approval::{NotCounted, Notice, OpenGate, Via};
use switchward_state::limits::{REPLY_BYTES_MAX, WORK_INPUT_BYTES_MAX};
use switchward_state::run::{Deferral, json_length};
use switchward_state::work::{About, OpenItemBody, Owed, WorkEvent, WorkItem};
use switchward_state::{ItemKind, ReadRows as _};

use crate::approval::mails::{self, Sender};
use crate::approval::record_reply::outcome::{REJECTED, decide, received, unclear, waiting};
use crate::approval::resolve::{self, GateDecision};
use crate::run::events;
use crate::turn::{Stop, Turn};

/// What is sorted.
pub(crate) enum ClassifyInput<'s> {
    /// A reply to a gate or to a wait.
    Reply { from: &'s str, own: &'s str, gate: bool },
    /// An event that a wait is for.
    Event { key: &'s str, data: &'s Map<String, Value> },
}

/// A model is asked about an event that a wait of a run is for.
pub(crate) fn ask_about(
    turn: &mut Turn<'_, '_>,
    run: RunId,
    wait: OpenId,
    key: &str,
    data: &Value,
    sort: &Sort,
) -> Result<(), Stop> {
    let none = Map::new();
    ask(turn, run, wait, ClassifyInput::Event { key, data: data.as_object().unwrap_or(&none) }, &sort.ports)
}

/// Opens the work; of several replies or events, the newest is asked about.
pub(crate) fn ask<P>(
    turn: &mut Turn<'_, '_>,
    run: RunId,
    to: OpenId,
    said: ClassifyInput<'_>,
    ports: &[(Port, P)],
) -> Result<(), Stop> {
    let ports: Vec<&str> = ports.iter().map(|(port, _)| port.word()).collect();
    let (gate, input) = match said {
        ClassifyInput::Reply { from, own, gate } => {
            (gate, json!({ "text": own, "from": from, "ports": ports }))
        }
        ClassifyInput::Event { key, data } => {
            let mut text = json!({ "event_key": key, "data": data }).to_string();
            text.truncate(text.floor_char_boundary(REPLY_BYTES_MAX));
            (false, json!({ "text": text, "event_key": key, "data": data, "ports": ports }))
        }
    };
    if json_length(&input) > WORK_INPUT_BYTES_MAX {
        // No worker could be handed it: it says nothing, as if nobody knew what it means.
        return Ok(());
    }
    let about = About::Reply { to, gate };
    for item in turn.open_in(run, ItemKind::Work)? {
        let work = turn.rows.work_at(&turn.item_key(item)?)?;
        if work.is_some_and(|work| work.body.owed.about == about) {
            turn.emit(WorkEvent::Closed { item, run })?;
        }
    }
    let queue = turn.run(run)?.definition.clone();
    let work = WorkItem { kind: WorkKind::Classify, owed: Owed::new(input, &queue, about) };
    turn.open(run, OpenItemBody::Work(work))?;
    Ok(())
}

/// What a port must be.
pub(crate) fn schema(owed: &Owed) -> Value {
    let ports = owed.input.0.get("ports").cloned().unwrap_or_default();
    let port = json!({ "type": "string", "enum": ports });
    json!({ "type": "object", "properties": { "port": port }, "required": ["port"] })
}

/// The port that a result names, if it may.
pub(crate) fn port_of(owed: &Owed, result: &Value) -> Option<String> {
    let named = result.get("port").and_then(Value::as_str)?;
    let ports = owed.input.0.get("ports").and_then(Value::as_array)?;
    ports.iter().any(|port| port.as_str() == Some(named)).then(|| named.to_owned())
}

/// What the reply leads to; without a port it counts as undecided.
pub(crate) fn answered(
    turn: &mut Turn<'_, '_>,
    run: RunId,
    owed: &Owed,
    port: Option<&str>,
) -> Result<(), Stop> {
    let About::Reply { to, gate } = owed.about else { return Ok(()) };
    let text = |name: &str| owed.input.0.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (from, own) = (text("from"), text("text"));
    if gate {
        let Some(open) = turn.rows.gate(turn.tenant(), turn.session_id()?, to)? else { return Ok(()) };
        let open = OpenGate::clone(&open);
        if open.body.has_lost(&from, &turn.directory()?) {
            // They were removed from the directory while the model was asked.
            let Some(asked) = &open.body.asked else { return Ok(()) };
            let notice = Notice::NotCounted { why: NotCounted::NoLongerRecipient };
            return mails::answer(
                turn,
                open.head.run,
                to,
                asked,
                Sender { from: &from, proved: true },
                notice,
            );
        }
        if port == Some(REJECTED) {
            let given = GateDecision { decision: Decision::Refuse, by: from, comment: own, via: Via::Mail };
            return decide(turn, to, &open, given, None);
        }
        return unclear(turn, to, &open, &from, &own);
    }
    let Some(port) = port else { return Ok(()) };
    if turn.rows.item_at(&turn.item_key(to)?)?.is_none() {
        // The wait is over, and what the reply meant comes too late.
        return Ok(());
    }
    let wait = waiting(turn, run)?;
    let sorted = wait.sort.as_ref().and_then(|sort| {
        sort.ports.iter().map(|(known, _)| known).find(|known| known.word() == port).cloned()
    });
    let Some(port) = sorted else { return Ok(()) };
    match owed.input.0.get("event_key").and_then(Value::as_str) {
        Some(key) => {
            turn.emit(WorkEvent::Closed { item: to, run })?;
            events::remember(turn, run, key, owed.input.0.get("data").unwrap_or(&Value::Null))?;
            resolve::now_or_later(turn, run, Deferral::Ended(port))
        }
        None => received(turn, run, to, &from, &own, port),
    }
}
