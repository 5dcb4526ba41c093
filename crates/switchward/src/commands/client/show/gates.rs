//! What gates look like to a person.

use switchward_api::v1;
use switchward_gateway::presented::exact;

use super::{BRIEF_CHARS, definition_of, first_line, id, json, time, word};
use crate::output::{CARE, PROBLEM, STRONG, card, clean};

pub(super) fn open_gate(gate: &v1::OpenGate) -> String {
    let what = match gate.kind() {
        v1::GateKind::ToolAsk => format!("may the agent call {}?", gate.capability),
        v1::GateKind::Approval | v1::GateKind::Task => {
            format!("{} asks {}", gate.state, gate.approvers.join(", "))
        }
        v1::GateKind::Notify | v1::GateKind::Unspecified => format!("may it go on from {}?", gate.state),
    };
    let so_far = match gate.approvals_needed {
        0 => String::new(),
        needed => format!("  {} of {needed} approvals", gate.approvals),
    };
    let warned = gate.warnings.iter().map(|line| format!("\n  {PROBLEM}{}{PROBLEM:#}", clean(line)));
    let warned: String = warned.collect();
    let held = held(gate.held_inputs);
    let held = if held.is_empty() { held } else { format!("\n  {held}") };
    format!("{CARE}{}{CARE:#}  {}{so_far}{held}{warned}", clean(id(&gate.name)), clean(&what))
}

/// What waits for an approval to close.
fn held(inputs: u32) -> String {
    match inputs {
        0 => String::new(),
        1 => "1 event or result waits for it to close".to_owned(),
        more => format!("{more} events and results wait for it to close"),
    }
}

/// How a gate stands: `open`, or what was decided.
fn gate_status(gate: &v1::Gate) -> String {
    let Some(resolution) = &gate.resolution else { return word(gate.status().as_str_name(), "GATE_STATUS_") };
    let decided = match resolution.decision() {
        v1::GateDecision::Approve => "approved",
        v1::GateDecision::Reject => "rejected",
        v1::GateDecision::Discuss => "discussed",
        v1::GateDecision::Answer => "answered",
        v1::GateDecision::Unspecified => "decided",
    };
    if resolution.vouched_by.is_empty() {
        return clean(&format!("{decided} by {}", resolution.by));
    }
    clean(&format!("{decided} by a reply, vouched by {}", resolution.vouched_by))
}

/// A gate, with the arguments as the decider must see them.
pub(in super::super) fn gate(gate: &v1::Gate) -> String {
    let comment = gate.resolution.as_ref().map(|resolution| clean(&resolution.comment)).unwrap_or_default();
    let answered = gate.resolution.as_ref().and_then(|resolution| resolution.answer.as_ref());
    let who = if gate.kind() == v1::GateKind::Task { "participant" } else { "approvers" };
    card(&[
        ("gate", format!("{STRONG}{}{STRONG:#}", clean(id(&gate.name)))),
        ("status", gate_status(gate)),
        ("answered", answered.map(|answer| clean(&json(answer))).unwrap_or_default()),
        ("comment", comment),
        ("asks", clean(&gate.message)),
        (who, clean(&gate.approvers.join(", "))),
        ("notified", notified(gate)),
        ("mind", warnings(gate)),
        ("no mail to", clean(&gate.undeliverable.join(", "))),
        ("approvals", votes(gate)),
        ("said", said(gate)),
        ("held", held(gate.held_inputs)),
        ("reminded", reminded(gate)),
        ("text", clean(&gate.text)),
        ("call", clean(&gate.capability)),
        ("arguments", clean(&exact(&String::from_utf8_lossy(&gate.args)))),
        ("digest", clean(&gate.args_digest)),
        ("answer", clean(&gate.answer)),
        ("session", clean(id(&gate.session))),
        ("process", format!("{}, version {}", clean(definition_of(&gate.definition)), gate.version)),
        ("at", clean(&gate.state)),
        ("asked by", clean(&gate.requested_by)),
        ("opened", time(gate.create_time.as_ref())),
        ("round ends", time(gate.round_end_time.as_ref())),
        ("closed", time(gate.end_time.as_ref())),
    ])
}

/// The people who were notified of a gate that addresses nobody.
fn notified(gate: &v1::Gate) -> String {
    let addressed = matches!(gate.kind(), v1::GateKind::Approval | v1::GateKind::Task);
    if gate.notified.is_empty() && !addressed {
        "nobody".to_owned()
    } else {
        clean(&gate.notified.join(", "))
    }
}

