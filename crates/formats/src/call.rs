//! What a definition calls.

use crate::document::Span;

/// A reference to another definition, which runs as a child there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The name of the called definition.
    pub name: String,
    /// The name's span.
    pub span: Span,
}
