//! Nodes whose work something outside does: tool, interaction, agent, script. See
//! `docs/formats-native.md#tool`, `docs/formats-native.md#interaction`, `docs/formats-native.md#agent` and
//! `docs/formats-native.md#script`.

use std::collections::BTreeMap;

use switchward_machine::Pattern;
use switchward_machine::limits::{CAPABILITY_BYTES_MAX, NAME_BYTES_MAX, RULES_MAX, TEXT_BYTES_MAX};

use super::model::{Agent, Kind, Script, ToolCall};
use super::opened::Opened;
use super::reader::Reader;
use super::{schema, texts};
use crate::codes::{ENTRYPOINT, FILE_NAME, PATTERN, SCRIPT_DANGLING, TOOL_ABSENT, UPDATE_ABSENT};
use crate::document::Node;
use crate::limits::{SCRIPT_SECONDS_MAX, SCRIPTS_MAX, WRITES_MAX};
use crate::shape::{self, Fields, Shape};
use crate::{Finding, quoted};

macro_rules! shapes {
    ($($name:ident $what:literal [$($key:literal)*])*) => {
        $(const $name: Shape = Shape { what: $what, keys: &[$($key),*], ignored: &[], hints: &[] };)*
    };
}

shapes! {
    CONFIG "`config`" ["context_update"]
    RESOURCES "`resources`" ["scripts"]
    SCRIPT "a script" ["language" "entrypoint" "source" "packages"]
    SOURCE "`source`" ["type" "files"]
}

/// The languages of scripts.
const LANGUAGES: [&str; 3] = ["python", "javascript", "typescript"];
/// The time of a script that names none, seconds.
const TIMEOUT: u64 = 300;

/// A call of a tool, and literals that the node writes after it.
pub(super) fn tool<'a>(opened: &Opened<'a>, cx: &mut Reader<'a, '_>) -> Kind<'a> {
    let fields = &opened.fields;
    let given = fields.optional("tool");
    let name = given.and_then(|node| shape::name(node, "`tool`", CAPABILITY_BYTES_MAX, cx.report));
    let input = input(opened, cx);
    let config = fields.optional("config").and_then(|node| Fields::open(node, &CONFIG, cx.report));
    let update = config.and_then(|fields| fields.optional("context_update"));
    let literals = update.map(|node| literals(node, opened, cx)).unwrap_or_default();
    match (given, update) {
        (None, None) => {
            let message = "a tool node needs `tool`, or `context_update` in `config`";
            cx.report.add(Finding::new(TOOL_ABSENT, opened.node.span, message));
        }
        (None, Some(_)) => {
            if let Some(node) = fields.optional("input") {
                cx.idle("input", "the node calls no tool", node.span);
            }
        }
        (Some(_), _) => {}
    }
    let call = name.map(|name| ToolCall { name, input });
    Kind::Tool { call, update: literals }
}

/// The arguments of a call, or what a worker is given.
fn input<'a>(opened: &Opened<'a>, cx: &mut Reader<'a, '_>) -> Option<String> {
    opened.fields.optional("input").and_then(|node| texts::templates(node, "`input`", cx))
}

/// Fields and their new values, which are taken as they are written.
fn literals<'a>(node: &'a Node, opened: &Opened<'a>, cx: &mut Reader<'a, '_>) -> Vec<(&'a str, String)> {
    let entries = shape::map(node, "`context_update`", WRITES_MAX, cx.report).unwrap_or_default();
    let mut found = Vec::new();
    for (key, value) in entries {
        let name = key.text.as_str();
        if !cx.is_free(name, "a name in `context_update`", key.span) {
            continue;
        }
        if !opened.may_write(name) {
            let message = format!("`context_update` sets {}, which `writes` of the node lacks", quoted(name));
            let near = cx.report.nearest(name, opened.writes.iter().map(|listed| listed.name));
            let finding = Finding::new(UPDATE_ABSENT, key.span, message).nearest(near);
            cx.report.add(finding.hint("a node writes the fields in its `writes`, and nothing without it"));
        }
        found.push((name, value.to_json().to_string()));
    }
    found
}

/// One structured call of a model.
pub(super) fn interaction<'a>(opened: &Opened<'a>, cx: &mut Reader<'a, '_>) -> Kind<'a> {
    let name = opened.fields.required("interaction", cx.report);
    let name = name.and_then(|node| shape::name(node, "`interaction`", NAME_BYTES_MAX, cx.report));
    let input = input(opened, cx);
    let model = model(&opened.fields, cx);
    result_schema(opened, cx);
    name.map_or(Kind::Unread, |name| Kind::Interaction { name, input, model })
}

/// The model that a node or a process names.
pub(super) fn model<'a>(fields: &Fields<'a>, cx: &mut Reader<'a, '_>) -> Option<&'a str> {
    fields.optional("model").and_then(|node| shape::name(node, "`model`", NAME_BYTES_MAX, cx.report))
}

/// A schema of one's own must be valid, and the derived one takes its part.
fn result_schema<'a>(opened: &Opened<'a>, cx: &mut Reader<'a, '_>) {
    let Some(node) = opened.fields.optional("result_schema") else { return };
    if schema::checked(node, "`result_schema`", cx.report).is_some() {
        cx.idle("result_schema", "a result must be what `writes` and `context.schema` say", node.span);
    }
}

