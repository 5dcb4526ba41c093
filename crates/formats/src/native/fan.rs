//! Nodes with children: branch and foreach. See `docs/formats-native.md#branch` and
//! `docs/formats-native.md#foreach`.

use switchward_machine::limits::{NAME_BYTES_MAX, TEXT_BYTES_MAX};

use super::model::Kind;
use super::opened::{self, Opened};
use super::reader::{Listed, Reader};
use super::{nodes, texts};
use crate::codes::{
    CHILD_ROUTES, CHILD_TYPE, COLLECT_INTO, MISSING_KEY, NATIVE_PATH, WRITES_OF_CHILD, WRITES_SHARED,
};
use crate::document::Node;
use crate::limits::{CHILDREN_MAX, CONCURRENCY_MAX, DATA_KEY_BYTES_MAX, LINE_BYTES_MAX};
use crate::shape::{self, Fields, Shape};
use crate::{Finding, quoted};

/// The types of children.
const CHILDREN: [&str; 4] = ["tool", "interaction", "agent", "process"];
/// What is known of each result that is collected.
const INCLUDED: [&str; 12] = [
    "status",
    "index",
    "item",
    "item_id",
    "branch_id",
    "branch_title",
    "output",
    "context_update",
    "error",
    "child_run_id",
    "child_workflow_id",
    "child_workflow_run_id",
];
/// The variable of a `foreach` that names none.
const ITEM: &str = "item";

macro_rules! shapes {
    ($($name:ident $what:literal [$($key:literal)*] [$($hint:expr),*])*) => {
        $(const $name: Shape =
            Shape { what: $what, keys: &[$($key),*], ignored: &[], hints: &[$($hint),*] };)*
    };
}

shapes! {
    CHILD "a branch" ["id" "title" "description" "label" "node" "metadata"]
        [("to", "all branches run; a node of the type `condition` chooses one")]
    COLLECT "`collect`" ["into" "mode" "include"] []
}

/// Children that run side by side; all of them are waited for.
pub(super) fn branch<'a>(opened: &Opened<'a>, cx: &mut Reader<'a, '_>) -> Kind<'a> {
    if let Some(node) = opened.fields.optional("join") {
        shape::word(node, "`join`", &["all"], cx.report);
    }
    let Some(node) = opened.fields.required("branches", cx.report) else { return Kind::Unread };
    let items = shape::list(node, "`branches`", CHILDREN_MAX, cx.report).unwrap_or_default();
    if node.as_list().is_some_and(<[_]>::is_empty) {
        let message = "`branches` must have at least one branch";
        cx.report.add(Finding::new(crate::codes::EMPTY_LIST, node.span, message));
    }
    let (mut ids, mut written): (Vec<&'a str>, Vec<Listed<'a>>) = (Vec::new(), Vec::new());
    for item in items {
        let Some(fields) = Fields::open(item, &CHILD, cx.report) else { continue };
        if let Some(node) = fields.required("id", cx.report)
            && let Some(id) = shape::name(node, "the id of a branch", NAME_BYTES_MAX, cx.report)
        {
            if ids.contains(&id) {
                cx.twice(&format!("the branch {}", quoted(id)), "`branches`", node.span);
            }
            ids.push(id);
        }
        for key in ["title", "description", "label"] {
            if let Some(node) = fields.optional(key) {
                shape::text(node, &quoted(key), TEXT_BYTES_MAX, cx.report);
            }
        }
        if let Some(node) = fields.optional("metadata") {
            shape::map(node, "`metadata`", usize::MAX, cx.report);
        }
        let Some(node) = fields.required("node", cx.report) else { continue };
        for one in child(node, "a branch", cx) {
            join(one, opened, &written, cx);
            written.push(one);
        }
    }
    Kind::NotRun("a branch node")
}

/// The updates of all children enter the data together, so no two of them may write one field.
fn join<'a>(one: Listed<'a>, opened: &Opened<'a>, written: &[Listed<'a>], cx: &mut Reader<'a, '_>) {
    if written.iter().any(|other| other.name == one.name) {
        let message = format!("a branch before this one writes the field {}, too", quoted(one.name));
        let finding = Finding::new(WRITES_SHARED, one.span, message);
        cx.report.add(finding.hint("let each branch write fields of its own"));
    }
    let listed = opened.fields.optional("writes").is_some();
    if listed && !opened.may_write(one.name) {
        let message = format!("this branch writes {}, which `writes` of its node lacks", quoted(one.name));
        let finding = Finding::new(WRITES_OF_CHILD, one.span, message);
        cx.report.add(finding.hint("add it there, or leave that `writes` out to mean those of all branches"));
    }
}

