//! Whether tags are small enough to be parsed.

use crate::limits::{HTML_ATTRIBUTES_MAX, HTML_TAG_SCAN_MAX};

/// Returns true if no tag has more than [`HTML_ATTRIBUTES_MAX`] attributes.
///
/// The parser compares every attribute with all others of its tag, which takes too long if there are many. Whether a `<`
/// begins a tag is known only to the parser, so this looks at everything that could be one.
pub(super) fn are_small(html: &str) -> bool {
    let bytes = html.as_bytes();
    let mut bytes_left = bytes.len().saturating_mul(HTML_TAG_SCAN_MAX);
    for (at, _) in html.match_indices('<') {
        let tag = &bytes[at + 1..];
        let tag = tag.strip_prefix(b"/").unwrap_or(tag);
        if !tag.first().is_some_and(u8::is_ascii_alphabetic) {
            continue;
        }
        match length(tag).and_then(|length| bytes_left.checked_sub(length)) {
            Some(left) => bytes_left = left,
            None => return false,
        }
    }
    true
}

/// The length of a tag from its name to its end in bytes; `None` if it has too many attributes.
fn length(tag: &[u8]) -> Option<usize> {
    let mut at = until(tag, 0, |byte| is_space(byte) || byte == b'/' || byte == b'>');
    for _ in 0..=HTML_ATTRIBUTES_MAX {
        at = until(tag, at, |byte| !is_space(byte) && byte != b'/');
        if tag.get(at).is_none_or(|byte| *byte == b'>') {
            return Some(at);
        }
        at = until(tag, at + 1, |byte| is_space(byte) || b"/>=".contains(&byte));
        let sign = until(tag, at, |byte| !is_space(byte));
        if tag.get(sign) == Some(&b'=') {
            at = until(tag, sign + 1, |byte| !is_space(byte));
            at = match tag.get(at) {
                Some(quote @ (b'"' | b'\'')) => until(tag, at + 1, |byte| byte == *quote) + 1,
                Some(_) | None => until(tag, at, |byte| is_space(byte) || byte == b'>'),
            };
        }
    }
    None
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b'\x0c')
}

/// The index of the first matching byte at or after `from`, or the end.
fn until(bytes: &[u8], from: usize, wanted: impl Fn(u8) -> bool) -> usize {
    let behind = bytes.get(from..).unwrap_or_default();
    behind.iter().position(|byte| wanted(*byte)).map_or(bytes.len(), |at| from + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_counted_as_the_parser_counts_them() {
        let many = |attribute: &str, count: usize| format!("<a {}>", attribute.repeat(count));
        for attribute in ["b ", "b=c ", "b='>'", "b=\"c\"", "b/", "'b ", "b = c ", "b =\n'>' "] {
            assert!(are_small(&many(attribute, HTML_ATTRIBUTES_MAX)), "{attribute}");
            assert!(!are_small(&many(attribute, HTML_ATTRIBUTES_MAX + 1)), "{attribute}");
        }
    }

    #[test]
    fn many_small_tags_are_small_and_tags_in_tags_are_not() {
        assert!(are_small(&"<p class=a style='b:c'>text</p>\n".repeat(10_000)));
        assert!(are_small("1 < 2, <3 <> </> < a a a"));
        assert!(!are_small(&"<a".repeat(10_000)));
        assert!(!are_small(&"<p style=\"".repeat(10_000)));
    }
}
