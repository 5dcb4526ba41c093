//! Gates that open and close, and effects that come and go.

use switchward_machine::{Channel, OpenId, Time};

use super::{Site, effects};
use crate::event::VoteFact;
use crate::limits::{ANSWERED_MAX, MAILED_MAX};
use crate::state::{Asked, Bounced, Closed, EffectBody, Held, Open, Purpose, Resolution, Run};
use crate::working::Working;
use crate::{Event, Flow, Key, Row, ViewError, mail_caps};

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the match in evolve/mod.rs is exhaustive and says what comes here"
)]
pub(super) fn apply(rows: &mut Working<'_>, site: &Site<'_>, event: &Event) -> Result<(), ViewError> {
    let id = site.session()?;
    match event {
        Event::GateOpened { gate, run, body } => {
            let session = rows.session_at_mut(&site.session_key()?)?;
            session.opens.push(*gate);
            session.next_id = gate.0 + 1;
            let at = rows.run_at_mut(&Key::run(site.tenant, id, *run))?;
            at.held = body.exit.map(|exit| Held { exit, gate: *gate }).or(at.held.take());
            let gated = body.as_ref().clone();
            let open = Open { run: *run, node: at.node, entry: at.entry, at: site.at, gate: gated };
            rows.put(Key::open(site.tenant, id, *gate), Row::Open(open));
        }
        Event::GateClosed { gate, decision, by, comment, via } => {
            let (by, comment) = (by.clone(), comment.clone());
            close(rows, site, *gate, Resolution::Decided { decision: *decision, by, comment, via: *via })?;
        }
        Event::Voided { gates, grants, items, run } => {
            for (item, run) in items.iter().zip(run.iter().cycle()) {
                super::flow::close(rows, site, *run, *item)?;
            }
            for gate in gates {
                close(rows, site, *gate, Resolution::Voided)?;
            }
            for grant in grants {
                super::calls::drop_grant(rows, site, *grant)?;
            }
        }
        Event::EffectQueued { effect } => {
            let session = rows.session_at_mut(&site.session_key()?)?;
            session.next_id = effect.number + 1;
            effects::arrives(session, effect);
            if let EffectBody::Notice { gate, .. } = &effect.body {
                rows.open_at_mut(&Key::open(site.tenant, id, *gate))?.gate.notice = Some(effect.number);
            }
            if let EffectBody::Message { channel: Channel::Email, to, gate, purpose, head, .. } = &effect.body
            {
                let session = rows.session_at_mut(&site.session_key()?)?;
                session.mailed = Some(session.mailed.unwrap_or_default().with_one(site.at));
                match (gate, purpose) {
                    (Some(gate), Purpose::Ask) => {
                        asks(rows, &Key::open(site.tenant, id, *gate), to, effect.number)?;
                    }
                    // A reminder asks nothing new: what was sent before stays valid.
                    (Some(gate), Purpose::Remind) => {
                        let key = Key::open(site.tenant, id, *gate);
                        if rows.open_at(&key)?.is_some()
                            && let Some(asked) = &mut rows.open_at_mut(&key)?.gate.asked
                        {
                            asked.mails.push(effect.number);
                        }
                    }
                    (Some(_), Purpose::Say | Purpose::Inform | Purpose::Code) => {}
                    // Mails of an agent alone have a head of their own.
                    (None, _) => {
                        written(rows.run_at_mut(&Key::run(site.tenant, id, effect.run))?, to, head.is_none());
                    }
                }
            }
            if let EffectBody::Confirm { call, .. } = &effect.body {
                rows.session_at_mut(&site.session_key()?)?.uncounted.push(*call);
            }
            rows.put(Key::outbox(site.tenant, id, effect.number), Row::Outbox(effect.clone()));
        }
        Event::EffectAcked { number } => arrived(rows, site, *number)?,
        _ => {}
    }
    Ok(())
}

/// A mail asks somebody at a gate. One about a gate that is closed asks nobody.
fn asks(rows: &mut Working<'_>, gate: &Key, to: &str, number: u64) -> Result<(), ViewError> {
    if rows.open_at(gate)?.is_some()
        && let Some(asked) = &mut rows.open_at_mut(gate)?.gate.asked
    {
        asked.mails.push(number);
        let at = asked.to.iter().position(|known| known.eq_ignore_ascii_case(to));
        if let Some(at) = at.filter(|_| asked.round > 0) {
            asked.last.resize(asked.last.len().max(at + 1), 0);
            asked.last[at] = asked.round;
        }
    }
    Ok(())
}

