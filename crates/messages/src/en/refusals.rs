//! Why the server does not do what a person wants on a page, from the typed reason of a rejection and its facts. The
//! rejection's own message is for developers.

use switchward_machine::Time;
use switchward_state::approval::Via;
use switchward_state::{Reason, Rejection};

use super::gates::at;
use super::notices::cannot;
use super::pages::{FormProblem, form_problem};
use super::people::{approvals, who};
use crate::clean::clean;

/// Why nothing was done, and what to do, in a sentence or two. Reasons that no person can meet on a page have one sentence.
#[must_use]
pub fn refusal(rejection: &Rejection) -> String {
    if let Some(shortage) = &rejection.shortage {
        return format!("This cannot be approved now: {}. {}", cannot(shortage), again(rejection));
    }
    match rejection.reason {
        Reason::AlreadyResolved => resolved(rejection),
        Reason::CredentialInvalid => credential(rejection).to_owned(),
        Reason::FieldInvalid => field(rejection),
        Reason::NotAnApprover => not_an_approver(rejection),
        Reason::NotFound => "This request does not exist any more.".to_owned(),
        Reason::RateLimited => limited(rejection),
        Reason::BudgetExhausted | Reason::QuotaExceeded => {
            format!("A limit of the server or of the process is reached. {}", again(rejection))
        }
        Reason::RequestIdReused => "This form was sent before. What was sent first counts.".to_owned(),
        Reason::SelfApproval => own(rejection),
        Reason::SequenceConflict | Reason::EtagMismatch => CHANGED.to_owned(),
        Reason::SessionTerminal => match fact(rejection, "status") {
            none if none.is_empty() => "The process has ended. Nothing is left to decide.".to_owned(),
            status => format!("The process has ended: {status}. Nothing is left to decide."),
        },
        Reason::StateMismatch if fact(rejection, "field") == "args_digest" => CHANGED.to_owned(),
        Reason::StateMismatch
        | Reason::SchemaViolation
        | Reason::DefinitionInvalid
        | Reason::AnswerNotAllowed
        | Reason::TransitionIllegal
        | Reason::WriteNotDeclared
        | Reason::GuardNotMet
        | Reason::ApprovalPending
        | Reason::NoSuchWorkflow
        | Reason::RetryExhausted
        | Reason::PolicyDenied
        | Reason::EventSourceNotAllowed
        | Reason::RoleNotAllowed
        | Reason::VersionRetired
        | Reason::DefinitionArchived
        | Reason::DefinitionInUse
        | Reason::LeaseLost
        | Reason::AlreadyExists
        | Reason::MachineMissing
        | Reason::LimitsStale => format!("This cannot be done now. {}", again(rejection)),
    }
}

const CHANGED: &str =
    "The request has changed since this page was opened. Please look at all of it again before you decide.";

/// A fact of a rejection, safe to show; empty if it has none of this name.
fn fact(rejection: &Rejection, name: &str) -> String {
    clean(rejection.fact_named(name).unwrap_or_default())
}

/// When to try again.
fn again(rejection: &Rejection) -> String {
    let Some(ms) = rejection.retry_after_ms else { return "Please try again later.".to_owned() };
    match ms.div_ceil(60_000) {
        0 | 1 => "Please try again in a minute.".to_owned(),
        minutes @ 2..=120 => format!("Please try again in {minutes} minutes."),
        minutes => format!("Please try again in {} hours.", minutes.div_ceil(60)),
    }
}

/// Who decided, answered or approved before.
fn resolved(rejection: &Rejection) -> String {
    let (by, decision) = (fact(rejection, "by"), fact(rejection, "decision"));
    let via = if fact(rejection, "via") == Via::Vouched.word() { Via::Vouched } else { Via::Rpc };
    let by = who(&by, via);
    let number = |name| fact(rejection, name).parse().ok();
    if let (Some(have), Some(need)) = (number("approvals"), number("approvals_needed")) {
        return format!(
            "{by} has already approved, and each person counts once: {} so far.",
            approvals(have, need)
        );
    }
    let when = match fact(rejection, "at_ms").parse() {
        Ok(ms) => format!("Closed at {}: ", at(Time(ms))),
        Err(_) => "Closed: ".to_owned(),
    };
    let how = match decision.as_str() {
        "timeout" => "nobody had decided in time".to_owned(),
        "voided" => "the process had moved on".to_owned(),
        "answer" => format!("{by} answered before"),
        "" => return "This was decided before.".to_owned(),
        word => format!("{by} decided before: {word}"),
    };
    format!("{when}{how}.")
}

fn credential(rejection: &Rejection) -> &'static str {
    if rejection.fact_named("link_auth").is_some() {
        "This page does not know you yet."
    } else if fact(rejection, "field") == "code" {
        "No code is valid now. Please ask for another one."
    } else {
        "This link is not valid for this request any more. Please use the link in the newest mail."
    }
}

fn own(rejection: &Rejection) -> String {
    if fact(rejection, "field") == "to" {
        return "They asked for this decision themselves, so they cannot take over the request. Please name \
                somebody else."
            .to_owned();
    }
    "You asked for this yourself. Somebody else must decide.".to_owned()
}

fn not_an_approver(rejection: &Rejection) -> String {
    if fact(rejection, "problem") == "not_in_directory" {
        return "You were asked because the directory named you, and it does not name you any more. Somebody \
                else must decide."
            .to_owned();
    }
    match fact(rejection, "approvers") {
        all if all.is_empty() => "You are not one of those who are asked.".to_owned(),
        all => format!("All of these must approve: {all}. You are not one of them, and can only reject."),
    }
}

fn limited(rejection: &Rejection) -> String {
    let most = fact(rejection, "max");
    if fact(rejection, "field") == "code" && !most.is_empty() {
        return format!("At most {most} codes are sent to one person in an hour. {}", again(rejection));
    }
    format!("A limit is used up. {}", again(rejection))
}

/// What is wrong with a field of a form.
fn field(rejection: &Rejection) -> String {
    let (field, problem) = (fact(rejection, "field"), fact(rejection, "problem"));
    let most = fact(rejection, "max");
    match (field.as_str(), problem.as_str()) {
        ("to", "unknown") => {
            "The directory has no single person with this name. Please write a name or an address from the \
             directory."
                .to_owned()
        }
        ("to", "counted") => {
            "They are already asked or have already approved, and each person counts once. Please name \
             somebody else."
                .to_owned()
        }
        ("answer", _) if most.is_empty() => form_problem(FormProblem::NoAnswer).to_owned(),
        ("answer" | "comment" | "to", _) if !most.is_empty() => {
            format!("What you wrote is too long: at most {most} bytes are accepted.")
        }
        _ if !rejection.allowed.is_empty() => {
            format!("This request accepts one of these decisions: {}.", clean(&rejection.allowed.join(", ")))
        }
        _ => form_problem(FormProblem::Changed).to_owned(),
    }
}
