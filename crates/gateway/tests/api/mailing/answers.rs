//! A reply to a mail is answered in its thread with its outcome, and the history records that.

use switchward_api::v1;
use switchward_gateway::mail::{Level, Outcome};
use switchward_machine::{OpenId, SessionId, TenantId};
use switchward_state::approval::{MailKey, TokenUse};
use switchward_state::{Key, Row, View as _};

use super::{KIM, Message, from_kim};
use crate::harness::Harness;

const OFFER: &str = r#"{
  "name": "offer",
  "states": [
    { "name": "ask", "type": "output", "template": "Do you want it?", "subject_template": "Offer", "target": "email",
      "recipients": ["kim@acme.example"] },
    { "name": "hold", "type": "wait", "wait_for": "email_reply", "timeout_hours": 48,
      "classify": { "enabled": true, "classification_ports": ["keen", "gone"],
        "classification_hints": { "keen": "yes, tell me more", "gone": "no, not now" } } },
    { "name": "keen", "type": "conversation" },
    { "name": "gone", "type": "conversation" },
    { "name": "late", "type": "conversation" }
  ],
  "transitions": [
    { "from": "ask", "port": "done", "to": "hold" },
    { "from": "hold", "port": "keen", "to": "keen" },
    { "from": "hold", "port": "gone", "to": "gone" },
    { "from": "hold", "port": "timeout", "to": "late" }
  ]
}"#;

const RATE: &str = r#"{
  "name": "rating",
  "states": [
    { "name": "rate", "type": "task",
      "task_template": { "participants": ["kim@acme.example", "dana@acme.example"], "instructions": "Rate it." } },
    { "name": "done", "type": "conversation" }
  ],
  "transitions": [{ "from": "rate", "to": "done", "guards": [{ "type": "all_tasks_complete" }] }]
}"#;

/// A new session, its id, and the key of its tenant's mail tokens.
async fn begun(harness: &Harness, source: &str, name: &str) -> (v1::Session, SessionId, MailKey) {
    harness.deploy(source).await;
    let request = v1::StartSessionRequest { definition: name.into(), ..Default::default() };
    let reply: v1::StartSessionResponse = harness.ask("agent", "StartSession", &request).await;
    let session = reply.session.expect("a session");
    let id: SessionId = session.name.rsplit('/').next().expect("a part").parse().expect("an id");
    let row = harness.node.cluster.shard_of(id.bucket()).read().await.expect("a shard");
    // The shard has the tenant's keys once a directory was put.
    let row = row.row(&Key::tenancy(TenantId(1))).expect("rows").expect("the shard knows the tenant");
    let Row::Tenancy(tenancy) = &*row else { panic!("{row:?}") };
    (session, id, tenancy.mail_keys(&harness.node.cluster.ring(), TenantId(1)).remove(0))
}

/// The mails of a session that answer a reply: their recipients and subjects.
async fn answers(harness: &Harness, session: &v1::Session) -> Vec<(String, String)> {
    let filter = format!("session=\"{}\"", session.name.rsplit('/').next().expect("a part"));
    let request = v1::ListEffectsRequest { filter, ..Default::default() };
    let reply: v1::ListEffectsResponse = harness.ask("operator", "ListEffects", &request).await;
    let answer = |effect: &v1::Effect| {
        effect.subject.starts_with("Re: ").then(|| (effect.to.clone(), effect.subject.clone()))
    };
    reply.effects.iter().filter_map(answer).collect()
}

