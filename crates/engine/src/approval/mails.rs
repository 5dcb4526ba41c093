//! Mails about gates, and answers to those who write about them.

use switchward_machine::{Channel, GateKind, OpenId, RunId};
use switchward_state::ReadRows as _;
use switchward_state::approval::{ApprovalEvent, GateRequest, Notice, RequestSubject};
use switchward_state::delivery::{EffectBody, MessageText, Purpose};
use switchward_state::limits::{ANSWERS_MAX, EFFECT_BYTES};
use switchward_state::session::{GateTrouble, SessionEvent, SessionWarning};

use crate::delivery::capacity;
use crate::turn::{Stop, Turn};

/// The subject of what a gate asks: its author's, else what one is made of.
pub(crate) fn subject(written: Option<&str>, kind: GateKind, state: &str) -> RequestSubject {
    let state = || state.to_owned();
    match (written, kind) {
        (Some(written), _) => RequestSubject::Written(written.to_owned()),
        (None, GateKind::Task) => RequestSubject::Task { state: state() },
        (None, GateKind::Notify | GateKind::ToolAsk | GateKind::Approval) => {
            RequestSubject::Approval { state: state() }
        }
    }
}

/// A mail that asks about a gate.
pub(crate) fn mail(
    to: String,
    subject: RequestSubject,
    body: String,
    gate: OpenId,
    purpose: Purpose,
) -> EffectBody {
    let text = MessageText::Request { subject, body };
    EffectBody::Message { channel: Channel::Email, to, text, gate: Some(gate), purpose, head: None }
}

/// A mail that the server writes by itself; `about` is the subject of the request, or of the mail that it answers.
pub(crate) fn notice(
    to: &str,
    about: &RequestSubject,
    notice: Notice,
    gate: Option<OpenId>,
    purpose: Purpose,
) -> EffectBody {
    let text = MessageText::Notice { about: about.clone(), notice };
    EffectBody::Message { channel: Channel::Email, to: to.to_owned(), text, gate, purpose, head: None }
}

/// What mails to these hold, bytes.
pub(crate) fn mail_bytes<T: AsRef<str>>(
    to: impl IntoIterator<Item = T>,
    subject: &RequestSubject,
    body: &str,
) -> usize {
    let one = |to: T| EFFECT_BYTES + to.as_ref().len() + subject.bytes() + body.len();
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
    asked: &GateRequest,
    sender: Sender<'_>,
    notice: Notice,
) -> Result<(), Stop> {
    let open = turn.rows.gate(turn.tenant(), turn.session_id()?, gate)?.is_some();
    let list = if open { &asked.answered } else { &asked.closed_notified };
    let before = list.iter().filter(|known| known.eq_ignore_ascii_case(sender.from)).count();
    if before >= if sender.proved { ANSWERS_MAX } else { 1 } {
        return Ok(());
    }
    turn.emit(ApprovalEvent::ReplyAnswered { gate, run: None, to: sender.from.to_owned() })?;
    inform(turn, run, gate, asked, sender.from, notice)
}

/// Informs somebody of what came of a message about a gate.
pub(crate) fn inform(
    turn: &mut Turn<'_, '_>,
    run: RunId,
    gate: OpenId,
    asked: &GateRequest,
    to: &str,
    notice: Notice,
) -> Result<(), Stop> {
    send(turn, run, self::notice(to, &asked.subject, notice, Some(gate), Purpose::Inform))
}

/// Sends a mail if it may go out; if not, records that it is not sent.
pub(crate) fn send(turn: &mut Turn<'_, '_>, run: RunId, mail: EffectBody) -> Result<(), Stop> {
    match capacity::mails(turn, 1, mail.bytes())? {
        Some(excess) => capacity::unsent(turn, run, excess),
        None => turn.send(run, mail).map(|_| ()),
    }
}

/// Records that people whom data or the start names are not asked.
pub(crate) fn not_asked(turn: &mut Turn<'_, '_>, gate: OpenId, dropped: &[String]) -> Result<(), Stop> {
    if !dropped.is_empty() {
        let trouble = GateTrouble::NotInDirectory { who: dropped.to_vec() };
        let warning = SessionWarning::AtGate { gate, trouble };
        turn.emit(SessionEvent::Warned { warning })?;
    }
    Ok(())
}
