//! What a template mentions, with the offset of each name, so that unknown names can be reported to the author.

/// A name and where it begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    /// The name, unescaped.
    pub text: String,
    /// Its byte offset in the template.
    pub at: usize,
}

/// One mention in a template, in no particular order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mention {
    /// A value of the data: the names below the root, from the outside in; at least one.
    Data(Vec<Name>),
    /// A name that is unknown at its position.
    Unknown {
        /// What it should be.
        kind: NameKind,
        /// The name, and where it stands.
        name: Name,
        /// Names that are known there, at most [`KNOWN_NAMES_MAX`](crate::limits::KNOWN_NAMES_MAX), without long ones.
        known: Vec<String>,
    },
    /// A text that looks like a reference to the data and is output unchanged.
    Literal(Name),
    /// One word in braces, which is output unchanged.
    Word(Name),
}

/// What a name in a template refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameKind {
    /// A variable: a root of the data, or a local name.
    Variable,
    /// A field of `loop` inside a loop.
    LoopField,
    /// What follows a `|`.
    Filter,
    /// What follows an `is`.
    Test,
    /// A function, such as `f` in `f(x)`; a method of a value is not one.
    Function,
    /// A method of a value.
    Method,
    /// The keyword of a tag.
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
