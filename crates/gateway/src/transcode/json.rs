//! JSON read strictly: bounded nesting, no member twice, nothing after the end.

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::fmt;

use crate::limits::JSON_DEPTH_MAX;

/// Reads one JSON value. Integers are kept exactly as far as 64 bits go.
///
/// # Errors
/// Anything that is not one JSON value in UTF-8, more than [`JSON_DEPTH_MAX`] levels, a member given twice, a number
/// beyond what a double can say. The error names line and column.
pub(super) fn read(bytes: &[u8]) -> Result<Value, serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = Strict { depth_left: JSON_DEPTH_MAX }.deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

#[derive(Clone, Copy)]
struct Strict {
    depth_left: usize,
}

impl Strict {
    fn deeper<E: Error>(self) -> Result<Self, E> {
        let left = self.depth_left.checked_sub(1);
        let left = left.ok_or_else(|| E::custom(format!("nested deeper than {JSON_DEPTH_MAX} levels")))?;
        Ok(Self { depth_left: left })
    }
}

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("the number is not finite"))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let inner = self.deeper()?;
        let mut items = Vec::new();
        while let Some(item) = access.next_element_seed(inner)? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let inner = self.deeper()?;
        let mut members = Map::new();
        while let Some(name) = access.next_key::<String>()? {
            if members.contains_key(&name) {
                return Err(A::Error::custom(format!("the member {name:?} is given twice")));
            }
            let value = access.next_value_seed(inner)?;
            members.insert(name, value);
        }
        Ok(Value::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(depth: usize) -> String {
        "[".repeat(depth) + &"]".repeat(depth)
    }

    #[test]
    fn what_is_json_is_read_whole() {
        let text = r#"{"a": [1, -2, 2.5, 18446744073709551615, true, null, "ä\u00e4\ud83d\ude00"]}"#;
        assert_eq!(read(text.as_bytes()).unwrap(), serde_json::from_str::<Value>(text).unwrap());
        assert!(read(nested(JSON_DEPTH_MAX).as_bytes()).is_ok());
    }

    #[test]
    fn what_is_not_is_refused_with_its_position() {
        let deep = nested(JSON_DEPTH_MAX + 1);
        let bomb = "[".repeat(1_000_000);
        let bad: [&[u8]; 13] = [
            b"",
            b"{",
            b"nope",
            b"NaN",
            b"{\"a\": NaN}",
            b"1e400",
            b"{} {}",
            b"{\"a\": 1, \"a\": 2}",
            br#""\ud800""#,
            b"\"\xff\"",
            b"[1,]",
            deep.as_bytes(),
            bomb.as_bytes(),
        ];
        for text in bad {
            let error = read(text).unwrap_err();
            assert!(error.line() > 0, "{error}");
        }
    }
}
