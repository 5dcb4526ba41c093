//! Human tasks: a form that a person fills in. See `docs/formats-native.md#human_task`.

use switchward_machine::limits::{NAME_BYTES_MAX, TEXT_BYTES_MAX};

use super::model::Kind;
use super::opened::Opened;
use super::reader::{Listed, Reader};
use super::texts;
use crate::codes::{ASSIGNEE, FIELD_ABSENT, FIELD_DEFAULT, FIELD_OPTIONS};
use crate::document::Node;
use crate::limits::{DATA_KEY_BYTES_MAX, FORM_FIELDS_MAX, LINE_BYTES_MAX, OPTIONS_MAX};
use crate::shape::{self, Fields, Shape};
use crate::{Finding, quoted};

macro_rules! shapes {
    ($($name:ident $what:literal [$($key:literal)*])*) => {
        $(const $name: Shape = Shape { what: $what, keys: &[$($key),*], ignored: &[], hints: &[] };)*
    };
}

shapes! {
    TASK "`task`" ["title" "description" "assignee" "fields"]
    FIELD "a field of the form" ["name" "type" "required" "label" "options" "default"]
}

/// The types of fields.
const TYPES: [&str; 5] = ["string", "number", "boolean", "select", "text"];
const GROUP: &str = "group:";
const ROLE: &str = "role:";

/// A task for a person.
pub(super) fn task<'a>(opened: &Opened<'a>, cx: &mut Reader<'a, '_>) -> Kind<'a> {
    let Some(node) = opened.fields.required("task", cx.report) else { return Kind::Unread };
    if let Some(fields) = Fields::open(node, &TASK, cx.report) {
        if let Some(node) = fields.required("title", cx.report) {
            texts::template(node, "`title` of a task", LINE_BYTES_MAX, cx);
        }
        if let Some(node) = fields.optional("description") {
            texts::template(node, "`description` of a task", TEXT_BYTES_MAX, cx);
        }
        if let Some(node) = fields.optional("assignee") {
            assignee(node, cx);
        }
        if let Some(node) = fields.optional("fields") {
            form(node, opened, cx);
        }
    }
    Kind::NotRun("a human task")
}

/// A user, a group, or nobody in particular.
fn assignee<'a>(node: &'a Node, cx: &mut Reader<'a, '_>) {
    let Some(text) = texts::template(node, "`assignee`", NAME_BYTES_MAX, cx) else { return };
    let fault = if text.starts_with(ROLE) {
        "a role cannot be assigned"
    } else if text.is_empty() || text.strip_prefix(GROUP).is_some_and(str::is_empty) {
        "it names nobody"
    } else {
        return;
    };
    let message = format!("`assignee` cannot be {}: {fault}", quoted(text));
    let hint = "name a user, write group:NAME, or leave it out for anybody";
    cx.report.add(Finding::new(ASSIGNEE, node.span, message).hint(hint));
}

fn form<'a>(node: &'a Node, opened: &Opened<'a>, cx: &mut Reader<'a, '_>) {
    let items = shape::list(node, "`fields`", FORM_FIELDS_MAX, cx.report).unwrap_or_default();
    let mut names: Vec<&'a str> = Vec::new();
    for item in items {
        let Some(named) = field(item, opened, cx) else { continue };
        if names.contains(&named.name) {
            cx.twice(&format!("the field {}", quoted(named.name)), "the form", named.span);
        }
        names.push(named.name);
    }
}

fn field<'a>(node: &'a Node, opened: &Opened<'a>, cx: &mut Reader<'a, '_>) -> Option<Listed<'a>> {
    let fields = Fields::open(node, &FIELD, cx.report)?;
    let at = fields.required("name", cx.report);
    let name = at.and_then(|node| cx.field(node, "the name of a field"));
    let of = fields.required("type", cx.report);
    let of = of.and_then(|node| shape::word(node, "the type of a field", &TYPES, cx.report));
    if let Some(node) = fields.optional("required") {
        cx.flag(node, "`required`");
    }
    if let Some(node) = fields.optional("label") {
        shape::text(node, "`label`", LINE_BYTES_MAX, cx.report);
    }
    let given = fields.optional("options");
    let options = given.map(|node| options(node, cx)).unwrap_or_default();
    if let Some(of) = of {
        check_options(node, of, given, cx);
        if let Some(node) = fields.optional("default") {
            check_default(node, of, &options, cx);
        }
    }
    let named = Listed { name: name?, span: at?.span };
    if !opened.may_write(named.name) {
        let message = format!("the field {} is not in `writes` of the task", quoted(named.name));
        let near = cx.report.nearest(named.name, opened.writes.iter().map(|listed| listed.name));
        let finding = Finding::new(FIELD_ABSENT, named.span, message).nearest(near);
        cx.report.add(finding.hint("an answer is written to the data, so the task must write its fields"));
    }
    Some(named)
}

fn options<'a>(node: &'a Node, cx: &mut Reader<'a, '_>) -> Vec<&'a str> {
    let items = shape::list(node, "`options`", OPTIONS_MAX, cx.report).unwrap_or_default();
    let mut found: Vec<&'a str> = Vec::new();
    for item in items {
        let Some(text) = shape::name(item, "an option", DATA_KEY_BYTES_MAX, cx.report) else { continue };
        if found.contains(&text) {
            cx.twice(&format!("the option {}", quoted(text)), "`options`", item.span);
        }
        found.push(text);
    }
    found
}

/// Options belong to a select, which needs one at least.
fn check_options(field: &Node, of: &str, options: Option<&Node>, cx: &mut Reader<'_, '_>) {
    let none = options.is_none_or(|node| node.as_list().is_some_and(<[_]>::is_empty));
    let wrong = match (of == "select", options) {
        (true, _) if none => {
            Some((options.unwrap_or(field).span, "a field of the type `select` needs `options`"))
        }
        (false, Some(node)) => Some((node.span, "only a field of the type `select` has `options`")),
        (true | false, _) => None,
    };
    if let Some((span, message)) = wrong {
        cx.report.add(Finding::new(FIELD_OPTIONS, span, message));
    }
}

fn check_default(node: &Node, of: &str, options: &[&str], cx: &mut Reader<'_, '_>) {
    let fits = match of {
        "number" => node.as_number().is_some(),
        "boolean" => node.as_bool().is_some(),
        "select" => node.as_text().is_some_and(|text| options.is_empty() || options.contains(&text)),
        _ => node.as_text().is_some(),
    };
    if !fits {
        let message = format!("`default` does not fit a field of the type {}", quoted(of));
        let finding = Finding::new(FIELD_DEFAULT, node.span, message);
        cx.report.add(finding.allowed(options.iter().copied()));
    }
}
