//! How values become text.

use std::fmt::Write as _;

use minijinja::value::Value;
use minijinja::{AutoEscape, Error, Output};

use super::meter::{Counted, Meter};

/// Writes a value to the output, escaped if the template asks for it.
pub(super) fn emit(
    meter: &Meter,
    out: &mut Output<'_>,
    escaping: &AutoEscape,
    value: &Value,
) -> Result<(), Error> {
    let mut out = Counted { meter, out };
    if value.is_number()
        && !value.is_integer()
        && let Ok(number) = f64::try_from(value.clone())
    {
        return out.write_str(&float(number)).map_err(Error::from);
    }
    if value.is_safe() || *escaping == AutoEscape::None {
        write!(out, "{value}")?;
    } else {
        write!(Escaping(&mut out), "{value}")?;
    }
    Ok(())
}

/// A float as Python writes it: with an exponent if it is very large or very small.
fn float(number: f64) -> String {
    let plain = Value::from(number).to_string();
    let size = number.abs();
    if !number.is_finite() || size == 0.0 || (1e-4..1e16).contains(&size) {
        return plain;
    }
    let short = format!("{number:e}");
    match short.split_once('e') {
        Some((digits, exponent)) => match exponent.strip_prefix('-') {
            Some(exponent) => format!("{digits}e-{exponent:0>2}"),
            None => format!("{digits}e+{exponent:0>2}"),
        },
        None => plain,
    }
}

/// The text with `& < > ' "` escaped, with the same entities as Jinja2.
pub(super) fn escaped(text: &str) -> String {
    let mut made = String::with_capacity(text.len());
    // writing to a text cannot fail
    let _ = Escaping(&mut made).write_str(text);
    made
}

struct Escaping<'a, W: std::fmt::Write>(&'a mut W);

impl<W: std::fmt::Write> std::fmt::Write for Escaping<'_, W> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let mut from = 0;
        for (at, byte) in text.bytes().enumerate() {
            let entity = match byte {
                b'&' => "&amp;",
                b'<' => "&lt;",
                b'>' => "&gt;",
                b'\'' => "&#39;",
                b'"' => "&#34;",
                _ => continue,
            };
            self.0.write_str(&text[from..at])?;
            self.0.write_str(entity)?;
            from = at + 1;
        }
        self.0.write_str(&text[from..])
    }
}