/// A run has written to somebody, by its definition or by an agent.
fn written(run: &mut Run, to: &str, by_definition: bool) {
    remember(&mut run.mailed, to);
    if by_definition {
        remember(&mut run.recipients, to);
    }
}

/// A run has written to somebody: the address stands last in the list.
pub(super) fn remember(addresses: &mut Vec<String>, to: &str) {
    addresses.retain(|known| !known.eq_ignore_ascii_case(to));
    addresses.push(to.to_owned());
    if addresses.len() > MAILED_MAX {
        addresses.remove(0);
    }
}

/// An effect has arrived: a mail counts for its hour.
fn arrived(rows: &mut Working<'_>, site: &Site<'_>, number: u64) -> Result<(), ViewError> {
    mail_caps::count(rows, (site.tenant, site.session()?), number, site.at)?;
    acked(rows, site, number)
}

/// An effect has nothing left to do: it has arrived, or nobody wants it any more.
pub(super) fn acked(rows: &mut Working<'_>, site: &Site<'_>, number: u64) -> Result<(), ViewError> {
    let id = site.session()?;
    let key = Key::outbox(site.tenant, id, number);
    let gate = match rows.outbox_at(&key)?.map(|effect| effect.body.clone()) {
        Some(EffectBody::Message { gate: Some(gate), .. }) => Some(Key::open(site.tenant, id, gate)),
        Some(
            EffectBody::Message { gate: None, .. }
            | EffectBody::Notice { .. }
            | EffectBody::Confirm { .. }
            | EffectBody::Settle { .. }
            | EffectBody::Publish { .. },
        )
        | None => None,
    };
    if let Some(gate) = gate
        && rows.open_at(&gate)?.is_some()
        && let Some(asked) = &mut rows.open_at_mut(&gate)?.gate.asked
    {
        asked.mails.retain(|known| *known != number);
    }
    effects::goes(rows, site, number)
}

/// What happens at a gate that addresses somebody, beside its opening and a decision.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the match in evolve/flow.rs is exhaustive and says what comes here"
)]
pub(super) fn asked(rows: &mut Working<'_>, site: &Site<'_>, flow: &Flow) -> Result<(), ViewError> {
    match flow {
        Flow::GateEscalated { gate, to, due } => escalate(rows, site, *gate, to, *due),
        Flow::GateReminded { gate, next, .. } => {
            let open = rows.open_at_mut(&Key::open(site.tenant, site.session()?, *gate))?;
            if let Some(asked) = &mut open.gate.asked {
                asked.remind = *next;
            }
            Ok(())
        }
        Flow::MailBounced { gate, to, proved, .. } => {
            let open = rows.open_at_mut(&Key::open(site.tenant, site.session()?, *gate))?;
            if let Some(asked) = &mut open.gate.asked {
                asked.bounced.retain(|known| !known.to.eq_ignore_ascii_case(to));
                asked.bounced.push(Bounced { to: to.clone(), proved: *proved });
            }
            Ok(())
        }
        Flow::GateLapsed { gate } => close(rows, site, *gate, Resolution::Lapsed),
        Flow::ReplyAnswered { run: Some(run), to, .. } => {
            let answered = &mut rows.run_at_mut(&Key::run(site.tenant, site.session()?, *run))?.answered_back;
            answered.push(to.clone());
            answered.drain(..answered.len().saturating_sub(MAILED_MAX));
            Ok(())
        }
        Flow::ReplyAnswered { gate, to, run: None } => answered(rows, site, *gate, to),
        Flow::GateAnswered { gate, by, answer, comment, via } => {
            let (by, answer, comment, via) = (by.clone(), answer.clone(), comment.clone(), *via);
            close(rows, site, *gate, Resolution::Answered { by, answer, comment, via })
        }
        _ => Ok(()),
    }
}

