//! A refusal with its details, and the `tonic::Status` that it becomes.

use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;
use switchward_state::Rejection;
use tonic::{Code, Status};
use tonic_types::{
    BadRequest, ErrorDetail, ErrorInfo, FieldViolation, PreconditionFailure, PreconditionViolation,
    QuotaFailure, QuotaViolation, ResourceInfo, RetryInfo, StatusExt,
};

use super::Reason;
use crate::limits::{
    DETAIL_TEXT_BYTES_MAX, META_VALUE_BYTES_MAX, STATUS_DETAILS_BYTES_MAX, STATUS_MESSAGE_BYTES_MAX,
    VIOLATIONS_MAX,
};

/// The domain of every `google.rpc.ErrorInfo` of this server.
pub const DOMAIN: &str = "switchward.dev";
/// The type of a mail in quarantine, in refusals about it.
pub const QUARANTINED_MAIL: &str = "mail in quarantine";

/// Metadata entry that lists what would have been accepted.
const ALLOWED: &str = "allowed";
/// Metadata entries that name the subject of a limit or a condition, the closest first.
const SUBJECTS: [&str; 3] = ["capability", "state", "session"];
/// Metadata entry that says how many violations did not fit.
const OMITTED: &str = "violations_omitted";

/// A call that is refused: a reason for programs, a message for developers, and details of both kinds.
///
/// Becomes a [`Status`] by `into()`, which cuts what does not fit into trailers: first violations, whose number then is
/// in the metadata `violations_omitted`, then long metadata.
#[must_use = "a refusal does nothing until it is returned"]
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal(Box<Content>);

/// Behind a pointer, so that a result that may be a refusal stays small.
#[derive(Debug, Clone, PartialEq)]
struct Content {
    reason: Reason,
    message: String,
    metadata: BTreeMap<String, String>,
    violations: Vec<(String, String)>,
    /// What keeps the condition from holding, each with why; empty if the message says it alone.
    failures: Vec<(String, String)>,
    omitted: usize,
    quota: Option<(String, String)>,
    resource: Option<(String, String)>,
    retry_after: Option<Duration>,
    /// The engine's rejection, if it is one.
    rejection: Option<Rejection>,
}

