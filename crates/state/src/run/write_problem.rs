//! Why a value is not written into a run's data.

use minicbor::{CborLen, Decode, Encode};
use std::fmt;

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
}

impl fmt::Display for WriteProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reserved { key } => write!(f, "{key:?} is written by the engine alone"),
            Self::KeyLength => write!(f, "a key must be 1 to {DATA_KEY_BYTES_MAX} bytes"),
            Self::TooDeep { key } => write!(f, "{key:?} is nested deeper than {DATA_DEPTH_MAX}"),
            Self::TooManyKeys => write!(f, "there are {DATA_KEYS_MAX} keys already"),
            Self::Clash { key, diagnostic } => write!(f, "{key:?}: {diagnostic}"),
            Self::TooLarge { key } => {
                write!(f, "{key:?} would make the data larger than {DATA_BYTES_MAX} bytes")
            }
        }
    }
}
