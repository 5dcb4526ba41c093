//! Converts byte offsets to lines and columns.

use super::Span;

/// The character count is stored once per this many bytes, so that a column costs the same on a line of any length.
const STRIDE: usize = 64;

/// An index of a text's lines and characters.
pub(super) struct LineIndex<'a> {
    text: &'a str,
    line_starts: Vec<usize>,
    /// Characters that begin before each multiple of [`STRIDE`].
    chars_before: Vec<usize>,
    /// The bytes before the line breaks at the text's end.
    content_end: usize,
}

impl<'a> LineIndex<'a> {
    /// Reads the text once.
    pub(super) fn new(text: &'a str) -> Self {
        let bytes = text.as_bytes();
        let mut line_starts = vec![0];
        let mut chars_before = Vec::with_capacity(bytes.len() / STRIDE + 1);
        let mut chars = 0;
        for (at, byte) in bytes.iter().enumerate() {
            if at % STRIDE == 0 {
                chars_before.push(chars);
            }
            chars += usize::from(begins_char(*byte));
            let before_feed = bytes.get(at + 1) == Some(&b'\n');
            if *byte == b'\n' || (*byte == b'\r' && !before_feed) {
                line_starts.push(at + 1);
            }
        }
        if bytes.len().is_multiple_of(STRIDE) {
            chars_before.push(chars);
        }
        let content_end = text.trim_end_matches(['\n', '\r']).len();
        Self { text, line_starts, chars_before, content_end }
    }

    /// The span of the bytes `start..end`.
    pub(super) fn span(&self, start: usize, end: usize) -> Span {
        let start = start.min(self.text.len());
        let line = self.line_starts.partition_point(|first| *first <= start).saturating_sub(1);
        let end = end.clamp(start, self.line_end(line).max(start));
        let first = self.chars_to(start);
        Span {
            line: number(line + 1),
            column: number(first - self.chars_to(self.line_starts[line]) + 1),
            width: number((self.chars_to(end) - first).max(1)),
        }
    }

    /// The byte offset of a span; `None` if the text has no such line.
    pub(super) fn offset(&self, span: Span) -> Option<usize> {
        let line = usize::try_from(span.line).ok()?.checked_sub(1)?;
        let start = *self.line_starts.get(line)?;
        let chars = self.chars_to(start) + usize::try_from(span.column).ok()?.checked_sub(1)?;
        let block = self.chars_before.partition_point(|before| *before <= chars).checked_sub(1)?;
        let mut at = block * STRIDE;
        let mut left = chars - self.chars_before[block];
        let bytes = self.text.as_bytes();
        while at < bytes.len() && (left > 0 || !begins_char(bytes[at])) {
            left = left.saturating_sub(usize::from(begins_char(bytes[at])));
            at += 1;
        }
        Some(at)
    }

    /// The same span, or the end of the text if it is beyond that.
    pub(super) fn within(&self, span: Span) -> Span {
        // A text that ends with a line break has an empty last line; report missing input right after the text instead.
        let end = self.span(self.content_end, self.content_end);
        if span.line <= end.line { span } else { end }
    }

    fn line_end(&self, line: usize) -> usize {
        let next = self.line_starts.get(line + 1).copied().unwrap_or(self.text.len());
        self.text[..next].trim_end_matches(['\n', '\r']).len()
    }

    fn chars_to(&self, offset: usize) -> usize {
        let block = offset / STRIDE;
        let rest = &self.text.as_bytes()[block * STRIDE..offset];
        self.chars_before[block] + rest.iter().filter(|byte| begins_char(**byte)).count()
    }
}

fn begins_char(byte: u8) -> bool {
    byte & 0xc0 != 0x80
}

/// Sources are far shorter than the largest line number.
pub(super) fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str, needle: &str) -> (u32, u32, u32) {
        let start = text.find(needle).unwrap();
        let span = LineIndex::new(text).span(start, start + needle.len());
        (span.line, span.column, span.width)
    }

    #[test]
    fn columns_count_characters_and_every_line_end_counts_once() {
        let text = "a\r\nbé→c d\rx\n\nlast";
        assert_eq!(at(text, "a"), (1, 1, 1));
        assert_eq!(at(text, "c d"), (2, 4, 3));
        assert_eq!(at(text, "x"), (3, 1, 1));
        assert_eq!(at(text, "last"), (5, 1, 4));
    }

    #[test]
    fn long_lines_are_counted_right_across_strides() {
        for fill in 0..200 {
            let text = format!("{}x{}", "é".repeat(fill), "→".repeat(70));
            assert_eq!(at(&text, "x"), (1, number(fill) + 1, 1));
            let line_index = LineIndex::new(&text);
            for (begins, _) in text.char_indices() {
                assert_eq!(line_index.offset(line_index.span(begins, begins)), Some(begins), "{fill}");
            }
        }
    }

    #[test]
    fn a_span_beyond_the_text_is_its_end() {
        let line_index = LineIndex::new("ab\n");
        let beyond = Span { line: 3, column: 1, width: 1 };
        assert_eq!(line_index.within(beyond), Span { line: 1, column: 3, width: 1 });
        assert_eq!(line_index.span(900, 901), Span { line: 2, column: 1, width: 1 });
        assert_eq!(LineIndex::new("").span(0, 0), Span::START);
    }
}
