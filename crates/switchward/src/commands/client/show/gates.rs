//! Gates as text for people.

use switchward_api::v1;
use switchward_machine::Decision;
use switchward_messages::{
    APPROVED_BY_YOU, GateLine, NOBODY, Notified, approvals as approvals_of, exact, gate_about, gate_decided,
    gate_deciders, gate_question, gate_waited, inputs_held, reminders_left, vote_way,
};
use switchward_state::approval::Via;

use super::{BRIEF_CHARS, definition_of, first_line, id, json, time, word};
use crate::output::{CARE, PROBLEM, STRONG, card, clean};

pub(super) fn open_gate(gate: &v1::OpenGate) -> String {
    let so_far = match gate.approvals_needed {
        0 => String::new(),
        needed => format!("  {}", approvals_of(gate.approvals, needed)),
    };
    let warned = gate.warnings.iter().map(|line| format!("\n  {PROBLEM}{}{PROBLEM:#}", clean(line)));
    let warned: String = warned.collect();
    let held = inputs_held(gate.held_inputs);
    let held = if held.is_empty() { held } else { format!("\n  {held}") };
    let what = gate_question(&line_of_open(gate));
    format!("{CARE}{}{CARE:#}  {}{so_far}{held}{warned}", clean(id(&gate.name)), clean(&what))
}

/// What an open gate of a session is about.
fn line_of_open(gate: &v1::OpenGate) -> GateLine<'_> {
    line(gate.kind(), &gate.capability, &gate.state, &gate.approvers, "")
}

/// What a gate is about.
fn line<'g>(
    kind: v1::GateKind,
    capability: &'g str,
    state: &'g str,
    to: &'g [String],
    answer: &'g str,
) -> GateLine<'g> {
    match kind {
        v1::GateKind::ToolAsk => GateLine::Call { capability },
        v1::GateKind::Approval => GateLine::Approval { state, to },
        v1::GateKind::Task => GateLine::Task { state, to },
        v1::GateKind::Notify | v1::GateKind::Unspecified => GateLine::Review { state, answer },
    }
}

/// The status of a gate: `open`, or the decision.
fn gate_status(gate: &v1::Gate) -> String {
    let Some(resolution) = &gate.resolution else { return word(gate.status().as_str_name(), "GATE_STATUS_") };
    let decision = match resolution.decision() {
        v1::GateDecision::Approve => Some(Decision::Approve),
        v1::GateDecision::Reject => Some(Decision::Refuse),
        v1::GateDecision::Discuss => Some(Decision::Discuss),
        v1::GateDecision::Answer => Some(Decision::Answer),
        v1::GateDecision::Unspecified => None,
    };
    let (by, via) = match resolution.vouched_by.as_str() {
        "" => (&resolution.by, Via::Rpc),
        _ => (&resolution.vouched_by, Via::Vouched),
    };
    clean(&gate_decided(decision, by, via))
}

/// A gate, with the exact arguments for the decider.
pub(crate) fn gate(gate: &v1::Gate) -> String {
    let comment = gate.resolution.as_ref().map(|resolution| clean(&resolution.comment)).unwrap_or_default();
    let answered = gate.resolution.as_ref().and_then(|resolution| resolution.answer.as_ref());
    card(&[
        ("gate", format!("{STRONG}{}{STRONG:#}", clean(id(&gate.name)))),
        ("status", gate_status(gate)),
        ("resolution.answer", answered.map(|answer| clean(&json(answer))).unwrap_or_default()),
        ("resolution.comment", comment),
        ("message", clean(&gate.message)),
        ("approvers", clean(&gate.approvers.join(", "))),
        ("notified", notified(gate)),
        ("warnings", warnings(gate)),
        ("undeliverable", clean(&gate.undeliverable.join(", "))),
        ("votes", votes(gate)),
        ("comments", comments(gate)),
        ("held_inputs", inputs_held(gate.held_inputs)),
        ("remind_time", reminded(gate)),
        ("text", clean(&gate.text)),
        ("capability", clean(&gate.capability)),
        ("args", clean(&exact(&String::from_utf8_lossy(&gate.args)))),
        ("args_digest", clean(&gate.args_digest)),
        ("answer", clean(&gate.answer)),
        ("session", clean(id(&gate.session))),
        ("definition", format!("{}, version {}", clean(definition_of(&gate.definition)), gate.version)),
        ("state", clean(&gate.state)),
        ("requested_by", clean(&gate.requested_by)),
        ("create_time", time(gate.create_time.as_ref())),
        ("round_end_time", time(gate.round_end_time.as_ref())),
        ("end_time", time(gate.end_time.as_ref())),
    ])
}

