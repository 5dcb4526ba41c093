//! Events about a session: its life, what is said in it, and how its data ends.

use minicbor::{CborLen, Decode, Encode};
use switchward_machine::{Digest, Time};

use crate::session::{Assisted, Attached, RemovalFact, SessionWarning, Speaker};

/// An event about a session: its life, what is said in it, and how its data ends. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
#[cbor(flat)]
pub enum SessionEvent {
    /// A session exists from now on.
    #[n(0)]
    Started {
        /// The name of the definition; empty if the first message decides.
        #[n(0)]
        definition: String,
        /// The definition's version, from 1; 0 if the first message decides.
        #[n(1)]
        version: u32,
        /// The digest of the machine that the root run executes.
        #[n(2)]
        machine: Digest,
        /// The caller's own key.
        #[n(3)]
        key: Option<String>,
        /// The session's role, which the policy's must equal.
        #[n(4)]
        role: String,
        /// Whether it runs without its policy.
        #[n(5)]
        without_policy: bool,
        /// Keys and values by which sessions are listed.
        #[n(6)]
        labels: Vec<(String, String)>,
        /// JSON, or empty.
        #[cbor(n(7), with = "minicbor::bytes")]
        input: Vec<u8>,
        /// The address of the person that the conversation is with.
        #[cbor(n(8), default)]
        contact: Option<String>,
        /// The workflows that it may switch between, if there are several.
        #[cbor(n(9), default)]
        workflows: Vec<Attached>,
        /// Whether everybody whom data or the start names may be asked to approve, whatever the tenant's setting.
        #[cbor(n(10), default)]
        any_approver_address: bool,
    },
    /// Something that should be looked at.
    #[n(1)]
    Warned {
        /// What was found.
        #[n(0)]
        warning: SessionWarning,
    },
    /// The session stops in place.
    #[n(2)]
    Paused {
        /// Somebody's words about it.
        #[n(0)]
        comment: String,
    },
    /// The session goes on.
    #[n(3)]
    Unpaused {
        /// Somebody's words about it.
        #[n(0)]
        comment: String,
    },
    /// Remembered replies are forgotten.
    #[n(4)]
    RequestsForgotten,
    /// Somebody said something in the conversation.
    #[n(5)]
    MessagePosted {
        /// What was said.
        #[n(0)]
        text: String,
        /// Who has said it.
        #[n(1)]
        speaker: Speaker,
    },
    /// A message whose sender signs no time was recorded; what is signed alike is a copy of it.
    #[n(6)]
    MessageRecorded {
        /// What is signed: 16 bytes of its digest.
        #[cbor(n(0), with = "minicbor::bytes")]
        message: [u8; 16],
        /// Until when it is known again.
        #[n(1)]
        until: Time,
    },
    /// The session is with an assistant.
    #[n(7)]
    Assisted {
        /// The assistant, as it is now.
        #[n(0)]
        assistant: Assisted,
    },
    /// The session has reply tokens.
    #[n(8)]
    ReplyTokensBegun {
        /// The name of its tenant, which they carry.
        #[n(0)]
        tenant: String,
    },
    /// Something about the removal of a session's data.
    #[n(9)]
    Removals(#[n(0)] RemovalFact),
}

impl SessionEvent {
    /// Returns true if the event counts in the session's sequence. The steps of a removal do not.
    #[must_use]
    pub fn counts(&self) -> bool {
        match self {
            Self::Removals(fact) => fact.counts(),
            Self::Started { .. }
            | Self::Warned { .. }
            | Self::Paused { .. }
            | Self::Unpaused { .. }
            | Self::RequestsForgotten
            | Self::MessagePosted { .. }
            | Self::MessageRecorded { .. }
            | Self::Assisted { .. }
            | Self::ReplyTokensBegun { .. } => true,
        }
    }
}
