//! The bindings of events in a tenant's directory.

use crate::catalogue::Directory;
use crate::session::EventSource;

/// The key of a binding that holds for every event of a definition that no other binding names.
const ANY_EVENT: &str = "*";

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
    use crate::catalogue::{EventBinding, Role};

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
