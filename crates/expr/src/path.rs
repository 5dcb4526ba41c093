//! Dotted paths into data.

use minicbor::{CborLen, Decode, Encode};
use serde_json::Value;

use crate::limits::{PATH_BYTES_MAX, PATH_SEGMENTS_MAX};

/// A dotted path, as in `customer.address.0.city`: keys of dictionaries, and indices of lists from 0.
/// See `docs/formats-conversation-operations.md#data`. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Encode, Decode, CborLen)]
#[cbor(transparent)]
pub struct Path(#[n(0)] String);

/// Why a text is not a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// Longer than [`PATH_BYTES_MAX`].
    #[error("is longer than {PATH_BYTES_MAX} bytes")]
    TooLong,
    /// More than [`PATH_SEGMENTS_MAX`] names.
    #[error("has more than {PATH_SEGMENTS_MAX} names")]
    TooDeep,
    /// An empty path, an empty name between two dots, or a dot at either end.
    #[error("has an empty name")]
    EmptyName,
    /// A brace, a control character, or white space at the start or end of a name.
    #[error("has a name with a brace, a control character or white space at its end")]
    BadName,
}

impl Path {
    /// Reads a path.
    ///
    /// # Errors
    /// As [`PathError`] says.
    pub fn new(text: &str) -> Result<Self, PathError> {
        if text.len() > PATH_BYTES_MAX {
            return Err(PathError::TooLong);
        }
        if text.split('.').count() > PATH_SEGMENTS_MAX {
            return Err(PathError::TooDeep);
        }
        for name in text.split('.') {
            if name.is_empty() {
                return Err(PathError::EmptyName);
            }
            if name.trim() != name || name.chars().any(|c| c.is_control() || matches!(c, '{' | '}')) {
                return Err(PathError::BadName);
            }
        }
        Ok(Self(text.to_owned()))
    }

    /// The path as written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Its names, outermost first; at least one.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.split('.')
    }

    /// The value at this path. `None` if a key or an index on the way is missing.
    #[must_use]
    pub fn get<'a>(&self, data: &'a Value) -> Option<&'a Value> {
        let mut at = data;
        for name in self.names() {
            at = match at {
                Value::Object(map) => map.get(name)?,
                Value::Array(items) => items.get(list_index(name)?)?,
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return None,
            };
        }
        Some(at)
    }
}

/// The index of a list item: decimal digits without a leading zero.
fn list_index(name: &str) -> Option<usize> {
    let plain = name == "0" || !name.starts_with('0');
    (plain && name.bytes().all(|byte| byte.is_ascii_digit())).then(|| name.parse().ok())?
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn found(path: &str) -> Option<Value> {
        let data = json!({"a": {"b": [10, {"c": "deep"}], "0": "named"}, "é è": 1, "none": null});
        Path::new(path).unwrap().get(&data).cloned()
    }

    #[test]
    fn dictionaries_and_lists_are_gone_into() {
        assert_eq!(found("a.b.0"), Some(json!(10)));
        assert_eq!(found("a.b.1.c"), Some(json!("deep")));
        assert_eq!(found("a.0"), Some(json!("named")));
        assert_eq!(found("é è"), Some(json!(1)));
        assert_eq!(found("none"), Some(json!(null)));
        for absent in ["b", "a.c", "a.b.2", "a.b.01", "a.b.+1", "a.b.-1", "a.b.c", "a.b.0.x", "none.x"] {
            assert_eq!(found(absent), None, "{absent}");
        }
    }

    #[test]
    fn other_texts_are_no_paths() {
        for text in ["", ".", "a.", ".a", "a..b"] {
            assert_eq!(Path::new(text), Err(PathError::EmptyName), "{text}");
        }
        for text in [" a", "a ", "a. b", "a{b", "a}", "a\nb"] {
            assert_eq!(Path::new(text), Err(PathError::BadName), "{text}");
        }
        assert_eq!(Path::new(&"a".repeat(PATH_BYTES_MAX + 1)), Err(PathError::TooLong));
        let deepest = ["a"; PATH_SEGMENTS_MAX].join(".");
        assert!(Path::new(&deepest).is_ok());
        assert_eq!(Path::new(&format!("{deepest}.a")), Err(PathError::TooDeep));
    }

    proptest! {
        #[test]
        fn what_is_put_there_is_found(names in prop::collection::vec("[a-z0-9é]{1,6}", 1..8)) {
            let data = names.iter().rev().fold(json!("it"), |inner, name| json!({name: inner}));
            prop_assert_eq!(Path::new(&names.join(".")).unwrap().get(&data), Some(&json!("it")));
        }

        #[test]
        fn no_text_is_too_odd(text in ".{0,60}") {
            if let Ok(path) = Path::new(&text) {
                prop_assert_eq!(path.get(&json!([1, {"a": []}])).is_some(), text == "0" || text == "1" || text == "1.a");
            }
        }
    }
}