/// The warnings about the notification of a gate, one per line.
fn warnings(gate: &v1::Gate) -> String {
    let line = |line: &String| format!("{PROBLEM}{}{PROBLEM:#}", clean(line));
    gate.warnings.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// What a list shows of a long text; the command for one item shows all of it.
pub(in super::super) fn brief(text: &str) -> String {
    match text.char_indices().nth(BRIEF_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Who knows of a gate by mail, in a column.
pub(in super::super) fn reached(gate: &v1::Gate) -> String {
    let notified = gate.approvers.len() + gate.notified.len();
    match (gate.unnotified, gate.undeliverable.len()) {
        (true, _) => "nobody".to_owned(),
        (false, 0) => notified.to_string(),
        (false, lost) => format!("{} of {notified}", notified.saturating_sub(lost)),
    }
}

/// The comments of a gate, one per line.
fn said(gate: &v1::Gate) -> String {
    let line = |one: &v1::GateComment| {
        format!("{} at {}: {}", one.by, time(one.time.as_ref()), first_line(&one.comment))
    };
    clean(&gate.comments.iter().map(line).collect::<Vec<_>>().join("\n"))
}

/// When those who are asked are reminded.
fn reminded(gate: &v1::Gate) -> String {
    match gate.reminders_left {
        0 => String::new(),
        1 => format!("at {}, once more", time(gate.remind_time.as_ref())),
        left => format!("at {}, {left} times more", time(gate.remind_time.as_ref())),
    }
}

/// The progress of an approval by several people.
pub(in super::super) fn approvals(gate: &v1::Gate) -> String {
    match gate.approvals_needed {
        0 => String::new(),
        needed => format!("{} of {needed}", gate.votes.len()),
    }
}

/// The same, with who has given one, when, which way and with which words.
fn votes(gate: &v1::Gate) -> String {
    let vote = |vote: &v1::GateVote| {
        let said =
            if vote.comment.is_empty() { String::new() } else { format!(": {}", first_line(&vote.comment)) };
        let via = if vote.vouched_by.is_empty() {
            vote.via.clone()
        } else {
            format!("vouched by {}", vote.vouched_by)
        };
        format!("\n{} at {} ({via}){said}", vote.by, time(vote.time.as_ref()))
    };
    clean(&format!("{}{}", approvals(gate), gate.votes.iter().map(vote).collect::<String>()))
}

/// What a session waits for of people, in a list of them.
pub(in super::super) fn waited(gate: &v1::OpenGate) -> String {
    if gate.unnotified { format!("{} (nobody knows)", asked(gate)) } else { asked(gate).to_owned() }
}

/// What a person is asked about, in a word.
fn asked(gate: &v1::OpenGate) -> &str {
    match gate.kind() {
        v1::GateKind::ToolAsk => &gate.capability,
        v1::GateKind::Approval => "approval",
        v1::GateKind::Task => "task",
        v1::GateKind::Notify | v1::GateKind::Unspecified => "review",
    }
}

/// What a gate is about, in a list of them.
pub(in super::super) fn about(gate: &v1::Gate) -> String {
    let asks = || format!("{} asks {}", gate.state, gate.approvers.join(", "));
    match gate.kind() {
        v1::GateKind::ToolAsk => gate.capability.clone(),
        v1::GateKind::Task => format!("task: {}", asks()),
        v1::GateKind::Approval => format!("approval: {}", asks()),
        v1::GateKind::Notify | v1::GateKind::Unspecified => {
            format!("review of {:?} at {}", gate.answer, gate.state)
        }
    }
}

/// The command with which the caller decides a gate, or else the one that shows who does.
pub(in super::super) fn to_decide(name: &str, decisions: &[i32], asked: &[String]) -> String {
    let gate = id(name);
    let may = |decision: v1::GateDecision| decisions.contains(&decision.into());
    match (may(v1::GateDecision::Answer), may(v1::GateDecision::Approve), may(v1::GateDecision::Reject)) {
        (true, _, _) => format!("switchward decide {gate} answer --answer 'Five stars'"),
        (false, true, _) => format!("switchward decide {gate} approve   (or reject)"),
        (false, false, true) => format!("switchward decide {gate} reject   (you have approved)"),
        (false, false, false) if asked.is_empty() => {
            format!("switchward get {gate}   (an approver, operator or admin decides)")
        }
        (false, false, false) => {
            let verb = if asked.len() == 1 { "is" } else { "are" };
            format!("switchward get {gate}   ({} {verb} asked)", clean(&asked.join(", ")))
        }
    }
}

/// The same of an open gate of a session.
pub(in super::super) fn to_decide_open(gate: &v1::OpenGate) -> String {
    let asked = if gate.approvers.is_empty() { &gate.notified } else { &gate.approvers };
    to_decide(&gate.name, &gate.caller_decisions, asked)
}

/// The same of a gate.
pub(in super::super) fn to_decide_gate(gate: &v1::Gate) -> String {
    let asked = if gate.approvers.is_empty() { &gate.notified } else { &gate.approvers };
    to_decide(&gate.name, &gate.caller_decisions, asked)
}
