//! The adapter to `switchward_expr`: the format's words for computations, and checks of expressions.

use switchward_expr::{CmpOp, DataType, JinjaError, Mention, Path, Patterns, Reducer, Transform};

use crate::limits::{DATA_KEY_BYTES_MAX, DATA_PATH_BYTES_MAX, DATA_PATH_NAMES_MAX};

/// See `docs/formats-conversation-operations.md#operations`, `conditional_branch`.
pub(super) const OPERATORS: [&str; 10] =
    ["eq", "neq", "gt", "gte", "lt", "lte", "in", "not_in", "contains", "matches"];
/// See `docs/formats-conversation-operations.md#operations`, `transform`.
pub(super) const TRANSFORMS: [&str; 8] =
    ["uppercase", "lowercase", "trim", "split", "join", "round", "to_number", "to_string"];
/// See `docs/formats-conversation-operations.md#reducers`.
pub(super) const REDUCERS: [&str; 5] = ["overwrite", "append", "unique_append", "merge_dict", "increment"];
/// See `docs/formats-conversation-operations.md#reducers`.
pub(super) const TYPES: [&str; 6] = ["string", "number", "list", "dict", "boolean", "any"];
/// The separator of the items of a list in a text.
pub(super) const SEPARATOR: &str = ",";

pub(super) fn operator(word: &str) -> Option<CmpOp> {
    Some(match word {
        "eq" => CmpOp::Eq,
        "neq" => CmpOp::Neq,
        "gt" => CmpOp::Gt,
        "gte" => CmpOp::Gte,
        "lt" => CmpOp::Lt,
        "lte" => CmpOp::Lte,
        "in" => CmpOp::In,
        "not_in" => CmpOp::NotIn,
        "contains" => CmpOp::Contains,
        "matches" => CmpOp::Matches,
        _ => return None,
    })
}

pub(super) fn transform(word: &str, separator: &str, digits: u8) -> Option<Transform> {
    let separator = separator.to_owned();
    Some(match word {
        "uppercase" => Transform::Uppercase,
        "lowercase" => Transform::Lowercase,
        "trim" => Transform::Trim,
        "split" => Transform::Split { separator },
        "join" => Transform::Join { separator },
        "round" => Transform::Round { digits },
        "to_number" => Transform::ToNumber,
        "to_string" => Transform::ToString,
        _ => return None,
    })
}

/// The result type of a transform.
pub(super) fn given(how: &Transform) -> DataType {
    match how {
        Transform::Uppercase
        | Transform::Lowercase
        | Transform::Trim
        | Transform::Join { .. }
        | Transform::ToString => DataType::String,
        Transform::Split { .. } => DataType::List,
        Transform::Round { .. } | Transform::ToNumber => DataType::Number,
    }
}

pub(super) fn reducer(word: &str) -> Option<Reducer> {
    Some(match word {
        "overwrite" => Reducer::Overwrite,
        "append" => Reducer::Append,
        "unique_append" => Reducer::UniqueAppend,
        "merge_dict" => Reducer::MergeDict,
        "increment" => Reducer::Increment,
        _ => return None,
    })
}

pub(super) fn data_type(word: &str) -> Option<DataType> {
    Some(match word {
        "string" => DataType::String,
        "number" => DataType::Number,
        "list" => DataType::List,
        "dict" => DataType::Dict,
        "boolean" => DataType::Boolean,
        "any" => DataType::Any,
        _ => return None,
    })
}

/// Returns true if a text can be a key of the data that templates and guards can read.
pub(super) fn is_key(text: &str) -> bool {
    let plain = |c: char| !c.is_control() && !matches!(c, '.' | '{' | '}');
    !text.is_empty() && text.len() <= DATA_KEY_BYTES_MAX && text.trim() == text && text.chars().all(plain)
}

/// A dotted path into the data.
pub(super) fn path(text: &str) -> Option<Path> {
    let fits = text.len() <= DATA_PATH_BYTES_MAX
        && text.split('.').count() <= DATA_PATH_NAMES_MAX
        && text.split('.').all(is_key);
    fits.then(|| Path::new(text).ok())?
}

/// What a Jinja2 template mentions, or why it cannot be parsed.
pub(super) fn mentions(source: &str) -> Result<Vec<Mention>, JinjaError> {
    switchward_expr::mentions(source, &ROOT_NAMES)
}

/// Checks the template of a message's body.
pub(super) fn check_template(source: &str) -> Result<(), String> {
    switchward_expr::check(source).map_err(|error| as_clause(&error.to_string()))
}

/// Checks a regular expression, beside those before it.
pub(super) fn check_pattern(pattern: &str, patterns: &mut Patterns) -> Result<(), String> {
    patterns.check(pattern).map_err(|error| as_clause(&error.to_string()))
}

/// A reason as a part of a sentence: one line, without a full stop.
pub(super) fn as_clause(reason: &str) -> String {
    let words: Vec<&str> = reason.split_whitespace().collect();
    words.join(" ").trim_end_matches('.').to_owned()
}

/// The names of the data in templates.
pub(super) const ROOT_NAMES: [&str; 2] = ["gathered_data", "gathered"];
const ROOTS: [&str; 2] = ["gathered_data.", "gathered."];

/// The paths that a text in braces refers to, below the data.
pub(super) fn references(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices('{').filter_map(|(at, brace)| {
        let inner = &text[at + brace.len()..];
        let inner = ROOTS.iter().find_map(|root| inner.strip_prefix(root))?;
        let (found, _) = inner.split_once('}')?;
        path(found).is_some().then_some(found)
    })
}

/// Returns true if a text is exactly one reference.
pub(super) fn is_reference(text: &str) -> bool {
    references(text).next().is_some_and(|found| {
        ROOTS.iter().any(|root| text.len() == root.len() + found.len() + 2 && text[1..].starts_with(root))
    })
}

/// The path in a text like `gathered_data.customer.email`.
pub(super) fn rooted(text: &str) -> Option<&str> {
    let found = ROOTS.iter().find_map(|root| text.strip_prefix(root))?;
    path(found).is_some().then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_found_in_braces() {
        let found: Vec<&str> =
            references("{gathered.a} {gathered_data.b.c} {gathered_data.} {other.d} {").collect();
        assert_eq!(found, ["a", "b.c"]);
        assert!(is_reference("{gathered_data.b.c}") && is_reference("{gathered.a}"));
        assert!(!is_reference("{gathered.a}!") && !is_reference(" {gathered.a}") && !is_reference("a"));
        assert_eq!(rooted("gathered_data.mail.body"), Some("mail.body"));
        assert_eq!(rooted("mail.body"), None);
    }

    #[test]
    fn keys_have_neither_dots_nor_braces() {
        assert!(is_key("order id") && is_key("é"));
        for text in ["", " a", "a.b", "a}", "a\n", &"k".repeat(DATA_KEY_BYTES_MAX + 1)] {
            assert!(!is_key(text), "{text:?}");
        }
        assert!(path("a.b.0").is_some() && path("a..b").is_none() && path("a. b").is_none());
    }

    #[test]
    fn reasons_are_one_line() {
        assert_eq!(as_clause("bad\n  pattern:\n\t( here.\n"), "bad pattern: ( here");
    }

    #[test]
    fn every_word_has_its_meaning() {
        assert!(OPERATORS.iter().all(|word| operator(word).is_some()));
        assert!(TRANSFORMS.iter().all(|word| transform(word, SEPARATOR, 0).is_some()));
        assert!(REDUCERS.iter().all(|word| reducer(word).is_some()));
        assert!(TYPES.iter().all(|word| data_type(word).is_some()));
    }
}
