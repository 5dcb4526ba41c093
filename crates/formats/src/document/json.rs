//! JSON: the tree of `jsonc-parser` with all its leniency off; what it still lets through is refused here.

use std::collections::BTreeSet;

use jsonc_parser::ast::{self, ObjectPropName};
use jsonc_parser::common::Ranged;
use jsonc_parser::errors::{ParseError, ParseErrorKind};
use jsonc_parser::{CollectOptions, ParseOptions, ParseStringErrorKind, parse_to_ast};

use super::line_index::LineIndex;
use super::{Entry, Key, Node, Span, Value, scalar};
use crate::codes::{
    CONTROL_CHARACTER, DUPLICATE_KEY, EMPTY_DOCUMENT, JSON_SYNTAX, NUMBER_TOO_LARGE, SEVERAL_DOCUMENTS,
    TOO_DEEP, TOO_MANY_NODES,
};
use crate::limits::{DEPTH_MAX, FINDINGS_MAX, NODES_MAX};
use crate::{Finding, Report, quoted};

const STRICT: ParseOptions = ParseOptions {
    allow_comments: false,
    allow_loose_object_property_names: false,
    allow_trailing_commas: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

pub(super) fn read(text: &str, line_index: &LineIndex<'_>, report: &mut Report) -> Option<Node> {
    match parse_to_ast(text, &CollectOptions::default(), &STRICT) {
        Err(error) => {
            report.add(refusal(&error, line_index));
            None
        }
        Ok(parsed) => {
            let Some(value) = parsed.value else {
                report.add(Finding::new(EMPTY_DOCUMENT, Span::START, "the file holds no JSON value"));
                return None;
            };
            check_characters(text, line_index, report);
            let mut build = Build { line_index, report, nodes: 0 };
            build.node(value, 1).ok()
        }
    }
}

fn refusal(error: &ParseError, line_index: &LineIndex<'_>) -> Finding {
    let span = line_index.span(error.range().start, error.range().end);
    let kind = error.kind();
    if let ParseErrorKind::MultipleRootJsonValues = kind {
        return Finding::new(SEVERAL_DOCUMENTS, span, "there is more text after the end of the JSON value");
    }
    if let ParseErrorKind::NestingDepthExceeded = kind {
        return too_deep(span);
    }
    if let ParseErrorKind::String(ParseStringErrorKind::InvalidUnicodeEscapeSequence(_)) = kind {
        let message = "the escape is half of a surrogate pair, which is not a character";
        return Finding::new(JSON_SYNTAX, span, message);
    }
    let message = kind.to_string();
    let mut chars = message.chars();
    let first = chars.next().map(|c| c.to_ascii_lowercase());
    let message: String = first.into_iter().chain(chars).collect();
    Finding::new(JSON_SYNTAX, span, format!("this is not JSON: {message}"))
}

fn too_deep(span: Span) -> Finding {
    let message = format!("lists and maps are nested more than {DEPTH_MAX} deep here");
    Finding::new(TOO_DEEP, span, message)
}

/// The parser accepts raw control characters inside texts, and any Unicode white space outside of them. The text is
/// otherwise known to be JSON, so that a quote begins or ends a text.
fn check_characters(text: &str, line_index: &LineIndex<'_>, report: &mut Report) {
    let mut in_text = false;
    let mut escaped = false;
    let mut reported = 0;
    for (at, c) in text.char_indices() {
        let refused = if in_text { c < ' ' } else { !c.is_ascii() || matches!(c, '\u{b}' | '\u{c}') };
        if refused && reported < FINDINGS_MAX {
            reported += 1;
            let message = if in_text {
                format!(
                    "a control character (U+{:04X}) inside a text must be written as an escape",
                    u32::from(c)
                )
            } else {
                format!("the character U+{:04X} is not allowed between JSON values", u32::from(c))
            };
            report.add(Finding::new(CONTROL_CHARACTER, line_index.span(at, at + c.len_utf8()), message));
        }
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = in_text,
            '"' => in_text = !in_text,
            _ => {}
        }
    }
}

/// A maximum was exceeded; the finding is reported, and there is no tree.
struct Stop;

struct Build<'a, 'b> {
    line_index: &'a LineIndex<'b>,
    report: &'a mut Report,
    nodes: usize,
}

impl Build<'_, '_> {
    fn node(&mut self, value: ast::Value<'_>, depth: usize) -> Result<Node, Stop> {
        let range = value.range();
        self.nodes += 1;
        if self.nodes > NODES_MAX {
            let message = format!("the document holds more than {NODES_MAX} values");
            self.report.add(Finding::new(
                TOO_MANY_NODES,
                self.line_index.span(range.start, range.start),
                message,
            ));
            return Err(Stop);
        }
        let (value, end) = match value {
            ast::Value::NullKeyword(_) => (Value::Null, range.end),
            ast::Value::BooleanLit(literal) => (Value::Bool(literal.value), range.end),
            ast::Value::StringLit(literal) => (Value::String(literal.value.into_owned()), range.end),
            ast::Value::NumberLit(literal) => (self.number(literal.value, range), range.end),
            ast::Value::Array(array) => (self.list(array, depth)?, range.start),
            ast::Value::Object(object) => (self.map(object, depth)?, range.start),
        };
        Ok(Node { value, span: self.line_index.span(range.start, end) })
    }

    fn number(&mut self, text: &str, range: jsonc_parser::common::Range) -> Value {
        if !scalar::is_finite(text) {
            let message = format!("the number {} is too large to be read", quoted(text));
            self.report.add(Finding::new(
                NUMBER_TOO_LARGE,
                self.line_index.span(range.start, range.end),
                message,
            ));
            return Value::Unread;
        }
        Value::Number(text.to_owned())
    }

    fn list(&mut self, array: ast::Array<'_>, depth: usize) -> Result<Value, Stop> {
        self.check_depth(depth, array.range.start)?;
        let items = array.elements.into_iter().map(|item| self.node(item, depth + 1));
        Ok(Value::List(items.collect::<Result<_, _>>()?))
    }

    fn map(&mut self, object: ast::Object<'_>, depth: usize) -> Result<Value, Stop> {
        self.check_depth(depth, object.range.start)?;
        let mut known = BTreeSet::new();
        let mut entries: Vec<Entry> = Vec::with_capacity(object.properties.len());
        for property in object.properties {
            let range = property.name.range();
            let span = self.line_index.span(range.start, range.end);
            let text = match property.name {
                ObjectPropName::String(name) => name.value.into_owned(),
                ObjectPropName::Word(name) => name.value.to_owned(),
            };
            let node = self.node(property.value, depth + 1)?;
            if known.insert(text.clone()) {
                entries.push((Key { text, span }, node));
            } else {
                self.report.add(duplicate(&text, span));
            }
        }
        Ok(Value::Map(entries))
    }

    fn check_depth(&mut self, depth: usize, start: usize) -> Result<(), Stop> {
        if depth <= DEPTH_MAX {
            return Ok(());
        }
        self.report.add(too_deep(self.line_index.span(start, start)));
        Err(Stop)
    }
}

/// The finding, with the same words for both syntaxes.
pub(super) fn duplicate(key: &str, span: Span) -> Finding {
    Finding::new(DUPLICATE_KEY, span, format!("the key {} appears twice in this map", quoted(key)))
}
