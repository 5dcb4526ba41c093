//! What has gone wrong in a run or in its work, and why a value is not written or does not go out.

use switchward_machine::{EndReason, FaultCode};
use switchward_state::limits::{
    CALL_DEPTH_MAX, DATA_BYTES_MAX, DATA_DEPTH_MAX, DATA_KEY_BYTES_MAX, DATA_KEYS_MAX, EFFECTS_BYTES_MAX,
    EFFECTS_MAX, EFFECTS_TURN_MAX, ITEMS_MAX, LEASES_LAPSED_MAX, MAILS_OF_DAY_MAX, OPS_MAX, OUTBOX_BYTES_MAX,
    OUTBOX_MAX, PARTICIPANTS_MAX, RECIPIENT_BYTES_MAX, RECIPIENTS_MAX, RESULT_SHOWN_BYTES_MAX, RUNS_MAX,
    TASK_BYTES_MAX, TURN_BYTES_MAX, WORK_INPUT_BYTES_MAX, WRITTEN_BYTES_MAX,
};
use switchward_state::run::{
    EndComment, EndedRun, Fault, FaultCause, OutboxExcess, RecipientsProblem, ResultProblem, WriteProblem,
};
use switchward_state::work::{WorkFailure, WorkProblem};

use super::delivery_details::delivery_detail;

use super::session_comments::REMOVED_AFTER_BACKUP;

/// What has gone wrong in a run: the runs that have ended because of it, then the cause.
#[must_use]
pub fn fault(fault: &Fault) -> String {
    let ended = fault.ended.iter().flat_map(ended_run);
    let parts = ended.chain([cause(&fault.cause)]).filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join(": ")
}

/// What is said about the end of a run; empty if nothing is.
#[must_use]
pub fn end_comment(comment: &EndComment) -> String {
    match comment {
        EndComment::Written(text) => text.clone(),
        EndComment::Fault(of_run) => fault(of_run),
        EndComment::RemovedAfterBackup => REMOVED_AFTER_BACKUP.to_owned(),
    }
}

/// What to do about a run that has failed for this reason.
#[must_use]
pub fn remedy(reason: EndReason) -> &'static str {
    match reason {
        EndReason::PortUnconnected => "add a transition for the port to the definition",
        EndReason::DrainLimit => "break the loop in the definition",
        EndReason::NoTransition => {
            "add a transition without a guard, or write what one of the guards requires"
        }
        EndReason::Fault(code) => match code {
            FaultCode::Operation => "correct the operation in the definition, or the data that it reads",
            FaultCode::Recipients => "correct the address in the definition, or the directory",
            FaultCode::OutboxLimit => "let the definition send less at one time",
            FaultCode::Template => "correct the template, or write what it reads first",
            FaultCode::Guard => "correct the guard in the definition",
            FaultCode::WorkError => "read what the worker reports, and start again when it can do the work",
            FaultCode::BadResult => "correct the worker, or what the definition lets it write",
            FaultCode::LeaseLimit => "find out why workers stop at this work",
            FaultCode::Child => "look at the runs that were called",
        },
    }
}

/// Why work was in vain.
#[must_use]
pub fn work_problem(problem: &WorkProblem) -> String {
    match problem {
        WorkProblem::Fault(of_work) => fault(of_work),
        WorkProblem::Undecided => "the reply counts as undecided".to_owned(),
    }
}

/// Why a worker's result is refused, cut at [`RESULT_SHOWN_BYTES_MAX`].
#[must_use]
pub fn result_problem(problem: &ResultProblem) -> String {
    let mut text = result(problem);
    if text.len() > RESULT_SHOWN_BYTES_MAX {
        text.truncate(text.floor_char_boundary(RESULT_SHOWN_BYTES_MAX));
        text.push('…');
    }
    text
}

/// A run that has not completed, and the reason if there is one.
fn ended_run(run: &EndedRun) -> [String; 2] {
    let EndedRun { definition, ending } = run;
    let how = format!("{definition} ended {}", ending.outcome.status().word());
    [how, ending.reason.map(EndReason::word).unwrap_or_default().to_owned()]
}

