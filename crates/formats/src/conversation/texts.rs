//! Texts that refer to values of the data: Jinja2 templates, texts with references in braces, and dotted paths. Their
//! reads are recorded with their span; unknown names are reported.

use switchward_expr::{Mention, Name, NameKind};

use super::expr;
use super::form::Form;
use super::keys::Unknown;
use super::reader::Reader;
use crate::codes::{NAME_UNKNOWN, TEMPLATE, TEXT_BRACES};
use crate::document::{Node, Span};
use crate::{Finding, quoted};

/// Records what a Jinja2 template mentions; returns false if it cannot be read.
pub(super) fn template<'a>(node: &'a Node, what: &str, source: &str, cx: &mut Reader<'a, '_>) -> bool {
    let mentions = match expr::mentions(source) {
        Ok(mentions) => mentions,
        Err(fault) => {
            let span = line(node, source, fault.line, cx);
            let message = format!("{what} is not a valid template: {}", expr::as_clause(&fault.message));
            cx.report.add(Finding::new(TEMPLATE, span, message));
            return false;
        }
    };
    let sound = mentions.iter().all(|mention| !matches!(mention, Mention::Unknown { .. }));
    note(node, mentions, Form::Jinja, cx);
    if sound && let Err(fault) = expr::check_template(source) {
        let message = format!("{what} is not a valid template: {fault}");
        cx.report.add(Finding::new(TEMPLATE, node.span, message));
        return false;
    }
    true
}

/// The span of a line of a text, counted from 1; that of the text if there is no such line.
fn line<'a>(node: &'a Node, source: &str, line: usize, cx: &Reader<'a, '_>) -> Span {
    let found = source.split('\n').nth(line.saturating_sub(1)).filter(|_| line > 1);
    let Some(found) = found.map(str::trim).filter(|text| !text.is_empty()) else { return node.span };
    let at = found.as_ptr().addr() - source.as_ptr().addr();
    cx.source.inside(node, &[(at, found.len())]).first().copied().unwrap_or(node.span)
}

/// Records what a text with references in braces mentions.
pub(super) fn braces<'a>(node: &'a Node, source: &str, cx: &mut Reader<'a, '_>) {
    note(node, switchward_expr::braces_mentions(source), Form::Braces, cx);
}

/// Records a read of a dotted path, which begins in a text after this many bytes.
pub(super) fn path<'a>(node: &'a Node, path: &str, at: usize, cx: &mut Reader<'a, '_>) {
    let name = |name: &str| {
        let offset = name.as_ptr().addr() - path.as_ptr().addr();
        Name { text: name.to_owned(), at: at + offset }
    };
    note(node, vec![Mention::Data(path.split('.').map(name).collect())], Form::Braces, cx);
}

/// Warns of references in a text in which none are replaced.
pub(super) fn unread<'a>(
    node: &'a Node,
    what: &str,
    source: &str,
    hint: &'static str,
    cx: &mut Reader<'a, '_>,
) {
    let mentions = switchward_expr::braces_mentions(source);
    let found = mentions.iter().filter_map(|mention| {
        let names = match mention {
            Mention::Data(names) => names.as_slice(),
            Mention::Literal(name) => std::slice::from_ref(name),
            Mention::Unknown { .. } | Mention::Word(_) => &[],
        };
        names.first().map(|first| (first, names))
    });
    let found: Vec<(&Name, &[Name])> = found.collect();
    // All at once: each search begins where the text does.
    let parts: Vec<(usize, usize)> = found.iter().map(|(first, _)| (first.at, first.text.len())).collect();
    for ((_, names), span) in found.into_iter().zip(cx.source.inside(node, &parts)) {
        let path: Vec<&str> = names.iter().map(|name| name.text.as_str()).collect();
        let message = format!("{what} has no references: {} is not replaced", quoted(&path.join(".")));
        cx.report.add(Finding::new(TEXT_BRACES, span, message).hint(hint));
    }
}

/// A text that the engine hands over as it is; warns of what reads like a reference in it.
pub(super) fn as_it_is<'a>(node: &'a Node, what: &str, source: &'a str, cx: &mut Reader<'a, '_>) -> &'a str {
    unread(node, what, source, LITERAL_HINT, cx);
    source
}

const LITERAL_HINT: &str = "put what depends on the data into `instructions`";

fn names(mention: &Mention) -> &[Name] {
    match mention {
        Mention::Data(names) => names,
        Mention::Unknown { name, .. } | Mention::Literal(name) | Mention::Word(name) => {
            std::slice::from_ref(name)
        }
    }
}

fn note<'a>(node: &'a Node, mentions: Vec<Mention>, form: Form, cx: &mut Reader<'a, '_>) {
    let parts: Vec<(usize, usize)> =
        mentions.iter().flat_map(names).map(|name| (name.at, name.text.len())).collect();
    if parts.is_empty() {
        return;
    }
    let mut spans = cx.source.inside(node, &parts).into_iter();
    let mut next = || spans.next().unwrap_or(node.span);
    for mention in mentions {
        match mention {
            Mention::Data(names) => {
                let names: Vec<(String, Span)> = names.into_iter().map(|it| (it.text, next())).collect();
                cx.keys.reads(names);
            }
            Mention::Unknown { kind: NameKind::Variable, name, known } => {
                cx.keys.unknown(Unknown { name: name.text, span: next(), known, form, word: false });
            }
            Mention::Unknown { kind, name, known } => not_offered(kind, &name.text, &known, next(), cx),
            Mention::Literal(name) => literal(&name.text, form, next(), cx),
            Mention::Word(name) => {
                let known = expr::ROOT_NAMES.map(str::to_owned).into();
                cx.keys.unknown(Unknown { name: name.text, span: next(), known, form, word: true });
            }
        }
    }
}

fn not_offered(kind: NameKind, name: &str, known: &[String], span: Span, cx: &mut Reader<'_, '_>) {
    let message = format!("there is no {} {}", kind.word(), quoted(name));
    let known = || known.iter().map(String::as_str);
    let nearest = cx.report.nearest(name, known());
    cx.report.add(Finding::new(NAME_UNKNOWN, span, message).allowed(known()).nearest(nearest));
}

/// Warns of a text that looks like a reference and is output unchanged.
fn literal(text: &str, form: Form, span: Span, cx: &mut Reader<'_, '_>) {
    let message = format!("{} is not a reference here and is output unchanged", quoted(text));
    let inner = text.trim_start_matches('{').trim_end_matches('}');
    let meant = expr::rooted(inner).map(|_| match form {
        Form::Jinja => format!("{{{{ {inner} }}}}"),
        Form::Braces => format!("{{{inner}}}"),
    });
    cx.report.add(Finding::new(TEXT_BRACES, span, message).nearest(meant).hint(form.example()));
}
