//! The observer that calls the checks.

use switchward_engine::policy::{Ledgers, Plan};
use switchward_machine::TenantId;
use switchward_scenario::{Answer, Broken, Memory, Moment, Observer, Shard, ShardIx};
use switchward_state::Command;
use switchward_state::policy::{LedgerRow, LimitOutcome};

use super::CarefulMemory;
use super::assistants::names_of_assistants;
use super::attached::attached;
use super::explained::{ExplainedCall, agrees, explained};
use super::leases::{lease_of_nothing, taken_over};
use super::ledgers::{ask_again, counts, ledgers, mistrust};
use super::log::Log;
use super::lost::{counted, lose};
use super::results::{Handed, handed, taken};
use super::rows::{look_after, look_before, restart};

/// Shards beside the catalogue's.
const SHARDS_BESIDE: usize = 3;

/// Creates an empty system with several shards that is checked at every step.
#[must_use]
pub fn careful() -> CarefulMemory {
    Memory::observed(Careful::default(), SHARDS_BESIDE)
}

/// Creates an empty system with several shards, without checks.
#[must_use]
pub fn apart() -> Memory {
    Memory::observed((), SHARDS_BESIDE)
}

/// Checks a [`Memory`], and keeps its logs.
#[derive(Debug, Clone, Default)]
pub struct Careful {
    pub(super) log: Log,
    /// The shards as the last restart left them.
    pub(super) restarted: Vec<Shard>,
    /// The last question to ledgers that reserved.
    pub(super) asked: Option<(TenantId, Ledgers)>,
    /// The requirements on the result that the submitted command brings, and the decisions before it.
    submitted: (Option<Handed>, u64),
    /// The explanation of the call that is about to be decided, and the decisions before it.
    deciding: (Option<ExplainedCall>, u64),
    /// The counters of the shard that an effect is about to reach.
    ledgers: Vec<LedgerRow>,
    /// What a due row counts for before it is swept.
    due: Option<LimitOutcome>,
}

impl Observer for Careful {
    fn observe(memory: &mut CarefulMemory, moment: Moment<'_>) -> Result<(), Broken> {
        match moment {
            Moment::Submitting(command) => submitting(memory, command),
            Moment::Submitted(command, answer) => submitted(memory, command, answer),
            Moment::LimitsChecked(asking) => {
                if let Plan::Reserve(ledgers) = memory.plan(asking.command)? {
                    memory.observer_mut().asked = Some((asking.command.tenant, ledgers));
                }
                ask_again(memory, asking)
            }
            Moment::Deciding(command) => {
                mistrust(memory, command)?;
                memory.observer_mut().deciding = (explained(memory, command)?, memory.decisions());
                Ok(())
            }
            Moment::Decided(command, answer) => {
                attached(memory, command, answer)?;
                let (explained, before) = std::mem::take(&mut memory.observer_mut().deciding);
                if memory.decisions() == before { Ok(()) } else { agrees(explained, command, answer) }
            }
            Moment::Logged(at, entry) => {
                memory.observer_mut().log.add(at, entry);
                Ok(())
            }
            Moment::Relaying(at, _) => {
                memory.observer_mut().ledgers = ledgers(memory, at);
                Ok(())
            }
            Moment::Relayed(at, command) => {
                let before = std::mem::take(&mut memory.observer_mut().ledgers);
                counts(memory, at, &before, command)
            }
            Moment::AlmostDue(at, sweep) | Moment::Settled(at, sweep) => sweep_in_vain(memory, at, sweep),
            Moment::Due(at, due) => {
                taken_over(memory, at, &due.key)?;
                memory.observer_mut().due = counted(memory, at, &due.key)?;
                Ok(())
            }
            Moment::Swept(at, due) => {
                if counted(memory, at, &due.key)? == memory.observer().due {
                    return Ok(());
                }
                Err(Broken(format!("an expired row still counted until it was swept: {due:?}")))
            }
            Moment::Advancing(to) => lose(memory, to),
            Moment::Advanced => restart(memory),
        }
    }
}

fn submitting(memory: &mut CarefulMemory, command: &Command) -> Result<(), Broken> {
    look_before(memory, command)?;
    lease_of_nothing(memory, command)?;
    names_of_assistants(memory, command)?;
    memory.observer_mut().submitted = (handed(memory, command)?, memory.decisions());
    Ok(())
}

fn submitted(memory: &mut CarefulMemory, command: &Command, answer: &Answer) -> Result<(), Broken> {
    let (handed, before) = std::mem::take(&mut memory.observer_mut().submitted);
    taken(handed, command, answer)?;
    look_after(memory, command, answer, before)
}

/// An early or repeated sweep changes nothing.
fn sweep_in_vain(memory: &mut CarefulMemory, at: ShardIx, sweep: &Command) -> Result<(), Broken> {
    let before = memory.decisions();
    if let Err(rejection) = memory.decide(at, sweep)? {
        return Err(Broken(format!("{sweep:?} was refused: {rejection:?}")));
    }
    if memory.decisions() == before {
        return Ok(());
    }
    Err(Broken(format!("{sweep:?} had nothing to do, but changed something")))
}
