//! The schema of what a step may write.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::reference::decoded;
use crate::schema::NEXT_NODE;
use crate::text::step;

/// The address of a schema without `$id` inside the one that is derived from it. It is relative, so that
/// relative addresses inside stay what they are.
const ADDRESS: &str = "switchward-data";
/// Keywords with which a part can mean something else in another schema.
const BOUND: &[&str] = &["$id", "$anchor", "$dynamicAnchor", "$dynamicRef"];

/// The schema of a dictionary with some of a schema's properties, and a choice of exits if there are any:
/// closed, and requiring none.
pub(crate) fn derived(schema: &Value, writes: &[String], exits: &[String]) -> Value {
    let declared = schema.get("properties").and_then(Value::as_object);
    let chosen: Map<String, Value> =
        writes.iter().filter_map(|name| Some((name.clone(), declared?.get(name)?.clone()))).collect();
    let (mut properties, definitions) = match definitions_of(schema, &chosen) {
        Some(definitions) => (chosen, definitions),
        None => whole(schema, &chosen),
    };
    if !exits.is_empty() {
        properties.insert(NEXT_NODE.to_owned(), json!({"enum": exits, "type": "string"}));
    }
    let mut derived = Map::new();
    if !definitions.is_empty() {
        derived.insert("$defs".to_owned(), Value::Object(definitions));
    }
    derived.insert("additionalProperties".to_owned(), Value::Bool(false));
    derived.insert("properties".to_owned(), Value::Object(properties));
    derived.insert("type".to_owned(), json!("object"));
    Value::Object(derived)
}

/// Those of the `$defs` that properties need. `None` if they refer to anything else, or mean something else
/// without it.
fn definitions_of(schema: &Value, chosen: &Map<String, Value>) -> Option<Map<String, Value>> {
    let mut references = Vec::new();
    for property in chosen.values() {
        collect(property, &mut references)?;
    }
    if references.is_empty() {
        return Some(Map::new());
    }
    if mentions(schema, BOUND) {
        return None;
    }
    let all = schema.get("$defs").and_then(Value::as_object)?;
    let mut needed = Map::new();
    let mut seen = BTreeSet::new();
    while let Some(reference) = references.pop() {
        if !seen.insert(reference.clone()) {
            continue;
        }
        let name = definition(&reference)?;
        let definition = all.get(&name)?;
        if needed.insert(name, definition.clone()).is_none() {
            collect(definition, &mut references)?;
        }
    }
    Some(needed)
}

/// Adds the references of a part. `None` if it has keywords of [`BOUND`].
fn collect(part: &Value, references: &mut Vec<String>) -> Option<()> {
    match part {
        Value::Object(map) => {
            for (name, value) in map {
                if BOUND.contains(&name.as_str()) {
                    return None;
                }
                if let ("$ref", Some(reference)) = (name.as_str(), value.as_str()) {
                    references.push(reference.to_owned());
                }
                collect(value, references)?;
            }
        }
        Value::Array(items) => items.iter().try_for_each(|item| collect(item, references))?,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    Some(())
}

fn mentions(part: &Value, names: &[&str]) -> bool {
    match part {
        Value::Object(map) => {
            map.iter().any(|(name, value)| names.contains(&name.as_str()) || mentions(value, names))
        }
        Value::Array(items) => items.iter().any(|item| mentions(item, names)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// The name of the definition that a reference leads to, or into; `None` if it leads to none.
fn definition(reference: &str) -> Option<String> {
    let pointer = decoded(reference.strip_prefix("#/$defs/")?).ok()?;
    let name = pointer.split('/').next().unwrap_or_default();
    Some(name.replace("~1", "/").replace("~0", "~"))
}

/// References to the properties, and the whole schema as the one definition, with an address of its own: all
/// that it says of itself stays true.
fn whole(schema: &Value, chosen: &Map<String, Value>) -> (Map<String, Value>, Map<String, Value>) {
    let mut body = schema.as_object().cloned().unwrap_or_default();
    body.remove("$schema");
    let id = body.get("$id").and_then(Value::as_str).map(|id| id.trim_end_matches('#').to_owned());
    let address = id.filter(|id| !id.is_empty()).unwrap_or_else(|| ADDRESS.to_owned());
    body.insert("$id".to_owned(), Value::String(address.clone()));
    let references = chosen.keys().map(|name| {
        let reference = format!("{address}#/properties/{}", escaped(&step(name)));
        (name.clone(), json!({"$ref": reference}))
    });
    (references.collect(), Map::from_iter([("data".to_owned(), Value::Object(body))]))
}

/// A text as the part of an address after `#`.
fn escaped(text: &str) -> String {
    text.bytes().fold(String::new(), |mut escaped, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
        escaped
    })
}