fn cause(cause: &FaultCause) -> String {
    match cause {
        FaultCause::TooManyOperations => format!("more than {OPS_MAX} operations in one state's work"),
        FaultCause::TurnFuel => {
            "one turn takes too much work: shorten its loops, conditions, texts or lists".to_owned()
        }
        FaultCause::NoValue { path } => format!("{path} has no value to transform"),
        FaultCause::Expression { diagnostic }
        | FaultCause::Template { diagnostic }
        | FaultCause::Guard { diagnostic } => diagnostic.clone(),
        FaultCause::Write(problem) => write_problem(problem),
        FaultCause::WrittenBytes => {
            format!("more than {WRITTEN_BYTES_MAX} bytes are written in one state's work")
        }
        FaultCause::NoList { path } => format!("{path} is not a list"),
        FaultCause::TooManyItems { path } => format!("{path} has more than {ITEMS_MAX} items"),
        FaultCause::TurnBytes => outbox_excess(OutboxExcess::TurnBytes),
        FaultCause::WorkInputBytes => {
            format!("the input of the work item is larger than {WORK_INPUT_BYTES_MAX} bytes")
        }
        FaultCause::HttpStatus { status } => format!("the answer's status is {status}"),
        FaultCause::ChildInput { definition, problem } => {
            format!("{definition} cannot start with this input: {}", write_problem(problem))
        }
        FaultCause::ChildOutput { definition, problem } => {
            format!("the output of {definition} does not fit: {}", write_problem(problem))
        }
        FaultCause::DataFull { key, state } => data_full(key, state),
        FaultCause::Recipients(problem) => recipients_problem(problem),
        FaultCause::Outbox(excess) => outbox_excess(*excess),
        FaultCause::AbsentValue { path } => format!("{path} has no value, and a template needs it"),
        FaultCause::NoInputObject => "the input of a work item must be an object".to_owned(),
        FaultCause::Worker(failure) => work_failure(failure),
        FaultCause::Result(problem) => result_problem(problem),
        FaultCause::LeasesLapsed => format!("the lease of the work item lapsed {LEASES_LAPSED_MAX} times"),
        FaultCause::UnknownCallee { name } => format!("the session has no callable definition {name:?}"),
        FaultCause::TooManyRuns => format!("the session has reached its limit of {RUNS_MAX} runs"),
        FaultCause::TooDeep { name } => {
            format!("{name:?} would be more than {CALL_DEPTH_MAX} runs below the first")
        }
        FaultCause::Ended { comment } => comment.clone(),
        FaultCause::Unconnected { port, state } => {
            format!("no transition leads from the port {} of {state}", port.word())
        }
        FaultCause::NoTransition { state } => {
            format!("no transition of {state} can be taken: the guard of each one is false")
        }
        FaultCause::Drain { states, more: 0 } => states.join(" -> "),
        FaultCause::Drain { states, more } => format!("{} -> ... and {more} more", states.join(" -> ")),
    }
}

/// Why an attempt at work has failed.
fn work_failure(failure: &WorkFailure) -> String {
    match failure {
        WorkFailure::Reported { text } if text.is_empty() => "the worker gave up".to_owned(),
        WorkFailure::Reported { text } => text.clone(),
        WorkFailure::Attempt { reason, detail } => format!("{reason}: {}", delivery_detail(detail)),
        WorkFailure::TooLarge => "the work item is too large to be sent".to_owned(),
    }
}

/// The engine cannot write below a reserved key.
pub(super) fn data_full(key: &str, state: &str) -> String {
    format!("{key}.{state} is not stored: the data would be larger than {DATA_BYTES_MAX} bytes")
}

/// Why a value is not written into the data.
pub(super) fn write_problem(problem: &WriteProblem) -> String {
    match problem {
        WriteProblem::Reserved { key } => format!("only the engine writes {key:?}"),
        WriteProblem::KeyLength => format!("a key must be 1 to {DATA_KEY_BYTES_MAX} bytes"),
        WriteProblem::TooDeep { key } => format!("{key:?} is nested deeper than {DATA_DEPTH_MAX}"),
        WriteProblem::TooManyKeys => format!("the data already have {DATA_KEYS_MAX} keys"),
        WriteProblem::Clash { key, diagnostic } => format!("{key:?}: {diagnostic}"),
        WriteProblem::TooLarge { key } => {
            format!("{key:?} would make the data larger than {DATA_BYTES_MAX} bytes")
        }
        WriteProblem::NotDeclared { key } => format!("{key:?} is not among the writes of this state"),
        WriteProblem::Schema { diagnostic, .. } => format!("the data would break their schema: {diagnostic}"),
    }
}

