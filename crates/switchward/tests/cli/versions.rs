//! Versions from the command line: folders are planned and deployed, versions compared, definitions archived and deleted.

use serde_json::Value;

use crate::support::{Dev, folder};

/// A process whose `bash` calls are limited.
const THRIFTY: &str = r#"{
  "name": "thrifty", "initial": "a", "session_budget_usd": 1,
  "states": {"a": {"question": "Done?", "answers": {"yes": {"next": null}}}},
  "policy": {"role": "agent", "allow": [{"capability": "bash"}], "ask": [], "deny": [{"capability": "rm"}]}
}"#;
/// Calls `called`, and comes before it in a folder.
const CALLER: &str = r#"{"name": "caller", "states": [
    {"name": "call", "type": "subworkflow", "workflow": "called"},
    {"name": "after", "type": "conversation"}],
  "transitions": [{"from": "call", "to": "after", "guards": [{"type": "always"}]}]}"#;
const CALLED: &str = r#"{"name": "called", "states": [
    {"name": "ask", "type": "conversation", "instructions": "Ask."}], "transitions": []}"#;
/// No definition.
const SCENARIO: &str = "definition: a-caller.json\nsteps: []\n";

/// The values of a key in each line of the output.
fn each(out: &str, key: &str) -> Vec<Value> {
    let value = |line: &str| serde_json::from_str::<Value>(line).expect("a line of JSON")[key].clone();
    out.lines().map(value).collect()
}

#[test]
fn a_folder_is_planned_and_then_deployed_in_the_order_of_its_calls() {
    let dev = Dev::start();
    let files = [
        ("a-caller.json", CALLER),
        ("b/called.json", CALLED),
        ("c.json", THRIFTY),
        ("scenario.yaml", SCENARIO),
    ];
    let folder = folder(&files);
    let path = folder.path().to_str().expect("a path");
    let planned = dev.run(&["deploy", path, "--dry-run", "-o", "json"]).with_code(0);
    assert_eq!(each(&planned.out, "definition"), ["called", "caller", "thrifty"]);
    assert_eq!(each(&planned.out, "action"), ["new", "new", "new"]);
    dev.run(&["get", "definitions/thrifty"]).with_code(3);
    let deployed = dev.run(&["deploy", path]).with_code(0);
    let order =
        ["called", "caller", "thrifty"].map(|name| deployed.out.find(&format!("definition  {name}\n")));
    assert!(order.iter().all(Option::is_some) && order.is_sorted(), "{deployed:?}");

    let looser = THRIFTY.replace(r#"[{"capability": "rm"}]"#, "[]");
    std::fs::write(folder.path().join("c.json"), looser).expect("the file can be written");
    let planned = dev.run(&["deploy", path, "--dry-run", "-o", "json"]).with_code(0);
    assert_eq!(each(&planned.out, "action"), ["unchanged", "unchanged", "changed"]);
    let differences = each(&planned.out, "differences");
    assert_eq!(differences[2][0]["subject"], "rule deny rm of policy");
    assert_eq!(differences[2][0]["weaker"], true);
    let shown = dev.run(&["deploy", path, "--dry-run"]).with_code(0);
    assert!(shown.out.contains("thrifty  changed\n"), "{shown:?}");
    assert!(shown.out.contains("- rule deny rm of policy  weaker\n"), "{shown:?}");
    assert!(shown.out.contains("1 difference, which weakens a control\n"), "{shown:?}");
    assert_eq!(dev.json(&["get", "definitions/thrifty"])["definition"]["latestVersion"], 1);

    std::fs::write(folder.path().join("c.json"), THRIFTY.replace("\"next\": null", "\"next\": \"b\""))
        .expect("the file can be written");
    let planned = dev.run(&["deploy", path, "--dry-run", "-o", "json"]).with_code(5);
    assert_eq!(each(&planned.out, "action"), ["unchanged", "unchanged", "refused"]);
    let failed = dev.run(&["deploy", path]).with_code(5);
    let warning = "deployed before the error: called, caller; not deployed: ";
    assert!(failed.err.contains(warning), "{failed:?}");
}

#[test]
fn definitions_that_call_one_another_are_named() {
    let dev = Dev::start();
    let back = CALLER.replace("\"called\"", "\"swap\"").replace("\"caller\"", "\"called\"");
    let back = back.replace("\"swap\"", "\"caller\"");
    let folder = folder(&[("a.json", CALLER), ("b.json", &back)]);
    let refused = dev.run(&["deploy", folder.path().to_str().expect("a path")]).with_code(5);
    assert!(refused.err.contains("caller -> called -> caller"), "{refused:?}");
    dev.run(&["get", "definitions/called"]).with_code(3);
}

#[test]
fn versions_are_compared_and_definitions_archived_and_deleted() {
    let dev = Dev::start();
    let looser = THRIFTY.replace(r#"[{"capability": "rm"}]"#, "[]");
    let folder = folder(&[("first.json", THRIFTY), ("second.json", &looser)]);
    let path = |name: &str| folder.path().join(name).to_str().expect("a path").to_owned();
    dev.run(&["deploy", &path("first.json")]).with_code(0);
    let same = dev.run(&["diff", "thrifty", "--file", &path("first.json"), "--strict"]).with_code(0);
    assert!(same.out.ends_with("thrifty 1 -> file\nno differences\n"), "{same:?}");
    dev.run(&["diff", "thrifty", "--file", &path("second.json"), "--strict"]).with_code(5);
    dev.run(&["deploy", &path("second.json"), "--no-activate"]).with_code(0);
    let compared = dev.run(&["diff", "thrifty"]).with_code(0);
    assert!(compared.out.starts_with("thrifty 1 -> thrifty 2\npolicy\n"), "{compared:?}");
    assert_eq!(
        dev.json(&["diff", "thrifty", "2", "1"])["differences"][0]["change"],
        "DIFFERENCE_CHANGE_ADDED"
    );

    dev.run(&["start", "thrifty", "--key", "release-42"]).with_code(0);
    dev.run(&["delete", "thrifty", "--yes"]).with_code(4);
    dev.run(&["archive", "thrifty"]).with_code(0);
    assert_eq!(dev.run(&["list", "definitions"]).with_code(0).out.matches("thrifty").count(), 0);
    assert_eq!(
        dev.run(&["list", "definitions", "--show-archived"]).with_code(0).out.matches("thrifty").count(),
        1
    );
    let refused = dev.run(&["start", "thrifty", "-o", "json"]).with_code(4).error();
    assert_eq!(refused["reason"], "DEFINITION_ARCHIVED");
    let used = dev.run(&["delete", "thrifty", "--dry-run", "-o", "json"]).with_code(4).error();
    assert_eq!(used["reason"], "DEFINITION_IN_USE");
    dev.run(&["answer", "release-42", "yes"]).with_code(0);
    dev.run(&["delete", "thrifty", "2", "--yes"]).with_code(0);
    dev.run(&["delete", "thrifty", "--dry-run"]).with_code(0);
    dev.run(&["unarchive", "thrifty"]).with_code(0);
    dev.run(&["archive", "thrifty"]).with_code(0);
    assert_eq!(dev.run(&["delete", "thrifty", "--yes"]).with_code(0).out, "deleted  thrifty\n");
    dev.run(&["get", "definitions/thrifty"]).with_code(3);
    let deployed = dev.run(&["deploy", &path("first.json")]).with_code(0);
    assert!(deployed.out.contains("version     3, new\n"), "{deployed:?}");
}
