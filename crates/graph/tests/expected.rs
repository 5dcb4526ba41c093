//! The whole pictures of a small definition of each format. `BLESS=1` rewrites them.

#![expect(clippy::disallowed_methods, reason = "the expected pictures are files")]

use std::path::Path;
use switchward_formats::compile_file;
use switchward_graph::{Graph, dot, mermaid, svg};
use switchward_machine::Machine;

/// The machine of a definition beside these tests.
fn machine(name: &str) -> Machine {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/definitions").join(name);
    let bytes = std::fs::read(path).expect("the definition is there");
    let compiled = compile_file(name, &bytes, None);
    compiled.definition.unwrap_or_else(|| panic!("{:?}", compiled.findings)).machine
}

#[track_caller]
fn check(picture: &str, file: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/expected").join(file);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, picture).expect("the file can be written");
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(picture == expected, "{file} is not what is drawn:\n{picture}");
}

#[test]
fn a_checkpoint_process() {
    let graph = Graph::of(&machine("checkpoint.json"));
    check(&mermaid(&graph), "checkpoint.mmd");
    check(&dot(&graph), "checkpoint.dot");
    check(&svg(&graph).expect("the graph is small enough"), "checkpoint.svg");
}

#[test]
fn a_conversation() {
    let graph = Graph::of(&machine("conversation.yaml"));
    check(&mermaid(&graph), "conversation.mmd");
    check(&dot(&graph), "conversation.dot");
    check(&svg(&graph).expect("the graph is small enough"), "conversation.svg");
}

#[test]
fn people_and_other_assistants_are_distinguished_from_workers() {
    let source = "name: p
states:
  - {name: rate, type: task, task_template: {participants: [a@example.com], instructions: Rate us.}}
  - {name: helper, type: delegate, assistant: analyst}
  - {name: work, type: action}
  - {name: decide, type: approval, approvers: [a@example.com]}
transitions:
  - {from: rate, to: helper, guards: [{type: all_tasks_complete}]}
  - {from: helper, to: work, guards: [{type: always}]}
  - {from: work, to: decide, guards: [{type: always}]}
";
    let compiled = compile_file("p.yaml", source.as_bytes(), None);
    let definition = compiled.definition.unwrap_or_else(|| panic!("{:?}", compiled.findings));
    let picture = mermaid(&Graph::of(&definition.machine));
    for words in ["people answer", "delegates", "works", "a person decides", "all_tasks_complete"] {
        assert!(picture.contains(words), "{words}: {picture}");
    }
}
