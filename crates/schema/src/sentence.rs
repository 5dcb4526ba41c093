//! What breaks a schema, in one sentence: the same on every run, and never with more than the beginning of a
//! value.

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use serde_json::Value;

use crate::limits::{SHOWN_PATH_BYTES_MAX, SHOWN_VALUE_BYTES_MAX};
use crate::text::{cut, kind, listed, named, short};
use crate::violation::Violation;

/// The sentence about an error of a check of `root`.
pub(crate) fn of(error: &ValidationError<'_>, root: &Value) -> Violation {
    let path = error.instance_path().as_str();
    let value = root.pointer(path).unwrap_or(&Value::Null);
    let message = if let Kind::PropertyNames { error } = error.kind() {
        let name: &Value = error.instance();
        format!("has a name that is not allowed: it {}", sentence(error.kind(), name))
    } else {
        sentence(error.kind(), value)
    };
    Violation { path: cut(path, SHOWN_PATH_BYTES_MAX), message }
}

fn sentence(error: &Kind, value: &Value) -> String {
    of_type(error, value)
        .or_else(|| of_choice(error, value))
        .or_else(|| of_number(error, value))
        .or_else(|| of_size(error))
        .or_else(|| of_object(error))
        .or_else(|| of_list(error))
        .unwrap_or_else(|| "breaks the schema".to_owned())
}

fn of_type(error: &Kind, value: &Value) -> Option<String> {
    let Kind::Type { kind: expected } = error else { return None };
    let mut names: Vec<String> = match expected {
        TypeKind::Single(name) => vec![name.to_string()],
        TypeKind::Multiple(names) => names.iter().map(|name| name.to_string()).collect(),
    };
    names.sort_unstable();
    let expected = names.join(" or ");
    Some(format!("is {}, not of type {expected}", kind(value)))
}

fn of_choice(error: &Kind, value: &Value) -> Option<String> {
    let shown = short(value);
    if let Kind::Enum { options } = error {
        let options: &Value = options;
        let items = options.as_array().map(Vec::as_slice).unwrap_or_default();
        let list = listed(items.iter().map(short).collect(), items.len());
        return Some(format!("is {shown}, and not one of {list}"));
    }
    if let Kind::Constant { expected_value } = error {
        let expected: &Value = expected_value;
        return Some(format!("is {shown}, and not {}", short(expected)));
    }
    let message = if matches!(error, Kind::AnyOf { .. }) {
        "fits none of the schemas of `anyOf`"
    } else if matches!(error, Kind::OneOfNotValid { .. }) {
        "fits none of the schemas of `oneOf`"
    } else if matches!(error, Kind::OneOfMultipleValid { .. }) {
        "fits more than one of the schemas of `oneOf`"
    } else if matches!(error, Kind::Not { .. }) {
        "fits the schema of `not`"
    } else if matches!(error, Kind::FalseSchema) {
        "is not allowed"
    } else {
        return None;
    };
    Some(message.to_owned())
}

fn of_number(error: &Kind, value: &Value) -> Option<String> {
    let bound = if let Kind::Minimum { limit } = error {
        format!("less than {limit}")
    } else if let Kind::Maximum { limit } = error {
        format!("more than {limit}")
    } else if let Kind::ExclusiveMinimum { limit } = error {
        format!("not more than {limit}")
    } else if let Kind::ExclusiveMaximum { limit } = error {
        format!("not less than {limit}")
    } else if let Kind::MultipleOf { multiple_of } = error {
        format!("no multiple of {}", cut(&multiple_of.to_string(), SHOWN_VALUE_BYTES_MAX))
    } else {
        return None;
    };
    Some(format!("is {}, {bound}", short(value)))
}

fn of_size(error: &Kind) -> Option<String> {
    Some(if let Kind::MinLength { limit } = error {
        format!("is shorter than {limit} characters")
    } else if let Kind::MaxLength { limit } = error {
        format!("is longer than {limit} characters")
    } else if let Kind::MinItems { limit } = error {
        format!("has fewer than {limit} items")
    } else if let Kind::MaxItems { limit } = error {
        format!("has more than {limit} items")
    } else if let Kind::MinProperties { limit } = error {
        format!("has fewer than {limit} properties")
    } else if let Kind::MaxProperties { limit } = error {
        format!("has more than {limit} properties")
    } else if let Kind::Pattern { pattern } = error {
        format!("does not match the pattern {}", named(pattern))
    } else {
        return None;
    })
}

fn of_object(error: &Kind) -> Option<String> {
    let unexpected = if let Kind::Required { property } = error {
        let text = property.to_string();
        let name = serde_json::from_str::<String>(&text).unwrap_or(text);
        return Some(format!("lacks {}", named(&name)));
    } else if let Kind::AdditionalProperties { unexpected } = error {
        unexpected
    } else if let Kind::UnevaluatedProperties { unexpected } = error {
        unexpected
    } else {
        return None;
    };
    let mut names: Vec<&String> = unexpected.iter().collect();
    names.sort_unstable();
    let shown = names.iter().take(crate::limits::SHOWN_NAMES_MAX).map(|name| named(name)).collect();
    Some(format!("has {}, which the schema does not declare", listed(shown, names.len())))
}

fn of_list(error: &Kind) -> Option<String> {
    let message = if matches!(error, Kind::Contains) {
        "does not have as many items that fit `contains` as it must"
    } else if matches!(error, Kind::UniqueItems) {
        "has an item twice"
    } else if matches!(error, Kind::AdditionalItems { .. } | Kind::UnevaluatedItems { .. }) {
        "has items that the schema does not allow"
    } else {
        return None;
    };
    Some(message.to_owned())
}
