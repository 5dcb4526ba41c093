//! A conversation from its first message to the mail that ends it, and scenarios of a whole folder.

use serde_json::{Value, json};

use crate::mail_server::ASKS;
use crate::support::{Dev, folder, repository, run};

fn refund() -> String {
    repository("tests/gallery/refund/refund.yaml").to_str().expect("a plain path").to_owned()
}

/// The relevant fields of an answer's session.
fn summary(answer: &Value) -> Value {
    let session = &answer["session"];
    json!({ "at": session["at"][0], "status": session["status"], "data": session["data"] })
}

#[test]
fn a_refund_is_asked_for_routed_waited_for_and_confirmed() {
    let dev = Dev::start();
    dev.run(&["deploy", &refund()]).with_code(0);
    let start = ["start", "refund", "--key", "refund-7", "--contact", "sam@example.com"];
    let started = dev.json(&[&start[..], &["--input", "{\"customer\":\"Sam\"}"]].concat());
    assert_eq!(started["session"]["at"][0], "collect");
    let asks = "Ask Sam for the order number and the amount, and record both.";
    assert_eq!(started["session"]["instructions"], asks);

    dev.run(&["message", "refund-7", "It broke!"]).with_code(0);
    let reads = dev.json(&["turn", "refund-7", "One moment."]);
    assert_eq!(reads["session"]["at"][0], "read", "nothing is recorded: a worker reads it");
    let taken = dev.json(&["work", "poll", "--kind", "extract"])["items"][0].clone();
    let [work, token] = ["name", "leaseToken"].map(|key| taken[key].as_str().expect("a text").to_owned());
    dev.run(&["work", "complete", &work, &token, "--result", "{}"]).with_code(0);
    assert_eq!(dev.json(&["get", "refund-7"])["session"]["at"][0], "collect", "and finds nothing");
    dev.run(&["message", "refund-7", "A-17, 250 dollars"]).with_code(0);
    dev.run(&["record", "refund-7", "order= A-17 ", "amount=250"]).with_code(0);
    dev.run(&["signal", "refund-7"]).with_code(0);
    let data = json!({ "customer": "Sam", "order": "A-17", "amount": 250.0, "notes": ["asked for 250"] });
    dev.run(&["turn", "refund-7"]).with_code(0);
    let routed = dev.json(&["get", "refund-7"]);
    assert_eq!(summary(&routed), json!({ "at": "review", "status": "SESSION_STATUS_WAITING", "data": data }));
    dev.run(&["message", "refund-7", "yes, exactly"]).with_code(0);
    let waits = dev.json(&["turn", "refund-7"]);
    assert_eq!(waits["session"]["open"][0]["kind"], "wait");
    let card = dev.run(&["get", "refund-7"]).with_code(0).out;
    assert!(card.contains("wait (time) at settle until ") && card.contains("order: \"A-17\""), "{card}");
    let early = dev.run(&["turn", "refund-7", "-o", "json"]).with_code(4).error();
    assert_eq!(early["reason"], "STATE_MISMATCH");

    dev.run(&["clock", "advance", "24h"]).with_code(0);
    // The watch goes on until the server has fired the timer, and ends with the session.
    let watched = dev.run(&["watch", "refund-7", "-o", "jsonl"]).with_code(0).lines();
    let events: Vec<&Value> = watched.iter().map(|update| update.get("event").unwrap_or(update)).collect();
    assert_eq!(summary(&dev.json(&["get", "refund-7"]))["status"], "SESSION_STATUS_COMPLETED");
    let mail = events.iter().find(|event| event["type"] == "effect.queued").expect("a mail");
    assert_eq!(mail["data"]["to"], "sam@example.com");
    assert_eq!(mail["data"]["subject"], "Your refund for A-17");
}

#[test]
fn retries_are_counted_and_what_does_not_fit_is_refused() {
    let dev = Dev::start();
    dev.run(&["deploy", &refund()]).with_code(0);
    dev.run(&["start", "refund", "--key", "refund-8"]).with_code(0);
    dev.run(&["retry", "refund-8"]).with_code(0);
    dev.run(&["retry", "refund-8"]).with_code(0);
    let spent = dev.run(&["retry", "refund-8", "-o", "json"]).with_code(4).error();
    assert_eq!(spent["reason"], "RETRY_EXHAUSTED");
    // A message that no run takes is reported as such: the deploy gate is no conversation.
    dev.run(&["deploy", &crate::support::deploy_gate()]).with_code(0);
    dev.run(&["start", "deploy-gate", "--key", "gate-1"]).with_code(0);
    for words in [&["message", "gate-1", "hello"][..], &["turn", "gate-1"], &["record", "gate-1", "a=1"]] {
        let refused = dev.run(&[words, &["-o", "json"]].concat()).with_code(4).error();
        assert_eq!(refused["reason"], "STATE_MISMATCH", "{words:?}");
    }
}

