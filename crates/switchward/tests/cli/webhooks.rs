//! Endpoints: which messages they get, under which id, and what happens if they fail.

use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::BTreeSet;
use switchward_testkit::finished;

use crate::delivery_jobs::{Endpoint, ReceivedRequest};
use crate::support::{Dev, Ended, folder, form_token, run};

const PROCESS: &str = r#"{
    "name": "gate", "initial": "ask",
    "states": { "ask": { "question": "What now?", "answers": { "yes": { "next": null } } } }
}"#;

fn dev() -> Dev {
    let (dev, files) = (Dev::start(), folder(&[("gate.json", PROCESS)]));
    dev.json(&["deploy", &files.path().join("gate.json").to_string_lossy()]);
    dev
}

impl ReceivedRequest {
    fn id(&self) -> String {
        self.header("webhook-id").expect("a message has an id").to_owned()
    }

    fn kind(&self) -> &str {
        self.body["type"].as_str().unwrap_or_default()
    }

    fn take(self) {
        self.answer.send((200, json!({}))).expect("the request waits");
    }
}

#[test]
fn a_message_has_one_id_until_it_is_taken() {
    let (dev, ops) = (dev(), Endpoint::start());
    let put = dev.json(&["endpoint", "put", "ops", &ops.url, "--event", "session.completed"]);
    assert!(put["secret"].as_str().is_some_and(|secret| secret.starts_with("whsec_")), "{put}");
    let again = dev.json(&["endpoint", "put", "ops", &ops.url, "--event", "session.completed"]);
    assert_eq!(again["secret"], Value::Null, "a secret is shown once");
    dev.json(&["start", "gate", "--key", "told-1"]);
    dev.json(&["answer", "told-1", "yes"]);
    let first = ops.next("POST /");
    assert_eq!(first.kind(), "session.completed");
    let id = first.id();
    first.answer.send((500, json!({}))).expect("the request waits");
    let tried = RefCell::new(None);
    dev.until("it is tried again", || {
        dev.json(&["clock", "advance", "6s"]);
        *tried.borrow_mut() = ops.asked.try_recv().ok();
        tried.borrow().is_some()
    });
    let second = tried.into_inner().expect("it was tried again");
    assert_eq!(second.id(), id);
    assert_eq!(second.kind(), "session.completed");
    second.take();
    dev.until("nothing is on its way", || {
        dev.json(&["list", "effects"])["effects"].as_array().is_none_or(Vec::is_empty)
    });
    // A delivered message is sent again on request, under its id.
    let recovered = dev.json(&["endpoint", "recover", "ops", "--since", "1h", "--delivered"]);
    assert_eq!(recovered["sessions"][0]["messages"], 1, "{recovered}");
    let third = ops.next("POST /");
    assert_eq!(third.id(), id);
    third.take();
}

#[test]
fn an_endpoint_that_is_gone_is_sent_nothing_until_it_is_put_again() {
    let (dev, ops) = (dev(), Endpoint::start());
    dev.json(&["endpoint", "put", "ops", &ops.url, "--event", "session.started"]);
    dev.json(&["start", "gate", "--key", "lost-1"]);
    ops.next("POST /").answer.send((410, json!({}))).expect("the request waits");
    let reason = || dev.json(&["endpoint", "get", "ops"])["endpoint"]["disabledReason"].clone();
    dev.until("the endpoint is disabled", || reason() == "gone");
    dev.until("its message is a dead letter", || {
        dev.json(&["list", "effects", "--filter", "status=\"dead_letter\" AND kind=\"event\""])["effects"][0]
            ["to"]
            == "ops"
    });
    dev.json(&["start", "gate", "--key", "lost-2"]);
    let refused = dev.run(&["endpoint", "recover", "ops", "--since", "1h", "-o", "json"]).with_code(4);
    assert_eq!(refused.error()["reason"], "STATE_MISMATCH");
    dev.json(&["endpoint", "put", "ops", &ops.url, "--event", "session.started"]);
    let recovered = dev.json(&["endpoint", "recover", "ops", "--since", "1h"]);
    assert_eq!(recovered["sessions"].as_array().map(Vec::len), Some(2), "{recovered}");
    let mut sessions = BTreeSet::new();
    for _ in 0..2 {
        let asked = ops.next("POST /");
        sessions.insert(asked.body["data"]["session"].clone().to_string());
        asked.take();
    }
    assert_eq!(sessions.len(), 2, "the dead letter, and what was never queued");
    dev.until("nothing is missed", || {
        let missed = dev.json(&["endpoint", "recover", "ops", "--since", "1h"]);
        missed["sessions"].as_array().is_none_or(Vec::is_empty)
    });
}

