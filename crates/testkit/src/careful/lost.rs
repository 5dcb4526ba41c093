//! What lapses: a ledger's reservation for a call that was lost because its server died before it decided, and an
//! approval that nobody used. Neither may count for longer than its time, however late it is swept.

use switchward_engine::policy::{Ledgers, explain};
use switchward_machine::{Digest, Limit, OpenId, TenantId, Time};
use switchward_scenario::{Broken, ShardIx, System};
use switchward_state::approval::Closed;
use switchward_state::catalogue::Settings;
use switchward_state::limits::RESERVATION_LAPSE_MS;
use switchward_state::policy::{Args, Authorize, LimitCheck, LimitOutcome};
use switchward_state::{Key, Kind, Row, View};

use super::CarefulMemory;

/// If the clock moves far enough for the reservation to lapse on the way: reserves in the ledger that
/// was asked last. The reservation must count at once.
pub(super) fn lose(memory: &mut CarefulMemory, to: Time) -> Result<(), Broken> {
    let far = to.since_ms(memory.now()) >= RESERVATION_LAPSE_MS;
    let Some((tenant, asked)) = memory.observer().asked.clone().filter(|_| far) else {
        return Ok(());
    };
    let before = remaining(memory, tenant, &asked)?;
    let Ledgers { rules, estimate, .. } = asked.clone();
    let rates = |limit: &Limit| matches!(limit, Limit::Rate { .. });
    let counts = estimate.0 > 0 || rules.iter().flat_map(|rule| &rule.limits).any(rates);
    let call = Digest::of(b"a call that is lost");
    let taken = memory.reserve(tenant, Ledgers { call, rules, estimate })?;
    let after = remaining(memory, tenant, &asked)?;
    let fits = |check: &LimitCheck| matches!(check.outcome, LimitOutcome::Available { .. });
    let reserved = matches!(&taken, Ok(Some(check)) if fits(check));
    if reserved && counts && before.outcome == after.outcome {
        return Err(Broken(format!("a reservation was made, but does not count: {taken:?} {after:?}")));
    }
    Ok(())
}

/// What a row that falls due counts for now: for a ledger, the capacity of the one that was asked last; for an
/// approval, whether it can be used. A lapsed row must not count, swept or not.
pub(super) fn counted(
    memory: &CarefulMemory,
    at: ShardIx,
    key: &Key,
) -> Result<Option<LimitOutcome>, Broken> {
    if key.is(Kind::Grant) && lapsed_at_hand(memory, at, key)? {
        return Err(Broken(format!("an approval is still usable, but has expired: {key:?}")));
    }
    let Some((tenant, asked)) = memory.observer().asked.as_ref().filter(|_| key.is(Kind::Ledger)) else {
        return Ok(None);
    };
    Ok(Some(remaining(memory, *tenant, asked)?.outcome))
}

/// Returns true if the call of an approval would be allowed because of it.
fn lapsed_at_hand(memory: &CarefulMemory, at: ShardIx, key: &Key) -> Result<bool, Broken> {
    let (shard, tenant) = (&memory.shards()[at], key.tenant_of());
    let (Some(Row::Grant(grant)), Some(id)) = (shard.row(key)?.as_deref().cloned(), key.session_of()) else {
        return Ok(false);
    };
    let gate = shard.row(&Key::closed(tenant, id, OpenId(grant.gate)))?;
    let Some(Row::Closed(Closed { open, .. })) = gate.as_deref() else { return Ok(false) };
    let Some(asked) = &open.body.call else { return Ok(false) };
    let args = Args::parse(&asked.args).map_err(|bad| Broken(bad.0))?;
    let (capability, estimate) = (asked.capability.clone(), Some(asked.estimate));
    let call = Authorize { capability, args, estimate, call_id: "again".into(), limits: None, mail: None };
    let explained = explain(shard, tenant, id, Settings::default(), None, &call, memory.now())?;
    Ok(explained.and_then(Result::ok).is_some_and(|explained| explained.granted))
}

fn remaining(memory: &CarefulMemory, tenant: TenantId, asked: &Ledgers) -> Result<LimitCheck, Broken> {
    memory.remaining_of_all(tenant, &asked.rules, asked.estimate)
}
