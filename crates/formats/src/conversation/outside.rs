//! States that something outside finishes: wait, task, delegate, subworkflow.

use switchward_machine::limits::{NAME_BYTES_MAX, TEXT_BYTES_MAX};
use switchward_machine::{
    Accept, Channel, Content, Decision, GateKind, GateSpec, Inquiry, Mapped, Message, Port, Recipient,
    Resolve, Sort, Work, WorkKind,
};

use super::hints::{hinted, hints};
use super::messages::{self, Addresses};
use super::reader::Reader;
use super::state::{Call, Exits, Kind};
use super::{approval, expr, read, texts};
use crate::codes::{
    MISSING_KEY, NAME, NO_PARTICIPANTS, OWN_CHILD, PORT_RESERVED, RECIPIENT, TWO_SOURCES, WRONG_TYPE,
};
use crate::document::Node;
use crate::limits::{LINE_BYTES_MAX, SCHEMA_KEYS_MAX, VALUES_MAX};
use crate::shape::{self, Fields, Shape};
use crate::{Finding, Naming, quoted};

macro_rules! shapes {
    ($($name:ident $what:literal [$($key:literal)*])*) => {
        $(const $name: Shape = Shape { what: $what, keys: &[$($key),*], ignored: &[], hints: &[] };)*
    };
}

shapes! {
    CLASSIFY "`classify`" ["enabled" "classification_ports" "classification_hints"]
    TASK "`task_template`" ["participants" "participants_from" "instructions" "escalation"]
}

/// See `docs/formats-conversation.md#wait`.
pub(super) fn wait<'a>(state: &'a Node, fields: &Fields<'a>, cx: &mut Reader<'a, '_>) -> (Kind, Exits) {
    let at = fields.required("wait_for", cx.report);
    let words = ["email_reply", "webhook", "timer"];
    let word = at.and_then(|node| shape::word(node, "`wait_for`", &words, cx.report));
    let hours = fields.required("timeout_hours", cx.report);
    let for_ms = hours.and_then(|node| read::hours(node, "`timeout_hours`", cx));
    let mut exits = Exits::ports(&["received", "timeout"]);
    let mut sort = None;
    if word == Some("timer") {
        cx.idle(state, "classify", "a timer has no reply to classify");
    }
    if let Some(node) = fields.optional("classify")
        && let Some(found) = classify(node, cx)
        && word != Some("timer")
    {
        let named = |port: &(Port, Vec<String>)| port.0.word().to_owned();
        exits = Exits::Ports(found.ports.iter().map(named).chain(["timeout".to_owned()]).collect());
        sort = Some(found);
    }
    match (word, at, for_ms) {
        (Some("timer"), _, Some(for_ms)) => (Kind::Timer(for_ms), exits),
        (Some("email_reply"), _, Some(for_ms)) => (Kind::Reply(for_ms, sort), exits),
        (Some("webhook"), _, Some(for_ms)) => (Kind::Event(for_ms, sort), exits),
        _ => (Kind::NotRun, exits),
    }
}

/// How a classified wait is sorted; `None` if classification is switched off.
fn classify<'a>(node: &'a Node, cx: &mut Reader<'a, '_>) -> Option<Sort> {
    let fields = Fields::open(node, &CLASSIFY, cx.report)?;
    let enabled = fields.required("enabled", cx.report).and_then(|node| read::flag(node, "`enabled`", cx))?;
    let ports = if enabled {
        fields.required("classification_ports", cx.report)
    } else {
        fields.optional("classification_ports")
    };
    let mut names: Vec<&'a str> = Vec::new();
    for item in
        ports.and_then(|node| cx.filled(node, "`classification_ports`", VALUES_MAX)).unwrap_or_default()
    {
        let Some(name) = shape::name(item, "a port", NAME_BYTES_MAX, cx.report) else { continue };
        if ["timeout", "error"].contains(&name) {
            let message = format!("a classification port cannot be called {}", quoted(name));
            let finding = Finding::new(PORT_RESERVED, item.span, message);
            cx.report.add(finding.hint("the state already has a port with this name"));
        }
        read::unique(item, name, "a port", &mut names, cx);
    }
    let phrases = fields.optional("classification_hints").map(|node| hints(node, &names, cx));
    let phrases = phrases.unwrap_or_default();
    let of = |name: &str| phrases.iter().find(|(port, _)| port == name).map(|(_, phrases)| phrases.clone());
    let port = |name: &'a str| (Port::Named(name.to_owned()), of(name).unwrap_or_default());
    let ports = names.into_iter().map(port).collect();
    enabled.then(|| Sort { ports, hinted: hinted(&phrases) })
}

