//! Operations that run through at once.

use switchward_machine::{Op, Port};

use super::Ends;
use crate::Event;
use crate::turn::{Stop, Turn};

/// Runs them in order.
pub(crate) fn operate(turn: &mut Turn<'_, '_>, ops: &[Op]) -> Result<Ends, Stop> {
    for op in ops {
        match op {
            Op::Log(text) => turn.emit(Event::Warned { text: text.clone(), of_definition: false })?,
        }
    }
    Ok(Some(Port::Done))
}