/// The people who were notified of a gate that addresses nobody.
fn notified(gate: &v1::Gate) -> String {
    let addressed = matches!(gate.kind(), v1::GateKind::Approval | v1::GateKind::Task);
    if gate.notified.is_empty() && !addressed { NOBODY.to_owned() } else { clean(&gate.notified.join(", ")) }
}

/// The warnings about the notification of a gate, one per line.
fn warnings(gate: &v1::Gate) -> String {
    let line = |line: &String| format!("{PROBLEM}{}{PROBLEM:#}", clean(line));
    gate.warnings.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// A text, cut for a list.
pub(crate) fn brief(text: &str) -> String {
    match text.char_indices().nth(BRIEF_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The number of people who were notified of a gate, for a list.
pub(crate) fn reached(gate: &v1::Gate) -> String {
    let notified = gate.approvers.len() + gate.notified.len();
    match (gate.unnotified, gate.undeliverable.len()) {
        (true, _) => NOBODY.to_owned(),
        (false, 0) => notified.to_string(),
        (false, lost) => format!("{} of {notified}", notified.saturating_sub(lost)),
    }
}

/// The comments of a gate, one per line.
fn comments(gate: &v1::Gate) -> String {
    let line = |one: &v1::GateComment| {
        format!("{} at {}: {}", one.by, time(one.time.as_ref()), first_line(&one.comment))
    };
    clean(&gate.comments.iter().map(line).collect::<Vec<_>>().join("\n"))
}

/// When the approvers are reminded.
fn reminded(gate: &v1::Gate) -> String {
    match reminders_left(gate.reminders_left) {
        none if none.is_empty() => none,
        left => format!("{}, {left}", time(gate.remind_time.as_ref())),
    }
}

/// The number of approvals of a gate that needs several.
pub(crate) fn approvals(gate: &v1::Gate) -> String {
    match gate.approvals_needed {
        0 => String::new(),
        needed => format!("{} of {needed}", gate.votes.len()),
    }
}

/// The same with each vote.
fn votes(gate: &v1::Gate) -> String {
    let vote = |vote: &v1::GateVote| {
        let said =
            if vote.comment.is_empty() { String::new() } else { format!(": {}", first_line(&vote.comment)) };
        let via = vote_way(&vote.via, &vote.vouched_by);
        format!("\n{} at {} ({via}){said}", vote.by, time(vote.time.as_ref()))
    };
    clean(&format!("{}{}", approvals(gate), gate.votes.iter().map(vote).collect::<String>()))
}

/// An open gate, for a list of sessions.
pub(crate) fn waited(gate: &v1::OpenGate) -> String {
    let notified = if gate.unnotified { Notified::Nobody } else { Notified::Somebody };
    gate_waited(&line_of_open(gate), notified).into_owned()
}

/// The request of a gate, for a list of gates.
pub(crate) fn about(gate: &v1::Gate) -> String {
    gate_about(&line(gate.kind(), &gate.capability, &gate.state, &gate.approvers, &gate.answer))
}

/// The command with which the caller decides a gate, or else the one that shows who decides.
pub(crate) fn to_decide(name: &str, decisions: &[i32], asked: &[String]) -> String {
    let gate = id(name);
    let may = |decision: v1::GateDecision| decisions.contains(&decision.into());
    match (may(v1::GateDecision::Answer), may(v1::GateDecision::Approve), may(v1::GateDecision::Reject)) {
        (true, _, _) => format!("switchward decide {gate} answer --answer 'Five stars'"),
        (false, true, _) => format!("switchward decide {gate} approve   (or reject)"),
        (false, false, true) => format!("switchward decide {gate} reject   ({APPROVED_BY_YOU})"),
        (false, false, false) => {
            format!("switchward get {gate}   ({})", clean(&gate_deciders(asked)))
        }
    }
}

/// The same for an open gate of a session.
pub(crate) fn to_decide_open(gate: &v1::OpenGate) -> String {
    let asked = if gate.approvers.is_empty() { &gate.notified } else { &gate.approvers };
    to_decide(&gate.name, &gate.caller_decisions, asked)
}

/// The same for a gate.
pub(crate) fn to_decide_gate(gate: &v1::Gate) -> String {
    let asked = if gate.approvers.is_empty() { &gate.notified } else { &gate.approvers };
    to_decide(&gate.name, &gate.caller_decisions, asked)
}
