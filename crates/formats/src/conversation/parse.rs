//! Work that a state waits for: fields that are parsed out of a text, and an HTTP request. See
//! `docs/formats-conversation.md#parse` and `docs/formats-conversation-operations.md#operations`, `http_request`.

use switchward_expr::DataType;
use switchward_machine::limits::TEXT_BYTES_MAX;
use switchward_machine::{Accept, FieldType, Port, Reads, Wanted, Work, WorkKind};

use super::reader::Reader;
use super::state::{Exits, Kind};
use super::{expr, read, schema, texts};
use crate::document::Node;
use crate::limits::{LINE_BYTES_MAX, REQUIRED_FIELDS_MAX, VALUES_MAX};
use crate::shape::{self, Fields, Shape};
use crate::{Finding, codes, quoted};

const FIELD: Shape =
    Shape { what: "a field", keys: &["name", "type", "description", "required"], ignored: &[], hints: &[] };

/// The ports of a parse state.
pub(super) const COMPLETE: &str = "complete";
const INCOMPLETE: &str = "incomplete";
/// The default source.
const LAST_MESSAGE: &str = "last_user_message";
/// The default model.
pub(super) const MODEL: &str = "claude-haiku-4-5";

/// See `docs/formats-conversation.md#parse`.
pub(super) fn parse<'a>(fields: &Fields<'a>, cx: &mut Reader<'a, '_>) -> (Kind, Exits) {
    let exits = Exits::ports(&[COMPLETE, INCOMPLETE]);
    let mut wanted = Vec::new();
    if let Some(node) = fields.required("fields", cx.report) {
        let items = cx.filled(node, "`fields`", REQUIRED_FIELDS_MAX).unwrap_or_default();
        let mut names = Vec::new();
        wanted.extend(items.iter().filter_map(|item| field(item, &mut names, cx)));
    }
    let reads = source(fields, cx);
    let model = fields.optional("model");
    let model = model.and_then(|node| {
        let text = shape::name(node, "`model`", LINE_BYTES_MAX, cx.report)?;
        Some(texts::as_it_is(node, "`model`", text, cx))
    });
    let instructions = fields.optional("instructions").and_then(Node::as_text).unwrap_or_default();
    let (input, literal) = input(instructions, model.unwrap_or(MODEL), &wanted);
    let port = |name: &str| Port::Named(name.to_owned());
    let accept = Accept::Fields { fields: wanted, complete: port(COMPLETE), incomplete: port(INCOMPLETE) };
    match reads {
        Some(reads) => (
            Kind::Work(Work {
                input: Some(input),
                reads: Some(reads),
                accept: Some(accept),
                literal,
                ..Work::plain(WorkKind::Extract)
            }),
            exits,
        ),
        None => (Kind::NotRun, exits),
    }
}

/// The source to parse; `None` if it is unknown.
fn source<'a>(fields: &Fields<'a>, cx: &mut Reader<'a, '_>) -> Option<Reads> {
    let Some(node) = fields.optional("source") else { return Some(Reads::UserMessage) };
    let text = shape::text(node, "`source`", LINE_BYTES_MAX, cx.report)?;
    if let Some(path) = expr::rooted(text) {
        texts::path(node, path, text.len() - path.len(), cx);
        return expr::path(path).map(Reads::Data);
    }
    if let Some(meant) = read::meant(text, cx) {
        let message = format!("`source` cannot be {}", quoted(text));
        cx.report.add(Finding::new(codes::NOT_LISTED, node.span, message).nearest(Some(meant)));
        return None;
    }
    let word = shape::word(node, "`source`", &[LAST_MESSAGE, "gathered_data.key"], cx.report)?;
    (word == LAST_MESSAGE).then_some(Reads::UserMessage)
}

