//! `state_schema`: the types of the keys of the data, and how a new value is merged. See
//! `docs/formats-conversation-operations.md#reducers`.

use switchward_expr::{DataType, Reducer, never};
use switchward_machine::Field;
use switchward_machine::limits::TEXT_BYTES_MAX;

use super::reader::Reader;
use super::{expr, read};
use crate::codes::{REDUCER_TYPE, REDUCER_WRITES};
use crate::document::{Key, Node, Span, Value};
use crate::limits::SCHEMA_KEYS_MAX;
use crate::shape::{self, Fields, Shape};
use crate::{Finding, quoted};

const ENTRY: Shape = Shape {
    what: "a key of `state_schema`",
    keys: &["type", "reducer", "description"],
    ignored: &[],
    hints: &[],
};

/// The keys, in the author's order.
pub(super) fn read(node: Option<&Node>, cx: &mut Reader<'_, '_>) -> Vec<Field> {
    let Some(node) = node else { return Vec::new() };
    let entries = shape::map(node, "`state_schema`", SCHEMA_KEYS_MAX, cx.report).unwrap_or_default();
    entries.iter().filter_map(|(key, value)| field(key, value, cx)).collect()
}

fn field(key: &Key, value: &Node, cx: &mut Reader<'_, '_>) -> Option<Field> {
    let key_node = Node { value: Value::Null, span: key.span };
    let named = read::is_key(&key.text, "`state_schema`", &key_node, cx);
    let named = named && read::may_write(&key.text, "`state_schema`", key.span, cx);
    cx.keys.sets(&key.text);
    let fields = Fields::open(value, &ENTRY, cx.report)?;
    let holds = match fields.optional("type") {
        None => Some(DataType::Any),
        Some(node) => shape::word(node, "`type`", &expr::TYPES, cx.report).and_then(expr::data_type),
    };
    let given = fields.optional("reducer");
    let reducer = match given {
        None => Some(Reducer::Overwrite),
        Some(node) => shape::word(node, "`reducer`", &expr::REDUCERS, cx.report).and_then(expr::reducer),
    };
    if let Some(node) = fields.optional("description") {
        shape::text(node, "`description`", TEXT_BYTES_MAX, cx.report);
    }
    let (holds, reducer) = (holds?, reducer?);
    if !fits(reducer, holds) {
        let (node, word) = (given.unwrap_or(value), given.and_then(Node::as_text).unwrap_or_default());
        let of = value.get("type").and_then(Node::as_text).unwrap_or_default();
        let message = format!("the reducer {} cannot merge values of the type {}", quoted(word), quoted(of));
        let allowed = expr::REDUCERS.iter().copied();
        let allowed = allowed.filter(|word| expr::reducer(word).is_some_and(|it| fits(it, holds)));
        cx.report.add(Finding::new(REDUCER_TYPE, node.span, message).allowed(allowed));
        return None;
    }
    named.then(|| Field { key: key.text.clone(), holds, reducer })
}

/// Warns if a value of type `of` can never be recorded to the key with its type and reducer; `of` is `None` for null.
pub(super) fn warn_written(key: &str, what: &str, of: Option<DataType>, span: Span, cx: &mut Reader<'_, '_>) {
    let Some(field) = cx.fields.iter().find(|field| field.key == key) else { return };
    let Some(clash) = never(field.reducer, field.holds, of) else { return };
    let message = format!("{what} can never be written to {}: it {clash}", quoted(key));
    cx.report
        .add(Finding::new(REDUCER_WRITES, span, message).hint("an operation that writes it always fails"));
}

/// The type that a literal has when its references are filled in; `None` for null.
pub(super) fn type_of(node: &Node) -> Option<DataType> {
    match &node.value {
        Value::Null => None,
        Value::Bool(_) => Some(DataType::Boolean),
        Value::Number(_) => Some(DataType::Number),
        // A single reference keeps the type of its value.
        Value::String(text) if expr::is_reference(text) => Some(DataType::Any),
        Value::String(_) => Some(DataType::String),
        Value::List(_) => Some(DataType::List),
        Value::Map(_) => Some(DataType::Dict),
        Value::Unread => Some(DataType::Any),
    }
}

/// Returns true if a reducer gives a value of the key's declared type.
fn fits(reducer: Reducer, holds: DataType) -> bool {
    match reducer {
        Reducer::Overwrite => true,
        Reducer::Append | Reducer::UniqueAppend => matches!(holds, DataType::List | DataType::Any),
        Reducer::MergeDict => matches!(holds, DataType::Dict | DataType::Any),
        Reducer::Increment => matches!(holds, DataType::Number | DataType::Any),
    }
}