/// `docs/formats-conversation.md#task`: one part for each participant, who is sent the instructions and gives one
/// answer. With an escalation the state has the port `timeout` beside its guards
/// (`tests/corpus/conversation/sentences.tsv#7r-21b`).
pub(super) fn task<'a>(fields: &Fields<'a>, cx: &mut Reader<'a, '_>) -> (Kind, Exits) {
    let Some(node) = fields.required("task_template", cx.report) else {
        return (Kind::NotRun, Exits::Unknown);
    };
    let Some(fields) = Fields::open(node, &TASK, cx.report) else { return (Kind::NotRun, Exits::Unknown) };
    let to = participants(node, &fields, cx);
    let rounds = fields.optional("escalation").map(|node| approval::escalation(node, cx));
    let exits = if rounds.is_some() { Exits::Timed } else { Exits::Guards };
    let rounds = rounds.flatten();
    let body = fields.required("instructions", cx.report);
    let body = body.and_then(|node| read::braces(node, "`instructions` of a task", TEXT_BYTES_MAX, cx));
    let Some(body) = body else { return (Kind::NotRun, exits) };
    let (channel, content) = (Channel::Email, Content::Text);
    let message = Message { channel, to, subject: None, body: Some(body), content };
    let inquiry = Inquiry { message, phrases: Vec::new(), hinted: true, rounds };
    let outcomes = vec![(Decision::Answer, Resolve::Settle(Port::Done))];
    let spec = GateSpec { inquiry: Some(inquiry), ..GateSpec::open_to_all(GateKind::Task, outcomes) };
    (Kind::Task(Box::new(spec)), exits)
}

/// The participants of a task: a list, or a value of the data. `template` is the node of `task_template`.
fn participants<'a>(template: &'a Node, fields: &Fields<'a>, cx: &mut Reader<'a, '_>) -> Vec<Recipient> {
    let from = match (fields.optional("participants"), fields.optional("participants_from")) {
        (Some(_), Some(from)) => {
            let message = "participants are both listed and taken from the data; use one of the two";
            cx.report.add(Finding::new(TWO_SOURCES, from.span, message));
            return Vec::new();
        }
        (Some(list), None) if list.as_list().is_some_and(<[_]>::is_empty) => {
            let message = "this task has no participants and is complete at once";
            cx.report.add(Finding::new(NO_PARTICIPANTS, list.span, message));
            return Vec::new();
        }
        (Some(list), None) => return messages::recipients(list, Addresses::Mail, cx),
        (None, Some(from)) => from,
        (None, None) => {
            let message = "`task_template` needs the key `participants`";
            let finding = Finding::new(MISSING_KEY, template.span, message);
            cx.report.add(finding.hint("or take them from the data with `participants_from`"));
            return Vec::new();
        }
    };
    let Some(text) = shape::text(from, "`participants_from`", LINE_BYTES_MAX, cx.report) else {
        return Vec::new();
    };
    if let Some(path) = expr::rooted(text) {
        texts::path(from, path, text.len() - path.len(), cx);
        return expr::path(path).map(Recipient::Listed).into_iter().collect();
    }
    let message = format!("`participants_from` cannot be {}", quoted(text));
    let meant = read::meant(text, cx);
    let finding = Finding::new(RECIPIENT, from.span, message).nearest(meant);
    cx.report.add(finding.hint("write it like gathered.reviewers"));
    Vec::new()
}

