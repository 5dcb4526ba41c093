//! `switchward check`.

use serde_json::{Value, json};

use crate::support::{Ended, deploy_gate, folder, program, repository, run, run_with_input};

const GOOD: &str = r#"{"name": "good", "initial": "a", "states": {"a": {"question": "Done?", "answers": {"yes": {"next": null}}}}}"#;
/// `intial` is no key, and then there is no initial state.
const BAD: &str = "{\n  \"name\": \"bad\",\n  \"initial\": \"a\",\n  \"states\": {\n    \"a\": {\"question\": \"Done?\", \"answers\": {\"yes\": {\"next\": \"b\"}}}\n  }\n}\n";

fn warned() -> String {
    repository("tests/corpus/checkpoint/definitions/tools.yaml").to_str().expect("a plain path").to_owned()
}

#[test]
fn a_clean_file_is_ok() {
    let refund = repository("tests/gallery/refund/refund.yaml").to_str().expect("a plain path").to_owned();
    let ended = run(["check", &refund]).with_code(0);
    assert_eq!((ended.out, ended.err), (format!("{refund}: ok, conversation refund\n"), String::new()));
    let ended = run(["check", "-q", &refund]).with_code(0);
    assert_eq!((ended.out, ended.err), (String::new(), String::new()));
}

#[test]
fn a_policy_that_leaves_something_open_gets_one_notice_and_is_ok() {
    let ended = run(["check", "--strict", &deploy_gate()]).with_code(0);
    assert_eq!(ended.out.matches("notice[SW1230]").count(), 1, "{ended:?}");
    assert!(ended.out.ends_with(": ok, 1 notice, checkpoint deploy-gate\n"), "{ended:?}");
}

#[test]
fn errors_end_with_5_and_are_shown_where_they_are() {
    let folder = folder(&[("bad.json", BAD)]);
    let path = folder.path().join("bad.json");
    let ended = run(["check".as_ref(), path.as_os_str()]).with_code(5);
    let position = format!("--> {}:5:", path.display());
    assert!(ended.out.contains("error[SW"), "{ended:?}");
    assert!(ended.out.contains(&position), "{ended:?}");
    assert!(ended.out.ends_with(&format!("{}: 1 error\n", path.display())), "{ended:?}");
    assert_eq!(ended.err, "", "findings are the result, and no failure of the command");
}

#[test]
fn json_is_one_object_a_line_for_each_file() {
    let folder = folder(&[("a.json", GOOD), ("b.json", BAD)]);
    let path = |name| folder.path().join(name).to_str().unwrap().to_owned();
    let lines = run(["check", "-o", "json", &path("a.json"), &path("b.json")]).with_code(5).lines();
    assert_eq!(
        lines[0],
        json!({ "file": path("a.json"), "format": "checkpoint", "ok": true, "findings": [] })
    );
    assert_eq!((&lines[1]["ok"], &lines[1]["file"]), (&json!(false), &json!(path("b.json"))));
    let finding = lines[1]["findings"][0].as_object().unwrap();
    let mut keys: Vec<&str> = finding.keys().map(String::as_str).collect();
    keys.sort_unstable();
    assert_eq!(keys, ["allowed", "code", "column", "hint", "line", "message", "nearest", "severity"]);
    assert_eq!((&finding["line"], &finding["severity"]), (&json!(5), &json!("error")));
    assert_eq!(lines.len(), 2);
}

#[test]
fn warnings_fail_only_where_they_shall() {
    let ended = run(["check", &warned()]).with_code(0);
    assert!(ended.out.contains("warning[SW") && ended.out.contains(": ok, 2 warnings"), "{ended:?}");
    run(["check", "--strict", &warned()]).with_code(5);
    run(["check", "--strict", &deploy_gate()]).with_code(0);
}

