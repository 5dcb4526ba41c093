//! Who is notified of a gate that addresses nobody: those whom the start names, else the directory's entry for the
//! definition, else its entry for the owner, else its default audience. If nobody is found, a warning says so. See
//! `docs/approvals-by-mail.md#the-directory`.

use switchward_machine::{OpenId, RunId};
use switchward_state::ReadRows as _;
use switchward_state::approval::{
    ApprovalEvent, Gate, GateRequest, OF_OWNER, OpenGate, RequestSubject, VoteFact,
};
use switchward_state::catalogue::Directory;
use switchward_state::delivery::{DeliveryEvent, Effect, EffectBody, Purpose};
use switchward_state::session::{GateTrouble, NoAudience, SessionEvent, SessionWarning};

use crate::approval::mails::{mail, mail_bytes};
use crate::approval::settled_people::SettledPeople;
use crate::approval::{reminders, votes};
use crate::delivery::capacity;
use crate::turn::{Stop, Turn};

/// Opens a gate that anybody with the right to decide may decide, and notifies its audience.
pub(crate) fn open(
    turn: &mut Turn<'_, '_>,
    run: RunId,
    gate: OpenId,
    body: Gate,
    subject: RequestSubject,
) -> Result<(), Stop> {
    let kind = body.kind;
    match found(turn, run, &subject)? {
        Ok(SettledPeople { to, names }) => {
            let remind = reminders::first(turn, run)?;
            let listed = turn.directory()?.listed(&names, &to);
            let once = GateRequest::once("", &subject, "");
            let asked = GateRequest { to: to.clone(), open: true, remind, listed, ..once };
            let body = votes::begun(turn, gate, run, Gate { asked: Some(asked), ..body })?;
            turn.emit(ApprovalEvent::Opened { gate, run, body: Box::new(body) })?;
            for one in to {
                turn.send(run, mail(one, subject.clone(), String::new(), gate, Purpose::Ask))?;
            }
        }
        Err(why) => {
            let body = counted(turn, run, gate, body, &subject)?;
            turn.emit(ApprovalEvent::Opened { gate, run, body: Box::new(body) })?;
            if let Some(why) = why {
                let warning = SessionWarning::AtGate { gate, trouble: GateTrouble::Unnotified { why } };
                turn.emit(SessionEvent::Warned { warning })?;
            }
            turn.send(run, EffectBody::Notice { gate, kind, subject })?;
        }
    }
    Ok(())
}

/// Notifies the people whom the directory now resolves for a gate that was opened without any, besides those whom an
/// escalation has asked since, keeps its votes, and acknowledges the original notice. Does nothing if there are still none.
pub(crate) fn notify(turn: &mut Turn<'_, '_>, notice: &Effect) -> Result<(), Stop> {
    let EffectBody::Notice { gate, subject, .. } = &notice.body else { return Ok(()) };
    let open = turn.rows.gate(turn.tenant(), turn.session_id()?, *gate)?.map(|open| OpenGate::clone(&open));
    let Some(open) = open else { return Ok(()) };
    let Ok(SettledPeople { to, names }) = found(turn, open.head.run, subject)? else { return Ok(()) };
    let remind = reminders::first(turn, open.head.run)?;
    let before = open.body.asked.as_ref().and_then(|asked| asked.voting.clone());
    let nobody = || GateRequest { to: Vec::new(), ..GateRequest::once("", subject, "") };
    let shown = open.body.asked.clone().unwrap_or_else(nobody);
    let text = shown.body.clone();
    let new: Vec<String> = to.into_iter().filter(|one| shown.request_of(one).is_none()).collect();
    let mut listed = shown.listed.clone();
    listed.add(&turn.directory()?.listed(&names, &new));
    let to = shown.to.iter().chain(&new).cloned().collect();
    let asked = GateRequest { to, open: true, remind, voting: None, listed, ..shown };
    let mut body = votes::begun(turn, *gate, open.head.run, Gate { asked: Some(asked), ..open.body })?;
    let Some(asked) = &mut body.asked else { return Ok(()) };
    if let (Some(now), Some(before)) = (&mut asked.voting, before) {
        now.votes = before.votes;
    }
    turn.emit(ApprovalEvent::Votes(VoteFact::Notified { gate: *gate, asked: Box::new(asked.clone()) }))?;
    turn.emit(DeliveryEvent::Acked { number: notice.number })?;
    for one in new {
        turn.send(open.head.run, mail(one, subject.clone(), text.clone(), *gate, Purpose::Ask))?;
    }
    Ok(())
}

/// Returns the gate with the approvals that it takes, if it takes several, although nobody is notified of it.
fn counted(
    turn: &mut Turn<'_, '_>,
    run: RunId,
    gate: OpenId,
    body: Gate,
    subject: &RequestSubject,
) -> Result<Gate, Stop> {
    let asked = GateRequest { to: Vec::new(), open: true, ..GateRequest::once("", subject, "") };
    let counted = votes::begun(turn, gate, run, Gate { asked: Some(asked), ..body.clone() })?;
    let several = counted.asked.as_ref().is_some_and(|asked| asked.voting.is_some());
    Ok(if several { counted } else { body })
}

/// Returns the audience; if it is empty, the reason, or `None` if nobody is missed: a tenant that has neither a directory
/// nor an audience goes by its lists of gates.
fn found(
    turn: &Turn<'_, '_>,
    run: RunId,
    subject: &RequestSubject,
) -> Result<Result<SettledPeople, Option<NoAudience>>, Stop> {
    let people = SettledPeople::audience(turn, run)?;
    let to = &people.to;
    if to.is_empty() {
        let owner = format!("{OF_OWNER}{}", turn.run(run)?.definition);
        let missed = *turn.directory()? != Directory::default() || !turn.session()?.audience.is_empty();
        return Ok(Err(missed.then_some(NoAudience::NoAddress { owner })));
    }
    let excess = capacity::mails(turn, to.len(), mail_bytes(to, subject, ""))?;
    Ok(excess.map_or(Ok(people), |excess| Err(Some(NoAudience::TooMuch { excess }))))
}
