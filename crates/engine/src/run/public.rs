//! What readers of a history see of a run.

use switchward_machine::{EndReason, ExitIx, NodeIx, Outcome, RunId};
use switchward_state::run::{PendingFact, PendingInput, RUN, RunEvent};

use crate::public::event::{Machines, RUN_FIELD};
use switchward_state::PublicEvent;

/// Returns what a reader sees of an event; `None` if it is internal.
pub(crate) fn public(event: &RunEvent, machines: &Machines) -> Option<PublicEvent> {
    Some(match event {
        // The node of the session's own run is not a state of any workflow.
        RunEvent::Entered { run, .. } if *run == RUN => return None,
        RunEvent::Entered { run, node } => {
            PublicEvent::new("session.state_entered").with("state", machines.name(*run, *node))
        }
        RunEvent::Answered { run, node, answer, note } => PublicEvent::new("session.answered")
            .with("state", machines.name(*run, *node))
            .with("answer", answer)
            .with("note", note),
        RunEvent::Ended { run, ending, comment } if machines.is_child(*run) => PublicEvent::new("run.ended")
            .with(RUN_FIELD, run.0)
            .with("status", ending.outcome.status().word())
            .with("reason", ending.reason.map(EndReason::word).unwrap_or_default())
            .with_comment(comment),
        RunEvent::Ended { ending, comment, .. } => PublicEvent::new(ended(ending.outcome))
            .with("reason", ending.reason.map(EndReason::word).unwrap_or_default())
            .with_comment(comment),
        RunEvent::Left { run, node, exit } => left(machines, *run, *node, *exit)?,
        RunEvent::Activated { run } => PublicEvent::new("run.activated").with(RUN_FIELD, run.0),
        RunEvent::ChildCreated { run, definition, version, parent, frame, .. } => {
            PublicEvent::new("run.started")
                .with(RUN_FIELD, run.0)
                .with("definition", definition)
                .with("version", version)
                .with("parent", parent.run.0)
                .with("label", frame.as_ref().map(|frame| frame.label.as_str()).unwrap_or_default())
        }
        RunEvent::TurnEnded { .. } => PublicEvent::new("turn.ended"),
        RunEvent::Signalled { .. } => PublicEvent::new("completion.signalled"),
        RunEvent::Wrote { key, value, by, who, .. } => {
            let public = PublicEvent::new("data.recorded").with("key", key).with("value", &value.0);
            match who {
                Some(who) => public.with("by", by.word()).with("who", who),
                None => public,
            }
        }
        RunEvent::Faulted { run, node, fault } => PublicEvent::new("pass.failed")
            .with("state", if *run == RUN { String::new() } else { machines.name(*run, *node) })
            .with("code", fault.code())
            .with_facts("message", fault),
        RunEvent::Restarted { asked, .. } => PublicEvent::new("state.retried").with("asked", asked),
        RunEvent::EventRecorded { key, early, source, .. } => PublicEvent::new("event.recorded")
            .with("key", key)
            .with("source", source.label())
            .with("early", early.is_some()),
        RunEvent::Pending(fact) => pending(fact),
        RunEvent::Judged { judged, .. } => PublicEvent::new("guard.judged").with("holds", judged.holds),
        RunEvent::Created { .. }
        | RunEvent::ActBegun { .. }
        | RunEvent::Deferred { .. }
        | RunEvent::ChoicePending { .. }
        | RunEvent::ChoiceOver { .. }
        | RunEvent::Rested { .. }
        | RunEvent::EarlyUsed { .. }
        | RunEvent::Looped { .. }
        | RunEvent::CalleesPinned { .. }
        | RunEvent::ChildrenPlanned { .. }
        | RunEvent::ChildEnded { .. }
        | RunEvent::ChildrenJoined { .. } => return None,
    })
}

/// A node that is left by an exit that the format names: its guards, or its port.
fn left(machines: &Machines, run: RunId, node: NodeIx, exit: ExitIx) -> Option<PublicEvent> {
    let label = &machines.exit(run, node, exit)?.label;
    let public =
        PublicEvent::new("session.state_left").with("state", machines.name(run, node)).with("by", label);
    (!label.is_empty()).then_some(public)
}

fn ended(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Completed => "session.completed",
        Outcome::Blocked => "session.blocked",
        Outcome::Failed => "session.failed",
        Outcome::Cancelled => "session.cancelled",
        Outcome::Abandoned => "session.abandoned",
    }
}

/// What came while an approval was open, and when it enters.
fn pending(fact: &PendingFact) -> PublicEvent {
    match fact {
        PendingFact::Held { gate, input, .. } => {
            let public = PublicEvent::new("data.held").with("gate", gate.0);
            let public = match input {
                PendingInput::Event { key, .. } => public.with("event", key),
                PendingInput::Work { item, .. } | PendingInput::Failed { item, .. } => {
                    public.with("work", item.0)
                }
                PendingInput::TimeOver { item, .. } => public.with("timer", item.0),
            };
            let data = input.data().and_then(|data| data.0.as_object());
            let keys = data.into_iter().flat_map(serde_json::Map::keys);
            public.with("keys", keys.cloned().collect::<Vec<String>>().join(" "))
        }
        PendingFact::Entered { count, .. } => PublicEvent::new("data.released").with("count", count),
    }
}
