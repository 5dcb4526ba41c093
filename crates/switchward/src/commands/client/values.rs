//! Values of options as the API takes them.

use prost_types::{ListValue, Struct, Value, value::Kind};

use crate::args::files;
use crate::exit::Exit;

/// Reads an option's value: a JSON object, or a file with one.
pub(super) fn object(flag: &str, text: &str, example: &str) -> Result<Struct, Exit> {
    match json_value(flag, text)?.kind {
        Some(Kind::StructValue(object)) => Ok(object),
        Some(_) | None => Err(Exit::usage(format!("{flag} must be a JSON object, such as '{example}'"))),
    }
}

/// Reads an option's value: JSON, or a file with it.
pub(super) fn json_value(flag: &str, text: &str) -> Result<Value, Exit> {
    let bytes = files::value(text)?;
    let value = serde_json::from_slice(&bytes);
    value.map(value_of).map_err(|error| Exit::usage(format!("{flag} is not JSON: {error}")))
}

/// A value: JSON, or else a string.
pub(super) fn typed(text: String) -> Value {
    value_of(serde_json::from_str(&text).unwrap_or(serde_json::Value::String(text)))
}

/// A JSON value as the API takes it.
pub(super) fn value_of(value: serde_json::Value) -> Value {
    let kind = match value {
        serde_json::Value::Null => Kind::NullValue(0),
        serde_json::Value::Bool(truth) => Kind::BoolValue(truth),
        // The server refuses a number that is not a double.
        serde_json::Value::Number(number) => Kind::NumberValue(number.as_f64().unwrap_or(f64::NAN)),
        serde_json::Value::String(text) => Kind::StringValue(text),
        serde_json::Value::Array(values) => {
            Kind::ListValue(ListValue { values: values.into_iter().map(value_of).collect() })
        }
        serde_json::Value::Object(members) => Kind::StructValue(Struct {
            fields: members.into_iter().map(|(key, it)| (key, value_of(it))).collect(),
        }),
    };
    Value { kind: Some(kind) }
}
