//! What readers of a history see of a session.

use switchward_state::PublicEvent;
use switchward_state::session::{RemovalFact, SessionEvent, Speaker};

/// Returns what a reader sees of an event; `None` if it is internal.
pub(crate) fn public(event: &SessionEvent) -> Option<PublicEvent> {
    Some(match event {
        SessionEvent::Started { definition, version, role, key, .. } => PublicEvent::new("session.started")
            .with("definition", definition)
            .with("version", if definition.is_empty() { String::new() } else { version.to_string() })
            .with("role", role)
            .with("key", key.as_deref().unwrap_or_default()),
        SessionEvent::Warned { warning } => {
            let kind = if warning.is_of_definition() { "definition.warning" } else { "session.warned" };
            PublicEvent::new(kind).with_facts("text", warning)
        }
        SessionEvent::Paused { comment } => PublicEvent::new("session.paused").with("comment", comment),
        SessionEvent::Unpaused { comment } => PublicEvent::new("session.resumed").with("comment", comment),
        SessionEvent::MessagePosted { text, speaker } => posted(text, *speaker),
        SessionEvent::Assisted { assistant } => {
            PublicEvent::new("session.assisted").with("assistant", &assistant.name)
        }
        SessionEvent::Removals(RemovalFact::Begun { how, by, .. }) => {
            PublicEvent::new("session.removed").with("how", how.word()).with("by", by)
        }
        SessionEvent::Removals(
            RemovalFact::Rows { .. }
            | RemovalFact::Done { .. }
            | RemovalFact::Forgotten { .. }
            | RemovalFact::Redacted
            | RemovalFact::OfTenant { .. }
            | RemovalFact::Expired { .. },
        )
        | SessionEvent::RequestsForgotten
        | SessionEvent::MessageRecorded { .. }
        | SessionEvent::ReplyTokensBegun { .. } => return None,
    })
}

/// Somebody said something; what an agent relays is marked.
fn posted(text: &str, speaker: Speaker) -> PublicEvent {
    let public = PublicEvent::new("message.posted");
    match speaker {
        Speaker::Agent => public.with("from", "agent"),
        Speaker::User => public.with("from", "user"),
        Speaker::Relayed => public.with("from", "user").with("relayed_by", "agent"),
    }
    .with("text", text)
}
