//! Truth values, numbers and comparisons.

use std::borrow::Cow;
use std::cmp::Ordering;

use serde_json::{Number, Value};

use super::operator::{Arithmetic, Comparison, Operator};
use super::problem::LogicFault;
use crate::value::{Amount, equal};

/// Null, zero, and empty texts and lists are not.
pub(super) fn is_truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(is) => *is,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(_) => true,
    }
}

/// What a value is, in words.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// A number, or what counts as one: null and an empty text as 0, a boolean as 0 or 1, a text that is a
/// number.
pub(super) fn number(value: &Value) -> Option<Amount> {
    match value {
        Value::Null => Some(Amount::Whole(0)),
        Value::Bool(is) => Some(Amount::Whole(i128::from(*is))),
        Value::Number(number) => Amount::of_number(number),
        Value::String(text) if text.trim().is_empty() => Some(Amount::Whole(0)),
        Value::String(text) => Amount::of_text(text),
        Value::Array(_) | Value::Object(_) => None,
    }
}

/// Whether two values compare so.
pub(super) fn compares(how: Comparison, left: &Value, right: &Value) -> Result<bool, LogicFault> {
    let order = || order(how, left, right);
    Ok(match how {
        Comparison::StrictEqual => equal(left, right),
        Comparison::StrictUnequal => !equal(left, right),
        Comparison::LooseEqual => is_alike(left, right),
        Comparison::LooseUnequal => !is_alike(left, right),
        Comparison::Greater => order()? == Ordering::Greater,
        Comparison::AtLeast => order()? != Ordering::Less,
        Comparison::Less => order()? == Ordering::Less,
        Comparison::AtMost => order()? != Ordering::Greater,
    })
}

/// Loose equality: values of one kind as they are; of texts, numbers and booleans those that count as the
/// same number. Null is equal to null only.
fn is_alike(left: &Value, right: &Value) -> bool {
    let is_scalar = |value: &Value| value.is_string() || value.is_number() || value.is_boolean();
    let is_text = |value: &Value| value.is_string();
    if !is_scalar(left) || !is_scalar(right) || (is_text(left) && is_text(right)) {
        return equal(left, right);
    }
    let both = number(left).zip(number(right));
    both.is_some_and(|(left, right)| left.compare(right) == Some(Ordering::Equal))
}

/// Texts in the order of their characters, all else as numbers.
fn order(how: Comparison, left: &Value, right: &Value) -> Result<Ordering, LogicFault> {
    if let (Value::String(left), Value::String(right)) = (left, right) {
        return Ok(left.cmp(right));
    }
    let both = number(left).zip(number(right));
    both.and_then(|(left, right)| left.compare(right)).ok_or_else(|| LogicFault::NotComparable {
        operator: Operator::Compare(how).word(),
        left: kind(left),
        right: kind(right),
    })
}

/// The number that an operator makes of its arguments.
pub(super) fn computed(how: Arithmetic, values: &[Cow<'_, Value>]) -> Result<Value, LogicFault> {
    let operator = Operator::Compute(how).word();
    let numbers: Vec<Amount> = values
        .iter()
        .map(|value| number(value).ok_or(LogicFault::NotNumber { operator, kind: kind(value) }))
        .collect::<Result<_, _>>()?;
    let made = match (how, numbers.as_slice()) {
        (Arithmetic::Plus, all) => folded(how, Amount::Whole(0), all)?,
        (Arithmetic::Times, all) => folded(how, Amount::Whole(1), all)?,
        (Arithmetic::Minus, [only]) => pair(how, Amount::Whole(0), *only)?,
        (Arithmetic::Divide, [only]) => pair(how, Amount::Whole(1), *only)?,
        (_, [first, others @ ..]) => folded(how, *first, others)?,
        (_, []) => return Err(LogicFault::TooFewArguments { operator }),
    };
    json(made).ok_or(LogicFault::OutOfRange { operator })
}

fn folded(how: Arithmetic, begin: Amount, others: &[Amount]) -> Result<Amount, LogicFault> {
    others.iter().try_fold(begin, |left, right| pair(how, left, *right))
}

fn pair(how: Arithmetic, left: Amount, right: Amount) -> Result<Amount, LogicFault> {
    let operator = Operator::Compute(how).word();
    let is_zero = right.compare(Amount::Whole(0)) == Some(Ordering::Equal);
    let order = left.compare(right);
    let made = match how {
        Arithmetic::Divide | Arithmetic::Remainder if is_zero => {
            return Err(LogicFault::DivisionByZero { operator });
        }
        Arithmetic::Plus => {
            whole(left, right, i128::checked_add).or_else(|| float(left, right, |a, b| a + b))
        }
        Arithmetic::Minus => {
            whole(left, right, i128::checked_sub).or_else(|| float(left, right, |a, b| a - b))
        }
        Arithmetic::Times => {
            whole(left, right, i128::checked_mul).or_else(|| float(left, right, |a, b| a * b))
        }
        Arithmetic::Divide => whole(left, right, exactly).or_else(|| float(left, right, |a, b| a / b)),
        Arithmetic::Remainder => {
            whole(left, right, i128::checked_rem).or_else(|| float(left, right, |a, b| a % b))
        }
        Arithmetic::Max => Some(if order == Some(Ordering::Less) { right } else { left }),
        Arithmetic::Min => Some(if order == Some(Ordering::Greater) { right } else { left }),
    };
    made.ok_or(LogicFault::OutOfRange { operator })
}

/// A quotient without a remainder.
fn exactly(left: i128, right: i128) -> Option<i128> {
    (left.checked_rem(right)? == 0).then(|| left.checked_div(right))?
}

/// Computes with floats; `None` if the result is not finite.
fn float(left: Amount, right: Amount, compute: impl Fn(f64, f64) -> f64) -> Option<Amount> {
    Amount::of_float(compute(left.float(), right.float()))
}

/// Computes with whole numbers; `None` if one is not whole, or if the result is not or is too large.
fn whole(left: Amount, right: Amount, compute: impl Fn(i128, i128) -> Option<i128>) -> Option<Amount> {
    match (left, right) {
        (Amount::Whole(left), Amount::Whole(right)) => compute(left, right).map(Amount::Whole),
        (Amount::Whole(_) | Amount::Broken(_), Amount::Whole(_) | Amount::Broken(_)) => None,
    }
}

/// As JSON: exact if it is in the range of whole numbers there, otherwise the nearest float.
fn json(amount: Amount) -> Option<Value> {
    amount.value().or_else(|| Number::from_f64(amount.float()).map(Value::Number))
}
