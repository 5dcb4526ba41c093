//! Thousands of timers on a built server whose machine's clock jumps and whose process is stopped: none is early, and each
//! is fired once.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant};
use switchward_testkit::Pages;

use crate::support::{Dev, folder};

const SESSIONS: usize = 2_000;
const CALLERS: usize = 4;
/// How long each session sleeps: 0.006 hours.
const NAP: Duration = Duration::from_millis(21_600);
/// How long the process is stopped.
const STOPPED: Duration = Duration::from_secs(2);
/// How long anything may take that must happen.
const PATIENCE: Duration = Duration::from_secs(90);
const HOUR_MS: i64 = 3_600_000;

const DEFINITION: &str = r#"{
  "name": "nap",
  "states": [
    { "name": "rest", "type": "wait", "wait_for": "timer", "timeout_hours": 0.006 },
    { "name": "up", "type": "output", "template": "Good morning.", "target": "conversation" }
  ],
  "transitions": [{ "from": "rest", "port": "received", "to": "up" }]
}"#;

/// Starts the sessions; gives when each start was sent, which is never after the session was made.
fn start(dev: &Dev) -> BTreeMap<String, Instant> {
    let key = dev.ready["agent_key"].as_str().expect("a key");
    let begin = |caller: usize| {
        let mut sent = Vec::new();
        for number in (caller..SESSIONS).step_by(CALLERS) {
            let now = Instant::now();
            let body = json!({ "definition": "nap", "requestId": format!("nap-{number}") });
            let reply = dev.post("SessionService/StartSession", key, &body);
            let name = reply["session"]["name"].as_str().unwrap_or_else(|| panic!("{reply}"));
            sent.push((name.to_owned(), now));
        }
        sent
    };
    std::thread::scope(|scope| {
        let callers: Vec<_> = (0..CALLERS).map(|caller| scope.spawn(move || begin(caller))).collect();
        callers.into_iter().flat_map(|caller| caller.join().expect("it starts sessions")).collect()
    })
}

/// The sessions that are over.
fn over(dev: &Dev) -> Vec<Value> {
    let key = dev.ready["person_key"].as_str().expect("a key");
    let (mut found, mut pages) = (Vec::new(), Pages::default());
    while let Some(token) = pages.next_token() {
        let body = json!({ "pageSize": 1_000, "pageToken": token, "filter": "status=\"completed\"" });
        let reply = dev.post("SessionService/ListSessions", key, &body);
        if let Some(sessions) = reply["sessions"].as_array() {
            found.extend(sessions.iter().cloned());
        }
        pages.read(reply["nextPageToken"].as_str().unwrap_or_default().to_owned());
    }
    found
}

/// None of those that are over ended sooner than its timer; returns how many there are.
#[track_caller]
fn none_early(dev: &Dev, sent: &BTreeMap<String, Instant>) -> usize {
    let over = over(dev);
    let now = Instant::now();
    for session in &over {
        let name = session["name"].as_str().unwrap_or_else(|| panic!("{session}"));
        let waited = now - sent[name];
        assert!(waited >= NAP, "{name} is over after {waited:?}");
    }
    over.len()
}

/// Returns true if the server does not answer for this long.
fn is_silent(dev: &Dev, time: Duration) -> bool {
    let host = dev.address().strip_prefix("http://").expect("plain HTTP");
    let mut stream = TcpStream::connect(host).expect("the kernel accepts for it");
    stream.set_read_timeout(Some(time)).expect("a time that is not zero");
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: dev\r\n\r\n").expect("it fits the buffers");
    stream.read(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}

fn signal(dev: &Dev, signal: &str) {
    let sent = Command::new("kill").args([signal, &dev.pid().to_string()]).status();
    assert!(sent.expect("there is a kill").success());
}

#[test]
fn none_is_early_when_clocks_jump_and_the_process_stands_still() {
    let files = folder(&[("nap.json", DEFINITION), ("off", "0")]);
    let (file, off) = (files.path().join("nap.json"), files.path().join("off"));
    let jump = |ms: i64| std::fs::write(&off, ms.to_string()).expect("it can be written");
    let dev = Dev::start_on(&["--clock", "system", "--clock-off", off.to_str().expect("a plain path")], &[]);
    dev.run(&["deploy", file.to_str().expect("a plain path")]).with_code(0);
    let begun = Instant::now();
    jump(-HOUR_MS);
    let sent = start(&dev);
    // However long that took: each is judged by when its own start was sent.
    none_early(&dev, &sent);
    jump(HOUR_MS);
    none_early(&dev, &sent);
    jump(-HOUR_MS);
    signal(&dev, "-STOP");
    assert!(is_silent(&dev, STOPPED), "it stands still");
    jump(HOUR_MS);
    signal(&dev, "-CONT");
    let mut jumps = [-HOUR_MS, 0, HOUR_MS].into_iter().cycle();
    while none_early(&dev, &sent) < SESSIONS {
        assert!(begun.elapsed() < NAP + PATIENCE, "timers were never fired");
        jump(jumps.next().expect("they go round"));
    }
    let ways: Vec<_> = over(&dev).iter().map(|session| session["sequence"].clone()).collect();
    assert!(ways.iter().all(|way| *way == ways[0] && !way.is_null()), "each was fired once: {ways:?}");
    assert_eq!(dev.stop(), Some(0));
}
