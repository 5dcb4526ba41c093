//! Counters that span sessions.

use switchward_machine::{Limit, Time};

use crate::limits::RESERVATION_LAPSE_MS;
use crate::policy::{LedgerRow, LedgerRule, PolicyEvent, Reservation};
use crate::{Key, Kind, Row, Scope, Site, ViewError, WriteRows};

#[expect(clippy::wildcard_enum_match_arm, reason = "the other events are sorted out before")]
pub(crate) fn apply(rows: &mut dyn WriteRows, site: &Site<'_>, event: &PolicyEvent) -> Result<(), ViewError> {
    match event {
        PolicyEvent::LedgerReserved { call, rules, estimate } => each(rows, site, rules, |row| {
            let held = Reservation { call: *call, at: site.at, estimate: *estimate, confirmed: false };
            row.hold(held);
        }),
        PolicyEvent::LedgerConfirmed { call, rules, estimate, at } => each(rows, site, rules, |row| {
            row.reservations.retain(|held| held.call != *call);
            row.calls.insert(row.calls.partition_point(|known| known <= at), *at);
            if estimate.0 > 0 {
                row.hold(Reservation { call: *call, at: *at, estimate: *estimate, confirmed: true });
            }
        }),
        PolicyEvent::LedgerSettled { call, rules, cost, at } => each(rows, site, rules, |row| {
            row.reservations.retain(|held| Some(held.call) != *call);
            if cost.0 > 0 {
                row.spend(*cost, *at);
            }
        }),
        PolicyEvent::Swept(key) => swept(rows, site, key),
        _ => Ok(()),
    }
}

/// Changes the row of every rule, which is created on first use.
fn each(
    rows: &mut dyn WriteRows,
    site: &Site<'_>,
    rules: &[LedgerRule],
    change: impl Fn(&mut LedgerRow),
) -> Result<(), ViewError> {
    let Scope::Ledger(process) = site.scope else { return Err(ViewError("the scope is no ledger".into())) };
    for rule in rules {
        let key = Key::ledger(site.tenant, process, &rule.role, &rule.capability);
        if rows.ledger_at(&key)?.is_none() {
            rows.put(key.clone(), Row::Ledger(LedgerRow::default()));
        }
        let row = rows.ledger_at_mut(&key)?;
        row.window_ms = rule.limits.iter().map(window).fold(row.window_ms, u64::max);
        change(row);
        row.prune(site.at);
    }
    Ok(())
}

fn window(limit: &Limit) -> u64 {
    match limit {
        Limit::Rate { window_ms, .. } => *window_ms,
        Limit::Money { .. } => 0,
    }
}

fn swept(rows: &mut dyn WriteRows, site: &Site<'_>, key: &[u8]) -> Result<(), ViewError> {
    let key = Key::from_bytes(key).ok_or_else(|| ViewError("a swept key is too short".into()))?;
    if [Kind::Request, Kind::Recorded, Kind::Mailed].into_iter().any(|kind| key.is(kind)) {
        rows.delete(key);
        return Ok(());
    }
    let row = rows.ledger_at_mut(&key)?;
    let lapsed = |at: Time| site.at.since_ms(at) >= RESERVATION_LAPSE_MS;
    row.reservations.retain(|held| held.confirmed || !lapsed(held.at));
    row.prune(site.at);
    Ok(())
}
