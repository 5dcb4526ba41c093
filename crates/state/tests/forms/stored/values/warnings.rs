//! Warnings of a history: each variant once.

use switchward_state::Event;
use switchward_state::session::SessionEvent;
use switchward_testkit::session_warnings;

/// An event for each.
pub(crate) fn events() -> Vec<Event> {
    session_warnings().into_iter().map(|warning| Event::Session(SessionEvent::Warned { warning })).collect()
}