/// Work of an agent, bound to what the node may write.
pub(super) fn agent<'a>(opened: &Opened<'a>, cx: &mut Reader<'a, '_>) -> Kind<'a> {
    let prompt = opened.fields.required("prompt", cx.report);
    let prompt = prompt.and_then(|node| texts::template(node, "`prompt`", TEXT_BYTES_MAX, cx));
    let input = input(opened, cx);
    let model = model(&opened.fields, cx);
    let tools = opened.fields.optional("tools").map(|node| tools(node, cx)).unwrap_or_default();
    result_schema(opened, cx);
    prompt.map_or(Kind::Unread, |prompt| Kind::Agent(Agent { prompt, input, model, tools }))
}

fn tools<'a>(node: &'a Node, cx: &mut Reader<'a, '_>) -> Vec<Pattern> {
    let items = shape::list(node, "`tools`", RULES_MAX, cx.report).unwrap_or_default();
    let mut found = Vec::new();
    for item in items {
        let Some(text) = shape::text(item, "a name in `tools`", usize::MAX, cx.report) else { continue };
        match Pattern::new(text) {
            Ok(pattern) => found.push(pattern),
            Err(error) => {
                let message = format!("the tool {} {error}", quoted(text));
                cx.report.add(Finding::new(PATTERN, item.span, message));
            }
        }
    }
    found
}

/// The run of a script of the process.
pub(super) fn script<'a>(opened: &Opened<'a>, cx: &mut Reader<'a, '_>) -> Kind<'a> {
    let input = input(opened, cx);
    let timeout = opened.fields.optional("timeout");
    let timeout = timeout
        .and_then(|node| shape::integer(node, "`timeout` in seconds", 1..=SCRIPT_SECONDS_MAX, cx.report))
        .unwrap_or(TIMEOUT);
    let Some(node) = opened.fields.required("script", cx.report) else { return Kind::Unread };
    let Some(name) = shape::text(node, "`script`", usize::MAX, cx.report) else { return Kind::Unread };
    if !cx.scripts.contains(&name) {
        let message = format!("`script` names {}, which `resources.scripts` does not have", quoted(name));
        shape::dangling(SCRIPT_DANGLING, node, message, cx.scripts.iter().copied(), cx.report);
        return Kind::Unread;
    }
    Kind::Script { name, input, timeout }
}

/// The scripts of a process, by name.
pub(super) fn resources<'a>(
    node: Option<&'a Node>,
    cx: &mut Reader<'a, '_>,
) -> BTreeMap<&'a str, Script<'a>> {
    let fields = node.and_then(|node| Fields::open(node, &RESOURCES, cx.report));
    let Some(node) = fields.and_then(|fields| fields.optional("scripts")) else { return BTreeMap::new() };
    let entries = shape::map(node, "`scripts`", SCRIPTS_MAX, cx.report).unwrap_or_default();
    cx.scripts = entries.iter().map(|(key, _)| key.text.as_str()).collect();
    let mut found = BTreeMap::new();
    for (key, value) in entries {
        shape::is_name(&key.text, "the name of a script", NAME_BYTES_MAX, key.span, cx.report);
        found.extend(resource(value, cx).map(|script| (key.text.as_str(), script)));
    }
    found
}

fn resource<'a>(node: &'a Node, cx: &mut Reader<'a, '_>) -> Option<Script<'a>> {
    let fields = Fields::open(node, &SCRIPT, cx.report)?;
    let language = fields.required("language", cx.report);
    let language = language.and_then(|node| shape::word(node, "`language`", &LANGUAGES, cx.report));
    let source = fields.required("source", cx.report);
    let files = source.and_then(|node| files(node, cx));
    let entrypoint = fields.required("entrypoint", cx.report).and_then(|node| {
        let name = shape::name(node, "`entrypoint`", NAME_BYTES_MAX, cx.report)?;
        let known = files.as_ref().is_none_or(|files| files.iter().any(|(path, _)| *path == name));
        if !known {
            let message =
                format!("`entrypoint` names the file {}, which `files` does not have", quoted(name));
            let paths: Vec<&str> = files.iter().flatten().map(|(path, _)| *path).collect();
            shape::dangling(ENTRYPOINT, node, message, paths.iter().copied(), cx.report);
        }
        known.then_some(name)
    });
    let mut packages = Vec::new();
    if let Some(node) = fields.optional("packages") {
        for item in shape::list(node, "`packages`", SCRIPTS_MAX, cx.report).unwrap_or_default() {
            packages.extend(shape::name(item, "a package", NAME_BYTES_MAX, cx.report));
        }
    }
    Some(Script { language: language?, entrypoint: entrypoint?, files: files?, packages })
}

fn files<'a>(node: &'a Node, cx: &mut Reader<'a, '_>) -> Option<Vec<(&'a str, &'a str)>> {
    let fields = Fields::open(node, &SOURCE, cx.report)?;
    if let Some(node) = fields.required("type", cx.report) {
        shape::word(node, "the type of a source", &["inline"], cx.report);
    }
    let node = fields.required("files", cx.report)?;
    let entries = shape::map(node, "`files`", SCRIPTS_MAX, cx.report)?;
    let mut found = Vec::new();
    for (key, value) in entries {
        let path = key.text.as_str();
        if shape::is_name(path, "the name of a file", NAME_BYTES_MAX, key.span, cx.report) && !is_inside(path)
        {
            let message = format!("the file {} must have a relative path without `.` and `..`", quoted(path));
            cx.report.add(Finding::new(FILE_NAME, key.span, message));
        }
        let content = shape::text(value, "the content of a file", TEXT_BYTES_MAX, cx.report);
        found.extend(content.map(|content| (path, content)));
    }
    Some(found)
}

/// Returns true if a path leads to a file below the folder that it is relative to.
fn is_inside(path: &str) -> bool {
    !path.contains('\\') && path.split('/').all(|name| !["", ".", ".."].contains(&name))
}
