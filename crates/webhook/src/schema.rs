//! The JSON Schemas (2020-12) of message bodies: one for each type of event.

use serde_json::{Map, Value, json};

use crate::event::{EventType, Group};
use crate::limits::LINKS_MAX;

/// The fields of `data` for one type of event.
pub(crate) struct Fields {
    must: &'static [&'static str],
    may: &'static [&'static str],
}

impl Fields {
    /// Whether every event of the type has this field.
    pub(crate) fn must(&self, name: &str) -> bool {
        self.must.contains(&name)
    }

    /// Whether an event of the type may have this field.
    pub(crate) fn may(&self, name: &str) -> bool {
        self.must(name) || self.may.contains(&name)
    }
}

/// Returns the fields of events of a type, without `links`.
pub(crate) fn fields(kind: EventType) -> Fields {
    let (must, may): (&[_], &[_]) = match kind.group() {
        Group::Session => (&["tenant", "session", "sequence"], &["definition", "version", "state", "reason"]),
        Group::Approval => {
            (&["tenant", "session", "sequence", "approval"], &["definition", "version", "state", "reason"])
        }
        Group::Task => {
            (&["tenant", "session", "sequence", "task"], &["definition", "version", "state", "reason"])
        }
        Group::Policy => (
            &["tenant", "session", "sequence", "capability"],
            &["definition", "version", "state", "approval", "reason"],
        ),
        Group::Budget => (&["tenant", "budget"], &["session", "sequence", "definition", "reason"]),
        Group::Definition => (&["tenant", "definition", "version"], &[]),
        Group::Delivery => {
            (&["tenant", "delivery"], &["session", "sequence", "definition", "version", "reason"])
        }
        Group::Endpoint => (&["tenant", "endpoint", "reason"], &[]),
        Group::Ping => (&["tenant", "endpoint"], &[]),
    };
    Fields { must, may }
}

/// Returns the schema of the body of an event of this type. It allows fields that a later version adds.
#[must_use]
pub fn of(kind: EventType) -> Value {
    let fields = fields(kind);
    let mut properties: Map<String, Value> =
        fields.must.iter().chain(fields.may).map(|name| ((*name).to_owned(), property(name))).collect();
    properties.insert("links".into(), links());
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": format!("urn:switchward:webhook:{kind}"),
        "title": kind.name(),
        "type": "object",
        "required": ["type", "timestamp", "data"],
        "properties": {
            "type": { "const": kind.name() },
            "timestamp": { "type": "string", "format": "date-time", "description": "When the event happened." },
            "data": { "type": "object", "required": fields.must, "properties": properties },
        },
    })
}

fn property(name: &str) -> Value {
    match name {
        "sequence" => json!({
            "type": "integer",
            "minimum": 1,
            "description": "Grows within a session: an event with a larger number happened later.",
        }),
        "version" => json!({ "type": "integer", "minimum": 1, "maximum": u32::MAX }),
        _ => json!({ "type": "string", "minLength": 1 }),
    }
}

fn links() -> Value {
    json!({
        "type": "object",
        "maxProperties": LINKS_MAX,
        "additionalProperties": { "type": "string", "format": "uri" },
        "description": "Addresses of further information.",
    })
}