/// The same child for each item of a list.
pub(super) fn foreach<'a>(opened: &Opened<'a>, cx: &mut Reader<'a, '_>) -> Kind<'a> {
    let fields = &opened.fields;
    if let Some(node) = fields.required("foreach", cx.report) {
        texts::path(node, "`foreach`", cx);
    }
    let item = fields.optional("as").and_then(|node| variable(node, cx)).unwrap_or(ITEM);
    if let Some(node) = fields.optional("max_concurrency") {
        shape::integer(node, "`max_concurrency`", 1..=CONCURRENCY_MAX, cx.report);
    }
    if let Some(node) = fields.optional("failure_policy") {
        shape::word(node, "`failure_policy`", &["fail_fast", "collect_errors"], cx.report);
    }
    if let Some(node) = fields.optional("collect") {
        collect(node, opened, cx);
    }
    let outer = cx.item.replace(item);
    if let Some(node) = fields.optional("item_id") {
        texts::template(node, "`item_id`", LINE_BYTES_MAX, cx);
    }
    if let Some(node) = fields.required("node", cx.report) {
        child(node, "a foreach", cx);
    }
    cx.item = outer;
    Kind::NotRun("a foreach node")
}

/// The name under which a child reads its item.
fn variable<'a>(node: &'a Node, cx: &mut Reader<'a, '_>) -> Option<&'a str> {
    let name = cx.field(node, "`as`")?;
    if name.contains(['.', '{', '}']) || name.trim() != name {
        let message = format!("`as` cannot be {}: no path could read it", quoted(name));
        cx.report.add(Finding::new(NATIVE_PATH, node.span, message));
        return None;
    }
    Some(name)
}

/// Where the results go, and what of them.
fn collect<'a>(node: &'a Node, opened: &Opened<'a>, cx: &mut Reader<'a, '_>) {
    let mut into = Some(node).filter(|node| node.as_text().is_some());
    if into.is_none() {
        let Some(fields) = Fields::open(node, &COLLECT, cx.report) else { return };
        into = fields.required("into", cx.report);
        if let Some(node) = fields.optional("mode") {
            shape::word(node, "`mode`", &["array"], cx.report);
        }
        if let Some(node) = fields.optional("include") {
            for item in shape::list(node, "`include`", INCLUDED.len(), cx.report).unwrap_or_default() {
                shape::word(item, "a name in `include`", &INCLUDED, cx.report);
            }
        }
    }
    let Some(node) = into else { return };
    let Some(name) = shape::name(node, "`collect`", DATA_KEY_BYTES_MAX, cx.report) else { return };
    if !opened.may_write(name) {
        let message = format!("the results go into {}, which `writes` of the node lacks", quoted(name));
        let near = cx.report.nearest(name, opened.writes.iter().map(|listed| listed.name));
        let finding = Finding::new(COLLECT_INTO, node.span, message).nearest(near);
        cx.report.add(finding.hint("add it to `writes` of the foreach node"));
    }
}

/// Reads a child; returns what it writes.
fn child<'a>(node: &'a Node, of: &str, cx: &mut Reader<'a, '_>) -> Vec<Listed<'a>> {
    let word = node.get("type").and_then(Node::as_text);
    if let Some((word, at)) = word.zip(node.get("type"))
        && !CHILDREN.contains(&word)
    {
        let nearest = cx.report.nearest(word, CHILDREN);
        let message = format!("the child of {of} cannot be of the type {}", quoted(word));
        cx.report.add(Finding::new(CHILD_TYPE, at.span, message).allowed(CHILDREN).nearest(nearest));
        return Vec::new();
    }
    if node.as_map().is_some() && word.is_none() && node.get("type").is_none() {
        let finding = Finding::new(MISSING_KEY, node.span, "a node needs the key `type`");
        cx.report.add(finding.allowed(CHILDREN));
        return Vec::new();
    }
    let Some(opened) = opened::open(node, cx) else { return Vec::new() };
    if let Some(node) = opened.fields.optional("transitions").filter(|node| opened::leads_on(node)) {
        let message = format!("the child of {of} has no transitions: the run goes on at the node around it");
        cx.report.add(Finding::new(CHILD_ROUTES, node.span, message));
    }
    nodes::kind(&opened, cx);
    opened.writes
}
