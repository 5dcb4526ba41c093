//! What became of an effect.

use crate::command::AckEffect;
use crate::turn::{Stop, Turn};
use crate::{Event, Key, Reply};

/// It has arrived. Said twice, it changes nothing.
pub(super) fn ack(turn: &mut Turn<'_, '_>, ack: &AckEffect) -> Result<Reply, Stop> {
    let key = Key::outbox(turn.tenant(), turn.session_id()?, ack.number);
    if turn.rows.outbox_at(&key)?.is_some() {
        turn.emit(Event::EffectAcked { number: ack.number })?;
    }
    Ok(Reply::Done)
}
