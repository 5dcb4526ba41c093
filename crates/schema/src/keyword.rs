//! The keywords of 2020-12, and which values each can have.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::limits::REFERENCE_BYTES_MAX;
use crate::text::{kind, named};

/// What a keyword's value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Text,
    Flag,
    Number,
    /// A number above 0.
    Positive,
    /// A whole number from 0 on.
    Count,
    List,
    /// A list of texts that differ.
    Names,
    /// A dictionary of [`Shape::Names`].
    NamesByName,
    Dictionary,
    /// One of the seven types, or a list of some.
    Types,
    /// `$anchor` and `$dynamicAnchor`.
    Anchor,
    /// `$id`.
    Identifier,
    /// `$ref` and `$dynamicRef`.
    Reference,
    Pattern,
    Schema,
    /// A list of schemas, at least one.
    Schemas,
    SchemasByName,
    /// A keyword of older drafts that would be read, or expected to be.
    Older,
}

/// The types that `type` can name.
const TYPES: &[&str] = &["array", "boolean", "integer", "null", "number", "object", "string"];

/// The shape of a keyword; `None` for any other name, which is a note for readers.
pub(crate) fn shape(keyword: &str) -> Option<Shape> {
    Some(match keyword {
        "$id" => Shape::Identifier,
        "$anchor" | "$dynamicAnchor" => Shape::Anchor,
        "$ref" | "$dynamicRef" => Shape::Reference,
        "$schema" | "$comment" | "title" | "description" | "format" | "contentEncoding"
        | "contentMediaType" => Shape::Text,
        "$vocabulary" => Shape::Dictionary,
        "deprecated" | "readOnly" | "writeOnly" | "uniqueItems" => Shape::Flag,
        "maximum" | "exclusiveMaximum" | "minimum" | "exclusiveMinimum" => Shape::Number,
        "multipleOf" => Shape::Positive,
        "maxLength" | "minLength" | "maxItems" | "minItems" | "maxContains" | "minContains"
        | "maxProperties" | "minProperties" => Shape::Count,
        "enum" | "examples" => Shape::List,
        "type" => Shape::Types,
        "required" => Shape::Names,
        "dependentRequired" => Shape::NamesByName,
        "pattern" => Shape::Pattern,
        "allOf" | "anyOf" | "oneOf" | "prefixItems" => Shape::Schemas,
        "$defs" | "definitions" | "properties" | "patternProperties" | "dependentSchemas" => {
            Shape::SchemasByName
        }
        "not"
        | "if"
        | "then"
        | "else"
        | "items"
        | "contains"
        | "additionalProperties"
        | "propertyNames"
        | "unevaluatedItems"
        | "unevaluatedProperties"
        | "contentSchema" => Shape::Schema,
        "dependencies" | "additionalItems" | "$recursiveRef" | "$recursiveAnchor" => Shape::Older,
        _ => return None,
    })
}

/// Checks the value of a keyword. What a schema inside it says is checked where it is read.
///
/// # Errors
/// A sentence about the value.
pub(crate) fn check(keyword: &str, shape: Shape, value: &Value) -> Result<(), String> {
    let expected = match shape {
        Shape::Text | Shape::Pattern => value.is_string().then_some(()).ok_or("a string"),
        Shape::Flag => value.is_boolean().then_some(()).ok_or("true or false"),
        Shape::Number => value.is_number().then_some(()).ok_or("a number"),
        Shape::Positive => is_positive(value).then_some(()).ok_or("a number above 0"),
        Shape::Count => is_count(value).then_some(()).ok_or("a whole number from 0 on"),
        Shape::List => value.is_array().then_some(()).ok_or("a list"),
        Shape::Names => is_names(value).then_some(()).ok_or("a list of strings that differ"),
        Shape::NamesByName => value
            .as_object()
            .is_some_and(|map| map.values().all(is_names))
            .then_some(())
            .ok_or("a dictionary of lists of strings that differ"),
        Shape::Dictionary => value.is_object().then_some(()).ok_or("a dictionary"),
        Shape::Types => return check_types(value),
        Shape::Anchor => value
            .as_str()
            .is_some_and(is_anchor)
            .then_some(())
            .ok_or("a name of letters, digits, `_`, `-` and `.` that begins with a letter or `_`"),
        Shape::Identifier | Shape::Reference => return check_reference(keyword, value),
        Shape::Schema if value.is_array() && keyword == "items" => {
            return Err("is a list: in 2020-12 the schemas of the first items are `prefixItems`".to_owned());
        }
        Shape::Schema => Ok(()),
        Shape::Schemas => value
            .as_array()
            .is_some_and(|items| !items.is_empty())
            .then_some(())
            .ok_or("a list of schemas, at least one"),
        Shape::SchemasByName => value.is_object().then_some(()).ok_or("a dictionary of schemas"),
        Shape::Older => return Err(older(keyword)),
    };
    expected.map_err(|expected| format!("is {}, and {} is {expected}", kind(value), named(keyword)))
}

