//! Moves: nodes are left and entered and runs end only here. A run goes on for as long as nobody is needed.

use switchward_machine::{
    ActIx, Boundary, Ending, Exit, ExitIx, NoExit, Node, NodeIx, Outcome, Port, RunId, Target, Trigger,
};

use crate::acts::{self, Ran, operate};
use crate::events;
use crate::faults::{self, Fault};
use crate::gates;
use crate::guards::{Looked, Verdict};
use crate::intent;
use crate::limits::{ENTRIES_MAX, TRAIL_BYTES_MAX};
use crate::policy::by_ledger;
use crate::state::{Due, EffectBody};
use crate::turn::{Stop, Turn};
use crate::{Event, Flow, Key, ViewError};

/// What a run does next.
pub(crate) enum Next {
    /// A node is entered.
    Enter(NodeIx),
    /// A part of the node's body begins.
    Begin(ActIx),
    /// The current part has ended with this port.
    Ended(Port),
    /// The body has ended with this port.
    Settle(Port),
    /// An event has come while the node rests or waits: the exits that listen to events are tried.
    Event,
    /// The body begins again.
    Again,
    /// A judgement has come that the choice of an exit waits for.
    Judged,
    /// An exit is tried: if it is held, a person is asked before it is taken.
    Try(ExitIx),
    /// An exit is taken.
    Take(ExitIx),
    /// Something has gone wrong.
    Fault(Fault),
    /// A child begins, and this run waits for it.
    Descend(RunId),
    /// The run is over.
    End(Ending, String),
    /// Nothing moves without somebody or something outside.
    Rest,
}

