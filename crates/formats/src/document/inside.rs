//! Spans inside the texts of a document: the positions of a value's characters in the source.
//!
//! A value may be written with quotes, escapes, indentation and folded lines. All of these are white space or escapes: the
//! other characters are in the source in the same order. They are compared one by one; if a text does not match, its
//! parts get the span of the whole text.

use super::line_index::{LineIndex, number};
use super::read::BOM;
use super::{Node, Span};

/// The text of a document.
pub struct Source<'a> {
    text: &'a str,
    line_index: LineIndex<'a>,
}

/// How a value is written.
#[derive(Clone, Copy)]
enum Written {
    /// As it is: plain and in blocks.
    Plain,
    /// Between `'`, which is doubled inside.
    Single,
    /// Between `"`, with escapes.
    Double,
}

impl<'a> Source<'a> {
    /// The text that [`read`](super::read) reads.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        let text = std::str::from_utf8(bytes).unwrap_or_default();
        let text = text.strip_prefix(BOM).unwrap_or(text);
        Self { text, line_index: LineIndex::new(text) }
    }

    /// The spans of parts of a text, each given by its byte offset and length: exact if the part can be found in the source,
    /// else the span of the whole text. Parts that begin with white space are not found.
    #[must_use]
    pub fn inside(&self, node: &Node, parts: &[(usize, usize)]) -> Vec<Span> {
        let mut spans = vec![node.span; parts.len()];
        let Some((value, start)) = node.as_text().zip(self.line_index.offset(node.span)) else {
            return spans;
        };
        let mut order: Vec<usize> = (0..parts.len()).collect();
        order.sort_unstable_by_key(|at| parts[*at].0);
        let start = start + prefix(&self.text[start..]);
        let raw = &self.text[start..];
        let found = [Written::Plain, Written::Single, Written::Double]
            .into_iter()
            .find_map(|how| aligned(value, raw, how, parts, &order));
        for (span, at) in spans.iter_mut().zip(found.unwrap_or_default()) {
            let Some((at, width)) = at else { continue };
            let at_start = self.line_index.span(start + at, start + at);
            *span = Span { width: number(width.max(1)), ..at_start };
        }
        spans
    }
}

/// The length of a tag and an anchor before a text; no text begins with either.
fn prefix(raw: &str) -> usize {
    let mut at = 0;
    while raw[at..].starts_with(['!', '&']) {
        let rest = &raw[at..];
        let word = rest.find(is_space).unwrap_or(rest.len());
        let gap = rest[word..].find(|c| !is_space(c)).unwrap_or(0);
        at += word + gap;
    }
    at
}

/// The offset of each part in the source, and its width in characters; `None` if the value is not written in this style.
fn aligned(
    value: &str,
    raw: &str,
    how: Written,
    parts: &[(usize, usize)],
    order: &[usize],
) -> Option<Vec<Option<(usize, usize)>>> {
    let mut found = vec![None; parts.len()];
    let mut next = order.iter().peekable();
    let mut at = match how {
        Written::Plain => 0,
        Written::Single => raw.strip_prefix('\'').map(|_| 1)?,
        Written::Double => raw.strip_prefix('"').map(|_| 1)?,
    };
    for (offset, wanted) in value.char_indices() {
        if next.peek().is_none() {
            break;
        }
        if is_space(wanted) {
            continue;
        }
        let begins = loop {
            let (c, len) = character(&raw[at..], how)?;
            at += len;
            match c {
                Some(c) if c == wanted => break at - len,
                Some(c) if !is_space(c) => return None,
                Some(_) | None => {}
            }
        };
        while let Some(part) = next.next_if(|part| parts[**part].0 <= offset) {
            let (start, bytes) = parts[*part];
            let width = value.get(start..start + bytes).map_or(1, |text| text.chars().count());
            found[*part] = (start == offset).then_some((begins, width));
        }
    }
    Some(found)
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r')
}

/// The next character and its length in the source; no character for an escape that gives none.
fn character(raw: &str, how: Written) -> Option<(Option<char>, usize)> {
    let c = raw.chars().next()?;
    match (how, c) {
        (Written::Single, '\'') => raw.starts_with("''").then_some((Some('\''), 2)),
        (Written::Double, '"') => None,
        (Written::Double, '\\') => escape(&raw[1..]).map(|(c, len)| (c, len + 1)),
        (Written::Plain | Written::Single | Written::Double, _) => Some((Some(c), c.len_utf8())),
    }
}

