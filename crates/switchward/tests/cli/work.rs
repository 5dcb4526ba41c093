//! A worker at the command line: it takes work, keeps it, loses it, and hands in what came of it.

use serde_json::{Value, json};
use std::io::Write as _;
use std::process::Stdio;
use std::time::{Duration, Instant};
use switchward_testkit::finished;

use crate::support::{Dev, Ended, folder, repository};

/// A server with claims.
fn claims() -> Dev {
    let dev = Dev::start();
    let claim = repository("tests/gallery/claim/claim.yaml");
    dev.run(&["deploy", claim.to_str().expect("a plain path")]).with_code(0);
    dev
}

/// A claim in which the user has said this, and which a worker has to read.
fn claim(dev: &Dev, key: &str, said: &str) {
    dev.run(&["start", "claim", "--key", key]).with_code(0);
    dev.run(&["message", key, said]).with_code(0);
    dev.run(&["turn", key]).with_code(0);
    assert_eq!(at(dev, key), "read");
}

fn at(dev: &Dev, key: &str) -> Value {
    dev.json(&["get", key])["session"]["at"][0].clone()
}

/// Takes the one piece of work that is ready, or soon will be: its id and its token.
fn taken(dev: &Dev) -> [String; 2] {
    let polled = dev.json(&["work", "poll", "--max", "2", "--wait", "20s"]);
    let items = polled["items"].as_array().expect("work");
    assert_eq!(items.len(), 1, "{polled}");
    let id = items[0]["name"].as_str().and_then(|name| name.rsplit('/').next()).expect("a name");
    [id.to_owned(), items[0]["leaseToken"].as_str().expect("a token").to_owned()]
}

/// The types of a session's events that begin like this.
fn event_types(dev: &Dev, key: &str, of: &str) -> Vec<String> {
    let events = dev.json(&["list", "events", key]);
    let types = events["events"].as_array().expect("events").iter().map(|event| event["type"].as_str());
    types.map(|word| word.expect("a type").to_owned()).filter(|word| word.starts_with(of)).collect()
}

