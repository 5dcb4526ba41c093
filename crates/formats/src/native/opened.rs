//! The keys of a node: those of all types, and those that each type has. See `docs/formats-native.md#nodes`.

use switchward_machine::limits::TEXT_BYTES_MAX;

use super::reader::{Listed, Reader};
use super::schema;
use crate::codes::{MISSING_KEY, UNKNOWN_KEY, WRITES_ABSENT};
use crate::document::Node;
use crate::limits::{ATTEMPTS_MAX, WRITES_MAX};
use crate::shape::{self, Fields, Shape};
use crate::{Finding, quoted};

/// The types, as the source lists them.
const TYPES: [&str; 10] = [
    "tool",
    "interaction",
    "agent",
    "script",
    "process",
    "human_task",
    "foreach",
    "branch",
    "condition",
    "final",
];

macro_rules! shapes {
    ($($name:ident $what:literal [$($key:literal)*] [$($hint:expr),*])*) => {
        $(const $name: Shape = Shape {
            what: $what,
            keys: &[
                "type", "title", "description", "human_description", "metadata", "skippable", "max_retries",
                "writes", $($key),*
            ],
            ignored: &[],
            hints: &[$($hint),*],
        };)*
    };
}

const UPDATE_INSIDE: (&str, &str) = ("context_update", "write it in `config`");
const NO_BRANCHES: (&str, &str) = ("branches", "its exits are `transitions`");
const NO_TRANSITIONS: (&str, &str) = ("transitions", "its exits are its `branches`");

shapes! {
    TOOL "a tool node" ["tool" "input" "config" "transitions"] [UPDATE_INSIDE, NO_BRANCHES]
    INTERACTION "an interaction node"
        ["interaction" "input" "result_schema" "model" "transitions"] [NO_BRANCHES]
    AGENT "an agent node" ["prompt" "input" "tools" "model" "result_schema" "transitions"] [NO_BRANCHES]
    SCRIPT "a script node" ["script" "input" "timeout" "transitions"] [NO_BRANCHES]
    PROCESS "a process node"
        ["process" "process_definition" "process_version" "run_type" "input" "returns" "transitions"]
        [NO_BRANCHES]
    HUMAN_TASK "a human task" ["task" "transitions"] [NO_BRANCHES]
    FOREACH "a foreach node"
        ["foreach" "as" "item_id" "node" "max_concurrency" "failure_policy" "collect" "transitions"]
        [NO_BRANCHES]
    BRANCH "a branch node" ["branches" "join" "transitions"] []
    CONDITION "a condition" ["branches"] [NO_TRANSITIONS]
    FINAL "a final node" ["transitions" "branches"] []
}

/// Flags of `metadata.supervisor`: they open what is closed otherwise, so a text does not count as one.
const SUPERVISOR_FLAGS: [&str; 3] = ["allow_transition_override", "allow_skip", "review"];

/// A node that was opened, with what all types have.
pub(super) struct Opened<'a> {
    /// The type.
    pub(super) word: &'a str,
    /// Its keys.
    pub(super) fields: Fields<'a>,
    /// Where the node itself stands.
    pub(super) node: &'a Node,
    /// The fields that it may write.
    pub(super) writes: Vec<Listed<'a>>,
    /// Attempts beside the first one.
    pub(super) retries: u32,
}

impl Opened<'_> {
    /// Returns true if it may write a field.
    pub(super) fn may_write(&self, name: &str) -> bool {
        self.writes.iter().any(|listed| listed.name == name)
    }
}

