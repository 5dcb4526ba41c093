//! Nothing is left half done. Clippy refuses the macros for unfinished code; this check looks for marks in comments.

use crate::finding::Finding;
use crate::tree::Tree;

const RULE: &str = "unfinished";
/// Written in two parts, so that a search of this tree for them does not find this line.
const MARKS: &[&str] = &[concat!("FIX", "ME"), concat!("XX", "X")];

/// Looks for marks in every Rust source.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.files().filter(|(path, _)| path.ends_with(".rs")) {
        for (index, line) in text.lines().enumerate() {
            if let Some(mark) = MARKS.iter().find(|mark| holds_word(line, mark)) {
                findings.push(Finding::new(
                    path,
                    index + 1,
                    RULE,
                    format!("`{mark}`: do it now, or describe the limitation"),
                ));
            }
        }
    }
    findings
}

/// Returns true if a line holds a word that is not part of a longer one.
fn holds_word(line: &str, word: &str) -> bool {
    let is_part = |character: char| character.is_alphanumeric() || character == '_';
    line.match_indices(word).any(|(start, _)| {
        let (before, after) = (&line[..start], &line[start + word.len()..]);
        !before.ends_with(is_part) && !after.starts_with(is_part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_reported_at_its_line() {
        let text = ["fn a() {}\n// FIX", "ME: later\nfn b() {}\n/// XX", "X\nfn c() {}\n"];
        let found = check(&Tree::of(&[("crates/x/src/lib.rs", &text.concat())]));
        assert_eq!(found.iter().map(|finding| finding.line).collect::<Vec<_>>(), [2, 4]);
    }

    #[test]
    fn a_longer_word_is_not_a_mark() {
        let text = ["// a XX", "XL shirt\n"].concat();
        assert_eq!(check(&Tree::of(&[("crates/x/src/lib.rs", &text)])), []);
    }
}
