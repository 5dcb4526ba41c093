//! What a reply holds of a key, a version or an assistant: what its caller is shown, and nothing secret or large.

use minicbor::{CborLen, Decode, Encode};
use switchward_machine::{Digest, Time};

use crate::catalogue::{ApiKey, Assistant, Definition, Retired, Role, Version};

/// An API key without the hash of its secret.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct KeySummary {
    /// Its public id.
    #[n(0)]
    pub id: String,
    /// What it allows.
    #[n(1)]
    pub role: Role,
    /// The person or program that it stands for.
    #[n(2)]
    pub subject: String,
    /// For people.
    #[n(3)]
    pub display_name: String,
    /// When it was created.
    #[n(4)]
    pub created: Time,
    /// When it stops working by itself.
    #[n(5)]
    pub expires: Option<Time>,
    /// When it was revoked.
    #[n(6)]
    pub revoked: Option<Time>,
}

impl KeySummary {
    /// Summarises a key.
    #[must_use]
    pub fn of(key: &ApiKey) -> Self {
        Self {
            id: key.id.clone(),
            role: key.role,
            subject: key.subject.clone(),
            display_name: key.display_name.clone(),
            created: key.created,
            expires: key.expires,
            revoked: key.revoked,
        }
    }
}

/// A version of a definition without its files.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct VersionSummary {
    /// The definition's name.
    #[n(0)]
    pub definition: String,
    /// Its number, from 1.
    #[n(1)]
    pub number: u32,
    /// The digest of its files.
    #[n(2)]
    pub source: Digest,
    /// The machine that it compiled to.
    #[n(3)]
    pub machine: Digest,
    /// The definition's format.
    #[n(4)]
    pub format: String,
    /// Whether new sessions use it.
    #[n(5)]
    pub active: bool,
    /// When it was created.
    #[n(6)]
    pub created: Time,
    /// The subject of the credential that deployed it.
    #[n(7)]
    pub by: String,
    /// When and by whom it was retired, if it is.
    #[n(8)]
    pub retired: Option<Retired>,
}

impl VersionSummary {
    /// Summarises a version of a definition.
    #[must_use]
    pub fn of(definition: &Definition, version: &Version) -> Self {
        Self {
            definition: definition.name.clone(),
            number: version.number,
            source: version.source,
            machine: version.machine,
            format: definition.format.clone(),
            active: definition.active == Some(version.number),
            created: version.created,
            by: version.by.clone(),
            retired: definition.retired(version.number).cloned(),
        }
    }
}

/// What of an assistant is not in the request that put it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct AssistantSummary {
    /// When it was created.
    #[n(0)]
    pub created: Time,
    /// When it was last changed.
    #[n(1)]
    pub updated: Time,
    /// Stands for the assistant as the command left it.
    #[n(2)]
    pub etag: String,
}

impl AssistantSummary {
    /// Summarises an assistant.
    #[must_use]
    pub fn of(assistant: &Assistant) -> Self {
        Self { created: assistant.created, updated: assistant.updated, etag: assistant.etag() }
    }
}