/// Why no more goes out.
pub(super) fn outbox_excess(excess: OutboxExcess) -> String {
    match excess {
        OutboxExcess::ActEffects => format!("more than {EFFECTS_MAX} effects in one state's work"),
        OutboxExcess::ActBytes => {
            format!("effects of more than {EFFECTS_BYTES_MAX} bytes in one state's work")
        }
        OutboxExcess::TurnEffects => format!("more than {EFFECTS_TURN_MAX} effects in one turn"),
        OutboxExcess::TurnBytes => format!("one turn produces more than {TURN_BYTES_MAX} bytes"),
        OutboxExcess::OutboxEffects => format!("the session has {OUTBOX_MAX} effects that have not arrived"),
        OutboxExcess::OutboxBytes => {
            format!("the session has effects of {OUTBOX_BYTES_MAX} bytes that have not arrived")
        }
        OutboxExcess::MailsOfDay { sent } => {
            format!(
                "the session has sent {sent} mails today, and at most {MAILS_OF_DAY_MAX} a day are allowed"
            )
        }
    }
}

fn recipients_problem(problem: &RecipientsProblem) -> String {
    match problem {
        RecipientsProblem::TooMany => format!("a message has at most {RECIPIENTS_MAX} recipients"),
        RecipientsProblem::Nobody => "the message has no recipients".to_owned(),
        RecipientsProblem::TooManyParticipants => {
            format!("a task has at most {PARTICIPANTS_MAX} participants")
        }
        RecipientsProblem::NoList { path } => format!("{path} must be a list of texts"),
        RecipientsProblem::AddressLength => format!("an address has at most {RECIPIENT_BYTES_MAX} bytes"),
        RecipientsProblem::NoAddress { value } => format!("{value} is not an address"),
        RecipientsProblem::TaskBytes => {
            format!("the requests to all participants together have more than {TASK_BYTES_MAX} bytes")
        }
    }
}

fn result(problem: &ResultProblem) -> String {
    match problem {
        ResultProblem::NoObject => "the result must be an object".to_owned(),
        ResultProblem::UnknownField { field } => {
            format!("/{field} is none of the fields that were asked for")
        }
        ResultProblem::FieldType { field, wanted, value } => {
            format!("/{field} must be a {}, and is {value}", wanted.word())
        }
        ResultProblem::HttpStatus { status } => {
            format!("/status must be a whole number, and is {status}")
        }
        ResultProblem::Write(problem) => write_problem(problem),
        ResultProblem::NoJudgement => "/verdict must be true or false".to_owned(),
        ResultProblem::NoWorkflows => "/workflows must be a list of names".to_owned(),
        ResultProblem::UnknownWorkflow { at, name } => {
            format!("/workflows/{at} is not one of the assistant's workflows: {name}")
        }
        ResultProblem::RepeatedWorkflow { at, name } => {
            format!("/workflows/{at} is in the list twice: {name}")
        }
        ResultProblem::NoPort => "/port must be one of the ports".to_owned(),
        ResultProblem::Schema { diagnostic } => diagnostic.clone(),
        ResultProblem::NextUnknown { next, exits } if exits.is_empty() => {
            format!("the result names the transition {next:?}, but this state lets no worker name one")
        }
        ResultProblem::NextUnknown { next, exits } => {
            format!("this state has no transition {next:?}: name one of {}", exits.join(", "))
        }
        ResultProblem::NextMissing { exits } => {
            format!("the result names no transition: name one of {}", exits.join(", "))
        }
        ResultProblem::NextClash { inside, beside } => {
            format!("the result names the transition {inside:?}, and the call {beside:?}: name one")
        }
        ResultProblem::NextGuard { next } => format!("the guard of the transition {next:?} is false"),
    }
}
