//! States: their common keys, and those of each type. See `docs/formats-conversation.md#fields-of-every-state` and
//! `docs/formats-conversation.md#transitions-and-ports`.

use switchward_machine::NodeIx;
use switchward_machine::limits::{NAME_BYTES_MAX, TEXT_BYTES_MAX};

use super::boundary::{self, Errors};
use super::messages;
use super::reader::Reader;
use super::state::{Exits, Kind, State};
use super::{approval, operations, outside, parse, read, texts, tools};
use crate::codes::{DUPLICATE_NAME, MISSING_KEY, UNKNOWN_KEY};
use crate::document::Node;
use crate::limits::REQUIRED_FIELDS_MAX;
use crate::shape::{self, Fields, Shape};
use crate::{Finding, quoted};

/// The types, as the source lists them.
const TYPES: [&str; 10] = [
    "conversation",
    "action",
    "logic",
    "output",
    "parse",
    "approval",
    "wait",
    "task",
    "delegate",
    "subworkflow",
];

macro_rules! shapes {
    ($($name:ident $what:literal [$($key:literal)*])*) => {
        $(const $name: Shape = Shape {
            what: $what,
            keys: &[
                "name", "type", "instructions", "required_fields", "tools", "execution_mode", "operations",
                "on_error", "retry_policy", "retry", "require_human_approval", "approval_contacts", $($key),*
            ],
            ignored: &[],
            hints: &[],
        };)*
    };
}

shapes! {
    CONVERSATION "a conversation state" []
    ACTION "an action state" []
    LOGIC "a logic state" []
    OUTPUT "an output state" ["template" "subject_template" "target" "recipients" "content_type"]
    PARSE "a parse state" ["fields" "source" "model"]
    APPROVAL "an approval state" ["approvers" "request_template" "classification_hints" "channel" "escalation"]
    WAIT "a wait state" ["wait_for" "timeout_hours" "classify"]
    TASK "a task state" ["task_template"]
    DELEGATE "a delegate state" ["assistant"]
    SUBWORKFLOW "a subworkflow state" ["workflow" "input_mapping" "output_mapping"]
}

/// Reads all states, one for each item; `workflow` is the workflow's own name.
pub(super) fn read<'a>(items: &'a [Node], workflow: Option<&str>, cx: &mut Reader<'a, '_>) -> Vec<State<'a>> {
    let mut states: Vec<State<'a>> = Vec::new();
    for (at, item) in (0..).zip(items) {
        cx.keys.stand_at(Some(NodeIx(at)));
        let state = state(item, workflow, cx);
        let first = cx.names.find(state.name);
        if !state.name.is_empty() && first.is_some_and(|first| first.0 != at) {
            let message = format!("a state called {} exists here already", quoted(state.name));
            cx.report.add(Finding::new(DUPLICATE_NAME, state.span, message));
        }
        states.push(state);
    }
    cx.keys.stand_at(None);
    states
}

fn state<'a>(node: &'a Node, workflow: Option<&str>, cx: &mut Reader<'a, '_>) -> State<'a> {
    let mut state = State {
        name: "",
        span: node.span,
        kind: Kind::NotRun,
        exits: Exits::Unknown,
        text: None,
        required: Vec::new(),
        tools: None,
        errors: Errors::NONE,
        gate: None,
    };
    let Some((word, shape)) = typed(node, cx) else {
        if let Some(name) = node.get("name") {
            state.name = name.as_text().unwrap_or_default();
            state.span = name.span;
        }
        return state;
    };
    let Some(fields) = Fields::open(node, shape, cx.report) else { return state };
    if let Some(node) = fields.required("name", cx.report) {
        state.span = node.span;
        let name = shape::name(node, "the name of a state", NAME_BYTES_MAX, cx.report);
        state.name = name.unwrap_or_default();
    }
    common(&fields, &mut state, cx);
    state.errors = boundary::read(node, &fields, word, cx);
    (state.kind, state.exits) = kind(word, node, &fields, workflow, cx);
    state.gate = approval::gate(node, &fields, cx);
    state
}

