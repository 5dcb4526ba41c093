//! YAML: the events of `saphyr-parser`, one at a time, built into a tree.
//!
//! The parser bounds neither depth nor size nor aliases; [`Build`] does, while the events come in.

use std::collections::BTreeSet;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span as Marks, Tag};

use super::aliases::Aliases;
use super::json::duplicate;
use super::line_index::{LineIndex, number};
use super::tags::{bad_tag, is_text_tag, resolve};
use super::{Entry, Key, Node, Span, Value};
use crate::codes::{
    ALIAS, CONTROL_CHARACTER, EMPTY_DOCUMENT, KEY_NOT_TEXT, SEVERAL_DOCUMENTS, TOO_DEEP, TOO_MANY_NODES,
    UNKNOWN_KEY, YAML_SYNTAX,
};
use crate::limits::{DEPTH_MAX, FINDINGS_MAX, NODES_MAX, YAML_INDICATORS_MAX};
use crate::quote::shown;
use crate::{Finding, Report};

const INDICATORS: &[u8] = b",:[]{}?-&*!";

pub(super) fn read(text: &str, line_index: &LineIndex<'_>, report: &mut Report) -> Option<Node> {
    check_characters(text, line_index, report);
    if text.bytes().filter(|byte| INDICATORS.contains(byte)).count() > YAML_INDICATORS_MAX {
        let message =
            format!("the file holds more than {YAML_INDICATORS_MAX} characters that separate values");
        report.add(Finding::new(TOO_MANY_NODES, Span::START, message));
        return None;
    }
    let mut build = Build {
        line_index,
        report,
        open: Vec::new(),
        root: None,
        documents: 0,
        nodes: 0,
        aliases: Aliases::default(),
    };
    for event in Parser::new_from_str(text) {
        let taken = match event {
            Ok((event, marks)) => build.take(event, &marks),
            Err(error) => build.refuse(&error),
        };
        if let Err(Stop) = taken {
            return build.root;
        }
    }
    if build.root.is_none() {
        build.report.add(Finding::new(EMPTY_DOCUMENT, Span::START, "the file holds no YAML document"));
    }
    build.root
}

/// YAML 1.2.2 §5.1: characters that are not allowed in a YAML text at all.
fn check_characters(text: &str, line_index: &LineIndex<'_>, report: &mut Report) {
    let refused =
        |c: char| (c.is_control() && !"\t\n\r\u{85}".contains(c)) || matches!(c, '\u{fffe}' | '\u{ffff}');
    for (at, c) in text.char_indices().filter(|(_, c)| refused(*c)).take(FINDINGS_MAX) {
        let message = format!("the character U+{:04X} is not allowed in YAML", u32::from(c));
        report.add(Finding::new(CONTROL_CHARACTER, line_index.span(at, at + c.len_utf8()), message));
    }
}

fn too_many(span: Span) -> Finding {
    Finding::new(TOO_MANY_NODES, span, format!("the document holds more than {NODES_MAX} values"))
}

/// Reading stopped; the finding is reported.
struct Stop;

/// A list or map whose end has not come yet.
struct Open {
    span: Span,
    anchor: usize,
    body: Body,
}

enum Body {
    List(Vec<Node>),
    Map { entries: Vec<Entry>, known: BTreeSet<String>, next: Next },
}

/// What a map expects next.
enum Next {
    Key,
    ValueOf(Key),
    /// The value of a key that was refused.
    Refused,
}

struct Build<'a, 'b> {
    line_index: &'a LineIndex<'b>,
    report: &'a mut Report,
    open: Vec<Open>,
    root: Option<Node>,
    documents: usize,
    nodes: usize,
    aliases: Aliases,
}

