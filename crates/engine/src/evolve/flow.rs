//! What moves inside a node, the data of a run, and the row of runs.

use switchward_machine::{ActIx, OpenId, Port, RunId, Status};

use super::{Site, children, effects, gates, page_codes, work};
use crate::event::Speaker;
use crate::limits::EVENTS_NOTED_MAX;
use crate::state::{Data, Early, Json, OpenItem, OpenItemBody, Run, Said};
use crate::working::Working;
use crate::{Flow, Key, PendingFact, Row, ViewError};

pub(super) fn apply(rows: &mut Working<'_>, site: &Site<'_>, flow: &Flow) -> Result<(), ViewError> {
    let id = site.session()?;
    let run_key = |run: RunId| Key::run(site.tenant, id, run);
    match flow {
        Flow::RunActivated { run } => activate(rows, site, *run)?,
        Flow::MessagePosted { speaker: Speaker::Agent, .. } => {}
        Flow::MessagePosted { text, speaker } => {
            let sequence = rows.session_at_mut(&site.session_key()?)?.sequence;
            let said = Said { text: text.clone(), by_user: *speaker == Speaker::User, sequence };
            rows.put(Key::said(site.tenant, id), Row::Said(said));
        }
        Flow::MessageRecorded { message, until } => {
            rows.put(Key::recorded(site.tenant, id, *message), Row::Recorded(*until));
        }
        Flow::TurnEnded { run } => turned(rows.run_at_mut(&run_key(*run))?),
        Flow::Wrote { run, key, value, .. } => {
            write(rows, Key::data(site.tenant, id, *run), key, value)?;
        }
        Flow::Rested { run, refused } => rested(rows.run_at_mut(&run_key(*run))?, refused.as_ref()),
        Flow::Restarted { run, asked } => {
            let at = rows.run_at_mut(&run_key(*run))?;
            at.act = ActIx(0);
            at.rests = false;
            at.refused = None;
            at.loops.clear();
            at.choice = None;
            if *asked { at.asked += 1 } else { at.attempt += 1 }
        }
        Flow::ItemOpened { item, run, body, trace } => opened(rows, site, *item, *run, (body, trace))?,
        Flow::ItemClosed { item, run } => input_taken(rows, site, *run, *item)?,
        Flow::Looped { run, level, at } => {
            let loops = &mut rows.run_at_mut(&run_key(*run))?.loops;
            loops.truncate(usize::from(*level));
            loops.extend(at.clone());
        }
        Flow::EventRecorded { .. } | Flow::EarlyTaken { .. } => events(rows, site, flow)?,
        Flow::WorkLeased { .. }
        | Flow::WorkReleased { .. }
        | Flow::WorkDone { .. }
        | Flow::ChoicePending { .. }
        | Flow::ChoiceOver { .. }
        | Flow::Judged { .. } => work::apply(rows, site, flow)?,
        Flow::CalleesPinned { .. }
        | Flow::ChildrenPlanned { .. }
        | Flow::ChildCreated { .. }
        | Flow::ChildEnded { .. }
        | Flow::ChildrenJoined { .. } => children::apply(rows, site, flow)?,
        Flow::PageCodes(fact) => page_codes::apply(rows, site, fact)?,
        Flow::Pending(fact) => pending(rows, site, fact)?,
        Flow::Votes(fact) => gates::voted(rows, site, fact)?,
        Flow::GateEscalated { .. }
        | Flow::GateReminded { .. }
        | Flow::MailBounced { .. }
        | Flow::GateLapsed { .. }
        | Flow::ReplyRecorded(_)
        | Flow::ReplyAnswered { .. }
        | Flow::GateAnswered { .. } => gates::asked(rows, site, flow)?,
        Flow::EffectFailed { .. }
        | Flow::EffectRetried { .. }
        | Flow::EffectDismissed { .. }
        | Flow::EffectDeferred { .. }
        | Flow::EffectHeld { .. } => effects::apply(rows, site, flow)?,
        Flow::Assisted { .. }
        | Flow::ReplyTokensBegun { .. }
        | Flow::AudienceSet { .. }
        | Flow::RemindersSet { .. } => given(rows, site, flow)?,
        Flow::Signalled { .. } | Flow::Faulted { .. } => {}
    }
    Ok(())
}

