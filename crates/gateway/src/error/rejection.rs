//! The engine's rejections as callers see them.

use std::time::Duration;
use switchward_state as state;

use super::{Reason, Refusal};

/// How soon it is worth looking whether a person has decided.
const PERSON_RETRY: Duration = Duration::from_secs(5);

impl From<state::Reason> for Reason {
    fn from(reason: state::Reason) -> Self {
        match reason {
            state::Reason::FieldInvalid => Self::FieldInvalid,
            state::Reason::CredentialInvalid => Self::CredentialInvalid,
            state::Reason::SchemaViolation => Self::SchemaViolation,
            state::Reason::RequestIdReused => Self::RequestIdReused,
            state::Reason::AnswerNotAllowed => Self::AnswerNotAllowed,
            state::Reason::TransitionIllegal => Self::TransitionIllegal,
            state::Reason::WriteNotDeclared => Self::WriteNotDeclared,
            state::Reason::GuardNotMet => Self::GuardNotMet,
            state::Reason::SessionTerminal => Self::SessionTerminal,
            state::Reason::ApprovalPending => Self::ApprovalPending,
            state::Reason::DefinitionInvalid => Self::DefinitionInvalid,
            state::Reason::NoSuchWorkflow => Self::NoSuchWorkflow,
            state::Reason::RetryExhausted => Self::RetryExhausted,
            state::Reason::AlreadyResolved => Self::AlreadyResolved,
            state::Reason::StateMismatch => Self::StateMismatch,
            state::Reason::PolicyDenied => Self::PolicyDenied,
            state::Reason::RoleNotAllowed => Self::RoleNotAllowed,
            state::Reason::VersionRetired => Self::VersionRetired,
            state::Reason::DefinitionArchived => Self::DefinitionArchived,
            state::Reason::DefinitionInUse => Self::DefinitionInUse,
            state::Reason::SelfApproval => Self::SelfApproval,
            state::Reason::NotAnApprover => Self::NotAnApprover,
            state::Reason::EventSourceNotAllowed => Self::EventSourceNotAllowed,
            state::Reason::RateLimited => Self::RateLimited,
            state::Reason::BudgetExhausted => Self::BudgetExhausted,
            state::Reason::QuotaExceeded => Self::QuotaExceeded,
            state::Reason::SequenceConflict => Self::SequenceConflict,
            state::Reason::EtagMismatch => Self::EtagMismatch,
            state::Reason::LeaseLost => Self::LeaseLost,
            state::Reason::NotFound => Self::NotFound,
            state::Reason::AlreadyExists => Self::AlreadyExists,
            // The server settles these itself; a caller who sees one has found a defect of the server.
            state::Reason::MachineMissing | state::Reason::LimitsStale => Self::InternalError,
        }
    }
}

impl From<state::Rejection> for Refusal {
    /// Facts become metadata of the same name. The fact `field` names the violation of a malformed field, the fact `quota`
    /// the exceeded quota.
    fn from(rejection: state::Rejection) -> Self {
        let reason = Reason::from(rejection.reason);
        let field = rejection.facts.iter().find(|(name, _)| *name == "field").map(|(_, field)| field.clone());
        let mut refusal = Self::new(reason, rejection.message.clone());
        if let Some((_, quota)) = rejection.facts.iter().find(|(name, _)| *name == "quota") {
            refusal = refusal.quota(quota, rejection.message.clone());
        }
        if reason == Reason::FieldInvalid {
            refusal = refusal.violation(field.unwrap_or_default(), rejection.message);
        }
        for (name, value) in rejection.facts {
            refusal = refusal.meta(name, value);
        }
        if !rejection.allowed.is_empty() {
            refusal = refusal.allowed(rejection.allowed);
        }
        match rejection.retry_after_ms {
            Some(millis) => refusal.retry_after(Duration::from_millis(millis)),
            None if reason == Reason::ApprovalPending => refusal.retry_after(PERSON_RETRY),
            None => refusal,
        }
    }
}

#[cfg(test)]
mod tests {
    use tonic::Status;
    use tonic_types::StatusExt;

    use super::*;

    #[test]
    fn every_reason_keeps_its_word() {
        for reason in state::Reason::ALL {
            let ours = Reason::from(*reason);
            assert!(ours == Reason::InternalError || ours.word() == reason.code(), "{}", reason.code());
        }
    }

    #[test]
    fn what_the_engine_says_comes_through() {
        let rejection = state::Rejection::new(state::Reason::AnswerNotAllowed, "no such answer")
            .allowed(["yes", "no"])
            .fact("state", "env-check")
            .retry_after_ms(Some(250));
        let details = Status::from(Refusal::from(rejection)).get_error_details();
        let info = details.error_info().unwrap();
        assert_eq!(
            (info.reason.as_str(), info.metadata["state"].as_str()),
            ("ANSWER_NOT_ALLOWED", "env-check")
        );
        assert_eq!(info.metadata["allowed"], r#"["yes","no"]"#);
        assert_eq!(details.retry_info().unwrap().retry_delay, Some(Duration::from_millis(250)));

        let rejection = state::Rejection::new(state::Reason::FieldInvalid, "too long").fact("field", "note");
        let details = Status::from(Refusal::from(rejection)).get_error_details();
        assert_eq!(details.bad_request().unwrap().field_violations[0].field, "note");
    }
}
