//! `google.protobuf.Struct` and JSON.

use prost_types::value::Kind;
use prost_types::{ListValue, Struct, Value};

/// Nesting of an input, levels.
const DEPTH_MAX: usize = 32;
/// Integers beyond it are not exact in a double.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// A struct as JSON.
///
/// # Errors
/// Nested too deeply, a number that is none, or an integer that a double cannot hold.
pub(crate) fn of_struct(input: &Struct) -> Result<serde_json::Value, String> {
    object(input, DEPTH_MAX)
}

/// Any value as JSON.
///
/// # Errors
/// As [`of_struct`].
pub(crate) fn of_value(input: &Value) -> Result<serde_json::Value, String> {
    json(input, DEPTH_MAX)
}

fn object(input: &Struct, depth: usize) -> Result<serde_json::Value, String> {
    let members = input.fields.iter().map(|(key, value)| Ok((key.clone(), json(value, depth)?)));
    Ok(serde_json::Value::Object(members.collect::<Result<_, String>>()?))
}

fn json(value: &Value, depth: usize) -> Result<serde_json::Value, String> {
    let deeper = depth.checked_sub(1).ok_or_else(|| format!("is nested deeper than {DEPTH_MAX} levels"))?;
    Ok(match &value.kind {
        None | Some(Kind::NullValue(_)) => serde_json::Value::Null,
        Some(Kind::BoolValue(value)) => (*value).into(),
        Some(Kind::StringValue(text)) => text.clone().into(),
        Some(Kind::NumberValue(number)) => self::number(*number)?,
        Some(Kind::ListValue(ListValue { values })) => serde_json::Value::Array(
            values.iter().map(|value| json(value, deeper)).collect::<Result<_, _>>()?,
        ),
        Some(Kind::StructValue(inner)) => object(inner, deeper)?,
    })
}

fn number(number: f64) -> Result<serde_json::Value, String> {
    if number.fract() == 0.0 && number.abs() >= EXACT_MAX {
        return Err("holds an integer beyond 2^53, which is not exact; send it as text".into());
    }
    if number.fract() == 0.0 {
        #[expect(clippy::cast_possible_truncation, reason = "it is whole and below 2^53")]
        return Ok((number as i64).into());
    }
    serde_json::Number::from_f64(number)
        .map(Into::into)
        .ok_or_else(|| "holds a number that is not finite".into())
}

/// An object as a struct. Numbers become doubles.
pub(crate) fn to_struct(object: &serde_json::Map<String, serde_json::Value>) -> Struct {
    Struct { fields: object.iter().map(|(key, value)| (key.clone(), to_value(value))).collect() }
}

/// Any JSON as a value. Numbers become doubles.
pub(crate) fn to_value(value: &serde_json::Value) -> Value {
    let kind = match value {
        serde_json::Value::Null => Kind::NullValue(0),
        serde_json::Value::Bool(value) => Kind::BoolValue(*value),
        serde_json::Value::Number(number) => Kind::NumberValue(number.as_f64().unwrap_or(f64::NAN)),
        serde_json::Value::String(text) => Kind::StringValue(text.clone()),
        serde_json::Value::Array(items) => {
            Kind::ListValue(ListValue { values: items.iter().map(to_value).collect() })
        }
        serde_json::Value::Object(object) => Kind::StructValue(to_struct(object)),
    };
    Value { kind: Some(kind) }
}

pub(crate) fn text(text: &str) -> Value {
    Value { kind: Some(Kind::StringValue(text.to_owned())) }
}

pub(crate) fn list(values: Vec<Value>) -> Value {
    Value { kind: Some(Kind::ListValue(ListValue { values })) }
}

/// Named values as one.
pub(crate) fn members(members: impl IntoIterator<Item = (&'static str, Value)>) -> Struct {
    Struct { fields: members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect() }
}
