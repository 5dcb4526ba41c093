//! Ledgers: an answer that was lost is given again, a wrong one is not accepted, and every relayed effect counts.

use switchward_machine::Micros;
use switchward_scenario::{Asking, Broken, LimitAnswer, ShardIx, System};
use switchward_state::approval::ApprovalCommand;
use switchward_state::limits::RESERVATION_USABLE_MS;
use switchward_state::policy::{HeldSince, LedgerRow, LimitCheck, PolicyCommand, by_ledger};
use switchward_state::{Body, Command, Reason, Row};

use super::CarefulMemory;

/// A ledger's answer is first given in wrong forms: about other rules or another cost, too old,
/// without its reservation, and not at all. None of them may be accepted.
pub(super) fn mistrust(memory: &mut CarefulMemory, command: &Command) -> Result<(), Broken> {
    let Some(check) = attached(command) else { return Ok(()) };
    let mut wrong = vec![
        None,
        Some(LimitCheck { rules: Vec::new(), ..check.clone() }),
        Some(LimitCheck { estimate: check.estimate.plus(Micros(1)), ..check.clone() }),
        Some(check.clone().aged(RESERVATION_USABLE_MS)),
    ];
    if check.is_reserved() {
        wrong.push(Some(LimitCheck { held: Vec::new(), ..check }));
    }
    let before = memory.decisions();
    for check in wrong {
        let mut command = command.clone();
        command.take_along(check);
        let answer = memory.decide_at_home(&command)?;
        let stale = answer.as_ref().is_err_and(|refusal| refusal.reason == Reason::LimitsStale);
        if !stale || memory.decisions() != before {
            return Err(Broken(format!(
                "{command:?} must be refused as stale, but got the answer {answer:?}"
            )));
        }
    }
    Ok(())
}

/// Asks the ledgers again, as if their first answer had been lost on the way. Only the first question of the first
/// round reserves.
pub(super) fn ask_again(memory: &mut CarefulMemory, asking: &Asking<'_>) -> Result<(), Broken> {
    let first = asking.answer;
    let after = memory.decisions();
    let again = memory.ask_ledger(asking.command)?;
    let newly_reserved = held(first).is_some_and(|(reserved, _)| reserved);
    // Of several ledgers one may have had capacity before another had none; its reservation was given back.
    let given_back = !newly_reserved && several(first);
    if held(first) != held(&again)
        || (!given_back && memory.decisions() != after)
        || (asking.round == 0 && !given_back && newly_reserved == (asking.decisions == after))
    {
        return Err(Broken(format!("a ledger answered {first:?}, and the same question again {again:?}")));
    }
    Ok(())
}

/// A relayed effect has changed counters, and those keep no call that is outside every window.
pub(super) fn counts(
    memory: &CarefulMemory,
    at: ShardIx,
    before: &[LedgerRow],
    carried: &Command,
) -> Result<(), Broken> {
    let changed: Vec<LedgerRow> =
        ledgers(memory, at).into_iter().filter(|ledger| !before.contains(ledger)).collect();
    if changed.is_empty() {
        return Err(Broken(format!("{carried:?} was relayed without an effect on a ledger")));
    }
    let seen =
        |ledger: &LedgerRow| ledger.calls.iter().all(|call| memory.now().since_ms(*call) < ledger.window_ms);
    if changed.iter().all(seen) {
        return Ok(());
    }
    Err(Broken(format!("ledgers keep calls that are outside every window: {changed:?}")))
}

/// The counters of a shard, for comparing before and after.
pub(super) fn ledgers(memory: &CarefulMemory, at: ShardIx) -> Vec<LedgerRow> {
    let rows = memory.shards()[at].rows();
    rows.filter_map(|(_, row)| if let Row::Ledger(ledger) = row { Some(ledger.clone()) } else { None })
        .collect()
}

/// Whether the call is reserved, and since when in which ledgers; `None` if no limit applies.
fn held(asked: &LimitAnswer) -> Option<(bool, &[HeldSince])> {
    let check = asked.as_ref().ok()?.as_ref()?;
    Some((check.is_reserved(), &check.held))
}

/// Returns true if more than one ledger was asked.
fn several(asked: &LimitAnswer) -> bool {
    let check = asked.as_ref().ok().and_then(Option::as_ref);
    check.is_some_and(|check| by_ledger(&check.rules).len() > 1)
}

/// The ledger's answer that a call carries.
fn attached(command: &Command) -> Option<LimitCheck> {
    if let Body::Policy(PolicyCommand::Authorize(call)) = &command.body {
        call.limits.clone()
    } else if let Body::Approval(ApprovalCommand::DecideGate(decide)) = &command.body {
        decide.limits.clone()
    } else if let Body::Approval(ApprovalCommand::RecordReply(reply)) = &command.body {
        reply.limits.clone()
    } else {
        None
    }
}
