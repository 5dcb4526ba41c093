//! Moves: nodes are left and entered only here, and a run that moves ends here. It goes on for as long as nobody is needed.
//! Runs that are abandoned end where they are given up: `acts/spawn.rs`, `session/switch_run.rs`.

use switchward_machine::{
    ActIx, EndReason, Ending, Exit, ExitIx, NoExit, Node, NodeIx, Port, RunId, Status, Target, Trigger,
};
use switchward_state::limits::{ENTRIES_MAX, TRAIL_BYTES_MAX, TURN_FUEL_OF_NEXT};
use switchward_state::run::{Deferral, EndComment, FaultCause, RunEvent};
use switchward_state::{ReadRows as _, ViewError};

use crate::acts::{self, Ran, operate};
use crate::approval::gates;
use crate::next::{Move, Next};
use crate::run::guards::{GuardResult, Looked};
use crate::run::leave::{exit_on, void};
use crate::run::{events, faults};
use crate::session::intent;
use crate::turn::{Stop, Turn};

/// What stands between two names of a cycle, bytes.
const ARROW_BYTES: usize = 4;

/// Does what a command has left to do, until nothing moves any more.
pub(crate) fn run(turn: &mut Turn<'_, '_>) -> Result<(), Stop> {
    while let Some(Move { run, entry, next, asker }) = turn.moves.pop_front() {
        if moved_on(turn, run, entry)? {
            continue;
        }
        if asker.is_some() {
            turn.asker = asker;
        }
        drive(turn, run, next)?;
    }
    Ok(())
}

/// Whether a run has ended or left its entry since this was to be its next move.
fn moved_on(turn: &Turn<'_, '_>, run: RunId, entry: Option<u32>) -> Result<bool, Stop> {
    let Some(entry) = entry else { return Ok(false) };
    let at = turn.run(run)?;
    Ok(at.ending.is_some() || at.entry != entry)
}

/// Goes on until nothing of this run moves any more: into a child that begins, at a child's end in the run that called it, and with
/// the end of a session's run into the next one.
fn drive(turn: &mut Turn<'_, '_>, run: RunId, next: Next) -> Result<(), Stop> {
    let (mut run, mut next) = (run, next);
    loop {
        next = match next {
            Next::Enter(node) => enter(turn, run, node)?,
            // All that follows begins with an act or with a guard.
            Next::Begin(_) if turn.fuel.is_used_up() => Next::Fault(FaultCause::TurnFuel.into()),
            Next::Begin(act) => acts::begin(turn, run, act)?,
            Next::Ended(port) => ended(turn, run, port)?,
            Next::Settle(port) => settle(turn, run, port)?,
            Next::Event => tried(turn, run)?,
            Next::Judged => judged(turn, run)?,
            Next::Again => {
                turn.emit(RunEvent::Restarted { run, asked: false })?;
                Next::Begin(ActIx(0))
            }
            Next::Try(exit) => held(turn, run, exit)?,
            Next::Take(exit) => leave(turn, run, exit)?,
            Next::Fault(fault) => faults::handle(turn, run, fault)?,
            Next::Descend(child) => {
                run = child;
                Next::Enter(turn.machine(&*turn.run(child)?)?.start)
            }
            Next::End(ending, comment) => match over(turn, run, ending, comment)? {
                None => return Ok(()),
                Some((other, next)) => {
                    run = other;
                    next
                }
            },
            Next::Chosen(names) => match intent::begin(turn, &names)? {
                None => return Ok(()),
                Some((other, next)) => {
                    run = other;
                    next
                }
            },
            Next::Rest => return Ok(()),
        }
    }
}

fn enter(turn: &mut Turn<'_, '_>, run: RunId, node: NodeIx) -> Result<Next, Stop> {
    turn.emit(RunEvent::Entered { run, node })?;
    let at = turn.run(run)?;
    turn.trail.push((at.machine, node));
    if at.drained > ENTRIES_MAX {
        return Ok(Next::End(Ending::failed(EndReason::DrainLimit), cycle(turn)?.into()));
    }
    let machine = turn.machine(&at)?;
    drop(at);
    events::take_early(turn, run, node_at(&machine, node)?)?;
    Ok(Next::Begin(ActIx(0)))
}

/// Tries the exits that an event may take: those whose guards ask for something.
fn tried(turn: &mut Turn<'_, '_>, run: RunId) -> Result<Next, Stop> {
    let at = turn.run(run)?;
    let machine = turn.machine(&at)?;
    let node = node_at(&machine, at.node)?;
    drop(at);
    choose(turn, run, node, true).map(|taken| taken.unwrap_or(Next::Rest))
}

