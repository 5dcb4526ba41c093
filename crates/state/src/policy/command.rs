//! Commands about calls, what they use, ledgers and policy documents.

use switchward_machine::{Digest, Micros, Time};

use crate::policy::{Args, LedgerRule, LimitCheck};
use crate::seal::Sealed;
use crate::{AdmissionClass, RequestId};

/// A command about calls, what they use, ledgers and policy documents.
#[expect(clippy::large_enum_variant, reason = "there is one value for each command that is under way")]
#[derive(Debug, Clone)]
pub enum PolicyCommand {
    /// May the agent call this?
    Authorize(Authorize),
    /// A call was made.
    ReportCall(ReportCall),
    /// Money or tokens were used.
    ReportUsage(ReportUsage),
    /// A cap is set again.
    RaiseCap(RaiseCap),
    /// Count a call before it is decided.
    Reserve(Reserve),
    /// The call was permitted.
    Confirm(Confirm),
    /// The call was reported, or will not be.
    Settle(Settle),
    /// A policy document starts or stops to hold for a definition's new sessions.
    AttachPolicy(AttachPolicy),
    /// A policy document holds for all sessions of the tenant from now on.
    SetTenantPolicy(SetTenantPolicy),
    /// It stops to hold.
    RemoveTenantPolicy(RemoveTenantPolicy),
}

impl PolicyCommand {
    /// What the command does to the load of a shard.
    #[must_use]
    pub fn admission(&self) -> AdmissionClass {
        match self {
            Self::Authorize(_) => AdmissionClass::Begins,
            Self::ReportCall(_) | Self::ReportUsage(_) | Self::Confirm(_) | Self::Settle(_) => {
                AdmissionClass::Ends
            }
            Self::RaiseCap(_)
            | Self::Reserve(_)
            | Self::AttachPolicy(_)
            | Self::SetTenantPolicy(_)
            | Self::RemoveTenantPolicy(_) => AdmissionClass::Neither,
        }
    }

    /// Returns true if the command makes the stored data grow.
    #[must_use]
    pub fn grows(&self) -> bool {
        match self {
            Self::Authorize(_) | Self::ReportCall(_) | Self::ReportUsage(_) => true,
            Self::RaiseCap(_)
            | Self::Reserve(_)
            | Self::Confirm(_)
            | Self::Settle(_)
            | Self::AttachPolicy(_)
            | Self::SetTenantPolicy(_)
            | Self::RemoveTenantPolicy(_) => false,
        }
    }

    /// The approximate size of what the command carries, bytes.
    #[must_use]
    pub fn carried(&self) -> usize {
        match self {
            Self::Authorize(call) => call.args.json().len(),
            Self::ReportCall(_)
            | Self::ReportUsage(_)
            | Self::RaiseCap(_)
            | Self::Reserve(_)
            | Self::Confirm(_)
            | Self::Settle(_)
            | Self::AttachPolicy(_)
            | Self::SetTenantPolicy(_)
            | Self::RemoveTenantPolicy(_) => 0,
        }
    }
}

/// May the agent call this?
#[derive(Debug, Clone)]
pub struct Authorize {
    /// A path such as `mcp:filesystem:write_file`.
    pub capability: String,
    /// What it would be called with.
    pub args: Args,
    /// What it is believed to cost.
    pub estimate: Option<Micros>,
    /// The caller's name for the call.
    pub call_id: String,
    /// The ledger's answer, if limits apply.
    pub limits: Option<LimitCheck>,
    /// The mail that goes out in the same decision if the call is allowed; the call is then made and reported.
    pub mail: Option<crate::delivery::Outgoing>,
}

/// A call was made.
#[derive(Debug, Clone)]
pub struct ReportCall {
    /// The call; without it, the oldest unreported one of the capability.
    pub call_id: Option<String>,
    /// What was called.
    pub capability: Option<String>,
    /// Whether it worked.
    pub success: bool,
    /// What it cost.
    pub cost: Micros,
    /// What it used.
    pub tokens: u64,
}

/// Money or tokens were used, by no call in particular.
#[derive(Debug, Clone)]
pub struct ReportUsage {
    /// Money.
    pub cost: Micros,
    /// Tokens.
    pub tokens: u64,
}

/// A cap is set again.
#[derive(Debug, Clone)]
pub struct RaiseCap {
    /// The parameter: `cost_usd`, `tokens`.
    pub param: String,
    /// Its new value, in the parameter's own unit.
    pub value: u64,
}

/// Count a call before it is decided.
#[derive(Debug, Clone)]
pub struct Reserve {
    /// The session and call that it is for; stable over retries.
    pub call: Digest,
    /// The rules whose limits are checked.
    pub rules: Vec<LedgerRule>,
    /// Money held until the call is reported.
    pub estimate: Micros,
}

/// The call was permitted.
#[derive(Debug, Clone)]
pub struct Confirm {
    /// As reserved.
    pub call: Digest,
    /// As reserved.
    pub rules: Vec<LedgerRule>,
    /// As reserved.
    pub estimate: Micros,
    /// When it was reserved: the time at which it counts.
    pub at: Time,
}

impl Confirm {
    /// The request id under which a call is counted, so that it is counted once however often it is confirmed.
    #[must_use]
    pub fn request(&self) -> RequestId {
        Self::request_of(self.call)
    }

    /// The same, by the call's name.
    #[must_use]
    pub fn request_of(call: Digest) -> RequestId {
        RequestId { id: format!("confirm:{call}"), body: call }
    }
}

/// The call was reported, or will not be made: its reservation ends.
#[derive(Debug, Clone)]
pub struct Settle {
    /// As reserved; none for a call that never reserved anything.
    pub call: Option<Digest>,
    /// The rules that are charged.
    pub rules: Vec<LedgerRule>,
    /// What it cost, in the period of `at`.
    pub cost: Micros,
    /// When it was reported.
    pub at: Time,
    /// Whether the call was never permitted: then it does not count either.
    pub release: bool,
}

/// A policy document is attached to a definition, or detached from it.
#[derive(Debug, Clone)]
pub struct AttachPolicy {
    /// The definition.
    pub definition: String,
    /// The policy document.
    pub policy: String,
    /// Whether it is attached from now on; otherwise it is detached.
    pub attached: bool,
    /// What the caller saw, see [`Definition::etag`](crate::catalogue::Definition::etag); empty if any will do.
    pub etag: String,
}

/// A policy document holds for a tenant, in one version.
#[derive(Debug, Clone)]
pub struct SetTenantPolicy {
    /// Its name.
    pub name: String,
    /// Its version; `None` stands for the one that is active now.
    pub version: Option<u32>,
    /// Drawn for the tenant; used if it has no key for its mail tokens yet.
    pub key: Option<Sealed>,
}

/// A policy document stops to hold for a tenant.
#[derive(Debug, Clone)]
pub struct RemoveTenantPolicy {
    /// Its name.
    pub name: String,
}
