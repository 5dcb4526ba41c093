//! Bytes that cannot be read.

/// Bytes that are in no stored or sent form of this build: why, as the end of a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormError(pub String);

impl std::fmt::Display for FormError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "failed to read a stored form: {}", self.0)
    }
}
