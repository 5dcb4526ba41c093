//! Process nodes: another process that runs as a child. See `docs/formats-native.md#process`.

use switchward_expr::Path;

use super::model::Kind;
use super::opened::Opened;
use super::reader::Reader;
use super::{NAMING, process, texts};
use crate::codes::{NATIVE_PATH, OWN_CHILD, PROCESS_NESTED, PROCESS_SOURCE};
use crate::document::Node;
use crate::limits::{PROCESS_DEPTH_MAX, WRITES_MAX};
use crate::shape::{self, Fields, Shape};
use crate::{Call, Finding, naming, quoted};

const RETURNS: Shape = Shape { what: "`returns`", keys: &["from", "context"], ignored: &[], hints: &[] };
/// What a path in `returns.from` begins with.
const ROOTS: [&str; 2] = ["context", "state"];

/// A child of another process, or of one that is written here.
pub(super) fn call<'a>(opened: &Opened<'a>, cx: &mut Reader<'a, '_>) -> Kind<'a> {
    let fields = &opened.fields;
    let (named, inline) = (fields.optional("process"), fields.optional("process_definition"));
    if named.is_some() == inline.is_some() {
        let span = inline.map_or(opened.node.span, |node| node.span);
        let message = "a process node needs `process` or `process_definition`, and not both";
        cx.report.add(Finding::new(PROCESS_SOURCE, span, message));
    }
    if let Some(node) = named {
        called(node, cx);
    }
    if let Some(node) = inline {
        inside(node, cx);
    }
    if let Some(node) = fields.optional("process_version") {
        shape::integer(node, "`process_version`", 1..=u64::from(u32::MAX), cx.report);
        if inline.is_some() && named.is_none() {
            cx.idle("process_version", "the process is written here", node.span);
        }
    }
    if let Some(node) = fields.optional("run_type") {
        shape::word(node, "`run_type`", &["programmatic", "supervised"], cx.report);
    }
    if let Some(node) = fields.optional("input") {
        texts::templates(node, "`input`", cx);
    }
    if let Some(node) = fields.optional("returns") {
        returns(node, cx);
    }
    Kind::NotRun("a process node")
}

fn called<'a>(node: &'a Node, cx: &mut Reader<'a, '_>) {
    let called = naming::named(node, "`process`", NAMING, cx.report);
    if called.is_some() && called == cx.own {
        let message = "the process would call itself without end";
        cx.report.add(Finding::new(OWN_CHILD, node.span, message));
    }
}

/// A process that is written inside another one. It reads nothing of the other.
fn inside<'a>(node: &'a Node, cx: &mut Reader<'a, '_>) {
    if cx.depth >= PROCESS_DEPTH_MAX {
        let message = format!("at most {PROCESS_DEPTH_MAX} processes can be written inside each other");
        cx.report.add(Finding::new(PROCESS_NESTED, node.span, message));
        return;
    }
    process::read(node, cx.source, cx.depth + 1, cx.report);
}

/// What of the child's state is its output.
fn returns<'a>(node: &'a Node, cx: &mut Reader<'a, '_>) {
    let Some(fields) = Fields::open(node, &RETURNS, cx.report) else { return };
    let (from, context) = (fields.optional("from"), fields.optional("context"));
    if let Some(node) = from {
        returned(node, cx);
    }
    if let Some(node) = context {
        cx.field_list(node, "`context` of `returns`", WRITES_MAX);
        if from.is_some() {
            cx.idle("context", "`from` says already what is returned", node.span);
        }
    }
}

fn returned<'a>(node: &'a Node, cx: &mut Reader<'a, '_>) {
    let Some(text) = shape::text(node, "`from`", usize::MAX, cx.report) else { return };
    let path = Path::new(text);
    let first = path.as_ref().ok().and_then(|path| path.names().next());
    if first.is_some_and(|first| ROOTS.contains(&first)) {
        return;
    }
    let message = format!("`from` cannot be {}: it begins with `context` or `state`", quoted(text));
    let nearest = path.is_ok().then(|| format!("context.{text}"));
    cx.report.add(Finding::new(NATIVE_PATH, node.span, message).nearest(nearest));
}

/// The processes that the nodes of this document call by name, also inside of others. Values that are no name
/// of a process are skipped.
pub(super) fn calls(root: &Node) -> Vec<Call> {
    let mut found = Vec::new();
    of_process(root, 0, &mut found);
    found
}

fn of_process(process: &Node, depth: usize, found: &mut Vec<Call>) {
    if depth > PROCESS_DEPTH_MAX {
        return;
    }
    for (_, node) in process.get("nodes").and_then(Node::as_map).unwrap_or_default() {
        let children = node.get("branches").and_then(Node::as_list).unwrap_or_default();
        let children = children.iter().filter_map(|branch| branch.get("node")).chain(node.get("node"));
        for one in children.chain([node]) {
            if one.get("type").and_then(Node::as_text) != Some("process") {
                continue;
            }
            if let Some((at, name)) = one.get("process").and_then(|at| Some((at, at.as_text()?))) {
                found.push(Call { name: name.to_owned(), span: at.span });
            }
            if let Some(inner) = one.get("process_definition") {
                of_process(inner, depth + 1, found);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Report;
    use crate::document::{Syntax, read};

    #[test]
    fn calls_are_found_in_children_and_in_processes_that_are_written_inside() {
        let source = "nodes:\n  a: {type: process, process: one}\n  \
                      b: {type: branch, branches: [{id: x, node: {type: process, process: two}}, {to: y}]}\n  \
                      c: {type: foreach, node: {type: process, process_definition: \
                      {nodes: {s: {type: process, process: three}, t: {type: tool, process: none}}}}}\n  \
                      d: {type: process, process: 4}\n";
        let root = read(source.as_bytes(), Syntax::Yaml, &mut Report::new("x")).unwrap();
        let found = calls(&root);
        let names: Vec<&str> = found.iter().map(|call| call.name.as_str()).collect();
        assert_eq!(names, ["one", "two", "three"]);
        assert_eq!((found[0].span.line, found[0].span.column), (2, 31));
    }
}