/// A workflow of one state and its end.
fn worker(name: &str) -> String {
    format!(
        "name: {name}\ndescription: All about {name}.\nstates:\n  - {{name: {name}-talk, type: conversation}}\n  - \
         {{name: {name}-end, type: conversation}}\ntransitions:\n  - {{from: {name}-talk, to: {name}-end, guards: \
         [{{type: data_contains, config: {{key: done}}}}]}}\n"
    )
}

#[test]
fn an_assistant_is_kept_shown_and_deleted_and_its_sessions_go_on() {
    let dev = Dev::start();
    let files = folder(&[
        ("refund.yaml", &worker("refund")),
        ("parcel.yaml", &worker("parcel")),
        ("told", "Be brief.\n"),
    ]);
    let path = |name: &str| files.path().join(name).to_str().expect("a plain path").to_owned();
    dev.run(&["deploy", &path("refund.yaml"), &path("parcel.yaml")]).with_code(0);
    let instructions = format!("@{}", path("told"));
    let put = ["assistant", "put", "support", "--workflow", "refund", "--workflow", "parcel"];
    let kept = dev.json(&[&put[..], &["--instructions", &instructions]].concat());
    assert_eq!(kept["assistant"]["workflows"], json!(["refund", "parcel"]));
    assert_eq!(dev.json(&["assistant", "get", "support"])["assistant"], kept["assistant"]);
    let card = dev.run(&["assistant", "get", "support"]).with_code(0).out;
    assert!(card.contains("refund, parcel") && card.contains("Be brief."), "{card}");
    let listed = dev.run(&["assistant", "list"]).with_code(0).out;
    assert!(listed.contains("support") && listed.contains("refund, parcel"), "{listed}");
    dev.run(&["start"]).with_code(2);
    dev.run(&["start", "--assistant", "nobody"]).with_code(3);

    dev.run(&["start", "--assistant", "support", "--key", "talk-1", "--message", "Where is it?"])
        .with_code(0);
    let card = dev.run(&["get", "talk-1"]).with_code(0).out;
    assert!(card.contains("not determined yet") && card.contains("support"), "{card}");
    dev.run(&["list", "sessions"]).with_code(0);
    let taken = dev.json(&["work", "poll", "--kind", "intent", "--queue", "support"]);
    let item = &taken["items"][0];
    assert_eq!(item["input"]["text"], "Where is it?");
    let (work, token) =
        (item["name"].as_str().expect("a name"), item["leaseToken"].as_str().expect("a token"));
    let result = "{\"workflows\":[\"parcel\"]}";
    dev.run(&["work", "complete", work, token, "--result", result]).with_code(0);
    assert_eq!(dev.json(&["get", "talk-1"])["session"]["at"][0], "parcel-talk");

    dev.run(&["assistant", "delete", "support"]).with_code(2);
    dev.run(&["assistant", "delete", "support", "--yes"]).with_code(0);
    dev.run(&["assistant", "get", "support"]).with_code(3);
    let switched = dev.json(&["switch", "talk-1", "refund"]);
    assert_eq!(switched["session"]["at"][0], "refund-talk", "live sessions keep what they began with");
}

