//! `decide`: from a batch of commands to one decision.

use std::borrow::Borrow;
use std::ops::ControlFlow;
use switchward_machine::Time;
use switchward_state::level::HIGHEST;
use switchward_state::{
    Body, Changes, Command, Decision, Event, Key, ReadRows, Reason, Rejection, Reply, Site, TurnRecord, View,
    ViewError, finish, level_of_rows, stamp as stamp_rows,
};

use crate::approval::summary;
use crate::catalogue::delete_tenant;
use crate::delivery::publish;
use crate::remembered;
use crate::session::position;
use crate::stamp::Stamp;
use crate::turn::{Stop, Turn};
use crate::working::{RowBefore, Working};
use crate::{approval, catalogue, delivery, driver, policy, run, session, work};

/// What a batch came to.
#[derive(Debug)]
pub struct Decided {
    /// What is to be replicated; `None` if no command changed anything.
    pub decision: Option<Decision>,
    /// The rows that `evolve` changes for the decision on the same rows.
    pub changes: Changes,
    /// What is known of each of these rows as it was before, in the same order.
    pub before: Vec<RowBefore>,
    /// One answer for each command that was begun, in order. Good only once the decision is committed.
    pub answers: Vec<Result<Reply, Rejection>>,
}

/// Runs the commands in order on working copies that they share.
///
/// `now` is the time of the whole batch; a time before that of the last decision is moved up to it. The level is the
/// highest that this program knows. A batch of refusals alone gives no decision.
///
/// # Errors
/// A row cannot be read, or a command's kind cannot have its scope: nothing of the batch may be used.
pub fn decide(batch: &[impl Borrow<Command>], view: &dyn View, now: Time) -> Result<Decided, ViewError> {
    decide_while(batch, view, Stamp { now, level: HIGHEST }, &mut |_| true)
}

/// As [`decide`] at the level of the stamp, but the batch ends after a command when `more` says so. It is asked after each command, with the bytes
/// that the turns until then have written. The commands that are left are not begun and have no answer.
///
/// # Errors
/// As [`decide`].
pub fn decide_while(
    batch: &[impl Borrow<Command>],
    view: &dyn View,
    stamp: Stamp,
    more: &mut dyn FnMut(usize) -> bool,
) -> Result<Decided, ViewError> {
    let mut rows = Working::of_batch(view, batch.len());
    let last = rows.clock_at(&Key::clock())?.map_or(Time(0), |at| *at);
    let at = if planted!(rows, ClockBack) { stamp.now } else { stamp.now.max(last) };
    let level = stamp.level.max(level_of_rows(&rows)?);
    // Turns and answers are large: both are put where they stay.
    let (mut turns, mut answers) = (Vec::with_capacity(batch.len()), Vec::with_capacity(batch.len()));
    let mut bytes = 0;
    for command in batch {
        match one_turn(command.borrow(), &mut rows, Stamp { now: at, level }, &mut bytes, &mut turns) {
            ControlFlow::Continue(answer) => answers.push(answer),
            ControlFlow::Break(error) => return Err(error),
        }
        if !more(bytes) {
            break;
        }
    }
    let decision = (!turns.is_empty()).then(|| made(Decision::new(level, at, turns)));
    if let Some(decision) = &decision {
        stamp_rows(&mut rows, decision)?;
    }
    let (changes, before) = rows.into_changes();
    Ok(Decided { decision, changes, before, answers })
}

/// Adds what decisions have from level 2 on.
#[cfg(feature = "level-two")]
fn made(decision: Decision) -> Decision {
    let sample = decision.level.writes(&switchward_state::level::SAMPLE).then_some(decision.at.0);
    Decision { sample, ..decision }
}

/// Adds what decisions have above level 1: nothing yet.
#[cfg(not(feature = "level-two"))]
fn made(decision: Decision) -> Decision {
    decision
}

type Answer = Result<Reply, Rejection>;