/// The type, and the keys that a state of it can have.
fn typed<'a>(node: &'a Node, cx: &mut Reader<'a, '_>) -> Option<(&'a str, &'static Shape)> {
    let Some(at) = node.get("type") else {
        let entries = shape::map(node, "a state", usize::MAX, cx.report)?;
        for (key, _) in entries {
            if cx.report.nearest(&key.text, ["type"]).is_some() {
                let message = format!("a state has no key {}", quoted(&key.text));
                let finding = Finding::new(UNKNOWN_KEY, key.span, message);
                cx.report.add(finding.nearest(Some("type".to_owned())));
            }
        }
        let finding = Finding::new(MISSING_KEY, node.span, "a state needs the key `type`");
        cx.report.add(finding.allowed(TYPES));
        return None;
    };
    let word = shape::word(at, "the type of a state", &TYPES, cx.report)?;
    let shape = match word {
        "conversation" => &CONVERSATION,
        "action" => &ACTION,
        "logic" => &LOGIC,
        "output" => &OUTPUT,
        "parse" => &PARSE,
        "approval" => &APPROVAL,
        "wait" => &WAIT,
        "task" => &TASK,
        "delegate" => &DELEGATE,
        _ => &SUBWORKFLOW,
    };
    Some((word, shape))
}

fn common<'a>(fields: &Fields<'a>, state: &mut State<'a>, cx: &mut Reader<'a, '_>) {
    if let Some(node) = fields.optional("instructions") {
        state.text = shape::text(node, "`instructions`", TEXT_BYTES_MAX, cx.report);
        texts::braces(node, state.text.unwrap_or_default(), cx);
    }
    if let Some(node) = fields.optional("required_fields") {
        state.required = read::keys(node, "`required_fields`", REQUIRED_FIELDS_MAX, cx);
        for key in &state.required {
            cx.keys.sets(key);
        }
        for item in node.as_list().unwrap_or_default() {
            read::may_write(item.as_text().unwrap_or_default(), "a name in `required_fields`", item.span, cx);
        }
    }
    state.tools = fields.optional("tools").map(|node| tools::read(node, "`tools`", cx));
}

fn kind<'a>(
    word: &str,
    node: &'a Node,
    fields: &Fields<'a>,
    workflow: Option<&str>,
    cx: &mut Reader<'a, '_>,
) -> (Kind, Exits) {
    let mode = fields.optional("execution_mode");
    let deterministic =
        mode.is_some_and(|it| shape::word(it, "`execution_mode`", &["deterministic"], cx.report).is_some());
    let runs_operations = word == "logic" || (deterministic && ["conversation", "action"].contains(&word));
    if runs_operations {
        let operations = fields.required("operations", cx.report);
        let steps = operations.map(|node| operations::read(node, cx)).unwrap_or_default();
        return (Kind::Operations(steps), Exits::Guards);
    }
    stray_operations(word, node, cx);
    let found = match word {
        "conversation" => return (Kind::Conversation, Exits::Guards),
        "action" => return (Kind::Action, Exits::Guards),
        "output" => return (Kind::Output(messages::output(node, fields, cx)), Exits::ports(&["done"])),
        "wait" => outside::wait(node, fields, cx),
        "parse" => parse::parse(fields, cx),
        "approval" => {
            let spec = approval::state(fields, cx);
            (Kind::Approval(Box::new(spec)), Exits::ports(&approval::PORTS))
        }
        "task" => outside::task(fields, cx),
        "delegate" => (outside::delegate(fields, cx), Exits::Guards),
        _ => (outside::subworkflow(fields, workflow, cx), Exits::Guards),
    };
    if deterministic && let Some(mode) = mode {
        cx.not_run(mode.span, &format!("`execution_mode` of a state of the type {}", quoted(word)));
    }
    found
}

/// Warns of operations that would never run.
fn stray_operations(word: &str, node: &Node, cx: &mut Reader<'_, '_>) {
    let Some((key, _)) = node.entry("operations").filter(|(_, value)| !value.is_null()) else { return };
    let message = format!("a state of the type {} runs no operations", quoted(word));
    let finding = Finding::new(UNKNOWN_KEY, key.span, message);
    cx.report.add(if ["conversation", "action"].contains(&word) {
        finding.hint("add `execution_mode: deterministic` to run them")
    } else {
        finding.hint("put them into a logic state")
    });
}
