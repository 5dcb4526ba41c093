//! What happens to a run, its data and the row of runs.

use switchward_machine::{ActIx, Digest, Ending, NodeIx, Port, RunId, Status, Time};

use super::apply_children;
use crate::limits::EVENTS_NOTED_MAX;
use crate::policy::COST_OF_DOCUMENTS;
use crate::run::{Choice, Data, EndComment, Failure, Json, PendingFact, Provenance, Run, RunEvent, Writer};
use crate::session::{Early, StatusReason};
use crate::{Key, Row, Site, ViewError, WriteRows};

/// Applies an event about a run.
pub(crate) fn apply(rows: &mut dyn WriteRows, site: &Site<'_>, event: &RunEvent) -> Result<(), ViewError> {
    let id = site.session()?;
    let run_key = |run: RunId| Key::run(site.tenant, id, run);
    match event {
        RunEvent::Created { .. } => create(rows, site, event)?,
        RunEvent::Activated { run } => activate(rows, site, *run)?,
        RunEvent::Entered { run, node } => enter(rows, site, *run, *node)?,
        RunEvent::ActBegun { run, act } => rows.run_at_mut(&run_key(*run))?.act = *act,
        RunEvent::Answered { run, .. } => rows.run_at_mut(&run_key(*run))?.drained = 0,
        RunEvent::Deferred { run, due, requester } => {
            let at = rows.run_at_mut(&run_key(*run))?;
            (at.due, at.requester) = (Some(due.clone()), requester.clone());
        }
        RunEvent::Left { .. } | RunEvent::Signalled { .. } | RunEvent::Faulted { .. } => {}
        RunEvent::Ended { run, ending, comment } => end(rows, site, *run, ending, comment)?,
        RunEvent::TurnEnded { run } => turned(rows.run_at_mut(&run_key(*run))?),
        RunEvent::Wrote { run, key, value, by, who } => {
            let from = who.as_ref().map(|who| provenance(rows, site, *run, *by, who)).transpose()?;
            write(rows, Key::data(site.tenant, id, *run), key, value, from)?;
        }
        RunEvent::Rested { run, refused } => rested(rows.run_at_mut(&run_key(*run))?, refused.as_ref()),
        RunEvent::Restarted { run, asked } => {
            let at = rows.run_at_mut(&run_key(*run))?;
            at.act = ActIx(0);
            at.rests = false;
            at.refused = None;
            at.loops.clear();
            if *asked {
                at.choice = None;
                at.asked += 1;
            } else {
                // An event may have asked a judge during the delay, who is still heard.
                at.attempt += 1;
            }
        }
        RunEvent::Looped { run, level, at } => {
            let loops = &mut rows.run_at_mut(&run_key(*run))?.loops;
            loops.truncate(usize::from(*level));
            loops.extend(at.clone());
        }
        RunEvent::EventRecorded { .. } | RunEvent::EarlyUsed { .. } => events(rows, site, event)?,
        RunEvent::ChoicePending { run, event, requester } => {
            wait_for_judge(rows.run_at_mut(&run_key(*run))?, *event, requester);
        }
        RunEvent::ChoiceOver { run } => rows.run_at_mut(&Key::run(site.tenant, id, *run))?.choice = None,
        RunEvent::Judged { run, judged } => {
            let at = rows.run_at_mut(&Key::run(site.tenant, id, *run))?;
            at.choice.iter_mut().for_each(|choice| choice.judged.push(*judged));
        }
        RunEvent::CalleesPinned { .. }
        | RunEvent::ChildrenPlanned { .. }
        | RunEvent::ChildCreated { .. }
        | RunEvent::ChildEnded { .. }
        | RunEvent::ChildrenJoined { .. } => apply_children::apply(rows, site, event)?,
        RunEvent::Pending(fact) => pending(rows, site, fact)?,
    }
    Ok(())
}

/// A node is entered: what belonged to the entry before is forgotten.
fn enter(rows: &mut dyn WriteRows, site: &Site<'_>, run: RunId, node: NodeIx) -> Result<(), ViewError> {
    let sequence = rows.session_at_mut(&site.session_key()?)?.sequence;
    let at = rows.run_at_mut(&Key::run(site.tenant, site.session()?, run))?;
    at.node = node;
    at.act = ActIx(0);
    at.entry += 1;
    at.drained += 1;
    at.since = site.at;
    at.entered = sequence;
    (at.attempt, at.asked, at.rests) = (1, 0, false);
    at.refused = None;
    at.called.clear();
    at.seen.clear();
    at.loops.clear();
    at.choice = None;
    at.unknown = None;
    Ok(())
}