/// Another assistant follows the instructions. Its result is recorded as data.
pub(super) fn delegate<'a>(fields: &Fields<'a>, cx: &mut Reader<'a, '_>) -> Kind {
    let assistant = fields.required("assistant", cx.report);
    let assistant = assistant.and_then(|node| {
        let name = shape::name(node, "`assistant`", NAME_BYTES_MAX, cx.report)?;
        Some(texts::as_it_is(node, "`assistant`", name, cx))
    });
    let Some(assistant) = assistant.map(read::json_text) else { return Kind::NotRun };
    let instructions = fields.optional("instructions").and_then(Node::as_text).map(read::json_text);
    let instructions = instructions.map(|text| format!(r#""instructions":{text}"#));
    let (plain, literal) = read::literals(&[("assistant", assistant)]);
    let members: Vec<String> = plain.into_iter().chain(instructions).collect();
    let input = Some(format!("{{{}}}", members.join(",")));
    let owed = Work::plain(WorkKind::Delegate);
    Kind::Delegate(Work { accept: Some(Accept::Data), input, literal, ..owed })
}

/// See `docs/formats-conversation.md#subworkflow`.
pub(super) fn subworkflow<'a>(fields: &Fields<'a>, own: Option<&str>, cx: &mut Reader<'a, '_>) -> Kind {
    let mut workflow = None;
    if let Some(node) = fields.required("workflow", cx.report)
        && let Some(name) = shape::name(node, "`workflow`", NAME_BYTES_MAX, cx.report)
    {
        if !name.chars().all(|c| Naming::Slug.has(c)) {
            let message = format!("{} cannot be the name of a workflow", quoted(name));
            cx.report.add(Finding::new(NAME, node.span, message));
        } else if own == Some(name) {
            let message = "the workflow would call itself without end";
            cx.report.add(Finding::new(OWN_CHILD, node.span, message));
        } else {
            workflow = Some(name.to_owned());
        }
    }
    let input = mapping(fields.optional("input_mapping"), "`input_mapping`", false, cx);
    let output = mapping(fields.optional("output_mapping"), "`output_mapping`", true, cx);
    match workflow {
        Some(workflow) => Kind::Subworkflow(Box::new(Call { workflow, input, output })),
        None => Kind::NotRun,
    }
}

/// The workflows that the states of this document call. Values that are no workflow name are skipped.
pub(super) fn calls(root: &Node) -> Vec<crate::Call> {
    let states = root.get("states").and_then(Node::as_list).unwrap_or_default();
    let call = |state: &Node| {
        let calls = state.get("type").and_then(Node::as_text) == Some("subworkflow");
        let node = state.get("workflow").filter(|_| calls)?;
        Some(crate::Call { name: node.as_text()?.to_owned(), span: node.span })
    };
    states.iter().filter_map(call).collect()
}

/// Target on the left, source on the right; for an output the target is a key here, for an input the source.
fn mapping<'a>(node: Option<&'a Node>, what: &str, output: bool, cx: &mut Reader<'a, '_>) -> Vec<Mapped> {
    let mut found = Vec::new();
    let Some(node) = node else { return found };
    let entries = shape::map(node, what, SCHEMA_KEYS_MAX, cx.report).unwrap_or_default();
    for (key, value) in entries {
        let key_node = Node { value: crate::document::Value::Null, span: key.span };
        read::is_key(&key.text, what, &key_node, cx);
        let Some(source) = value.as_text() else {
            let message = format!("a source in {what} must be a text, and is {}", value.value.kind());
            cx.report.add(Finding::new(WRONG_TYPE, value.span, message));
            continue;
        };
        // A value that the engine wrote may be copied to the same key, which stays the engine's.
        if key.text != source {
            read::may_write(&key.text, what, key.span, cx);
        }
        let from = if output {
            cx.keys.sets(&key.text);
            read::is_key(source, what, value, cx).then(|| expr::path(source)).flatten()
        } else {
            read::path(value, what, cx)
        };
        found.extend(from.map(|from| Mapped { to: key.text.clone(), from }));
    }
    found
}