#[test]
fn a_person_reads_what_is_to_be_done_and_types_what_is_shown() {
    let dev = claims();
    assert_eq!(dev.run(&["work", "poll"]).with_code(0).out, "no work\n");
    assert_eq!(dev.json(&["work", "poll", "--queue", "nothing", "--queue", "claim"]), json!({}));
    claim(&dev, "claim-1", "A-17, 250 dollars");
    let other = ["work", "poll", "--kind", "agent,judge"];
    assert_eq!(dev.run(&other).with_code(0).out, "no work\n");
    let words = ["work", "poll", "--kind=extract", "--queue=claim", "--worker=me", "--lease=2m"];
    let card = dev.run(&words).with_code(0).out;
    let session = dev.json(&["get", "claim-1"]);
    let id = session["session"]["name"].as_str().and_then(|name| name.rsplit('/').next()).expect("an id");
    for part in [
        "kind               extract\n",
        &format!("session            {id}\n"),
        "definition         claim, version 1\n",
        "state              read\nattempt            1\n",
        "lease_expire_time  20",
        "text: \"A-17, 250 dollars\"\n",
        "last_message       A-17, 250 dollars\n",
        "\"type\": [\"number\", \"null\"]",
    ] {
        assert!(card.contains(part), "{part:?} is not in {card}");
    }
    assert_eq!(dev.run(&["work", "poll"]).with_code(0).out, "no work\n", "it is mine");

    let line = card.lines().find_map(|line| line.strip_prefix("complete")).expect("a command").trim();
    let (head, result) = line.split_once(" --result ").expect("a result");
    assert_eq!(result, r#"'{"amount": 0, "order": "..."}'"#);
    let head: Vec<&str> = head.split(' ').skip(1).collect();
    let complete = [&head[..], &["--result", r#"{"amount": 250, "order": "A-17"}"#, "--tokens=12"]].concat();
    let done = dev.run(&complete).with_code(0);
    assert!(done.out.starts_with("accepted  wrk_"), "{done:?}");
    let card = dev.run(&["get", "claim-1"]).with_code(0).out;
    assert!(card.contains("Confirm 250 dollars for order A-17.") && card.contains("12 tokens"), "{card}");
    assert_eq!(dev.run(&complete).with_code(0).out, done.out, "the same command has the same result");
    assert_eq!(event_types(&dev, "claim-1", "work."), ["work.opened", "work.leased", "work.done"]);
}

#[test]
fn a_result_that_does_not_fit_ends_with_5_and_says_why() {
    let dev = claims();
    for (key, output) in [("claim-1", "text"), ("claim-2", "json")] {
        claim(&dev, key, "A-17, much");
        let [work, token] = taken(&dev);
        let words = ["work", "complete", &work, &token, "--result", r#"{"amount":"much"}"#, "-o", output];
        let refused = dev.run(&words).with_code(5);
        assert_eq!(refused.err, "", "{refused:?}");
        if output == "json" {
            let result = refused.json();
            assert_eq!((&result["accepted"], &result["reason"]), (&Value::Null, &json!("SCHEMA_VIOLATION")));
            assert!(result["message"].as_str().expect("why").contains("/amount"), "{result}");
        } else {
            let head = format!("not accepted  {work}  SCHEMA_VIOLATION\nmessage  ");
            assert!(refused.out.starts_with(&head) && refused.out.contains("/amount"), "{refused:?}");
        }
        assert_eq!(at(&dev, key), "by-hand", "the attempt has failed");
    }
}

#[test]
fn work_is_kept_given_back_lost_and_failed() {
    let dev = claims();
    claim(&dev, "claim-1", "...");
    let [work, token] = taken(&dev);
    let kept = dev.run(&["work", "extend", &work, &token, "--lease", "10m"]).with_code(0);
    assert!(
        kept.out.starts_with("leased until 20") && kept.out.ends_with(&format!("  {work}\n")),
        "{kept:?}"
    );
    // Longer than it was taken for.
    dev.run(&["clock", "advance", "9m"]).with_code(0);
    let back = dev.run(&["work", "release", &work, &token]).with_code(0);
    assert_eq!(back.out, format!("released  {work}\n"));

    let [again, second] = taken(&dev);
    assert!(again == work && second != token, "the same work under another lease");
    dev.run(&["clock", "advance", "1m"]).with_code(0);
    let [_, third] = taken(&dev);
    for words in [&["complete"][..], &["fail"], &["release"], &["extend"]] {
        let words = [&["work"], words, &[&work, &second, "-o", "json"]].concat();
        let lost = dev.run(&words).with_code(4).error();
        assert_eq!((&lost["reason"], &lost["code"]), (&json!("LEASE_LOST"), &json!("aborted")), "{words:?}");
        assert!(lost["next"][0].as_str().expect("advice").contains("work poll"), "{lost}");
    }
    assert_eq!(at(&dev, "claim-1"), "read");

    let fail = ["work", "fail", &work, &third, "there are no letters in it", "--cost-usd", "0.1"];
    assert_eq!(dev.run(&fail).with_code(0).out, format!("failed  {work}\n"));
    assert_eq!(at(&dev, "claim-1"), "by-hand");
    assert!(dev.run(&["get", "claim-1"]).out.contains("0.1 USD used"));
    let expected = ["opened", "leased", "released", "leased", "released", "leased", "done"];
    assert_eq!(event_types(&dev, "claim-1", "work."), expected.map(|word| format!("work.{word}")));
}

#[test]
fn a_result_may_stand_in_a_file_or_come_from_another_program() {
    let dev = claims();
    let folder = folder(&[("result.json", r#"{"order":"A-17","amount":250}"#)]);
    let file = |name: &str| format!("@{}", folder.path().join(name).to_str().expect("a plain path"));
    claim(&dev, "claim-1", "A-17, 250 dollars");
    let [work, token] = taken(&dev);
    let complete = ["work", "complete", &work, &token, "--result"];
    let refused = dev.run(&[&complete[..], &["{"]].concat()).with_code(2);
    assert!(refused.err.contains("--result is not JSON"), "{refused:?}");
    dev.run(&[&complete[..], &[&file("result.json")]].concat()).with_code(0);
    assert_eq!(at(&dev, "claim-1"), "confirm");

    claim(&dev, "claim-2", "B-2, 3 dollars");
    let [work, token] = taken(&dev);
    let mut command = dev.command();
    command.env("SWITCHWARD_CONTEXT", "dev-worker");
    command.args(["work", "complete", &work, &token, "--result", "-"]).stdin(Stdio::piped());
    let mut child = command.stdout(Stdio::null()).spawn().expect("the program starts");
    let mut stdin = child.stdin.take().expect("it has an input");
    stdin.write_all(br#"{"order":"B-2","amount":3}"#).expect("it reads its input");
    drop(stdin);
    assert!(finished(child).status.success());
    assert_eq!(at(&dev, "claim-2"), "confirm");
}

#[test]
fn what_is_no_work_of_the_callers_is_refused() {
    let dev = claims();
    claim(&dev, "claim-1", "A-17, 250 dollars");
    let agents = dev.run(&["work", "poll", "--as", "agent", "-o", "json"]).with_code(6).error();
    assert_eq!(agents["reason"], "ROLE_NOT_ALLOWED");
    let [work, token] = taken(&dev);
    let none = work.rsplit_once('_').map(|(session, _)| format!("{session}_999")).expect("it has a number");
    for (words, code, reason) in [
        (&["work", "complete", &work, "1.0000"][..], 2, "FIELD_INVALID"),
        (&["work", "fail", "wrk_nothing", &token], 3, "NOT_FOUND"),
        (&["work", "release", &none, &token], 2, "FIELD_INVALID"),
        (&["work", "poll", "--lease", "2h"], 2, "FIELD_INVALID"),
        (&["work", "poll", "--wait", "61s"], 2, "FIELD_INVALID"),
        (&["work", "extend", &work, &token, "--as", "agent"], 6, "ROLE_NOT_ALLOWED"),
        (&["work", "complete", &work, &token, "--as", "person", "--result", "{}"], 4, "LEASE_LOST"),
    ] {
        let error = dev.run(&[words, &["-o", "json"]].concat()).with_code(code).error();
        assert_eq!(error["reason"], reason, "{words:?}: {error}");
    }
    dev.run(&["work", "complete", &work, &token, "--result", "{}"]).with_code(0);
}

/// The call's timeout does not include the time that the server is asked to wait.
#[test]
fn a_poll_waits_as_long_as_asked() {
    let dev = claims();
    let begun = Instant::now();
    let none = Ended::of(dev.command().env("SWITCHWARD_CONTEXT", "dev-worker").args([
        "work",
        "poll",
        "--wait",
        "2s",
        "--timeout",
        "1s",
    ]));
    assert_eq!(none.with_code(0).out, "no work\n");
    assert!(begun.elapsed() >= Duration::from_secs(2));
}
