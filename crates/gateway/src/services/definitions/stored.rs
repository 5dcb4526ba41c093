//! Findings as they are stored with the reply to a deployment, so that a repeated request is answered with the same.

use switchward_api::v1;
use switchward_formats::{Call, Finding, Severity, archived_in_catalogue, not_in_catalogue};
use switchward_state::catalogue::{self, FindingSeverity};

use crate::limits::CALLEE_FINDINGS_MAX;

/// What must be true in the catalogue for a finding to hold.
#[derive(Clone, Copy)]
pub(super) enum HoldsIf<'n> {
    /// Nothing: it holds in any case.
    Always,
    /// The catalogue lacks this definition.
    Lacks(&'n str),
    /// The catalogue has archived this definition.
    Archived(&'n str),
}

/// The findings of a definition, and two for each call, which hold if the catalogue lacks or has archived what is called,
/// by position.
pub(super) fn findings(compiled: &[Finding], file: &str, calls: &[Call]) -> Vec<catalogue::Finding> {
    let mut of_calls: Vec<catalogue::Finding> = calls
        .iter()
        .take(CALLEE_FINDINGS_MAX)
        .flat_map(|call| {
            let (alone, name) = (std::slice::from_ref(call), call.name.as_str());
            let lacks = not_in_catalogue(file, alone, |_| true).into_iter();
            let lacks = lacks.map(|one| finding(&one, HoldsIf::Lacks(name)));
            let archived = archived_in_catalogue(file, alone, |_| true).into_iter();
            let archived = archived.map(|one| finding(&one, HoldsIf::Archived(name)));
            lacks.chain(archived).collect::<Vec<_>>()
        })
        .collect();
    of_calls.sort_by_key(|one| (one.line, one.column));
    of_calls.dedup();
    compiled.iter().map(|one| finding(one, HoldsIf::Always)).chain(of_calls).collect()
}

/// A finding as it is stored.
pub(super) fn finding(finding: &Finding, holds_if: HoldsIf<'_>) -> catalogue::Finding {
    let (lacking, archived) = match holds_if {
        HoldsIf::Always => (None, None),
        HoldsIf::Lacks(name) => (Some(name), None),
        HoldsIf::Archived(name) => (None, Some(name)),
    };
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
        archived: archived.map(str::to_owned),
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
