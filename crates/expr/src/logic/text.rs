//! Texts: what a value reads as, and what is joined or cut.

use std::borrow::Cow;

use serde_json::Value;

use super::number::{kind, number};
use super::operator::Operator;
use super::problem::LogicFault;
use crate::limits::TEXT_BYTES_MAX;
use crate::value::{self, Amount};

/// A value inside a text: null as the empty text, whole numbers without a point, the items of lists with
/// commas between them, objects as compact JSON.
pub(super) fn written(value: &Value) -> Cow<'_, str> {
    match value {
        Value::Number(number) => match Amount::of_number(number) {
            Some(Amount::Whole(whole)) => Cow::Owned(whole.to_string()),
            Some(Amount::Broken(_)) | None => Cow::Owned(number.to_string()),
        },
        Value::Array(items) => {
            let texts: Vec<Cow<'_, str>> = items.iter().map(written).collect();
            Cow::Owned(texts.join(","))
        }
        Value::Null | Value::Bool(_) | Value::String(_) | Value::Object(_) => value::text(value),
    }
}

/// The texts of all values, one after another.
pub(super) fn cat(values: &[Cow<'_, Value>]) -> Result<Value, LogicFault> {
    let mut made = String::new();
    for value in values {
        made.push_str(&written(value));
        if made.len() > TEXT_BYTES_MAX {
            return Err(LogicFault::TextTooLong { operator: Operator::Cat.word() });
        }
    }
    Ok(Value::String(made))
}

/// The characters from `begin`, counted from the end if it is negative. At most `length` of them; if that is
/// negative, all but as many at the end.
pub(super) fn substr(whole: &Value, begin: &Value, length: Option<&Value>) -> Result<Value, LogicFault> {
    let text = written(whole);
    let count = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
    let at = |position: i64| {
        if position < 0 { count.saturating_add(position).max(0) } else { position.min(count) }
    };
    let begin = at(position(begin)?);
    let end = match length.map(position).transpose()? {
        None => count,
        Some(length) if length < 0 => at(length).max(begin),
        Some(length) => begin.saturating_add(length).min(count),
    };
    let size = |number: i64| usize::try_from(number).unwrap_or(0);
    let made: String = text.chars().skip(size(begin)).take(size(end - begin)).collect();
    Ok(Value::String(made))
}

/// A whole number of characters; what is behind the point is cut.
fn position(value: &Value) -> Result<i64, LogicFault> {
    let operator = Operator::Substr.word();
    match number(value).ok_or(LogicFault::NotNumber { operator, kind: kind(value) })? {
        Amount::Whole(whole) => {
            Ok(i64::try_from(whole).unwrap_or(if whole < 0 { i64::MIN } else { i64::MAX }))
        }
        // One that is too large becomes the nearest number.
        Amount::Broken(float) => Ok(float as i64),
    }
}