/// A judgement has come: the choice that waits for it begins again.
fn judged(turn: &mut Turn<'_, '_>, run: RunId) -> Result<Next, Stop> {
    match turn.run(run)?.choice.as_ref().map(|choice| choice.event) {
        None => Ok(Next::Rest),
        Some(true) => tried(turn, run),
        Some(false) => settle(turn, run, Port::Done),
    }
}

/// The first exit whose guard holds, of all that the end of the body may take, or of those that listen to events. The
/// walk stops at one that only a judge can decide until the judge has answered.
fn choose(turn: &mut Turn<'_, '_>, run: RunId, node: &Node, event: bool) -> Result<Option<Next>, Stop> {
    let exits = tried_exits(node, turn.run(run)?.act, event);
    if exits.is_empty() {
        return Ok(None);
    }
    let looked = Looked::at(turn, run)?;
    let before = turn.run(run)?.choice.clone();
    let known = before.as_ref().map(|choice| choice.judged.as_slice()).unwrap_or_default();
    for (at, exit) in exits {
        let at = position(at)?;
        let verdict = looked.verdict(at, &exit.guard, known, &mut turn.patterns);
        // An unknown part of it would count as one that does not hold.
        if turn.fuel.is_used_up() {
            return Ok(Some(Next::Fault(FaultCause::TurnFuel.into())));
        }
        match verdict {
            GuardResult::Pass => return Ok(Some(Next::Try(at))),
            GuardResult::Fail => {}
            GuardResult::Error(fault) => return Ok(Some(Next::Fault(fault))),
            GuardResult::Pending(asked) => {
                let requester = turn.requester();
                turn.emit(RunEvent::ChoicePending { run, event, requester })?;
                acts::ask_judge(turn, run, at, asked)?;
                return Ok(Some(Next::Rest));
            }
        }
    }
    if before.is_some_and(|choice| choice.event == event) {
        turn.emit(RunEvent::ChoiceOver { run })?;
    }
    Ok(None)
}

/// The exits that are tried, in their order, each with its position: those that need no name, and after the end of work
/// whose result need not name an exit, the only one that it could have named.
fn tried_exits(node: &Node, act: ActIx, event: bool) -> Vec<(usize, &Exit)> {
    let all = || node.exits.iter().enumerate();
    let listens = |exit: &Exit| match exit.on {
        Trigger::Auto { event: too } => too || !event,
        Trigger::Answer(_) | Trigger::Port(_) | Trigger::Agent(_) => false,
    };
    let lone = !event && node.acts.get(usize::from(act.0)).is_some_and(|act| act.kind.takes_lone_exit());
    let named = all().filter(|(_, exit)| lone && exit.agent().is_some());
    all().filter(|&(_, exit)| listens(exit)).chain(named).collect()
}

/// The nodes that a drain goes round, in their order: all of them, or of very many the first and how many more there are.
fn cycle(turn: &Turn<'_, '_>) -> Result<FaultCause, Stop> {
    let Some((last, before)) = turn.trail.split_last() else {
        return Ok(FaultCause::Drain { states: Vec::new(), more: 0 });
    };
    let from = before.iter().rposition(|node| node == last).unwrap_or(0);
    let (mut states, mut bytes) = (Vec::new(), 0);
    for (at, (machine, node)) in turn.trail.iter().enumerate().skip(from) {
        let machine = turn.rows.machine(turn.tenant(), *machine)?;
        let name = machine.as_ref().and_then(|machine| machine.node(*node)).map_or("", |node| &node.name);
        if bytes + name.len() > TRAIL_BYTES_MAX {
            let more = u32::try_from(turn.trail.len() - at).unwrap_or(u32::MAX);
            return Ok(FaultCause::Drain { states, more });
        }
        bytes += name.len() + if states.is_empty() { 0 } else { ARROW_BYTES };
        states.push(name.to_owned());
    }
    Ok(FaultCause::Drain { states, more: 0 })
}

/// An act of the body has ended: the body goes on as it is wired, or ends.
fn ended(turn: &mut Turn<'_, '_>, run: RunId, port: Port) -> Result<Next, Stop> {
    let at = turn.run(run)?;
    let machine = turn.machine(&at)?;
    let node = node_at(&machine, at.node)?;
    let wired = node
        .acts
        .get(usize::from(at.act.0))
        .and_then(|act| act.then.iter().find(|(known, _)| *known == port).map(|(_, next)| *next));
    drop(at);
    let Some(next) = wired else { return Ok(Next::Settle(port)) };
    turn.emit(RunEvent::ActBegun { run, act: next })?;
    Ok(Next::Begin(next))
}

