//! What is left of histories: who did what and when, by name, and nothing of what was said, written or handed over.

use switchward_machine::Decision;

use crate::event::{RemovalFact, VoteFact};
use crate::state::{Gate, Json, KeptDecision, Run};
use crate::{Event, Flow, History};

/// A part of a history with its content redacted. Every event keeps its position.
#[must_use]
pub fn history(history: &History) -> History {
    History {
        at: history.at,
        by: history.by.clone(),
        request: None,
        events: history.events.iter().map(event).collect(),
        answered: None,
    }
}

/// What is not named here is taken out, so a new kind of event is, too.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "what is not named is taken out: that is never too little"
)]
fn event(event: &Event) -> Event {
    match event {
        Event::SessionStarted { definition, version, machine, role, without_policy, workflows, .. } => {
            Event::SessionStarted {
                any_approver_address: false,
                definition: definition.clone(),
                version: *version,
                machine: *machine,
                key: None,
                role: role.clone(),
                without_policy: *without_policy,
                labels: Vec::new(),
                input: Vec::new(),
                contact: None,
                workflows: workflows.clone(),
            }
        }
        Event::RunCreated { .. }
        | Event::Entered { .. }
        | Event::ActBegun { .. }
        | Event::Left { .. }
        | Event::Metered { .. }
        | Event::BudgetExhausted { .. }
        | Event::CapRaised { .. }
        | Event::GrantUsed { .. }
        | Event::Voided { .. } => event.clone(),
        Event::RunEnded { run, ending, .. } => {
            Event::RunEnded { run: *run, ending: ending.clone(), comment: String::new() }
        }
        Event::GateOpened { gate, run, body } => {
            Event::GateOpened { gate: *gate, run: *run, body: Box::new(gate_of(body)) }
        }
        Event::GateClosed { gate, decision, by, via, .. } => Event::GateClosed {
            gate: *gate,
            decision: *decision,
            by: by.clone(),
            comment: String::new(),
            via: *via,
        },
        Event::Paused { .. } => Event::Paused { comment: String::new() },
        Event::Unpaused { .. } => Event::Unpaused { comment: String::new() },
        Event::Removals(RemovalFact::Begun { how, by, .. }) => {
            Event::Removals(RemovalFact::Begun { how: *how, by: by.clone(), request: None })
        }
        Event::Flow(Flow::Votes(VoteFact::Cast { gate, vote, need })) => {
            let mut vote = vote.clone();
            vote.comment.clear();
            vote.address.clear();
            Event::Flow(Flow::Votes(VoteFact::Cast { gate: *gate, vote, need: *need }))
        }
        Event::Flow(Flow::GateAnswered { gate, by, via, .. }) => Event::Flow(Flow::GateAnswered {
            gate: *gate,
            by: by.clone(),
            answer: Json(serde_json::Value::Null),
            comment: String::new(),
            via: *via,
        }),
        _ => Event::Removals(RemovalFact::Redacted),
    }
}

/// A gate without what was asked.
fn gate_of(body: &Gate) -> Gate {
    Gate {
        spec: body.spec,
        kind: body.kind,
        requester: body.requester.clone(),
        call: None,
        exit: body.exit,
        notice: None,
        asked: None,
        part: body.part,
    }
}

fn word(decision: Decision) -> &'static str {
    match decision {
        Decision::Approve => "approve",
        Decision::Refuse => "reject",
        Decision::Discuss => "discuss",
        Decision::Answer => "answer",
    }
}

/// Who decided what in a part of a history.
pub(crate) fn decisions(history: &History) -> Vec<KeptDecision> {
    decided(history).into_iter().map(|(_, decision)| decision).collect()
}

/// Who decided what in a part of a history, each with the position of its event there, from 0.
#[must_use]
#[expect(clippy::wildcard_enum_match_arm, reason = "nothing else is a person's decision")]
pub fn decided(history: &History) -> Vec<(usize, KeptDecision)> {
    let kept = |gate, what: &str, by: &str| KeptDecision {
        gate,
        what: what.to_owned(),
        by: by.to_owned(),
        at: history.at,
    };
    let of = |event: &Event| match event {
        Event::GateClosed { gate, decision, by, .. } => Some(kept(*gate, word(*decision), by)),
        Event::Flow(Flow::Votes(VoteFact::Cast { gate, vote, .. })) => Some(kept(*gate, "voted", &vote.by)),
        Event::Flow(Flow::GateAnswered { gate, by, .. }) => Some(kept(*gate, "answered", by)),
        _ => None,
    };
    history.events.iter().enumerate().filter_map(|(at, event)| Some((at, of(event)?))).collect()
}

/// Whether nothing of a run is left to redact.
#[must_use]
pub fn is_redacted(run: &Run) -> bool {
    let mut redacted = run.clone();
    self::run(&mut redacted);
    redacted == *run
}

/// A run without what came to it from outside.
pub(crate) fn run(run: &mut Run) {
    run.called.clear();
    run.loops.clear();
    run.seen.clear();
    run.mailed.clear();
    run.recipients.clear();
    run.answered_back.clear();
    run.due = None;
    run.choice = None;
    run.unknown = None;
    run.pending.clear();
}
