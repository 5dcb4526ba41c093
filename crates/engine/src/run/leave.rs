//! What a node's entry leaves behind is closed when a run leaves it.

use switchward_machine::{ExitIx, Micros, Node, Port, RunId, Trigger};
use switchward_state::approval::ApprovalEvent;
use switchward_state::delivery::EffectBody;
use switchward_state::limits::ROW_FUEL;
use switchward_state::policy::by_ledger;
use switchward_state::{ItemKind, Key, ListedItem, ReadRows as _};

use crate::acts;
use crate::turn::{Stop, Turn};

/// Returns the first exit of this port, in the order of the definition.
pub(crate) fn exit_on(node: &Node, port: &Port) -> Option<ExitIx> {
    let at = node.exits.iter().position(|exit| matches!(&exit.on, Trigger::Port(known) if known == port))?;
    u16::try_from(at).ok().map(ExitIx)
}

/// Closes all that belongs to the entry: children, gates, approvals that were not used, work, waits and timers.
pub(crate) fn void(turn: &mut Turn<'_, '_>, run: RunId) -> Result<(), Stop> {
    acts::abandon(turn, run)?;
    let session = turn.session()?;
    if session.items.is_empty() && session.grants.is_empty() {
        return Ok(());
    }
    let own = session.items.iter().filter(|listed| listed.run == run);
    let (gates, items): (Vec<&ListedItem>, Vec<&ListedItem>) =
        own.partition(|listed| listed.kind == ItemKind::Gate);
    let [gates, items] = [gates, items].map(|all| all.iter().map(|listed| listed.item).collect::<Vec<_>>());
    let all_grants = session.grants.clone();
    drop(session);
    let mut grants = Vec::new();
    for number in all_grants {
        turn.fuel.spend(ROW_FUEL);
        let row = turn.rows.grant_at(&Key::grant(turn.tenant(), turn.session_id()?, number))?;
        grants.extend(row.filter(|row| row.run == run).map(|_| number));
    }
    if gates.is_empty() && grants.is_empty() && items.is_empty() {
        return Ok(());
    }
    for number in &grants {
        release(turn, run, *number)?;
    }
    let of = (!items.is_empty()).then_some(run);
    turn.emit(ApprovalEvent::Voided { gates, grants, items, run: of })?;
    Ok(())
}

/// Gives back the money that an unused grant holds in a ledger.
pub(crate) fn release(turn: &mut Turn<'_, '_>, run: RunId, number: u64) -> Result<(), Stop> {
    let key = Key::grant(turn.tenant(), turn.session_id()?, number);
    let Some(grant) = turn.rows.grant_at(&key)? else { return Ok(()) };
    let (Some(held), rules) = (grant.reservation, grant.rules.clone()) else { return Ok(()) };
    drop(grant);
    for (process, rules) in by_ledger(&rules) {
        let (call, cost, at) = (Some(held), Micros(0), turn.now());
        turn.send(run, EffectBody::Settle { process, call, rules, cost, at, release: false })?;
    }
    Ok(())
}
