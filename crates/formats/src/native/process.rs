//! The whole process. See `docs/formats-native.md#the-process`.

use switchward_machine::NodeIx;
use switchward_machine::limits::{NODES_MAX, TEXT_BYTES_MAX};

use super::model::Process;
use super::reader::{Names, Reader};
use super::{NAMING, graph, nodes, opened, schema, work};
use crate::codes::{FORMAT_VERSION, INITIAL_DANGLING, NO_STATES};
use crate::document::{Node, Source};
use crate::shape::{self, Fields, Shape};
use crate::{Finding, Report, naming, quoted};

const PROCESS: Shape = Shape {
    what: "the process",
    keys: &[
        "format_version",
        "process",
        "description",
        "initial",
        "model",
        "resources",
        "context",
        "nodes",
        "metadata",
    ],
    ignored: &[],
    hints: &[
        ("name", "the name of a process is its key `process`"),
        ("states", "a process has `nodes`"),
        ("context", "write `context: {schema: {}}` if the data may be anything"),
    ],
};
/// The only version of the format.
const VERSION: &str = "1";

/// Reads and checks a process. `depth` processes are around it. Returns `None` if it has no nodes.
pub(super) fn read<'a>(
    root: &'a Node,
    source: &Source<'a>,
    depth: usize,
    report: &mut Report,
) -> Option<Process<'a>> {
    let fields = Fields::open(root, &PROCESS, report)?;
    if let Some(node) = fields.required("format_version", report) {
        version(node, report);
    }
    let name = fields.required("process", report);
    let name = name.and_then(|node| naming::named(node, "`process`", NAMING, report));
    let description = fields.optional("description");
    let description = description.and_then(|node| shape::text(node, "`description`", TEXT_BYTES_MAX, report));
    let initial = fields.required("initial", report);
    let entries = fields.required("nodes", report);
    let entries = entries.and_then(|node| Some((node, shape::map(node, "`nodes`", NODES_MAX, report)?)));
    let (at, entries) = entries.unzip();
    let names = Names::new(entries.unwrap_or_default());
    let mut cx =
        Reader { report, source, own: name, names, fields: None, scripts: Vec::new(), item: None, depth };
    let model = work::model(&fields, &mut cx);
    if let Some(node) = fields.optional("metadata") {
        opened::metadata(node, &mut cx);
    }
    let context = fields.required("context", cx.report);
    let context = schema::read(context, &mut cx);
    let scripts = work::resources(fields.optional("resources"), &mut cx);
    let (at, entries) = (at?, entries?);
    if entries.is_empty() {
        cx.report.add(Finding::new(NO_STATES, at.span, "a process needs at least one node"));
        return None;
    }
    let initial = initial.and_then(|node| start(node, &mut cx));
    let steps = entries.iter().map(|(key, node)| nodes::step(key, node, &mut cx)).collect();
    let process = Process { name, description, initial, model, context, scripts, nodes: steps };
    // What could not be read may lead anywhere.
    if cx.report.errors() == 0 {
        graph::warn(&process, cx.report);
    }
    Some(process)
}

fn version(node: &Node, report: &mut Report) {
    let Some(text) = node.as_number() else {
        shape::wrong_type::<()>(node, "`format_version`", "the number 1", report);
        return;
    };
    if text != VERSION {
        let message = format!("`format_version` must be 1, and is {}", quoted(text));
        report.add(Finding::new(FORMAT_VERSION, node.span, message));
    }
}

fn start<'a>(node: &'a Node, cx: &mut Reader<'a, '_>) -> Option<NodeIx> {
    let name = shape::text(node, "`initial`", usize::MAX, cx.report)?;
    let found = cx.names.find(name);
    if found.is_none() {
        let message = format!("`initial` names the node {}, which does not exist", quoted(name));
        shape::dangling(INITIAL_DANGLING, node, message, cx.names.all(), cx.report);
    }
    found
}
