//! A model is asked what a reply or an event means that no phrase decides. What it says is a proposal: it never approves,
//! and if its answer is not allowed, the reply counts as undecided. See
//! `tests/corpus/conversation/sentences.tsv#7c-1e`.

use serde_json::{Map, Value, json};
use switchward_machine::{Decision, GateSpec, OpenId, Port, Resolve, RunId, Sort, WorkKind};
use switchward_state::approval::{NotCounted, Notice, OpenGate, Via};
use switchward_state::limits::{REPLY_BYTES_MAX, WORK_INPUT_BYTES_MAX};
use switchward_state::run::{Deferral, json_length};
use switchward_state::work::{About, OpenItemBody, Owed, WorkEvent, WorkItem};
use switchward_state::{ItemKind, ReadRows as _};

use crate::approval::mails::{self, Sender};
use crate::approval::record_reply::outcome::{decide, received, unclear, waiting};
use crate::approval::resolve::{self, GateDecision};
use crate::run::events;
use crate::turn::{Stop, Turn};

/// The decisions that a model may propose: never the one that approves.
const PROPOSED: [Decision; 2] = [Decision::Refuse, Decision::Discuss];

/// What is sorted.
pub(crate) enum ClassifyInput<'s> {
    /// A reply to a gate or to a wait.
    Reply { from: &'s str, own: &'s str, gate: bool },
    /// An event that a wait is for.
    Event { key: &'s str, data: &'s Map<String, Value> },
}

/// The ports that a model may name for a reply to a gate, with their decisions: the gate's own port if the decision ends
/// its act with one, else the name of the decision's outcome.
pub(crate) fn proposals(spec: &GateSpec) -> Vec<(Port, Decision)> {
    let port = |decision: Decision| match spec.resolve(decision)? {
        Resolve::Settle(port) => Some(port.clone()),
        Resolve::TakeHeld
        | Resolve::End(_)
        | Resolve::Grant
        | Resolve::Deny
        | Resolve::Stay
        | Resolve::PassOn => Some(Port::Named(decision.outcome().to_owned())),
    };
    PROPOSED.into_iter().filter_map(|decision| Some((port(decision)?, decision))).collect()
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
        if open.body.has_lost(&from, &*turn.directory()?) {
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
        let offered = proposals(&resolve::spec_of(turn, &open)?);
        let proposed = offered.iter().find(|(known, _)| port == Some(known.word()));
        if proposed.is_some_and(|(_, decision)| *decision == Decision::Refuse) {
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

#[cfg(test)]
mod tests {
    use switchward_machine::GateKind;

    use super::*;

    fn gate(outcomes: Vec<(Decision, Resolve)>) -> GateSpec {
        GateSpec { kind: GateKind::Approval, outcomes, inquiry: None, record: None }
    }

    fn words(spec: &GateSpec) -> Vec<(String, Decision)> {
        let words = proposals(spec).into_iter();
        words.map(|(port, decision)| (port.word().to_owned(), decision)).collect()
    }

    #[test]
    fn a_model_is_offered_the_ports_of_the_gate_itself() {
        let settle = |port: &str| Resolve::Settle(Port::Named(port.to_owned()));
        let spec = gate(vec![
            (Decision::Approve, settle("go")),
            (Decision::Refuse, settle("no-go")),
            (Decision::Discuss, settle("questions")),
        ]);
        let offered = [("no-go", Decision::Refuse), ("questions", Decision::Discuss)];
        assert_eq!(words(&spec), offered.map(|(port, decision)| (port.to_owned(), decision)));
    }

    #[test]
    fn a_decision_without_a_port_has_the_name_of_its_outcome() {
        let spec = gate(vec![
            (Decision::Approve, Resolve::Grant),
            (Decision::Refuse, Resolve::Deny),
            (Decision::Discuss, Resolve::PassOn),
        ]);
        let offered = [("rejected", Decision::Refuse), ("discussion", Decision::Discuss)];
        assert_eq!(words(&spec), offered.map(|(port, decision)| (port.to_owned(), decision)));
        assert!(words(&gate(vec![(Decision::Approve, Resolve::Grant)])).is_empty());
    }
}
