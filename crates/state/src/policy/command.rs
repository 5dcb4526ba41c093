//! Commands about calls, what they use, ledgers and policy documents.

use minicbor::{Decode, Encode};
use switchward_machine::{Digest, Micros, SessionId, Time};

use crate::AdmissionClass::{Begins, Ends, Neither};
use crate::policy::{Args, LedgerRule, LimitCheck};
use crate::seal::Sealed;
use crate::{ChangedTenant, CommandTraits, RequestId, ScopeKind, Shown};

/// A command about calls, what they use, ledgers and policy documents.
#[expect(clippy::large_enum_variant, reason = "there is one value for each command that is under way")]
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub enum PolicyCommand {
    /// May the agent call this?
    #[n(0)]
    Authorize(#[n(0)] Authorize),
    /// A call was made.
    #[n(1)]
    ReportCall(#[n(0)] ReportCall),
    /// Money or tokens were used.
    #[n(2)]
    ReportUsage(#[n(0)] ReportUsage),
    /// A cap is set again.
    #[n(3)]
    RaiseCap(#[n(0)] RaiseCap),
    /// Count a call before it is decided.
    #[n(4)]
    Reserve(#[n(0)] Reserve),
    /// The call was permitted.
    #[n(5)]
    Confirm(#[n(0)] Confirm),
    /// The call was reported, or will not be.
    #[n(6)]
    Settle(#[n(0)] Settle),
    /// A policy document starts or stops to hold for a definition's new sessions.
    #[n(7)]
    AttachPolicy(#[n(0)] AttachPolicy),
    /// A policy document holds for all sessions of the tenant from now on.
    #[n(8)]
    SetTenantPolicy(#[n(0)] SetTenantPolicy),
    /// It stops to hold.
    #[n(9)]
    RemoveTenantPolicy(#[n(0)] RemoveTenantPolicy),
}

impl PolicyCommand {
    /// What each kind says of itself.
    #[must_use]
    pub fn traits(&self) -> CommandTraits {
        use ScopeKind::{Catalogue, Ledger, Session};
        match self {
            Self::Authorize(_) => CommandTraits::of(Session, Begins).grows().may_need_ledger(),
            Self::ReportCall(_) => CommandTraits::of(Session, Ends).grows(),
            Self::ReportUsage(_) => CommandTraits::of(Session, Ends).grows().fills(),
            Self::RaiseCap(_) => CommandTraits::of(Session, Neither).shows(Shown::Session),
            Self::Reserve(_) => CommandTraits::of(Ledger, Neither),
            Self::Confirm(_) | Self::Settle(_) => CommandTraits::of(Ledger, Ends),
            Self::AttachPolicy(_) => CommandTraits::of(Catalogue, Neither),
            Self::SetTenantPolicy(_) | Self::RemoveTenantPolicy(_) => {
                CommandTraits::of(Catalogue, Neither).changes_tenancy(ChangedTenant::Own)
            }
        }
    }

    /// Where the ledger's answer goes; `None` for kinds that need none.
    pub fn limits_mut(&mut self) -> Option<&mut Option<LimitCheck>> {
        match self {
            Self::Authorize(call) => Some(&mut call.limits),
            Self::ReportCall(_)
            | Self::ReportUsage(_)
            | Self::RaiseCap(_)
            | Self::Reserve(_)
            | Self::Confirm(_)
            | Self::Settle(_)
            | Self::AttachPolicy(_)
            | Self::SetTenantPolicy(_)
            | Self::RemoveTenantPolicy(_) => None,
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
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct Authorize {
    /// A path such as `mcp:filesystem:write_file`.
    #[n(0)]
    pub capability: String,
    /// What it would be called with.
    #[n(1)]
    pub args: Args,
    /// What it is believed to cost.
    #[n(2)]
    pub estimate: Option<Micros>,
    /// The caller's name for the call.
    #[n(3)]
    pub call_id: String,
    /// The ledger's answer, if limits apply.
    #[n(4)]
    pub limits: Option<LimitCheck>,
    /// The mail that goes out in the same decision if the call is allowed; the call is then made and reported.
    #[n(5)]
    pub mail: Option<crate::delivery::Outgoing>,
}

/// A call was made.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct ReportCall {
    /// The call; without it, the oldest unreported one of the capability.
    #[n(0)]
    pub call_id: Option<String>,
    /// What was called.
    #[n(1)]
    pub capability: Option<String>,
    /// Whether it worked.
    #[n(2)]
    pub success: bool,
    /// What it cost, millionths of a US dollar.
    #[n(3)]
    pub cost: Micros,
    /// What it used.
    #[n(4)]
    pub tokens: u64,
}

/// Money or tokens were used, by no call in particular.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct ReportUsage {
    /// Money.
    #[n(0)]
    pub cost: Micros,
    /// Tokens that models have used, as the caller counts them.
    #[n(1)]
    pub tokens: u64,
}

/// A cap is set again.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct RaiseCap {
    /// The parameter: `cost_usd`, `tokens`.
    #[n(0)]
    pub param: String,
    /// Its new value, in the parameter's own unit.
    #[n(1)]
    pub value: u64,
}

/// Count a call before it is decided.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct Reserve {
    /// The session and call that it is for; stable over retries.
    #[n(0)]
    pub call: Digest,
    /// The rules whose limits are checked.
    #[n(1)]
    pub rules: Vec<LedgerRule>,
    /// Money held until the call is reported.
    #[n(2)]
    pub estimate: Micros,
}

/// The call was permitted.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct Confirm {
    /// As reserved.
    #[n(0)]
    pub call: Digest,
    /// As reserved.
    #[n(1)]
    pub rules: Vec<LedgerRule>,
    /// As reserved.
    #[n(2)]
    pub estimate: Micros,
    /// When it was reserved: the time at which it counts.
    #[n(3)]
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
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct Settle {
    /// As reserved; none for a call that never reserved anything.
    #[n(0)]
    pub call: Option<Digest>,
    /// The rules that are charged.
    #[n(1)]
    pub rules: Vec<LedgerRule>,
    /// What it cost, in the period of `at`.
    #[n(2)]
    pub cost: Micros,
    /// When it was reported.
    #[n(3)]
    pub at: Time,
    /// Whether the call was never permitted: then it does not count either.
    #[n(4)]
    pub release: bool,
}

impl Settle {
    /// The request id under which the effect of this number of a session is settled, so that it is settled once however
    /// often it is delivered. A report is named after its call, of which there is one; a release is named after the effect.
    #[must_use]
    pub fn request(&self, session: SessionId, number: u64) -> RequestId {
        match self.call {
            Some(call) if !self.release => Self::request_of(call),
            Some(_) | None => {
                let name = Digest::of_parts(&[b"settle", &session.0, &number.to_be_bytes()]);
                RequestId { id: format!("settle:{name}"), body: name }
            }
        }
    }

    /// The request id under which the report of a reserved call is settled. While its reply is remembered
    /// ([`REQUESTS_KEPT_MS`](crate::limits::REQUESTS_KEPT_MS)), a confirmation that arrives later counts the call and
    /// holds nothing for it.
    #[must_use]
    pub fn request_of(call: Digest) -> RequestId {
        RequestId { id: format!("settle:call:{call}"), body: call }
    }
}

/// A policy document is attached to a definition, or detached from it.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct AttachPolicy {
    /// The name of the definition.
    #[n(0)]
    pub definition: String,
    /// The policy document.
    #[n(1)]
    pub policy: String,
    /// Whether it is attached from now on; otherwise it is detached.
    #[n(2)]
    pub attached: bool,
    /// What the caller saw, see [`Definition::etag`](crate::catalogue::Definition::etag); empty if any will do.
    #[n(3)]
    pub etag: String,
}

/// A policy document holds for a tenant, in one version.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct SetTenantPolicy {
    /// The name of the definition that the document is.
    #[n(0)]
    pub name: String,
    /// Its version; `None` stands for the one that is active now.
    #[n(1)]
    pub version: Option<u32>,
    /// Drawn for the tenant; used if it has no key for its mail tokens yet.
    #[n(2)]
    pub key: Option<Sealed>,
}

/// A policy document stops to hold for a tenant.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct RemoveTenantPolicy {
    /// The name of the definition that the document is.
    #[n(0)]
    pub name: String,
}