#[test]
fn a_dead_letter_is_shown_sent_again_or_given_up() {
    let (dev, ops) = (dev(), Endpoint::start());
    dev.json(&["endpoint", "put", "ops", &ops.url, "--event", "session.started"]);
    dev.json(&["start", "gate", "--key", "dead-1"]);
    let first = ops.next("POST /");
    let id = first.id();
    first.answer.send((410, json!({}))).expect("the request waits");
    let dead =
        || dev.json(&["list", "effects", "--filter", "status=\"dead_letter\""])["effects"][0]["name"].clone();
    dev.until("its message is a dead letter", || dead().is_string());
    let name = dead().as_str().expect("a name").rsplit('/').next().expect("an id").to_owned();
    let listed = dev.run(&["list", "effects"]).with_code(0);
    assert!(listed.err.contains(&format!("switchward effect retry {name}")), "{}", listed.err);
    let shown = dev.run(&["effect", "show", &name]).with_code(0);
    for part in ["dead letter: ", "session.started", "end_time", "ops"] {
        assert!(shown.out.contains(part), "{part}: {}", shown.out);
    }
    dev.json(&["endpoint", "put", "ops", &ops.url, "--event", "session.started"]);
    let again = dev.run(&["effect", "retry", &name]).with_code(0);
    assert!(again.out.contains("pending") && again.out.contains("round "), "{}", again.out);
    let second = ops.next("POST /");
    assert_eq!(second.id(), id, "it is the same message");
    second.answer.send((410, json!({}))).expect("the request waits");
    dev.until("it is a dead letter again", || dead().is_string());
    let unsure = dev.run(&["effect", "dismiss", &name]).with_code(2);
    assert!(unsure.err.contains("--yes"), "{}", unsure.err);
    dev.run(&["effect", "dismiss", &name, "--yes"]).with_code(0);
    dev.run(&["effect", "show", &name]).with_code(3);
    assert_eq!(dead(), Value::Null);
}

#[test]
fn why_a_message_is_tried_again_is_shown() {
    let (dev, ops) = (dev(), Endpoint::start());
    dev.json(&["endpoint", "put", "ops", &ops.url, "--event", "session.started"]);
    dev.json(&["start", "gate", "--key", "again-1"]);
    ops.next("POST /").answer.send((503, json!({}))).expect("the request waits");
    let waiting = || dev.json(&["list", "effects"])["effects"][0].clone();
    dev.until("its attempt has failed", || waiting()["attempts"] == 1);
    let listed = dev.run(&["list", "effects"]).with_code(0);
    assert!(listed.out.contains("pending: receiver_refused"), "{}", listed.out);
    let name = waiting()["name"].as_str().expect("a name").to_owned();
    let shown = dev.run(&["effect", "show", &name]).with_code(0);
    for part in ["pending: receiver_refused", "answered 503", "attempts           1\n", "next_attempt_time"] {
        assert!(shown.out.contains(part), "{part}: {}", shown.out);
    }
}

