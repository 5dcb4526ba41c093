//! The text after the help of a command, in parts: for the man pages and `docs/cli.md`.

/// A part of the text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// A paragraph, on one line.
    Prose(String),
    /// Indented lines, without their indent: examples, or a form of output.
    Block(Vec<String>),
}

/// Splits the text. Indented lines are a block, and a block ends at an empty line.
pub(super) fn parts(text: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(first) = lines.next() {
        if first.is_empty() {
            continue;
        }
        let indented = first.starts_with("  ");
        let mut all = vec![first];
        while let Some(line) = lines.next_if(|line| !line.is_empty() && line.starts_with("  ") == indented) {
            all.push(line);
        }
        parts.push(if indented {
            Part::Block(all.iter().map(|line| line.strip_prefix("  ").unwrap_or(line).to_owned()).collect())
        } else {
            Part::Prose(all.join(" "))
        });
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_and_blocks_are_split() {
        let prose = |text: &str| Part::Prose(text.to_owned());
        let block = |lines: &[&str]| Part::Block(lines.iter().map(|line| (*line).to_owned()).collect());
        assert_eq!(
            parts("Examples:\n  a\n    b\n\nTwo\nlines:\n  {}"),
            [prose("Examples:"), block(&["a", "  b"]), prose("Two lines:"), block(&["{}"])]
        );
        assert_eq!(parts(""), []);
    }
}
