//! Policies: calls and their arguments, ledgers, limits and policy documents.

pub(crate) mod apply_calls;
pub(crate) mod apply_ledger;
mod args;
mod authorization;
mod call_grounds;
mod call_problem;
mod check;
mod command;
mod event;
mod ledger;
mod limits;
mod memory;
pub(crate) mod period;
mod rows;
mod shortage;

pub use args::{Args, BadArgs, canonical_of};
pub use authorization::{Authorized, CallEffect, LayerDecision, MatchedRule, Remaining};
pub use call_grounds::CallGrounds;
pub use call_problem::CallProblem;
pub use check::{check_limits, check_limits_in};
pub use command::{AttachPolicy, RemoveTenantPolicy, SetTenantPolicy};
pub use command::{Authorize, Confirm, PolicyCommand, RaiseCap, ReportCall, ReportUsage, Reserve, Settle};
pub use event::{PolicyEvent, PolicyFact};
pub(crate) use ledger::LimitLeft;
pub use ledger::{LedgerRow, Reservation, Spent};
pub use limits::{HeldSince, LedgerRule, LimitCheck, LimitOutcome, by_ledger};
pub use period::time_text;
pub use rows::{COST_OF_DOCUMENTS, PinnedPolicy, TenantPolicy};
pub use shortage::Shortage;
