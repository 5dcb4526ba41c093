//! The transforms of values. See `docs/formats-conversation-operations.md#operations`, `transform`.

use minicbor::{CborLen, Decode, Encode};
use serde_json::Value;

use crate::limits::{LIST_ITEMS_MAX, ROUND_DIGITS_MAX, TEXT_BYTES_MAX};
use crate::value::{self, Amount};

/// The default of `separator`.
pub const SEPARATOR: &str = ",";

/// A transform with its settings.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum Transform {
    /// A text in upper case.
    #[n(0)]
    Uppercase,
    /// A text in lower case.
    #[n(1)]
    Lowercase,
    /// A text without white space at its ends.
    #[n(2)]
    Trim,
    /// A text as the list of its parts between separators.
    #[n(3)]
    Split {
        /// Not empty; [`SEPARATOR`] if the source gives none.
        #[n(0)]
        separator: String,
    },
    /// A list as a text: texts as they are, null as the empty text, other items as compact JSON.
    #[n(4)]
    Join {
        /// [`SEPARATOR`] if the source gives none.
        #[n(0)]
        separator: String,
    },
    /// A number, or a text that is one, rounded to this many decimals, half away from zero.
    #[n(5)]
    Round {
        /// At most [`ROUND_DIGITS_MAX`]; 0 if the source gives none, and then the result is whole.
        #[n(0)]
        digits: u8,
    },
    /// A text that is a number, as a number; a number as it is.
    #[n(6)]
    ToNumber,
    /// A text as it is, null as the empty text, anything else as compact JSON.
    #[n(7)]
    ToString,
}

/// Why a value cannot be transformed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TransformError {
    /// It needs a text.
    #[error("is no text")]
    NotText,
    /// It needs a list.
    #[error("is no list")]
    NotList,
    /// It needs a number.
    #[error("is no number")]
    NotNumber,
    /// A text cannot be split at an empty separator.
    #[error("has no separator")]
    NoSeparator,
    /// More than [`LIST_ITEMS_MAX`] items, [`TEXT_BYTES_MAX`] bytes or [`ROUND_DIGITS_MAX`] digits, or a number out of
    /// range.
    #[error("is too large")]
    TooLarge,
}

impl Transform {
    /// The source's names, in order.
    pub const WORDS: [&'static str; 8] =
        ["uppercase", "lowercase", "trim", "split", "join", "round", "to_number", "to_string"];

    /// The transform of this name, with the default settings.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Some(match word {
            "uppercase" => Self::Uppercase,
            "lowercase" => Self::Lowercase,
            "trim" => Self::Trim,
            "split" => Self::Split { separator: SEPARATOR.to_owned() },
            "join" => Self::Join { separator: SEPARATOR.to_owned() },
            "round" => Self::Round { digits: 0 },
            "to_number" => Self::ToNumber,
            "to_string" => Self::ToString,
            _ => return None,
        })
    }

    /// The transformed value. Rounding works on the decimal number as written: 2.675 to two digits is 2.68.
    ///
    /// # Errors
    /// As [`TransformError`] says.
    pub fn apply(&self, value: &Value) -> Result<Value, TransformError> {
        match self {
            Self::Uppercase => text(value).map(|text| text.to_uppercase()).and_then(short),
            Self::Lowercase => text(value).map(|text| text.to_lowercase()).and_then(short),
            Self::Trim => text(value).map(|text| text.trim().to_owned()).and_then(short),
            Self::Split { separator } => split(text(value)?, separator),
            Self::Join { separator } => join(value.as_array().ok_or(TransformError::NotList)?, separator),
            Self::Round { digits } => round(value, *digits),
            Self::ToNumber => {
                if value.is_number() {
                    return Ok(value.clone());
                }
                let amount = Amount::of(value).ok_or(TransformError::NotNumber)?;
                amount.value().ok_or(TransformError::TooLarge)
            }
            Self::ToString => short(value::text(value).into_owned()),
        }
    }
}

fn text(value: &Value) -> Result<&str, TransformError> {
    value.as_str().ok_or(TransformError::NotText)
}

fn short(text: String) -> Result<Value, TransformError> {
    if text.len() > TEXT_BYTES_MAX { Err(TransformError::TooLarge) } else { Ok(Value::String(text)) }
}

fn split(text: &str, separator: &str) -> Result<Value, TransformError> {
    if separator.is_empty() {
        return Err(TransformError::NoSeparator);
    }
    let items: Vec<Value> = text.split(separator).take(LIST_ITEMS_MAX + 1).map(Value::from).collect();
    if items.len() > LIST_ITEMS_MAX { Err(TransformError::TooLarge) } else { Ok(Value::Array(items)) }
}

fn join(items: &[Value], separator: &str) -> Result<Value, TransformError> {
    let mut joined = String::new();
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            joined.push_str(separator);
        }
        joined.push_str(&value::text(item));
        if joined.len() > TEXT_BYTES_MAX {
            return Err(TransformError::TooLarge);
        }
    }
    Ok(Value::String(joined))
}

fn round(value: &Value, digits: u8) -> Result<Value, TransformError> {
    if digits > ROUND_DIGITS_MAX {
        return Err(TransformError::TooLarge);
    }
    match Amount::of(value).ok_or(TransformError::NotNumber)? {
        whole @ Amount::Whole(_) => whole.value().ok_or(TransformError::TooLarge),
        Amount::Broken(number) => {
            let amount = match rounded(number, usize::from(digits)) {
                Some(rounded) => Amount::of_text(&rounded),
                None => Some(Amount::Broken(number)),
            };
            amount.and_then(Amount::value).ok_or(TransformError::TooLarge)
        }
    }
}

/// The shortest decimal of a number, cut after this many digits, with its last digit rounded up if the rest is half of
/// it or more. `None` if it has no more digits than that.
fn rounded(number: f64, digits: usize) -> Option<String> {
    let plain = number.abs().to_string();
    let (whole, fraction) = plain.split_once('.').unwrap_or((&plain, ""));
    let cut = fraction.as_bytes().get(digits)?;
    let mut kept: Vec<u8> = whole.bytes().chain(fraction.bytes().take(digits)).collect();
    let mut carry = *cut >= b'5';
    for digit in kept.iter_mut().rev() {
        if !carry {
            break;
        }
        carry = *digit == b'9';
        *digit = if carry { b'0' } else { *digit + 1 };
    }
    let sign = if number < 0.0 { "-" } else { "" };
    let first = if carry { "1" } else { "" };
    let kept: String = kept.into_iter().map(char::from).collect();
    let (whole, fraction) = kept.split_at(kept.len() - digits);
    Some(format!("{sign}{first}{whole}.{fraction}0"))
}

#[cfg(test)]
mod tests;
