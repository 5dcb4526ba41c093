//! What every shard must know of a tenant: who its people are, what its mail tokens are made with, and its endpoints.

use minicbor::{CborLen, Decode, Encode};
use switchward_machine::{TenantId, Time};

use crate::approval::MailKey;
use crate::catalogue::{Directory, LinkAuth};
use crate::delivery::Endpoint;
use crate::policy::TenantPolicy;
use crate::seal::{KeyRing, Sealed, SecretOf};
use crate::session::Retention;

/// What every shard must know of a tenant. The catalogue holds the record; each shard has a copy. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Tenancy {
    /// Rises with every change; a shard never goes back.
    #[n(0)]
    pub revision: u64,
    /// What tokens are made with, the newest first, sealed; those of the older ones are still taken. Empty if the server
    /// has had no key ring.
    #[n(1)]
    pub keys: Vec<Sealed>,
    /// Whom the names of people, groups and owners stand for.
    #[n(2)]
    pub directory: Directory,
    /// Its endpoints, ordered by name.
    #[cbor(n(3), default, skip_if = "Vec::is_empty")]
    pub endpoints: Vec<Endpoint>,
    /// The outbox of messages about the tenant itself; `None` if there never was one. The catalogue's record alone has
    /// it.
    #[n(4)]
    pub outbox: Option<TenantOutbox>,
    /// The policy documents that hold for all of its sessions, ordered by name.
    #[cbor(n(8), default, skip_if = "Vec::is_empty")]
    pub policies: Vec<TenantPolicy>,
    /// Whether approvers and escalation contacts that come from data or from the start are asked although the directory
    /// does not hold them.
    #[cbor(n(5), default, skip_if = "std::ops::Not::not")]
    pub any_approver_address: bool,
    /// How long what has ended is kept.
    #[cbor(n(9), default)]
    pub retention: Retention,
    /// Since when its effects are held: from a restore until an operator releases them.
    #[n(10)]
    pub held: Option<Time>,
    /// Its deletion, once it has begun. Such a record is kept for good: commands for the tenant are refused.
    #[n(11)]
    pub deletion: Option<Deletion>,
    /// The number of the last [`TenantChange`](crate::catalogue::TenantChange); the catalogue's record alone counts.
    #[cbor(n(12), default)]
    pub changes: u64,
    /// How a decision page recognises the person whose link it is; `None`: the tenant does not say.
    #[n(13)]
    pub link_auth: Option<LinkAuth>,
}

/// The deletion of a tenant.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Deletion {
    /// The subject of the credential that asked for it.
    #[n(0)]
    pub by: String,
    /// When it began.
    #[n(1)]
    pub at: Time,
    /// When the last row was gone from this shard, or from the catalogue.
    #[n(2)]
    pub done: Option<Time>,
}

/// Messages to endpoints that are about the tenant itself and about none of its sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Encode, Decode, CborLen)]
pub struct TenantOutbox {
    /// The number of the last one.
    #[n(0)]
    pub last: u64,
    /// How many have not arrived.
    #[n(1)]
    pub waiting: u32,
}

impl Tenancy {
    /// The first of a tenant that had none.
    #[must_use]
    pub fn first(key: Option<Sealed>) -> Self {
        Self {
            revision: 1,
            keys: key.into_iter().collect(),
            directory: Directory::default(),
            endpoints: Vec::new(),
            outbox: None,
            policies: Vec::new(),
            any_approver_address: false,
            retention: Retention::default(),
            held: None,
            deletion: None,
            changes: 0,
            link_auth: None,
        }
    }

    /// The record of a deleted tenant: the deletion and nothing else.
    #[must_use]
    pub fn tombstone(revision: u64, deletion: Deletion) -> Self {
        Self { revision, deletion: Some(deletion), ..Self::first(None) }
    }

    /// Returns true if nothing of the tenant goes out now.
    #[must_use]
    pub fn holds_effects(&self) -> bool {
        self.held.is_some() || self.deletion.is_some()
    }

    /// What tokens are made with, the newest first, opened. One that cannot be opened is none.
    #[must_use]
    pub fn mail_keys(&self, ring: &KeyRing, tenant: TenantId) -> Vec<MailKey> {
        MailKey::open_all(ring, tenant, &self.keys)
    }

    /// Its secrets, sealed, each with what it belongs to.
    pub fn sealed(&self) -> impl Iterator<Item = (SecretOf<'_>, &Sealed)> {
        let mail = self.keys.iter().map(|key| (SecretOf::Mail, key));
        let endpoints = self.endpoints.iter().flat_map(|one| {
            one.secrets.iter().map(|secret| (SecretOf::Endpoint(one.id.as_str()), &secret.sealed))
        });
        mail.chain(endpoints)
    }

    /// The endpoint of this name.
    #[must_use]
    pub fn endpoint(&self, id: &str) -> Option<&Endpoint> {
        self.endpoints.iter().find(|endpoint| endpoint.id == id)
    }
}
