//! What is left of histories: who did what and when, by name, and nothing of what was said, written or handed over.

use switchward_machine::Decision;

use crate::approval::{ApprovalEvent, Gate, VoteFact};
use crate::policy::PolicyEvent;
use crate::run::{EndComment, Json, Run, RunEvent};
use crate::session::{RemovalFact, RetainedDecision, SessionEvent};
use crate::{Event, History};

/// A part of a history with its content redacted. Every event keeps its position.
#[must_use]
pub fn redacted(history: &History) -> History {
    History {
        at: history.at,
        by: history.by.clone(),
        request: None,
        events: history.events.iter().map(event).collect(),
        answered: None,
    }
}

/// What is not named here is taken out, so a new kind of event is, too.
fn event(event: &Event) -> Event {
    let kept = match event {
        Event::Session(event) => of_session(event).map(Event::Session),
        Event::Run(event) => of_run(event).map(Event::Run),
        Event::Approval(event) => of_gate(event).map(Event::Approval),
        Event::Policy(
            PolicyEvent::Metered { .. }
            | PolicyEvent::BudgetExhausted { .. }
            | PolicyEvent::CapRaised { .. }
            | PolicyEvent::GrantUsed { .. },
        ) => Some(event.clone()),
        Event::Policy(_) | Event::Work(_) | Event::Delivery(_) | Event::Catalogue(_) => None,
    };
    kept.unwrap_or(Event::Session(SessionEvent::Removals(RemovalFact::Redacted)))
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "what is not named is taken out: that is never too little"
)]
fn of_session(event: &SessionEvent) -> Option<SessionEvent> {
    Some(match event {
        SessionEvent::Started { definition, version, machine, role, without_policy, workflows, .. } => {
            SessionEvent::Started {
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
        SessionEvent::Paused { .. } => SessionEvent::Paused { comment: String::new() },
        SessionEvent::Unpaused { .. } => SessionEvent::Unpaused { comment: String::new() },
        SessionEvent::Removals(RemovalFact::Begun { how, by, .. }) => {
            SessionEvent::Removals(RemovalFact::Begun { how: *how, by: by.clone(), request: None })
        }
        _ => return None,
    })
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "what is not named is taken out: that is never too little"
)]
fn of_run(event: &RunEvent) -> Option<RunEvent> {
    Some(match event {
        RunEvent::Created { .. }
        | RunEvent::Entered { .. }
        | RunEvent::ActBegun { .. }
        | RunEvent::Left { .. } => event.clone(),
        RunEvent::Ended { run, ending, .. } => {
            RunEvent::Ended { run: *run, ending: ending.clone(), comment: EndComment::default() }
        }
        _ => return None,
    })
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "what is not named is taken out: that is never too little"
)]
fn of_gate(event: &ApprovalEvent) -> Option<ApprovalEvent> {
    Some(match event {
        ApprovalEvent::Voided { .. } => event.clone(),
        ApprovalEvent::Opened { gate, run, body } => {
            ApprovalEvent::Opened { gate: *gate, run: *run, body: Box::new(gate_of(body)) }
        }
        ApprovalEvent::Closed { gate, decision, by, via, .. } => ApprovalEvent::Closed {
            gate: *gate,
            decision: *decision,
            by: by.clone(),
            comment: String::new(),
            via: *via,
        },
        ApprovalEvent::Votes(VoteFact::Given { gate, vote, need }) => {
            let mut vote = vote.clone();
            vote.comment.clear();
            vote.address.clear();
            ApprovalEvent::Votes(VoteFact::Given { gate: *gate, vote, need: *need })
        }
        ApprovalEvent::Answered { gate, by, via, .. } => ApprovalEvent::Answered {
            gate: *gate,
            by: by.clone(),
            answer: Json(serde_json::Value::Null),
            comment: String::new(),
            via: *via,
        },
        _ => return None,
    })
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
pub(crate) fn decisions(history: &History) -> Vec<RetainedDecision> {
    decided(history).into_iter().map(|(_, decision)| decision).collect()
}

/// Who decided what in a part of a history, each with the position of its event there, from 0.
#[must_use]
#[expect(clippy::wildcard_enum_match_arm, reason = "nothing else is a person's decision")]
pub fn decided(history: &History) -> Vec<(usize, RetainedDecision)> {
    let kept = |gate, what: &str, by: &str| RetainedDecision {
        gate,
        what: what.to_owned(),
        by: by.to_owned(),
        at: history.at,
    };
    let of = |event: &Event| match event {
        Event::Approval(ApprovalEvent::Closed { gate, decision, by, .. }) => {
            Some(kept(*gate, word(*decision), by))
        }
        Event::Approval(ApprovalEvent::Votes(VoteFact::Given { gate, vote, .. })) => {
            Some(kept(*gate, "voted", &vote.by))
        }
        Event::Approval(ApprovalEvent::Answered { gate, by, .. }) => Some(kept(*gate, "answered", by)),
        _ => None,
    };
    history.events.iter().enumerate().filter_map(|(at, event)| Some((at, of(event)?))).collect()
}

/// Whether nothing of a run is left to redact.
#[must_use]
pub fn is_redacted(run: &Run) -> bool {
    let mut redacted = run.clone();
    redact_run(&mut redacted);
    redacted == *run
}

/// A run without what came to it from outside.
pub(crate) fn redact_run(run: &mut Run) {
    run.called.clear();
    run.loops.clear();
    run.seen.clear();
    run.mailed.clear();
    run.recipients.clear();
    run.answered_back.clear();
    (run.due, run.requester) = (None, None);
    run.choice = None;
    run.unknown = None;
    run.pending.clear();
    run.failure = None;
}
