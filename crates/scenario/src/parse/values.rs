//! Parsers of values that are used in several modules.

use jiff::Timestamp;
use serde_json::Value as Json;
use switchward_formats::{
    Finding, Report,
    codes::MONEY,
    document::{Node, Value},
    limits::SOURCE_BYTES_MAX,
    quoted, shape,
};
use switchward_machine::{Micros, MoneyError, Time};

use crate::codes::TIME;
use crate::limits::{LIST_MAX, TIME_MS_MAX};
use crate::script::Until;

/// True or false.
pub(super) fn truth(node: &Node, what: &str, report: &mut Report) -> Option<bool> {
    match node.value {
        Value::Bool(truth) => Some(truth),
        Value::Null
        | Value::Number(_)
        | Value::String(_)
        | Value::List(_)
        | Value::Map(_)
        | Value::Unread => shape::wrong_type(node, what, "true or false", report),
    }
}

/// Returns true if it is a map; reports an error if not.
pub(super) fn is_map(node: &Node, what: &str, report: &mut Report) -> bool {
    shape::map(node, what, usize::MAX, report).is_some()
}

/// A list of texts.
pub(super) fn texts(node: &Node, what: &str, report: &mut Report) -> Option<Vec<String>> {
    let items = shape::list(node, what, LIST_MAX, report)?;
    let texts = items.iter().map(|item| {
        shape::text(item, &format!("an entry of {what}"), SOURCE_BYTES_MAX, report).map(str::to_owned)
    });
    // All of them are read, so that every wrong one is reported.
    texts.collect::<Vec<_>>().into_iter().collect()
}

/// An amount as a caller reports it: fractions of a millionth are rounded up.
pub(super) fn reported(node: &Node, what: &str, report: &mut Report) -> Option<Micros> {
    let Value::Number(text) = &node.value else { return shape::wrong_type(node, what, "a number", report) };
    let fault = match Micros::rounded_up(text) {
        Ok(amount) => return Some(amount),
        Err(MoneyError::Negative) => "must not be below zero",
        Err(MoneyError::TooLarge | MoneyError::TooFine | MoneyError::NotDecimal) => "is too large",
    };
    report.add(Finding::new(MONEY, node.span, format!("{what} {fault}, and is {}", quoted(text))));
    None
}

/// A number of tokens.
pub(super) fn tokens(node: &Node, report: &mut Report) -> Option<u64> {
    shape::integer(node, "`tokens`", 0..=u64::MAX, report)
}

/// A time such as `2026-01-05T09:00:00Z`.
pub(super) fn time(node: &Node, report: &mut Report) -> Option<Time> {
    let text = shape::text(node, "a time", SOURCE_BYTES_MAX, report)?;
    let ms = text.parse::<Timestamp>().ok().and_then(|at| u64::try_from(at.as_millisecond()).ok());
    let ms = ms.filter(|ms| *ms <= TIME_MS_MAX);
    if ms.is_none() {
        let message = format!("{} is not a time between 1970 and 9999", quoted(text));
        report.add(Finding::new(TIME, node.span, message).hint("write it like 2026-01-05T09:00:00Z"));
    }
    ms.map(Time)
}

/// `90s` `5m` `2h` `3d`.
pub(super) fn duration(node: &Node, what: &str, report: &mut Report) -> Option<Until> {
    let text = shape::text(node, what, SOURCE_BYTES_MAX, report)?;
    let ms = duration_ms(text).filter(|ms| *ms <= TIME_MS_MAX);
    if ms.is_none() {
        let message = format!("{} is not a duration", quoted(text));
        report.add(Finding::new(TIME, node.span, message).hint("write it like 90s, 5m, 2h or 3d"));
    }
    ms.map(Until::Later)
}

fn duration_ms(text: &str) -> Option<u64> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let seconds: u64 = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => return None,
    };
    let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    number.parse::<u64>().ok().filter(|_| digits)?.checked_mul(seconds * 1_000)
}

/// The value as JSON text, every number as it was written: an approval is bound to its digits.
pub(super) fn json_bytes(node: &Node) -> Vec<u8> {
    let mut out = Vec::new();
    write(node, &mut out);
    out
}

fn write(node: &Node, out: &mut Vec<u8>) {
    match &node.value {
        Value::Null | Value::Unread => out.extend_from_slice(b"null"),
        Value::Bool(truth) => out.extend_from_slice(if *truth { b"true" } else { b"false" }),
        Value::Number(text) => out.extend_from_slice(text.as_bytes()),
        Value::String(text) => string(text, out),
        Value::List(items) => {
            out.push(b'[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                write(item, out);
            }
            out.push(b']');
        }
        Value::Map(entries) => {
            out.push(b'{');
            for (at, (key, item)) in entries.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                string(&key.text, out);
                out.push(b':');
                write(item, out);
            }
            out.push(b'}');
        }
    }
}

fn string(text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(Json::from(text).to_string().as_bytes());
}
