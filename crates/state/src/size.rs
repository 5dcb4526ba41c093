//! How much values carry.

/// The approximate size of a value's text, bytes; its nesting is limited where it comes in.
pub(crate) fn weigh(value: &serde_json::Value) -> usize {
    match value {
        serde_json::Value::String(text) => text.len(),
        serde_json::Value::Array(items) => items.iter().map(weigh).sum(),
        serde_json::Value::Object(fields) => fields.iter().map(|(key, value)| key.len() + weigh(value)).sum(),
        serde_json::Value::Null | serde_json::Value::Bool(_) | serde_json::Value::Number(_) => 8,
    }
}
