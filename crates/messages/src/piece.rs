//! Sentences of which some words are emphasised.

use std::borrow::Cow;

/// A part of a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece<'p> {
    /// Plain words.
    Plain(Cow<'p, str>),
    /// Emphasised words.
    Strong(Cow<'p, str>),
}

impl<'p> Piece<'p> {
    /// Plain words.
    pub(crate) fn plain(text: impl Into<Cow<'p, str>>) -> Self {
        Self::Plain(text.into())
    }

    /// Emphasised words.
    pub(crate) fn strong(text: impl Into<Cow<'p, str>>) -> Self {
        Self::Strong(text.into())
    }
}
