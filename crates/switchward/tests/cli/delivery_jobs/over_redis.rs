//! The same over a real Redis, which may be away, forget everything, and die.

use serde_json::{Value, json};
use std::process::Command;
use std::time::Instant;

use super::{Endpoint, PATIENCE};
use crate::redis::{PASSWORD, Redis};
use crate::server::{ADMIN_KEY, Running, Site};
use crate::support::{Ended, folder, program};

/// The command of a server with a Redis at this URL, and one of its files as the password.
fn server(redis: &Redis, site: &Site, url: &str, password: &str) -> Command {
    let mut command = site.plain("127.0.0.1:0");
    command.env("SWITCHWARD_DELIVERY__ALLOW_HTTP", "true").env("SWITCHWARD_DELIVERY__ALLOW_LOOPBACK", "true");
    command.env("SWITCHWARD_REDIS__URL", url).env("SWITCHWARD_REDIS__PASSWORD_FILE", redis.path(password));
    command
}

/// A definition whose one request goes to this endpoint.
fn definition(url: &str) -> String {
    let request = json!({ "type": "http_request", "config": {
        "method": "POST", "url": format!("{url}/orders"), "body": { "for": "{gathered.who}" }, "into": "order" } });
    json!({
        "name": "order",
        "states": [
            { "name": "ask", "type": "conversation" },
            { "name": "push", "type": "logic", "operations": [request] },
            { "name": "fine", "type": "conversation" },
        ],
        "transitions": [
            { "from": "ask", "to": "push", "guards": [{ "type": "always" }] },
            { "from": "push", "to": "fine", "guards": [{ "type": "always" }] },
        ],
    })
    .to_string()
}

fn run(server: &Running, words: &[&str]) -> Ended {
    let mut command = program();
    command.env("SWITCHWARD_ADDRESS", &server.address).env("SWITCHWARD_API_KEY", ADMIN_KEY);
    Ended::of(command.args(words)).with_code(0)
}

/// Starts a session whose request goes out at once.
fn order(server: &Running, key: &str) {
    run(server, &["start", "order", "--key", key]);
    run(server, &["message", key, "One pen."]);
    run(server, &["turn", key]);
}

/// Answers the request that is out, and waits until the session of this key has the answer. A request that is sent once
/// more, as one may be whose worker was silent for too long, is answered alike.
fn answered(server: &Running, endpoint: &Endpoint, asked: &super::ReceivedRequest, key: &str) {
    let answer = (200, json!({ "for": key }));
    asked.answer.send(answer.clone()).expect("it waits");
    let deadline = Instant::now() + PATIENCE;
    loop {
        for again in endpoint.asked.try_iter() {
            again.answer.send(answer.clone()).expect("it waits");
        }
        let found: Value = run(server, &["get", key, "-o", "json"]).json();
        if found["session"]["at"][0] == "fine" {
            assert_eq!(found["session"]["data"]["order"]["for"], key, "{found}");
            return;
        }
        assert!(Instant::now() < deadline, "{found}");
    }
}

/// A server over this Redis that knows the definition.
fn deployed(redis: &Redis, site: &Site, endpoint: &Endpoint) -> Running {
    let port = endpoint.url.rsplit(':').next().expect("a port");
    let path = site.path("tenants.toml");
    let file = std::fs::read_to_string(&path).expect("the file can be read");
    std::fs::write(&path, format!("{file}[delivery]\nports = [{port}]\n")).expect("a file");
    let server = Running::of(&mut server(redis, site, &redis.url(), "password"));
    let files = folder(&[("order.json", &definition(&endpoint.url))]);
    run(&server, &["deploy", files.path().join("order.json").to_str().expect("a plain path")]);
    server
}

#[test]
fn a_request_goes_over_redis_and_comes_back_whatever_happens_to_it_meanwhile() {
    let (endpoint, mut redis, site) = (Endpoint::start(), Redis::start(), Site::new());
    let server = deployed(&redis, &site, &endpoint);

    order(&server, "flushed");
    let asked = endpoint.next("POST /orders");
    let owner = std::fs::read_to_string(site.path("data/ID")).expect("the folder has an id");
    let stream = format!("XLEN switchward:{}:http", owner.trim());
    assert_eq!(redis.ask(&stream), ":1", "it went by this road");
    assert_eq!(redis.ask("FLUSHALL"), "+OK");
    answered(&server, &endpoint, &asked, "flushed");

    order(&server, "killed");
    let asked = endpoint.next("POST /orders");
    redis.run();
    answered(&server, &endpoint, &asked, "killed");

    order(&server, "after");
    let asked = endpoint.next("POST /orders");
    answered(&server, &endpoint, &asked, "after");

    redis.kill();
    order(&server, "away");
    redis.run();
    let asked = endpoint.next("POST /orders");
    answered(&server, &endpoint, &asked, "away");
    let (log, code) = server.stop();
    assert_eq!(code, Some(0), "{log}");
}

