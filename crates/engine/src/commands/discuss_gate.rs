//! A person says something at a gate and decides nothing. Source: semantics §7, *Beside these* (9).

use super::decide_gate::{has_a_say, is_meant, open_gate};
use crate::command::DiscussGate;
use crate::turn::{Stop, Turn};
use crate::{Event, Reply};

/// It is recorded, and the gate stays open. Who asked may speak too: that decides nothing.
pub(super) fn run(turn: &mut Turn<'_, '_>, discuss: &DiscussGate) -> Result<Reply, Stop> {
    let open = open_gate(turn, discuss.gate)?;
    has_a_say(&turn.command.actor)?;
    is_meant(&open, discuss.shown, &discuss.comment)?;
    turn.emit(Event::GateDiscussed {
        gate: discuss.gate,
        by: turn.command.actor.subject.clone(),
        comment: discuss.comment.clone(),
    })?;
    Ok(Reply::Gate { gate: discuss.gate, sequence: turn.session()?.sequence })
}
