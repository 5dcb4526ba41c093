//! What the result of work must be, and where it goes.

use minicbor::{CborLen, Decode, Encode};
use switchward_schema::Schema;

use crate::Port;

/// What a result must be, all of it or nothing, and what becomes of it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum Accept {
    /// An object, whose keys are recorded as data.
    #[n(1)]
    Data,
    /// An object of these fields, which are recorded as data; others are left out.
    #[n(2)]
    Fields {
        /// What is read out of the text.
        #[n(0)]
        fields: Vec<Wanted>,
        /// How the act ends when no required field is missing.
        #[n(1)]
        complete: Port,
        /// How it ends when one is; what there is, is recorded all the same.
        #[n(2)]
        incomplete: Port,
    },
    /// An answer of HTTP: a status of 400 or more is an error.
    #[n(3)]
    Answer {
        /// The key that the body is recorded under.
        #[n(0)]
        into: Option<String>,
    },
    /// Which of the session's workflows are meant, by their names: they begin, one after the other.
    #[n(10)]
    Workflows,
    /// Any JSON that keeps to a contract; what it writes is bound by [`Node::writes`](crate::Node::writes).
    #[n(20)]
    Contract(#[n(0)] Contract),
}

/// What a result must be, which exit it may name, and what becomes of it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Encode, Decode, CborLen)]
pub struct Contract {
    /// What the result must be, with or without [`NEXT_NODE`](crate::reserved_keys::NEXT_NODE); `None`: any JSON.
    #[n(0)]
    pub schema: Option<Schema>,
    /// What happens if it names no exit and no automatic one is taken.
    #[n(1)]
    pub next: NextRule,
    /// What becomes of it.
    #[n(2)]
    pub into: ResultUse,
}

/// What happens if a result names no exit, and none is taken without a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Encode, Decode, CborLen)]
pub enum NextRule {
    /// What the node says for a body that has ended without an exit. So it is where a worker can name none.
    #[default]
    #[n(0)]
    Free,
    /// The only exit that a worker can name is taken, if its guard holds.
    #[n(1)]
    Lone,
    /// The attempt has failed: there are several that it could have named.
    #[n(2)]
    Needed,
}

/// What becomes of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Encode, Decode, CborLen)]
pub enum ResultUse {
    /// It is an object, whose keys are written. Null is an object without keys.
    #[default]
    #[n(0)]
    Update,
    /// An object of which the node may write every key is written so. Else the whole result is the value of the only key
    /// that the node may write; if it may write none, the result stays in the history; if it may write several, the attempt
    /// has failed.
    #[n(1)]
    Deduce,
}

/// A field that is read out of a text.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Wanted {
    /// Its name, and the key that it is recorded under.
    #[n(0)]
    pub name: String,
    /// The type that its value must have.
    #[n(1)]
    pub holds: FieldType,
    /// What it means, for the worker that looks for it.
    #[n(2)]
    pub description: String,
    /// Whether the result is incomplete without it.
    #[n(3)]
    pub required: bool,
}

/// The type of a value that is extracted from a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Encode, Decode, CborLen)]
pub enum FieldType {
    /// A text.
    #[n(0)]
    String,
    /// An integer or a number with a fraction.
    #[n(1)]
    Number,
    /// True or false.
    #[n(2)]
    Boolean,
    /// A day of the calendar, `YYYY-MM-DD`, and nothing beside it.
    #[n(3)]
    Date,
    /// A list of any values.
    #[n(4)]
    List,
}

impl FieldType {
    /// Every type, as the source lists them.
    pub const ALL: [Self; 5] = [Self::String, Self::Number, Self::Boolean, Self::Date, Self::List];

    /// The public name.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::Date => "date",
            Self::List => "list",
        }
    }

    /// The type of this name.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.word() == word)
    }
}
