//! A server and its command line together: what an agent and a person type from a deployment to its end.

use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use switchward_testkit::within;

use crate::support::{Dev, deploy_gate, folder};

const DELETE_FILE: &str = "mcp:filesystem:delete_file";
const ARGS: &str = r#"{"path":"/srv/releases/41"}"#;

/// A server with the deploy gate and a session of it.
fn release() -> Dev {
    let dev = Dev::start();
    dev.run(&["deploy", &deploy_gate()]).with_code(0);
    dev.run(&["start", "deploy-gate", "--key", "release-42"]).with_code(0);
    dev
}

fn types(lines: &[Value]) -> Vec<&str> {
    lines.iter().map(|line| line["type"].as_str().expect("an event has a type")).collect()
}

#[test]
fn an_agent_is_walked_through_a_deploy_gate() {
    let dev = Dev::start();
    let version = &dev.json(&["deploy", &deploy_gate()])["version"];
    assert_eq!((&version["number"], &version["active"]), (&json!(1), &json!(true)));
    let words =
        ["start", "deploy-gate", "--key", "release-42", "--label", "team=web", "--input", r#"{"n": 1.5}"#];
    let session = &dev.json(&words)["session"];
    assert_eq!((&session["sessionId"], &session["at"]), (&json!("release-42"), &json!(["env-check"])));
    assert_eq!(session["labels"], json!({ "team": "web" }));

    let allowed = dev.json(&["authorize", "release-42", "bash"]);
    assert_eq!(
        (&allowed["decision"], &allowed["remaining"]),
        (&json!("TOOL_DECISION_ALLOW"), &json!({ "calls": "49" }))
    );
    let call = ["authorize", "release-42", DELETE_FILE, "--args", ARGS, "-o", "json"];
    let asked = dev.run(&call).with_code(7).json();
    let gate = asked["gate"].as_str().unwrap().rsplit('/').next().unwrap();
    let gates = dev.json(&["list", "gates"]);
    assert_eq!(
        (&gates["gates"][0]["name"], &gates["gates"][0]["requestedBy"]),
        (&asked["gate"], &json!("agent"))
    );
    let commented = dev.json(&["decide", gate, "discuss", "--comment", "what is in it?"]);
    assert_eq!(commented["gate"]["status"], "GATE_STATUS_OPEN");
    let decided = dev.json(&["decide", gate, "approve", "--comment", "this once"]);
    assert_eq!(decided["gate"]["resolution"]["comment"], "this once");
    let granted = dev.run(&call).with_code(0).json();
    assert_eq!(granted["grantUsed"], true);

    for (answer, at) in [("yes", "migration-check"), ("n/a", "traffic-check")] {
        assert_eq!(dev.json(&["answer", "release-42", answer])["session"]["at"], json!([at]));
    }
    let done = &dev.json(&["answer", "release-42", "yes", "--note", "all quiet"])["session"];
    assert_eq!(done["status"], "SESSION_STATUS_COMPLETED");
    assert_eq!(dev.json(&["get", "release-42"])["session"]["status"], "SESSION_STATUS_COMPLETED");
    let events = dev.run(&["list", "events", "release-42", "-o", "jsonl"]).with_code(0).lines();
    let watched = dev.run(&["watch", "release-42", "-o", "jsonl"]).with_code(0).lines();
    assert_eq!(events, watched, "a watch of an ended session tells its history, and ends");
    assert_eq!(types(&events).first(), Some(&"session.started"));
    assert_eq!(types(&events).last(), Some(&"session.completed"));
    let decisions = dev.json(&["list", "decisions", "release-42"]);
    assert_eq!(decisions["decisions"].as_array().map(Vec::len), Some(3));
}

#[test]
fn people_read_cards_and_tables_and_what_to_type() {
    let dev = Dev::start();
    let deployed = dev.run(&["deploy", &deploy_gate()]).with_code(0);
    assert!(deployed.out.contains("version     1, new\n"), "{deployed:?}");
    assert_eq!(deployed.err, "next  switchward start deploy-gate\n");
    let started = dev.run(&["start", "deploy-gate", "--key", "release-42"]).with_code(0);
    assert!(started.out.contains("definition   deploy-gate, version 1\n"), "{started:?}");
    assert!(started.out.contains("answers      yes\n             no  blocks the session\n"), "{started:?}");
    assert_eq!(started.err, "next  switchward answer release-42 yes   (or no)\n");
    let allowed = dev.run(&["authorize", "release-42", "bash"]).with_code(0);
    assert!(
        allowed.out.starts_with("allowed  bash\n") && allowed.out.contains("remaining     49 calls\n"),
        "{allowed:?}"
    );
    let asked = dev.run(&["authorize", "release-42", DELETE_FILE, "--args", ARGS]).with_code(7);
    assert!(asked.out.starts_with("a person is asked  mcp:filesystem:delete_file\n"), "{asked:?}");
    assert!(asked.err.starts_with("next  switchward get gat_"), "{asked:?}");
    let gates = dev.run(&["list", "gates", "-q"]).with_code(0);
    assert!(gates.out.starts_with("GATE ") && gates.out.contains(ARGS), "{gates:?}");
    assert_eq!(gates.err, "");
    let sessions = dev.run(&["list", "sessions", "--filter", "status=\"waiting\""]).with_code(0);
    assert!(sessions.out.starts_with("SESSION ") && sessions.out.contains(" release-42 "), "{sessions:?}");
    let explained = dev.run(&["explain", "release-42", "bash"]).with_code(0);
    assert!(explained.out.contains("decision      would be allowed\n"), "{explained:?}");
    let definition = dev.run(&["get", "deploy-gate"]).with_code(0);
    assert!(definition.out.contains("active_version  1\n"), "{definition:?}");
}

#[test]
fn a_refusal_says_what_would_have_been_accepted() {
    let dev = release();
    let refused = dev.run(&["answer", "release-42", "yess"]).with_code(4);
    assert!(
        refused.err.contains("  reason   ANSWER_NOT_ALLOWED\n  allowed  yes, no\n  nearest  yes\n"),
        "{refused:?}"
    );
    assert_eq!(refused.out, "");
    for (words, code, reason) in [
        (["get", "ses_nothing"].as_slice(), 3, "NOT_FOUND"),
        (&["answer", "release-42", "yes", "--state", "traffic-check"], 4, "SEQUENCE_CONFLICT"),
        (&["start", "deploy-gate", "--key", "release-42"], 4, "ALREADY_EXISTS"),
        (&["start", "deploy-gate", "--role", "auditor"], 6, "POLICY_DENIED"),
        (&["list", "sessions", "--filter", "colour=\"red\""], 2, "FIELD_INVALID"),
        (&["list", "keys", "--as", "agent"], 6, "ROLE_NOT_ALLOWED"),
        (&["get", "deploy-gate", "--api-key", "swk_1"], 6, "CREDENTIAL_INVALID"),
        (&["resume", "release-42"], 4, "STATE_MISMATCH"),
    ] {
        let error = dev.run(&[words, &["-o", "json"]].concat()).with_code(code).error();
        assert_eq!(error["reason"], reason, "{words:?}: {error}");
    }
}

#[test]
fn json_says_what_the_json_api_says() {
    let dev = release();
    let key = dev.ready["agent_key"].as_str().unwrap();
    let typed = dev.run(&["answer", "release-42", "maybe", "-o", "json"]).with_code(4).error();
    let api =
        dev.post("SessionService/AnswerCheckpoint", key, &json!({ "name": "release-42", "answer": "maybe" }));
    assert_eq!((&typed["code"], &typed["message"]), (&api["code"], &api["message"]));
    for (ours, theirs) in typed["details"].as_array().unwrap().iter().zip(api["details"].as_array().unwrap())
    {
        assert_eq!((&ours["type"], &ours["debug"]), (&theirs["type"], &theirs["debug"]));
    }
    assert_eq!(typed["metadata"], api["details"][0]["debug"]["metadata"]);
    let typed = dev.json(&["get", "release-42", "--as", "agent"]);
    assert_eq!(typed, dev.post("SessionService/GetSession", key, &json!({ "name": "release-42" })));
}

#[test]
fn a_wrong_definition_is_refused_with_its_positions() {
    let dev = Dev::start();
    let folder =
        folder(&[("bad.json", r#"{"name": "bad", "initial": "a", "states": {"b": {"question": "?"}}}"#)]);
    let path = folder.path().join("bad.json").to_str().unwrap().to_owned();
    let refused = dev.run(&["deploy", &path]).with_code(5);
    assert!(refused.err.contains("DEFINITION_INVALID") && refused.err.contains("bad.json:1:"), "{refused:?}");
    assert!(refused.err.contains("switchward check"), "{refused:?}");
    dev.run(&["deploy", "/nowhere/x.json", &deploy_gate()]).with_code(3);
    let none = dev.json(&["list", "definitions"]);
    assert_eq!(none, json!({}), "nothing is deployed where a file is missing");
}

#[test]
fn a_request_id_makes_a_repetition_the_same() {
    let dev = release();
    let start = ["start", "deploy-gate", "--request-id", "once"];
    assert_eq!(dev.json(&start)["session"]["name"], dev.json(&start)["session"]["name"]);
    let call = ["authorize", "release-42", "bash", "--request-id", "call-1"];
    assert_eq!(dev.json(&call)["remaining"], dev.json(&call)["remaining"]);
    let other = ["authorize", "release-42", "curl", "--request-id", "call-1", "-o", "json"];
    assert_eq!(dev.run(&other).with_code(4).error()["reason"], "REQUEST_ID_REUSED");
    dev.run(&["deploy", &deploy_gate(), &deploy_gate(), "--request-id", "x"]).with_code(2);
}

#[test]
fn a_person_pauses_resumes_and_cancels() {
    let dev = release();
    let paused = &dev.json(&["pause", "release-42", "--reason", "lunch"])["session"];
    assert_eq!(paused["status"], "SESSION_STATUS_SUSPENDED");
    let denied = dev.run(&["authorize", "release-42", "bash", "-o", "json"]).with_code(6).json();
    assert_eq!(denied["decision"], "TOOL_DECISION_DENY");
    assert_eq!(dev.json(&["resume", "release-42"])["session"]["status"], "SESSION_STATUS_WAITING");
    let unsure = dev.run(&["cancel", "release-42"]).with_code(2);
    assert!(unsure.err.contains("--yes"), "{unsure:?}");
    assert_eq!(dev.json(&["cancel", "release-42", "--yes"])["session"]["status"], "SESSION_STATUS_CANCELLED");
    let late = dev.run(&["answer", "release-42", "yes", "-o", "json"]).with_code(4).error();
    assert_eq!(late["reason"], "SESSION_TERMINAL");
}

#[test]
fn an_admin_ends_what_a_session_holds() {
    let dev = release();
    let running = dev.run(&["session", "erase", "release-42", "--yes", "-o", "json"]).with_code(4).error();
    assert_eq!(running["reason"], "STATE_MISMATCH");
    dev.run(&["cancel", "release-42", "--yes"]).with_code(0);
    let id = dev.json(&["get", "release-42"])["session"]["name"].as_str().unwrap().to_owned();
    let agent = dev.run(&["session", "delete", "release-42", "--yes", "--as", "agent", "-o", "json"]);
    assert_eq!(agent.with_code(6).error()["reason"], "ROLE_NOT_ALLOWED");
    let unsure = dev.run(&["session", "erase", "release-42"]).with_code(2);
    assert!(unsure.err.contains("--yes"), "{unsure:?}");
    let erased = dev.json(&["session", "erase", "release-42", "--yes"]);
    assert!(erased["goneTime"].is_string() && erased["session"]["sessionId"].is_null(), "{erased}");
    dev.run(&["session", "delete", "release-42", "--yes"]).with_code(0);
    dev.run(&["get", &id]).with_code(3);

    let rules = r#"{"rules": [{"ended_sessions": "400d"}, {"definition": "deploy-gate", "history": "30d"}]}"#;
    let folder = folder(&[("retention.json", rules), ("wrong.json", r#"{"rules": [{"history": "soon"}]}"#)]);
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    dev.run(&["retention", "put", &path("wrong.json")]).with_code(2);
    dev.run(&["retention", "put", &path("retention.json")]).with_code(2);
    dev.run(&["retention", "put", &path("retention.json"), "--yes"]).with_code(0);
    let shown = dev.run(&["retention", "get"]).with_code(0);
    assert!(shown.out.contains("(all others)") && shown.out.contains("30d"), "{shown:?}");
}

#[test]
fn what_was_deployed_is_given_back_byte_for_byte() {
    let dev = release();
    for name in ["deploy-gate", "deploy-gate/versions/1", "deploy-gate/versions/latest"] {
        let source = dev.run(&["get", name, "--source"]).with_code(0).out;
        assert_eq!(source, std::fs::read_to_string(deploy_gate()).unwrap(), "{name}");
    }
    let again = dev.json(&["deploy", &deploy_gate()]);
    assert_eq!((&again["created"], &again["version"]["number"]), (&Value::Null, &json!(1)));
}

#[test]
fn keys_are_made_used_and_revoked() {
    let dev = release();
    let made = dev.json(&["keys", "create", "approver", "--subject", "dana", "--expires-in", "90d"]);
    let (secret, name) = (made["secret"].as_str().unwrap(), made["apiKey"]["name"].as_str().unwrap());
    let id = name.rsplit('/').next().unwrap();
    dev.run(&["list", "gates", "--api-key", secret]).with_code(0);
    dev.run(&["keys", "create", "agent", "--api-key", secret]).with_code(6);
    dev.run(&["keys", "revoke", id]).with_code(2);
    dev.run(&["keys", "revoke", id, "--yes"]).with_code(0);
    dev.run(&["list", "gates", "--api-key", secret]).with_code(6);
    assert!(!dev.run(&["list", "keys"]).with_code(0).out.contains(secret));
}

#[test]
fn the_clock_is_moved_by_hand() {
    let dev = release();
    for _ in 0..50 {
        dev.run(&["authorize", "release-42", "bash"]).with_code(0);
    }
    let denied = dev.run(&["authorize", "release-42", "bash"]).with_code(6);
    assert!(
        denied.out.starts_with("denied  bash  RATE_LIMITED\n") && denied.out.contains("retry_after   1h\n"),
        "{denied:?}"
    );
    let before = dev.json(&["clock"]);
    let after = dev.json(&["clock", "advance", "1h"]);
    assert_ne!(before, after);
    assert_eq!(dev.json(&["clock"]), after);
    dev.run(&["authorize", "release-42", "bash"]).with_code(0);
}

#[test]
fn lists_are_cut_where_it_is_asked_for() {
    let dev = release();
    for _ in 0..4 {
        dev.run(&["start", "deploy-gate"]).with_code(0);
    }
    let some = dev.json(&["list", "sessions", "--limit", "2"]);
    assert_eq!(some["sessions"].as_array().map(Vec::len), Some(2));
    let token = some["nextPageToken"].as_str().unwrap();
    let rest = dev.json(&["list", "sessions", "--page-token", token]);
    assert_eq!(rest["sessions"].as_array().map(Vec::len), Some(3));
    assert_eq!(dev.run(&["list", "sessions", "-o", "jsonl", "--limit", "0"]).with_code(0).lines().len(), 5);
    assert!(dev.run(&["list", "sessions", "--limit", "2"]).with_code(0).err.contains("--limit 0"));
}

#[test]
fn a_watch_goes_on_where_a_killed_server_left_it() {
    let mut dev = release();
    let mut watch =
        dev.command().args(["watch", "release-42", "-o", "jsonl"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    let mut seen: Vec<Value> = Vec::new();
    let process = watch.id();
    let mut next = || within(process, "the watch goes on", || lines.next());
    let mut read_until = |kind: &str, state: &str| loop {
        let line: Value = serde_json::from_str(&next().expect("there is more to come").unwrap()).unwrap();
        let found = line["type"] == kind && (state.is_empty() || line["state"] == state);
        seen.push(line);
        if found {
            return;
        }
    };
    read_until("session.state_entered", "env-check");
    dev.run(&["answer", "release-42", "yes"]).with_code(0);
    read_until("session.state_entered", "migration-check");
    dev.restart();
    dev.run(&["answer", "release-42", "n/a"]).with_code(0);
    read_until("session.state_entered", "traffic-check");
    dev.run(&["answer", "release-42", "yes"]).with_code(0);
    read_until("session.completed", "");
    assert!(next().is_none(), "the watch ends with the session");
    assert_eq!(within(process, "the watch ends", || watch.wait()).unwrap().code(), Some(0));
    assert_eq!(seen, dev.run(&["list", "events", "release-42", "-o", "jsonl"]).with_code(0).lines());
}
