//! The sentence tables: the rules of a format, each in a sentence, and the scenarios that fail without them.
//!
//! `tests/corpus/<format>/sentences.tsv` has a row for every behaviour sentence and names its scenarios, relative to
//! the table's folder. A row without its file is refused, and so is a scenario or a bad definition without a row.

use std::collections::{BTreeMap, BTreeSet};

use crate::finding::Finding;
use crate::tree::{Tree, inner_path};

const RULE: &str = "sentences";
const CORPUS: &str = "tests/corpus";
const HEADER: &str = "id\tsource\tsentence\tscenario";
const COLUMNS: usize = 4;
/// Folders of a format whose cases must each have a row.
const CASE_FOLDERS: &[&str] = &["scenarios", "invalid"];
const CASE_ENDINGS: &[&str] = &[".yaml", ".json"];

/// Checks the table of every format that has a folder in the corpus.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for format in tree.folders_in(CORPUS) {
        let folder = format!("{CORPUS}/{format}");
        let path = format!("{folder}/sentences.tsv");
        match tree.text(&path) {
            Some(text) => Table { tree, folder: &folder, path: &path }.check(text, &mut findings),
            None => {
                findings.push(Finding::new(&path, 1, RULE, format!("{format} has no table of its sentences")))
            }
        }
    }
    findings
}

struct Table<'a> {
    tree: &'a Tree,
    folder: &'a str,
    path: &'a str,
}

impl Table<'_> {
    fn check(&self, text: &str, findings: &mut Vec<Finding>) {
        if text.lines().next() != Some(HEADER) {
            findings.push(self.at(1, format!("the first line must be `{}`", HEADER.replace('\t', "<TAB>"))));
        }
        let mut ids = BTreeMap::new();
        let mut named = BTreeSet::new();
        for (line, row) in
            text.split_terminator('\n').enumerate().skip(1).map(|(index, row)| (index + 1, row))
        {
            let cells: Vec<&str> = row.split('\t').collect();
            let &[id, _, _, scenarios] = cells.as_slice() else {
                findings.push(self.at(line, format!("{} columns, {COLUMNS} are expected", cells.len())));
                continue;
            };
            let empty = HEADER.split('\t').zip(&cells).filter(|(_, cell)| cell.trim().is_empty());
            findings.extend(empty.map(|(column, _)| self.at(line, format!("`{column}` is empty"))));
            if let Some(first) = ids.insert(id, line) {
                findings.push(self.at(line, format!("id `{id}` is also in line {first}")));
            }
            for scenario in scenarios.split_whitespace() {
                if self.tree.text(&format!("{}/{scenario}", self.folder)).is_none() {
                    findings.push(self.at(line, format!("there is no file `{scenario}`")));
                }
                named.insert(scenario);
            }
        }
        let unnamed = self.cases().filter(|case| !named.contains(case));
        findings.extend(unnamed.map(|case| {
            let message = format!("no row of {} names it", self.path);
            Finding::new(&format!("{}/{case}", self.folder), 1, RULE, message)
        }));
    }

    /// Every scenario and bad definition of the format, relative to its folder.
    fn cases(&self) -> impl Iterator<Item = &str> {
        let inner = self.tree.below(self.folder).filter_map(|path| inner_path(path, self.folder));
        inner.filter(|path| {
            CASE_FOLDERS.iter().any(|folder| inner_path(path, folder).is_some())
                && CASE_ENDINGS.iter().any(|ending| path.ends_with(ending))
        })
    }

    fn at(&self, line: usize, message: String) -> Finding {
        Finding::new(self.path, line, RULE, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCENARIO: (&str, &str) = ("tests/corpus/checkpoint/scenarios/a.yaml", "");
    const INVALID: (&str, &str) = ("tests/corpus/checkpoint/invalid/b/c.json", "");
    const DEFINITION: (&str, &str) = ("tests/corpus/checkpoint/definitions/d.json", "");

    fn findings(table: Option<&str>) -> Vec<String> {
        let mut files = vec![SCENARIO, INVALID, DEFINITION];
        files.extend(table.map(|text| ("tests/corpus/checkpoint/sentences.tsv", text)));
        check(&Tree::of(&files)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_full_table_is_fine() {
        let table = format!(
            "{HEADER}\n1\tActions\tBlock ends it.\tscenarios/a.yaml\n2\tNames\tLower case.\tinvalid/b/c.json scenarios/a.yaml\n"
        );
        assert_eq!(findings(Some(&table)), Vec::<String>::new());
    }

    #[test]
    fn a_format_without_a_table_is_reported() {
        let expected =
            "tests/corpus/checkpoint/sentences.tsv:1: sentences: checkpoint has no table of its sentences";
        assert_eq!(findings(None), [expected]);
    }

    #[test]
    fn a_row_without_a_file_and_a_file_without_a_row_are_reported() {
        let table = format!("{HEADER}\n1\tActions\tBlock ends it.\tscenarios/a.yaml scenarios/gone.yaml\n");
        assert_eq!(
            findings(Some(&table)),
            [
                "tests/corpus/checkpoint/sentences.tsv:2: sentences: there is no file `scenarios/gone.yaml`",
                "tests/corpus/checkpoint/invalid/b/c.json:1: sentences: no row of tests/corpus/checkpoint/sentences.tsv names it",
            ]
        );
    }

    #[test]
    fn bad_rows_are_reported_at_their_lines() {
        let table = "id\tsource\tsentence\n1\tActions\t \tscenarios/a.yaml\n1\tActions\tx\tinvalid/b/c.json\n\n2\tx\ty\n";
        let path = "tests/corpus/checkpoint/sentences.tsv";
        assert_eq!(
            findings(Some(table)),
            [
                format!(
                    "{path}:1: sentences: the first line must be `id<TAB>source<TAB>sentence<TAB>scenario`"
                ),
                format!("{path}:2: sentences: `sentence` is empty"),
                format!("{path}:3: sentences: id `1` is also in line 2"),
                format!("{path}:4: sentences: 1 columns, 4 are expected"),
                format!("{path}:5: sentences: 3 columns, 4 are expected"),
            ]
        );
    }
}
