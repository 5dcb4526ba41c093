//! Reads maps: known keys, required keys, and values of one type, with findings for faults.
//!
//! An optional key may hold `null` and then counts as absent; a required one may not, unless its reader says so.
//! A reader that returns `None` has reported why.

use std::ops::RangeInclusive;

use switchward_machine::{Micros, MoneyError};

use crate::codes::{
    Code, MISSING_KEY, MONEY, NOT_LISTED, NUMBER_BOUNDS, TEXT_BOUNDS, TOO_MANY_ENTRIES, UNKNOWN_KEY,
    WRONG_TYPE,
};
use crate::document::{Entry, Node, Span, Value};
use crate::{Finding, Report, quoted};

/// A map whose keys the format knows beforehand.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// What it is, for sentences: `a state`.
    pub what: &'static str,
    /// Every allowed key.
    pub keys: &'static [&'static str],
    /// Keys that are allowed and ignored.
    pub ignored: &'static [&'static str],
    /// Hints for keys that are missing, or that are written though they do not belong here.
    pub hints: &'static [(&'static str, &'static str)],
}

impl Shape {
    fn hint(&self, key: &str) -> Option<String> {
        self.hints.iter().find(|(known, _)| *known == key).map(|(_, hint)| (*hint).to_owned())
    }
}

/// A map that was checked against its [`Shape`].
#[derive(Debug, Clone, Copy)]
pub struct Fields<'a> {
    shape: &'static Shape,
    entries: &'a [Entry],
    span: Span,
}

impl<'a> Fields<'a> {
    /// Opens a map and reports every key that its shape does not have.
    pub fn open(node: &'a Node, shape: &'static Shape, report: &mut Report) -> Option<Self> {
        let entries = map(node, shape.what, usize::MAX, report)?;
        for (key, _) in entries {
            let name = key.text.as_str();
            if shape.keys.contains(&name) || shape.ignored.contains(&name) {
                continue;
            }
            let nearest = report.nearest(name, shape.keys.iter().copied());
            let message = format!("{} has no key {}", shape.what, quoted(name));
            let mut finding = Finding::new(UNKNOWN_KEY, key.span, message);
            finding = finding.allowed(shape.keys.iter().copied()).nearest(nearest);
            finding.hint = shape.hint(name);
            report.add(finding);
        }
        Some(Self { shape, entries, span: node.span })
    }

    /// The key's value, `null` included; its absence is reported at the map.
    pub fn required(&self, key: &'static str, report: &mut Report) -> Option<&'a Node> {
        let found = self.entries.iter().find(|(known, _)| known.text == key);
        if found.is_none() {
            let message = format!("{} needs the key {}", self.shape.what, quoted(key));
            let mut finding = Finding::new(MISSING_KEY, self.span, message);
            finding.hint = self.shape.hint(key);
            report.add(finding);
        }
        found.map(|(_, node)| node)
    }

    /// The key's value; `None` if it is absent or `null`.
    #[must_use]
    pub fn optional(&self, key: &'static str) -> Option<&'a Node> {
        let (_, node) = self.entries.iter().find(|(known, _)| known.text == key)?;
        (!node.is_null()).then_some(node)
    }
}

/// The entries of a map whose keys the author chooses.
pub fn map<'a>(node: &'a Node, what: &str, entries_max: usize, report: &mut Report) -> Option<&'a [Entry]> {
    let Some(entries) = node.as_map() else { return wrong_type(node, what, "a map", report) };
    bounded(entries, entries_max, what, node.span, report)
}

/// Returns the items of a list. Reports a node of another type, and too many items.
pub fn list<'a>(node: &'a Node, what: &str, items_max: usize, report: &mut Report) -> Option<&'a [Node]> {
    let Some(items) = node.as_list() else { return wrong_type(node, what, "a list", report) };
    bounded(items, items_max, what, node.span, report)
}

fn bounded<'a, T>(
    items: &'a [T],
    items_max: usize,
    what: &str,
    span: Span,
    report: &mut Report,
) -> Option<&'a [T]> {
    if items.len() <= items_max {
        return Some(items);
    }
    let message = format!("{what} holds {} entries, and at most {items_max} are allowed", items.len());
    report.add(Finding::new(TOO_MANY_ENTRIES, span, message));
    None
}

/// A text of any content.
pub fn text<'a>(node: &'a Node, what: &str, bytes_max: usize, report: &mut Report) -> Option<&'a str> {
    let Some(text) = node.as_text() else { return wrong_type(node, what, "a text", report) };
    within(text, what, bytes_max, node.span, report)
}

