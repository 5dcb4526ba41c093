//! `switchward simulate`.

use serde_json::{Value, json};

use crate::support::{Dev, deploy_gate, folder, repository, run};

fn scenario() -> String {
    repository("tests/corpus/checkpoint/scenarios/answer-not-allowed.yaml")
        .to_str()
        .expect("a plain path")
        .to_owned()
}

/// A scenario of the deploy gate with this expectation after its first answer.
fn written(expect: &str) -> tempfile::TempDir {
    let gate = std::fs::read_to_string(deploy_gate()).expect("it can be read");
    let steps = format!(
        "definition: gate.json\nstart:\n  expect: {{at: env-check}}\nsteps:\n  - answer: {{answer: \"yes\"}}\n    \
         expect: {{{expect}}}\n"
    );
    folder(&[("gate.json", &gate), ("scenario.yaml", &steps)])
}

#[test]
fn a_scenario_that_holds_is_ok() {
    let ended = run(["simulate", &scenario()]).with_code(0);
    assert!(ended.out.contains("answer-not-allowed.yaml: ok, "), "{ended:?}");
    let quiet = run(["simulate", "-q", &scenario(), &scenario()]).with_code(0);
    assert_eq!((quiet.out.as_str(), quiet.err.as_str()), ("", ""));
    let both = run(["simulate", &scenario(), &scenario()]).with_code(0);
    assert!(both.out.ends_with("2 scenarios played\n"), "{both:?}");
}

#[test]
fn an_expectation_that_does_not_hold_ends_with_5() {
    let folder = written("at: traffic-check");
    let path = folder.path().join("scenario.yaml");
    let ended = run(["simulate".as_ref(), path.as_os_str()]).with_code(5);
    let position = format!("{}:6:", path.display());
    assert!(
        ended.out.starts_with(&position) && ended.out.contains("step 1 (answer, line 5): at does not hold"),
        "{ended:?}"
    );
    assert!(ended.out.contains("traffic-check") && ended.out.contains("migration-check"), "{ended:?}");
    assert_eq!(ended.err, "");
}

#[test]
fn json_is_one_object_a_line_for_each_file() {
    let (holds, fails) = (written("at: migration-check"), written("at: traffic-check"));
    let path = |folder: &tempfile::TempDir| folder.path().join("scenario.yaml").to_str().unwrap().to_owned();
    let ended = run(["simulate", "-o", "json", &path(&holds), &path(&fails), "/nowhere/s.yaml"]).with_code(2);
    let lines = ended.lines();
    assert_eq!((&lines[0]["file"], &lines[0]["ok"]), (&json!(path(&holds)), &json!(true)));
    let step = json!({
        "index": 1,
        "verb": "answer",
        "ok": false,
        "expected": { "at": "traffic-check" },
        "seen": lines[1]["steps"][1]["seen"],
    });
    assert_eq!(lines[1]["steps"][1], step);
    assert!(lines[1]["session"].is_object());
    assert_eq!((&lines[2]["file"], &lines[2]["ok"]), (&json!("/nowhere/s.yaml"), &json!(false)));
}

#[test]
fn what_is_no_scenario_ends_with_2() {
    let folder = folder(&[("s.yaml", "definition: gone.json\nsteps:\n  - dance: {}\n")]);
    let path = folder.path().join("s.yaml");
    let ended = run(["simulate".as_ref(), path.as_os_str()]).with_code(2);
    assert!(ended.out.contains("error[SW") && ended.out.contains("s.yaml:3:"), "{ended:?}");
    let report =
        run(["simulate".as_ref(), path.as_os_str(), "-o".as_ref(), "json".as_ref()]).with_code(2).json();
    assert_eq!((&report["ok"], &report["steps"]), (&json!(false), &json!([])));
    assert_eq!(report["findings"][0]["line"], 3);
    run(["simulate", "/nowhere/s.yaml"]).with_code(2);
    run(["simulate".as_ref(), folder.path().as_os_str()]).with_code(2);
}

#[test]
fn a_definition_that_is_gone_is_reported_where_it_is_named() {
    let folder = folder(&[("s.yaml", "definition: gone.json\nsteps: []\n")]);
    let ended = run(["simulate".as_ref(), folder.path().join("s.yaml").as_os_str()]).with_code(2);
    assert!(ended.out.contains("gone.json does not exist") && ended.out.contains("s.yaml:1:"), "{ended:?}");
}

/// A scenario of the corpus with several timers due in one step, and the same on a server whose clock is advanced as far.
#[test]
fn a_server_whose_clock_is_moved_has_the_same_history_as_a_scenario() {
    let corpus = repository("tests/corpus/conversation");
    let path = |name: &str| corpus.join(name).to_str().expect("a plain path").to_owned();
    let played = run(["simulate", &path("scenarios/approval-reminded-in-one-step.yaml"), "-o", "json"]);
    let played = played.with_code(0).json();
    let seen = played["steps"][2]["seen"]["events"].as_array().expect("events").clone();
    let dev = Dev::start();
    dev.run(&["deploy", &path("definitions/escalate.yaml")]).with_code(0);
    let start = ["start", "escalate", "--key", "buy-1", "--remind-every", "90m", "--reminders", "2"];
    dev.run(&[&start[..], &["--as", "person"]].concat()).with_code(0);
    dev.run(&["turn", "buy-1"]).with_code(0);
    let before = dev.run(&["list", "events", "buy-1", "-o", "jsonl"]).with_code(0).lines();
    let asked = before.iter().find(|event| event["type"] == "approval.requested").expect("a gate").clone();
    dev.run(&["clock", "advance", "4h"]).with_code(0);
    let events = dev.run(&["list", "events", "buy-1", "-o", "jsonl"]).with_code(0).lines();
    // Scenarios do not include the delivery of mails.
    let relevant: Vec<&Value> = events[before.len()..]
        .iter()
        .filter(|event| {
            let kind = event["type"].as_str().unwrap_or_default();
            kind.starts_with("approval.") || kind == "effect.queued"
        })
        .collect();
    let kinds: Vec<Value> = relevant.iter().map(|event| event["type"].clone()).collect();
    assert_eq!(kinds, seen);
    let minutes = |event: &Value| {
        let at = |event: &Value| -> jiff::Timestamp {
            event["time"].as_str().expect("a time").parse().expect("a time")
        };
        (at(event).as_second() - at(&asked).as_second()) / 60
    };
    let of_gate = |event: &&&Value| event["type"] != "effect.queued";
    let fired: Vec<i64> = relevant.iter().filter(of_gate).map(|event| minutes(event)).collect();
    assert_eq!(fired, [90, 180, 240], "each at its own time");
}
