//! `context`: the schema of the data, and the data before a start's input. See `docs/formats-native.md#data`.

use switchward_machine::Initial;
use switchward_schema::{FlawKind, Schema};

use super::reader::Reader;
use crate::codes::{RESERVED_NAME, SCHEMA, WRITES_UNKNOWN};
use crate::document::{Node, Span};
use crate::limits::WRITES_MAX;
use crate::shape::{self, Fields, Shape};
use crate::{Finding, Report, quoted};

const CONTEXT: Shape = Shape {
    what: "`context`",
    keys: &["schema", "initial"],
    ignored: &[],
    hints: &[("schema", "write `{}` if the data may be anything")],
};

/// The data of a process.
pub(super) struct Context {
    /// `None` if it could not be read.
    pub(super) schema: Option<Schema>,
    /// In the author's order.
    pub(super) initial: Vec<Initial>,
}

impl Context {
    /// Returns true if the schema has this field.
    pub(super) fn knows(&self, name: &str) -> bool {
        self.schema.as_ref().is_some_and(|schema| schema.properties().any(|known| known == name))
    }
}

/// Reads `context`; sets the fields that the reader knows.
pub(super) fn read<'a>(node: Option<&'a Node>, cx: &mut Reader<'a, '_>) -> Context {
    let mut context = Context { schema: None, initial: Vec::new() };
    let Some(fields) = node.and_then(|node| Fields::open(node, &CONTEXT, cx.report)) else { return context };
    let schema = fields.required("schema", cx.report);
    context.schema = schema.and_then(|node| checked(node, "`context.schema`", cx.report));
    cx.fields = context.schema.as_ref().map(|schema| schema.properties().map(str::to_owned).collect());
    let Some(node) = fields.optional("initial") else { return context };
    let entries = shape::map(node, "`context.initial`", WRITES_MAX, cx.report).unwrap_or_default();
    for (key, value) in entries {
        if !cx.is_free(&key.text, "a name in `context.initial`", key.span) {
            continue;
        }
        unknown(&key.text, "`context.initial` names", key.span, cx);
        context.initial.push(Initial { key: key.text.clone(), value: value.to_json().to_string() });
    }
    context
}

/// Warns of a field that the schema does not have. `who` ends with a verb: `writes names`.
pub(super) fn unknown(name: &str, who: &str, span: Span, cx: &mut Reader<'_, '_>) {
    if !cx.lacks(name) {
        return;
    }
    let message = format!("{who} the field {}, which `context.schema` does not have", quoted(name));
    let nearest = cx.nearest_field(name);
    cx.report.add(Finding::new(WRITES_UNKNOWN, span, message).nearest(nearest));
}

/// A schema that is valid; its flaws are reported where they are.
pub(super) fn checked(node: &Node, what: &str, report: &mut Report) -> Option<Schema> {
    // What could not be read is reported already.
    if report.errors() > 0 && has_unread(node) {
        return None;
    }
    let flaws = match Schema::new(&node.to_json()) {
        Ok(schema) => return Some(schema),
        Err(flaws) => flaws,
    };
    for flaw in flaws {
        let (key, value) = node.at_pointer(&flaw.pointer);
        let (code, span) = match flaw.kind {
            FlawKind::Reserved => (RESERVED_NAME, key.map_or(value.span, |key| key.span)),
            FlawKind::Json
            | FlawKind::Dialect
            | FlawKind::Keyword
            | FlawKind::Reference
            | FlawKind::Pattern
            | FlawKind::Limit => (SCHEMA, value.span),
        };
        report.add(Finding::new(code, span, format!("{what} {}", flaw.message)));
    }
    None
}

fn has_unread(node: &Node) -> bool {
    use crate::document::Value;
    match &node.value {
        Value::Unread => true,
        Value::List(items) => items.iter().any(has_unread),
        Value::Map(entries) => entries.iter().any(|(_, value)| has_unread(value)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}
