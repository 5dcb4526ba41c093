//! A run's data, and other JSON in rows and events.

use minicbor::{CborLen, Decode, Encode};
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::io;

use crate::run::Provenance;

/// Who wrote a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum Writer {
    /// It came with the start.
    #[n(0)]
    Start,
    /// The agent recorded it.
    #[n(1)]
    Agent,
    /// An operation of the definition.
    #[n(2)]
    Operation,
    /// It came with an event.
    #[n(3)]
    Event,
    /// The run before it had it.
    #[n(4)]
    Switch,
    /// A worker's result.
    #[n(5)]
    Worker,
    /// It is a person's, at a gate or by mail.
    #[n(10)]
    Person,
    /// A child has given it back.
    #[n(20)]
    Child,
    /// A request shows it.
    #[n(120)]
    Request,
}

impl Writer {
    /// The public name.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Agent => "agent",
            Self::Operation => "operation",
            Self::Event => "event",
            Self::Switch => "switch",
            Self::Worker => "worker",
            Self::Person => "person",
            Self::Child => "child",
            Self::Request => "request",
        }
    }
}

/// A run's data. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Default, Encode, Decode, CborLen)]
pub struct Data {
    /// Top-level keys and their values.
    #[cbor(n(0), with = "object")]
    pub values: Map<String, Value>,
    /// What wrote each of them last, where that is kept.
    #[cbor(n(1), skip_if = "BTreeMap::is_empty")]
    pub provenance: BTreeMap<String, Provenance>,
}

/// A JSON value inside a stored form: its text, as bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Json(pub Value);

impl<C> Encode<C> for Json {
    fn encode<W: minicbor::encode::Write>(
        &self,
        e: &mut minicbor::Encoder<W>,
        _: &mut C,
    ) -> Result<(), minicbor::encode::Error<W::Error>> {
        e.bytes(&json_text(&self.0))?.ok()
    }
}

impl<'b, C> Decode<'b, C> for Json {
    fn decode(d: &mut minicbor::Decoder<'b>, _: &mut C) -> Result<Self, minicbor::decode::Error> {
        serde_json::from_slice(d.bytes()?).map(Self).map_err(minicbor::decode::Error::custom)
    }
}

impl<C> CborLen<C> for Json {
    fn cbor_len(&self, ctx: &mut C) -> usize {
        length(json_length(&self.0), ctx)
    }
}

pub(crate) fn length<C>(len: usize, ctx: &mut C) -> usize {
    CborLen::cbor_len(&len, ctx) + len
}

/// A JSON object inside another form: its text, as bytes; for `#[cbor(with = "...")]`.
pub mod object {
    use minicbor::decode::Error as DecodeError;
    use minicbor::encode::{Error as EncodeError, Write};
    use minicbor::{Decoder, Encoder};
    use serde_json::{Map, Value};

    /// Writes an object.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn encode<C, W: Write>(
        map: &Map<String, Value>,
        e: &mut Encoder<W>,
        _: &mut C,
    ) -> Result<(), EncodeError<W::Error>> {
        e.bytes(&super::json_text(map))?.ok()
    }

    /// Reads an object.
    ///
    /// # Errors
    /// The bytes are no text of an object.
    pub fn decode<C>(d: &mut Decoder<'_>, _: &mut C) -> Result<Map<String, Value>, DecodeError> {
        serde_json::from_slice(d.bytes()?).map_err(DecodeError::custom)
    }

    /// The length of what is written, bytes.
    pub fn cbor_len<C>(map: &Map<String, Value>, ctx: &mut C) -> usize {
        super::length(super::text_length(map), ctx)
    }
}

/// Bytes of a value's JSON text.
#[must_use]
pub fn json_length(value: &Value) -> usize {
    text_length(value)
}

/// The JSON text of a value, or of an object of values.
pub(crate) fn json_text(json: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(json).expect("JSON values have a text")
}

/// Bytes of that text. They are counted as they come: the text is not needed, and may be long.
fn text_length(json: &impl Serialize) -> usize {
    let mut counted = Counted(0);
    serde_json::to_writer(&mut counted, json).expect("JSON values have a text, and counting cannot fail");
    counted.0
}

/// Counts what is written.
struct Counted(usize);

impl io::Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// How many lists and objects stand inside each other.
#[must_use]
pub fn json_depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(json_depth).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(json_depth).max().unwrap_or(0),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_text_is_as_long_as_it_is_said_to_be() {
        let numbers = json!([0, -1, u64::MAX, i64::MIN, 0.1, 1e300, -2.5e-8]);
        let texts = json!(["", "a \"quote\"", "\u{1}\n\t\\", "Straße", "x".repeat(5_000)]);
        let nested =
            json!({ "": null, "a\nb": [{ "numbers": numbers, "texts": texts }, [], {}, true, false] });
        for value in [json!(null), numbers, texts, nested] {
            let text = value.to_string();
            assert_eq!(json_text(&value), text.as_bytes());
            assert_eq!(json_length(&value), text.len(), "{text}");
            let json = Json(value.clone());
            let encoded = minicbor::to_vec(&json).unwrap();
            assert!(encoded.ends_with(text.as_bytes()));
            assert_eq!(minicbor::len(&json), encoded.len());
            let values = [("key".to_owned(), value)].into_iter().collect();
            let data = Data { values, ..Data::default() };
            assert_eq!(minicbor::len(&data), minicbor::to_vec(&data).unwrap().len());
        }
    }
}
