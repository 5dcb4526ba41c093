//! Limits are checked against the counters of a ledger.

use switchward_machine::{Limit, Micros, TenantId, Time};

use crate::policy::{LedgerRow, LedgerRule, LimitCheck, LimitLeft, LimitOutcome, Remaining};
use crate::{Key, ReadRows, View, ViewError};

/// Checks the limits of these rules now; all of them count in ledgers of the shard whose rows these are. Changes nothing.
/// `now` is a time of that shard; one before its last decision is moved up to it.
///
/// # Errors
/// A row cannot be read.
pub fn check_limits(
    view: &dyn View,
    tenant: TenantId,
    rules: &[LedgerRule],
    estimate: Micros,
    now: Time,
) -> Result<LimitCheck, ViewError> {
    let last = view.clock_at(&Key::clock())?.map_or(Time(0), |at| *at);
    check_limits_in(view, tenant, rules, estimate, now.max(last))
}

/// The same, of rows that a turn works on.
///
/// # Errors
/// A row cannot be read.
pub fn check_limits_in(
    rows: &dyn ReadRows,
    tenant: TenantId,
    rules: &[LedgerRule],
    estimate: Micros,
    now: Time,
) -> Result<LimitCheck, ViewError> {
    let mut remaining = Remaining::default();
    let say = |outcome| LimitCheck { rules: rules.to_vec(), estimate, age_ms: 0, outcome, held: Vec::new() };
    let empty = LedgerRow::default();
    for rule in rules {
        let row = rows.ledger_at(&Key::ledger(tenant, &rule.process, &rule.role, &rule.capability))?;
        let row = row.as_deref().unwrap_or(&empty);
        #[cfg(feature = "planted")]
        let confirmed = row.confirmed_only();
        #[cfg(feature = "planted")]
        let row = if planted!(rows, PendingNotCounted) { &confirmed } else { row };
        for limit in &rule.limits {
            match row.left(*limit, estimate, now) {
                LimitLeft::Calls(left) => {
                    remaining = remaining.least(Remaining { calls: Some(left), usd: None });
                }
                LimitLeft::Money(left) => {
                    remaining = remaining.least(Remaining { calls: None, usd: Some(left) });
                }
                LimitLeft::Full(until) => {
                    let money = matches!(limit, Limit::Money { .. });
                    let (capability, wait_ms) = (rule.described(), until.since_ms(now));
                    return Ok(say(LimitOutcome::Full { money, capability, wait_ms }));
                }
            }
        }
    }
    Ok(say(LimitOutcome::Available { remaining }))
}