fn older(keyword: &str) -> String {
    let instead = match keyword {
        "dependencies" => "`dependentRequired` and `dependentSchemas`",
        "additionalItems" => "`items` beside `prefixItems`",
        _ => "`$dynamicRef` and `$dynamicAnchor`",
    };
    format!("{} is of older drafts: 2020-12 has {instead}", named(keyword))
}

fn is_positive(value: &Value) -> bool {
    value.as_f64().is_some_and(|number| number > 0.0)
}

fn is_count(value: &Value) -> bool {
    value.as_u64().is_some() || value.as_f64().is_some_and(|number| number >= 0.0 && number.fract() == 0.0)
}

fn is_names(value: &Value) -> bool {
    let Some(items) = value.as_array() else { return false };
    let names: BTreeSet<&str> = items.iter().filter_map(Value::as_str).collect();
    names.len() == items.len()
}

fn is_anchor(name: &str) -> bool {
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    begins && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
}

fn check_types(value: &Value) -> Result<(), String> {
    let types: Vec<&Value> = match value {
        Value::Array(items) => items.iter().collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => vec![value],
    };
    let names: Option<BTreeSet<&str>> =
        types.iter().map(|name| name.as_str().filter(|name| TYPES.contains(name))).collect();
    let is_sound = names.is_some_and(|names| !names.is_empty() && names.len() == types.len());
    is_sound.then_some(()).ok_or_else(|| {
        format!("`type` is one of {}, or a list of some of them that differ", TYPES.join(", "))
    })
}

fn check_reference(keyword: &str, value: &Value) -> Result<(), String> {
    let Some(text) = value.as_str() else {
        return Err(format!("is {}, and {} is a string", kind(value), named(keyword)));
    };
    if text.len() > REFERENCE_BYTES_MAX {
        return Err(format!("is longer than {REFERENCE_BYTES_MAX} bytes"));
    }
    let fragment = text.split_once('#').map(|(_, fragment)| fragment);
    if keyword == "$id" && fragment.is_some_and(|fragment| !fragment.is_empty()) {
        return Err("`$id` has no part after `#`: an `$anchor` names a part of a schema".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn is_sound(keyword: &str, value: &Value) -> bool {
        check(keyword, shape(keyword).unwrap(), value).is_ok()
    }

    #[test]
    fn sound_values_pass() {
        for (keyword, value) in [
            ("type", json!("string")),
            ("type", json!(["string", "null"])),
            ("minLength", json!(2.0)),
            ("multipleOf", json!(0.01)),
            ("required", json!([])),
            ("enum", json!([])),
            ("items", json!(true)),
            ("$anchor", json!("_a-b.c")),
            ("$id", json!("http://example.com/a#")),
            ("exclusiveMinimum", json!(-1)),
        ] {
            assert!(is_sound(keyword, &value), "{keyword}: {value}");
        }
        assert_eq!(shape("x-note"), None);
    }

    #[test]
    fn other_values_are_refused() {
        for (keyword, value) in [
            ("type", json!("text")),
            ("type", json!([])),
            ("type", json!(["string", "string"])),
            ("type", json!(3)),
            ("minLength", json!(-1)),
            ("minLength", json!(1.5)),
            ("multipleOf", json!(0)),
            ("required", json!(["a", "a"])),
            ("required", json!(["a", 1])),
            ("required", json!(true)),
            ("enum", json!({})),
            ("items", json!([{}])),
            ("allOf", json!([])),
            ("properties", json!([])),
            ("dependentRequired", json!({"a": "b"})),
            ("$anchor", json!("1a")),
            ("$id", json!("a#b")),
            ("$ref", json!(1)),
            ("$ref", json!("#".repeat(REFERENCE_BYTES_MAX + 1))),
            ("exclusiveMinimum", json!(true)),
            ("dependencies", json!({})),
            ("uniqueItems", json!(1)),
            ("pattern", json!(1)),
        ] {
            assert!(!is_sound(keyword, &value), "{keyword}: {value}");
        }
    }
}
