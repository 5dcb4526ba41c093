//! Money in integer micros of a US dollar.

use minicbor::{CborLen, Decode, Encode};
use std::fmt;

/// An amount of US dollars in millionths; never negative, at most about 18 trillion dollars.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Encode, Decode, CborLen)]
#[cbor(transparent)]
pub struct Micros(#[n(0)] pub u64);

/// Why a text is not an amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MoneyError {
    /// Not a decimal number.
    #[error("not a decimal number")]
    NotDecimal,
    /// Below zero.
    #[error("below zero")]
    Negative,
    /// Finer than a millionth of a dollar.
    #[error("finer than a millionth of a dollar")]
    TooFine,
    /// More than can be kept.
    #[error("too large")]
    TooLarge,
}

const FRACTION_DIGITS: i64 = 6;
const DIGITS_MAX: usize = 400;

impl Micros {
    /// Reads an exact decimal (`5`, `0.25`, `1e-2`). Definitions use it: a finer amount is an error.
    ///
    /// # Errors
    /// As [`MoneyError`] says.
    pub fn exact(text: &str) -> Result<Self, MoneyError> {
        let (micros, finer) = scale(text)?;
        if finer { Err(MoneyError::TooFine) } else { Ok(micros) }
    }

    /// Reads a decimal and rounds it up to the next millionth. Reports use it.
    ///
    /// # Errors
    /// As [`MoneyError`] says, but never `TooFine`.
    pub fn rounded_up(text: &str) -> Result<Self, MoneyError> {
        let (micros, finer) = scale(text)?;
        let more = micros.0.checked_add(u64::from(finer)).ok_or(MoneyError::TooLarge)?;
        Ok(Self(more))
    }

    /// The sum, kept at the largest amount.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The difference, never below zero.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

/// The whole micros of a decimal, and whether something finer was cut off.
fn scale(text: &str) -> Result<(Micros, bool), MoneyError> {
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => {
            (mantissa, exponent.parse::<i64>().map_err(|_| MoneyError::NotDecimal)?)
        }
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).collect();
    let pointed = mantissa.contains('.') && (whole.is_empty() || fraction.is_empty());
    if digits.is_empty() || digits.len() > DIGITS_MAX || pointed || !digits.iter().all(u8::is_ascii_digit) {
        return Err(MoneyError::NotDecimal);
    }
    if digits.iter().all(|digit| *digit == b'0') {
        return Ok((Micros(0), false));
    }
    if negative {
        return Err(MoneyError::Negative);
    }
    let fraction_len = i64::try_from(fraction.len()).map_err(|_| MoneyError::TooLarge)?;
    let shift = exponent.saturating_sub(fraction_len).saturating_add(FRACTION_DIGITS);
    shifted(&digits, shift)
}

fn shifted(digits: &[u8], shift: i64) -> Result<(Micros, bool), MoneyError> {
    let len = i64::try_from(digits.len()).map_err(|_| MoneyError::TooLarge)?;
    let kept = usize::try_from(len.saturating_add(shift.min(0)).max(0)).map_err(|_| MoneyError::TooLarge)?;
    let mut value = 0u64;
    for digit in &digits[..kept] {
        value = times_ten(value)?.checked_add(u64::from(digit - b'0')).ok_or(MoneyError::TooLarge)?;
    }
    if value > 0 {
        for _ in 0..shift.max(0) {
            value = times_ten(value)?;
        }
    }
    Ok((Micros(value), digits[kept..].iter().any(|digit| *digit != b'0')))
}

fn times_ten(value: u64) -> Result<u64, MoneyError> {
    value.checked_mul(10).ok_or(MoneyError::TooLarge)
}

impl fmt::Display for Micros {
    /// Plain decimal dollars without trailing zeros: `0.25`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, micros) = (self.0 / 1_000_000, self.0 % 1_000_000);
        if micros == 0 {
            return write!(f, "{whole}");
        }
        let (mut digits, mut width) = (micros, 6);
        while digits.is_multiple_of(10) {
            (digits, width) = (digits / 10, width - 1);
        }
        write!(f, "{whole}.{digits:0width$}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_decimals_are_read_and_printed() {
        for (text, micros, printed) in [
            ("5.00", 5_000_000, "5"),
            ("0.25", 250_000, "0.25"),
            ("1e-2", 10_000, "0.01"),
            ("1.5E2", 150_000_000, "150"),
            ("0.000001", 1, "0.000001"),
            ("7.1020300", 7_102_030, "7.10203"),
            ("0.999999", 999_999, "0.999999"),
            ("-0", 0, "0"),
            ("0e999999999999", 0, "0"),
        ] {
            assert_eq!(Micros::exact(text), Ok(Micros(micros)), "{text}");
            assert_eq!(Micros(micros).to_string(), printed);
        }
    }

    #[test]
    fn what_is_finer_than_a_micro_is_refused_or_rounded_up() {
        assert_eq!(Micros::exact("0.0000001"), Err(MoneyError::TooFine));
        assert_eq!(Micros::rounded_up("0.0000001"), Ok(Micros(1)));
        assert_eq!(Micros::rounded_up("1.0000010"), Ok(Micros(1_000_001)));
        assert_eq!(Micros::rounded_up("1e-999999"), Ok(Micros(1)));
    }

    #[test]
    fn other_texts_are_no_amounts() {
        assert_eq!(Micros::exact("-1"), Err(MoneyError::Negative));
        assert_eq!(Micros::exact("1e300"), Err(MoneyError::TooLarge));
        for text in ["", ".", "1.", ".5", "NaN", "inf", "1,5", "0x10", "1e", " 1", "1 "] {
            assert_eq!(Micros::exact(text), Err(MoneyError::NotDecimal), "{text}");
        }
    }
}
