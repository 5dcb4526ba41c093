//! A decision page that requires a code: with the link alone, one sees the request and cannot decide.

use http::StatusCode;
use switchward_api::v1;
use switchward_machine::Time;
use switchward_shard::Clock as _;
use switchward_state::approval::TokenUse;

use crate::browser::Browser;
use crate::decision_page::{path_of, text};
use crate::harness::Harness;
use crate::mailing::answers::fact;
use crate::mailing::{DANA, KIM, NotifiedGate};

const MINUTE: u64 = 60_000;

/// A tenant whose pages require codes, and a gate that asks Kim and Dana.
async fn coded() -> (Harness, NotifiedGate) {
    let harness = Harness::start().await;
    set(&harness, v1::LinkAuth::Code).await;
    let asked = harness.asked().await;
    (harness, asked)
}

pub(crate) async fn set(harness: &Harness, link_auth: v1::LinkAuth) {
    let tenant = v1::Tenant { name: "-".into(), link_auth: link_auth.into(), ..Default::default() };
    let update_mask = Some(prost_types::FieldMask { paths: vec!["link_auth".into()] });
    let request = v1::UpdateTenantRequest { tenant: Some(tenant), update_mask, ..Default::default() };
    let _: v1::UpdateTenantResponse = harness.ask("admin", "UpdateTenant", &request).await;
}

/// The code that was mailed at this time.
pub(crate) fn code(asked: &NotifiedGate, person: &str, sent: Time) -> String {
    asked.key().page_code(&asked.token(TokenUse::Page, person), person, sent)
}

pub(crate) async fn is_open(harness: &Harness, asked: &NotifiedGate) -> bool {
    let request = v1::GetGateRequest { name: asked.gate.name.clone(), ..Default::default() };
    let reply: v1::GetGateResponse = harness.ask("agent", "GetGate", &request).await;
    reply.gate.expect("a gate").status() == v1::GateStatus::Open
}

