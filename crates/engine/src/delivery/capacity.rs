//! Whether more may go out.

use switchward_machine::RunId;
use switchward_state::limits::{EFFECT_BYTES, MAILS_OF_DAY_MAX};
use switchward_state::run::OutboxExcess;
use switchward_state::session::{Session, SessionEvent, SessionWarning};

use crate::budget::Budget;
use crate::turn::{Stop, Turn};

/// Returns why this many more effects with this many bytes cannot go out; `None` if they can.
pub(crate) fn effects(turn: &Turn<'_, '_>, count: usize, bytes: usize) -> Result<Option<OutboxExcess>, Stop> {
    Ok(effects_of(turn, &*turn.session()?, count, bytes))
}

/// Returns why this many more mails with this many bytes cannot go out; `None` if they can.
pub(crate) fn mails(turn: &Turn<'_, '_>, count: usize, bytes: usize) -> Result<Option<OutboxExcess>, Stop> {
    Ok(mails_of(turn, &*turn.session()?, count, bytes))
}

/// The same of a session that is at hand.
pub(crate) fn mails_of(
    turn: &Turn<'_, '_>,
    session: &Session,
    count: usize,
    bytes: usize,
) -> Option<OutboxExcess> {
    let sent = session.mailed.unwrap_or_default().on(turn.now());
    let count_now = u32::try_from(count).unwrap_or(u32::MAX);
    if sent.saturating_add(count_now) > MAILS_OF_DAY_MAX {
        return Some(OutboxExcess::MailsOfDay { sent });
    }
    effects_of(turn, session, count, bytes)
}

/// The same for effects that are not mails.
fn effects_of(turn: &Turn<'_, '_>, session: &Session, count: usize, bytes: usize) -> Option<OutboxExcess> {
    turn.budget.step(count, bytes).or_else(|| Budget::outbox(count, bytes, session))
}

/// Returns why work with an input of this many bytes cannot be opened; `None` if it can. Work does not stand in the
/// outbox.
pub(crate) fn opened(turn: &Turn<'_, '_>, bytes: usize) -> Option<OutboxExcess> {
    turn.budget.step(1, bytes + EFFECT_BYTES)
}

/// Notes that a message is not sent, because it would exceed this maximum.
pub(crate) fn unsent(turn: &mut Turn<'_, '_>, run: RunId, excess: OutboxExcess) -> Result<(), Stop> {
    let node = turn.run(run)?.node;
    let machine = turn.machine(&*turn.run(run)?)?;
    let state = machine.node(node).map_or("", |node| node.name.as_str()).to_owned();
    let warning = SessionWarning::Unsent { state, excess };
    turn.emit(SessionEvent::Warned { warning })?;
    Ok(())
}