/// Goes on until nothing moves any more: into a child that begins, at a child's end in the run that called it, and with
/// the end of a session's run into the next one.
pub(crate) fn drive(turn: &mut Turn<'_, '_>, run: RunId, next: Next) -> Result<(), Stop> {
    let (mut run, mut next) = (run, next);
    loop {
        next = match next {
            Next::Enter(node) => enter(turn, run, node)?,
            Next::Begin(act) => acts::begin(turn, run, act)?,
            Next::Ended(port) => ended(turn, run, port)?,
            Next::Settle(port) => settle(turn, run, port)?,
            Next::Event => tried(turn, run)?,
            Next::Judged => judged(turn, run)?,
            Next::Again => {
                turn.emit(Flow::Restarted { run, asked: false })?;
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
            Next::Rest => return Ok(()),
        }
    }
}

/// Takes an exit of the node that the run stands in.
pub(crate) fn take(turn: &mut Turn<'_, '_>, run: RunId, exit: ExitIx) -> Result<(), Stop> {
    drive(turn, run, Next::Take(exit))
}

/// What was due happens.
pub(crate) fn go_on(turn: &mut Turn<'_, '_>, run: RunId, due: Due) -> Result<(), Stop> {
    let next = match due {
        Due::Take(exit) => Next::Take(exit),
        Due::End(ending) => Next::End(ending, String::new()),
        Due::Ended(port) => Next::Ended(port),
        Due::Again => Next::Again,
        Due::Judged => Next::Judged,
        Due::Fault { code, message } => Next::Fault(Fault::kept(&code, message)),
        Due::Chosen(names) => return intent::begin(turn, &names),
    };
    drive(turn, run, next)
}

/// Ends a run, and with the last root run its session.
pub(crate) fn end(turn: &mut Turn<'_, '_>, run: RunId, ending: Ending, comment: String) -> Result<(), Stop> {
    drive(turn, run, Next::End(ending, comment))
}

fn enter(turn: &mut Turn<'_, '_>, run: RunId, node: NodeIx) -> Result<Next, Stop> {
    turn.emit(Event::Entered { run, node })?;
    let machine = turn.run(run)?.machine;
    turn.trail.push((machine, node));
    if turn.run(run)?.drained > ENTRIES_MAX {
        let ending = Ending { outcome: Outcome::Failed, reason: Some("drain_limit".into()) };
        return Ok(Next::End(ending, cycle(turn)?));
    }
    let machine = turn.machine(&*turn.run(run)?)?;
    events::take_early(turn, run, standing(&machine, node)?)?;
    Ok(Next::Begin(ActIx(0)))
}

/// Tries the exits that an event may take: those whose guards ask for something.
fn tried(turn: &mut Turn<'_, '_>, run: RunId) -> Result<Next, Stop> {
    let at = turn.run(run)?;
    let machine = turn.machine(&at)?;
    let node = standing(&machine, at.node)?;
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
    let listens = |exit: &&Exit| match exit.on {
        Trigger::Auto { event: too } => too || !event,
        Trigger::Answer(_) | Trigger::Port(_) => false,
    };
    if !node.exits.iter().any(|exit| listens(&exit)) {
        return Ok(None);
    }
    let looked = Looked::at(turn, run)?;
    let before = turn.run(run)?.choice.clone();
    let known = before.as_ref().map(|choice| choice.judged.as_slice()).unwrap_or_default();
    for (at, exit) in node.exits.iter().enumerate().filter(|(_, exit)| listens(exit)) {
        let at = position(at)?;
        match looked.verdict(at, &exit.guard, known) {
            Verdict::Pass => return Ok(Some(Next::Try(at))),
            Verdict::Fail => {}
            Verdict::Error(fault) => return Ok(Some(Next::Fault(fault))),
            Verdict::Pending(asked) => {
                acts::ask_judge(turn, run, at, asked, event)?;
                return Ok(Some(Next::Rest));
            }
        }
    }
    if before.is_some_and(|choice| choice.event == event) {
        turn.emit(Flow::ChoiceOver { run })?;
    }
    Ok(None)
}

/// The nodes that a drain goes round, in their order: all of them, or of very many the first and how many more there are.
fn cycle(turn: &Turn<'_, '_>) -> Result<String, Stop> {
    let Some((last, before)) = turn.trail.split_last() else { return Ok(String::new()) };
    let from = before.iter().rposition(|node| node == last).unwrap_or(0);
    let mut text = String::new();
    for (at, (machine, node)) in turn.trail.iter().enumerate().skip(from) {
        let machine = turn.rows.machine(turn.tenant(), *machine)?;
        let name = machine.as_ref().and_then(|machine| machine.node(*node)).map_or("", |node| &node.name);
        if text.len() + name.len() > TRAIL_BYTES_MAX {
            let more = turn.trail.len() - at;
            text.push_str(&format!(" -> ... and {more} more"));
            break;
        }
        if at > from {
            text.push_str(" -> ");
        }
        text.push_str(name);
    }
    Ok(text)
}

/// An act of the body has ended: the body goes on as it is wired, or ends.
fn ended(turn: &mut Turn<'_, '_>, run: RunId, port: Port) -> Result<Next, Stop> {
    let at = turn.run(run)?;
    let machine = turn.machine(&at)?;
    let node = standing(&machine, at.node)?;
    let wired = node
        .acts
        .get(usize::from(at.act.0))
        .and_then(|act| act.then.iter().find(|(known, _)| *known == port).map(|(_, next)| *next));
    drop(at);
    let Some(next) = wired else { return Ok(Next::Settle(port)) };
    turn.emit(Event::ActBegun { run, act: next })?;
    Ok(Next::Begin(next))
}

/// Chooses the exit of a body that has ended.
fn settle(turn: &mut Turn<'_, '_>, run: RunId, port: Port) -> Result<Next, Stop> {
    let at = turn.run(run)?;
    let machine = turn.machine(&at)?;
    let node = standing(&machine, at.node)?;
    let rests = at.rests;
    drop(at);
    if port != Port::Done {
        return Ok(match exit_on(node, &port) {
            Some(exit) => Next::Try(exit),
            None => Next::End(
                Ending { outcome: Outcome::Failed, reason: Some("port_unconnected".into()) },
                format!("nothing stands at the port {} of {}", port.word(), node.name),
            ),
        });
    }
    if let Some(next) = choose(turn, run, node, false)? {
        return Ok(next);
    }
    match &node.on_no_exit {
        NoExit::Stay if rests => Ok(Next::Rest),
        NoExit::Stay => {
            turn.emit(Flow::Rested { run, refused: None })?;
            Ok(Next::Rest)
        }
        NoExit::End(ending) => Ok(Next::End(ending.clone(), String::new())),
        NoExit::Fail(reason) => {
            let ending = Ending { outcome: Outcome::Failed, reason: Some(reason.clone()) };
            Ok(Next::End(ending, String::new()))
        }
    }
}

/// The exit of this port.
pub(crate) fn exit_on(node: &Node, port: &Port) -> Option<ExitIx> {
    let at = node.exits.iter().position(|exit| matches!(&exit.on, Trigger::Port(known) if known == port))?;
    u16::try_from(at).ok().map(ExitIx)
}

fn position(at: usize) -> Result<ExitIx, ViewError> {
    u16::try_from(at).map(ExitIx).map_err(|_| ViewError("a node has too many exits".into()))
}

fn standing(machine: &switchward_machine::Machine, node: NodeIx) -> Result<&Node, ViewError> {
    machine.node(node).ok_or_else(|| ViewError(format!("machine has no node {node:?}")))
}

/// An exit that a person may hold back.
fn held(turn: &mut Turn<'_, '_>, run: RunId, exit: ExitIx) -> Result<Next, Stop> {
    let at = turn.run(run)?;
    let machine = turn.machine(&at)?;
    let node = standing(&machine, at.node)?;
    drop(at);
    let hold = node.exits.get(usize::from(exit.0)).and_then(|found| found.hold);
    let Some(hold) = hold else { return Ok(Next::Take(exit)) };
    acts::drop_judges(turn, run)?;
    gates::attempt(turn, run, exit, hold, matches!(node.boundary, Boundary::Ignore(_)))
}

fn leave(turn: &mut Turn<'_, '_>, run: RunId, exit: ExitIx) -> Result<Next, Stop> {
    let at = turn.run(run)?.node;
    let machine = turn.machine(&*turn.run(run)?)?;
    let found = standing(&machine, at)?.exits.get(usize::from(exit.0));
    let found = found.ok_or_else(|| ViewError(format!("node {at:?} has no exit {exit:?}")))?;
    void(turn, run)?;
    turn.emit(Event::Left { run, node: at, exit })?;
    if let Ran::Fault(fault) = operate(turn, run, &found.ops)? {
        return Ok(Next::Fault(fault));
    }
    Ok(match &found.to {
        Target::Node(to) => Next::Enter(*to),
        Target::End(ending) => Next::End(ending.clone(), String::new()),
    })
}

/// A run is over. Gives the run that goes on then, and what it does: the one that has called it, else the next one of its
/// session.
fn over(
    turn: &mut Turn<'_, '_>,
    run: RunId,
    ending: Ending,
    comment: String,
) -> Result<Option<(RunId, Next)>, Stop> {
    void(turn, run)?;
    turn.emit(Event::RunEnded { run, ending: ending.clone(), comment: comment.clone() })?;
    if let Some(parent) = turn.run(run)?.parent {
        let next = acts::child_ended(turn, parent, run, &ending, &comment)?;
        return Ok(Some((parent.run, next)));
    }
    let session = turn.session()?;
    let next = session.queue.first().copied().filter(|_| session.root == run);
    drop(session);
    let Some(next) = next else { return Ok(None) };
    turn.emit(Flow::RunActivated { run: next })?;
    let start = turn.machine(&*turn.run(next)?)?.start;
    Ok(Some((next, Next::Enter(start))))
}

/// Closes all that belongs to the entry: children, gates, approvals that were not used, work, waits and timers.
pub(crate) fn void(turn: &mut Turn<'_, '_>, run: RunId) -> Result<(), Stop> {
    acts::abandon(turn, run)?;
    let (session, at) = (turn.session()?, turn.run(run)?);
    if session.opens.is_empty() && session.grants.is_empty() && at.items.is_empty() {
        return Ok(());
    }
    let (opens, all_grants) = (session.opens.clone(), session.grants.clone());
    let items = at.items.clone();
    drop((session, at));
    let (mut gates, mut grants) = (Vec::new(), Vec::new());
    for gate in opens {
        let row = turn.rows.open(turn.tenant(), turn.session_id()?, gate)?;
        gates.extend(row.filter(|row| row.run == run).map(|_| gate));
    }
    for number in all_grants {
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
    turn.emit(Event::Voided { gates, grants, items, run: of })?;
    Ok(())
}

/// Gives back the money that an unused grant holds in a ledger.
pub(crate) fn release(turn: &mut Turn<'_, '_>, run: RunId, number: u64) -> Result<(), Stop> {
    let key = Key::grant(turn.tenant(), turn.session_id()?, number);
    let Some(grant) = turn.rows.grant_at(&key)? else { return Ok(()) };
    let (Some(held), rules) = (grant.reservation, grant.rules.clone()) else { return Ok(()) };
    drop(grant);
    for (process, rules) in by_ledger(&rules) {
        let (call, cost, at) = (Some(held), switchward_machine::Micros(0), turn.now());
        turn.send(run, EffectBody::Settle { process, call, rules, cost, at, release: false })?;
    }
    Ok(())
}