/// What the worker is handed, with references in the instructions alone; and what of it is handed over as it is.
fn input(instructions: &str, model: &str, wanted: &[Wanted]) -> (String, Option<String>) {
    let text = read::json_text;
    let field = |field: &Wanted| {
        format!(
            r#"{{"name":{},"type":{},"description":{},"required":{}}}"#,
            text(&field.name),
            text(field.holds.word()),
            text(&field.description),
            field.required
        )
    };
    let fields: Vec<String> = wanted.iter().map(field).collect();
    let fields = format!("[{}]", fields.join(","));
    let (plain, literal) = read::literals(&[("model", text(model)), ("fields", fields)]);
    let members = [format!(r#""instructions":{}"#, text(instructions))].into_iter().chain(plain);
    (format!("{{{}}}", members.collect::<Vec<_>>().join(",")), literal)
}

fn field<'a>(node: &'a Node, names: &mut Vec<&'a str>, cx: &mut Reader<'a, '_>) -> Option<Wanted> {
    let fields = Fields::open(node, &FIELD, cx.report)?;
    let name = fields.required("name", cx.report).and_then(|node| {
        let name = read::key(node, "`name` of a field", cx)?;
        cx.keys.sets(name);
        read::unique(node, name, "a field", names, cx);
        read::may_write(name, "`name` of a field", node.span, cx).then_some(name)
    });
    let types = FieldType::ALL.map(FieldType::word);
    let at = fields.required("type", cx.report);
    let holds = at.and_then(|node| shape::word(node, "`type` of a field", &types, cx.report));
    let holds = holds.and_then(FieldType::from_word);
    if let Some(((name, holds), at)) = name.zip(holds).zip(at) {
        let what = format!("a {}", holds.word());
        schema::warn_written(name, &what, Some(data_type(holds)), at.span, cx);
    }
    let description = fields.optional("description");
    let description = description.and_then(|node| {
        let text = shape::text(node, "`description`", TEXT_BYTES_MAX, cx.report)?;
        Some(texts::as_it_is(node, "`description`", text, cx))
    });
    let required = fields.optional("required").and_then(|node| read::flag(node, "`required`", cx));
    Some(Wanted {
        name: name?.to_owned(),
        holds: holds?,
        description: description.unwrap_or_default().to_owned(),
        required: required.unwrap_or(false),
    })
}

/// Returns the data type of a field; dates are stored as strings.
fn data_type(holds: FieldType) -> DataType {
    match holds {
        FieldType::String | FieldType::Date => DataType::String,
        FieldType::Number => DataType::Number,
        FieldType::Boolean => DataType::Boolean,
        FieldType::List => DataType::List,
    }
}

const HTTP: Shape = Shape {
    what: "`http_request`",
    keys: &["method", "url", "headers", "body", "into"],
    ignored: &[],
    hints: &[],
};

/// See `docs/formats-conversation-operations.md#operations`, `http_request`; `written` reads the key to which the
/// answer is written.
pub(super) fn http<'a>(
    config: &'a Node,
    cx: &mut Reader<'a, '_>,
    written: impl Fn(&'a Node, &str, &mut Reader<'a, '_>) -> Option<&'a str>,
) -> Option<Work> {
    let fields = Fields::open(config, &HTTP, cx.report)?;
    let method = fields.required("method", cx.report);
    let method =
        method.and_then(|node| shape::word(node, "`method`", &["GET", "POST", "PUT", "DELETE"], cx.report));
    let url = fields.required("url", cx.report).and_then(|node| url(node, cx));
    let headers = match fields.optional("headers") {
        Some(node) => headers(node, cx),
        None => "{}".to_owned(),
    };
    let body = match fields.optional("body") {
        Some(node) => Some(read::filled_json(node, "`body`", cx)?),
        None => None,
    };
    let into = fields.optional("into").and_then(|node| written(node, "`into`", cx)).map(str::to_owned);
    let body = body.map(|body| format!(r#","body":{body}"#)).unwrap_or_default();
    let (method, url) = (read::json_text(method?), read::json_text(url?));
    let input = format!(r#"{{"method":{method},"url":{url},"headers":{headers}{body}}}"#);
    let accept = Accept::Answer { into };
    Some(Work { input: Some(input), accept: Some(accept), ..Work::plain(WorkKind::Http) })
}

fn url<'a>(node: &'a Node, cx: &mut Reader<'a, '_>) -> Option<&'a str> {
    let url = shape::name(node, "`url`", LINE_BYTES_MAX, cx.report)?;
    texts::braces(node, url, cx);
    if expr::references(url).next().is_none() && !super::messages::is_url(url) {
        let finding =
            Finding::new(codes::RECIPIENT, node.span, format!("`url` is not a URL: {}", quoted(url)));
        cx.report.add(finding.hint("begin it with https:// or http://"));
    }
    Some(url)
}

/// Headers as JSON.
fn headers<'a>(node: &'a Node, cx: &mut Reader<'a, '_>) -> String {
    let headers = shape::map(node, "`headers`", VALUES_MAX, cx.report).unwrap_or_default();
    let mut entries = Vec::new();
    for (key, value) in headers {
        shape::is_name(&key.text, "a header", LINE_BYTES_MAX, key.span, cx.report);
        if let Some(text) = read::braces(value, "the value of a header", LINE_BYTES_MAX, cx) {
            entries.push(format!("{}:{}", read::json_text(&key.text), read::json_text(&text.source)));
        }
    }
    format!("{{{}}}", entries.join(","))
}
