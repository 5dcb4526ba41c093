//! Commands about a session.

use crate::AdmissionClass::{Begins, Ends, Neither};
use crate::session::{Remove, RemoveStep, Start};
use crate::{CommandTraits, ScopeKind, Shown};
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
    /// What each kind says of itself.
    #[must_use]
    pub fn traits(&self) -> CommandTraits {
        let of_session = |admission| CommandTraits::of(ScopeKind::Session, admission);
        match self {
            Self::Start(_) | Self::PostMessage(_) | Self::SwitchRun(_) | Self::Resume(_) => {
                of_session(Begins).grows().shows(Shown::Session)
            }
            Self::Pause(_) => of_session(Neither).shows(Shown::Session),
            Self::Cancel(_) => of_session(Ends).shows(Shown::Session),
            Self::Sweep(_) => CommandTraits::of(ScopeKind::Due, Ends).grows().in_removed_session(),
            Self::Remove(_) => of_session(Neither).in_removed_session(),
            // Rows to delete are first written to the log and to tables that are merged later.
            Self::RemoveStep(step) => CommandTraits::of(step.scope(), Neither).grows().in_deleted_tenant(),
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
    /// Why, for the history.
    #[n(0)]
    pub comment: CancelComment,
}

impl Cancel {
    /// A cancellation with somebody's own words, maybe empty.
    #[must_use]
    pub fn written(comment: impl Into<String>) -> Self {
        Self { comment: CancelComment::Written(comment.into()) }
    }
}

/// What is said about the cancellation of a session.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum CancelComment {
    /// Somebody's own words; maybe empty.
    #[n(0)]
    Written(#[n(0)] String),
    /// A restored backup has the session, and it has ended and was removed since the backup was taken.
    #[n(1)]
    RemovedAfterBackup,
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
