//! Policy: what a session's agent may call, in one fixed order.
//!
//! The layers are the definition's own, the policy documents attached to it, and the tenant's.
//! Frozen or paused; deny rules and closed lists of all layers; the session's budgets; a grant; the limits of every
//! matching rule of each layer's deciding list; then the strictest layer's ask or allow. See
//! `docs/policies.md#how-the-layers-compose`.

pub(crate) mod arguments;
pub(crate) mod assess;
pub(crate) mod attached;
pub(crate) mod authorize;
pub(crate) mod explain;
pub(crate) mod in_force;
pub(crate) mod judge;
pub(crate) mod ledger;
pub(crate) mod plan;
pub(crate) mod policies;
pub(crate) mod public;
pub(crate) mod raise_cap;
pub(crate) mod report;
pub(crate) use switchward_state::Reply;
use switchward_state::policy::PolicyCommand;

use crate::turn::{Stop, Turn};

pub(crate) use assess::{
    Assessment, AssessmentContext, Grounds, assess, call_name, gate_name, machine_of, used,
};
pub use explain::{Explanation, LimitState, LookedAt, explain};
pub(crate) use in_force::{COST, Cap, InForce, in_force, is_for};
pub(crate) use judge::{Judged, PolicyDecision, judge};
pub(crate) use plan::{GrantPlan, asked_call};
pub use plan::{Ledgers, Plan, plan};

/// Runs a command of this aggregate.
pub(crate) fn run_command(turn: &mut Turn<'_, '_>, command: &PolicyCommand) -> Result<Reply, Stop> {
    match command {
        PolicyCommand::Authorize(call) => authorize::run(turn, call),
        PolicyCommand::ReportCall(report) => report::call(turn, report),
        PolicyCommand::ReportUsage(report) => report::usage(turn, report),
        PolicyCommand::RaiseCap(raise) => raise_cap::run(turn, raise),
        PolicyCommand::Reserve(reserve) => ledger::reserve(turn, reserve),
        PolicyCommand::Confirm(confirm) => ledger::confirm(turn, confirm),
        PolicyCommand::Settle(settle) => ledger::settle(turn, settle),
        PolicyCommand::AttachPolicy(attach) => policies::attach(turn, attach),
        PolicyCommand::SetTenantPolicy(set) => policies::set(turn, set),
        PolicyCommand::RemoveTenantPolicy(remove) => policies::remove(turn, remove),
    }
}
