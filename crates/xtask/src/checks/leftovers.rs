//! Nothing is left half done.

use crate::finding::Finding;
use crate::scan;
use crate::tree::Tree;

const RULE: &str = "unfinished";
const MACROS: &[&str] = &["todo ! (", "unimplemented ! (", "dbg ! ("];
/// Written in two parts, so that a search of this tree for them does not find this line.
const MARKS: &[&str] = &[concat!("FIX", "ME"), concat!("XX", "X")];

/// Looks for unfinished code in every Rust source, and for marks also in its comments.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in &tree.sources {
        for row in MACROS {
            let message =
                format!("`{}` must not stay in the tree", row.replace(' ', "").trim_end_matches('('));
            let lines = scan::lines_of(source, row);
            findings.extend(lines.map(|line| Finding::new(&source.path, line, RULE, message.clone())));
        }
    }
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
    fn what_is_unfinished_is_reported_where_it_stands() {
        let text = [
            "fn a() {\n    to",
            "do!()\n}\n// FIX",
            "ME: later\nfn b() {\n    unimple",
            "mented!(\"c\")\n}\n",
        ];
        let found = check(&Tree::of(&[("crates/x/src/lib.rs", &text.concat())]));
        let mut lines: Vec<usize> = found.iter().map(|finding| finding.line).collect();
        lines.sort_unstable();
        assert_eq!(lines, [2, 4, 6]);
    }

    #[test]
    fn a_longer_word_is_not_a_mark() {
        let text = ["// a XX", "XL shirt\n"].concat();
        assert_eq!(check(&Tree::of(&[("crates/x/src/lib.rs", &text)])), []);
    }
}
