//! What a request is about, in one line.

use minicbor::{CborLen, Decode, Encode};

/// The subject of a request, or the facts that it is made of. Stored form. The crate `messages` puts it into words.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum RequestSubject {
    /// An author or a person wrote it; may be empty.
    #[n(0)]
    Written(#[n(0)] String),
    /// May a call be made?
    #[n(1)]
    Call {
        /// The definition of the session.
        #[n(0)]
        definition: String,
        /// What would be called.
        #[n(1)]
        capability: String,
    },
    /// Is an answer of the agent right?
    #[n(2)]
    Review {
        /// The definition of the session.
        #[n(0)]
        definition: String,
        /// What the agent answered.
        #[n(1)]
        answer: String,
        /// The state that it answers.
        #[n(2)]
        state: String,
    },
    /// May the process go on? An approval whose author wrote no subject.
    #[n(3)]
    Approval {
        /// The state that needs it.
        #[n(0)]
        state: String,
    },
    /// What does a participant answer? A part of a task.
    #[n(4)]
    Task {
        /// The state that asks.
        #[n(0)]
        state: String,
    },
}

impl RequestSubject {
    /// The size of its texts, bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Self::Written(text) => text.len(),
            Self::Call { definition, capability } => definition.len() + capability.len(),
            Self::Review { definition, answer, state } => definition.len() + answer.len() + state.len(),
            Self::Approval { state } | Self::Task { state } => state.len(),
        }
    }

    /// What stands for it in the digest of a request.
    pub(crate) fn digested(&self) -> String {
        match self {
            Self::Written(text) => text.clone(),
            Self::Call { definition, capability } => ["\0call", definition, capability].join("\0"),
            Self::Review { definition, answer, state } => ["\0review", definition, answer, state].join("\0"),
            Self::Approval { state } => ["\0approval", state].join("\0"),
            Self::Task { state } => ["\0task", state].join("\0"),
        }
    }
}

impl From<&str> for RequestSubject {
    fn from(text: &str) -> Self {
        Self::Written(text.to_owned())
    }
}
