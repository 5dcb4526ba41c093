//! The arguments of a call, and the digest that an approval is bound to.

use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::fmt;
use switchward_machine::Digest;

use crate::limits::{ARGS_BYTES_MAX, ARGS_DEPTH_MAX};

/// Arguments in canonical form: object keys in order, no white space, numbers as they were written. A key given
/// twice is refused, because the one who is asked and the one who acts could each read another of the two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Args {
    json: Vec<u8>,
    digest: Digest,
}

crate::wire::as_bytes!(Args, Self::json, |bytes| {
    Self::parse(bytes).map_err(|bad| format!("the arguments {}", bad.0))
});

/// Why bytes are not valid arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadArgs(pub String);

impl Args {
    /// Reads JSON; no bytes at all are `{}`.
    ///
    /// # Errors
    /// No JSON object, a key given twice, deeper than [`ARGS_DEPTH_MAX`], longer than [`ARGS_BYTES_MAX`].
    pub fn parse(bytes: &[u8]) -> Result<Self, BadArgs> {
        if bytes.len() > ARGS_BYTES_MAX {
            return Err(BadArgs(format!("are longer than {ARGS_BYTES_MAX} bytes")));
        }
        let text = if bytes.is_empty() { b"{}" } else { bytes };
        let raw: &RawValue =
            serde_json::from_slice(text).map_err(|error| BadArgs(format!("are no JSON: {error}")))?;
        if !raw.get().trim_start().starts_with('{') {
            return Err(BadArgs("must be a JSON object".to_owned()));
        }
        let mut json = Vec::with_capacity(text.len());
        canonical(raw.get(), ARGS_DEPTH_MAX, &mut json)?;
        let digest = Digest::of(&json);
        Ok(Self { json, digest })
    }

    /// The canonical bytes.
    #[must_use]
    pub fn json(&self) -> &[u8] {
        &self.json
    }

    /// SHA-256 of the canonical bytes.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest
    }
}

/// The canonical text of a value, as that of arguments.
pub fn canonical_of(value: &serde_json::Value) -> Vec<u8> {
    let (text, mut out) = (value.to_string(), Vec::new());
    // A value of the data has each key once, and nests less than that.
    if canonical(&text, VALUE_DEPTH_MAX, &mut out).is_err() {
        return text.into_bytes();
    }
    out
}

/// Nesting of a value of the data; leaves space for the names of the keys that it stands below.
const VALUE_DEPTH_MAX: usize = 4 * ARGS_DEPTH_MAX;

fn canonical(text: &str, depth: usize, out: &mut Vec<u8>) -> Result<(), BadArgs> {
    let text = text.trim();
    let deeper =
        || depth.checked_sub(1).ok_or_else(|| BadArgs(format!("are nested deeper than {ARGS_DEPTH_MAX}")));
    match text.as_bytes().first() {
        Some(b'{') => {
            let map = read(text, Unique)?;
            list(out, b'{', map, b'}', |(key, value), out| {
                string(&key, out)?;
                out.push(b':');
                canonical(value.get(), deeper()?, out)
            })
        }
        Some(b'[') => {
            let items = read(text, Items)?;
            list(out, b'[', items, b']', |item, out| canonical(item.get(), deeper()?, out))
        }
        Some(b'"') => string(&serde_json::from_str::<String>(text).map_err(|e| BadArgs(e.to_string()))?, out),
        _ => {
            out.extend_from_slice(text.as_bytes());
            Ok(())
        }
    }
}

fn read<'a, S: DeserializeSeed<'a>>(text: &'a str, seed: S) -> Result<S::Value, BadArgs> {
    let mut reader = serde_json::Deserializer::from_str(text);
    seed.deserialize(&mut reader).map_err(|error| BadArgs(error.to_string()))
}

fn list<T>(
    out: &mut Vec<u8>,
    open: u8,
    items: impl IntoIterator<Item = T>,
    close: u8,
    mut each: impl FnMut(T, &mut Vec<u8>) -> Result<(), BadArgs>,
) -> Result<(), BadArgs> {
    out.push(open);
    for (at, item) in items.into_iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        each(item, out)?;
    }
    out.push(close);
    Ok(())
}

fn string(text: &str, out: &mut Vec<u8>) -> Result<(), BadArgs> {
    serde_json::to_writer(out, text).map_err(|error| BadArgs(error.to_string()))
}

struct Unique;

impl<'de> DeserializeSeed<'de> for Unique {
    type Value = BTreeMap<String, &'de RawValue>;
    fn deserialize<D: serde::Deserializer<'de>>(self, reader: D) -> Result<Self::Value, D::Error> {
        reader.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Unique {
    type Value = BTreeMap<String, &'de RawValue>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
        let mut map = BTreeMap::new();
        while let Some((key, value)) = access.next_entry::<String, &'de RawValue>()? {
            if map.contains_key(&key) {
                return Err(A::Error::custom(format!("give the key {key:?} twice")));
            }
            map.insert(key, value);
        }
        Ok(map)
    }
}

struct Items;

impl<'de> DeserializeSeed<'de> for Items {
    type Value = Vec<&'de RawValue>;
    fn deserialize<D: serde::Deserializer<'de>>(self, reader: D) -> Result<Self::Value, D::Error> {
        reader.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Items {
    type Value = Vec<&'de RawValue>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(items)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_and_space_do_not_matter_but_every_digit_does() {
        let one = Args::parse(br#"{"b": [1, 2.0, {"y":null,"x":"\u0041"}], "a": 1}"#).unwrap();
        assert_eq!(one.json(), br#"{"a":1,"b":[1,2.0,{"x":"A","y":null}]}"#);
        assert_eq!(one.digest(), Args::parse(br#"{"a":1,"b":[1,2.0,{"x":"A","y":null}]}"#).unwrap().digest());
        let big = |n: &str| Args::parse(format!("{{\"n\":{n}}}").as_bytes()).unwrap().digest();
        assert_ne!(big("12345678901234567890123"), big("12345678901234567890124"));
        assert_eq!(Args::parse(b"").unwrap(), Args::parse(b" {} ").unwrap());
    }

    #[test]
    fn only_an_object_is_accepted() {
        for other in ["[1]", " [] ", "null", "1", "\"text\"", "true"] {
            let bad = Args::parse(other.as_bytes()).unwrap_err();
            assert_eq!(bad.0, "must be a JSON object", "{other}");
        }
    }

    #[test]
    fn what_can_be_read_in_two_ways_is_refused() {
        for bad in
            [&br#"{"p":"/a","p":"/b"}"#[..], br#"{"x":[{"p":1,"p":2}]}"#, b"{", b"[1] 2", b"\xff", b"nope"]
        {
            assert!(Args::parse(bad).is_err(), "{}", String::from_utf8_lossy(bad));
        }
        let deep = r#"{"x":"#.to_owned() + &"[".repeat(100) + &"]".repeat(100) + "}";
        assert!(Args::parse(deep.as_bytes()).unwrap_err().0.contains("nested deeper"));
        let bomb = r#"{"x":"#.to_owned() + &"[".repeat(100_000);
        assert!(Args::parse(bomb.as_bytes()).is_err());
    }
}