/// Returns one field of the last event of a type.
pub(crate) async fn fact(harness: &Harness, session: &v1::Session, kind: &str, name: &str) -> String {
    let request = v1::ListSessionEventsRequest { name: session.name.clone(), ..Default::default() };
    let reply: v1::ListSessionEventsResponse = harness.ask("agent", "ListSessionEvents", &request).await;
    let event = reply.events.into_iter().rfind(|event| event.r#type == kind).expect("such an event");
    let value = event.data.unwrap_or_default().fields.remove(name).and_then(|value| value.kind);
    match value {
        Some(prost_types::value::Kind::StringValue(text)) => text,
        None => String::new(),
        other => panic!("{kind} has the {name} {other:?}"),
    }
}

fn word(outcome: &Outcome) -> (&'static str, &'static str) {
    outcome.words()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reply_to_a_wait_is_answered_and_so_is_one_that_nothing_waits_for() {
    let harness = Harness::start().await;
    harness.asked().await;
    let ingress = harness.ingress(Level::Strict);
    let (session, id, key) = begun(&harness, OFFER, "offer").await;
    let token = key.token(TokenUse::Reply, TenantId(1), id, OpenId(0), 0, KIM);
    let rows = [
        // Anybody who has seen the address could have written it.
        ("Yes, go on!", "fail", "sender_not_proved", "hold", "sender_not_proved"),
        ("Perhaps. What does it cost?", "pass", "noted", "hold", ""),
        ("Yes, please!", "pass", "received", "keen", ""),
        // The session has left the state: a further mail is recorded, and changes nothing.
        ("And a second one.", "pass", "nothing_waits", "keen", "nothing_waits"),
    ];
    for (count, (text, proof, outcome, at, why)) in rows.into_iter().enumerate() {
        let id = format!("w{count}");
        let reply = Message { proof, ..from_kim(&token, text, &id) };
        assert_eq!(word(&reply.bring(&ingress).await), ("recorded", outcome), "{text}");
        assert_eq!(harness.look(&session.name).await.at, [at], "{text}");
        let sent = answers(&harness, &session).await;
        assert_eq!(sent, vec![(KIM.to_owned(), "Re: release".to_owned()); count + 1], "{text}");
        assert_eq!(fact(&harness, &session, "reply.recorded", "why").await, why, "{text}");
        let evidence = fact(&harness, &session, "reply.recorded", "evidence").await;
        let known = if proof == "pass" { "signed to this address" } else { "not aligned" };
        assert!(evidence.starts_with(known), "{text}: {evidence}");
    }
    // An unmarked autoresponder is not answered for ever.
    for number in 0..4 {
        let id = format!("again{number}");
        assert_eq!(word(&from_kim(&token, "And?", &id).bring(&ingress).await), ("recorded", "nothing_waits"));
    }
    assert_eq!(answers(&harness, &session).await.len(), 5);
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_takes_part_in_a_task_has_her_answer_acknowledged() {
    let harness = Harness::start().await;
    harness.asked().await;
    let ingress = harness.ingress(Level::Strict);
    let (session, id, key) = begun(&harness, RATE, "rating").await;
    let gate = session.waiting_on[0].name.rsplit('_').next().expect("a part").parse().expect("a number");
    let token = key.token(TokenUse::Reply, TenantId(1), id, OpenId(gate), 0, KIM);
    assert_eq!(word(&from_kim(&token, "Five stars", "one").bring(&ingress).await), ("recorded", "answered"));
    assert_eq!(answers(&harness, &session).await.len(), 1);
    // A reply with another person's token is recorded with the reason why it does not count.
    let eve = Message { from: "eve@acme.example", ..from_kim(&token, "One star", "two") };
    assert_eq!(word(&eve.bring(&ingress).await), ("recorded", "not_addressed"));
    assert_eq!(fact(&harness, &session, "reply.recorded", "why").await, "not_addressed");
    assert_eq!(
        word(&from_kim(&token, "Six stars", "three").bring(&ingress).await),
        ("recorded", "closed_before")
    );
    assert_eq!(answers(&harness, &session).await.len(), 2);
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reply_without_words_decides_nothing_and_is_answered() {
    let harness = Harness::start().await;
    let (asked, ingress) = (harness.asked().await, harness.ingress(Level::Strict));
    let token = asked.token(TokenUse::Reply, KIM);
    for (number, text) in ["> approve", ">", "\r\n> approve\r\n> now"].into_iter().enumerate() {
        let id = format!("empty{number}");
        assert_eq!(
            word(&from_kim(&token, text, &id).bring(&ingress).await),
            ("recorded", "empty"),
            "{text:?}"
        );
    }
    assert_eq!(harness.gate_now(&asked).await.status(), v1::GateStatus::Open);
    assert_eq!(harness.answers(&asked).await, [KIM; 3]);
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_mail_cannot_show_whole_is_approved_where_it_is_seen() {
    let harness = Harness::start().await;
    let ingress = harness.ingress(Level::Strict);
    let args = format!("{{\"run\":\"{}rm -rf /\"}}", "x".repeat(4_096));
    let asked = harness.asked_with(&args).await;
    let token = asked.token(TokenUse::Reply, KIM);
    assert_eq!(word(&from_kim(&token, "approve", "one").bring(&ingress).await), ("recorded", "not_all_seen"));
    assert_eq!(harness.gate_now(&asked).await.status(), v1::GateStatus::Open);
    assert_eq!(harness.answers(&asked).await, [KIM], "the reply names the decision page");
    let page = crate::decision_page::decide(&harness, &asked, KIM).await;
    assert_eq!(page.status, http::StatusCode::SEE_OTHER, "{page:?}");
    assert_eq!(harness.gate_now(&asked).await.status(), v1::GateStatus::Decided);
    // For a refusal, the beginning is enough.
    let other = harness.asked_with(&args).await;
    let token = other.token(TokenUse::Reply, KIM);
    assert_eq!(word(&from_kim(&token, "refuse", "two").bring(&ingress).await), ("recorded", "decided"));
    harness.node.end().await;
}
