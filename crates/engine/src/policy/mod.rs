//! Policy: what a session's agent may call, in one fixed order.
//!
//! The layers are the definition's own, the policy documents attached to it, and the tenant's.
//! Frozen or paused; deny rules and closed lists of all layers; the session's budgets; a grant; the limits of every
//! matching rule of each layer's deciding list; then the strictest layer's ask or allow. Sources: checkpoint
//! processes, *Policy Configuration* and *Rate & Budget Limits*; semantics §1b and §7.

mod arguments;
mod assess;
mod explain;
mod in_force;
mod judge;
mod limits;
mod plan;

pub(crate) use assess::{
    Assessment, AssessmentContext, Said, assess, call_name, gate_name, machine_of, over_budget, used,
};
pub use explain::{Explanation, LimitState, LookedAt, explain, limit_full_message};
pub(crate) use explain::{GRANTED, to_ask};
pub(crate) use in_force::{COST, COST_OF_DOCUMENTS, Cap, InForce, in_force, is_for};
pub use judge::LayerVerdict;
pub(crate) use judge::{Judged, Verdict, judge, named, voices};
pub(crate) use limits::check_limits_in;
pub use limits::{LedgerRule, LimitCheck, LimitOutcome, by_ledger, check_limits};
pub(crate) use plan::{Asked, asked_call};
pub use plan::{Ledgers, Plan, plan};
