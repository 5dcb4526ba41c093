//! Output for callers: the texts of decisions, the next command for their own key, earlier messages, what a call closed.

use serde_json::{Value, json};

use crate::support::{Dev, deploy_gate, folder, repository};

const DELETE_FILE: &str = "mcp:filesystem:delete_file";

/// A server on which the agent has asked for a call.
fn asked() -> (Dev, String) {
    let dev = Dev::start();
    dev.run(&["deploy", &deploy_gate()]).with_code(0);
    dev.run(&["start", "deploy-gate", "--key", "release-42"]).with_code(0);
    let asked = dev.run(&["authorize", "release-42", DELETE_FILE, "-o", "json"]).with_code(7).json();
    let gate = asked["gate"].as_str().and_then(|name| name.rsplit('/').next()).expect("a gate").to_owned();
    (dev, gate)
}

#[test]
fn what_is_advised_works_for_the_key_that_reads_it() {
    let (dev, gate) = asked();
    let hint = format!("next  switchward get {gate}   (person@switchward.localhost is asked)\n");
    let again = dev.run(&["authorize", "release-42", DELETE_FILE]).with_code(7);
    assert!(again.err.starts_with(&hint), "{again:?}");
    for words in [&["get", "release-42"][..], &["list", "gates"], &["get", &gate]] {
        let agents = dev.run(&[words, &["--as", "agent"]].concat()).with_code(0);
        assert!(agents.err.contains(&hint) && !agents.err.contains("decide"), "{words:?}: {agents:?}");
        let persons = dev.run(words).with_code(0);
        let advised = format!("next  switchward decide {gate} approve   (or reject)\n");
        assert!(persons.err.contains(&advised), "{words:?}: {persons:?}");
    }
    let worker = dev.run(&["get", "release-42", "--as", "worker"]).with_code(0);
    assert!(worker.err.contains(&hint) && !worker.err.contains("answer"), "{worker:?}");
    dev.run(&["decide", &gate, "approve"]).with_code(0);
}

const SURVEY: &str = "name: survey
states:
  - {name: rate, type: task, task_template: {participants_from: gathered.people, instructions: Rate us.}}
  - {name: done, type: conversation}
transitions:
  - {from: rate, to: done, guards: [{type: all_tasks_complete}]}
";

#[test]
fn a_part_of_a_task_is_advised_to_its_participant_alone() {
    let dev = Dev::start();
    let folder = folder(&[("survey.yaml", SURVEY)]);
    dev.run(&["deploy", folder.path().join("survey.yaml").to_str().expect("a path")]).with_code(0);
    let people = r#"{"people": ["ann@example.com", "person"]}"#;
    dev.run(&["start", "survey", "--key", "survey-1", "--input", people]).with_code(0);
    let gates = dev.json(&["list", "gates"])["gates"].clone();
    let name = |at: usize| gates[at]["name"].as_str().and_then(|it| it.rsplit('/').next()).expect("a gate");
    assert_eq!(gates[0]["callerDecisions"], Value::Null, "{gates}");
    assert_eq!(gates[1]["callerDecisions"], json!(["GATE_DECISION_ANSWER"]));
    let anns = dev.run(&["get", name(0)]).with_code(0);
    assert_eq!(anns.err, format!("next  switchward get {}   (ann@example.com is asked)\n", name(0)));
    let own = format!("next  switchward decide {} answer --answer 'Five stars'\n", name(1));
    assert_eq!(dev.run(&["get", name(1)]).with_code(0).err, own);
    assert_eq!(dev.run(&["list", "gates"]).with_code(0).err, own, "the one that the reader can answer");
    dev.run(&["decide", name(1), "answer", "--answer", "Five stars"]).with_code(0);
}

#[test]
fn every_word_for_a_decision_is_shown_as_one_of_two() {
    for (typed, status, word, decision) in [
        ("approve", "approved by person", "approve", "GATE_DECISION_APPROVE"),
        ("resume", "approved by person", "approve", "GATE_DECISION_APPROVE"),
        ("reject", "rejected by person", "reject", "GATE_DECISION_REJECT"),
        ("refuse", "rejected by person", "reject", "GATE_DECISION_REJECT"),
        ("decline", "rejected by person", "reject", "GATE_DECISION_REJECT"),
    ] {
        let (dev, gate) = asked();
        assert!(dev.run(&["decide", &gate, typed]).with_code(0).out.contains(status), "{typed}");
        assert_eq!(dev.json(&["get", &gate])["gate"]["resolution"]["decision"], decision, "{typed}");
        let events = dev.run(&["list", "events", "release-42", "-o", "jsonl"]).with_code(0).lines();
        let decided = events.iter().find(|event| event["type"] == "approval.decided").expect("it is decided");
        assert_eq!(decided["data"]["decision"], word, "{typed}");
    }
}

#[test]
fn a_message_is_kept_and_shown_and_what_comes_next_is_said() {
    let dev = Dev::start();
    dev.run(&["deploy", repository("tests/gallery/refund/refund.yaml").to_str().expect("a path")])
        .with_code(0);
    let next = "next  switchward message refund-7 TEXT   (a message of the user)\n\
                next  switchward turn refund-7   (ends the agent's turn and tries the transitions)\n";
    assert_eq!(dev.run(&["start", "refund", "--key", "refund-7"]).with_code(0).err, next);
    let kept = dev.run(&["message", "refund-7", "A-17, 250 dollars"]).with_code(0);
    assert!(kept.out.starts_with("recorded\n") && kept.out.contains("messages "), "{kept:?}");
    assert!(kept.out.contains("user: A-17, 250 dollars\n"), "{kept:?}");
    assert_eq!(kept.err, next);
    dev.run(&["record", "refund-7", "order=A-17", "amount=250"]).with_code(0);
    dev.run(&["turn", "refund-7", "Is that right?"]).with_code(0);
    let shown = dev.run(&["get", "refund-7", "--as", "agent"]).with_code(0);
    let lines: Vec<&str> = shown.out.lines().map(str::trim).collect();
    let at = lines.iter().position(|line| line.ends_with("user: A-17, 250 dollars")).expect("what was said");
    assert_eq!(lines[at + 1], "agent: Is that right?");
    assert_eq!(shown.err, next);
    let workers = dev.run(&["get", "refund-7", "--as", "worker"]).with_code(0);
    assert_eq!(workers.err, "", "a worker drives no conversation");
}

#[test]
fn a_call_that_voids_a_gate_says_so() {
    let (dev, gate) = asked();
    let answered = dev.run(&["answer", "release-42", "yes"]).with_code(0);
    let events = dev.run(&["list", "events", "release-42", "-o", "jsonl"]).with_code(0).lines();
    assert!(events.iter().any(|event| event["type"] == "approval.voided"), "{events:?}");
    let warned = format!("warning  {gate} is void: the session continued without its decision\n");
    assert!(answered.err.starts_with(&warned), "{answered:?}");
    let (dev, gate) = asked();
    let answered = dev.json(&["answer", "release-42", "yes"]);
    let voided = answered["session"]["voidedGates"].as_array().expect("it says so").clone();
    assert!(voided.len() == 1 && voided[0].as_str().is_some_and(|name| name.ends_with(&gate)), "{voided:?}");
    assert_eq!(dev.json(&["get", "release-42"])["session"]["voidedGates"], Value::Null, "it was that call");
}
