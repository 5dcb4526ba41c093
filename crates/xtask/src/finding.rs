//! A violation of the repository's rules.

use std::fmt;

/// A finding and its location. Sorted by path, then line.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    /// Relative to the repository's root, with `/`.
    pub(crate) path: String,
    /// From 1.
    pub(crate) line: usize,
    /// The rule's name, as `crates/README.md` lists it.
    pub(crate) rule: &'static str,
    /// What is wrong and what to do.
    pub(crate) message: String,
}

impl Finding {
    /// A finding of `rule` at a line of a file.
    pub(crate) fn new(path: &str, line: usize, rule: &'static str, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, rule, message: message.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}: {}: {}", self.path, self.line, self.rule, self.message)
    }
}