/// The addresses of the queued code mails.
async fn mailed(harness: &Harness) -> Vec<String> {
    let reply: v1::ListEffectsResponse =
        harness.ask("operator", "ListEffects", &v1::ListEffectsRequest::default()).await;
    let mails = reply.effects.into_iter().filter(|effect| effect.subject.starts_with("Your code for:"));
    mails.map(|effect| effect.to).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_alone_shows_the_request_and_decides_nothing() {
    let (harness, asked) = coded().await;
    let path = path_of(&asked, KIM);
    let mut eve = Browser::default();
    let page = eve.look(&harness, &path).await;
    assert!(page.contains("mcp:filesystem:write_file") && page.contains("does not know you yet"), "{page}");
    assert!(!page.contains(r#"value="approve""#) && page.contains("send_code"), "{page}");
    let shown = asked.gate.args_digest.as_str();
    for words in ["decision=approve", "decision=reject", "decision=discuss&comment=hm"] {
        let answer = eve.say(&harness, &path, &format!("{words}&shown={shown}")).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{words}");
    }
    assert_eq!(eve.say(&harness, &path, "decision=send_code").await.status, StatusCode::SEE_OTHER);
    assert_eq!(mailed(&harness).await, [KIM]);
    // Without access to Kim's mail, there are five tries.
    let right = code(&asked, KIM, harness.node.clock.now());
    let wrong = if right == "000000" { "000001" } else { "000000" };
    for left in ["4 more times", "3 more times", "2 more times", "once more", "no longer valid"] {
        let answer = eve.say(&harness, &path, &format!("decision=enter_code&code={wrong}")).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN);
        assert!(text(&answer).contains(left), "{}", text(&answer));
    }
    let late = eve.say(&harness, &path, &format!("decision=enter_code&code={right}")).await;
    assert_eq!((late.status, late.headers.get("set-cookie")), (StatusCode::FORBIDDEN, None));
    assert!(is_open(&harness, &asked).await);
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_code_makes_a_browser_known_to_later_pages() {
    let (harness, asked) = coded().await;
    let path = path_of(&asked, KIM);
    let mut kims = Browser::default();
    kims.say(&harness, &path, "decision=send_code").await;
    assert!(kims.look(&harness, &path).await.contains("one-time-code"));
    let right = code(&asked, KIM, harness.node.clock.now());
    let (first, second) = right.split_at(3);
    let entered = kims.say(&harness, &path, &format!("decision=enter_code&code={first}+{second}")).await;
    assert_eq!(entered.status, StatusCode::SEE_OTHER, "{}", text(&entered));
    // It is valid once, for Kim and for this page.
    let mut eve = Browser::default();
    let again = eve.say(&harness, &path, &format!("decision=enter_code&code={right}")).await;
    assert_eq!(again.status, StatusCode::FORBIDDEN);
    let danas = path_of(&asked, DANA);
    assert!(kims.look(&harness, &danas).await.contains("does not know you yet"));
    let decided = kims.say(&harness, &path, "decision=approve").await;
    assert_eq!(decided.status, StatusCode::SEE_OTHER, "{}", text(&decided));
    assert!(!is_open(&harness, &asked).await);
    let fact = |kind, name| fact(&harness, &asked.session, kind, name);
    assert_eq!(fact("approval.decided", "link_auth").await, "code");
    for kind in ["approval.code_sent", "approval.code_accepted"] {
        assert_eq!(fact(kind, "to").await, KIM);
    }
    // Another gate requires no code until the browser is forgotten.
    let next = harness.asked().await;
    assert!(kims.look(&harness, &path_of(&next, KIM)).await.contains("Record the decision"));
    harness.node.clock.advance(31 * 24 * 60 * MINUTE);
    assert!(kims.look(&harness, &path_of(&next, KIM)).await.contains("does not know you yet"));
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenant_says_how_long_a_browser_stays_known() {
    let (harness, asked) = coded().await;
    let known = prost_types::Duration { seconds: 20 * 60, nanos: 0 };
    let tenant = v1::Tenant { name: "-".into(), browser_known_time: Some(known), ..Default::default() };
    let update_mask = Some(prost_types::FieldMask { paths: vec!["browser_known_time".into()] });
    let request = v1::UpdateTenantRequest { tenant: Some(tenant), update_mask, ..Default::default() };
    let _: v1::UpdateTenantResponse = harness.ask("admin", "UpdateTenant", &request).await;
    let path = path_of(&asked, KIM);
    let mut kims = Browser::default();
    kims.say(&harness, &path, "decision=send_code").await;
    let right = code(&asked, KIM, harness.node.clock.now());
    let entered = kims.say(&harness, &path, &format!("decision=enter_code&code={right}")).await;
    let cookie = entered.headers.get("set-cookie").and_then(|cookie| cookie.to_str().ok());
    assert!(cookie.is_some_and(|cookie| cookie.contains("Max-Age=1200")), "{cookie:?}");
    harness.node.clock.advance(19 * MINUTE);
    assert!(kims.look(&harness, &path).await.contains("Record the decision"));
    // A browser that keeps its cookie longer is not known longer.
    harness.node.clock.advance(MINUTE);
    assert!(kims.look(&harness, &path).await.contains("does not know you yet"));
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn codes_are_few_and_do_not_last() {
    let (harness, asked) = coded().await;
    let path = path_of(&asked, KIM);
    let mut kims = Browser::default();
    for _ in 0..3 {
        assert_eq!(kims.say(&harness, &path, "decision=send_code").await.status, StatusCode::SEE_OTHER);
        harness.node.clock.advance(MINUTE);
    }
    let fourth = kims.say(&harness, &path, "decision=send_code").await;
    assert_eq!(fourth.status, StatusCode::TOO_MANY_REQUESTS, "{}", text(&fourth));
    assert_eq!(mailed(&harness).await.len(), 3);
    // Others still get theirs.
    let danas = path_of(&asked, DANA);
    assert_eq!(
        Browser::default().say(&harness, &danas, "decision=send_code").await.status,
        StatusCode::SEE_OTHER
    );
    let sent = Time(harness.node.clock.now().0 - MINUTE);
    let first = code(&asked, KIM, Time(sent.0 - 2 * MINUTE));
    let earlier = kims.say(&harness, &path, &format!("decision=enter_code&code={first}")).await;
    assert_eq!(earlier.status, StatusCode::FORBIDDEN, "the newest counts");
    harness.node.clock.advance(9 * MINUTE);
    let late =
        kims.say(&harness, &path, &format!("decision=enter_code&code={}", code(&asked, KIM, sent))).await;
    assert_eq!((late.status, late.headers.get("set-cookie")), (StatusCode::FORBIDDEN, None));
    harness.node.clock.advance(60 * MINUTE);
    assert_eq!(kims.say(&harness, &path, "decision=send_code").await.status, StatusCode::SEE_OTHER);
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_browser_of_who_asked_decides_nothing() {
    let (harness, mine) = coded().await;
    let mut browser = Browser::default();
    let path = path_of(&mine, KIM);
    browser.say(&harness, &path, "decision=send_code").await;
    let right = code(&mine, KIM, harness.node.clock.now());
    browser.say(&harness, &path, &format!("decision=enter_code&code={right}")).await;
    // Kim is a requester now, and opens the link that Dana passed on. The link alone would be enough for others.
    set(&harness, v1::LinkAuth::Link).await;
    let role = v1::KeyRole::Operator.into();
    let request = v1::CreateApiKeyRequest { subject: "kim".into(), role, ..Default::default() };
    let made: v1::CreateApiKeyResponse = harness.ask("admin", "CreateApiKey", &request).await;
    let asked = harness.asked_by(&made.secret, "kim", &[KIM]).await;
    let danas = path_of(&asked, DANA);
    let page = browser.look(&harness, &danas).await;
    assert!(page.contains("This browser is known as") && page.contains("who asked for this"), "{page}");
    let shown = asked.gate.args_digest.as_str();
    let answer = browser.say(&harness, &danas, &format!("decision=approve&shown={shown}")).await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN, "{}", text(&answer));
    assert!(is_open(&harness, &asked).await);
    let other = Browser::default().say(&harness, &danas, "decision=approve").await;
    assert_eq!(other.status, StatusCode::SEE_OTHER, "{}", text(&other));
    harness.node.end().await;
}
