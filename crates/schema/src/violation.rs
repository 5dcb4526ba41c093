//! What is wrong with a value.

use std::fmt;

/// One thing that breaks a schema.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    /// A JSON pointer (RFC 6901) into the value, cut after [`crate::limits::SHOWN_PATH_BYTES_MAX`]; the empty
    /// text is the whole value.
    pub path: String,
    /// One sentence without its full stop.
    pub message: String,
}

/// Everything that breaks a schema: the first ones, and how many there are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violations {
    /// In the order of their paths and messages, at most [`crate::limits::VIOLATIONS_MAX`], at least one.
    pub first: Vec<Violation>,
    /// How many there are in all.
    pub total: usize,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            write!(f, "the value {}", self.message)
        } else {
            write!(f, "{} {}", self.path, self.message)
        }
    }
}

impl fmt::Display for Violations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, violation) in self.first.iter().enumerate() {
            if index > 0 {
                f.write_str("; ")?;
            }
            write!(f, "{violation}")?;
        }
        match self.total.saturating_sub(self.first.len()) {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}