/// A text that names something: not empty, and without control characters.
pub fn name<'a>(node: &'a Node, what: &str, bytes_max: usize, report: &mut Report) -> Option<&'a str> {
    let name = text(node, what, bytes_max, report)?;
    is_name(name, what, bytes_max, node.span, report).then_some(name)
}

/// Returns true if a text can name something; reports if not.
pub fn is_name(name: &str, what: &str, bytes_max: usize, span: Span, report: &mut Report) -> bool {
    let fault = if name.is_empty() {
        "is empty"
    } else if name.chars().any(char::is_control) {
        "holds a control character"
    } else {
        return within(name, what, bytes_max, span, report).is_some();
    };
    report.add(Finding::new(TEXT_BOUNDS, span, format!("{what} {fault}")));
    false
}

fn within<'a>(
    text: &'a str,
    what: &str,
    bytes_max: usize,
    span: Span,
    report: &mut Report,
) -> Option<&'a str> {
    if text.len() <= bytes_max {
        return Some(text);
    }
    let message = format!("{what} has {} bytes, and at most {bytes_max} are allowed", text.len());
    report.add(Finding::new(TEXT_BOUNDS, span, message));
    None
}

/// One of the words that the format lists.
pub fn word<'a>(node: &'a Node, what: &str, words: &[&'static str], report: &mut Report) -> Option<&'a str> {
    let Some(text) = node.as_text() else { return wrong_type(node, what, "a text", report) };
    if words.contains(&text) {
        return Some(text);
    }
    let nearest = report.nearest(text, words.iter().copied());
    let message = format!("{what} cannot be {}", quoted(text));
    report.add(Finding::new(NOT_LISTED, node.span, message).allowed(words.iter().copied()).nearest(nearest));
    None
}

/// A whole number, written with digits alone.
pub fn integer(node: &Node, what: &str, bounds: RangeInclusive<u64>, report: &mut Report) -> Option<u64> {
    let text = number(node, what, report)?;
    let is_whole = text.strip_prefix('-').unwrap_or(text).bytes().all(|byte| byte.is_ascii_digit());
    let value = if text == "-0" { Some(0) } else { text.parse::<u64>().ok() };
    if let Some(value) = value.filter(|value| bounds.contains(value)) {
        return Some(value);
    }
    let (low, high) = bounds.into_inner();
    let message = if is_whole {
        format!("{what} must be from {low} to {high}, and is {}", quoted(text))
    } else {
        format!("{what} must be a whole number, and is {}", quoted(text))
    };
    let finding = Finding::new(NUMBER_BOUNDS, node.span, message);
    report.add(if is_whole {
        finding
    } else {
        finding.hint("write it without a point and without an exponent")
    });
    None
}

/// An amount of US dollars, exact to a millionth.
pub fn money(node: &Node, what: &str, report: &mut Report) -> Option<Micros> {
    let text = number(node, what, report)?;
    let fault = match Micros::exact(text) {
        Ok(amount) => return Some(amount),
        Err(MoneyError::Negative) => "must not be below zero",
        Err(MoneyError::TooFine) => "must not be finer than a millionth of a dollar",
        Err(MoneyError::TooLarge | MoneyError::NotDecimal) => "is too large",
    };
    report.add(Finding::new(MONEY, node.span, format!("{what} {fault}, and is {}", quoted(text))));
    None
}

fn number<'a>(node: &'a Node, what: &str, report: &mut Report) -> Option<&'a str> {
    let Value::Number(text) = &node.value else { return wrong_type(node, what, "a number", report) };
    Some(text)
}

/// Reports that a value has another type than `wanted`; an unread value is reported already.
pub fn wrong_type<T>(node: &Node, what: &str, wanted: &str, report: &mut Report) -> Option<T> {
    let scalar = match node.value {
        Value::Unread => return None,
        Value::Bool(_) | Value::Number(_) => true,
        Value::Null | Value::String(_) | Value::List(_) | Value::Map(_) => false,
    };
    let message = format!("{what} must be {wanted}, and is {}", node.value.kind());
    let finding = Finding::new(WRONG_TYPE, node.span, message);
    report.add(if scalar && wanted == "a text" {
        finding.hint("put it in quotes if it is a text")
    } else {
        finding
    });
    None
}

/// Reports that a text names nothing that exists, with the names that do.
pub fn dangling<'a>(
    code: Code,
    node: &Node,
    message: String,
    names: impl Iterator<Item = &'a str> + Clone,
    report: &mut Report,
) {
    let nearest = node.as_text().and_then(|text| report.nearest(text, names.clone()));
    report.add(Finding::new(code, node.span, message).allowed(names).nearest(nearest));
}
