//! What happens at gates.

use switchward_machine::{OpenId, Time};

use crate::approval::vote_events::Change;
use crate::approval::{ApprovalEvent, Closed, Listed, OpenGate, Resolution, apply_page_codes};
use crate::delivery::apply as delivery;
use crate::limits::{ANSWERED_MAX, MAILED_MAX};
use crate::policy::apply_calls;
use crate::run::Held;
use crate::work::apply as work;
use crate::{ItemKind, Key, ListedItem, Open, OpenItem, Row, Site, ViewError, WriteRows};

/// Applies an event about a gate.
pub(crate) fn apply(
    rows: &mut dyn WriteRows,
    site: &Site<'_>,
    event: &ApprovalEvent,
) -> Result<(), ViewError> {
    let id = site.session()?;
    match event {
        ApprovalEvent::Opened { gate, run, body } => {
            let head = work::open(rows, site, ListedItem { item: *gate, run: *run, kind: ItemKind::Gate })?;
            if let Some(exit) = body.exit {
                rows.run_at_mut(&Key::run(site.tenant, id, *run))?.held = Some(Held { exit, gate: *gate });
            }
            let open = OpenItem::Gate(Box::new(Open { head, body: body.as_ref().clone() }));
            rows.put(Key::item(site.tenant, id, *gate), Row::OpenItem(open));
        }
        ApprovalEvent::Closed { gate, decision, by, comment, via } => {
            let (by, comment) = (by.clone(), comment.clone());
            close(rows, site, *gate, Resolution::Decided { decision: *decision, by, comment, via: *via })?;
        }
        ApprovalEvent::Commented { .. } | ApprovalEvent::ReplyRecorded(_) => {}
        ApprovalEvent::Voided { gates, grants, items, .. } => {
            for item in items {
                work::close(rows, site, *item)?;
            }
            for gate in gates {
                close(rows, site, *gate, Resolution::Voided)?;
            }
            for grant in grants {
                apply_calls::drop_grant(rows, site, *grant)?;
            }
        }
        ApprovalEvent::Escalated { gate, to, due, listed } => {
            escalate(rows, site, *gate, *due, Others { to, listed })?;
        }
        ApprovalEvent::Reminded { gate, next, .. } => {
            let open = rows.gate_at_mut(&Key::item(site.tenant, site.session()?, *gate))?;
            if let Some(asked) = &mut open.body.asked {
                asked.remind = *next;
            }
        }
        ApprovalEvent::Lapsed { gate } => close(rows, site, *gate, Resolution::Lapsed)?,
        ApprovalEvent::ReplyAnswered { run: Some(run), to, .. } => {
            let answered = &mut rows.run_at_mut(&Key::run(site.tenant, site.session()?, *run))?.answered_back;
            answered.push(to.clone());
            answered.drain(..answered.len().saturating_sub(MAILED_MAX));
        }
        ApprovalEvent::ReplyAnswered { gate, to, run: None } => answered(rows, site, *gate, to)?,
        ApprovalEvent::Answered { gate, by, answer, comment, via } => {
            let (by, answer, comment, via) = (by.clone(), answer.clone(), comment.clone(), *via);
            close(rows, site, *gate, Resolution::Answered { by, answer, comment, via })?;
        }
        ApprovalEvent::AudienceSet { audience } => {
            rows.session_at_mut(&site.session_key()?)?.audience.clone_from(audience);
        }
        ApprovalEvent::RemindersSet { reminders } => {
            rows.session_at_mut(&site.session_key()?)?.reminders = Some(*reminders);
        }
        ApprovalEvent::PageCodes(fact) => apply_page_codes::apply(rows, site, fact)?,
        ApprovalEvent::Votes(fact) => voted(rows, site, fact.change())?,
    }
    Ok(())
}

