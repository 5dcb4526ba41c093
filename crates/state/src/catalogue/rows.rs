//! The catalogue: tenants, their keys, their definitions.

use minicbor::{CborLen, Decode, Encode};
use switchward_machine::{Digest, TenantId, Time};

use crate::catalogue::{Role, Settings};

/// A tenant. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Tenant {
    /// Its number, part of every key of its rows.
    #[n(0)]
    pub id: TenantId,
    /// `[a-z0-9-]`, 1 to 63 characters; no other tenant has it.
    #[n(1)]
    pub name: String,
    /// For people.
    #[n(2)]
    pub display_name: String,
    /// Its switches.
    #[n(3)]
    pub settings: Settings,
    /// When it was made.
    #[n(4)]
    pub created: Time,
    /// When it was last changed.
    #[n(5)]
    pub updated: Time,
    /// When its deletion began. Its keys are refused from then on.
    #[n(6)]
    pub deleted: Option<Time>,
}

/// An API key; the secret itself is kept nowhere. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct ApiKey {
    /// Its public id.
    #[n(0)]
    pub id: String,
    /// SHA-256 of its secret.
    #[n(1)]
    pub hash: Digest,
    /// The tenant that it opens.
    #[n(2)]
    pub tenant: TenantId,
    /// What it allows.
    #[n(3)]
    pub role: Role,
    /// The person or program that it stands for; two keys of one subject are one.
    #[n(4)]
    pub subject: String,
    /// For people.
    #[n(5)]
    pub display_name: String,
    /// When it was made.
    #[n(6)]
    pub created: Time,
    /// When it stops working by itself.
    #[n(7)]
    pub expires: Option<Time>,
    /// When it was revoked.
    #[n(8)]
    pub revoked: Option<Time>,
    /// The name of the tenant that it opens.
    #[n(9)]
    pub tenant_name: String,
}

impl ApiKey {
    /// Whether it works at this time.
    #[must_use]
    pub fn works(&self, now: Time) -> bool {
        self.revoked.is_none() && self.expires.is_none_or(|expires| now < expires)
    }
}

/// A definition by name. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Definition {
    /// Its name; never changes.
    #[n(0)]
    pub name: String,
    /// The format of its first version, which every version keeps.
    #[n(1)]
    pub format: String,
    /// The version that new sessions use.
    #[n(2)]
    pub active: Option<u32>,
    /// The newest version.
    #[n(3)]
    pub latest: u32,
    /// When its first version was made.
    #[n(4)]
    pub created: Time,
    /// When it was last changed.
    #[n(5)]
    pub updated: Time,
    /// The policy documents that hold for its sessions, by name.
    #[cbor(n(9), default, skip_if = "Vec::is_empty")]
    pub policies: Vec<String>,
    /// The versions that no session starts with any more, in the order in which they were retired.
    #[cbor(n(6), default, skip_if = "Vec::is_empty")]
    pub retired: Vec<Retired>,
    /// When it was archived, and by whom: no session starts with any of its versions. `None`: it is in use.
    #[n(7)]
    pub archived: Option<Disposal>,
    /// When it was deleted, and by whom. The row of a deleted definition stays, so that no number of a version is used a
    /// second time; the definition does not exist for anybody.
    #[n(8)]
    pub deleted: Option<Disposal>,
}

/// That a definition was archived or deleted.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Disposal {
    /// When.
    #[n(0)]
    pub at: Time,
    /// The subject of the credential that did it.
    #[n(1)]
    pub by: String,
}

/// A version that no session starts with any more.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Retired {
    /// The number of the version, from 1.
    #[n(0)]
    pub number: u32,
    /// Since when.
    #[n(1)]
    pub at: Time,
    /// Who said so: the subject of the credential.
    #[n(2)]
    pub by: String,
}

/// A version of a definition. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Version {
    /// Its number, from 1.
    #[n(0)]
    pub number: u32,
    /// The digest of its files.
    #[n(1)]
    pub source: Digest,
    /// The machine that it compiled to.
    #[n(2)]
    pub machine: Digest,
    /// Its files, as published.
    #[n(3)]
    pub files: Vec<SourceFile>,
    /// When it was made.
    #[n(4)]
    pub created: Time,
    /// The subject of the credential that deployed it.
    #[n(5)]
    pub by: String,
}

/// One file of a version.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct SourceFile {
    /// Its path inside the bundle.
    #[n(0)]
    pub path: String,
    /// What it holds.
    #[cbor(n(1), with = "minicbor::bytes")]
    pub bytes: Vec<u8>,
}

/// An assistant: a named list of workflows, with instructions. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Assistant {
    /// Its name; never changes.
    #[n(0)]
    pub name: String,
    /// Its workflows: names of definitions, in its author's order.
    #[n(1)]
    pub workflows: Vec<String>,
    /// Its instructions beside those of a state; may be empty.
    #[n(2)]
    pub instructions: String,
    /// The machine by which its sessions find out what a first message means.
    #[n(3)]
    pub machine: Digest,
    /// When it was made.
    #[n(4)]
    pub created: Time,
    /// When it was last changed.
    #[n(5)]
    pub updated: Time,
}

/// Stands for a row as it is now.
pub(crate) fn etag<T: Encode<()>>(row: &T) -> String {
    let mut bytes = Vec::with_capacity(256);
    minicbor::encode(row, &mut bytes).expect("encoding into memory cannot fail");
    let digest = Digest::of(&bytes);
    digest.0[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Tenant {
    /// Stands for the tenant as it is now: 16 hexadecimal digits, others after every change.
    #[must_use]
    pub fn etag(&self) -> String {
        etag(self)
    }
}

impl Definition {
    /// Since when no session starts with this version, and who retired it.
    #[must_use]
    pub fn retired(&self, number: u32) -> Option<&Retired> {
        self.retired.iter().find(|retired| retired.number == number)
    }

    /// Stands for the definition as it is now: 16 hexadecimal digits, others after every change.
    #[must_use]
    pub fn etag(&self) -> String {
        etag(self)
    }
}

impl Assistant {
    /// Stands for the assistant as it is now: 16 hexadecimal digits, others after every change.
    #[must_use]
    pub fn etag(&self) -> String {
        etag(self)
    }
}
