//! Limits that span sessions: what is asked of a ledger, and what it says.

use minicbor::{CborLen, Decode, Encode};
use switchward_machine::{Limit, Micros, TenantId, Time};

use crate::reply::Remaining;
use crate::state::{LedgerRow, Room};
use crate::working::Working;
use crate::{Key, Reason, View, ViewError};

/// A rule's counters, and the limits that must have room in them.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct LedgerRule {
    /// The policy's role.
    #[n(0)]
    pub role: String,
    /// The rule's pattern.
    #[n(1)]
    pub capability: String,
    /// All must have room.
    #[n(2)]
    pub limits: Vec<Limit>,
}

/// What a ledger says of a call.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct LimitCheck {
    /// The rules that were asked about.
    #[n(0)]
    pub rules: Vec<LedgerRule>,
    /// What the call is believed to cost.
    #[n(1)]
    pub estimate: Micros,
    /// When.
    #[n(2)]
    pub at: Time,
    /// Whether there is room.
    #[n(3)]
    pub outcome: LimitOutcome,
}

/// Whether the limits have room.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum LimitOutcome {
    /// They have, and this is what is left.
    #[n(0)]
    Room {
        /// After this call where it was reserved, before it where it was only looked at.
        #[n(0)]
        remaining: Remaining,
        /// Whether the call holds its place.
        #[n(1)]
        reserved: bool,
    },
    /// One has none.
    #[n(1)]
    Full {
        /// Whether it is money; otherwise it is a rate.
        #[n(0)]
        money: bool,
        /// The rule's pattern.
        #[n(1)]
        capability: String,
        /// When there may be room again.
        #[n(2)]
        until: Time,
    },
}

impl LimitOutcome {
    /// The reason code of a limit without room.
    #[must_use]
    pub fn reason(money: bool) -> Reason {
        if money { Reason::BudgetExhausted } else { Reason::RateLimited }
    }
}

/// Whether the limits of these rules have room now. Changes nothing.
///
/// # Errors
/// A row cannot be read.
pub fn room(
    view: &dyn View,
    tenant: TenantId,
    process: &str,
    rules: &[LedgerRule],
    estimate: Micros,
    now: Time,
) -> Result<LimitCheck, ViewError> {
    room_in(&Working::new(view), tenant, process, rules, estimate, now)
}

pub(crate) fn room_in(
    rows: &Working<'_>,
    tenant: TenantId,
    process: &str,
    rules: &[LedgerRule],
    estimate: Micros,
    now: Time,
) -> Result<LimitCheck, ViewError> {
    let mut remaining = Remaining::default();
    let say = |outcome| LimitCheck { rules: rules.to_vec(), estimate, at: now, outcome };
    let empty = LedgerRow::default();
    for rule in rules {
        let row = rows.ledger_at(&Key::ledger(tenant, process, &rule.role, &rule.capability))?;
        let row = row.as_deref().unwrap_or(&empty);
        for limit in &rule.limits {
            match row.room(*limit, estimate, now) {
                Room::Calls(left) => {
                    remaining.calls = Some(remaining.calls.map_or(left, |least| least.min(left)))
                }
                Room::Money(left) => {
                    remaining.usd = Some(remaining.usd.map_or(left, |least| least.min(left)))
                }
                Room::Full(until) => {
                    let money = matches!(limit, Limit::Money { .. });
                    let capability = rule.capability.clone();
                    return Ok(say(LimitOutcome::Full { money, capability, until }));
                }
            }
        }
    }
    Ok(say(LimitOutcome::Room { remaining, reserved: false }))
}
