//! What came while an approval was open, and when it enters.

use super::{PublicEvent, number};
use crate::event::PendingFact;
use crate::state::PendingInput;

pub(super) fn public_event(fact: &PendingFact) -> PublicEvent {
    match fact {
        PendingFact::Held { gate, input, .. } => {
            let public = PublicEvent::new("data.held").with("gate", number(gate));
            let public = match input {
                PendingInput::Event { key, .. } => public.with("event", key),
                PendingInput::Work { item, .. } => public.with("work", item.0),
            };
            let keys = input.data().0.as_object().into_iter().flat_map(serde_json::Map::keys);
            public.with("keys", keys.cloned().collect::<Vec<String>>().join(" "))
        }
        PendingFact::Entered { count, .. } => PublicEvent::new("data.released").with("count", count),
    }
}
