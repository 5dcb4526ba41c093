//! The engine's rejections as callers see them.

use std::time::Duration;

use switchward_engine as engine;

use super::{Reason, Refusal};

/// How soon it is worth looking whether a person has decided.
const PERSON_RETRY: Duration = Duration::from_secs(5);

impl From<engine::Reason> for Reason {
    fn from(reason: engine::Reason) -> Self {
        match reason {
            engine::Reason::FieldInvalid => Self::FieldInvalid,
            engine::Reason::CredentialInvalid => Self::CredentialInvalid,
            engine::Reason::SchemaViolation => Self::SchemaViolation,
            engine::Reason::RequestIdReused => Self::RequestIdReused,
            engine::Reason::AnswerNotAllowed => Self::AnswerNotAllowed,
            engine::Reason::SessionTerminal => Self::SessionTerminal,
            engine::Reason::ApprovalPending => Self::ApprovalPending,
            engine::Reason::DefinitionInvalid => Self::DefinitionInvalid,
            engine::Reason::NoSuchWorkflow => Self::NoSuchWorkflow,
            engine::Reason::RetryExhausted => Self::RetryExhausted,
            engine::Reason::AlreadyResolved => Self::AlreadyResolved,
            engine::Reason::StateMismatch => Self::StateMismatch,
            engine::Reason::PolicyDenied => Self::PolicyDenied,
            engine::Reason::RoleNotAllowed => Self::RoleNotAllowed,
            engine::Reason::VersionRetired => Self::VersionRetired,
            engine::Reason::SelfApproval => Self::SelfApproval,
            engine::Reason::NotAnApprover => Self::NotAnApprover,
            engine::Reason::EventSourceNotAllowed => Self::EventSourceNotAllowed,
            engine::Reason::RateLimited => Self::RateLimited,
            engine::Reason::BudgetExhausted => Self::BudgetExhausted,
            engine::Reason::QuotaExceeded => Self::QuotaExceeded,
            engine::Reason::SequenceConflict => Self::SequenceConflict,
            engine::Reason::EtagMismatch => Self::EtagMismatch,
            engine::Reason::LeaseLost => Self::LeaseLost,
            engine::Reason::NotFound => Self::NotFound,
            engine::Reason::AlreadyExists => Self::AlreadyExists,
            // The server settles these itself; a caller who sees one has found a defect of the server.
            engine::Reason::MachineMissing | engine::Reason::LimitsStale => Self::InternalError,
        }
    }
}

impl From<engine::Rejection> for Refusal {
    /// Facts become metadata of the same name. The fact `field` names the violation of a malformed field, the fact `quota`
    /// the exceeded quota.
    fn from(rejection: engine::Rejection) -> Self {
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
        for reason in engine::Reason::ALL {
            let ours = Reason::from(*reason);
            assert!(ours == Reason::InternalError || ours.word() == reason.code(), "{}", reason.code());
        }
    }

    #[test]
    fn what_the_engine_says_comes_through() {
        let rejection = engine::Rejection::new(engine::Reason::AnswerNotAllowed, "no such answer")
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

        let rejection =
            engine::Rejection::new(engine::Reason::FieldInvalid, "too long").fact("field", "note");
        let details = Status::from(Refusal::from(rejection)).get_error_details();
        assert_eq!(details.bad_request().unwrap().field_violations[0].field, "note");
    }
}