/// One endpoint takes its time over every message, one refuses all of them: a third one gets its own all the same.
#[test]
fn an_endpoint_waits_for_no_other() {
    const SESSIONS: usize = 40;
    let (dev, slow, bad, good) = (dev(), Endpoint::start(), Endpoint::start(), Endpoint::start());
    for (name, endpoint) in [("slow", &slow), ("bad", &bad), ("good", &good)] {
        dev.json(&["endpoint", "put", name, &endpoint.url, "--event", "session.started"]);
    }
    let mut wanted = BTreeSet::new();
    for number in 0..SESSIONS {
        let key = format!("many-{number}");
        let started = dev.json(&["start", "gate", "--key", &key]);
        wanted.insert(started["session"]["name"].as_str().expect("a name").to_owned());
    }
    let mut held = Vec::new();
    while !wanted.is_empty() {
        held.extend(slow.asked.try_iter());
        for asked in bad.asked.try_iter() {
            asked.answer.send((503, json!({}))).expect("the request waits");
        }
        let asked = good.next("POST /");
        wanted.remove(asked.body["data"]["session"].as_str().expect("a session"));
        asked.take();
    }
    assert!(!held.is_empty(), "the slow one was asked, too");
}

#[test]
fn listen_prints_what_happens_and_leaves_nothing_behind() {
    let dev = dev();
    let mut listen = dev.command();
    listen.args(["listen", "--count", "1", "--event", "session.started", "-o", "json"]);
    let listening = listen.stdout(std::process::Stdio::piped()).spawn().expect("it starts");
    dev.until("it listens", || {
        dev.json(&["endpoint", "list"])["endpoints"].as_array().is_some_and(|all| all.len() == 1)
    });
    dev.json(&["start", "gate", "--key", "heard-1"]);
    let ended = finished(listening);
    assert!(ended.status.success(), "{ended:?}");
    let printed: Value = serde_json::from_slice(&ended.stdout).expect("one line of JSON");
    assert_eq!((&printed["message"]["type"], &printed["refused"]), (&json!("session.started"), &Value::Null));
    assert!(dev.json(&["endpoint", "list"])["endpoints"].as_array().is_none_or(Vec::is_empty));
}

#[test]
fn listen_leaves_nothing_behind_when_nobody_reads_its_output() {
    let dev = dev();
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    // It ends as soon as it would print where it listens.
    Ended::printing_to(writer, dev.command().arg("listen")).with_code(0);
    assert!(dev.json(&["endpoint", "list"])["endpoints"].as_array().is_none_or(Vec::is_empty));
}

#[test]
fn a_ping_and_an_example_say_how_they_were_answered() {
    let (dev, ops) = (dev(), Endpoint::start());
    dev.json(&["endpoint", "put", "ops", &ops.url]);
    for (words, kind, status, code) in [
        (vec!["endpoint", "ping", "ops"], "ping", 200, 0),
        (vec!["trigger", "approval.requested", "ops"], "approval.requested", 500, 1),
    ] {
        let result = std::thread::scope(|scope| {
            let command = scope.spawn(|| dev.run(&[&words[..], &["-o", "json"]].concat()).with_code(code));
            let asked = ops.next("POST /");
            assert_eq!(asked.kind(), kind);
            asked.answer.send((status, json!({}))).expect("the request waits");
            command.join().expect("the command ends").json()
        });
        assert_eq!(result["httpStatus"], status);
        assert_eq!(result["code"].as_str().unwrap_or_default().is_empty(), code == 0, "{result}");
    }
    drop(ops);
}

#[test]
fn every_type_of_event_has_a_schema() {
    let schema = |words: &[&str]| -> Value {
        let printed = run([&["schema", "events"], words].concat()).with_code(0).out;
        serde_json::from_str(&printed).expect("JSON")
    };
    let all = schema(&[]);
    let all = all.as_object().expect("one object");
    assert!(all.len() > 20 && all.contains_key("session.completed"), "{all:?}");
    assert_eq!(schema(&["session.completed"]), all["session.completed"]);
    run(["schema", "events", "session.done"]).with_code(2);
}

#[test]
fn a_source_is_made_shown_and_deleted() {
    let dev = dev();
    let made = dev.json(&["source", "create", "shop", "--session-at", "/order/session", "--event", "paid"]);
    assert!(made["secret"].as_str().is_some_and(|secret| secret.starts_with("whsec_")), "{made}");
    let listed = dev.json(&["source", "list"]);
    assert_eq!(listed["sources"][0]["eventKey"], "paid", "{listed}");
    let rotated = dev.json(&["source", "rotate", "shop", "--now"]);
    assert_ne!(rotated["secret"], made["secret"]);
    dev.run(&["source", "delete", "shop"]).with_code(2);
    dev.json(&["source", "delete", "shop", "--yes"]);
    dev.run(&["source", "get", "shop"]).with_code(3);
}

