//! Policy: what a session's agent may call, in one fixed order.
//!
//! Frozen or paused; deny rules and closed lists of all layers; the session's budgets; a grant; the limits of every
//! matching rule of each layer's deciding list; then the strictest layer's ask or allow. Sources: checkpoint
//! processes, *Policy Configuration* and *Rate & Budget Limits*; semantics §1b and §7.

mod arguments;
mod assess;
mod explain;
mod judge;
mod limits;
mod plan;

pub(crate) use assess::cap as cap_of;
pub(crate) use assess::{
    Assessment, Place, assess, call_name, cap, capped, gate_name, machine_of, over_budget, used,
};
pub use explain::{Explanation, LimitState, LookedAt, explain, no_room};
pub(crate) use explain::{GRANTED, to_ask};
pub(crate) use judge::{Judged, Verdict, judge};
pub(crate) use limits::room_in;
pub use limits::{LedgerRule, LimitCheck, LimitOutcome, room};
pub(crate) use plan::{Asked, asked_call};
pub use plan::{Ledgers, Plan, plan};
