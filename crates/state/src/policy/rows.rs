//! Policy documents that hold for a session, and for a tenant.

use minicbor::{CborLen, Decode, Encode};
use switchward_machine::{Digest, ParamIx, Time};

/// The parameter in which a raised cap is kept if the machine has none of its own, and a document caps money. It belongs to
/// the session, and its next run has it, too.
pub const COST_OF_DOCUMENTS: ParamIx = ParamIx(u16::MAX);

/// A policy document that is attached to a definition, as it was when the session began.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Encode, Decode, CborLen)]
pub struct PinnedPolicy {
    /// The definition that it is attached to, in whose ledger its limits count.
    #[n(0)]
    pub of: String,
    /// The document's name.
    #[n(1)]
    pub name: String,
    /// The document's version when the session began, from 1.
    #[n(2)]
    pub version: u32,
    /// What it compiled to.
    #[n(3)]
    pub machine: Digest,
}

/// A policy document that holds for all sessions of a tenant, in the version that its admin set.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct TenantPolicy {
    /// The document's name.
    #[n(0)]
    pub name: String,
    /// The document's version that holds, from 1.
    #[n(1)]
    pub version: u32,
    /// What it compiled to.
    #[n(2)]
    pub machine: Digest,
    /// Who set it.
    #[n(3)]
    pub by: String,
    /// When.
    #[n(4)]
    pub at: Time,
}
