//! The command that creates a session with its first runs.

use minicbor::{Decode, Encode};
use switchward_machine::Digest;

use crate::policy::PinnedPolicy;
use crate::run::Pinned;
use crate::session::Assisted;

/// A run that waits for the ones before it.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct Queued {
    /// The definition's name.
    #[n(0)]
    pub definition: String,
    /// The definition's version, from 1.
    #[n(1)]
    pub version: u32,
    /// The machine that it compiled to; must be installed in the shard.
    #[n(2)]
    pub machine: Digest,
}

/// Begin a session. The scope's session id is derived from `key`, else from the request id.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct Start {
    /// The definition's name; empty if the first message decides which of `workflows` are meant.
    #[n(0)]
    pub definition: String,
    /// The definition's version; 0 if `definition` is empty.
    #[n(1)]
    pub version: u32,
    /// The machine that it compiled to, or the assistant's; must be installed in the shard.
    #[n(2)]
    pub machine: Digest,
    /// The caller's own key for the session.
    #[n(3)]
    pub key: Option<String>,
    /// The session's role, which the policy's must equal.
    #[n(4)]
    pub role: String,
    /// Free, for the caller's own use; ordered by key.
    #[n(5)]
    pub labels: Vec<(String, String)>,
    /// JSON, or empty.
    #[cbor(n(6), with = "minicbor::bytes")]
    pub input: Vec<u8>,
    /// Further runs, which wait for the ones before them.
    #[n(7)]
    pub queue: Vec<Queued>,
    /// The address of the person that the conversation is with.
    #[n(8)]
    pub contact: Option<String>,
    /// The workflows that it may switch between, its own among them; empty if there is only its own.
    #[n(9)]
    pub workflows: Vec<Queued>,
    /// The assistant that it is with, if any.
    #[n(10)]
    pub assistant: Option<Assisted>,
    /// What the user opens the conversation with.
    #[n(11)]
    pub message: Option<String>,
    /// All that its runs call, directly or through one another; the engine's `pin_callees` finds them.
    #[n(12)]
    pub callees: Vec<Pinned>,
    /// The name of its tenant, which its reply tokens carry; kept if events from outside can be for it.
    #[n(13)]
    pub reply_tenant: Option<String>,
    /// Who is notified of gates that address nobody: addresses and names of the tenant's directory; if empty, the
    /// directory's audience.
    #[n(14)]
    pub audience: Vec<String>,
    /// How those who are asked to decide are reminded; `None`: as the directory says.
    #[n(15)]
    pub reminders: Option<crate::approval::Reminders>,
    /// How many of those whom a gate asks must approve; `None`: as the directory says.
    #[n(16)]
    pub quorum: Option<crate::approval::Quorum>,
    /// Who is asked, too, if those who were asked do not decide: addresses and names of the directory; if empty, the
    /// directory's.
    #[n(17)]
    pub escalation: Vec<String>,
    /// Whether approvers and escalation contacts that come from data are asked although the directory does not hold them.
    /// Scenarios set it; a server goes by its tenant.
    #[n(18)]
    pub any_approver_address: bool,
    /// The policy documents that are attached to any definition that it runs; the engine's `pin_policies` finds them.
    #[n(19)]
    pub policies: Vec<PinnedPolicy>,
}

impl Start {
    /// The machines that must be installed, each once.
    pub fn machines(&self) -> impl Iterator<Item = Digest> {
        let others = self.queue.iter().chain(&self.workflows).map(|other| other.machine);
        let callees = self.callees.iter().map(|pinned| pinned.machine);
        let policies = self.policies.iter().map(|pinned| pinned.machine);
        let all = [self.machine].into_iter().chain(others).chain(callees).chain(policies);
        all.collect::<std::collections::BTreeSet<_>>().into_iter()
    }
}
