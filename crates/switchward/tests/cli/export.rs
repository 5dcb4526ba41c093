//! `switchward export`: whole, resumed where it was interrupted, and of one point in time while others write.

use serde_json::{Value, json};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{fs, thread};

use crate::support::{Dev, Ended, deploy_gate, folder};

/// Sessions that make more records than one page of the command takes.
const SESSIONS: usize = 250;
/// Records of such a page.
const PAGE_RECORDS: usize = 1_000;

/// Starts a session of the deploy gate and ends it blocked, with a decision before.
fn session(dev: &Dev, key: &str) {
    let (agent, person) = (text(&dev.ready["agent_key"]), text(&dev.ready["person_key"]));
    let start = json!({ "definition": "deploy-gate", "sessionId": key });
    dev.post("SessionService/StartSession", &agent, &start);
    let call = json!({ "session": key, "capability": "mcp:filesystem:delete_file" });
    let asked = dev.post("PolicyService/AuthorizeToolCall", &agent, &call);
    let decide = json!({ "name": asked["gate"], "decision": "GATE_DECISION_APPROVE" });
    dev.post("GateService/DecideGate", &person, &decide);
    let blocked =
        dev.post("SessionService/AnswerCheckpoint", &agent, &json!({ "name": key, "answer": "no" }));
    assert_eq!(blocked["session"]["status"], "SESSION_STATUS_BLOCKED", "{blocked}");
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned()
}

fn kinds(lines: &[Value], kind: &str) -> usize {
    lines.iter().filter(|line| line.get(kind).is_some()).count()
}

/// A server with the deploy gate and these sessions of it.
fn furnished(count: usize) -> Dev {
    let dev = Dev::start();
    dev.run(&["deploy", &deploy_gate()]).with_code(0);
    for number in 0..count {
        session(&dev, &format!("release-{number}"));
    }
    dev
}

fn export_to(dev: &Dev, file: &Path) -> Ended {
    dev.run(&["export", "--to", file.to_str().expect("a plain path")])
}

#[test]
fn an_export_goes_on_where_it_was_interrupted() {
    let dev = furnished(SESSIONS);
    dev.run(&["session", "delete", "release-3", "--yes"]).with_code(0);
    dev.run(&["session", "erase", "release-4", "--yes"]).with_code(0);
    let folder = folder(&[]);
    let (whole, part) = (folder.path().join("whole.jsonl"), folder.path().join("part.jsonl"));
    let resume = folder.path().join("part.jsonl.resume");
    let ended = export_to(&dev, &whole).with_code(0);
    assert!(ended.out.contains("records ") && ended.out.contains("export_time "), "{ended:?}");
    let written = fs::read_to_string(&whole).unwrap();
    let shown = dev.run(&["export"]).with_code(0);
    assert_eq!(shown.out, written, "the same on the standard output");
    let lines = shown.lines();
    let (end, records) = lines.split_last().unwrap();
    assert_eq!(end["end"]["records"], json!(records.len()), "{end}");
    assert!(
        records.len() > 2 * PAGE_RECORDS && records.iter().all(|line| line.as_object().unwrap().len() == 1)
    );
    assert_eq!((kinds(records, "session"), kinds(records, "decision")), (SESSIONS - 1, SESSIONS - 1));
    let removals: Vec<_> = records.iter().filter_map(|line| line.get("removal")).collect();
    let hows = removals.iter().map(|one| text(&one["how"])).collect::<std::collections::BTreeSet<_>>();
    assert_eq!(hows, ["deleted".to_owned(), "erased".to_owned()].into());
    assert!(removals.iter().all(|one| text(&one["session"]).starts_with("tenants/dev/sessions/ses_")));

    // The state after a process was killed while it wrote the second page.
    let key = text(&dev.ready["person_key"]);
    let first = dev.post("ExportService/ExportRecords", &key, &json!({ "pageSize": PAGE_RECORDS }));
    // A page also ends at its deadline.
    let first_records = first["records"].as_array().map_or(0, Vec::len);
    assert!((1..=PAGE_RECORDS).contains(&first_records), "{first_records}");
    let bytes: usize = written.lines().take(first_records).map(|line| line.len() + 1).sum();
    let state = json!({
        "token": first["nextPageToken"],
        "bytes": bytes,
        "records": first_records,
        "exportTime": first["exportTime"],
    });
    fs::write(&part, format!("{}{{\"event\":{{\"sess", &written[..bytes])).unwrap();
    fs::write(&resume, state.to_string()).unwrap();
    // Later changes are not in it.
    dev.run(&["clock", "advance", "1s"]).with_code(0);
    session(&dev, "release-late");
    let time = text(&first["exportTime"]);
    dev.run(&["export", "--to", part.to_str().unwrap(), "--at", "2020-01-01T00:00:00Z"]).with_code(2);
    export_to(&dev, &part).with_code(0);
    assert_eq!(fs::read_to_string(&part).unwrap(), written);
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
    assert_eq!(dev.run(&["export", "--at", &time]).with_code(0).out, written);
    assert!(dev.run(&["export"]).with_code(0).out.contains("release-late"));

    // Interrupted before the first page, or behind the last one.
    for (written_before, state) in [
        ("", json!({ "token": "", "bytes": 0, "records": 0, "exportTime": time })),
        (written.as_str(), state),
    ] {
        fs::write(&part, written_before).unwrap();
        fs::write(&resume, state.to_string()).unwrap();
        export_to(&dev, &part).with_code(0);
        assert_eq!(fs::read_to_string(&part).unwrap(), written);
        assert!(!resume.exists());
    }
}