/// Opens a node by its type, and reads its common keys.
pub(super) fn open<'a>(node: &'a Node, cx: &mut Reader<'a, '_>) -> Option<Opened<'a>> {
    let word = typed(node, cx)?;
    let fields = Fields::open(node, shape_of(word), cx.report)?;
    for key in ["title", "description", "human_description"] {
        if let Some(node) = fields.optional(key) {
            shape::text(node, &quoted(key), TEXT_BYTES_MAX, cx.report);
        }
    }
    if let Some(node) = fields.optional("metadata") {
        metadata(node, cx);
    }
    if let Some(node) = fields.optional("skippable") {
        cx.flag(node, "`skippable`");
    }
    let retries = fields
        .optional("max_retries")
        .and_then(|node| shape::integer(node, "`max_retries`", 0..=ATTEMPTS_MAX - 1, cx.report));
    let retries = retries.and_then(|retries| u32::try_from(retries).ok()).unwrap_or(0);
    let writes = fields.optional("writes").map(|node| writes(node, word, cx)).unwrap_or_default();
    if let Some(node) = fields.optional("writes").filter(|_| ["condition", "final"].contains(&word)) {
        cx.idle("writes", "the node writes nothing", node.span);
    }
    Some(Opened { word, fields, node, writes, retries })
}

/// The type of a node; if it has none, those that there are are reported.
fn typed<'a>(node: &'a Node, cx: &mut Reader<'a, '_>) -> Option<&'a str> {
    if let Some(at) = node.get("type") {
        return shape::word(at, "the type of a node", &TYPES, cx.report);
    }
    let entries = shape::map(node, "a node", usize::MAX, cx.report)?;
    for (key, _) in entries {
        if cx.report.nearest(&key.text, ["type"]).is_some() {
            let message = format!("a node has no key {}", quoted(&key.text));
            let finding = Finding::new(UNKNOWN_KEY, key.span, message);
            cx.report.add(finding.nearest(Some("type".to_owned())));
        }
    }
    let finding = Finding::new(MISSING_KEY, node.span, "a node needs the key `type`");
    cx.report.add(finding.allowed(TYPES));
    None
}

fn shape_of(word: &str) -> &'static Shape {
    match word {
        "tool" => &TOOL,
        "interaction" => &INTERACTION,
        "agent" => &AGENT,
        "script" => &SCRIPT,
        "process" => &PROCESS,
        "human_task" => &HUMAN_TASK,
        "foreach" => &FOREACH,
        "branch" => &BRANCH,
        "condition" => &CONDITION,
        _ => &FINAL,
    }
}

/// Metadata is free, except for what a supervisor may do.
pub(super) fn metadata<'a>(node: &'a Node, cx: &mut Reader<'a, '_>) {
    shape::map(node, "`metadata`", usize::MAX, cx.report);
    let Some(policy) = node.get("supervisor").filter(|node| !node.is_null()) else { return };
    let entries = shape::map(policy, "`metadata.supervisor`", usize::MAX, cx.report).unwrap_or_default();
    for (key, value) in entries.iter().filter(|(_, value)| !value.is_null()) {
        if SUPERVISOR_FLAGS.contains(&key.text.as_str()) {
            cx.flag(value, &quoted(&key.text));
        }
    }
}

/// What a node may write. What a model returns can be nothing else than the schema has; other nodes may write
/// what the schema does not name.
fn writes<'a>(node: &'a Node, word: &str, cx: &mut Reader<'a, '_>) -> Vec<Listed<'a>> {
    let listed = cx.field_list(node, "`writes`", WRITES_MAX);
    for one in &listed {
        if !["agent", "interaction"].contains(&word) {
            schema::unknown(one.name, "`writes` names", one.span, cx);
        } else if !cx.has_field(one.name) {
            let message = format!(
                "`writes` names the field {}, which `context.schema` does not have, so no result can have it",
                quoted(one.name)
            );
            let nearest = cx.nearest_field(one.name);
            cx.report.add(Finding::new(WRITES_ABSENT, one.span, message).nearest(nearest));
        }
    }
    listed
}

/// Returns true if transitions or branches are more than an empty list.
pub(super) fn leads_on(node: &Node) -> bool {
    node.as_list().is_none_or(|items| !items.is_empty())
}
