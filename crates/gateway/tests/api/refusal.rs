//! A refusal in a form that can be compared: all that a caller gets, in a fixed order.

use std::collections::BTreeMap;

use switchward_gateway::{DOMAIN, Reason};
use tonic::{Code, Status};
use tonic_types::{ErrorDetail, StatusExt};

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) code: Code,
    pub(crate) reason: String,
    pub(crate) message: String,
    pub(crate) metadata: BTreeMap<String, String>,
    /// The fields that are named as wrong.
    pub(crate) fields: Vec<String>,
    /// Every detail but the `ErrorInfo`, in words.
    pub(crate) others: Vec<String>,
}

impl Refusal {
    /// Reads a refusal, which must carry exactly one `ErrorInfo` of ours whose reason goes with the code.
    pub(crate) fn of(status: &Status) -> Self {
        let mut infos = Vec::new();
        let (mut fields, mut others) = (Vec::new(), Vec::new());
        for detail in status.get_error_details_vec() {
            match detail {
                ErrorDetail::ErrorInfo(info) => infos.push(info),
                other => {
                    if let ErrorDetail::BadRequest(bad) = &other {
                        fields.extend(bad.field_violations.iter().map(|violation| violation.field.clone()));
                    }
                    others.push(format!("{other:?}"));
                }
            }
        }
        assert_eq!(infos.len(), 1, "one ErrorInfo is expected in {status:?}");
        let info = infos.remove(0);
        assert_eq!(info.domain, DOMAIN, "{status:?}");
        let reason = Reason::from_word(&info.reason).unwrap_or_else(|| panic!("{}: no reason", info.reason));
        assert_eq!(reason.code(), status.code(), "{status:?}");
        let has = |kind: &str| others.iter().any(|detail| detail.starts_with(kind));
        for (kind, wanted) in [
            ("ResourceInfo", matches!(status.code(), Code::NotFound | Code::AlreadyExists)),
            ("QuotaFailure", status.code() == Code::ResourceExhausted),
            ("PreconditionFailure", status.code() == Code::FailedPrecondition),
            ("RetryInfo", matches!(reason, Reason::ApprovalPending | Reason::RateLimited)),
        ] {
            assert!(has(kind) || !wanted, "a {kind} is expected in {status:?}");
        }
        Self {
            code: status.code(),
            reason: info.reason,
            message: status.message().to_owned(),
            metadata: info.metadata.into_iter().collect(),
            fields,
            others,
        }
    }

    /// Replaces every occurrence of `text`.
    pub(crate) fn with(self, text: &str, by: &str) -> Self {
        let put = |from: String| from.replace(text, by);
        Self {
            message: put(self.message),
            metadata: self.metadata.into_iter().map(|(name, value)| (name, put(value))).collect(),
            others: self.others.into_iter().map(put).collect(),
            ..self
        }
    }
}

/// Checks that a call was refused for this reason; returns the refusal.
pub(crate) fn refused<R: std::fmt::Debug>(outcome: Result<R, Status>, reason: &str) -> Refusal {
    let refusal = Refusal::of(&outcome.expect_err(reason));
    assert_eq!(refusal.reason, reason, "{refusal:?}");
    refusal
}
