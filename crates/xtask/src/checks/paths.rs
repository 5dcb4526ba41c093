//! The paths that `crates/README.md` names exist, the functions that it names are in them, and its journeys are true.
//!
//! A path is `crate/src/...` or `crate/tests/...` in backticks, without `crates/`, or one below `docs`, `proto` or `tests`.
//! `<kind>` stands for any name, so one file or folder must fit; `<aggregate>` stands for each aggregate that the page
//! lists, and `{a,b}` for both. `path.rs::name` names a function of the file.

mod journeys;

use crate::finding::Finding;
use crate::scan;
use crate::tree::Tree;

const RULE: &str = "paths";
const MAP: &str = "crates/README.md";
/// The folders of a crate whose paths are checked.
const FOLDERS: [&str; 2] = ["src", "tests"];
/// The folders beside the crates whose paths are checked.
const OUTSIDE: [&str; 3] = ["docs", "proto", "tests"];
/// Stands for the name of each aggregate.
const AGGREGATE: &str = "<aggregate>";
/// What is before the names of the aggregates on the page; a space separates them.
const AGGREGATES: &str = "one folder for each aggregate: `";

/// Looks for each path of the map, and for the function behind it, and follows its journeys.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let map = tree.text(MAP).unwrap_or_default();
    let aggregates = aggregates(map);
    let mut findings = journeys::check(tree, map);
    for (index, line) in map.lines().enumerate() {
        // Of a line that is split at its backticks, every second part is code.
        for name in line.split('`').skip(1).step_by(2).filter(|code| is_path(code) || is_outside(code)) {
            let (path, function) = name.split_once("::").map_or((name, None), |(path, it)| (path, Some(it)));
            for path in alternatives(&path.replace(AGGREGATE, &aggregates)) {
                let message = match function {
                    None if named(tree, &path).next().is_some() => continue,
                    None => format!("there is no `{path}`"),
                    Some(function) if has_function(tree, &path, function) => continue,
                    Some(function) => format!("there is no function `{function}` in `{path}`"),
                };
                findings.push(Finding::new(MAP, index + 1, RULE, message));
            }
        }
    }
    findings
}

/// The aggregates that the page lists, as alternatives; [`AGGREGATE`] itself if it lists none.
fn aggregates(map: &str) -> String {
    let listed = map.split_once(AGGREGATES).and_then(|(_, rest)| rest.split_once('`'));
    listed.map_or_else(|| AGGREGATE.to_owned(), |(names, _)| format!("{{{}}}", names.replace(' ', ",")))
}

/// Returns true if code is the path of a file or a folder of a crate.
fn is_path(code: &str) -> bool {
    let mut names = code.split('/');
    let of_crate = names.next().is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_lowercase()));
    of_crate && names.next().is_some_and(|name| FOLDERS.contains(&name)) && !code.contains(' ')
}

/// Returns true if code is the path of a file or a folder beside the crates. `page.md#heading` is none.
fn is_outside(code: &str) -> bool {
    let below = code.split_once('/').filter(|(folder, _)| OUTSIDE.contains(folder));
    below.is_some_and(|(_, path)| !path.is_empty()) && !code.contains([' ', '#'])
}

/// A path for each name in its braces; nested braces are not supported.
fn alternatives(path: &str) -> Vec<String> {
    let Some((before, rest)) = path.split_once('{') else { return vec![path.to_owned()] };
    let Some((names, after)) = rest.split_once('}') else { return vec![path.to_owned()] };
    names.split(',').flat_map(|name| alternatives(&format!("{before}{name}{after}"))).collect()
}

/// The files that a path names, or that are below the folder that it names.
fn named<'a>(tree: &'a Tree, path: &'a str) -> impl Iterator<Item = &'a str> {
    let wanted: Vec<&str> = path.trim_end_matches('/').split('/').collect();
    let (folder, above) = wanted.first().filter(|_| is_outside(path)).map_or(("crates", 1), |it| (*it, 0));
    tree.below(folder).filter(move |file| {
        let names: Vec<&str> = file.split('/').skip(above).collect();
        names.len() >= wanted.len() && wanted.iter().zip(&names).all(|(wanted, name)| fits(wanted, name))
    })
}

