//! Findings as they are stored with the reply to a deployment, so that a repeated request is answered with the same.

use switchward_api::v1;
use switchward_formats::{Call, Finding, Severity, not_in_catalogue};
use switchward_state::catalogue::{self, FindingSeverity};

use crate::limits::CALLEE_FINDINGS_MAX;

/// The findings of a definition, and one for each call that holds if the catalogue lacks what is called, by position.
pub(super) fn findings(compiled: &[Finding], file: &str, calls: &[Call]) -> Vec<catalogue::Finding> {
    let mut absent: Vec<catalogue::Finding> = calls
        .iter()
        .take(CALLEE_FINDINGS_MAX)
        .flat_map(|call| {
            let found = not_in_catalogue(file, std::slice::from_ref(call), |_| true);
            found.into_iter().map(|one| finding(&one, Some(&call.name))).collect::<Vec<_>>()
        })
        .collect();
    absent.sort_by_key(|one| (one.line, one.column));
    absent.dedup();
    compiled.iter().map(|one| finding(one, None)).chain(absent).collect()
}

/// A finding as it is stored; `lacking` is the definition that the catalogue must lack for it.
pub(super) fn finding(finding: &Finding, lacking: Option<&str>) -> catalogue::Finding {
    catalogue::Finding {
        code: finding.code.to_owned(),
        severity: match finding.severity {
            Severity::Error => FindingSeverity::Error,
            Severity::Warning => FindingSeverity::Warning,
            Severity::Notice => FindingSeverity::Notice,
        },
        file: finding.file.clone(),
        line: finding.line,
        column: finding.column,
        message: finding.message.clone(),
        allowed: finding.allowed.clone(),
        nearest: finding.nearest.clone(),
        hint: finding.hint.clone(),
        lacking: lacking.map(str::to_owned),
    }
}

/// A stored finding as the API shows it.
pub(super) fn shown(finding: catalogue::Finding) -> v1::Finding {
    let severity = match finding.severity {
        FindingSeverity::Error => v1::Severity::Error,
        FindingSeverity::Warning => v1::Severity::Warning,
        FindingSeverity::Notice => v1::Severity::Notice,
    };
    v1::Finding {
        code: finding.code,
        severity: severity.into(),
        file: finding.file,
        line: finding.line,
        column: finding.column,
        message: finding.message,
        allowed: finding.allowed,
        nearest: finding.nearest.unwrap_or_default(),
        hint: finding.hint.unwrap_or_default(),
    }
}