/// Approvals are counted.
fn voted(rows: &mut dyn WriteRows, site: &Site<'_>, change: Change<'_>) -> Result<(), ViewError> {
    let at = |gate| Ok::<_, ViewError>(Key::item(site.tenant, site.session()?, gate));
    match change {
        Change::Quorum { quorum } => rows.session_at_mut(&site.session_key()?)?.quorum = Some(quorum),
        Change::Escalation { contacts } => {
            rows.session_at_mut(&site.session_key()?)?.escalation = contacts.to_vec();
        }
        Change::Recipients { gate, asked } => {
            let gate = &mut rows.gate_at_mut(&at(gate)?)?.body;
            let before = gate.asked.replace(asked.clone());
            gate.notice = None;
            let mails = before.into_iter().flat_map(|before| before.mails);
            for number in mails.filter(|number| !asked.mails.contains(number)) {
                delivery::goes(rows, site, number)?;
            }
        }
        Change::Dropped { gate, who } => {
            let open = rows.gate_at_mut(&at(gate)?)?;
            open.body.asked.iter_mut().for_each(|asked| asked.dropped.extend(who.iter().cloned()));
        }
        Change::Counted { gate, vote, need } => {
            let open = rows.gate_at_mut(&at(gate)?)?;
            if let Some(voting) = open.body.asked.as_mut().and_then(|asked| asked.voting.as_mut()) {
                voting.need = need;
                voting.votes.extend(vote.cloned());
            }
        }
    }
    Ok(())
}

/// Who is asked in a further round.
#[derive(Clone, Copy)]
struct Others<'e> {
    /// Those who were not asked before.
    to: &'e [String],
    /// Those of the round whom the directory leads to.
    listed: &'e Listed,
}

/// Others are asked, too, from now on.
fn escalate(
    rows: &mut dyn WriteRows,
    site: &Site<'_>,
    gate: OpenId,
    due: Option<Time>,
    others: Others<'_>,
) -> Result<(), ViewError> {
    let open = rows.gate_at_mut(&Key::item(site.tenant, site.session()?, gate))?;
    if let Some(asked) = &mut open.body.asked {
        asked.to.extend(others.to.iter().cloned());
        asked.listed.add(others.listed);
        asked.round += 1;
        asked.request += 1;
        asked.due = due;
        // A recipient who is asked again now is not reminded at the same time.
        if let Some(remind) = asked.remind.as_mut().filter(|remind| remind.next <= site.at) {
            remind.next = site.at.after_ms(remind.every_ms);
        }
    }
    Ok(())
}

/// Somebody was written back to about a gate, which may be closed.
fn answered(rows: &mut dyn WriteRows, site: &Site<'_>, gate: OpenId, to: &str) -> Result<(), ViewError> {
    let id = site.session()?;
    let (open, closed) = (Key::item(site.tenant, id, gate), Key::closed(site.tenant, id, gate));
    if rows.gate_at(&open)?.is_some() {
        if let Some(asked) = &mut rows.gate_at_mut(&open)?.body.asked {
            asked.answered.push(to.to_owned());
        }
    } else if let Some(asked) = &mut rows.closed_at_mut(&closed)?.open.body.asked {
        asked.closed_notified.push(to.to_owned());
    }
    Ok(())
}

/// Moves a gate to the closed ones; a notice or a request that has not gone out yet has nothing left to say.
fn close(
    rows: &mut dyn WriteRows,
    site: &Site<'_>,
    gate: OpenId,
    resolution: Resolution,
) -> Result<(), ViewError> {
    let id = site.session()?;
    let key = Key::item(site.tenant, id, gate);
    let Some(mut open) = rows.gate_at(&key)?.map(|open| OpenGate::clone(&open)) else {
        return Err(ViewError(format!("key {key:?} holds no open gate")));
    };
    if let Some(asked) = &mut open.body.asked {
        asked.codes.clear();
    }
    let session = rows.session_at_mut(&site.session_key()?)?;
    if open.body.asked.is_some() {
        session.answered.push(gate);
        if session.answered.len() > ANSWERED_MAX {
            session.answered.remove(0);
        }
    }
    let run = rows.run_at_mut(&Key::run(site.tenant, id, open.head.run))?;
    if run.held.is_some_and(|held| held.gate == gate) {
        run.held = None;
    }
    if open.body.asked.is_some() && resolution != Resolution::Voided {
        run.drained = 0;
    }
    let mails = open.body.asked.iter().flat_map(|asked| &asked.mails);
    for number in mails.chain(&open.body.notice) {
        delivery::goes(rows, site, *number)?;
    }
    work::close(rows, site, gate)?;
    rows.put(Key::closed(site.tenant, id, gate), Row::Closed(Closed { open, resolution, at: site.at }));
    Ok(())
}