/// A run ends, and with the last one its session.
fn end(
    rows: &mut dyn WriteRows,
    site: &Site<'_>,
    run: RunId,
    ending: &Ending,
    comment: &EndComment,
) -> Result<(), ViewError> {
    let at = rows.run_at_mut(&Key::run(site.tenant, site.session()?, run))?;
    at.ending = Some(ending.clone());
    at.failure = match comment {
        EndComment::Fault(fault) => Some(Failure { attempt: at.attempt, fault: fault.clone() }),
        EndComment::Written(_) | EndComment::RemovedAfterBackup => None,
    };
    at.held = None;
    (at.due, at.requester) = (None, None);
    at.choice = None;
    at.pending.clear();
    let session = rows.session_at_mut(&site.session_key()?)?;
    if session.root == run && session.queue.is_empty() {
        session.status = ending.outcome.status();
        session.reason = ending.reason.map(StatusReason::Ended);
        session.ended = Some(site.at);
    }
    Ok(())
}

/// A run exists from now on.
fn create(rows: &mut dyn WriteRows, site: &Site<'_>, event: &RunEvent) -> Result<(), ViewError> {
    let RunEvent::Created { run, machine, of, queued } = event else { return Ok(()) };
    let key = Key::run(site.tenant, site.session()?, *run);

    let session = rows.session_at_mut(&site.session_key()?)?;
    if *run == crate::run::RUN {
        session.root = *run;
    } else {
        session.runs += 1;
    }
    if *queued {
        session.queue.push(*run);
    }
    let (definition, version) = of.clone().unwrap_or_else(|| (session.definition.clone(), session.version));
    rows.put(key, Row::Run(fresh(site.at, *machine, definition, version)));
    Ok(())
}

/// A run that has not begun.
pub(crate) fn fresh(since: Time, machine: Digest, definition: String, version: u32) -> Run {
    Run {
        machine,
        node: NodeIx(0),
        act: ActIx(0),
        entry: 0,
        drained: 0,
        since,
        params: Vec::new(),
        held: None,
        due: None,
        ending: None,
        definition,
        version,
        attempt: 1,
        asked: 0,
        rests: false,
        called: Vec::new(),
        loops: Vec::new(),
        seen: Vec::new(),
        choice: None,
        refused: None,
        mailed: Vec::new(),
        recipients: Vec::new(),
        answered_back: Vec::new(),
        parent: None,
        slots: 0,
        unknown: None,
        pending: Vec::new(),
        entered: 0,
        requester: None,
        failure: None,
        frame: None,
    }
}

/// Data wait for an approval to close, or enter because it has.
fn pending(rows: &mut dyn WriteRows, site: &Site<'_>, fact: &PendingFact) -> Result<(), ViewError> {
    let id = site.session()?;
    match fact {
        PendingFact::Held { run, input, .. } => {
            rows.run_at_mut(&Key::run(site.tenant, id, *run))?.pending.push(input.clone());
        }
        PendingFact::Entered { run, .. } => {
            rows.run_at_mut(&Key::run(site.tenant, id, *run))?.pending.clear();
        }
    }
    Ok(())
}

/// The run stays in its state, perhaps because a person has not let it leave.
fn rested(run: &mut Run, refused: Option<&Port>) {
    run.rests = true;
    run.refused = refused.cloned();
    run.choice = None;
}

/// A choice waits for a judge.
fn wait_for_judge(at: &mut Run, event: bool, requester: &str) {
    let fresh = || Choice { event, judged: Vec::new(), requester: requester.to_owned() };
    let choice = at.choice.get_or_insert_with(fresh);
    if choice.event && !event {
        // The end of the body asks for more than an event did, and is not forgotten for it.
        choice.event = false;
        requester.clone_into(&mut choice.requester);
    }
}

/// The agent's turn in a run is over.
fn turned(at: &mut Run) {
    at.drained = 0;
    at.choice = None;
}

