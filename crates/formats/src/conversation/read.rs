//! Values that occur all over a workflow: keys, paths, texts with references, times, JSON.

use switchward_expr::Path;
use switchward_machine::{Dialect, Text};

use super::reader::Reader;
use super::{expr, reserved, texts};
use crate::codes::{DATA_KEY, DUPLICATE_NAME, KEPT_KEY, NUMBER_BOUNDS, REGEX};
use crate::document::{Node, Span, Value};
use crate::limits::{REGEX_BYTES_MAX, TEMPLATE_BYTES_MAX, WAIT_MS_MAX};
use crate::render::string;
use crate::{Finding, quoted, shape};

/// Milliseconds of an hour.
const HOUR_MS: f64 = 3_600_000.0;
/// What every reference in braces begins with, also in JSON.
const REFERENCE_BEGIN: &str = "{gathered";
/// Milliseconds of a second.
const SECOND_MS: f64 = 1_000.0;

/// A key of the data.
pub(super) fn key<'a>(node: &'a Node, what: &str, cx: &mut Reader<'a, '_>) -> Option<&'a str> {
    let text = shape::text(node, what, usize::MAX, cx.report)?;
    is_key(text, what, node, cx).then_some(text)
}

/// Returns true if a text can be a key of the data; reports at `node` if not.
pub(super) fn is_key(text: &str, what: &str, node: &Node, cx: &mut Reader<'_, '_>) -> bool {
    let is_key = expr::is_key(text);
    if !is_key {
        let message = format!("{what} cannot be the key {}", quoted(text));
        let finding = Finding::new(DATA_KEY, node.span, message);
        cx.report.add(finding.hint("a key is a name without dots, braces and control characters"));
    }
    is_key
}

/// Returns true if the definition may write to a key of the data: some are reserved for the engine. Reports at `span` if
/// not.
pub(super) fn may_write(key: &str, what: &str, span: Span, cx: &mut Reader<'_, '_>) -> bool {
    if reserved::holds(key) {
        let message = format!("{what} cannot be the key {}, which only the engine writes", quoted(key));
        cx.report.add(
            Finding::new(KEPT_KEY, span, message).hint("it can be read; write to a key of another name"),
        );
    }
    !reserved::holds(key)
}

/// A dotted path into the data, which something reads.
pub(super) fn path<'a>(node: &'a Node, what: &str, cx: &mut Reader<'a, '_>) -> Option<Path> {
    let text = shape::text(node, what, usize::MAX, cx.report)?;
    let found = expr::path(text);
    if found.is_none() {
        let message = format!("{what} cannot be the path {}", quoted(text));
        let finding = Finding::new(DATA_KEY, node.span, message);
        cx.report.add(finding.hint("a path is names without braces, with dots between them"));
    } else {
        texts::path(node, text, 0, cx);
    }
    found
}

/// The path below the data that was probably meant, if the first name of a path is not that of the data.
pub(super) fn meant(text: &str, cx: &mut Reader<'_, '_>) -> Option<String> {
    let (root, rest) = text.split_once('.')?;
    let root = cx.report.nearest(root, expr::ROOT_NAMES)?;
    Some(format!("{root}.{rest}"))
}

/// Adds a name to those that are known already; reports if it is one of them.
pub(super) fn unique<'a>(
    node: &Node,
    name: &'a str,
    what: &str,
    names: &mut Vec<&'a str>,
    cx: &mut Reader<'a, '_>,
) {
    if names.contains(&name) {
        let message = format!("{what} called {} exists here already", quoted(name));
        cx.report.add(Finding::new(DUPLICATE_NAME, node.span, message));
    }
    names.push(name);
}

/// Keys of the data, each a name of its own.
pub(super) fn keys<'a>(node: &'a Node, what: &str, max: usize, cx: &mut Reader<'a, '_>) -> Vec<&'a str> {
    let items = shape::list(node, what, max, cx.report).unwrap_or_default();
    items.iter().filter_map(|item| key(item, &format!("a name in {what}"), cx)).collect()
}

/// A Jinja2 template.
pub(super) fn template<'a>(
    node: &'a Node,
    what: &str,
    bytes_max: usize,
    cx: &mut Reader<'a, '_>,
) -> Option<Text> {
    let source = shape::text(node, what, bytes_max, cx.report)?;
    texts::template(node, what, source, cx)
        .then(|| Text { source: source.to_owned(), dialect: Dialect::Jinja })
}

/// A text with references in braces.
pub(super) fn braces<'a>(
    node: &'a Node,
    what: &str,
    bytes_max: usize,
    cx: &mut Reader<'a, '_>,
) -> Option<Text> {
    let source = shape::text(node, what, bytes_max, cx.report)?;
    texts::braces(node, source, cx);
    Some(Text { source: source.to_owned(), dialect: Dialect::Braces })
}

