//! Plain YAML scalars: the core schema of YAML 1.2, without the numbers that JSON cannot write.

use super::Value;

/// The result of reading a plain scalar.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Scalar {
    /// It is read as this value.
    Is(Value),
    /// A number of the core schema that JSON writes otherwise or not at all: `010`, `0x1f`, `+1`, `.5`, `.inf`.
    OddNumber,
    /// A number that is too large.
    HugeNumber,
}

/// Reads a plain scalar. `yes`, `no`, `on` and `off` are texts, and so are dates.
pub(super) fn plain(text: &str) -> Scalar {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Scalar::Is(Value::Null),
        "true" | "True" | "TRUE" => Scalar::Is(Value::Bool(true)),
        "false" | "False" | "FALSE" => Scalar::Is(Value::Bool(false)),
        _ if is_json_number(text) => number(text),
        _ if is_core_number(text) => Scalar::OddNumber,
        _ => Scalar::Is(Value::String(text.to_owned())),
    }
}

/// Reads a text that is a number of JSON's grammar.
fn number(text: &str) -> Scalar {
    if is_finite(text) { Scalar::Is(Value::Number(text.to_owned())) } else { Scalar::HugeNumber }
}

/// Returns true if a 64-bit number can hold it.
pub(super) fn is_finite(number: &str) -> bool {
    number.parse::<f64>().is_ok_and(f64::is_finite)
}

/// RFC 8259 §6: `-? (0 | [1-9][0-9]*) (. [0-9]+)? ([eE] [+-]? [0-9]+)?`.
fn is_json_number(text: &str) -> bool {
    let text = text.strip_prefix('-').unwrap_or(text);
    let (mantissa, exponent) = split_exponent(text);
    let (whole, fraction) = split_fraction(mantissa);
    let whole_fits = whole == "0" || (digits(whole) && !whole.starts_with('0'));
    whole_fits && fraction.is_none_or(digits) && exponent.is_none_or(digits)
}

/// YAML 1.2.2 §10.3.2, integers and floats.
fn is_core_number(text: &str) -> bool {
    let of_radix = |prefix: &str, radix: u32| {
        text.strip_prefix(prefix)
            .is_some_and(|rest| !rest.is_empty() && rest.chars().all(|c| c.is_digit(radix)))
    };
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if of_radix("0o", 8) || of_radix("0x", 16) || matches!(unsigned, ".inf" | ".Inf" | ".INF") {
        return true;
    }
    if matches!(text, ".nan" | ".NaN" | ".NAN") {
        return true;
    }
    let (mantissa, exponent) = split_exponent(unsigned);
    let (whole, fraction) = split_fraction(mantissa);
    let mantissa_fits = match (whole, fraction) {
        ("", Some(fraction)) => digits(fraction),
        (whole, None) => digits(whole),
        (whole, Some(fraction)) => digits(whole) && (fraction.is_empty() || digits(fraction)),
    };
    mantissa_fits && exponent.is_none_or(digits)
}

fn split_exponent(text: &str) -> (&str, Option<&str>) {
    match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.strip_prefix(['-', '+']).unwrap_or(exponent))),
        None => (text, None),
    }
}

fn split_fraction(mantissa: &str) -> (&str, Option<&str>) {
    match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    }
}

fn digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_yaml_1_1_are_texts() {
        for text in
            ["yes", "no", "on", "off", "Y", "n", "2026-01-05", "12:30:45", "1_000", "nUll", "tRue", "n/a"]
        {
            assert_eq!(plain(text), Scalar::Is(Value::String(text.to_owned())), "{text}");
        }
    }

    #[test]
    fn the_core_schema_is_kept() {
        for text in ["", "~", "null", "Null", "NULL"] {
            assert_eq!(plain(text), Scalar::Is(Value::Null), "{text}");
        }
        assert_eq!(plain("True"), Scalar::Is(Value::Bool(true)));
        assert_eq!(plain("false"), Scalar::Is(Value::Bool(false)));
        for text in ["0", "-0", "12", "-7", "0.5", "5.00", "1e3", "1E-2", "123456789012345678901234567890"] {
            assert_eq!(plain(text), Scalar::Is(Value::Number(text.to_owned())), "{text}");
        }
    }

    #[test]
    fn what_json_cannot_write_is_no_number_here() {
        for text in ["010", "0o17", "0x1F", "+1", ".5", "5.", "-.5", "1.e2", ".inf", "-.INF", ".nan", "00"] {
            assert_eq!(plain(text), Scalar::OddNumber, "{text}");
        }
        for text in ["1e400", "-1e999999999999"] {
            assert_eq!(plain(text), Scalar::HugeNumber, "{text}");
        }
        for text in [".", "-", "+", "e5", "1e", "0x", "0o8", "1.2.3", "--1", "1e5.0"] {
            assert_eq!(plain(text), Scalar::Is(Value::String(text.to_owned())), "{text}");
        }
    }
}
