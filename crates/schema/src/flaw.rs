//! What is wrong with a schema.

use std::fmt;

/// One fault of a schema, and where it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Flaw {
    /// A JSON pointer (RFC 6901) into the schema; the empty text is the whole schema.
    pub pointer: String,
    /// What sort of fault.
    pub kind: FlawKind,
    /// One sentence without its full stop.
    pub message: String,
}

/// The sorts of faults of schemas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FlawKind {
    /// The text is not JSON, or a dictionary has a key twice.
    Json,
    /// `$schema` names another dialect than 2020-12.
    Dialect,
    /// A keyword has a value that it cannot have.
    Keyword,
    /// A reference leads out of the schema, to nothing, or back to itself.
    Reference,
    /// A regular expression cannot be read, or would not run in linear time.
    Pattern,
    /// A top-level property begins with `_`.
    Reserved,
    /// A named maximum is exceeded.
    Limit,
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.pointer.is_empty() {
            write!(f, "the schema: {}", self.message)
        } else {
            write!(f, "the schema at {}: {}", self.pointer, self.message)
        }
    }
}