/// A regular expression.
pub(super) fn pattern<'a>(node: &'a Node, what: &str, cx: &mut Reader<'a, '_>) -> Option<&'a str> {
    let pattern = shape::text(node, what, REGEX_BYTES_MAX, cx.report)?;
    if let Err(fault) = expr::check_pattern(pattern, &mut cx.patterns) {
        let message = format!("{what} is not a valid pattern: it {fault}");
        cx.report.add(Finding::new(REGEX, node.span, message));
        return None;
    }
    Some(pattern)
}

/// True or false.
pub(super) fn flag(node: &Node, what: &str, cx: &mut Reader<'_, '_>) -> Option<bool> {
    let value = node.as_bool();
    if value.is_none() {
        return shape::wrong_type(node, what, "true or false", cx.report);
    }
    value
}

/// A time in hours, above zero; fractions are allowed. Milliseconds.
pub(super) fn hours(node: &Node, what: &str, cx: &mut Reader<'_, '_>) -> Option<u64> {
    time(node, what, HOUR_MS, 1, cx)
}

/// A time in seconds, zero included; fractions are allowed. Milliseconds.
pub(super) fn seconds(node: &Node, what: &str, cx: &mut Reader<'_, '_>) -> Option<u64> {
    time(node, what, SECOND_MS, 0, cx)
}

fn time(node: &Node, what: &str, unit_ms: f64, least_ms: u64, cx: &mut Reader<'_, '_>) -> Option<u64> {
    let Some(text) = node.as_number() else { return shape::wrong_type(node, what, "a number", cx.report) };
    let ms = text.parse::<f64>().map_or(-1.0, |count| (count * unit_ms).round());
    // The cast saturates for values below zero or too large.
    let whole = ms as u64;
    if ms >= 0.0 && (least_ms..=WAIT_MS_MAX).contains(&whole) {
        return Some(whole);
    }
    let above = if least_ms == 0 { "must not be below zero" } else { "must be above zero" };
    let message = format!("{what} {above} and at most ten years, and is {}", quoted(text));
    cx.report.add(Finding::new(NUMBER_BOUNDS, node.span, message));
    None
}

/// A value as JSON, whose texts may hold references.
pub(super) fn filled_json<'a>(node: &'a Node, what: &str, cx: &mut Reader<'a, '_>) -> Option<String> {
    let text = bounded_json(node, what, cx)?;
    reads(node, cx);
    Some(text)
}

/// A value as JSON, unchanged.
pub(super) fn bounded_json(node: &Node, what: &str, cx: &mut Reader<'_, '_>) -> Option<String> {
    let mut text = String::new();
    json(node, &mut text);
    let bytes = text.len();
    if bytes <= TEMPLATE_BYTES_MAX {
        return Some(text);
    }
    let message = format!("{what} has {bytes} bytes of JSON, and at most {TEMPLATE_BYTES_MAX} are allowed");
    cx.report.add(Finding::new(crate::codes::TEXT_BOUNDS, node.span, message));
    None
}

fn reads<'a>(node: &'a Node, cx: &mut Reader<'a, '_>) {
    match &node.value {
        Value::String(text) => texts::braces(node, text, cx),
        Value::List(items) => items.iter().for_each(|item| reads(item, cx)),
        Value::Map(entries) => entries.iter().for_each(|(_, value)| reads(value, cx)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Unread => {}
    }
}

/// Members of a worker's input that name something, each a name and its JSON, as one object: what the engine fills in, and
/// what it hands over as it is because a text in it may read like a reference.
pub(super) fn literals(members: &[(&str, String)]) -> (Vec<String>, Option<String>) {
    let member = |(name, json): &(&str, String)| format!("{}:{json}", json_text(name));
    let (literal, plain): (Vec<_>, Vec<_>) =
        members.iter().partition(|(_, json)| json.contains(REFERENCE_BEGIN));
    let literal: Vec<String> = literal.into_iter().map(member).collect();
    let literal = (!literal.is_empty()).then(|| format!("{{{}}}", literal.join(",")));
    (plain.into_iter().map(member).collect(), literal)
}

/// The value as JSON text.
pub(super) fn json(node: &Node, out: &mut String) {
    match &node.value {
        Value::Null | Value::Unread => out.push_str("null"),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Number(text) => out.push_str(text),
        Value::String(text) => string(text, out),
        Value::List(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                json(item, out);
            }
            out.push(']');
        }
        Value::Map(entries) => {
            out.push('{');
            for (at, (key, value)) in entries.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                string(&key.text, out);
                out.push(':');
                json(value, out);
            }
            out.push('}');
        }
    }
}

/// Returns a text as JSON, quoted and escaped.
pub(super) fn json_text(text: &str) -> String {
    let mut out = String::new();
    string(text, &mut out);
    out
}