/// Approvals are counted.
pub(super) fn voted(rows: &mut Working<'_>, site: &Site<'_>, fact: &VoteFact) -> Result<(), ViewError> {
    let (gate, cast, now) = match fact {
        VoteFact::QuorumSet { quorum } => {
            rows.session_at_mut(&site.session_key()?)?.quorum = Some(*quorum);
            return Ok(());
        }
        VoteFact::Notified { gate, asked } => {
            let gate = &mut rows.open_at_mut(&Key::open(site.tenant, site.session()?, *gate))?.gate;
            (gate.asked, gate.notice) = (Some(Asked::clone(asked)), None);
            return Ok(());
        }
        VoteFact::EscalationSet { contacts } => {
            rows.session_at_mut(&site.session_key()?)?.escalation.clone_from(contacts);
            return Ok(());
        }
        VoteFact::Dropped { gate, who } => {
            let open = rows.open_at_mut(&Key::open(site.tenant, site.session()?, *gate))?;
            open.gate.asked.iter_mut().for_each(|asked| asked.dropped.extend(who.iter().cloned()));
            return Ok(());
        }
        VoteFact::Cast { gate, vote, need } => (gate, Some(vote), *need),
        VoteFact::Needed { gate, need } => (gate, None, *need),
    };
    let open = rows.open_at_mut(&Key::open(site.tenant, site.session()?, *gate))?;
    if let Some(voting) = open.gate.asked.as_mut().and_then(|asked| asked.voting.as_mut()) {
        voting.need = now;
        voting.votes.extend(cast.cloned());
    }
    Ok(())
}

/// Others are asked, too, from now on.
fn escalate(
    rows: &mut Working<'_>,
    site: &Site<'_>,
    gate: OpenId,
    to: &[String],
    due: Option<Time>,
) -> Result<(), ViewError> {
    let open = rows.open_at_mut(&Key::open(site.tenant, site.session()?, gate))?;
    if let Some(asked) = &mut open.gate.asked {
        asked.to.extend(to.iter().cloned());
        asked.round += 1;
        asked.due = due;
        // A recipient who is asked again now is not reminded at the same time.
        if let Some(remind) = asked.remind.as_mut().filter(|remind| remind.next <= site.at) {
            remind.next = site.at.after_ms(remind.every_ms);
        }
    }
    Ok(())
}

/// Somebody was written back to about a gate, which may be closed.
fn answered(rows: &mut Working<'_>, site: &Site<'_>, gate: OpenId, to: &str) -> Result<(), ViewError> {
    let id = site.session()?;
    let (open, closed) = (Key::open(site.tenant, id, gate), Key::closed(site.tenant, id, gate));
    if rows.open_at(&open)?.is_some() {
        if let Some(asked) = &mut rows.open_at_mut(&open)?.gate.asked {
            asked.answered.push(to.to_owned());
        }
    } else if let Some(asked) = &mut rows.closed_at_mut(&closed)?.open.gate.asked {
        asked.closed_notified.push(to.to_owned());
    }
    Ok(())
}

/// Moves a gate to the closed ones; a notice or a request that has not gone out yet has nothing left to say.
fn close(
    rows: &mut Working<'_>,
    site: &Site<'_>,
    gate: OpenId,
    resolution: Resolution,
) -> Result<(), ViewError> {
    let id = site.session()?;
    let key = Key::open(site.tenant, id, gate);
    let Some(mut open) = rows.open_at(&key)?.map(|open| Open::clone(&open)) else {
        return Err(ViewError(format!("key {key:?} holds no open gate")));
    };
    if let Some(asked) = &mut open.gate.asked {
        asked.codes.clear();
    }
    let session = rows.session_at_mut(&site.session_key()?)?;
    session.opens.retain(|known| *known != gate);
    if open.gate.asked.is_some() {
        session.answered.push(gate);
        if session.answered.len() > ANSWERED_MAX {
            session.answered.remove(0);
        }
    }
    let run = rows.run_at_mut(&Key::run(site.tenant, id, open.run))?;
    if run.held.is_some_and(|held| held.gate == gate) {
        run.held = None;
    }
    if open.gate.asked.is_some() && resolution != Resolution::Voided {
        run.drained = 0;
    }
    let mails = open.gate.asked.iter().flat_map(|asked| &asked.mails);
    for number in mails.chain(&open.gate.notice) {
        effects::goes(rows, site, *number)?;
    }
    rows.delete(key);
    rows.put(Key::closed(site.tenant, id, gate), Row::Closed(Closed { open, resolution, at: site.at }));
    Ok(())
}
