//! Texts of JSON: the canonical one, and short ones for people.

use std::fmt::Write;

use serde_json::Value;

use crate::limits::{SHOWN_NAMES_MAX, SHOWN_VALUE_BYTES_MAX};

/// The text of a value without white space, keys in the order of their bytes. The value nests no deeper than
/// a thread's stack allows: [`depth_within`] says so.
pub(crate) fn canonical(value: &Value) -> String {
    let mut text = String::new();
    append(value, &mut text);
    text
}

fn append(value: &Value, text: &mut String) {
    match value {
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                append(item, text);
            }
            text.push(']');
        }
        Value::Object(map) => {
            let mut fields: Vec<(&String, &Value)> = map.iter().collect();
            fields.sort_unstable_by_key(|(name, _)| *name);
            text.push('{');
            for (index, (name, field)) in fields.into_iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                append_plain(&Value::String(name.clone()), text);
                text.push(':');
                append(field, text);
            }
            text.push('}');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => append_plain(value, text),
    }
}

fn append_plain(value: &Value, text: &mut String) {
    write!(text, "{value}").expect("a text takes everything");
}

/// Returns true if lists and dictionaries nest at most `max` deep.
pub(crate) fn depth_within(value: &Value, max: usize) -> bool {
    match value {
        Value::Array(items) => max > 0 && items.iter().all(|item| depth_within(item, max - 1)),
        Value::Object(map) => max > 0 && map.values().all(|field| depth_within(field, max - 1)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

/// The beginning of a text, at most `max` bytes, with `...` where something is missing.
pub(crate) fn cut(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    let end = (0..=max).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
    format!("{}...", &text[..end])
}

/// A name between back quotes, without control characters.
pub(crate) fn named(name: &str) -> String {
    let clean: String =
        name.chars().take(SHOWN_VALUE_BYTES_MAX + 1).map(|c| if c.is_control() { '?' } else { c }).collect();
    format!("`{}`", cut(&clean, SHOWN_VALUE_BYTES_MAX))
}

/// Names or values, cut after the first few.
pub(crate) fn listed(mut shown: Vec<String>, total: usize) -> String {
    shown.truncate(SHOWN_NAMES_MAX);
    let more = total.saturating_sub(shown.len());
    let text = shown.join(", ");
    if more > 0 { format!("{text} and {more} more") } else { text }
}

/// A value as short JSON: texts are cut, lists and dictionaries only counted.
pub(crate) fn short(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("a list of {}", items.len()),
        Value::Object(map) => format!("a dictionary of {}", map.len()),
        Value::String(text) => {
            let begin: String = text.chars().take(SHOWN_VALUE_BYTES_MAX + 1).collect();
            cut(&Value::String(begin).to_string(), SHOWN_VALUE_BYTES_MAX)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => cut(&value.to_string(), SHOWN_VALUE_BYTES_MAX),
    }
}

/// What a value is, in the words of `type`.
pub(crate) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(number) if number.is_f64() => "a number",
        Value::Number(_) => "an integer",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// A name as a part of a JSON pointer.
pub(crate) fn step(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// About how many bytes a value has as JSON.
pub(crate) fn weight(value: &Value) -> u64 {
    let own = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
        Value::String(text) => 2 + bytes(text),
        Value::Array(items) => 2 + items.iter().map(weight).sum::<u64>(),
        Value::Object(map) => {
            2 + map.iter().map(|(name, field)| 4 + bytes(name) + weight(field)).sum::<u64>()
        }
    };
    own + 1
}

/// The length of a text, bytes.
pub(crate) fn bytes(text: &str) -> u64 {
    u64::try_from(text.len()).unwrap_or(u64::MAX)
}