#[test]
fn an_approval_is_shown_and_a_reply_that_is_passed_on_is_the_operators_decision() {
    let dev = Dev::start();
    let folder = folder(&[("asks.yaml", ASKS)]);
    dev.run(&["deploy", folder.path().join("asks.yaml").to_str().unwrap()]).with_code(0);
    let started = dev.json(&["start", "asks", "--key", "asks-1"]);
    let gate = started["session"]["waitingOn"][0]["name"].as_str().expect("a gate").to_owned();
    let card = dev.run(&["get", &gate]).with_code(0).out;
    assert!(card.contains("lead@example.com") && card.contains("Approval needed: decide"), "{card}");
    let refused = dev.run(&["decide", &gate, "approve", "-o", "json"]).with_code(6).error();
    assert_eq!(refused["reason"], "NOT_AN_APPROVER");
    let stays = dev.json(&["reply", "asks-1", "eve@example.com", "yes"]);
    assert_eq!(stays["session"]["at"][0], "decide");
    let refused =
        dev.run(&["reply", "asks-1", "lead@example.com", "approve", "-o", "json"]).with_code(6).error();
    assert_eq!(refused["reason"], "NOT_AN_APPROVER");
    let refused = dev
        .run(&["reply", "asks-1", "lead@example.com", "no", "--as", "agent", "-o", "json"])
        .with_code(6)
        .error();
    assert_eq!(refused["reason"], "ROLE_NOT_ALLOWED");

    let both = ASKS.replace("[lead@example.com]", "[lead@example.com, kim@acme.example]");
    let folder = self::folder(&[("asks.yaml", &both)]);
    dev.run(&["deploy", folder.path().join("asks.yaml").to_str().unwrap()]).with_code(0);
    let started = dev.json(&["start", "asks", "--key", "asks-2"]);
    let gate = started["session"]["waitingOn"][0]["name"].as_str().expect("a gate").to_owned();
    let key = dev.json(&["keys", "create", "operator", "--subject", "kim@acme.example"]);
    let key = key["secret"].as_str().expect("a key").to_owned();
    let words = ["reply", "asks-2", "lead@example.com", "no, thanks\ntoo dear", "--api-key", &key];
    let moved = dev.json(&words);
    assert_eq!(moved["session"]["at"][0], "stop");
    let card = dev.run(&["get", &gate]).with_code(0).out;
    assert!(
        card.contains("rejected by a reply vouched by kim@acme.example") && card.contains("too dear"),
        "{card}"
    );
    let listed = dev.json(&["list", "events", "asks-2"]).to_string();
    assert!(
        listed.contains("vouched_by=kim@acme.example") && !listed.contains("authenticated=true"),
        "{listed}"
    );
}

const SURVEY: &str = "name: survey
states:
  - {name: rate, type: task, task_template: {participants_from: gathered.people, instructions: Rate us.}}
  - {name: helper, type: delegate, assistant: analyst}
  - {name: done, type: conversation}
transitions:
  - {from: rate, to: helper, guards: [{type: all_tasks_complete}]}
  - {from: helper, to: done, guards: [{type: always}]}
";

#[test]
fn parts_of_a_task_are_listed_and_answered_and_another_assistant_takes_over() {
    let dev = Dev::start();
    let folder = folder(&[("survey.yaml", SURVEY)]);
    dev.run(&["deploy", folder.path().join("survey.yaml").to_str().unwrap()]).with_code(0);
    let people = r#"{"people": ["person", "ann@example.com"]}"#;
    dev.run(&["start", "survey", "--key", "survey-1", "--input", people]).with_code(0);
    let listed = dev.run(&["list", "gates"]).with_code(0).out;
    assert!(listed.contains("task: rate asks person") && listed.contains("asks ann@example.com"), "{listed}");
    let gates = dev.json(&["list", "gates", "--filter", "kind=\"task\""]);
    let gate = gates["gates"][0]["name"].as_str().expect("a gate").to_owned();
    let card = dev.run(&["get", &gate]).with_code(0);
    assert!(card.out.contains("approvers") && card.out.contains("Rate us."), "{card:?}");
    dev.run(&["decide", &gate, "answer"]).with_code(2);
    let answered = dev.json(&["decide", &gate, "answer", "--answer", "{\"rating\": 5}"]);
    assert_eq!(answered["gate"]["resolution"]["answer"]["rating"], 5.0);
    let card = dev.run(&["get", &gate]).with_code(0).out;
    assert!(card.contains("answered by person") && card.contains("{\"rating\": 5}"), "{card}");
    let refused =
        dev.run(&["reply", "survey-1", "ann@example.com", "Fine", "-o", "json"]).with_code(6).error();
    assert_eq!(refused["reason"], "NOT_AN_APPROVER", "it is Ann's to answer");
    let key = dev.json(&["keys", "create", "approver", "--subject", "ann@example.com"]);
    let key = key["secret"].as_str().expect("a key").to_owned();
    let gate = gates["gates"][1]["name"].as_str().expect("a gate").to_owned();
    dev.run(&["decide", &gate, "answer", "--answer", "Fine", "--api-key", &key]).with_code(0);
    assert_eq!(dev.json(&["get", "survey-1"])["session"]["at"][0], "helper");
    let polled = dev.json(&["work", "poll", "--kind", "delegate"]);
    assert_eq!(polled["items"][0]["input"]["assistant"], "analyst");
}

