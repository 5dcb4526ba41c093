//! The part of JSON Schema that questions and results use.

use serde_json::{Map, Value};

use crate::limits::SCHEMA_DEPTH_MAX;

/// Returns true if a value meets a schema. Supports `type`, `enum`, `properties`, `required`, `items`, the format `date`,
/// and `additionalProperties: false`; other keywords are left to the receiver of the result. No value meets a schema that
/// is not an object, or is nested deeper than [`SCHEMA_DEPTH_MAX`]. Every value meets the schema `null`.
pub(super) fn holds(schema: &Value, value: &Value) -> bool {
    schema.is_null() || holds_at(schema, value, 0)
}

fn holds_at(schema: &Value, value: &Value, depth: usize) -> bool {
    let Value::Object(schema) = schema else { return *schema == Value::Bool(true) };
    depth < SCHEMA_DEPTH_MAX
        && schema.get("type").is_none_or(|types| is_one_of(types, value))
        && schema.get("enum").is_none_or(|words| words.as_array().is_some_and(|words| words.contains(value)))
        && schema.get("format").is_none_or(|format| has_format(format, value))
        && has_properties(schema, value, depth)
        && has_items(schema, value, depth)
}

fn is_one_of(types: &Value, value: &Value) -> bool {
    match types {
        Value::String(name) => is_type(name, value),
        Value::Array(names) => {
            names.iter().any(|name| name.as_str().is_some_and(|name| is_type(name, value)))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => false,
    }
}

fn is_type(name: &str, value: &Value) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    }
}

fn has_format(format: &Value, value: &Value) -> bool {
    match (format.as_str(), value) {
        (Some("date"), Value::String(text)) => is_date(text),
        _ => true,
    }
}

/// A day of the calendar as `2026-01-31`.
fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let [year, month, day] = parts[..] else { return false };
    let digits =
        |part: &str, count: usize| part.len() == count && part.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(year, 4) || !digits(month, 2) || !digits(day, 2) {
        return false;
    }
    let number = |part: &str| part.parse::<u32>().unwrap_or(0);
    let (year, month, day) = (number(year), number(month), number(day));
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => 0,
    };
    (1..=days).contains(&day)
}

fn has_properties(schema: &Map<String, Value>, value: &Value, depth: usize) -> bool {
    let Value::Object(value) = value else { return true };
    let known = schema.get("properties").and_then(Value::as_object);
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    let closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
    required.filter_map(Value::as_str).all(|name| value.contains_key(name))
        && value.iter().all(|(name, part)| match known.and_then(|known| known.get(name)) {
            Some(schema) => holds_at(schema, part, depth + 1),
            None => !closed,
        })
}

fn has_items(schema: &Map<String, Value>, value: &Value, depth: usize) -> bool {
    match (schema.get("items"), value) {
        (Some(items), Value::Array(values)) => values.iter().all(|value| holds_at(items, value, depth + 1)),
        _ => true,
    }
}

/// Returns true if every part has a type, as endpoints require of strict schemas.
pub(super) fn is_strict(schema: &Value) -> bool {
    let parts = schema.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::values);
    let items = schema.get("items");
    let is_list = schema.get("type").is_some_and(|types| is_one_of(types, &Value::Array(Vec::new())));
    schema.get("type").is_some() && (!is_list || items.is_some()) && parts.chain(items).all(is_strict)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_keyword_is_held() {
        let rows = [
            (json!({"type": "string"}), json!("a"), json!(1)),
            (json!({"type": ["string", "null"]}), json!(null), json!(true)),
            (json!({"type": "integer"}), json!(2.0), json!(2.5)),
            (json!({"type": "number"}), json!(2.5), json!("2.5")),
            (json!({"enum": ["a", 1]}), json!(1), json!("b")),
            (json!({"properties": {"a": {"type": "boolean"}}}), json!({"a": true, "b": 1}), json!({"a": 1})),
            (json!({"required": ["a"]}), json!({"a": null}), json!({"b": 1})),
            (
                json!({"properties": {"a": {}}, "additionalProperties": false}),
                json!({"a": [1]}),
                json!({"a": 1, "b": 2}),
            ),
            (json!({"type": "array", "items": {"type": "object"}}), json!([{}]), json!([{}, 1])),
            (json!({"format": "date", "type": "string"}), json!("2024-02-29"), json!("2023-02-29")),
            (json!({"format": "date"}), json!(7), json!("2024-1-1")),
            (json!(true), json!(1), json!(null)),
        ];
        for (schema, good, bad) in &rows[..11] {
            assert!(holds(schema, good), "{schema} {good}");
            assert!(!holds(schema, bad), "{schema} {bad}");
        }
        assert!(holds(&rows[11].0, &rows[11].1) && holds(&json!(null), &json!({"any": 1})));
        assert!(!holds(&json!("string"), &json!("a")) && !holds(&json!({"type": "strin"}), &json!("a")));
    }

    #[test]
    fn nesting_has_an_end() {
        let mut schema = json!({});
        let mut value = json!([]);
        for _ in 0..SCHEMA_DEPTH_MAX {
            schema = json!({"items": schema});
            value = json!([value]);
        }
        assert!(!holds(&schema, &value));
        assert!(holds(&schema["items"], &value[0]));
    }

    #[test]
    fn strict_schemas_name_every_type() {
        assert!(is_strict(&json!({"type": "object", "properties": {"a": {"type": ["string", "null"]}}})));
        assert!(!is_strict(&json!({"type": "object", "properties": {"a": {"type": ["array", "null"]}}})));
        assert!(!is_strict(&json!({"type": "object", "properties": {"a": {}}})));
        assert!(is_strict(&json!({"type": "array", "items": {"type": "string"}})));
    }
}
