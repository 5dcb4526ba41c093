//! What came while an approval was open, and when it enters.

use super::{PublicEvent, number};
use crate::event::PendingFact;
use crate::state::PendingInput;

pub(super) fn told(fact: &PendingFact) -> PublicEvent {
    match fact {
        PendingFact::Held { gate, input, .. } => {
            let told = PublicEvent::new("data.held").with("gate", number(gate));
            let told = match input {
                PendingInput::Event { key, .. } => told.with("event", key),
                PendingInput::Work { thing, .. } => told.with("work", thing.0),
            };
            let keys = input.data().0.as_object().into_iter().flat_map(serde_json::Map::keys);
            told.with("keys", keys.cloned().collect::<Vec<String>>().join(" "))
        }
        PendingFact::Entered { count, .. } => PublicEvent::new("data.released").with("count", count),
    }
}