#[test]
fn a_server_whose_redis_is_away_starts_and_says_so_once() {
    let (endpoint, mut redis, site) = (Endpoint::start(), Redis::absent(), Site::new());
    let server = deployed(&redis, &site, &endpoint);
    order(&server, "early");
    redis.run();
    let asked = endpoint.next("POST /orders");
    answered(&server, &endpoint, &asked, "early");
    let (log, code) = server.stop();
    assert_eq!(code, Some(0), "{log}");
    assert_eq!(log.matches("the connection was refused").count(), 1, "{log}");
    assert_eq!(log.matches("Redis is available again").count(), 1, "{log}");
    assert!(!log.contains(PASSWORD), "{log}");
}

/// Returns true if a dump of this Redis has a text. Deleted entries of a stream can remain in its blocks, which no command
/// shows.
fn holds(redis: &Redis, text: &str) -> bool {
    assert_eq!(redis.ask("CONFIG SET rdbcompression no"), "+OK");
    assert_eq!(redis.ask("SAVE"), "+OK");
    let copy = std::fs::read(redis.path("dump.rdb")).expect("the copy can be read");
    copy.windows(text.len()).any(|part| part == text.as_bytes())
}

#[test]
fn nothing_of_an_erased_session_stays_in_redis() {
    const WHO: &str = "plumbagowharf";
    let (endpoint, redis, site) = (Endpoint::start(), Redis::start(), Site::new());
    let server = deployed(&redis, &site, &endpoint);
    // One before it and one behind it are out as well.
    let send = |key: &str, who: &str| {
        run(&server, &["start", "order", "--key", key, "--input", &json!({ "who": who }).to_string()]);
        run(&server, &["message", key, "One pen."]);
        run(&server, &["turn", key]);
        endpoint.next("POST /orders")
    };
    let sent = [send("before", "one"), send("gone", WHO), send("behind", "two")];
    assert!(holds(&redis, WHO), "it is on its way");
    run(&server, &["cancel", "gone", "--yes"]);
    run(&server, &["session", "erase", "gone", "--yes"]);
    let [before, gone, behind] = sent;
    gone.answer.send((200, json!({ "for": WHO }))).expect("it waits");
    // A block of a stream goes when all that was in it is done.
    answered(&server, &endpoint, &before, "before");
    answered(&server, &endpoint, &behind, "behind");
    let deadline = Instant::now() + PATIENCE;
    while holds(&redis, WHO) {
        assert!(Instant::now() < deadline, "something of it is still in Redis");
    }
    let (log, code) = server.stop();
    assert_eq!(code, Some(0), "{log}");
}

#[test]
fn a_redis_that_is_configured_wrongly_is_reported_at_the_start() {
    let (redis, site) = (Redis::start(), Site::new());
    let url = redis.url();
    for (url, password, expected) in [
        ("127.0.0.1:6379", "password", "redis.url: the address of Redis cannot be used"),
        ("redis://:hunter2@127.0.0.1:6379", "password", "redis.url: the address of Redis cannot be used"),
        (&url, "none", "redis.password_file: failed to read"),
        (&url, "empty", "redis.password_file: "),
        (&url, "wrong", "redis.password_file: failed to open Redis at 127.0.0.1:"),
    ] {
        let ended = Ended::of(&mut server(&redis, &site, url, password)).with_code(1);
        assert!(ended.err.contains(expected), "{url} {password}: {}", ended.err);
        assert!(!ended.err.contains("hunter2") && !ended.err.contains("incorrect"), "{}", ended.err);
    }
    let mut prefixed = server(&redis, &site, &url, "password");
    let ended = Ended::of(prefixed.env("SWITCHWARD_REDIS__PREFIX", "a b")).with_code(1);
    assert!(ended.err.contains("redis.prefix: the prefix must have"), "{}", ended.err);
}
