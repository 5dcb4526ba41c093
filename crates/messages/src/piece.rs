//! Sentences of which some words are emphasised, or are code.

use std::borrow::Cow;

/// A part of a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece<'p> {
    /// Plain words.
    Plain(Cow<'p, str>),
    /// Emphasised words.
    Strong(Cow<'p, str>),
    /// A command or a name, as it is typed.
    Code(Cow<'p, str>),
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

    /// A command or a name, as it is typed.
    pub(crate) fn code(text: impl Into<Cow<'p, str>>) -> Self {
        Self::Code(text.into())
    }
}
