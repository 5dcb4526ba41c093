//! What happens at a gate while nobody decides: rounds end, others are asked, and a gate lapses.

use switchward_machine::{Inquiry, OpenId, Rounds, RunId};
use switchward_state::approval::{ApprovalEvent, GateRequest, OpenGate, VoteFact};
use switchward_state::delivery::Purpose;
use switchward_state::limits::ADDRESSEES_MAX;
use switchward_state::run::Fault;
use switchward_state::session::{GateTrouble, SessionEvent, SessionWarning};
use switchward_state::{Key, ReadRows as _};

use crate::approval::mails::{mail, mail_bytes};
use crate::approval::resolve::{resolved, spec_of};
use crate::approval::settled_people::SettledPeople;
use crate::approval::{mails, reminders, tasks, votes};
use crate::delivery::capacity;
use crate::delivery::messages::{Approvers, People, approvers};
use crate::run::scope::Scope;
use crate::turn::{Stop, Turn};

/// Something falls due at a gate while nobody decides: its round is over, or those who were asked are reminded.
pub(crate) fn fall_due(turn: &mut Turn<'_, '_>, key: &Key, gate: OpenId) -> Result<(), Stop> {
    let over = {
        let Some(open) = turn.rows.gate_at(key)? else { return Ok(()) };
        open.body.asked.as_ref().is_some_and(|asked| asked.due.is_some_and(|due| due <= turn.now()))
    };
    if over { round_over(turn, key, gate) } else { reminders::send(turn, key, gate) }
}

/// A round of a gate is over: others are asked, too, or it lapses. Does nothing if it is closed or not over yet.
fn round_over(turn: &mut Turn<'_, '_>, key: &Key, gate: OpenId) -> Result<(), Stop> {
    let Some(open) = turn.rows.gate_at(key)?.map(|open| OpenGate::clone(&open)) else { return Ok(()) };
    let Some(asked) = open.body.asked.as_ref().filter(|asked| asked.due.is_some_and(|due| due <= turn.now()))
    else {
        return Ok(());
    };
    let Some(Inquiry { rounds: Some(rounds), .. }) = spec_of(turn, &open)?.inquiry else { return Ok(()) };
    if asked.round < rounds.max {
        return escalate(turn, gate, open.head.run, asked, Some(&rounds));
    }
    if let Some(part) = open.body.part {
        return tasks::lapsed(turn, gate, &open, part, &rounds.lapse);
    }
    turn.asker = Some(open.body.requester.clone());
    turn.emit(ApprovalEvent::Lapsed { gate })?;
    resolved(turn, &open, &rounds.lapse)
}

/// None of a gate's recipients can be reached: its next round begins now, if it has one. If its definition has none, the
/// escalation contacts of the start or the directory are asked, once; else it stays as it is, because it can be decided
/// without a mail.
pub(crate) fn escalate_now(turn: &mut Turn<'_, '_>, gate: OpenId) -> Result<(), Stop> {
    let open = turn.rows.gate(turn.tenant(), turn.session_id()?, gate)?;
    let Some(open) = open.map(|open| OpenGate::clone(&open)) else { return Ok(()) };
    let Some(asked) = &open.body.asked else { return Ok(()) };
    let rounds = spec_of(turn, &open)?.inquiry.and_then(|inquiry| inquiry.rounds);
    let again = match &rounds {
        Some(rounds) => asked.round < rounds.max,
        // A part of a task is one person's.
        None if asked.round > 0 || open.body.part.is_some() => false,
        None => !turn.settled(open.head.run)?.escalation.value.is_empty(),
    };
    if again {
        return escalate(turn, gate, open.head.run, asked, rounds.as_ref());
    }
    Ok(())
}

/// Who is asked in the next round: those whom the definition names, or, if none of them counts, those whom the start or
/// the directory names. With the faults of those names.
fn contacts(
    turn: &Turn<'_, '_>,
    run: RunId,
    rounds: Option<&Rounds>,
) -> Result<(Approvers, Option<Fault>), Stop> {
    let (mut found, mut fault) = (Approvers { to: Vec::new(), dropped: Vec::new(), names: Vec::new() }, None);
    if let Some(rounds) = rounds.filter(|rounds| !rounds.to.is_empty()) {
        match approvers(&Scope::of_run(turn, run)?, &rounds.to, &People::of(turn)?) {
            Ok(approvers) => found = approvers,
            Err(faulty) => fault = Some(faulty),
        }
    }
    if found.to.is_empty() {
        let SettledPeople { to, names } = SettledPeople::escalation(turn, run)?;
        (found.to, found.names) = (to, names);
    }
    Ok((found, fault))
}

/// The contacts are asked with the words that the first were asked with.
fn escalate(
    turn: &mut Turn<'_, '_>,
    gate: OpenId,
    run: RunId,
    asked: &GateRequest,
    rounds: Option<&Rounds>,
) -> Result<(), Stop> {
    let (Approvers { mut to, dropped, names }, mut fault) = contacts(turn, run, rounds)?;
    // People who have approved are not asked again, nor those to whom the directory does not lead any more.
    let directory = turn.directory()?;
    let mut listed = asked.listed.clone();
    listed.add(&directory.listed(&names, &to));
    let lost = listed.lost(&directory);
    let is_lost = |one: &String| lost.iter().any(|known| known.eq_ignore_ascii_case(one));
    to.retain(|one| !asked.has_voted(one, &directory) && !is_lost(one));
    let known = |one: &String| asked.to.iter().any(|known| known.eq_ignore_ascii_case(one));
    let mut new: Vec<String> = to.iter().filter(|one| !known(one)).cloned().collect();
    new.truncate(ADDRESSEES_MAX.saturating_sub(asked.to.len()));
    to.retain(|one| known(one) || new.contains(one));
    let bytes = mail_bytes(to.iter(), &asked.subject, &asked.body);
    if let Some(excess) = capacity::mails(turn, to.len(), bytes)? {
        to.clear();
        new.clear();
        fault = Some(excess.into());
    }
    let due = rounds.map(|rounds| turn.now().after_ms(rounds.every_ms));
    let listed = directory.listed(&names, &to);
    turn.emit(ApprovalEvent::Escalated { gate, to: new, due, listed })?;
    if !dropped.is_empty() {
        mails::not_asked(turn, gate, &dropped)?;
        turn.emit(ApprovalEvent::Votes(VoteFact::Dropped { gate, who: dropped }))?;
    }
    votes::escalated(turn, gate)?;
    if let Some(fault) = fault {
        let warning = SessionWarning::AtGate { gate, trouble: GateTrouble::NobodyElse { fault } };
        turn.emit(SessionEvent::Warned { warning })?;
    }
    for one in to {
        turn.send(run, mail(one, asked.subject.clone(), asked.body.clone(), gate, Purpose::Ask))?;
    }
    Ok(())
}
