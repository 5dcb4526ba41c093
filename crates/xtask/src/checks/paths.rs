//! The paths that `crates/README.md` names exist, the functions that it names are in them, and its journeys are short.
//!
//! A path is `crate/src/...` or `crate/tests/...` in backticks, without `crates/`. `<kind>` stands for any name, so one
//! file or folder must fit; `{a,b}` stands for both. `path.rs::name` names a function of the file.
//!
//! A journey is a numbered list. Each of its steps is a call from one file to another.

use crate::finding::Finding;
use crate::scan;
use crate::tree::Tree;

const RULE: &str = "paths";
const MAP: &str = "crates/README.md";
/// The folders of a crate whose paths are checked.
const FOLDERS: [&str; 2] = ["src", "tests"];
/// The most steps of a journey.
const STEPS_MAX: usize = 25;

/// Looks for each path of the map, and for the function behind it, and counts the steps of its journeys.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let map = tree.text(MAP).unwrap_or_default();
    let mut findings = long_journeys(map);
    for (index, line) in map.lines().enumerate() {
        // Of a line that is split at its backticks, every second part is code.
        for name in line.split('`').skip(1).step_by(2).filter(|code| is_path(code)) {
            let (path, function) = name.split_once("::").map_or((name, None), |(path, it)| (path, Some(it)));
            for path in alternatives(path) {
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

/// The numbered lists of the map that have too many steps, each at the line of its last step. A list begins with `1.`.
fn long_journeys(map: &str) -> Vec<Finding> {
    let mut journeys: Vec<(usize, usize)> = Vec::new();
    for (index, line) in map.lines().enumerate() {
        let Some((number, _)) = line.split_once(". ") else { continue };
        if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
            continue;
        }
        match journeys.last_mut() {
            Some((end, steps)) if number != "1" => (*end, *steps) = (index + 1, *steps + 1),
            Some(_) | None => journeys.push((index + 1, 1)),
        }
    }
    let long = journeys.into_iter().filter(|(_, steps)| *steps > STEPS_MAX);
    long.map(|(end, steps)| {
        let message = format!("the journey has {steps} steps, at most {STEPS_MAX} are allowed");
        Finding::new(MAP, end, RULE, message)
    })
    .collect()
}

/// Returns true if code is the path of a file or a folder of a crate.
fn is_path(code: &str) -> bool {
    let mut names = code.split('/');
    let of_crate = names.next().is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_lowercase()));
    of_crate && names.next().is_some_and(|name| FOLDERS.contains(&name)) && !code.contains(' ')
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
    tree.below("crates").filter(move |file| {
        let names: Vec<&str> = file.split('/').skip(1).collect();
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
        ]);
        check(&tree).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_wrong_path_and_a_wrong_function_are_reported() {
        assert_eq!(
            findings("# Map\n\nSee `a/src/two.rs`.\n\n1. `a/src/one.rs::gone`, `a/src/gone.rs::begin`\n"),
            [
                "crates/README.md:3: paths: there is no `a/src/two.rs`",
                "crates/README.md:5: paths: there is no function `gone` in `a/src/one.rs`",
                "crates/README.md:5: paths: there is no function `begin` in `a/src/gone.rs`",
            ]
        );
    }

    #[test]
    fn a_journey_with_too_many_steps_is_reported_at_its_last_one() {
        let steps = |count: usize| {
            (1..=count).map(|step| format!("{step}. a call\n   of two lines\n")).collect::<String>()
        };
        let short = format!("# Map\n\n{}\n**Another**\n\n{}", steps(STEPS_MAX), steps(3));
        assert_eq!(findings(&short), Vec::<String>::new());
        // The steps are counted, whatever numbers they have.
        let long = steps(STEPS_MAX + 1).replace("26. ", "25. ");
        assert_eq!(
            findings(&format!("# Map\n\n{long}\n**Another**\n\n{}", steps(3))),
            ["crates/README.md:53: paths: the journey has 26 steps, at most 25 are allowed"]
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
            "`tests/corpus/<format>` and `a.rs` and a/src/plain.rs",
        ] {
            assert_eq!(findings(right), Vec::<String>::new(), "{right}");
        }
        for wrong in [
            "`b/src/one.rs`",
            "`a/src/<folder>/one.rs`",
            "`a/src/kinds/<kind>.txt`",
            "`a/src/{one,two}.rs`",
            "`a/src/one.rs<more>`",
        ] {
            assert_eq!(findings(wrong).len(), 1, "{wrong}");
        }
    }
}
