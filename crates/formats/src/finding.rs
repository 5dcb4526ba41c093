//! A finding: something that the author should know about a source.

use std::cmp::Ordering;

use crate::codes::Code;
use crate::document::Span;
use crate::limits::{ALLOWED_BYTES_MAX, ALLOWED_MAX};

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The source compiles to nothing.
    Error,
    /// It compiles, and probably does not mean what its author wants.
    Warning,
    /// It compiles and means what it says; its author should know what that is.
    Notice,
}

impl Severity {
    /// The severity's public name.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Notice => "notice",
        }
    }
}

/// Something wrong or odd in a source, and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Stable: `SW1204`. [`crate::codes::explain`] explains it.
    pub code: &'static str,
    /// Whether the definition can be deployed all the same.
    pub severity: Severity,
    /// The file as the caller named it.
    pub file: String,
    /// From 1.
    pub line: u32,
    /// In characters, from 1.
    pub column: u32,
    /// Characters of that line that it is about, at least 1. For rendering.
    pub width: u32,
    /// Lower case, without a full stop. The author's names are in backticks.
    pub message: String,
    /// The allowed values, in the author's or the format's order; not always all of them.
    pub allowed: Vec<String>,
    /// The allowed value that was probably meant.
    pub nearest: Option<String>,
    /// What to do.
    pub hint: Option<String>,
}

impl Finding {
    /// A finding whose file is not known yet; [`crate::Report::add`] fills it in.
    #[must_use]
    pub fn new(code: Code, span: Span, message: impl Into<String>) -> Self {
        Self {
            code: code.id,
            severity: code.severity,
            file: String::new(),
            line: span.line,
            column: span.column,
            width: span.width.max(1),
            message: message.into(),
            allowed: Vec::new(),
            nearest: None,
            hint: None,
        }
    }

    /// Sets the allowed values, of which the first are kept, without those that are too long for a name.
    #[must_use]
    pub fn allowed<'a>(mut self, names: impl IntoIterator<Item = &'a str>) -> Self {
        let short = names.into_iter().filter(|name| name.len() <= ALLOWED_BYTES_MAX);
        self.allowed = short.take(ALLOWED_MAX).map(str::to_owned).collect();
        self
    }

    /// Sets the value that was probably meant.
    #[must_use]
    pub fn nearest(mut self, name: Option<String>) -> Self {
        self.nearest = name;
        self
    }

    /// Sets what to do.
    #[must_use]
    pub fn hint(mut self, text: impl Into<String>) -> Self {
        self.hint = Some(text.into());
        self
    }

    /// The order of findings: by position, errors first.
    pub(crate) fn order(&self, other: &Self) -> Ordering {
        let key = |it: &Self| (it.line, it.column, it.severity, it.code);
        key(self).cmp(&key(other)).then_with(|| self.message.cmp(&other.message))
    }
}

/// Returns true if one of them is an error.
#[must_use]
pub fn has_errors(findings: &[Finding]) -> bool {
    findings.iter().any(|finding| finding.severity == Severity::Error)
}
