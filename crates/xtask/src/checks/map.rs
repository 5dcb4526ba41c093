//! `crates/README.md` is the map: it has a row for every crate, and none for a crate that is gone.

use std::collections::BTreeSet;

use crate::finding::Finding;
use crate::tree::{Tree, line_where};

const RULE: &str = "map";
const MAP: &str = "crates/README.md";

/// Compares the first table of the map with the folders.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let folders: BTreeSet<&str> = tree.folders_in("crates");
    let Some(text) = tree.text(MAP) else {
        return vec![Finding::new(MAP, 1, RULE, "the file is missing")];
    };
    let rows: BTreeSet<&str> = first_table(text).filter_map(crate_of_row).collect();
    let missing =
        folders.difference(&rows).map(|folder| Finding::new(MAP, 1, RULE, format!("no row for `{folder}`")));
    let gone = rows.difference(&folders).map(|name| {
        let line = line_where(text, |line| crate_of_row(line) == Some(name));
        Finding::new(MAP, line, RULE, format!("there is no crate `{name}`"))
    });
    missing.chain(gone).collect()
}

fn first_table(text: &str) -> impl Iterator<Item = &str> {
    text.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'))
}

/// The crate of a row that starts with its name in backticks.
fn crate_of_row(line: &str) -> Option<&str> {
    line.strip_prefix("| `")?.split_once('`').map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_map_and_the_folders_agree_or_are_reported() {
        let map = "# Map\n\n| Crate | What |\n|---|---|\n| `a` | x |\n| `c` | y |\n\n| To add | Touch |\n| `d` | z |\n";
        let found = check(&Tree::of(&[(MAP, map), ("crates/a/Cargo.toml", ""), ("crates/b/Cargo.toml", "")]));
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            ["crates/README.md:1: map: no row for `b`", "crates/README.md:6: map: there is no crate `c`"]
        );
    }
}
