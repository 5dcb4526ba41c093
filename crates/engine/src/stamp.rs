//! What holds for all commands of a batch.

use switchward_machine::Time;
use switchward_state::Level;

/// What holds for a whole batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// The time that all commands of the batch are decided at.
    pub now: Time,
    /// The feature level: nothing above it is written. A level below that of the last decision is raised to it.
    pub level: Level,
}
