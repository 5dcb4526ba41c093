//! Every wrong or odd definition of the corpus gives the findings of its `.expected` file.
//!
//! A line of that file is `CODE line:column`, followed by `~name` if the finding has a nearest name; findings are in
//! order. The line `format checkpoint` says that the format is given and not detected. A folder holds definitions
//! that are checked together: each line of its `all.expected` begins with the file's name.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use switchward_formats::{
    Calls, Compiled, Format, absent, codes, compile_file, cycles, has_errors, render_json,
};

use super::support::render_text;

const FOLDERS: [&str; 6] = [
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/corpus/policy/invalid"),
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/corpus/checkpoint/invalid"),
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/corpus/conversation/invalid"),
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/corpus/conversation/warnings"),
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/corpus/native/invalid"),
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/corpus/native/warnings"),
];

/// Codes that no file of a bearable size has, or that a single file cannot have. `bounds` has them.
const ELSEWHERE: [codes::Code; 6] = [
    codes::SOURCE_TOO_LARGE,
    codes::TOO_MANY_NODES,
    codes::MORE_FINDINGS,
    codes::FILE_COUNT,
    codes::TOO_MANY_ENTRIES,
    codes::MACHINE_TOO_LARGE,
];

#[expect(clippy::disallowed_methods, reason = "a test that reads the corpus")]
fn files_in(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = std::fs::read_dir(folder).expect("the corpus has it");
    let paths = entries.map(|entry| entry.expect("the folder can be listed").path());
    let files = paths.filter(|path| path.is_file());
    files.map(|path| (path.clone(), std::fs::read(path).expect("the file can be read"))).collect()
}

fn files() -> BTreeMap<PathBuf, Vec<u8>> {
    FOLDERS.into_iter().flat_map(|folder| files_in(Path::new(folder))).collect()
}

/// The folders of definitions that are checked together.
#[expect(clippy::disallowed_methods, reason = "a test that reads the corpus")]
fn sets() -> Vec<PathBuf> {
    let folders =
        FOLDERS.into_iter().flat_map(|folder| std::fs::read_dir(folder).expect("the corpus has it"));
    let paths = folders.map(|entry| entry.expect("the folder can be listed").path());
    paths.filter(|path| path.is_dir()).collect()
}

fn compile(path: &Path, bytes: &[u8], expected: &str) -> Compiled {
    let format = expected.starts_with("format checkpoint\n").then_some(Format::Checkpoint);
    compile_file(&name(path), bytes, format)
}

fn name(path: &Path) -> String {
    path.file_name().expect("a file has a name").to_string_lossy().into_owned()
}

#[test]
fn every_case_is_reported_as_expected() {
    let files = files();
    let mut seen = BTreeSet::new();
    let mut wrong = Vec::new();
    for (path, bytes) in files.iter().filter(|(path, _)| path.extension() != Some("expected".as_ref())) {
        let Some(expected) = files.get(&path.with_extension("expected")) else {
            wrong.push(format!("{}: there is no .expected beside it", name(path)));
            continue;
        };
        let expected = String::from_utf8_lossy(expected);
        let compiled = compile(path, bytes, &expected);
        check_sane(&name(path), bytes, &compiled);
        seen.extend(compiled.findings.iter().map(|it| it.code));
        let found: Vec<String> = compiled.findings.iter().map(line).collect();
        let wanted: Vec<&str> = expected.lines().filter(|line| !line.starts_with("format ")).collect();
        if found != wanted || found.is_empty() {
            wrong.push(format!("{}: expected {wanted:?}, found {found:?}", name(path)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen.len() > 20, "only {} codes were seen", seen.len());
}

#[test]
fn what_is_wrong_between_files_is_reported_as_expected() {
    let sets = sets();
    assert!(!sets.is_empty());
    for set in sets {
        let mut files = files_in(&set);
        let expected = files.remove(&set.join("all.expected")).expect("the folder has this file");
        let compiled = files.iter().map(|(path, bytes)| {
            let compiled = compile(path, bytes, "");
            assert_eq!(compiled.findings, [], "{}", path.display());
            (name(path), compiled.definition.expect("it has no findings"))
        });
        let compiled: Vec<_> = compiled.collect();
        let calls: Vec<Calls<'_>> =
            compiled.iter().map(|(file, it)| Calls { file, name: &it.name, calls: &it.calls }).collect();
        let found = cycles(&calls).into_iter().chain(absent(&calls)).map(|(at, finding)| {
            assert_eq!(finding.file, compiled[at].0);
            format!("{} {}\n", finding.file, line(&finding))
        });
        assert_eq!(found.collect::<String>(), String::from_utf8_lossy(&expected), "{}", set.display());
    }
}

fn line(finding: &switchward_formats::Finding) -> String {
    let nearest = finding.nearest.as_ref().map(|name| format!(" ~{name}")).unwrap_or_default();
    format!("{} {}:{}{nearest}", finding.code, finding.line, finding.column)
}

/// Checks invariants of the findings of any source.
fn check_sane(name: &str, bytes: &[u8], compiled: &Compiled) {
    assert_eq!(compiled.definition.is_none(), has_errors(&compiled.findings), "{name}");
    for finding in &compiled.findings {
        assert_eq!(finding.file, name);
        assert!(codes::explain(finding.code).is_some(), "{name}: {}", finding.code);
        let first = finding.message.chars().next().expect("a message says something");
        assert!(!first.is_uppercase() && !finding.message.ends_with('.'), "{name}: {}", finding.message);
    }
    let text = render_text(&compiled.findings, bytes);
    assert_eq!(text.matches("--> ").count(), compiled.findings.len(), "{name}");
    let json = render_json(name, compiled.format, &compiled.findings);
    serde_json::from_str::<serde_json::Value>(&json).expect("the report is JSON");
}

#[test]
fn every_expectation_has_its_case() {
    let files = files();
    for path in files.keys().filter(|path| path.extension() == Some("expected".as_ref())) {
        let cases = ["json", "yaml"].iter().filter(|ending| files.contains_key(&path.with_extension(ending)));
        assert_eq!(cases.count(), 1, "{}", path.display());
    }
}

#[test]
fn every_code_has_a_case() {
    let mut files = files();
    files.extend(sets().iter().flat_map(|set| files_in(set)));
    let found: String = files
        .iter()
        .filter(|(path, _)| path.extension() == Some("expected".as_ref()))
        .map(|(_, bytes)| String::from_utf8_lossy(bytes).into_owned())
        .collect();
    for code in codes::ALL {
        assert_eq!(found.contains(code.id), !ELSEWHERE.contains(code), "{}", code.id);
    }
}
