//! Single values: when two are equal, which are numbers, how one reads as text.

use std::borrow::Cow;
use std::cmp::Ordering;

use serde_json::{Number, Value};

/// Returns true if two values are the same JSON; numbers are compared by value, so that `1` equals `1.0`.
pub(crate) fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(a), Value::Number(b)) => {
            Amount::of_number(a).and_then(|a| a.compare(Amount::of_number(b)?)) == Some(Ordering::Equal)
        }
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| equal(a, b)))
        }
        _ => left == right,
    }
}

/// Appends bytes to a key that are the same for equal values. Values that differ have other bytes, except for numbers that
/// are equal as floats.
pub(crate) fn bucket(value: &Value, key: &mut Vec<u8>) {
    match value {
        Value::Null => key.push(0),
        Value::Bool(is) => key.extend([1, u8::from(*is)]),
        Value::Number(number) => {
            key.push(2);
            let float = Amount::of_number(number).map_or(0.0, Amount::float);
            key.extend(float.to_bits().to_be_bytes());
        }
        Value::String(text) => {
            key.push(3);
            bucket_text(text, key);
        }
        Value::Array(items) => {
            key.push(4);
            key.extend(items.len().to_be_bytes());
            for item in items {
                bucket(item, key);
            }
        }
        Value::Object(map) => {
            key.push(5);
            key.extend(map.len().to_be_bytes());
            let mut fields: Vec<(&String, &Value)> = map.iter().collect();
            fields.sort_unstable_by_key(|(name, _)| *name);
            for (name, value) in fields {
                bucket_text(name, key);
                bucket(value, key);
            }
        }
    }
}

fn bucket_text(text: &str, key: &mut Vec<u8>) {
    key.extend(text.len().to_be_bytes());
    key.extend(text.as_bytes());
}

/// A number to compare and to count with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Amount {
    /// Exact.
    Whole(i128),
    /// Finite.
    Broken(f64),
}

/// Whole numbers up to this are exact as floats.
const EXACT: f64 = 9_007_199_254_740_992.0;

impl Amount {
    /// A number, or a text that is one.
    pub(crate) fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Number(number) => Self::of_number(number),
            Value::String(text) => Self::of_text(text),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        }
    }

    /// A JSON number.
    pub(crate) fn of_number(number: &Number) -> Option<Self> {
        if let Some(whole) = number.as_i64() {
            return Some(Self::Whole(whole.into()));
        }
        if let Some(whole) = number.as_u64() {
            return Some(Self::Whole(whole.into()));
        }
        number.as_f64().and_then(Self::of_float)
    }

    /// Whole if it has no fraction and is exact; `None` if it is not finite.
    pub(crate) fn of_float(float: f64) -> Option<Self> {
        if float.fract() == 0.0 && float.abs() <= EXACT {
            #[expect(clippy::cast_possible_truncation, reason = "it is whole and small")]
            return Some(Self::Whole(float as i128));
        }
        float.is_finite().then_some(Self::Broken(float))
    }

    /// A decimal number, with white space around it, a sign, an exponent.
    pub(crate) fn of_text(text: &str) -> Option<Self> {
        let text = text.trim();
        let digits = text.bytes().any(|byte| byte.is_ascii_digit());
        let clean = text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
        if !digits || !clean {
            return None;
        }
        match text.parse::<i128>() {
            Ok(whole) => Some(Self::Whole(whole)),
            Err(_) => text.parse::<f64>().ok().and_then(Self::of_float),
        }
    }

    pub(crate) fn compare(self, other: Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Whole(a), Self::Whole(b)) => Some(a.cmp(&b)),
            (a, b) => a.float().partial_cmp(&b.float()),
        }
    }

    pub(crate) fn plus(self, other: Self) -> Option<Self> {
        match (self, other) {
            (Self::Whole(a), Self::Whole(b)) => a.checked_add(b).map(Self::Whole),
            (a, b) => Self::of_float(a.float() + b.float()),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "the nearest float is intended")]
    pub(crate) fn float(self) -> f64 {
        match self {
            Self::Whole(whole) => whole as f64,
            Self::Broken(float) => float,
        }
    }

    /// As JSON; `None` if it is out of range of JSON numbers here.
    pub(crate) fn value(self) -> Option<Value> {
        match self {
            Self::Whole(whole) => {
                i64::try_from(whole).map(Value::from).or_else(|_| u64::try_from(whole).map(Value::from)).ok()
            }
            Self::Broken(float) => Number::from_f64(float).map(Value::Number),
        }
    }
}

/// A value inside a text: a text as it is, null as the empty text, anything else as compact JSON.
pub(crate) fn text(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        Value::Null => Cow::Borrowed(""),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            Cow::Owned(value.to_string())
        }
    }
}