/// Data wait for an approval to close, or enter because it has.
fn pending(rows: &mut Working<'_>, site: &Site<'_>, fact: &PendingFact) -> Result<(), ViewError> {
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

/// Work, a wait or a timer is open, of the node that the run stands in.
fn opened(
    rows: &mut Working<'_>,
    site: &Site<'_>,
    item: OpenId,
    run: RunId,
    (body, trace): (&OpenItemBody, &Option<String>),
) -> Result<(), ViewError> {
    let id = site.session()?;
    rows.session_at_mut(&site.session_key()?)?.next_id = item.0 + 1;
    let at = rows.run_at_mut(&Key::run(site.tenant, id, run))?;
    at.items.push(item);
    let (body, trace) = (body.clone(), trace.clone());
    let row = OpenItem { run, node: at.node, entry: at.entry, at: site.at, body, trace };
    rows.put(Key::item(site.tenant, id, item), Row::OpenItem(row));
    Ok(())
}

/// The agent's turn in a run is over.
fn turned(at: &mut Run) {
    at.drained = 0;
    at.choice = None;
}

/// What a session has from its start.
#[expect(clippy::wildcard_enum_match_arm, reason = "the other facts are sorted out before")]
fn given(rows: &mut Working<'_>, site: &Site<'_>, flow: &Flow) -> Result<(), ViewError> {
    let session = rows.session_at_mut(&site.session_key()?)?;
    match flow {
        Flow::Assisted { assistant } => session.assistant = Some(Box::new(assistant.clone())),
        Flow::AudienceSet { audience } => session.audience.clone_from(audience),
        Flow::RemindersSet { reminders } => session.reminders = Some(*reminders),
        Flow::ReplyTokensBegun { tenant } => session.reply_tenant = Some(tenant.clone()),
        _ => {}
    }
    Ok(())
}

fn write(rows: &mut Working<'_>, at: Key, key: &str, value: &Json) -> Result<(), ViewError> {
    if rows.data_at(&at)?.is_none() {
        rows.put(at.clone(), Row::Data(Data::default()));
    }
    rows.data_at_mut(&at)?.values.insert(key.to_owned(), value.0.clone());
    Ok(())
}

/// What comes from outside.
#[expect(clippy::wildcard_enum_match_arm, reason = "the other facts are sorted out before")]
fn events(rows: &mut Working<'_>, site: &Site<'_>, flow: &Flow) -> Result<(), ViewError> {
    let id = site.session()?;
    match flow {
        Flow::EventRecorded { run, key, early, source } => {
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
        Flow::EarlyTaken { run, keys, positions } => {
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
fn keep(rows: &mut Working<'_>, site: &Site<'_>, early: Early) -> Result<(), ViewError> {
    let session = rows.session_at_mut(&site.session_key()?)?;
    session.early.retain(|kept| site.at < kept.until);
    session.early.push(early);
    Ok(())
}

/// Notes that an event has come since the node was entered.
fn see(rows: &mut Working<'_>, run: &Key, event: &str) -> Result<(), ViewError> {
    let seen = &mut rows.run_at_mut(run)?.seen;
    if seen.len() < EVENTS_NOTED_MAX && !seen.iter().any(|known| known == event) {
        seen.push(event.to_owned());
    }
    Ok(())
}

/// Forgets an item that was open. Input from outside has come for it, and it is closed.
pub(super) fn input_taken(
    rows: &mut Working<'_>,
    site: &Site<'_>,
    run: RunId,
    item: OpenId,
) -> Result<(), ViewError> {
    rows.run_at_mut(&Key::run(site.tenant, site.session()?, run))?.drained = 0;
    close(rows, site, run, item)
}

pub(super) fn close(
    rows: &mut Working<'_>,
    site: &Site<'_>,
    run: RunId,
    item: OpenId,
) -> Result<(), ViewError> {
    let id = site.session()?;
    rows.run_at_mut(&Key::run(site.tenant, id, run))?.items.retain(|known| *known != item);
    rows.delete(Key::item(site.tenant, id, item));
    Ok(())
}

/// The session is about this run now.
fn activate(rows: &mut Working<'_>, site: &Site<'_>, run: RunId) -> Result<(), ViewError> {
    let key = Key::run(site.tenant, site.session()?, run);
    let found = rows.run_at(&key)?.ok_or_else(|| ViewError(format!("key {key:?} holds no run")))?;
    let (definition, version, machine) = (found.definition.clone(), found.version, found.machine);
    drop(found);
    let session = rows.session_at_mut(&site.session_key()?)?;
    session.queue.retain(|known| *known != run);
    session.root = run;
    (session.definition, session.version, session.machine) = (definition, version, machine);
    session.status = Status::Waiting;
    session.reason = None;
    Ok(())
}
