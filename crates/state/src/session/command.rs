//! Commands about a session.

use crate::AdmissionClass;
use crate::session::{Remove, RemoveStep, Start};

/// A command about a session.
#[expect(clippy::large_enum_variant, reason = "there is one value for each command that is under way")]
#[derive(Debug, Clone)]
pub enum SessionCommand {
    /// Begin a session.
    Start(Start),
    /// The user says something.
    PostMessage(PostMessage),
    /// The conversation turns to another workflow.
    SwitchRun(SwitchRun),
    /// Stop in place.
    Pause(Pause),
    /// Go on.
    Resume(Resume),
    /// Stop for good.
    Cancel(Cancel),
    /// Something may have lapsed.
    Sweep(Sweep),
    /// The data of a session is removed.
    Remove(Remove),
    /// A step of that.
    RemoveStep(RemoveStep),
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
#[derive(Debug, Clone)]
pub struct Pause {
    /// Free text for the history.
    pub comment: String,
}

/// Go on.
#[derive(Debug, Clone)]
pub struct Resume {
    /// Free text for the history.
    pub comment: String,
}

/// Stop for good.
#[derive(Debug, Clone)]
pub struct Cancel {
    /// Free text for the history.
    pub comment: String,
}

/// The row behind this key may hold something that has lapsed.
#[derive(Debug, Clone)]
pub struct Sweep {
    /// The row.
    pub key: crate::Key,
}

/// The user says something in the conversation.
#[derive(Debug, Clone)]
pub struct PostMessage {
    /// What.
    pub text: String,
}

/// The conversation turns to another workflow.
#[derive(Debug, Clone)]
pub struct SwitchRun {
    /// The workflow's name, one of the session's.
    pub workflow: String,
}
