//! The types that openraft works with.

use bytes::Bytes;
use openraft::{impls::leader_id_std::LeaderId, type_config::alias};
use serde::{Deserialize, Serialize};
use std::fmt;

use crate::state_machine::StateMachine;

/// An encoded decision or an encoded mark, as it stands in the log.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Payload(pub Bytes);

impl fmt::Display for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "entry of {} bytes", self.0.len())
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

openraft::declare_raft_types!(
    /// openraft's types, as a shard uses them: standard terms, one leader a term.
    pub TypeConfig:
        D = Payload,
        R = (),
        NodeId = u64,
        Node = openraft::BasicNode,
        LeaderId = LeaderId<Self::Term, Self::NodeId>,
);

/// One group's Raft node.
pub type Raft = openraft::Raft<TypeConfig, StateMachine>;

pub(crate) type Entry = alias::EntryOf<TypeConfig>;
pub(crate) type LogId = alias::LogIdOf<TypeConfig>;
pub(crate) type Vote = alias::VoteOf<TypeConfig>;
pub(crate) type Membership = alias::StoredMembershipOf<TypeConfig>;
pub(crate) type SnapshotMeta = alias::SnapshotMetaOf<TypeConfig>;
pub(crate) type Snapshot = alias::SnapshotOf<TypeConfig, crate::snapshot::SnapshotSource>;
