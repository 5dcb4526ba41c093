//! A turn of the session's agent.

use switchward_machine::Ask;

use super::Ends;

/// The agent owes an answer; nothing is opened for it, because nobody holds a lease on a turn.
pub(crate) fn begin(_ask: &Ask) -> Ends {
    None
}