/// Runs one command, adds what it did to the turns of the batch, and gives the answer to it.
fn one_turn(
    command: &Command,
    rows: &mut Working<'_>,
    stamp: Stamp,
    bytes: &mut usize,
    turns: &mut Vec<TurnRecord>,
) -> ControlFlow<ViewError, Answer> {
    let at = stamp.now;
    if let Err(error) = command.check_scope() {
        return ControlFlow::Break(error);
    }
    match answered_before(command, rows, at) {
        Err(Stop::Broken(error)) => return ControlFlow::Break(error),
        Err(Stop::Refused(rejection)) => return ControlFlow::Continue(Err(rejection)),
        Ok(Some(reply)) => return answer(rows, command, reply),
        Ok(None) => {}
    }
    let mut turn = Turn::new(rows, command, stamp);
    let result = carried_out(&mut turn);
    let events = std::mem::take(&mut turn.events);
    *bytes = bytes.saturating_add(turn.budget.bytes());
    match result {
        Err(Stop::Broken(error)) => ControlFlow::Break(error),
        Err(Stop::Refused(rejection)) if events.is_empty() => ControlFlow::Continue(Err(rejection)),
        Err(Stop::Refused(rejection)) => ControlFlow::Break(ViewError(format!(
            "a turn was refused after its first event: {}",
            rejection.message
        ))),
        Ok(reply) => match record(rows, command, at, &reply, events, turns) {
            Err(error) => ControlFlow::Break(error),
            Ok(()) => answer(rows, command, reply),
        },
    }
}

/// Writes down what a command did and what it is answered with, unless it did nothing and its reply is not remembered.
fn record(
    rows: &mut Working<'_>,
    command: &Command,
    at: Time,
    reply: &Reply,
    events: Vec<Event>,
    turns: &mut Vec<TurnRecord>,
) -> Result<(), ViewError> {
    if events.is_empty() && !remembered::remembers_unchanged(rows, command)? {
        return Ok(());
    }
    let record = TurnRecord {
        tenant: command.tenant,
        scope: command.scope.clone(),
        by: command.actor.clone(),
        request: command.request.as_ref().map(|request| (request.id.clone(), request.body)),
        reply: reply.clone(),
        events,
    };
    finish(rows, &Site { tenant: record.tenant, scope: &record.scope, at }, &record)?;
    turns.push(record);
    Ok(())
}

/// Carries out the command of a turn, and publishes what happened.
fn carried_out(turn: &mut Turn<'_, '_>) -> Result<Reply, Stop> {
    let mut reply = dispatch(turn)?;
    publish::run(turn)?;
    if turn.command.body.shows_session() {
        reply.stands_at(position::of(turn)?);
    }
    summary::complete(turn, &mut reply)?;
    Ok(reply)
}

/// Runs the command of the turn, and then what it leaves to the driver.
fn dispatch(turn: &mut Turn<'_, '_>) -> Result<Reply, Stop> {
    delete_tenant::check(turn)?;
    let mut reply = carry_out(turn)?;
    if !turn.moves.is_empty() {
        driver::run(turn)?;
        reply.moved_to(turn.session()?.sequence);
    }
    Ok(reply)
}

fn carry_out(turn: &mut Turn<'_, '_>) -> Result<Reply, Stop> {
    match &turn.command.body {
        Body::Session(command) => session::run(turn, command),
        Body::Run(command) => run::run(turn, command),
        Body::Approval(command) => approval::run(turn, command),
        Body::Work(command) => work::run(turn, command),
        Body::Delivery(command) => delivery::run(turn, command),
        Body::Policy(command) => policy::run_command(turn, command),
        Body::Catalogue(command) => catalogue::run(turn, command),
    }
}

/// The answer to the caller: the reply, with the rows at hand that complete it.
fn answer(rows: &dyn ReadRows, command: &Command, mut reply: Reply) -> ControlFlow<ViewError, Answer> {
    let at_hand = position::load(rows, command.tenant, &command.scope, &mut reply)
        .and_then(|()| work::view::load(rows, command, &mut reply));
    match at_hand {
        Err(error) => ControlFlow::Break(error),
        Ok(()) => ControlFlow::Continue(Ok(reply)),
    }
}

/// The reply that this request id was answered with before. A new request is refused if its reply could not be remembered.
fn answered_before(command: &Command, rows: &dyn ReadRows, now: Time) -> Result<Option<Reply>, Stop> {
    let Some(request) = &command.request else { return Ok(None) };
    let Some(known) = remembered::answered_in(rows, command)? else {
        remembered::check_capacity(rows, command, now)?;
        return Ok(None);
    };
    if known.body == request.body {
        return Ok(Some(known.reply));
    }
    let message = format!("request id {:?} came before with another body; use a new one", request.id);
    Err(Rejection::new(Reason::RequestIdReused, message).fact("request_id", &request.id).into())
}