#[test]
fn a_development_server_inspects_its_own_webhooks() {
    let dev = dev();
    let page = dev.page("/webhooks").1;
    assert!(page.contains("The inspector is not listening yet"));
    let kind = ("content-type", "application/x-www-form-urlencoded");
    let (head, _) = dev.send("/webhooks/listen", &[kind], "token=0");
    assert!(head.starts_with("http/1.1 403"), "{head}");
    let (head, _) = dev.send("/webhooks/listen", &[kind], &format!("token={}", form_token(&page)));
    assert!(head.starts_with("http/1.1 303"), "{head}");
    let hook = dev.json(&["endpoint", "get", "inspector"])["endpoint"]["url"].clone();
    let hook = hook.as_str().and_then(|url| url.strip_prefix(dev.address())).expect("a path").to_owned();
    let (head, _) = dev.send(&hook, &[], "{\"type\":\"session.completed\"}");
    assert!(head.starts_with("http/1.1 401"), "what nobody has signed is not taken: {head}");
    for guessed in ["/webhooks/in", "/webhooks/in/0", &format!("{hook}0")] {
        let (head, _) = dev.send(guessed, &[], "{}");
        assert!(head.starts_with("http/1.1 404"), "{guessed}: {head}");
    }
    dev.json(&["start", "gate", "--key", "seen-1"]);
    dev.until("what happens is shown", || {
        let page = dev.page("/webhooks").1;
        page.contains("<h2>session.started</h2>") && page.contains("<td>good</td>")
    });
}

/// Events without a session: an endpoint gets those of definitions, and of a disabled endpoint.
#[test]
fn definitions_and_disabled_endpoints_are_notified() {
    let (dev, ops, gone) = (Dev::start(), Endpoint::start(), Endpoint::start());
    let wants = ["--event", "definition.*", "--event", "endpoint.disabled"];
    dev.json(&[&["endpoint", "put", "ops", &ops.url], &wants[..]].concat());
    let files = folder(&[("gate.json", PROCESS)]);
    dev.json(&["deploy", &files.path().join("gate.json").to_string_lossy()]);
    let mut kinds = BTreeSet::new();
    let mut ids = BTreeSet::new();
    for _ in 0..2 {
        let request = ops.next("POST /");
        let data = &request.body["data"];
        assert_eq!((&data["definition"], &data["version"]), (&json!("gate"), &json!(1)), "{}", request.body);
        kinds.insert(request.kind().to_owned());
        ids.insert(request.id());
        request.take();
    }
    assert_eq!(kinds.into_iter().collect::<Vec<_>>(), ["definition.activated", "definition.deployed"]);
    assert_eq!(ids.len(), 2);
    dev.json(&["endpoint", "put", "gone", &gone.url, "--event", "session.started"]);
    // How an endpoint does is noted once a minute at most.
    dev.json(&["clock", "advance", "1m"]);
    dev.json(&["start", "gate", "--key", "told-1"]);
    gone.next("POST /").answer.send((410, json!({}))).expect("the request waits");
    let first = ops.next("POST /");
    let data = &first.body["data"];
    assert_eq!((first.kind(), &data["reason"]), ("endpoint.disabled", &json!("gone")));
    assert!(data["endpoint"].as_str().is_some_and(|name| name.ends_with("/endpoints/gone")), "{data}");
    // It is tried again under its id.
    let id = first.id();
    first.answer.send((500, json!({}))).expect("the request waits");
    let tried = RefCell::new(None);
    dev.until("it is tried again", || {
        dev.json(&["clock", "advance", "6s"]);
        *tried.borrow_mut() = ops.asked.try_recv().ok();
        tried.borrow().is_some()
    });
    let second = tried.into_inner().expect("it was tried again");
    assert_eq!(second.id(), id);
    second.take();
    let shown = dev.json(&["endpoint", "get", "ops"])["endpoint"].clone();
    assert_eq!(shown["lastFailureCode"], "receiver_refused", "{shown}");
}