/// Chooses the exit of a body that has ended.
fn settle(turn: &mut Turn<'_, '_>, run: RunId, port: Port) -> Result<Next, Stop> {
    let at = turn.run(run)?;
    let machine = turn.machine(&at)?;
    let node = node_at(&machine, at.node)?;
    let rests = at.rests;
    drop(at);
    if port != Port::Done {
        return Ok(match exit_on(node, &port) {
            Some(exit) => Next::Try(exit),
            None => {
                let ending = Ending::failed(EndReason::PortUnconnected);
                Next::End(ending, FaultCause::Unconnected { port, state: node.name.clone() }.into())
            }
        });
    }
    if let Some(next) = choose(turn, run, node, false)? {
        return Ok(next);
    }
    match &node.on_no_exit {
        NoExit::Stay if rests => Ok(Next::Rest),
        NoExit::Stay => {
            turn.emit(RunEvent::Rested { run, refused: None })?;
            Ok(Next::Rest)
        }
        NoExit::End(ending) => Ok(Next::End(ending.clone(), EndComment::default())),
        NoExit::Fail(EndReason::NoTransition) => {
            let cause = FaultCause::NoTransition { state: node.name.clone() };
            Ok(Next::End(Ending::failed(EndReason::NoTransition), cause.into()))
        }
        NoExit::Fail(reason) => Ok(Next::End(Ending::failed(*reason), EndComment::default())),
    }
}

fn position(at: usize) -> Result<ExitIx, ViewError> {
    u16::try_from(at).map(ExitIx).map_err(|_| ViewError("a node has too many exits".into()))
}

fn node_at(machine: &switchward_machine::Machine, node: NodeIx) -> Result<&Node, ViewError> {
    machine.node(node).ok_or_else(|| ViewError(format!("machine has no node {node:?}")))
}

/// An exit that a person may hold back.
fn held(turn: &mut Turn<'_, '_>, run: RunId, exit: ExitIx) -> Result<Next, Stop> {
    let at = turn.run(run)?;
    let machine = turn.machine(&at)?;
    let node = node_at(&machine, at.node)?;
    drop(at);
    let hold = node.exits.get(usize::from(exit.0)).and_then(|found| found.hold);
    let Some(hold) = hold else { return Ok(Next::Take(exit)) };
    acts::drop_judges(turn, run)?;
    gates::attempt(turn, run, exit, hold, &node.boundary)
}

fn leave(turn: &mut Turn<'_, '_>, run: RunId, exit: ExitIx) -> Result<Next, Stop> {
    let row = turn.run(run)?;
    let (at, machine) = (row.node, turn.machine(&row)?);
    drop(row);
    let found = node_at(&machine, at)?.exits.get(usize::from(exit.0));
    let found = found.ok_or_else(|| ViewError(format!("node {at:?} has no exit {exit:?}")))?;
    void(turn, run)?;
    turn.emit(RunEvent::Left { run, node: at, exit })?;
    if let Ran::Fault(fault) = operate(turn, run, &found.ops)? {
        return Ok(Next::Fault(fault));
    }
    Ok(match &found.to {
        Target::Node(to) => Next::Enter(*to),
        Target::End(ending) => Next::End(ending.clone(), EndComment::default()),
    })
}

/// A run is over. Gives the run that goes on then, and what it does: the one that has called it, else the next one of its
/// session. In a paused session that one enters its first node, and goes on when the session is resumed.
fn over(
    turn: &mut Turn<'_, '_>,
    run: RunId,
    ending: Ending,
    comment: EndComment,
) -> Result<Option<(RunId, Next)>, Stop> {
    void(turn, run)?;
    turn.emit(RunEvent::Ended { run, ending: ending.clone(), comment: comment.clone() })?;
    if let Some(parent) = turn.run(run)?.parent {
        let next = acts::child_ended(turn, parent, run, &ending, comment)?;
        return Ok(Some((parent.run, next)));
    }
    let session = turn.session()?;
    let next = session.queue.first().copied().filter(|_| session.root == run);
    drop(session);
    let Some(next) = next else { return Ok(None) };
    turn.fuel.refill(TURN_FUEL_OF_NEXT);
    turn.emit(RunEvent::Activated { run: next })?;
    let start = turn.machine(&*turn.run(next)?)?.start;
    if turn.session()?.status != Status::Suspended {
        return Ok(Some((next, Next::Enter(start))));
    }
    enter(turn, next, start)?;
    let requester = Some(turn.requester());
    turn.emit(RunEvent::Deferred { run: next, due: Deferral::Begin, requester })?;
    Ok(None)
}