/// The escape after a backslash, in JSON and in YAML.
fn escape(raw: &str) -> Option<(Option<char>, usize)> {
    let c = raw.chars().next()?;
    let hex = |digits: usize| u32::from_str_radix(raw.get(1..=digits)?, 16).ok();
    let digits = match c {
        'x' => 2,
        'u' => 4,
        'U' => 8,
        _ => 0,
    };
    if digits > 0 {
        let code = hex(digits)?;
        if let Some(c) = char::from_u32(code) {
            return Some((Some(c), digits + 1));
        }
        // The first half of a surrogate pair.
        let second = raw.get(digits + 1..)?.strip_prefix("\\u")?.get(..4)?;
        let second = u32::from_str_radix(second, 16).ok()?;
        let code = 0x1_0000 + (code.checked_sub(0xd800)? << 10) + second.checked_sub(0xdc00)?;
        return Some((Some(char::from_u32(code)?), digits + 7));
    }
    let meant = match c {
        'n' | 't' | 'r' | ' ' | '\t' | '\n' | '\r' => None,
        '0' => Some('\0'),
        'a' => Some('\u{7}'),
        'b' => Some('\u{8}'),
        'v' => Some('\u{b}'),
        'f' => Some('\u{c}'),
        'e' => Some('\u{1b}'),
        'N' => Some('\u{85}'),
        '_' => Some('\u{a0}'),
        'L' => Some('\u{2028}'),
        'P' => Some('\u{2029}'),
        other => Some(other),
    };
    Some((meant, c.len_utf8()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Report;
    use crate::document::{Syntax, read};

    /// The position of `needle` in the value of the key `k`.
    fn locate(source: &str, syntax: Syntax, needle: &str) -> (u32, u32, u32) {
        let mut report = Report::new("x");
        let root = read(source.as_bytes(), syntax, &mut report).unwrap();
        assert_eq!(report.finish(), []);
        let node = root.get("k").unwrap();
        let at = node.as_text().unwrap().find(needle).unwrap();
        let span = Source::new(source.as_bytes()).inside(node, &[(at, needle.len())])[0];
        (span.line, span.column, span.width)
    }

    #[test]
    fn a_part_is_found_in_every_way_of_writing_a_text() {
        for (source, at) in [
            ("k: é word\n", (1, 6, 4)),
            ("k: 'it''s a word'\n", (1, 13, 4)),
            ("k: \"a \\u00e9\\\"\\n word\"\n", (1, 18, 4)),
            ("a: 1\nk: |\n  first\n\n    word\n", (5, 5, 4)),
            ("k: >-\n  folded é\n  lines, word\n", (3, 10, 4)),
            ("k: |2-\n   x\n  \"word\n", (3, 4, 4)),
            ("k: \"quoted\n  over \\\n  lines word\"\n", (3, 9, 4)),
            ("k: plain\n  over lines\n\n  word\n", (4, 3, 4)),
            ("\u{feff}k: word\n", (1, 4, 4)),
            ("k: !!str word\n", (1, 10, 4)),
            ("k: &a \"word\"\n", (1, 8, 4)),
        ] {
            assert_eq!(locate(source, Syntax::Yaml, "word"), at, "{source}");
        }
        let json = "{\"a\": 1,\n \"k\": \"\\ud83d\\ude00 \\\"\\/ \\tword\"}";
        assert_eq!(locate(json, Syntax::Json, "word"), (2, 28, 4));
    }

    #[test]
    fn several_parts_are_found_in_any_order() {
        let source = "k: one two three\n";
        let mut report = Report::new("x");
        let root = read(source.as_bytes(), Syntax::Yaml, &mut report).unwrap();
        let node = root.get("k").unwrap();
        let spans = Source::new(source.as_bytes()).inside(node, &[(8, 5), (0, 3), (4, 3), (3, 1)]);
        let columns: Vec<(u32, u32)> = spans.iter().map(|span| (span.column, span.width)).collect();
        assert_eq!(
            columns,
            [(12, 5), (4, 3), (8, 3), (4, 13)],
            "white space gets the span of the whole text"
        );
    }

    #[test]
    fn a_text_of_another_source_has_the_span_of_its_node() {
        let node = Node {
            value: super::super::Value::String("word".into()),
            span: Span { line: 9, column: 9, width: 4 },
        };
        assert_eq!(Source::new(b"k: other\n").inside(&node, &[(0, 4)]), [node.span]);
    }
}