#[test]
fn a_file_that_is_there_is_left_alone() {
    let dev = furnished(2);
    let folder = folder(&[
        ("there.jsonl", "mine\n"),
        ("odd.jsonl", "mine\n"),
        ("odd.jsonl.resume", "{}"),
        ("short.jsonl", "mine\n"),
        ("short.jsonl.resume", r#"{"token":"","bytes":6,"records":1,"exportTime":null}"#),
        ("other.jsonl", "mine\n"),
        ("other.jsonl.resume", r#"{"token":"00","bytes":5,"records":1,"exportTime":null}"#),
    ]);
    let path = |name: &str| folder.path().join(name);
    for (name, says) in [
        ("there.jsonl", "exists and is not an interrupted export"),
        ("odd.jsonl", "is not a resume file"),
        ("short.jsonl", "has 5 bytes"),
        ("other.jsonl", "page_token"),
    ] {
        let ended = export_to(&dev, &path(name)).with_code(2);
        assert!(ended.err.contains(says) && ended.out.is_empty(), "{ended:?}");
        assert_eq!(fs::read_to_string(path(name)).unwrap(), "mine\n");
    }
    // A link that somebody else made is not followed, neither to the file nor to what is written beside it.
    let theirs = path("theirs.jsonl");
    fs::write(&theirs, "mine\n").unwrap();
    let resume = r#"{"token":"","bytes":0,"records":0,"exportTime":null}"#;
    fs::write(path("link.jsonl.resume"), resume).unwrap();
    symlink(&theirs, path("link.jsonl")).unwrap();
    export_to(&dev, &path("link.jsonl")).with_code(1);
    symlink(&theirs, path("beside.jsonl.resume.new")).unwrap();
    export_to(&dev, &path("beside.jsonl")).with_code(0);
    symlink(path("link.jsonl.resume"), path("linked.jsonl.resume")).unwrap();
    export_to(&dev, &path("linked.jsonl")).with_code(1);
    assert_eq!(fs::read_to_string(&theirs).unwrap(), "mine\n");
    // A refused export leaves no files.
    let fresh = path("fresh.jsonl");
    let to = ["export", "--to", fresh.to_str().unwrap()];
    let agent = dev.run(&[&to[..], &["--as", "agent", "-o", "json"]].concat()).with_code(6).error();
    assert_eq!(agent["reason"], "ROLE_NOT_ALLOWED");
    let future = dev.run(&[&to[..], &["--at", "2999-01-01T00:00:00Z"]].concat()).with_code(2);
    assert!(future.err.contains("--at") && future.err.contains("future"), "{future:?}");
    dev.run(&[&to[..], &["--at", "soon"]].concat()).with_code(2);
    assert!(!fresh.exists() && !path("fresh.jsonl.resume").exists());
    let said = dev.json(&to);
    assert_eq!(said["end"]["records"], json!(fs::read_to_string(&fresh).unwrap().lines().count() - 1));
    dev.run(&to).with_code(2);
    dev.run(&["export", "--to", folder.path().join("no/such.jsonl").to_str().unwrap()]).with_code(1);
}

#[test]
fn it_is_of_one_point_in_time_while_others_write() {
    let dev = Dev::start_on(&[], &[]);
    dev.run(&["deploy", &deploy_gate()]).with_code(0);
    let stop = AtomicBool::new(false);
    let taken: Vec<String> = thread::scope(|scope| {
        for writer in 0..3 {
            let (dev, stop) = (&dev, &stop);
            scope.spawn(move || {
                for number in 0.. {
                    if stop.load(Ordering::Acquire) {
                        return;
                    }
                    session(dev, &format!("writer-{writer}-{number}"));
                }
            });
        }
        let taken = (0..8).map(|_| dev.run(&["export"]).with_code(0).out).collect();
        stop.store(true, Ordering::Release);
        taken
    });
    let mut sizes = Vec::new();
    for export in taken {
        let end: Value = serde_json::from_str(export.lines().last().unwrap()).unwrap();
        let time = text(&end["end"]["exportTime"]);
        assert_eq!(dev.run(&["export", "--at", &time]).with_code(0).out, export, "as of {time}");
        sizes.push(export.lines().count());
    }
    assert!(sizes.is_sorted() && sizes.first() < sizes.last(), "{sizes:?}");
}
