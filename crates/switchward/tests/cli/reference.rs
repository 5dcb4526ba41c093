//! The command line describes itself: `--help` in groups, `docs`, `man`, and `docs/cli.md`.

use std::fs;

use crate::support::{Ended, program, repository, run};

#[test]
fn the_page_of_the_command_line_is_generated() {
    let generated = run(["docs", "--generate-cli"]).with_code(0).out;
    let page = fs::read_to_string(repository("docs/cli.md")).expect("a page");
    assert!(page == generated, "run `switchward docs --generate-cli > docs/cli.md`");
}

#[test]
fn pages_are_listed_and_printed_as_they_are_stored() {
    let listed = run(["docs"]).with_code(0);
    assert!(listed.out.lines().any(|line| line.starts_with("glossary ") && line.ends_with("Glossary")));
    let stored = fs::read_to_string(repository("docs/glossary.md")).expect("a page");
    assert_eq!(run(["docs", "glossary"]).with_code(0).out, stored);
    let page = run(["docs", "glossary", "-o", "json"]).with_code(0).json();
    assert_eq!((&page["title"], &page["text"]), (&"Glossary".into(), &stored.into()));
    let pages = run(["docs", "-o", "json"]).with_code(0).json();
    let count = pages["pages"].as_array().map(Vec::len);
    assert_eq!(count, Some(listed.out.lines().count()));
}

#[test]
fn an_unknown_page_is_not_found_and_the_nearest_is_named() {
    let ended = run(["docs", "glosary"]).with_code(3);
    assert!(ended.err.contains("there is no page \"glosary\""), "{ended:?}");
    assert!(ended.err.contains("switchward docs glossary"), "{ended:?}");
    let error = run(["docs", "glosary", "-o", "json"]).with_code(3).error();
    assert_eq!(error["reason"], "NOT_FOUND");
}

#[test]
fn the_help_lists_the_commands_in_groups() {
    let help = run(["--help"]).with_code(0).out;
    let headings = ["Definitions:", "Sessions:", "People:", "Delivery:", "Operating:", "Development:"];
    let at: Vec<Option<usize>> = headings.iter().map(|heading| help.find(heading)).collect();
    assert!(at.iter().all(Option::is_some) && at.is_sorted(), "{help}");
    assert!(help.lines().any(|line| line.starts_with("  69 ")), "{help}");
    assert!(help.lines().all(|line| line.chars().count() <= 100), "{help}");
}

#[test]
fn man_pages_are_written_for_every_command() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("man1");
    let mut command = program();
    command.arg("man").arg("--dir").arg(&path);
    Ended::of(&mut command).with_code(0);
    for name in
        ["switchward", "switchward-start", "switchward-endpoint-put", "switchward-mail-quarantine-list"]
    {
        let page = fs::read_to_string(path.join(format!("{name}.1"))).expect(name);
        assert!(page.contains(".SH NAME") && page.contains("EXIT STATUS"), "{name}: {page}");
    }
    let page = run(["man"]).with_code(0).out;
    assert_eq!(page, fs::read_to_string(path.join("switchward.1")).expect("a page"));
}
