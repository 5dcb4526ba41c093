//! Why a value is not written into a run's data.

use minicbor::{CborLen, Decode, Encode};
use std::fmt;

use crate::Reason;
use crate::limits::{DATA_BYTES_MAX, DATA_DEPTH_MAX, DATA_KEY_BYTES_MAX, DATA_KEYS_MAX};

/// Why a value is not written into a run's data. The text of `Display` is for developers, as the message of a rejection;
/// the crate `messages` puts it into words for people.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum WriteProblem {
    /// Only the engine writes the key.
    #[n(0)]
    Reserved {
        /// The reserved key.
        #[n(0)]
        key: String,
    },
    /// The key is empty or longer than [`DATA_KEY_BYTES_MAX`].
    #[n(1)]
    KeyLength,
    /// The value is nested deeper than [`DATA_DEPTH_MAX`].
    #[n(2)]
    TooDeep {
        /// The key of the value.
        #[n(0)]
        key: String,
    },
    /// The data have [`DATA_KEYS_MAX`] keys.
    #[n(3)]
    TooManyKeys,
    /// The key's type or reducer refuses the value.
    #[n(4)]
    Clash {
        /// The key of the value.
        #[n(0)]
        key: String,
        /// What the reducer reports.
        #[n(1)]
        diagnostic: String,
    },
    /// The data would be larger than [`DATA_BYTES_MAX`].
    #[n(5)]
    TooLarge {
        /// The key of the value.
        #[n(0)]
        key: String,
    },
    /// The node may not write the key.
    #[n(20)]
    NotDeclared {
        /// The key that it does not list.
        #[n(0)]
        key: String,
    },
    /// The data would break the schema that the definition has for them.
    #[n(21)]
    Schema {
        /// A JSON pointer to the first value that breaks it.
        #[n(0)]
        path: String,
        /// What the schema reports.
        #[n(1)]
        diagnostic: String,
    },
}

impl WriteProblem {
    /// The stable code of a refusal of the value.
    #[must_use]
    pub fn reason(&self) -> Reason {
        match self {
            Self::NotDeclared { .. } => Reason::WriteNotDeclared,
            Self::Reserved { .. }
            | Self::KeyLength
            | Self::TooDeep { .. }
            | Self::TooManyKeys
            | Self::Clash { .. }
            | Self::TooLarge { .. }
            | Self::Schema { .. } => Reason::SchemaViolation,
        }
    }
}

impl fmt::Display for WriteProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reserved { key } => write!(f, "reserved key: {key:?}"),
            Self::KeyLength => write!(f, "length of a key: 1 to {DATA_KEY_BYTES_MAX} bytes"),
            Self::TooDeep { key } => write!(f, "depth of {key:?}: at most {DATA_DEPTH_MAX}"),
            Self::TooManyKeys => write!(f, "keys of the data: at most {DATA_KEYS_MAX}"),
            Self::Clash { key, diagnostic } => write!(f, "clash at {key:?}: {diagnostic}"),
            Self::TooLarge { key } => write!(f, "data with {key:?}: at most {DATA_BYTES_MAX} bytes"),
            Self::NotDeclared { key } => write!(f, "not among the writes of this state: {key:?}"),
            Self::Schema { diagnostic, .. } => f.write_str(diagnostic),
        }
    }
}