impl Refusal {
    /// A refusal for this reason. The message is lower case, without a full stop.
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self(Box::new(Content {
            reason,
            message: message.into(),
            metadata: BTreeMap::new(),
            violations: Vec::new(),
            failures: Vec::new(),
            omitted: 0,
            quota: None,
            resource: None,
            retry_after: None,
            rejection: None,
        }))
    }

    /// One malformed field: `FIELD_INVALID` with one violation.
    pub fn field(field: impl Into<String>, problem: impl Into<String>) -> Self {
        let (field, problem) = (field.into(), problem.into());
        let message = if field.is_empty() { problem.clone() } else { format!("{field}: {problem}") };
        Self::new(Reason::FieldInvalid, message).violation(field, problem)
    }

    /// Something that does not exist in the caller's tenant. The same for what never existed and for another tenant's.
    pub fn not_found(kind: impl Into<String>, name: impl Into<String>) -> Self {
        let (kind, name) = (kind.into(), name.into());
        Self::new(Reason::NotFound, format!("{kind} {name:?} does not exist")).resource(kind, name)
    }

    /// With a fact for programs: an `ErrorInfo.metadata` entry. A name given twice keeps the last value.
    pub fn meta(mut self, name: impl Into<String>, value: impl ToString) -> Self {
        let mut value = value.to_string();
        cut(&mut value, META_VALUE_BYTES_MAX);
        self.0.metadata.insert(name.into(), value);
        self
    }

    /// Returns true if it has a metadata entry of this name.
    #[must_use]
    pub fn has_meta(&self, name: &str) -> bool {
        self.0.metadata.contains_key(name)
    }

    /// With what would have been accepted: a JSON list in the metadata `allowed`. A list that is too long is cut, and
    /// `allowed_omitted` says by how many.
    pub fn allowed<T: Into<String>>(self, items: impl IntoIterator<Item = T>) -> Self {
        let mut items: Vec<Value> = items.into_iter().map(|item| Value::String(item.into())).collect();
        let given = items.len();
        while Value::from(items.clone()).to_string().len() > META_VALUE_BYTES_MAX {
            items.truncate(items.len() / 2);
        }
        let omitted = given - items.len();
        let refusal = self.meta(ALLOWED, Value::from(items));
        if omitted > 0 { refusal.meta("allowed_omitted", omitted) } else { refusal }
    }

    /// With a field that is wrong: a `BadRequest.FieldViolation`. `field` is a path like `files[2].path`.
    pub fn violation(mut self, field: impl Into<String>, problem: impl Into<String>) -> Self {
        if self.0.violations.len() < VIOLATIONS_MAX {
            self.0.violations.push((short(field), short(problem)));
        } else {
            self.0.omitted += 1;
        }
        self
    }

    /// With one of the things that keep a condition from holding, and why it does: a `PreconditionFailure.Violation`. Those
    /// beyond the number of violations are counted with them.
    pub fn failure(mut self, subject: impl Into<String>, why: impl Into<String>) -> Self {
        if self.0.failures.len() < VIOLATIONS_MAX {
            self.0.failures.push((short(subject), short(why)));
        } else {
            self.0.omitted += 1;
        }
        self
    }

    /// With the limit that is reached, if the message alone does not say it: the `QuotaFailure.Violation`.
    pub fn quota(mut self, subject: impl Into<String>, description: impl Into<String>) -> Self {
        self.0.quota = Some((short(subject), short(description)));
        self
    }

    /// With the resource that it is about: a `ResourceInfo`.
    pub fn resource(mut self, kind: impl Into<String>, name: impl Into<String>) -> Self {
        self.0.resource = Some((short(kind), short(name)));
        self
    }

    /// With this resource, if it has none and something does not exist.
    pub(crate) fn or_missing(self, kind: &str, name: &str) -> Self {
        let is_unnamed = self.0.reason == Reason::NotFound && self.0.resource.is_none();
        if is_unnamed { self.resource(kind, name) } else { self }
    }

    /// With the time after which it may be worth trying again: a `RetryInfo`.
    pub fn retry_after(mut self, delay: Duration) -> Self {
        self.0.retry_after = Some(delay);
        self
    }

    /// With the engine's rejection that it comes from.
    pub(crate) fn of(mut self, rejection: Rejection) -> Self {
        self.0.rejection = Some(rejection);
        self
    }

    /// The engine's rejection that it comes from, with its typed reason and facts; `None` if the engine was not asked.
    #[must_use]
    pub fn rejection(&self) -> Option<&Rejection> {
        self.0.rejection.as_ref()
    }

    /// The limit that is reached, as [`quota`](Self::quota) named it.
    pub(crate) fn limit(&self) -> Option<&str> {
        self.0.quota.as_ref().map(|(subject, _)| subject.as_str())
    }

    /// The refusal of a call that had done a part of its work before, or may have: UNAVAILABLE would say that nothing has
    /// happened, and clients repeat that by themselves.
    pub(crate) fn after_part(self) -> Self {
        if self.0.reason.code() == Code::Unavailable {
            return Self::new(
                Reason::OutcomeUnknown,
                format!("a part of the call was or may have been done before it failed: {}", self.0.message),
            );
        }
        self
    }

    /// The same if it had done, or may have done, this many parts of its work.
    pub(crate) fn after_parts(self, parts: usize) -> Self {
        if parts > 0 { self.after_part() } else { self }
    }

    /// The message to the caller.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The machine-readable cause, which clients match on.
    #[must_use]
    pub fn reason(&self) -> Reason {
        self.0.reason
    }

    /// After how long it may be worth trying again, if known.
    #[must_use]
    pub fn retry_delay(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// Adds the reason that goes with its code to a status that a lower layer answered without details. `None` for a code
    /// without a reason.
    pub(crate) fn dressing(status: &Status) -> Option<Self> {
        let reason = match status.code() {
            Code::InvalidArgument | Code::OutOfRange => Reason::FieldInvalid,
            Code::NotFound => Reason::NotFound,
            Code::AlreadyExists => Reason::AlreadyExists,
            Code::PermissionDenied => Reason::RoleNotAllowed,
            Code::ResourceExhausted => Reason::QuotaExceeded,
            Code::FailedPrecondition => Reason::StateMismatch,
            Code::Aborted => Reason::SequenceConflict,
            Code::Unauthenticated => Reason::CredentialInvalid,
            Code::Unavailable => Reason::Draining,
            Code::DeadlineExceeded => Reason::DeadlineExceeded,
            Code::Unimplemented => Reason::Unimplemented,
            Code::Internal | Code::Unknown | Code::DataLoss => Reason::InternalError,
            Code::Ok | Code::Cancelled => return None,
        };
        Some(Self::new(reason, status.message()))
    }
}

