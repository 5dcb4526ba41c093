//! A report: the findings of one file while they are collected.

use crate::codes::MORE_FINDINGS;
use crate::document::Span;
use crate::limits::{COMPARISONS_MAX, FINDINGS_MAX};
use crate::{Finding, Severity, suggest};

/// How many findings are collected before all but the first [`FINDINGS_MAX`] of them are dropped.
const KEPT_MAX: usize = 4 * FINDINGS_MAX;

/// Collects findings, keeps the first of them by position, and counts the rest.
#[derive(Debug)]
pub struct Report {
    file: String,
    kept: Vec<Finding>,
    dropped: usize,
    errors: usize,
    dropped_errors: usize,
    comparisons_left: usize,
}

impl Report {
    /// An empty report of this file.
    #[must_use]
    pub fn new(file: &str) -> Self {
        Self {
            file: file.to_owned(),
            kept: Vec::new(),
            dropped: 0,
            errors: 0,
            dropped_errors: 0,
            comparisons_left: COMPARISONS_MAX,
        }
    }

    /// Adds a finding, whose file becomes that of the report.
    pub fn add(&mut self, mut finding: Finding) {
        finding.file.clone_from(&self.file);
        self.errors += usize::from(finding.severity == Severity::Error);
        self.kept.push(finding);
        if self.kept.len() >= KEPT_MAX {
            self.trim();
        }
    }

    /// The number of errors so far.
    #[must_use]
    pub fn errors(&self) -> usize {
        self.errors
    }

    /// The candidate that was probably meant by `word`, if one is close enough. The comparisons of a whole report
    /// are bounded: beyond that it returns `None`.
    pub fn nearest<'a>(
        &mut self,
        word: &str,
        candidates: impl IntoIterator<Item = &'a str>,
    ) -> Option<String> {
        suggest::nearest(word, candidates, &mut self.comparisons_left)
    }

    /// The texts of the warnings so far, by position.
    #[must_use]
    pub fn warnings(&mut self) -> Vec<String> {
        self.trim();
        let warnings = self.kept.iter().filter(|it| it.severity == Severity::Warning);
        warnings.map(|it| it.message.clone()).collect()
    }

    /// The findings, sorted by position and without duplicates.
    #[must_use]
    pub fn finish(mut self) -> Vec<Finding> {
        self.trim();
        if let Some(last) = self.kept.last().filter(|_| self.dropped > 0) {
            let span = Span { line: last.line, column: last.column, width: last.width };
            let message = format!("{} more findings are not shown", self.dropped);
            let mut more = Finding::new(MORE_FINDINGS, span, message);
            more.file.clone_from(&self.file);
            if self.dropped_errors > 0 {
                more.severity = Severity::Error;
            }
            self.kept.push(more);
        }
        self.kept
    }

    fn trim(&mut self) {
        self.kept.sort_by(Finding::order);
        // An alias repeats the findings of its anchor.
        self.kept.dedup();
        if self.kept.len() > FINDINGS_MAX {
            let surplus = self.kept.split_off(FINDINGS_MAX);
            self.dropped += surplus.len();
            self.dropped_errors += surplus.iter().filter(|it| it.severity == Severity::Error).count();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codes::{MISSING_KEY, NEXT_IGNORED};

    fn at(line: u32) -> Span {
        Span { line, column: 1, width: 1 }
    }

    #[test]
    fn the_first_findings_are_kept_and_the_rest_is_counted() {
        let mut report = Report::new("x");
        for line in (1..=5000).rev() {
            report.add(Finding::new(NEXT_IGNORED, at(line), "odd"));
        }
        report.add(Finding::new(MISSING_KEY, at(9000), "bad"));
        assert_eq!(report.errors(), 1);
        let findings = report.finish();
        assert_eq!(findings.len(), FINDINGS_MAX + 1);
        assert_eq!((findings[0].line, findings[FINDINGS_MAX - 1].line), (1, 200));
        assert_eq!(findings[FINDINGS_MAX].message, "4801 more findings are not shown");
        assert_eq!(
            findings[FINDINGS_MAX].severity,
            Severity::Error,
            "one of the findings that are not shown is an error"
        );
    }

    #[test]
    fn the_same_finding_is_reported_once() {
        let mut report = Report::new("x");
        report.add(Finding::new(MISSING_KEY, at(1), "bad"));
        report.add(Finding::new(MISSING_KEY, at(1), "bad"));
        assert_eq!(report.finish().len(), 1);
    }
}