impl Build<'_, '_> {
    /// Handles an event.
    fn take(&mut self, event: Event<'_>, marks: &Marks) -> Result<(), Stop> {
        match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
            Event::DocumentStart(_) => self.document(marks),
            Event::Alias(anchor) => self.alias(anchor, marks),
            Event::Scalar(text, style, anchor, tag) => {
                self.scalar(&text, style, anchor, tag.as_deref(), marks)
            }
            Event::SequenceStart(anchor, tag) => {
                self.begin(Body::List(Vec::new()), "seq", anchor, tag.as_deref(), marks)
            }
            Event::MappingStart(anchor, tag) => {
                let body = Body::Map { entries: Vec::new(), known: BTreeSet::new(), next: Next::Key };
                self.begin(body, "map", anchor, tag.as_deref(), marks)
            }
            Event::SequenceEnd | Event::MappingEnd => {
                self.end();
                Ok(())
            }
        }
    }

    fn document(&mut self, marks: &Marks) -> Result<(), Stop> {
        self.documents += 1;
        if self.documents == 1 {
            return Ok(());
        }
        self.stop(Finding::new(SEVERAL_DOCUMENTS, self.span(marks), "a second YAML document begins here"))
    }

    fn begin(
        &mut self,
        body: Body,
        core: &str,
        anchor: usize,
        tag: Option<&Tag>,
        marks: &Marks,
    ) -> Result<(), Stop> {
        let span = Span { width: 1, ..self.span(marks) };
        if self.open.len() == DEPTH_MAX {
            let message = format!("lists and maps are nested more than {DEPTH_MAX} deep here");
            return self.stop(Finding::new(TOO_DEEP, span, message));
        }
        self.count(1, span)?;
        if let Some(tag) = tag.filter(|tag| !(tag.is_yaml_core_schema() && tag.suffix == core)) {
            self.report.add(bad_tag(tag, span));
        }
        self.open.push(Open { span, anchor, body });
        Ok(())
    }

    fn end(&mut self) {
        // The parser gives one end for each begin.
        let Some(open) = self.open.pop() else { return };
        let value = match open.body {
            Body::List(items) => Value::List(items),
            Body::Map { entries, .. } => Value::Map(entries),
        };
        self.attach(Node { value, span: open.span }, open.anchor);
    }

    fn scalar(
        &mut self,
        text: &str,
        style: ScalarStyle,
        anchor: usize,
        tag: Option<&Tag>,
        marks: &Marks,
    ) -> Result<(), Stop> {
        let span = self.span(marks);
        if let Some(Open { body: Body::Map { next: Next::Key, .. }, .. }) = self.open.last() {
            if let Some(tag) = tag.filter(|tag| !is_text_tag(tag)) {
                self.report.add(bad_tag(tag, span));
            }
            self.key(text, style, span);
            return Ok(());
        }
        self.count(1, span)?;
        let value = resolve(text, style, tag, span).unwrap_or_else(|finding| {
            self.report.add(*finding);
            Value::Unread
        });
        self.attach(Node { value, span }, anchor);
        Ok(())
    }

    fn key(&mut self, text: &str, style: ScalarStyle, span: Span) {
        let Some(Open { body: Body::Map { known, next, .. }, .. }) = self.open.last_mut() else { return };
        if style == ScalarStyle::Plain && text == "<<" {
            *next = Next::Refused;
            let finding = Finding::new(UNKNOWN_KEY, span, "merge keys (`<<`) are not supported");
            self.report.add(finding.hint("write the merged entries out"));
        } else if known.insert(text.to_owned()) {
            *next = Next::ValueOf(Key { text: text.to_owned(), span });
        } else {
            *next = Next::Refused;
            self.report.add(duplicate(text, span));
        }
    }

    fn alias(&mut self, anchor: usize, marks: &Marks) -> Result<(), Stop> {
        let span = self.span(marks);
        let node = match self.aliases.resolve(anchor, self.open.len()) {
            Ok((node, nodes)) => {
                self.count(nodes, span)?;
                Some(node)
            }
            Err(refused) => {
                if let Some(message) = refused {
                    self.report.add(Finding::new(ALIAS, span, message));
                }
                None
            }
        };
        self.attach(node.unwrap_or(Node { value: Value::Unread, span }), 0);
        Ok(())
    }

    /// Puts a finished value into its parent.
    fn attach(&mut self, node: Node, anchor: usize) {
        if anchor > 0 {
            self.aliases.keep(anchor, &node);
        }
        match self.open.last_mut() {
            None => self.root = Some(node),
            Some(Open { body: Body::List(items), .. }) => items.push(node),
            Some(Open { body: Body::Map { entries, next, .. }, .. }) => {
                match std::mem::replace(next, Next::Key) {
                    Next::ValueOf(key) => entries.push((key, node)),
                    Next::Refused => {}
                    Next::Key => {
                        *next = Next::Refused;
                        let message = format!("a key must be a text, and this one is {}", node.value.kind());
                        self.report.add(Finding::new(KEY_NOT_TEXT, node.span, message));
                    }
                }
            }
        }
    }

    fn count(&mut self, more: usize, span: Span) -> Result<(), Stop> {
        self.nodes += more;
        if self.nodes > NODES_MAX { self.stop(too_many(span)) } else { Ok(()) }
    }

    fn stop(&mut self, finding: Finding) -> Result<(), Stop> {
        self.report.add(finding);
        Err(Stop)
    }

    fn refuse(&mut self, error: &ScanError) -> Result<(), Stop> {
        let mark = error.marker();
        let span = Span { line: number(mark.line()), column: number(mark.col() + 1), width: 1 };
        let info: String = error.info().chars().map(shown).collect();
        let span = self.line_index.within(span);
        self.stop(Finding::new(YAML_SYNTAX, span, format!("this is not YAML: {info}")))
    }

    fn span(&self, marks: &Marks) -> Span {
        let width = if marks.start.line() == marks.end.line() {
            marks.end.col().saturating_sub(marks.start.col())
        } else {
            1
        };
        self.line_index.within(Span {
            line: number(marks.start.line()),
            column: number(marks.start.col() + 1),
            width: number(width.max(1)),
        })
    }
}
