//! Expectations. See `docs/scenarios.md#expectations`.

use switchward_formats::{
    Report,
    document::{Entry, Node, Value},
    limits::SOURCE_BYTES_MAX,
    shape::{self, Fields, Shape},
};
use switchward_machine::Status;

use super::event_types::EVENT_TYPES;
use super::fields::json;
use super::values;
use crate::limits::LIST_MAX;
use crate::script::{Expectation, Expected, Wanted};

const EXPECT: Shape = Shape { what: "`expect`", keys: Wanted::WORDS, ignored: &[], hints: &[] };
const OPEN: Shape = Shape {
    what: "an open item",
    keys: &["kind", "node", "type", "to", "due", "input"],
    ignored: &[],
    hints: &[],
};
const EFFECT: Shape =
    Shape { what: "an effect", keys: &["kind", "to", "subject", "contains"], ignored: &[], hints: &[] };
const LEFT: Shape = Shape { what: "`left`", keys: &["calls", "usd"], ignored: &[], hints: &[] };
const RULE: Shape =
    Shape { what: "`rule`", keys: &["layer", "list", "capability"], ignored: &[], hints: &[] };
const RUN: Shape = Shape { what: "a run", keys: &["process", "status", "at"], ignored: &[], hints: &[] };

const DECISIONS: [&str; 4] = ["allow", "ask", "deny", "bypass"];
const OPEN_KINDS: [&str; 4] = ["work", "gate", "wait", "timer"];
const EFFECT_KINDS: [&str; 5] = ["email", "webhook", "http", "chat", "notice"];

/// Reads `expect` and `expect_error`, which starts and steps have in common.
pub(super) fn read(node: &Node, report: &mut Report) -> Expected {
    let refusal = node.get("expect_error").and_then(|node| {
        let code = shape::name(node, "`expect_error`", SOURCE_BYTES_MAX, report)?;
        Some((code.to_owned(), node.span))
    });
    let expectations = match node.get("expect").filter(|node| !node.is_null()) {
        None => Vec::new(),
        Some(node) => {
            Fields::open(node, &EXPECT, report);
            let entries = node.as_map().unwrap_or_default();
            entries.iter().filter_map(|entry| expectation(entry, report)).collect()
        }
    };
    Expected { refusal, expectations }
}

fn expectation((key, node): &Entry, report: &mut Report) -> Option<Expectation> {
    let wanted = Wanted::ALL.iter().copied().find(|wanted| wanted.word() == key.text)?;
    let fits = match wanted {
        Wanted::Status => shape::word(node, "`status`", &Status::ALL.map(Status::word), report).is_some(),
        Wanted::At => at(node, report),
        Wanted::Context => values::is_map(node, "`context`", report),
        Wanted::Decision => node.is_null() || shape::word(node, "`decision`", &DECISIONS, report).is_some(),
        Wanted::Left => node.is_null() || Fields::open(node, &LEFT, report).is_some(),
        Wanted::Reason => node.is_null() || is_text(node, wanted, report),
        Wanted::Log | Wanted::Shows => is_text(node, wanted, report),
        Wanted::Rule => node.is_null() || Fields::open(node, &RULE, report).is_some(),
        Wanted::RetryAfter => {
            node.is_null() || shape::integer(node, "`retry_after_seconds`", 0..=u64::MAX, report).is_some()
        }
        Wanted::Events | Wanted::Without => event_types(node, wanted, report),
        Wanted::Version => shape::integer(node, "`version`", 1..=u64::from(u32::MAX), report).is_some(),
        Wanted::Open => items(node, "`open`", &OPEN, &OPEN_KINDS, report),
        Wanted::Effects => items(node, "`effects`", &EFFECT, &EFFECT_KINDS, report),
        Wanted::Runs => runs(node, report),
    };
    fits.then(|| Expectation { wanted, value: json(node), span: key.span })
}

fn is_text(node: &Node, wanted: Wanted, report: &mut Report) -> bool {
    shape::text(node, &format!("`{}`", wanted.word()), SOURCE_BYTES_MAX, report).is_some()
}

/// A list of types of events; no step could record any other, so that `without` would always hold.
fn event_types(node: &Node, wanted: Wanted, report: &mut Report) -> bool {
    let errors_before = report.errors();
    let what = format!("`{}`", wanted.word());
    for item in shape::list(node, &what, LIST_MAX, report).unwrap_or_default() {
        shape::word(item, &format!("an entry of {what}"), &EVENT_TYPES, report);
    }
    report.errors() == errors_before
}

fn at(node: &Node, report: &mut Report) -> bool {
    match node.value {
        Value::List(_) => values::texts(node, "`at`", report).is_some(),
        Value::String(_) => true,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Map(_) | Value::Unread => {
            shape::wrong_type::<()>(node, "`at`", "a text or a list of texts", report);
            false
        }
    }
}

/// A list of maps, each of which describes an entry.
fn items(
    node: &Node,
    what: &str,
    shape: &'static Shape,
    kinds: &[&'static str],
    report: &mut Report,
) -> bool {
    let errors_before = report.errors();
    for item in shape::list(node, what, LIST_MAX, report).unwrap_or_default() {
        let Some(fields) = Fields::open(item, shape, report) else { continue };
        if let Some(kind) = fields.optional("kind") {
            shape::word(kind, "`kind`", kinds, report);
        }
        for key in ["node", "type", "to", "subject", "contains"] {
            if let Some(text) = item.get(key).filter(|_| shape.keys.contains(&key)) {
                shape::text(text, &format!("`{key}`"), SOURCE_BYTES_MAX, report);
            }
        }
    }
    report.errors() == errors_before
}

fn runs(node: &Node, report: &mut Report) -> bool {
    let errors_before = report.errors();
    for item in shape::list(node, "`runs`", LIST_MAX, report).unwrap_or_default() {
        let Some(fields) = Fields::open(item, &RUN, report) else { continue };
        fields.optional("process").and_then(|node| shape::name(node, "`process`", SOURCE_BYTES_MAX, report));
        let status = fields.optional("status");
        status.and_then(|node| shape::word(node, "`status`", &Status::ALL.map(Status::word), report));
    }
    report.errors() == errors_before
}
