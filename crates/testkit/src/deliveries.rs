//! Samples of why deliveries fail.

use switchward_machine::DeliveryReason;
use switchward_state::delivery::{DisabledReason, EventProblem, EventSubject, FailureCode, MailCap};

/// Every code of a failed delivery at least once, with each problem of an event that cannot be sent.
#[must_use]
pub fn failure_codes() -> Vec<FailureCode> {
    let problems = [
        EventProblem::EndpointDisabled { reason: DisabledReason::Gone },
        EventProblem::NoSession,
        EventProblem::UnknownType { kind: "session.lost".into() },
        EventProblem::UnknownSubject {
            kind: "definition.deployed".into(),
            about: Some(EventSubject::OfSession("release".into())),
        },
    ];
    let mut all = vec![
        FailureCode::Attempt(DeliveryReason::Timeout),
        FailureCode::WebhookFailed,
        FailureCode::TooLarge,
        FailureCode::MailNotConfigured,
        "carrier_pigeon_lost".parse().expect("a program may report it"),
    ];
    all.extend(problems.map(FailureCode::Unsendable));
    all.extend(MailCap::ALL.map(FailureCode::MailCap));
    all
}
