//! A run: callers work under faults; then all faults end and everything comes to rest; then time passes and limits are
//! used up.

use switchward_engine::decide;
use switchward_machine::{SessionId, Time};
use switchward_state::planted::Bug;
use switchward_testkit::{Counts, Rng, Rows};

use crate::callers::{Begins, Caller, Todo};
use crate::commands::{CALLS_MAX, COUNTERS, install};
use crate::ledger_calls::Counter;
use crate::plan::Plan;
use crate::shard::Shard;
use crate::simulation::{Checked, Event, Simulation};

/// How long callers work under faults, milliseconds.
const LASTS_MS: u64 = 4_000;
/// Everything must have come to rest after this time without faults, milliseconds.
const REST_MS: u64 = 30_000;
/// How much time passes until reservations have lapsed, and until calls that nobody reports are given up, milliseconds.
const LAPSE_MS: u64 = 11 * 60_000;
const LONG_MS: u64 = 25 * 3_600_000;
/// Calls that use up a budget at most.
const SPENT_MAX: usize = 50;

/// What a run has shown.
pub(crate) struct Outcome {
    pub(crate) hash: u64,
    pub(crate) seen: Counts,
}

/// Rows with all machines. No two threads should play with the same: they would count the references of the same allocations.
pub(crate) fn installed() -> Rows {
    let mut rows = Rows::default();
    let decided = decide(&install(), &rows, Time(1)).unwrap();
    rows.apply(decided.changes);
    rows
}

/// Plays the run of a seed, which begins with these rows, with a bug in all replicas if one is given.
///
/// # Errors
/// What is wrong, and when.
pub(crate) fn play(rows: &Rows, seed: u64, bug: Option<Bug>) -> Result<Outcome, String> {
    let mut simulation = begin(rows, seed, bug);
    let done = run(&mut simulation);
    done.map_err(|why| format!("after {} ms: {why}", simulation.now))?;
    let entries: usize = simulation.shards.iter().map(Shard::entries).sum();
    let (hash, mut seen) = (simulation.oracle.trace.hash(), simulation.oracle.seen);
    seen.add_many("- entries committed", u64::try_from(entries).unwrap());
    Ok(Outcome { hash, seen })
}

fn begin(rows: &Rows, seed: u64, bug: Option<Bug>) -> Simulation {
    let mut rng = Rng::new(seed);
    let (count, servers) = (2 + rng.below(3), 2 + rng.below(2));
    let shards = (0..count).map(|number| Shard::new(number, servers, rows, bug)).collect();
    let mut simulation = Simulation::new(rng, shards, servers);
    let first = [["register", COUNTERS[0]], [COUNTERS[1], "post"], [COUNTERS[0], "nap-1800"]];
    for (number, definitions) in first.into_iter().enumerate() {
        let todo = definitions.map(|definition| Todo::Start { definition: definition.to_owned() });
        simulation.callers.push(Caller::new(number, todo));
        simulation.after(1, Event::Step { caller: number });
    }
    (0..count).for_each(|shard| simulation.after(5, Event::Tick { shard }));
    simulation.after(100, Event::Fault);
    simulation
}

fn run(simulation: &mut Simulation) -> Checked {
    while simulation.now < LASTS_MS {
        simulation.next()?;
    }
    simulation.plan = Plan::healed();
    // A clock that is behind its shard would let the shard's time stand still for minutes.
    simulation.clocks.agree();
    simulation.callers.iter_mut().for_each(|caller| caller.begins = Begins::Never);
    rest(simulation)?;
    (0..simulation.shards.len()).try_for_each(|at| simulation.all_answered(at))?;
    simulation.ledgers_are_exact()?;
    simulation.naps_are_over()?;
    pass(simulation, LAPSE_MS)?;
    simulation.no_reservation_is_left()?;
    if simulation.rng.once_in(4) {
        use_up(simulation)?;
        simulation.ledgers_are_exact()?;
        simulation.limits_are_used_up()?;
    }
    if simulation.rng.once_in(4) {
        pass(simulation, LONG_MS)?;
        simulation.nothing_is_held()?;
    }
    let Simulation { shards, oracle, .. } = simulation;
    shards.iter_mut().try_for_each(|shard| shard.compare(oracle))
}

/// Goes on until nothing is left to do.
fn rest(simulation: &mut Simulation) -> Checked {
    let until = simulation.now + REST_MS;
    let mut look = simulation.now;
    loop {
        simulation.next()?;
        if simulation.now < look {
            continue;
        }
        look = simulation.now + 50;
        let Some(why) = simulation.pending() else { return Ok(()) };
        if simulation.now >= until {
            return Err(format!("nothing comes to rest: {why}"));
        }
    }
}

/// Lets time pass.
fn pass(simulation: &mut Simulation, ms: u64) -> Checked {
    simulation.now += ms;
    rest(simulation)
}

/// Callers make calls until none is permitted.
fn use_up(simulation: &mut Simulation) -> Checked {
    for process in COUNTERS {
        let session = start(simulation, process)?;
        let bash = || Todo::Call { session, capability: "bash" };
        simulation.callers[1].next.extend((0..=CALLS_MAX).map(|_| bash()));
        rest(simulation)?;
        let pay = Counter { process: process.to_owned(), capability: "pay".to_owned() };
        for _ in 0..SPENT_MAX {
            let before = simulation.oracle.calls.counted(&pay).len();
            let session = start(simulation, process)?;
            simulation.callers[0].next.push_back(Todo::Call { session, capability: "pay" });
            rest(simulation)?;
            if simulation.oracle.calls.counted(&pay).len() == before {
                break;
            }
        }
    }
    Ok(())
}

/// A caller starts a session of this definition.
fn start(simulation: &mut Simulation, definition: &str) -> Result<SessionId, String> {
    let known = simulation.sessions.len();
    simulation.callers[0].next.push_back(Todo::Start { definition: definition.to_owned() });
    rest(simulation)?;
    let started = simulation.sessions.get(known).map(|known| known.id);
    started.ok_or_else(|| format!("no session of {definition} was started"))
}
