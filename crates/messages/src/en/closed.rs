//! How a gate was closed, as its page says.

use switchward_machine::{Decision, Status};
use switchward_state::approval::{Closed, Decider, Resolution, Vote};

use super::gates::at;
use super::people::{names, who};
use crate::clean::prose;

/// How a gate was closed, in a sentence or two; `status` is its session's.
#[must_use]
pub fn outcome(closed: &Closed, status: Status) -> String {
    let when = at(closed.at);
    let approved: Vec<Decider> = closed.open.body.votes().map(Vote::decider).collect();
    let names = names(&approved);
    match &closed.resolution {
        Resolution::Decided { decision, by, comment, via } => {
            let all = match (approved.is_empty(), decision) {
                (true, _) => String::new(),
                (false, Decision::Approve) => format!(" Approved by {names}."),
                (false, _) => format!(" Before that, {names} had approved."),
            };
            format!("{} decided at {when}: {}.{}{all}", who(by, *via), decision.word(), quoted(comment))
        }
        Resolution::Answered { by, via, .. } => format!("{} answered at {when}.", who(by, *via)),
        Resolution::Voided if status == Status::Cancelled => {
            format!("Closed at {when}: the session was cancelled. Nothing is left to decide.")
        }
        Resolution::Voided => format!("Closed at {when}: the process has moved on."),
        Resolution::Lapsed if approved.is_empty() => format!("Closed at {when}: nobody decided in time."),
        Resolution::Lapsed => {
            format!("Closed at {when}: not enough people approved in time (approved by {names}).")
        }
    }
}

/// A comment in quotation marks after a decision; empty if there is none.
fn quoted(comment: &str) -> String {
    if comment.is_empty() { String::new() } else { format!(" “{}”", prose(comment)) }
}
