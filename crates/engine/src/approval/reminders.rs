//! Recipients who have not decided are written to again, if the start or the directory asks for it: with the same words,
//! in the same thread, and what was sent before stays valid.
//!
//! With the last reminder of a gate without rounds of its own, the escalation contacts of the directory are asked, too.
//!
//! People who cannot be reached, have approved a gate that needs more approvals, or are no longer in the directory, are left
//! out. A round that is over
//! asks again by itself; a reminder changes nothing about it.

use switchward_machine::{OpenId, RunId};
use switchward_state::approval::{ApprovalEvent, OpenGate, Reminding};
use switchward_state::delivery::Purpose;
use switchward_state::session::{GateTrouble, SessionEvent, SessionWarning};
use switchward_state::{Key, ReadRows as _};

use crate::approval::mails::{mail, mail_bytes};
use crate::approval::reach::unreached;
use crate::approval::rounds;
use crate::delivery::capacity;
use crate::turn::{Stop, Turn};

/// When a gate that opens now is reminded of first.
pub(crate) fn first(turn: &Turn<'_, '_>, run: RunId) -> Result<Option<Reminding>, Stop> {
    let now = turn.now();
    let reminding = |asked: switchward_state::approval::Reminders| Reminding {
        next: now.after_ms(asked.every_ms),
        left: asked.max,
        every_ms: asked.every_ms,
    };
    Ok(turn.settled(run)?.reminders.value.map(reminding))
}

/// Reminds the recipients of a gate; does nothing if it is not time yet.
pub(crate) fn send(turn: &mut Turn<'_, '_>, key: &Key, gate: OpenId) -> Result<(), Stop> {
    let Some(open) = turn.rows.gate_at(key)?.map(|open| OpenGate::clone(&open)) else { return Ok(()) };
    let Some(asked) = &open.body.asked else { return Ok(()) };
    let Some(remind) = asked.remind.filter(|remind| remind.next <= turn.now()) else { return Ok(()) };
    let dead = unreached(turn.rows, turn.tenant(), turn.session_id()?, &open)?;
    let reachable = |one: &&String| !dead.iter().any(|known| known.eq_ignore_ascii_case(one));
    let people = turn.directory()?;
    let lost = asked.listed.lost(&people);
    let is_lost = |one: &str| lost.iter().any(|known| known.eq_ignore_ascii_case(one));
    let may_decide = |one: &&String| !asked.has_voted(one, &people) && !is_lost(one);
    let waited_for = |one: &&String| reachable(one) && may_decide(one);
    let mut to: Vec<String> = asked.to.iter().filter(waited_for).cloned().collect();
    let over = capacity::mails(turn, to.len(), mail_bytes(&to, &asked.subject, &asked.body))?;
    if over.is_some() {
        to.clear();
    }
    let next = remind.after(turn.now());
    turn.emit(ApprovalEvent::Reminded { gate, to: to.clone(), next })?;
    if let Some(excess) = over {
        let trouble = GateTrouble::NotReminded { excess };
        let warning = SessionWarning::AtGate { gate, trouble };
        turn.emit(SessionEvent::Warned { warning })?;
    }
    for one in to {
        turn.send(
            open.head.run,
            mail(one, asked.subject.clone(), asked.body.clone(), gate, Purpose::Remind),
        )?;
    }
    if next.is_none() && asked.due.is_none() {
        rounds::escalate_now(turn, gate)?;
    }
    Ok(())
}
