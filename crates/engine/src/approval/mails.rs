//! Mails about gates, and answers to those who write about them.

use switchward_machine::{Channel, Content, OpenId, RunId};
use switchward_state::approval::{ApprovalEvent, Asked};
use switchward_state::delivery::{EffectBody, Purpose};
use switchward_state::limits::{ANSWERS_MAX, EFFECT_BYTES};
use switchward_state::session::SessionEvent;

use crate::delivery::capacity;
use crate::turn::{Stop, Turn};

/// A mail about a gate.
pub(crate) fn mail(to: String, subject: String, body: String, gate: OpenId, purpose: Purpose) -> EffectBody {
    let (channel, content) = (Channel::Email, Content::Text);
    let (subject, gate) = (Some(subject), Some(gate));
    EffectBody::Message { channel, to, subject, body, content, gate, purpose, head: None }
}

/// What mails to these hold, bytes.
pub(crate) fn mail_bytes<T: AsRef<str>>(to: impl IntoIterator<Item = T>, subject: &str, body: &str) -> usize {
    let one = |to: T| EFFECT_BYTES + to.as_ref().len() + subject.len() + body.len();
    to.into_iter().map(one).fold(0, usize::saturating_add)
}

/// Who wrote about a gate.
#[derive(Clone, Copy)]
pub(crate) struct Sender<'a> {
    /// The address.
    pub(crate) from: &'a str,
    /// Whether it is proved that the mail is theirs.
    pub(crate) proved: bool,
}

/// Writes back to somebody who wrote about a gate: [`ANSWERS_MAX`] times while it is open and as often when it is closed,
/// so that an autoresponder is not answered for ever; and once if the sender is not proved, so that nobody can have us
/// write to others.
pub(crate) fn answer(
    turn: &mut Turn<'_, '_>,
    run: RunId,
    gate: OpenId,
    asked: &Asked,
    sender: Sender<'_>,
    body: String,
) -> Result<(), Stop> {
    let open = turn.rows.open(turn.tenant(), turn.session_id()?, gate)?.is_some();
    let list = if open { &asked.answered } else { &asked.closed_notified };
    let before = list.iter().filter(|known| known.eq_ignore_ascii_case(sender.from)).count();
    if before >= if sender.proved { ANSWERS_MAX } else { 1 } {
        return Ok(());
    }
    turn.emit(ApprovalEvent::ReplyAnswered { gate, run: None, to: sender.from.to_owned() })?;
    inform(turn, run, gate, asked, sender.from, body)
}

/// The subject of what answers a mail.
pub(crate) fn again(subject: &str) -> String {
    let subject = subject.trim();
    if subject.get(..3).is_some_and(|first| first.eq_ignore_ascii_case("re:")) {
        return subject.to_owned();
    }
    format!("Re: {subject}")
}

/// Informs somebody of what came of a message about a gate.
pub(crate) fn inform(
    turn: &mut Turn<'_, '_>,
    run: RunId,
    gate: OpenId,
    asked: &Asked,
    to: &str,
    body: String,
) -> Result<(), Stop> {
    let subject = again(&asked.subject);
    if let Some(fault) = capacity::mails(turn, 1, mail_bytes([to], &subject, &body))? {
        return capacity::unsent(turn, run, &fault);
    }
    turn.send(run, mail(to.to_owned(), subject, body, gate, Purpose::Inform))?;
    Ok(())
}

/// Records that people whom data or the start names are not asked.
pub(crate) fn not_asked(turn: &mut Turn<'_, '_>, gate: OpenId, dropped: &[String]) -> Result<(), Stop> {
    if !dropped.is_empty() {
        let text = format!("gate {} does not ask {}: not in the directory", gate.0, dropped.join(", "));
        turn.emit(SessionEvent::Warned { text, of_definition: false })?;
    }
    Ok(())
}
