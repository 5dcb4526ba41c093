//! The value of a YAML scalar, by its style and its tag.

use saphyr_parser::{ScalarStyle, Tag};

use super::scalar::{self, Scalar};
use super::{Span, Value};
use crate::codes::{NUMBER_FORM, NUMBER_TOO_LARGE, YAML_TAG};
use crate::{Finding, quoted};

/// The value of a scalar, or the finding that says why it has none.
pub(super) fn resolve(
    text: &str,
    style: ScalarStyle,
    tag: Option<&Tag>,
    span: Span,
) -> Result<Value, Box<Finding>> {
    let read = match tag {
        None if style == ScalarStyle::Plain => scalar::plain(text),
        None => Scalar::Is(Value::String(text.to_owned())),
        Some(tag) if is_text_tag(tag) => Scalar::Is(Value::String(text.to_owned())),
        Some(tag) => match (scalar::plain(text), core_name(tag)) {
            (read @ Scalar::Is(Value::Null), "null")
            | (read @ Scalar::Is(Value::Bool(_)), "bool")
            | (
                read @ (Scalar::Is(Value::Number(_)) | Scalar::OddNumber | Scalar::HugeNumber),
                "int" | "float",
            ) => read,
            (_, _) => return Err(Box::new(bad_tag(tag, span))),
        },
    };
    let refused = match read {
        Scalar::Is(value) => return Ok(value),
        Scalar::OddNumber => {
            let message = format!("the number {} is not written as JSON would write it", quoted(text));
            Finding::new(NUMBER_FORM, span, message)
                .hint("write it as JSON does, like 0.5 or 16, or put it in quotes if it is a text")
        }
        Scalar::HugeNumber => {
            let message = format!("the number {} is too large to be read", quoted(text));
            Finding::new(NUMBER_TOO_LARGE, span, message)
        }
    };
    Err(Box::new(refused))
}

/// `!!str`, or the `!` that means "no special type".
pub(super) fn is_text_tag(tag: &Tag) -> bool {
    core_name(tag) == "str" || (tag.handle.is_empty() && tag.suffix == "!")
}

/// The core schema's name of a tag; empty for any other.
fn core_name(tag: &Tag) -> &str {
    if tag.is_yaml_core_schema() { &tag.suffix } else { "" }
}

pub(super) fn bad_tag(tag: &Tag, span: Span) -> Finding {
    let written = if tag.is_yaml_core_schema() { format!("!!{}", tag.suffix) } else { tag.to_string() };
    let message = format!("the tag {} is not supported here, or does not fit its value", quoted(&written));
    Finding::new(YAML_TAG, span, message).hint("remove it; to make a text, use quotes")
}