#[test]
fn a_folder_is_walked_for_definitions() {
    let folder = folder(&[
        ("a.json", GOOD),
        (
            "deep/er/b.yaml",
            "name: b\ninitial: a\nstates:\n  a: {question: Done?, answers: {yes: {next: null}}}\n",
        ),
        ("package.json", r#"{"name": "a-package", "version": "1.0.0"}"#),
        ("readme.md", "no definition"),
        (".hidden/c.json", BAD),
    ]);
    let ended = run(["check".as_ref(), folder.path().as_os_str()]).with_code(0);
    assert!(ended.out.contains("a.json: ok") && ended.out.contains("b.yaml: ok"), "{ended:?}");
    assert!(ended.out.ends_with("2 files: ok; 1 other file skipped (not a definition)\n"), "{ended:?}");
    // A named file is checked, whatever its extension.
    run(["check".as_ref(), folder.path().join("package.json").as_os_str()]).with_code(5);
}

#[test]
fn a_folder_without_a_definition_is_not_found() {
    let folder = folder(&[("package.json", r#"{"name": "a-package"}"#)]);
    let ended = run(["check".as_ref(), folder.path().as_os_str()]).with_code(3);
    assert!(ended.err.starts_with("error: no definitions found\n"), "{ended:?}");
}

#[test]
fn a_missing_file_does_not_hide_the_others() {
    let ended = run(["check", "/nowhere/x.json", &deploy_gate()]).with_code(3);
    assert!(ended.out.contains("deploy-gate.json: ok"), "{ended:?}");
    assert_eq!(ended.err, "error: /nowhere/x.json does not exist\n");
    let ended = run(["check", "-o", "json", "/nowhere/x.json"]).with_code(3);
    let expected =
        json!({ "code": "not_found", "reason": "NOT_FOUND", "message": "/nowhere/x.json does not exist" });
    assert_eq!(ended.error(), expected);
}

#[test]
fn the_standard_input_is_a_file_too() {
    let ended = run_with_input(&["check", "-", "-o", "json"], GOOD).with_code(0);
    assert_eq!(ended.json()["file"], "-");
    run_with_input(&["check", "-"], "").with_code(5);
}

#[test]
fn a_format_can_be_named() {
    let nothing = run_with_input(&["check", "-", "--format", "checkpoint", "-o", "json"], "{}").with_code(5);
    assert_eq!(nothing.json()["format"], "checkpoint");
    let ended = run(["check", "--format", "bpmn", &deploy_gate()]).with_code(2);
    assert!(ended.err.contains("checkpoint") && ended.err.contains("kno"), "{ended:?}");
}

#[cfg(unix)]
#[test]
fn a_name_that_is_no_text_is_a_name() {
    use std::os::unix::ffi::OsStrExt as _;
    let folder = folder(&[]);
    let path = folder.path().join(std::ffi::OsStr::from_bytes(b"gate-\xff.json"));
    std::fs::write(&path, GOOD).unwrap();
    let ended = run(["check".as_ref(), path.as_os_str(), "-o".as_ref(), "json".as_ref()]).with_code(0);
    assert!(ended.json()["file"].as_str().unwrap().ends_with("gate-\u{fffd}.json"));
}

#[test]
fn a_reader_that_went_away_is_no_failure() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let ended = Ended::printing_to(writer, program().args(["check", &deploy_gate()])).with_code(0);
    assert_eq!(ended.err, "");
}

#[test]
fn errors_end_with_5_also_if_nobody_reads_them() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let folder = folder(&[("bad.json", BAD)]);
    let path = folder.path().join("bad.json");
    Ended::printing_to(writer, program().arg("check").arg(&path)).with_code(5);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_one() {
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let ended = Ended::printing_to(full, program().args(["check", &deploy_gate()])).with_code(1);
    assert!(ended.err.starts_with("error: No space left on device"), "{ended:?}");
}

#[test]
fn nothing_in_a_file_moves_the_cursor() {
    let ended =
        run_with_input(&["check", "-"], "{\"name\": \"a\u{1b}[2J\", \"initial\": \"x\", \"states\": {}}")
            .with_code(5);
    assert!(!ended.out.contains('\u{1b}'), "{ended:?}");
}

#[test]
fn every_definition_of_the_gallery_is_clean() {
    let gallery = repository("tests/gallery");
    let lines =
        run(["check".as_ref(), gallery.as_os_str(), "--strict".as_ref(), "-o".as_ref(), "json".as_ref()]);
    let lines = lines.with_code(0).lines();
    assert!(!lines.is_empty() && lines.iter().all(|line| line["ok"] == Value::Bool(true)), "{lines:?}");
}

/// A workflow that calls another one.
fn calling(name: &str, other: &str) -> String {
    format!(
        "name: {name}\nstates:\n  - {{name: call, type: subworkflow, workflow: {other}}}\ntransitions: []\n"
    )
}

#[test]
fn a_cycle_of_calls_is_found_in_files_that_are_checked_together() {
    let folder = folder(&[("a.yaml", &calling("one", "two")), ("b.yaml", &calling("two", "one"))]);
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for paths in [vec![path("a.yaml"), path("b.yaml")], vec![path("")], vec![path(""), path("b.yaml")]] {
        let words = ["check".to_owned()].into_iter().chain(paths);
        let ended = run(words).with_code(5);
        let message = "error[SW1317]: this call closes a cycle: `one` calls `two` calls `one`";
        assert!(ended.out.contains(message), "{ended:?}");
        assert!(ended.out.contains(&format!("--> {}:3:", path("b.yaml"))), "{ended:?}");
        assert!(ended.out.contains("a.yaml: ok, conversation one\n"), "{ended:?}");
    }
    let lines = run(["check", "-o", "json", &path("a.yaml"), &path("b.yaml")]).with_code(5).lines();
    assert_eq!((&lines[0]["ok"], &lines[1]["ok"]), (&json!(true), &json!(false)));
    assert_eq!(lines[1]["findings"][0]["code"], "SW1317");
    // Each of them alone is no cycle: the other may have changed by then. It must exist, though.
    for (file, other) in [("a.yaml", "two"), ("b.yaml", "one")] {
        let ended = run(["check", &path(file)]).with_code(0);
        let message = format!(
            "warning[SW1250]: `{other}` is not among the definitions that are checked together\n --> {}:3:",
            path(file)
        );
        assert!(ended.out.contains(&message), "{ended:?}");
        run(["check", "--strict", &path(file)]).with_code(5);
    }
}

#[test]
fn a_callee_that_is_not_among_the_files_is_reported_with_the_nearest_that_is() {
    let folder =
        folder(&[("a.yaml", &calling("parent", "acounts")), ("b.yaml", &calling("accounts", "parent-2"))]);
    let ended = run(["check", folder.path().to_str().unwrap()]).with_code(0);
    assert!(ended.out.contains("warning[SW1250]: `acounts` is not among"), "{ended:?}");
    assert!(ended.out.contains("= nearest: accounts"), "{ended:?}");
    // A file that cannot be read may be the one that is called.
    let folder = crate::support::folder(&[
        ("a.yaml", &calling("parent", "other")),
        ("b.yaml", "name: other\nstates: []\ntransitions: []\n"),
    ]);
    let ended = run(["check", folder.path().to_str().unwrap()]).with_code(5);
    assert!(!ended.out.contains("SW1250"), "{ended:?}");
}
