//! Commands about a session.

use crate::AdmissionClass;
use crate::session::{Remove, RemoveStep, Start};
use minicbor::{Decode, Encode};

/// A command about a session.
#[expect(clippy::large_enum_variant, reason = "there is one value for each command that is under way")]
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub enum SessionCommand {
    /// Begin a session.
    #[n(0)]
    Start(#[n(0)] Start),
    /// The user says something.
    #[n(1)]
    PostMessage(#[n(0)] PostMessage),
    /// The conversation turns to another workflow.
    #[n(2)]
    SwitchRun(#[n(0)] SwitchRun),
    /// Stop in place.
    #[n(3)]
    Pause(#[n(0)] Pause),
    /// Go on.
    #[n(4)]
    Resume(#[n(0)] Resume),
    /// Stop for good.
    #[n(5)]
    Cancel(#[n(0)] Cancel),
    /// Something may have lapsed.
    #[n(6)]
    Sweep(#[n(0)] Sweep),
    /// The data of a session is removed.
    #[n(7)]
    Remove(#[n(0)] Remove),
    /// A step of a limited size: some of the rows go.
    #[n(8)]
    RemoveStep(#[n(0)] RemoveStep),
}

impl SessionCommand {
    /// What the command does to the load of a shard.
    #[must_use]
    pub fn admission(&self) -> AdmissionClass {
        match self {
            Self::Start(_) | Self::PostMessage(_) | Self::SwitchRun(_) | Self::Resume(_) => {
                AdmissionClass::Begins
            }
            Self::Cancel(_) | Self::Sweep(_) => AdmissionClass::Ends,
            Self::Pause(_) | Self::Remove(_) | Self::RemoveStep(_) => AdmissionClass::Neither,
        }
    }

    /// Returns true if the command makes the stored data grow.
    #[must_use]
    pub fn grows(&self) -> bool {
        match self {
            // Rows to delete are first written to the log and to tables that are merged later.
            Self::Start(_)
            | Self::PostMessage(_)
            | Self::SwitchRun(_)
            | Self::Resume(_)
            | Self::Sweep(_)
            | Self::RemoveStep(_) => true,
            Self::Pause(_) | Self::Cancel(_) | Self::Remove(_) => false,
        }
    }

    /// Returns true if the command is answered with where its session stands.
    #[must_use]
    pub fn shows_session(&self) -> bool {
        match self {
            Self::Start(_)
            | Self::PostMessage(_)
            | Self::SwitchRun(_)
            | Self::Pause(_)
            | Self::Resume(_)
            | Self::Cancel(_) => true,
            Self::Sweep(_) | Self::Remove(_) | Self::RemoveStep(_) => false,
        }
    }

    /// The approximate size of what the command carries, bytes.
    #[must_use]
    pub fn carried(&self) -> usize {
        match self {
            Self::Start(start) => start.input.len() + start.message.as_ref().map_or(0, String::len),
            Self::PostMessage(post) => post.text.len(),
            Self::SwitchRun(_)
            | Self::Pause(_)
            | Self::Resume(_)
            | Self::Cancel(_)
            | Self::Sweep(_)
            | Self::Remove(_)
            | Self::RemoveStep(_) => 0,
        }
    }
}

/// Stop in place.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct Pause {
    /// Free text for the history.
    #[n(0)]
    pub comment: String,
}

/// Go on.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct Resume {
    /// Free text for the history.
    #[n(0)]
    pub comment: String,
}

/// Stop for good.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct Cancel {
    /// Free text for the history.
    #[n(0)]
    pub comment: String,
}

/// The row behind this key may hold something that has lapsed.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct Sweep {
    /// The row.
    #[n(0)]
    pub key: crate::Key,
}

/// The user says something in the conversation.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct PostMessage {
    /// What the user says.
    #[n(0)]
    pub text: String,
}

/// The conversation turns to another workflow.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct SwitchRun {
    /// The workflow's name, one of the session's.
    #[n(0)]
    pub workflow: String,
}
