//! Paths into the data, and texts with `{{x}}` in them. See `docs/formats-native.md#templates-and-paths`.

use switchward_expr::{Mention, Path, strict_mentions};

use super::reader::Reader;
use crate::codes::{BRACES, CONTEXT_PREFIX, NATIVE_PATH};
use crate::document::{Node, Span, Value};
use crate::limits::TEMPLATE_BYTES_MAX;
use crate::{Finding, quoted, shape};

/// What no path begins with: the data is the root itself.
const CONTEXT: &str = "context";

/// A text with references.
pub(super) fn template<'a>(
    node: &'a Node,
    what: &str,
    bytes_max: usize,
    cx: &mut Reader<'a, '_>,
) -> Option<&'a str> {
    let text = shape::text(node, what, bytes_max, cx.report)?;
    references(node, text, what, cx).then_some(text)
}

/// A map whose texts may have references; as JSON.
pub(super) fn templates<'a>(node: &'a Node, what: &str, cx: &mut Reader<'a, '_>) -> Option<String> {
    if node.as_map().is_none() {
        return shape::wrong_type(node, what, "a map", cx.report);
    }
    let sound = tree(node, what, cx);
    let json = node.to_json().to_string();
    let bytes = json.len();
    if bytes > TEMPLATE_BYTES_MAX {
        let message =
            format!("{what} has {bytes} bytes of JSON, and at most {TEMPLATE_BYTES_MAX} are allowed");
        cx.report.add(Finding::new(crate::codes::TEXT_BOUNDS, node.span, message));
        return None;
    }
    sound.then_some(json)
}

fn tree<'a>(node: &'a Node, what: &str, cx: &mut Reader<'a, '_>) -> bool {
    match &node.value {
        Value::String(text) => references(node, text, what, cx),
        Value::List(items) => all_sound(items.iter(), what, cx),
        Value::Map(entries) => all_sound(entries.iter().map(|(_, value)| value), what, cx),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Unread => true,
    }
}

/// Checks each of these, also behind one that is wrong.
fn all_sound<'a>(nodes: impl Iterator<Item = &'a Node>, what: &str, cx: &mut Reader<'a, '_>) -> bool {
    let mut sound = true;
    for node in nodes {
        sound &= tree(node, what, cx);
    }
    sound
}

/// Checks what a text refers to; returns false if something is wrong.
fn references<'a>(node: &'a Node, text: &str, what: &str, cx: &mut Reader<'a, '_>) -> bool {
    let found: Vec<Reference> = strict_mentions(text).into_iter().filter_map(Reference::of).collect();
    let parts: Vec<(usize, usize)> = found.iter().map(|it| (it.at, it.written.len())).collect();
    let spans = cx.source.inside(node, &parts);
    let mut sound = true;
    for (reference, span) in found.iter().zip(spans) {
        match Path::new(&reference.written) {
            Ok(path) => sound &= read_path(&path, what, span, cx),
            Err(error) => {
                let message = format!("{what} has braces that are output unchanged: the path {error}");
                let hint = "a reference is written like {{field}} or {{list.0.name}}";
                cx.report.add(Finding::new(BRACES, span, message).hint(hint));
            }
        }
    }
    sound
}

/// What stands between two braces.
struct Reference {
    /// Without white space around it.
    written: String,
    /// Bytes before it.
    at: usize,
}

impl Reference {
    fn of(mention: Mention) -> Option<Self> {
        match mention {
            Mention::Data(names) => {
                let at = names.first()?.at;
                let written: Vec<String> = names.into_iter().map(|name| name.text).collect();
                Some(Self { written: written.join("."), at })
            }
            Mention::Literal(name) => Some(Self { written: name.text, at: name.at }),
            Mention::Unknown { .. } | Mention::Word(_) => None,
        }
    }
}

/// A dotted path into the data.
pub(super) fn path<'a>(node: &'a Node, what: &str, cx: &mut Reader<'a, '_>) -> Option<Path> {
    let text = shape::text(node, what, usize::MAX, cx.report)?;
    match Path::new(text) {
        Ok(path) => read_path(&path, what, node.span, cx).then_some(path),
        Err(error) => {
            let message = format!("{what} cannot be {}: it {error}", quoted(text));
            let finding = Finding::new(NATIVE_PATH, node.span, message);
            let hint = "a path is written without braces, like items.0.name";
            cx.report.add(finding.hint(hint));
            None
        }
    }
}

/// Checks what a path reads; returns false if it begins with what only `returns.from` has.
pub(super) fn read_path(path: &Path, what: &str, span: Span, cx: &mut Reader<'_, '_>) -> bool {
    let mut names = path.names();
    let first = names.next().unwrap_or_default();
    let prefixed = first == CONTEXT && names.next().is_some();
    let known = cx.fields.is_some();
    if prefixed && known && cx.item != Some(CONTEXT) && !cx.has_field(CONTEXT) {
        let rest = path.as_str().split_once('.').map(|(_, rest)| rest.to_owned());
        let message = format!("{what} reads {}, but paths begin at the data itself", quoted(path.as_str()));
        let hint = "write it without `context.`";
        cx.report.add(Finding::new(CONTEXT_PREFIX, span, message).nearest(rest).hint(hint));
        return false;
    }
    cx.reads(first, what, span);
    true
}