const HOLDS: &str = "definition: gate.yaml\nsteps:\n  - turn: {}\n    expect: {status: completed}\n";
const FAILS: &str = "definition: gate.yaml\nsteps:\n  - turn: {}\n    expect: {status: failed}\n";
const GATE: &str = "name: one\nstates:\n  - {name: talk, type: conversation}\ntransitions: []\n";

#[test]
fn a_folder_of_scenarios_is_played_and_reported() {
    let folder = folder(&[
        ("gate.yaml", GATE),
        ("good.yaml", HOLDS),
        ("deep/bad.yaml", &FAILS.replace("gate", "../gate")),
    ]);
    let path = folder.path().to_str().unwrap().to_owned();
    let report = folder.path().join("report.xml");
    let played = run(["test", &path, "--junit", report.to_str().unwrap()]).with_code(5);
    assert!(
        played.out.contains("2 scenarios in ") && played.out.contains("1 passed, 1 failed"),
        "{played:?}"
    );
    assert!(played.out.contains("bad.yaml") && !played.out.contains("good.yaml"), "{played:?}");
    let xml = std::fs::read_to_string(&report).expect("a report");
    for part in ["tests=\"2\" failures=\"1\" errors=\"0\"", "name=\"good.yaml\"", "<failure message="] {
        assert!(xml.contains(part), "{part}: {xml}");
    }
    let lines = run(["test", &path, "-o", "json"]).with_code(5).lines();
    let results: Vec<(bool, &str)> =
        lines.iter().map(|line| (line["ok"] == true, line["file"].as_str().unwrap())).collect();
    assert!(
        results.len() == 2 && results.iter().any(|(ok, file)| *ok && file.ends_with("good.yaml")),
        "{results:?}"
    );
    run(["test", folder.path().join("deep").to_str().unwrap()]).with_code(5);
    run(["test", repository("tests/gallery").to_str().unwrap()]).with_code(0);
    std::fs::write(folder.path().join("broken.yaml"), "definition: gate.yaml\nsteps: 1\n").unwrap();
    let broken = run(["test", &path]).with_code(2);
    assert!(broken.out.contains("1 unreadable"), "{broken:?}");
    run(["test", tempfile::tempdir().unwrap().path().to_str().unwrap()]).with_code(2);
}

#[test]
fn the_report_has_one_suite_for_each_folder_and_counts_every_scenario_once() {
    let folder = folder(&[
        ("gate.yaml", GATE),
        ("a.yaml", HOLDS),
        ("m/x.yaml", &HOLDS.replace("gate", "../gate")),
        ("z.yaml", FAILS),
    ]);
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let report = path("report.xml");
    // A scenario that is named beside its folder is the same one.
    let played = run(["test", &path(""), &path("a.yaml"), "--junit", &report]).with_code(5);
    assert!(
        played.out.contains("3 scenarios in ") && played.out.contains("2 passed, 1 failed"),
        "{played:?}"
    );
    let xml = std::fs::read_to_string(&report).expect("a report");
    let head = |tag: &str| -> Vec<String> {
        let tags = xml.split('<').filter(|part| part.starts_with(&format!("{tag} ")));
        tags.map(|tag| tag.split(" time=").next().unwrap_or_default().trim_end().to_owned()).collect()
    };
    assert_eq!(
        head("testsuites"),
        ["testsuites name=\"switchward test\" tests=\"3\" failures=\"1\" errors=\"0\""]
    );
    let suites = head("testsuite");
    assert_eq!(suites.len(), 2, "{xml}");
    let (top, deep) = (folder.path().to_str().unwrap().trim_end_matches('/'), path("m"));
    assert_eq!(
        suites[0],
        format!("testsuite name=\"{top}\" tests=\"2\" disabled=\"0\" errors=\"0\" failures=\"1\"")
    );
    assert_eq!(
        suites[1],
        format!("testsuite name=\"{deep}\" tests=\"1\" disabled=\"0\" errors=\"0\" failures=\"0\"")
    );
    assert_eq!(xml.matches("<testcase ").count(), 3, "{xml}");
}
