//! Limits are checked against the counters of a ledger.

use switchward_machine::{Limit, Micros, TenantId, Time};

use crate::policy::{LedgerRow, LedgerRule, LimitCheck, LimitLeft, LimitOutcome, Remaining};
use crate::{Key, View, ViewError, Working};

/// Checks the limits of these rules now; all of them count in ledgers of the shard whose rows these are. Changes nothing.
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
    check_limits_in(&Working::new(view), tenant, rules, estimate, now)
}

/// The same, of rows that a turn works on.
///
/// # Errors
/// A row cannot be read.
pub fn check_limits_in(
    rows: &Working<'_>,
    tenant: TenantId,
    rules: &[LedgerRule],
    estimate: Micros,
    now: Time,
) -> Result<LimitCheck, ViewError> {
    let mut remaining = Remaining::default();
    let say = |outcome| LimitCheck { rules: rules.to_vec(), estimate, at: now, outcome };
    let empty = LedgerRow::default();
    for rule in rules {
        let row = rows.ledger_at(&Key::ledger(tenant, &rule.process, &rule.role, &rule.capability))?;
        let row = row.as_deref().unwrap_or(&empty);
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
                    return Ok(say(LimitOutcome::Full { money, capability: rule.described(), until }));
                }
            }
        }
    }
    Ok(say(LimitOutcome::Available { remaining, reserved: false }))
}