fn write(
    rows: &mut dyn WriteRows,
    at: Key,
    key: &str,
    value: &Json,
    from: Option<Provenance>,
) -> Result<(), ViewError> {
    if rows.data_at(&at)?.is_none() {
        rows.put(at.clone(), Row::Data(Data::default()));
    }
    let data = rows.data_at_mut(&at)?;
    data.values.insert(key.to_owned(), value.0.clone());
    match from {
        Some(from) => data.provenance.insert(key.to_owned(), from),
        None => data.provenance.remove(key),
    };
    Ok(())
}

/// Where a value comes from that is written now.
fn provenance(
    rows: &dyn WriteRows,
    site: &Site<'_>,
    run: RunId,
    by: Writer,
    who: &str,
) -> Result<Provenance, ViewError> {
    let sequence = rows.session(site.tenant, site.session()?)?.map_or(0, |session| session.sequence);
    let at = rows.run(site.tenant, site.session()?, run)?;
    let node = (at.entry > 0).then_some(at.node);
    Ok(Provenance { by, who: who.to_owned(), node, entry: at.entry, attempt: at.attempt, sequence })
}

/// What comes from outside.
#[expect(clippy::wildcard_enum_match_arm, reason = "the other facts are sorted out before")]
fn events(rows: &mut dyn WriteRows, site: &Site<'_>, event: &RunEvent) -> Result<(), ViewError> {
    let id = site.session()?;
    match event {
        RunEvent::EventRecorded { run, key, early, source } => {
            let at = Key::run(site.tenant, id, *run);
            rows.run_at_mut(&at)?.drained = 0;
            match early {
                None => see(rows, &at, key)?,
                Some((data, until, model)) => {
                    let (key, data, source) = (key.clone(), data.clone(), source.clone());
                    let early = Early { key, data, until: *until, model: *model, source };
                    keep(rows, site, early)?;
                }
            }
        }
        RunEvent::EarlyUsed { run, keys, positions } => {
            for key in keys {
                see(rows, &Key::run(site.tenant, id, *run), key)?;
            }
            let kept = &mut rows.session_at_mut(&site.session_key()?)?.early;
            for position in positions.iter().rev() {
                let position = usize::try_from(*position).unwrap_or(usize::MAX);
                if position < kept.len() {
                    kept.remove(position);
                }
            }
        }
        _ => {}
    }
    Ok(())
}

/// Keeps an event that nothing listens to yet.
fn keep(rows: &mut dyn WriteRows, site: &Site<'_>, early: Early) -> Result<(), ViewError> {
    let session = rows.session_at_mut(&site.session_key()?)?;
    session.early.retain(|kept| site.at < kept.until);
    session.early.push(early);
    Ok(())
}

/// Notes that an event has come since the node was entered.
fn see(rows: &mut dyn WriteRows, run: &Key, event: &str) -> Result<(), ViewError> {
    let seen = &mut rows.run_at_mut(run)?.seen;
    if seen.len() < EVENTS_NOTED_MAX && !seen.iter().any(|known| known == event) {
        seen.push(event.to_owned());
    }
    Ok(())
}

/// The session is about this run now.
fn activate(rows: &mut dyn WriteRows, site: &Site<'_>, run: RunId) -> Result<(), ViewError> {
    let key = Key::run(site.tenant, site.session()?, run);
    let found = rows.run_at(&key)?.ok_or_else(|| ViewError(format!("key {key:?} holds no run")))?;
    let (definition, version, machine) = (found.definition.clone(), found.version, found.machine);
    drop(found);
    let before = rows.session_at_mut(&site.session_key()?)?.root;
    keep_raised(rows, site, before, run)?;
    let session = rows.session_at_mut(&site.session_key()?)?;
    session.queue.retain(|known| *known != run);
    session.root = run;
    (session.definition, session.version, session.machine) = (definition, version, machine);
    // A pause is the session's, and holds for its next run, too.
    if session.status != Status::Suspended {
        session.status = Status::Waiting;
        session.reason = None;
    }
    Ok(())
}

/// A cap that an operator has raised for the session stays raised in its next run.
fn keep_raised(
    rows: &mut dyn WriteRows,
    site: &Site<'_>,
    before: RunId,
    run: RunId,
) -> Result<(), ViewError> {
    let id = site.session()?;
    let last = rows.run(site.tenant, id, before)?;
    let raised = last.params.iter().find(|(known, _)| *known == COST_OF_DOCUMENTS).copied();
    drop(last);
    if let Some(raised) = raised {
        rows.run_at_mut(&Key::run(site.tenant, id, run))?.params = vec![raised];
    }
    Ok(())
}
