//! `switchward graph`.

use serde_json::json;

use crate::support::{Ended, deploy_gate, folder, program, repository, run, run_with_input};

/// `intial` is no key, and then there is no initial state.
const BAD: &str = r#"{"name": "bad", "intial": "a", "states": {"a": {"question": "Done?"}}}"#;

const GATE: &str = r##"flowchart TD
  n0["env-check<br/>start · asks"]
  n1["migration-check<br/>asks"]
  n2[["traffic-check<br/>asks · final"]]
  n3(["blocked"])
  n4(["completed"])
  n0 -->|"yes"| n1
  n0 -->|"no"| n3
  n1 -->|"yes<br/>n#47;a"| n2
  n1 -->|"no"| n3
  n2 -->|"yes"| n4
  n2 -->|"no"| n3
  classDef first stroke-width:3px
  class n0 first
  classDef good stroke:#2e8b57
  class n4 good
  classDef bad stroke:#c0392b
  class n3 bad
"##;

#[test]
fn what_is_printed_is_mermaid() {
    let ended = run(["graph", &deploy_gate()]).with_code(0);
    assert_eq!((ended.out.as_str(), ended.err.as_str()), (GATE, ""));
}

#[test]
fn a_picture_can_be_named() {
    for (picture, begins) in
        [("svg", "<svg xmlns="), ("mermaid", "flowchart TD\n"), ("dot", "digraph \"deploy-gate\" {\n")]
    {
        let ended = run(["graph", &deploy_gate(), "--as", picture]).with_code(0);
        assert!(ended.out.starts_with(begins), "{ended:?}");
    }
    let ended = run(["graph", &deploy_gate(), "--as", "png"]).with_code(2);
    assert!(ended.err.contains("svg, mermaid, dot"), "{ended:?}");
}

#[test]
fn the_ending_of_a_file_says_what_is_drawn() {
    let folder = folder(&[]);
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for (name, begins) in [
        ("a.svg", "<svg "),
        ("a.SVG", "<svg "),
        ("a.mmd", "flowchart "),
        ("a.mermaid", "flowchart "),
        ("a.dot", "digraph "),
        ("a.gv", "digraph "),
    ] {
        let ended = run(["graph", &deploy_gate(), "--to", &path(name)]).with_code(0);
        assert_eq!((ended.out, ended.err), (String::new(), String::new()));
        assert!(std::fs::read_to_string(path(name)).unwrap().starts_with(begins), "{name}");
    }
    run(["graph", &deploy_gate(), "--to", &path("b.txt"), "--as", "dot"]).with_code(0);
    assert!(std::fs::read_to_string(path("b.txt")).unwrap().starts_with("digraph "));
    let ended = run(["graph", &deploy_gate(), "--to", &path("c.txt")]).with_code(2);
    assert!(ended.err.contains("--as") && !folder.path().join("c.txt").exists(), "{ended:?}");
    let ended = run(["graph", &deploy_gate(), "--to", &path("no/such/folder.svg")]).with_code(1);
    assert!(ended.err.starts_with("error: failed to write "), "{ended:?}");
}

#[test]
fn every_format_is_drawn() {
    let refund = repository("tests/gallery/refund/refund.yaml");
    let ended = run(["graph".as_ref(), refund.as_os_str()]).with_code(0);
    assert!(ended.out.contains("n2 -->|\"amount gt 100\"| n3\n"), "{ended:?}");
}

#[test]
fn errors_end_with_5_and_never_in_a_picture() {
    let folder = folder(&[("bad.json", BAD)]);
    let (bad, to) = (folder.path().join("bad.json"), folder.path().join("bad.svg"));
    let words = ["graph".as_ref(), bad.as_os_str(), "--to".as_ref(), to.as_os_str()];
    let ended = run(words).with_code(5);
    assert!(ended.out.is_empty() && ended.err.contains("error[SW"), "{ended:?}");
    assert!(!to.exists());
    let drawn = run(["graph".as_ref(), bad.as_os_str(), "-o".as_ref(), "json".as_ref()]).with_code(5);
    let checked = run(["check".as_ref(), bad.as_os_str(), "-o".as_ref(), "json".as_ref()]).with_code(5);
    assert_eq!(drawn.out, checked.out, "the findings are those of `check`");
}

#[test]
fn what_is_not_there_is_not_found() {
    let ended = run(["graph", "/nowhere/x.json"]).with_code(3);
    assert_eq!(ended.err, "error: /nowhere/x.json does not exist\n");
    run(["graph", "/"]).with_code(2);
}

#[test]
fn the_standard_input_is_a_file_and_a_format_can_be_named() {
    let gate = std::fs::read_to_string(deploy_gate()).unwrap();
    assert_eq!(run_with_input(&["graph", "-"], &gate).with_code(0).out, GATE);
    assert_eq!(run_with_input(&["graph", "-", "--format", "checkpoint"], &gate).with_code(0).out, GATE);
    run_with_input(&["graph", "-", "--format", "conversation"], &gate).with_code(5);
}

#[test]
fn json_is_the_graph() {
    let report = run(["graph", &deploy_gate(), "-o", "json"]).with_code(0).json();
    assert_eq!(
        (&report["format"], &report["ok"], &report["findings"][0]["severity"]),
        (&json!("checkpoint"), &json!(true), &json!("notice"))
    );
    let graph = &report["graph"];
    let vertex = json!({
        "name": "env-check", "kind": "node", "acts": ["asks"], "start": true, "final": false, "reached": true
    });
    assert_eq!((&graph["name"], &graph["vertices"][0]), (&json!("deploy-gate"), &vertex));
    assert_eq!(graph["vertices"][3]["kind"], "end");
    assert_eq!(graph["edges"][2], json!({ "from": 1, "to": 2, "kind": "free", "labels": ["yes", "n/a"] }));
    let ended = run(["graph", &deploy_gate(), "-o", "json", "--as", "svg"]).with_code(2);
    assert!(ended.error()["message"].as_str().unwrap().contains("--to FILE"), "{ended:?}");
}

#[test]
fn what_is_too_large_to_be_drawn_is_written_as_dot() {
    let state = |at: u32| format!("\"s{at}\": {{\"question\": \"?\"}}");
    let states: Vec<String> = (0..2_500).map(state).collect();
    let source = format!(r#"{{"name": "large", "initial": "s0", "states": {{{}}}}}"#, states.join(", "));
    let ended = run_with_input(&["graph", "-", "--as", "svg"], &source).with_code(1);
    assert!(ended.err.contains("at most 2000 are drawn") && ended.err.contains("--as dot"), "{ended:?}");
    assert!(run_with_input(&["graph", "-", "--as", "dot"], &source).with_code(0).out.contains("n2499 ["));
}

#[test]
fn a_reader_that_went_away_is_no_failure() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let ended = Ended::printing_to(writer, program().args(["graph", &deploy_gate()])).with_code(0);
    assert_eq!(ended.err, "");
}
