//! What a template mentions, with the place of each name, so that an author can be told of a name that means nothing.

/// A name and where it begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    /// The name as the template means it.
    pub text: String,
    /// Bytes of the template before it.
    pub at: usize,
}

/// One mention of a template, in no particular order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mention {
    /// A value of the data: the names below the root, from the outside in; at least one.
    Data(Vec<Name>),
    /// A name that is not offered where it stands.
    Unknown {
        /// What it should be.
        kind: NameKind,
        /// The name.
        name: Name,
        /// Names that are offered there, at most [`KNOWN_NAMES_MAX`](crate::limits::KNOWN_NAMES_MAX).
        known: Vec<String>,
    },
    /// A text that looks like a reference to the data and is written as it stands.
    Literal(Name),
    /// One word in braces, which is written as it stands.
    Word(Name),
}

/// What a name of a template stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameKind {
    /// A variable: a root of the data, or a local name.
    Variable,
    /// What `loop` knows inside a loop.
    LoopField,
    /// A filter.
    Filter,
    /// A test.
    Test,
    /// A function.
    Function,
    /// A method of a value.
    Method,
    /// The word that a tag begins with.
    Tag,
}

impl NameKind {
    /// What it is, for sentences: `filter`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Variable => "name",
            Self::LoopField => "field of `loop`",
            Self::Filter => "filter",
            Self::Test => "test",
            Self::Function => "function",
            Self::Method => "method",
            Self::Tag => "tag",
        }
    }
}