impl Content {
    /// The details, `ErrorInfo` first, so that a human reader sees the reason at once.
    fn details(&self) -> Vec<ErrorDetail> {
        let mut metadata: HashMap<String, String> = self.metadata.clone().into_iter().collect();
        if self.omitted > 0 {
            metadata.insert(OMITTED.to_owned(), self.omitted.to_string());
        }
        let mut details = vec![ErrorInfo::new(self.reason.word(), DOMAIN, metadata).into()];
        if !self.violations.is_empty() {
            let fields = self.violations.iter().map(|(field, problem)| FieldViolation::new(field, problem));
            details.push(BadRequest::new(fields.collect::<Vec<_>>()).into());
        }
        if self.reason.code() == Code::ResourceExhausted {
            let (subject, text) =
                self.quota.clone().unwrap_or_else(|| (self.subject(), short(&self.message)));
            details.push(QuotaFailure::new(vec![QuotaViolation::new(subject, text)]).into());
        }
        if self.reason.code() == Code::FailedPrecondition {
            let failure =
                |subject: String, text: String| PreconditionViolation::new(self.reason.word(), subject, text);
            let mut failures: Vec<_> = self
                .failures
                .iter()
                .map(|(subject, problem)| failure(subject.clone(), problem.clone()))
                .collect();
            if failures.is_empty() {
                failures.push(failure(self.subject(), short(&self.message)));
            }
            details.push(PreconditionFailure::new(failures).into());
        }
        if let Some((kind, name)) = &self.resource {
            details.push(ResourceInfo::new(kind, name, "", "").into());
        }
        if let Some(delay) = self.retry_after {
            details.push(RetryInfo::new(Some(delay)).into());
        }
        details
    }

    /// The subject of a limit or a condition, if known.
    fn subject(&self) -> String {
        let named = SUBJECTS.iter().find_map(|name| self.metadata.get(*name));
        let resource = || self.resource.as_ref().map(|(_, name)| name);
        named.or_else(resource).cloned().unwrap_or_default()
    }

    /// Drops the least useful detail that is left. Returns false if nothing is left to drop.
    fn shrink(&mut self) -> bool {
        if self.failures.pop().or_else(|| self.violations.pop()).is_some() {
            self.omitted += 1;
            return true;
        }
        let longest = self.metadata.values_mut().max_by_key(|value| value.len());
        match longest {
            Some(value) if !value.is_empty() => {
                let half = value.len() / 2;
                cut(value, half);
                true
            }
            Some(_) | None => false,
        }
    }
}

impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Self {
        let mut refusal = refusal.0;
        cut(&mut refusal.message, STATUS_MESSAGE_BYTES_MAX);
        loop {
            let (code, message) = (refusal.reason.code(), refusal.message.clone());
            let status = Status::with_error_details_vec(code, message, refusal.details());
            if status.details().len() <= STATUS_DETAILS_BYTES_MAX || !refusal.shrink() {
                return status;
            }
        }
    }
}

/// A text of a detail, no longer than details may be.
fn short(text: impl Into<String>) -> String {
    let mut text = text.into();
    cut(&mut text, DETAIL_TEXT_BYTES_MAX);
    text
}

