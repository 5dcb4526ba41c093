//! Says what the servers do.

use super::super::control::{Answer, ServerStatus};
use super::super::plan::Slot;
use super::{Crew, State};

impl Crew {
    /// All servers, by number.
    pub(super) fn status(&self) -> Answer {
        Answer::Status { servers: self.plan.servers.iter().map(|slot| self.of(slot)).collect() }
    }

    fn of(&self, slot: &Slot) -> ServerStatus {
        let state = self.states.get(&slot.number);
        let (process, pid, metrics) = match state {
            Some(State::Up(process)) => (
                process.state().to_owned(),
                process.pid(),
                process.started().and_then(|started| started.metrics),
            ),
            Some(State::Ended(how)) => (how.clone(), None, None),
            Some(State::Planned) | None => ("not started".to_owned(), None, None),
        };
        let (server, address) = (slot.number, slot.url());
        ServerStatus { server, process, pid, address, metrics, links: self.links.in_words(server) }
    }
}