/// Returns true if a name is the wanted one, in which `<kind>` stands for at least one character.
fn fits(wanted: &str, name: &str) -> bool {
    let Some((before, rest)) = wanted.split_once('<') else { return wanted == name };
    let (Some(name), Some((_, after))) = (name.strip_prefix(before), rest.split_once('>')) else {
        return false;
    };
    name.char_indices().skip(1).any(|(at, _)| fits(after, &name[at..]))
        || (after.is_empty() && !name.is_empty())
}

fn has_function(tree: &Tree, path: &str, function: &str) -> bool {
    let files: Vec<&str> = named(tree, path).collect();
    let row = format!("fn {function}");
    let mut sources = tree.sources.iter().filter(|source| files.contains(&source.path.as_str()));
    sources.any(|source| scan::find(&source.tokens, &row).next().is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(map: &str) -> Vec<String> {
        let tree = Tree::of(&[
            (MAP, map),
            ("crates/a/src/one.rs", "fn begin() {}\n// fn gone() {}\n"),
            ("crates/a/src/kinds/wait.rs", ""),
            ("crates/a/tests/golden/row.v1.hex", ""),
            ("docs/page.md", ""),
            ("tests/corpus/one/good.yaml", ""),
        ]);
        check(&tree).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_wrong_path_and_a_wrong_function_are_reported() {
        assert_eq!(
            findings("# Map\n\nSee `a/src/two.rs`.\n\n- `a/src/one.rs::gone`, `a/src/gone.rs::begin`\n"),
            [
                "crates/README.md:3: paths: there is no `a/src/two.rs`",
                "crates/README.md:5: paths: there is no function `gone` in `a/src/one.rs`",
                "crates/README.md:5: paths: there is no function `begin` in `a/src/gone.rs`",
            ]
        );
    }

    #[test]
    fn each_aggregate_that_is_listed_has_what_is_said_of_all() {
        let one = "`a/src/<aggregate>/wait.rs`";
        assert_eq!(findings(one), Vec::<String>::new(), "no aggregates are listed");
        let listed = |names: &str| findings(&format!("{AGGREGATES}{names}`\n\n{one}"));
        assert_eq!(listed("kinds"), Vec::<String>::new());
        assert_eq!(
            listed("kinds others more"),
            [
                "crates/README.md:3: paths: there is no `a/src/others/wait.rs`",
                "crates/README.md:3: paths: there is no `a/src/more/wait.rs`",
            ]
        );
    }

    #[test]
    fn placeholders_stand_for_a_file_and_braces_for_each() {
        for right in [
            "`a/src/one.rs::begin`",
            "`a/src/kinds`",
            "`a/src/kinds/`",
            "`a/src/<folder>/wait.rs`",
            "`a/src/kinds/<kind>.rs`",
            "`a/src/{one.rs,kinds}`",
            "`a/tests/golden/<form>.v<number>.<ending>`",
            "`tests/corpus/<format>`, `docs/` and `docs/page.md`, and `a.rs` and a/src/plain.rs",
            "`docs/none.md#heading`",
        ] {
            assert_eq!(findings(right), Vec::<String>::new(), "{right}");
        }
        for wrong in [
            "`b/src/one.rs`",
            "`a/src/<folder>/one.rs`",
            "`a/src/kinds/<kind>.txt`",
            "`a/src/{one,two}.rs`",
            "`a/src/one.rs<more>`",
            "`docs/none.md`",
            "`tests/corpus/<format>/bad`",
            "`docs/src/one.rs`",
        ] {
            assert_eq!(findings(wrong).len(), 1, "{wrong}");
        }
    }
}
