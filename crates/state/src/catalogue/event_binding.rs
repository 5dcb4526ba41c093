//! Which sources may send which events.

use minicbor::{CborLen, Decode, Encode};

use crate::catalogue::Role;
use crate::session::{EventSource, REPLY_TOKEN};

/// The word of every key of the role integration among sources.
const INTEGRATION: &str = "integration";

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

    pub(crate) fn names(&self, source: &EventSource) -> bool {
        let label = source.label();
        let integration = matches!(source, EventSource::Key { role: Role::Integration, .. });
        self.sources.iter().any(|known| *known == label || (integration && known == INTEGRATION))
    }
}
