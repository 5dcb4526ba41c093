//! Queries about calls and their limits.

use minicbor::{CborLen, Decode, Encode};
use switchward_engine::policy::{Explanation, explain};
use switchward_machine::{Micros, SessionId, TenantId, Time};
use switchward_shard::StateView;
use switchward_state::catalogue::Settings;
use switchward_state::policy::{Args, Authorize, LedgerRule, LimitCheck, check_limits};
use switchward_state::run::RunAddress;
use switchward_state::{Rejection, Scope, ViewError};

use crate::ask::{Ask, Evaluate, Source};

/// A query about calls and their limits.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum PolicyQuery {
    /// What would be decided about a call.
    #[n(0)]
    Explain(#[n(0)] Box<ExplainCall>),
    /// What is left of a limit.
    #[n(1)]
    Ledger(#[n(0)] CheckLedger),
}

/// What would be decided about a call of a session, limits apart. Answers `None` if the session does not exist, and a refusal
/// if no active run is the one that would call.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct ExplainCall {
    /// The tenant that owns the session.
    #[n(0)]
    pub tenant: TenantId,
    /// The session that would call.
    #[n(1)]
    pub session: SessionId,
    /// The tenant's switches as they are now.
    #[n(2)]
    pub settings: Settings,
    /// What would be called.
    #[n(3)]
    pub capability: String,
    /// The call's arguments.
    #[n(4)]
    pub args: Args,
    /// What the call is believed to cost.
    #[n(5)]
    pub estimate: Option<Micros>,
    /// The time by the shard's clock; grants and limits are judged by it.
    #[n(6)]
    pub now: Time,
    /// The run that would call; `None`: the only active run that waits for no other.
    #[n(7)]
    pub address: Option<RunAddress>,
}

impl Evaluate for ExplainCall {
    type Answer = Option<Result<Explanation, Rejection>>;

    fn evaluate(&self, rows: &StateView) -> Result<Self::Answer, ViewError> {
        let authorize = Authorize {
            capability: self.capability.clone(),
            args: self.args.clone(),
            estimate: self.estimate,
            call_id: String::new(),
            limits: None,
            mail: None,
        };
        let address = self.address.as_ref();
        rows.consistent(|rows| {
            explain(rows, self.tenant, self.session, self.settings, address, &authorize, self.now)
        })
    }
}

impl Ask for ExplainCall {
    fn source(&self) -> Source {
        Source::session(self.session)
    }
}

/// What is left of the limits of rules, all of them in one ledger.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct CheckLedger {
    /// The tenant that the ledger belongs to.
    #[n(0)]
    pub tenant: TenantId,
    /// The rules that are checked, all of the same process.
    #[n(1)]
    pub rules: Vec<LedgerRule>,
    /// What the next call is believed to cost.
    #[n(2)]
    pub estimate: Micros,
    /// The time by the shard's clock; it says which windows are open.
    #[n(3)]
    pub now: Time,
}

impl CheckLedger {
    /// The shard of the ledger of a definition, or of the tenant as a whole.
    pub fn source_of(tenant: TenantId, process: &str) -> Source {
        Scope::Ledger(process.to_owned()).bucket(tenant).map_or(Source::Catalogue, Source::Bucket)
    }
}

impl Evaluate for CheckLedger {
    type Answer = LimitCheck;

    fn evaluate(&self, rows: &StateView) -> Result<Self::Answer, ViewError> {
        check_limits(rows, self.tenant, &self.rules, self.estimate, self.now)
    }
}

impl Ask for CheckLedger {
    fn source(&self) -> Source {
        let process = self.rules.first().map_or("", |rule| rule.process.as_str());
        Self::source_of(self.tenant, process)
    }
}