/// Cuts a text to at most `bytes_max` bytes, between characters.
fn cut(text: &mut String, bytes_max: usize) {
    text.truncate(text.floor_char_boundary(bytes_max));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn details_come_through() {
        let refusal = Refusal::new(Reason::AnswerNotAllowed, "\"maybe\" is not an answer here")
            .allowed(["yes", "no, \"never\""])
            .violation("answer", "must be one of yes, no")
            .meta("state", "review")
            .resource("session", "tenants/t/sessions/s")
            .retry_after(Duration::from_secs(2));
        let status = Status::from(refusal);
        assert_eq!(status.code(), Code::FailedPrecondition);
        let details = status.get_error_details();
        let info = details.error_info().unwrap();
        assert_eq!((info.reason.as_str(), info.domain.as_str()), ("ANSWER_NOT_ALLOWED", DOMAIN));
        assert_eq!(info.metadata[ALLOWED], r#"["yes","no, \"never\""]"#);
        assert_eq!(details.bad_request().unwrap().field_violations[0].field, "answer");
        let failed = &details.precondition_failure().unwrap().violations[0];
        assert_eq!((failed.r#type.as_str(), failed.subject.as_str()), ("ANSWER_NOT_ALLOWED", "review"));
        assert_eq!(failed.description, "\"maybe\" is not an answer here");
        assert!(details.quota_failure().is_none());
        assert_eq!(details.resource_info().unwrap().resource_name, "tenants/t/sessions/s");
        assert_eq!(details.retry_info().unwrap().retry_delay, Some(Duration::from_secs(2)));
    }

    #[test]
    fn what_is_exhausted_is_a_quota_failure() {
        let quota = |refusal: Refusal| {
            let failure = Status::from(refusal).get_error_details().quota_failure().unwrap().clone();
            (failure.violations[0].subject.clone(), failure.violations[0].description.clone())
        };
        let full = || Refusal::new(Reason::RateLimited, "no capacity").meta("capability", "bash");
        assert_eq!(quota(full()), ("bash".to_owned(), "no capacity".to_owned()));
        assert_eq!(
            quota(full().quota("tenants/t", "at most 5")),
            ("tenants/t".to_owned(), "at most 5".to_owned())
        );
    }

    #[test]
    fn violations_are_capped_and_counted() {
        let many = (0..120).fold(Refusal::new(Reason::FieldInvalid, "many"), |refusal, at| {
            refusal.violation(format!("f{at}"), "bad")
        });
        let details = Status::from(many).get_error_details();
        assert_eq!(details.bad_request().unwrap().field_violations.len(), VIOLATIONS_MAX);
        assert_eq!(details.error_info().unwrap().metadata[OMITTED], "70");
    }

    #[test]
    fn a_long_list_of_what_is_allowed_stays_a_list() {
        let refusal =
            Refusal::new(Reason::AnswerNotAllowed, "no").allowed((0..1_000).map(|at| format!("answer-{at}")));
        let details = Status::from(refusal).get_error_details();
        let metadata = details.error_info().unwrap().metadata.clone();
        let listed: Vec<String> = serde_json::from_str(&metadata[ALLOWED]).unwrap();
        assert_eq!(listed[0], "answer-0");
        assert_eq!(metadata["allowed_omitted"], (1_000 - listed.len()).to_string());
    }

    #[test]
    fn whatever_is_put_in_fits_into_trailers() {
        let huge = "ä".repeat(100_000);
        let refusal = (0..60).fold(Refusal::new(Reason::FieldInvalid, huge.clone()), |refusal, at| {
            refusal.violation(format!("f{at}"), huge.clone()).meta(format!("m{at}"), &huge)
        });
        let status = Status::from(refusal);
        assert!(status.message().len() <= STATUS_MESSAGE_BYTES_MAX);
        assert!(status.details().len() <= STATUS_DETAILS_BYTES_MAX, "{}", status.details().len());
        let details = status.get_error_details();
        assert_eq!(details.error_info().unwrap().reason, "FIELD_INVALID");
    }
}
