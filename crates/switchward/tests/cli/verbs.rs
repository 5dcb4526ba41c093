//! Journeys of the verbs that few sessions need: budgets that are raised, versions that are not active, digests.

use serde_json::{Value, json};

use crate::support::{Dev, deploy_gate, folder};

/// A process whose sessions may cost one dollar.
const THRIFTY: &str = r#"{
  "name": "thrifty", "initial": "a", "session_budget_usd": 1,
  "states": {"a": {"question": "Done?", "answers": {"yes": {"next": null}}}},
  "policy": {"role": "agent", "allow": [{"capability": "bash"}], "ask": [], "deny": []}
}"#;

#[test]
fn a_spent_budget_denies_until_a_person_raises_it() {
    let (dev, folder) = (Dev::start(), folder(&[("thrifty.json", THRIFTY)]));
    let path = folder.path().join("thrifty.json");
    dev.run(&["deploy", path.to_str().unwrap()]).with_code(0);
    dev.run(&["start", "thrifty", "--key", "release-42"]).with_code(0);
    let call = ["authorize", "release-42", "bash", "--call-id", "call-7", "--est-cost-usd", "0.25"];
    dev.run(&call).with_code(0);
    let of_call = ["report", "release-42", "--call-id", "call-7", "--cost-usd", "0.4", "--tokens", "1200"];
    let settled = dev.json(&of_call);
    let budget = |used: &str, tokens: &str| json!({ "capUsd": "1", "usedUsd": used, "usedTokens": tokens });
    assert_eq!(totals(&settled["budget"]), budget("0.4", "1200"));
    let of_session = ["report", "release-42", "--cost-usd", "0.6"];
    let reported = dev.run(&of_session).with_code(0);
    assert!(reported.out.contains("budget  1 of 1 USD used"), "{reported:?}");

    let denied = dev.run(&["authorize", "release-42", "bash", "-o", "json"]).with_code(6).json();
    assert_eq!(denied["reason"], "BUDGET_EXHAUSTED");
    let denied = dev.run(&["raise", "release-42", "--cost-usd", "2", "--as", "agent", "-o", "json"]);
    assert_eq!(denied.with_code(6).error()["reason"], "ROLE_NOT_ALLOWED");
    let raised = dev.json(&["raise", "release-42", "--cost-usd", "2"]);
    assert_eq!(raised["session"]["budget"]["capUsd"], "2");
    dev.run(&["authorize", "release-42", "bash"]).with_code(0);

    let failed = dev.run(&["report", "release-42", "bash", "--failed", "--cost-usd", "0.1", "-o", "json"]);
    assert_eq!(failed.with_code(0).json()["budget"]["usedUsd"], "1.1");
    dev.run(&["report", "release-42", "--failed"]).with_code(2);
    let no_cap = dev.run(&["raise", "release-42", "--tokens", "5000", "-o", "json"]).with_code(4).error();
    assert_eq!(no_cap["metadata"]["allowed"], "[\"cost_usd\"]");
}

/// The fields of a budget without its reservation.
fn totals(budget: &Value) -> Value {
    json!({ "capUsd": budget["capUsd"], "usedUsd": budget["usedUsd"], "usedTokens": budget["usedTokens"] })
}

#[test]
fn a_version_waits_until_it_is_activated() {
    let dev = Dev::start();
    let second = THRIFTY.replace("Done?", "Really done?");
    let folder = folder(&[("first.json", THRIFTY), ("second.json", &second)]);
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    dev.run(&["deploy", &path("first.json")]).with_code(0);
    let stored = dev.run(&["deploy", &path("second.json"), "--no-activate"]).with_code(0);
    assert!(stored.out.contains("version     2, new\nstatus      not active\n"), "{stored:?}");
    assert_eq!(stored.err, "next  switchward activate thrifty 2\n");
    let question = |words: &[&str]| dev.json(words)["session"]["checkpoint"]["question"].clone();
    assert_eq!(question(&["start", "thrifty"]), "Done?");
    assert_eq!(question(&["start", "thrifty", "--version", "2", "--as", "person"]), "Really done?");
    let active = |words: &[&str]| dev.json(words)["definition"]["activeVersion"].clone();
    assert_eq!(active(&["activate", "thrifty", "latest"]), 2);
    assert_eq!(question(&["start", "thrifty"]), "Really done?");
    assert_eq!(active(&["activate", "thrifty", "1"]), 1);
    assert_eq!(question(&["start", "thrifty"]), "Done?");
    for words in
        [["activate", "thrifty", "3"].as_slice(), &["start", "thrifty", "--version=3", "--as", "person"]]
    {
        let missing = dev.run(&[words, &["-o", "json"]].concat()).with_code(3).error();
        assert_eq!(missing["reason"], "NOT_FOUND", "{words:?}");
    }
}

#[test]
fn a_person_decides_about_the_arguments_that_were_shown() {
    let dev = Dev::start();
    dev.run(&["deploy", &deploy_gate()]).with_code(0);
    dev.run(&["start", "deploy-gate", "--key", "release-42"]).with_code(0);
    let call = ["authorize", "release-42", "mcp:filesystem:write_file", "--args", r#"{"path":"a.txt"}"#];
    let asked = dev.run(&[&call[..], &["-o", "json"]].concat()).with_code(7).json();
    let name = asked["gate"].as_str().unwrap();
    let gate = dev.json(&["get", name])["gate"].clone();
    let shown = gate["argsDigest"].as_str().unwrap();
    let decide = |digest: &str| dev.run(&["decide", name, "approve", "--args-digest", digest, "-o", "json"]);
    let refused = decide(&"0".repeat(64)).with_code(4).error();
    assert_eq!(refused["reason"], "STATE_MISMATCH", "{refused}");
    assert_eq!(decide("abc").with_code(2).error()["reason"], "FIELD_INVALID");
    assert_eq!(decide(shown).with_code(0).json()["gate"]["status"], "GATE_STATUS_DECIDED");
    dev.run(&call).with_code(0);
}
