//! Refusals of what the engine or the server itself does not carry out.

use std::time::Duration;
use switchward_machine::Time;
use switchward_shard::Failure;
use switchward_state::catalogue::Quota;
use switchward_state::{Reply, ViewError};

use crate::convert::rfc3339;
use crate::error::{Reason, Refusal};

/// A row that cannot be read: the server's own fault.
pub(crate) fn unreadable(error: ViewError) -> Refusal {
    tracing::error!(%error, "failed to read a row");
    Refusal::new(Reason::InternalError, "the server failed to read its state")
}

const ELECTING_RETRY: Duration = Duration::from_millis(200);
const OVERLOAD_RETRY: Duration = Duration::from_millis(100);
/// How soon it is worth retrying after the disk was low.
const DISK_RETRY: Duration = Duration::from_secs(5);

/// Returns the quota of the tenant that is used up, if that is the cause.
pub(crate) fn quota_of(failure: &Failure) -> Option<Quota> {
    let Failure::Rejected(rejection) = failure else { return None };
    let (_, word) = rejection.facts.iter().find(|(name, _)| *name == "quota")?;
    Quota::ALL.into_iter().find(|quota| quota.word() == word)
}

/// Converts a failure to the refusal that a caller sees.
pub(crate) fn refusal(failure: Failure) -> Refusal {
    match failure {
        Failure::Rejected(mut rejection) => {
            let original = rejection.clone();
            // The engine counts milliseconds; callers get a readable time.
            for (name, value) in &mut rejection.facts {
                if name == "at_ms" {
                    "time".clone_into(name);
                    *value = value.parse().map(|ms| rfc3339(Time(ms))).unwrap_or_default();
                }
            }
            Refusal::from(rejection).of(original)
        }
        Failure::Electing | Failure::Unconfirmed | Failure::OtherMap { .. } => {
            Refusal::new(Reason::ShardElecting, failure.to_string()).retry_after(ELECTING_RETRY)
        }
        // No time to try again: a client must not do that by itself.
        Failure::OutcomeUnknown => Refusal::new(Reason::OutcomeUnknown, failure.to_string()),
        Failure::Overloaded => Refusal::new(Reason::QuotaExceeded, failure.to_string())
            .quota("shard queue", "commands waiting at the same time")
            .retry_after(OVERLOAD_RETRY),
        Failure::DiskLow { free_bytes, needed_bytes } => Refusal::new(Reason::DiskLow, failure.to_string())
            .meta("free_bytes", free_bytes)
            .meta("needed_bytes", needed_bytes)
            .quota("disk of the server", "free bytes below which requests that need more disk are refused")
            .retry_after(DISK_RETRY),
        Failure::Internal => Refusal::new(Reason::InternalError, failure.to_string()),
        Failure::Draining => Refusal::new(Reason::Draining, failure.to_string()).retry_after(ELECTING_RETRY),
        Failure::Stopped => {
            Refusal::new(Reason::ShardStopped, failure.to_string()).retry_after(ELECTING_RETRY)
        }
    }
}

/// The refusal of something that does not exist, under the name that the caller gave it: the same from whatever depth
/// the refusal comes.
pub(crate) fn named(refusal: Refusal, kind: &str, name: &str) -> Refusal {
    if refusal.reason() == Reason::NotFound { Refusal::not_found(kind, name) } else { refusal }
}

/// A reply of another kind than the command has: a defect of the server.
pub(crate) fn odd(reply: &Reply) -> Refusal {
    tracing::error!(?reply, "a command got a reply of the wrong kind");
    Refusal::new(Reason::InternalError, "a command got a reply of the wrong kind")
}

#[cfg(test)]
mod tests {
    use tonic::{Code, Status};
    use tonic_types::StatusExt as _;

    use super::*;

    #[test]
    fn a_shard_that_cannot_answer_says_when_to_try_again() {
        for (failure, code, reason) in [
            (Failure::Electing, Code::Unavailable, "SHARD_ELECTING"),
            (Failure::Unconfirmed, Code::Unavailable, "SHARD_ELECTING"),
            (Failure::OtherMap { epoch: 4 }, Code::Unavailable, "SHARD_ELECTING"),
            (Failure::Draining, Code::Unavailable, "DRAINING"),
            (Failure::Stopped, Code::Unavailable, "SHARD_STOPPED"),
            (Failure::Overloaded, Code::ResourceExhausted, "QUOTA_EXCEEDED"),
            (Failure::DiskLow { free_bytes: 1, needed_bytes: 2 }, Code::ResourceExhausted, "DISK_LOW"),
        ] {
            let status = Status::from(refusal(failure));
            let details = status.get_error_details();
            assert_eq!((status.code(), details.error_info().unwrap().reason.as_str()), (code, reason));
            assert!(
                details.retry_info().unwrap().retry_delay.is_some_and(|delay| !delay.is_zero()),
                "{reason}"
            );
            assert_eq!(details.quota_failure().is_some(), code == Code::ResourceExhausted);
        }
    }

    #[test]
    fn a_defect_of_the_server_is_internal_and_not_to_be_tried_again() {
        let status = Status::from(refusal(Failure::Internal));
        let details = status.get_error_details();
        assert_eq!(
            (status.code(), details.error_info().unwrap().reason.as_str()),
            (Code::Internal, "INTERNAL_ERROR")
        );
        assert!(details.retry_info().is_none());
    }

    #[test]
    fn a_call_that_has_done_a_part_never_says_that_nothing_happened() {
        let reason = |failure: Failure| refusal(failure).after_part().reason();
        for nothing_done in [Failure::Electing, Failure::Unconfirmed, Failure::Draining, Failure::Stopped] {
            assert_eq!(reason(nothing_done), Reason::OutcomeUnknown);
        }
        assert_eq!(reason(Failure::Internal), Reason::InternalError);
        assert_eq!(reason(Failure::Overloaded), Reason::QuotaExceeded);
        for (parts, expected) in [(0, Reason::ShardElecting), (1, Reason::OutcomeUnknown)] {
            assert_eq!(refusal(Failure::Electing).after_parts(parts).reason(), expected, "{parts} parts");
        }
    }

    #[test]
    fn an_unknown_outcome_is_not_to_be_tried_again() {
        let status = Status::from(refusal(Failure::OutcomeUnknown));
        let details = status.get_error_details();
        assert_eq!(status.code(), Code::Aborted);
        assert_eq!(details.error_info().unwrap().reason, "OUTCOME_UNKNOWN");
        assert!(details.retry_info().is_none());
    }
}
