//! Those who are told of a gate that addresses nobody: whom the start named, else whom the directory names for the
//! definition, else whose process it is, else whom the directory names for the rest. Where nobody is found, that is said. Source: checkpoint processes,
//! `notify_human` and *ask*; semantics §1b and §6.2.

use switchward_machine::{OpenId, RunId};

use crate::budget;
use crate::event::VoteFact;
use crate::gates::{mail, mail_bytes};
use crate::reminders;
use crate::state::{Asked, Directory, Effect, EffectBody, Gate, OF_OWNER, Open, Purpose};
use crate::turn::{Stop, Turn};
use crate::votes;
use crate::{Event, Flow};

/// Opens a gate that anybody may decide who may decide at all, and tells those whose affair it is.
pub(crate) fn open(
    turn: &mut Turn<'_, '_>,
    run: RunId,
    gate: OpenId,
    body: Gate,
    subject: String,
) -> Result<(), Stop> {
    let kind = body.kind;
    match found(turn, run, &subject)? {
        Ok(to) => {
            let remind = reminders::first(turn, run)?;
            let asked = Asked { to: to.clone(), open: true, remind, ..Asked::once("", &subject, "") };
            let body = votes::begun(turn, gate, run, Gate { asked: Some(asked), ..body })?;
            turn.emit(Event::GateOpened { gate, run, body: Box::new(body) })?;
            for one in to {
                turn.send(run, mail(one, subject.clone(), String::new(), gate, Purpose::Ask))?;
            }
        }
        Err(why) => {
            let body = counted(turn, run, gate, body, &subject)?;
            turn.emit(Event::GateOpened { gate, run, body: Box::new(body) })?;
            if let Some(why) = why {
                let text = format!("nobody is told of gate {}: {why}", gate.0);
                turn.emit(Event::Warned { text, of_definition: false })?;
            }
            turn.send(run, EffectBody::Notice { gate, kind, subject })?;
        }
    }
    Ok(())
}

/// Tells people of a gate that nobody was told of when it opened, whom the directory leads to by now; its notice has
/// nothing left to say then. What was approved meanwhile counts on. Nothing happens where that is still nobody.
pub(crate) fn tell(turn: &mut Turn<'_, '_>, notice: &Effect) -> Result<(), Stop> {
    let EffectBody::Notice { gate, subject, .. } = &notice.body else { return Ok(()) };
    let open = turn.rows.open(turn.tenant(), turn.session_id()?, *gate)?.map(|open| Open::clone(&open));
    let Some(open) = open else { return Ok(()) };
    let Ok(to) = found(turn, open.run, subject)? else { return Ok(()) };
    let remind = reminders::first(turn, open.run)?;
    let before = open.gate.asked.as_ref().and_then(|asked| asked.voting.clone());
    let shown = open.gate.asked.clone().unwrap_or_else(|| Asked::once("", subject, ""));
    let text = shown.body.clone();
    let asked = Asked { to: to.clone(), open: true, remind, voting: None, ..shown };
    let mut body = votes::begun(turn, *gate, open.run, Gate { asked: Some(asked), ..open.gate })?;
    let Some(asked) = &mut body.asked else { return Ok(()) };
    if let (Some(now), Some(before)) = (&mut asked.voting, before) {
        now.votes = before.votes;
    }
    turn.emit(Flow::Votes(VoteFact::Told { gate: *gate, asked: Box::new(asked.clone()) }))?;
    turn.emit(Event::EffectAcked { number: notice.number })?;
    for one in to {
        turn.send(open.run, mail(one, subject.clone(), text.clone(), *gate, Purpose::Ask))?;
    }
    Ok(())
}

/// The addresses of those whose affair a run is, as the start and the directory say now; maybe none.
pub(crate) fn addresses(turn: &Turn<'_, '_>, run: RunId) -> Result<Vec<String>, Stop> {
    Ok(turn.directory()?.all(&turn.settled(run)?.audience.value))
}

/// The gate with the approvals that it takes, where it takes several, although nobody is told of it.
fn counted(
    turn: &mut Turn<'_, '_>,
    run: RunId,
    gate: OpenId,
    body: Gate,
    subject: &str,
) -> Result<Gate, Stop> {
    let asked = Asked { to: Vec::new(), open: true, ..Asked::once("", subject, "") };
    let counted = votes::begun(turn, gate, run, Gate { asked: Some(asked), ..body.clone() })?;
    let several = counted.asked.as_ref().is_some_and(|asked| asked.voting.is_some());
    Ok(if several { counted } else { body })
}

/// Whose affair it is; nobody where nobody is named, with the reason where there is somebody to miss: a tenant that has
/// neither a directory nor an audience goes by its lists of gates.
fn found(
    turn: &Turn<'_, '_>,
    run: RunId,
    subject: &str,
) -> Result<Result<Vec<String>, Option<String>>, Stop> {
    let to = addresses(turn, run)?;
    if to.is_empty() {
        let owner = format!("{OF_OWNER}{}", turn.run(run)?.definition);
        let missed = turn.directory()? != Directory::default() || !turn.session()?.audience.is_empty();
        let why =
            || format!("no address is found for the session's audience, {owner:?} or the default audience");
        return Ok(Err(missed.then(why)));
    }
    let fault = budget::mails(turn, to.len(), mail_bytes(&to, subject, ""))?;
    Ok(fault.map_or(Ok(to), |fault| Err(Some(fault.message))))
}
