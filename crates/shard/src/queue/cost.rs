//! The cost of a command within its tenant's turn, before it is known how long it takes.

use switchward_state::Body;

use crate::limits::{COST_BYTES, TURN_COST};

/// The cost of a command within its tenant's turn: one, and more if it carries much. No command costs more than a
/// turn gives, so every turn serves at least one.
pub(super) fn cost(body: &Body) -> usize {
    (1 + body.carried() / COST_BYTES).min(TURN_COST)
}
