//! A reply token from the command line: its holder can send an event without a key.

use crate::support::{Dev, folder};

const PAY: &str = "
name: pay
states:
  - {name: wait, type: conversation, instructions: Wait for the money.}
  - {name: paid, type: conversation}
transitions:
  - {from: wait, to: paid, guards: [{type: external_event, config: {event_key: paid}}]}
";

#[test]
fn an_event_is_sent_with_a_token_instead_of_a_key() {
    let dev = Dev::start();
    let files = folder(&[("pay.yaml", PAY)]);
    dev.run(&["deploy", files.path().join("pay.yaml").to_str().expect("a plain path")]).with_code(0);
    let started = dev.json(&["start", "pay", "--key", "order-7"]);
    assert!(started["session"].get("replyToken").is_none(), "the agent reads none: {started}");
    let shown = dev.json(&["get", "order-7"]);
    let token = shown["session"]["replyToken"].as_str().expect("a token").to_owned();
    assert!(dev.run(&["get", "order-7"]).with_code(0).out.contains(&token), "a person sees it");
    let agents = dev.run(&["event", "order-7", "paid", "--as", "agent", "-o", "json"]).with_code(6).error();
    assert_eq!(agents["reason"], "ROLE_NOT_ALLOWED");
    let made = dev.json(&["keys", "create", "integration", "--subject", "shop"]);
    let key = made["secret"].as_str().expect("a key").to_owned();
    let unread = dev.run(&["get", "order-7", "--api-key", &key, "-o", "json"]).with_code(6).error();
    assert_eq!(unread["reason"], "ROLE_NOT_ALLOWED");
    let answered = dev.json(&["event", "order-7", "other", "--api-key", &key]);
    assert!(
        answered["session"].get("instructions").is_none() && answered["session"]["at"][0] == "wait",
        "{answered}"
    );
    let refused = dev.run(&["get", "order-7", "--api-key", &token, "-o", "json"]).with_code(6).error();
    assert_eq!(refused["reason"], "CREDENTIAL_INVALID");
    dev.run(&["event", "-", "paid", "--api-key", &token]).with_code(0);
    assert_eq!(dev.json(&["get", "order-7"])["session"]["at"][0], "paid");
    let late = dev.run(&["event", "-", "paid", "--api-key", &token, "-o", "json"]).with_code(4).error();
    assert_eq!(late["reason"], "STATE_MISMATCH");
}
