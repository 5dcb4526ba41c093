//! Where events come from, and which of them may end a wait.

use minicbor::{CborLen, Decode, Encode};

use crate::command::{Actor, RecordEvent};
use crate::{Directory, Role};

/// Where an event came from. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum EventSource {
    /// A key of the API.
    #[n(0)]
    Key {
        /// The key's role.
        #[n(0)]
        role: Role,
        /// Whose key it is.
        #[n(1)]
        subject: String,
    },
    /// A source of webhooks of the tenant, by its name.
    #[n(1)]
    Webhook(#[n(0)] String),
    /// The holder of the state's reply token.
    #[n(2)]
    ReplyToken,
}

impl EventSource {
    /// The source of an event that this actor brings.
    #[must_use]
    pub fn of(event: &RecordEvent, actor: &Actor) -> Self {
        match (&event.token, &event.webhook) {
            (Some(_), _) => Self::ReplyToken,
            (None, Some(name)) => Self::Webhook(name.clone()),
            (None, None) => Self::Key { role: actor.role, subject: actor.subject.clone() },
        }
    }

    /// The public name, as bindings have it: `webhook:shop`, `integration:erp`, `operator:kim`, `reply_token`.
    #[must_use]
    pub fn label(&self) -> String {
        match self {
            Self::Key { role, subject } => format!("{}:{subject}", role.word()),
            Self::Webhook(name) => format!("webhook:{name}"),
            Self::ReplyToken => REPLY_TOKEN.to_owned(),
        }
    }

    /// Returns true if a binding cannot exclude it: a caller that runs the tenant's sessions answers for their own
    /// events.
    fn is_unbound(&self) -> bool {
        match self {
            Self::Key { role, .. } => matches!(role, Role::Operator | Role::Admin | Role::Server),
            Self::Webhook(_) | Self::ReplyToken => false,
        }
    }
}

/// The word of reply tokens among sources.
const REPLY_TOKEN: &str = "reply_token";
/// The word of every key of the role integration among sources.
const INTEGRATION: &str = "integration";
/// The key of a binding that holds for every event of a definition that no other binding names.
const ANY_EVENT: &str = "*";

/// Which sources may send an event to a definition's sessions.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct EventBinding {
    /// The definition's name.
    #[n(0)]
    pub definition: String,
    /// The event's key; `*` for every key without a binding of its own.
    #[n(1)]
    pub event_key: String,
    /// `webhook:NAME`, `reply_token`, `integration`, `integration:SUBJECT`.
    #[n(2)]
    pub sources: Vec<String>,
}

impl EventBinding {
    /// Returns true if this text names a source that a binding can name.
    #[must_use]
    pub fn is_source(text: &str) -> bool {
        let named = |kind: &str| text.strip_prefix(kind).is_some_and(|name| !name.trim().is_empty());
        let plain = !text.chars().any(char::is_control);
        plain && (text == REPLY_TOKEN || text == INTEGRATION || named("webhook:") || named("integration:"))
    }

    fn names(&self, source: &EventSource) -> bool {
        let label = source.label();
        let integration = matches!(source, EventSource::Key { role: Role::Integration, .. });
        self.sources.iter().any(|known| *known == label || (integration && known == INTEGRATION))
    }
}

impl Directory {
    /// The sources that the binding of an event names, if there is one and this source is none of them.
    #[must_use]
    pub fn other_sources(&self, definition: &str, key: &str, source: &EventSource) -> Option<&[String]> {
        let find = |key: &str| {
            self.event_bindings.iter().find(|one| one.definition == definition && one.event_key == key)
        };
        let binding = find(key).or_else(|| find(ANY_EVENT))?;
        let allowed = source.is_unbound() || binding.names(source);
        (!allowed).then_some(binding.sources.as_slice())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(role: Role, subject: &str) -> EventSource {
        EventSource::Key { role, subject: subject.into() }
    }

    #[test]
    fn a_bound_event_comes_from_its_sources_and_from_operators_alone() {
        let binding = |key: &str, sources: &[&str]| EventBinding {
            definition: "order".into(),
            event_key: key.into(),
            sources: sources.iter().map(|one| (*one).to_owned()).collect(),
        };
        let bindings = vec![
            binding("paid", &["webhook:shop", "integration:erp"]),
            binding("signed", &["reply_token", "integration"]),
            binding("*", &[]),
        ];
        let directory = Directory { event_bindings: bindings, ..Directory::default() };
        let webhook = |name: &str| EventSource::Webhook(name.into());
        let takes = |key: &str, source: &EventSource| directory.other_sources("order", key, source).is_none();
        for (source, paid, signed, other) in [
            (webhook("shop"), true, false, false),
            (webhook("shop2"), false, false, false),
            (EventSource::ReplyToken, false, true, false),
            (key(Role::Integration, "erp"), true, true, false),
            (key(Role::Integration, "crm"), false, true, false),
            (key(Role::Operator, "kim"), true, true, true),
            (key(Role::Admin, "root"), true, true, true),
        ] {
            let found = (takes("paid", &source), takes("signed", &source), takes("else", &source));
            assert_eq!(found, (paid, signed, other), "{source:?}");
            assert!(directory.other_sources("refund", "paid", &source).is_none(), "it is another definition");
        }
    }

    #[test]
    fn a_key_cannot_be_named_so_that_it_passes_for_another_source() {
        let binding = EventBinding {
            definition: "order".into(),
            event_key: "paid".into(),
            sources: vec!["webhook:shop".into(), "reply_token".into()],
        };
        for subject in ["webhook:shop", "reply_token", "shop"] {
            assert!(!binding.names(&key(Role::Integration, subject)), "{subject}");
        }
        for text in ["webhook:shop", "reply_token", "integration", "integration:erp"] {
            assert!(EventBinding::is_source(text), "{text}");
        }
        for text in ["", "agent:a", "operator:kim", "webhook:", "integration: ", "shop", "webhook:a\n"] {
            assert!(!EventBinding::is_source(text), "{text}");
        }
    }
}
