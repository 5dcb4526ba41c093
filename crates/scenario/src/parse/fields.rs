//! Keys of verbs, and texts and JSON below them.

use serde_json::{Map, Number, Value as Json};
use switchward_formats::{
    Report,
    document::{Node, Value},
    limits::SOURCE_BYTES_MAX,
    quoted,
    shape::{self, Fields, Shape},
};

/// The shape of a map with these keys; `what` names it in findings.
pub(crate) const fn keys(what: &'static str, keys: &'static [&'static str]) -> Shape {
    Shape { what, keys, ignored: &[], hints: &[] }
}

/// The text of a key that may be absent.
pub(crate) fn some_text(fields: &Fields<'_>, key: &'static str, report: &mut Report) -> Option<String> {
    let node = fields.optional(key)?;
    shape::text(node, &quoted(key), SOURCE_BYTES_MAX, report).map(str::to_owned)
}

/// The text of a key; a finding if it is absent.
pub(crate) fn needed_text(fields: &Fields<'_>, key: &'static str, report: &mut Report) -> Option<String> {
    let node = fields.required(key, report)?;
    shape::text(node, &quoted(key), SOURCE_BYTES_MAX, report).map(str::to_owned)
}

/// The value as JSON, for comparing and for reports.
pub(crate) fn json(node: &Node) -> Json {
    match &node.value {
        Value::Null | Value::Unread => Json::Null,
        Value::Bool(truth) => Json::Bool(*truth),
        Value::Number(text) => text.parse::<Number>().map_or(Json::Null, Json::Number),
        Value::String(text) => Json::String(text.clone()),
        Value::List(items) => Json::Array(items.iter().map(json).collect()),
        Value::Map(entries) => {
            let entries = entries.iter().map(|(key, node)| (key.text.clone(), json(node)));
            Json::Object(entries.collect::<Map<_, _>>())
        }
    }
}
