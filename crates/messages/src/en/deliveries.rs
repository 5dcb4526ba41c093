//! Why deliveries fail.

use switchward_state::delivery::{DeliveryDetail, EventProblem, EventSubject, FailureCode};

use super::delivery_details::delivery_detail;
use super::warnings::mail_cap;

/// Why a delivery has failed: its detail, or what the code says if there is none. Empty if the code is a reason of an attempt, or
/// of a program, that has given no detail.
#[must_use]
pub fn delivery_failure(code: &FailureCode, detail: Option<&DeliveryDetail>) -> String {
    if let Some(detail) = detail {
        return delivery_detail(detail);
    }
    match code {
        FailureCode::Attempt(_) | FailureCode::WebhookFailed | FailureCode::Reported(_) => String::new(),
        FailureCode::Unsendable(problem) => event_problem(problem),
        FailureCode::TooLarge => "the message is too large to be sent".to_owned(),
        FailureCode::MailNotConfigured => {
            "the server sends no mail: its configuration has no [mail]; add it and retry the effect"
                .to_owned()
        }
        FailureCode::MailCap(cap) => mail_cap(*cap),
    }
}

/// Why an event for an endpoint cannot be sent.
fn event_problem(problem: &EventProblem) -> String {
    match problem {
        EventProblem::EndpointDisabled { reason } => format!("the endpoint is disabled: {reason}"),
        EventProblem::NoSession => "the session does not exist".to_owned(),
        EventProblem::UnknownSubject { kind, about } => {
            format!("an event of type {kind} is about something unknown: {:?}", event_subject(about.as_ref()))
        }
    }
}

/// What an event is about, as facts of an error; empty if it says nothing.
fn event_subject(about: Option<&EventSubject>) -> String {
    match about {
        None => String::new(),
        Some(EventSubject::OfSession(text)) => text.clone(),
        Some(EventSubject::Version { definition, number }) => format!("{definition}@{number}"),
        Some(EventSubject::Endpoint { id, reason }) => format!("{id} {reason}"),
    }
}
