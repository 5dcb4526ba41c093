//! A decision page that wants a code: whoever has the link alone sees the request and decides nothing.

use http::StatusCode;
use switchward_api::v1;
use switchward_engine::Way;
use switchward_machine::Time;
use switchward_shard::Clock as _;

use crate::browser::Browser;
use crate::decision_page::{path_of, text};
use crate::mailing::answers::fact;
use crate::mailing::{Asked, DANA, KIM};
use crate::world::World;

const MINUTE: u64 = 60_000;

/// A tenant whose pages want codes, and a gate that asks Kim and Dana.
async fn coded() -> (World, Asked) {
    let world = World::start().await;
    set(&world, v1::LinkAuth::Code).await;
    let asked = world.asked().await;
    (world, asked)
}

pub(crate) async fn set(world: &World, link_auth: v1::LinkAuth) {
    let tenant = v1::Tenant { name: "-".into(), link_auth: link_auth.into(), ..Default::default() };
    let update_mask = Some(prost_types::FieldMask { paths: vec!["link_auth".into()] });
    let request = v1::UpdateTenantRequest { tenant: Some(tenant), update_mask, ..Default::default() };
    let _: v1::UpdateTenantResponse = world.ask("admin", "UpdateTenant", &request).await;
}

/// The code that was mailed last, at this time.
pub(crate) fn code(asked: &Asked, person: &str, sent: Time) -> String {
    asked.key().page_code(&asked.token(Way::Page, person), person, sent)
}

pub(crate) async fn is_open(world: &World, asked: &Asked) -> bool {
    let request = v1::GetGateRequest { name: asked.gate.name.clone(), ..Default::default() };
    let reply: v1::GetGateResponse = world.ask("agent", "GetGate", &request).await;
    reply.gate.expect("a gate").status() == v1::GateStatus::Open
}

/// Addresses to which codes wait to go out.
async fn mailed(world: &World) -> Vec<String> {
    let reply: v1::ListEffectsResponse =
        world.ask("operator", "ListEffects", &v1::ListEffectsRequest::default()).await;
    let mails = reply.effects.into_iter().filter(|effect| effect.subject.starts_with("Your code for:"));
    mails.map(|effect| effect.to).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_alone_shows_the_request_and_decides_nothing() {
    let (world, asked) = coded().await;
    let path = path_of(&asked, KIM);
    let mut eve = Browser::default();
    let page = eve.look(&world, &path).await;
    assert!(page.contains("mcp:filesystem:write_file") && page.contains("does not know you yet"), "{page}");
    assert!(!page.contains(r#"value="approve""#) && page.contains("send_code"), "{page}");
    let shown = asked.gate.args_digest.as_str();
    for words in ["decision=approve", "decision=reject", "decision=discuss&comment=hm"] {
        let answer = eve.say(&world, &path, &format!("{words}&shown={shown}")).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{words}");
    }
    assert_eq!(eve.say(&world, &path, "decision=send_code").await.status, StatusCode::SEE_OTHER);
    assert_eq!(mailed(&world).await, [KIM]);
    // Whoever cannot read Kim's mail has five tries.
    let right = code(&asked, KIM, world.node.clock.now());
    let wrong = if right == "000000" { "000001" } else { "000000" };
    for left in ["4 times", "3 times", "2 times", "once more", "void now"] {
        let answer = eve.say(&world, &path, &format!("decision=enter_code&code={wrong}")).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN);
        assert!(text(&answer).contains(left), "{}", text(&answer));
    }
    let late = eve.say(&world, &path, &format!("decision=enter_code&code={right}")).await;
    assert_eq!((late.status, late.headers.get("set-cookie")), (StatusCode::FORBIDDEN, None));
    assert!(is_open(&world, &asked).await);
    world.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_code_makes_a_browser_known_to_later_pages() {
    let (world, asked) = coded().await;
    let path = path_of(&asked, KIM);
    let mut kims = Browser::default();
    kims.say(&world, &path, "decision=send_code").await;
    assert!(kims.look(&world, &path).await.contains("one-time-code"));
    let right = code(&asked, KIM, world.node.clock.now());
    let (first, second) = right.split_at(3);
    let entered = kims.say(&world, &path, &format!("decision=enter_code&code={first}+{second}")).await;
    assert_eq!(entered.status, StatusCode::SEE_OTHER, "{}", text(&entered));
    // It counts once, for her and for this page.
    let mut eve = Browser::default();
    let again = eve.say(&world, &path, &format!("decision=enter_code&code={right}")).await;
    assert_eq!(again.status, StatusCode::FORBIDDEN);
    let danas = path_of(&asked, DANA);
    assert!(kims.look(&world, &danas).await.contains("does not know you yet"));
    let decided = kims.say(&world, &path, "decision=approve").await;
    assert_eq!(decided.status, StatusCode::SEE_OTHER, "{}", text(&decided));
    assert!(!is_open(&world, &asked).await);
    let fact = |kind, name| fact(&world, &asked.session, kind, name);
    assert_eq!(fact("approval.decided", "link_auth").await, "code");
    for kind in ["approval.code_sent", "approval.code_accepted"] {
        assert_eq!(fact(kind, "to").await, KIM);
    }
    // Another gate asks her nothing more, until her browser is forgotten.
    let next = world.asked().await;
    assert!(kims.look(&world, &path_of(&next, KIM)).await.contains("Record the decision"));
    world.node.clock.advance(31 * 24 * 60 * MINUTE);
    assert!(kims.look(&world, &path_of(&next, KIM)).await.contains("does not know you yet"));
    world.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenant_says_how_long_a_browser_stays_known() {
    let (world, asked) = coded().await;
    let known = prost_types::Duration { seconds: 20 * 60, nanos: 0 };
    let tenant = v1::Tenant { name: "-".into(), browser_known_time: Some(known), ..Default::default() };
    let update_mask = Some(prost_types::FieldMask { paths: vec!["browser_known_time".into()] });
    let request = v1::UpdateTenantRequest { tenant: Some(tenant), update_mask, ..Default::default() };
    let _: v1::UpdateTenantResponse = world.ask("admin", "UpdateTenant", &request).await;
    let path = path_of(&asked, KIM);
    let mut kims = Browser::default();
    kims.say(&world, &path, "decision=send_code").await;
    let right = code(&asked, KIM, world.node.clock.now());
    let entered = kims.say(&world, &path, &format!("decision=enter_code&code={right}")).await;
    let cookie = entered.headers.get("set-cookie").and_then(|cookie| cookie.to_str().ok());
    assert!(cookie.is_some_and(|cookie| cookie.contains("Max-Age=1200")), "{cookie:?}");
    world.node.clock.advance(19 * MINUTE);
    assert!(kims.look(&world, &path).await.contains("Record the decision"));
    // A browser that keeps its cookie for longer is not known for longer.
    world.node.clock.advance(MINUTE);
    assert!(kims.look(&world, &path).await.contains("does not know you yet"));
    world.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn codes_are_few_and_do_not_last() {
    let (world, asked) = coded().await;
    let path = path_of(&asked, KIM);
    let mut kims = Browser::default();
    for _ in 0..3 {
        assert_eq!(kims.say(&world, &path, "decision=send_code").await.status, StatusCode::SEE_OTHER);
        world.node.clock.advance(MINUTE);
    }
    let fourth = kims.say(&world, &path, "decision=send_code").await;
    assert_eq!(fourth.status, StatusCode::TOO_MANY_REQUESTS, "{}", text(&fourth));
    assert_eq!(mailed(&world).await.len(), 3);
    // Others are not kept from theirs.
    let danas = path_of(&asked, DANA);
    assert_eq!(
        Browser::default().say(&world, &danas, "decision=send_code").await.status,
        StatusCode::SEE_OTHER
    );
    let sent = Time(world.node.clock.now().0 - MINUTE);
    let first = code(&asked, KIM, Time(sent.0 - 2 * MINUTE));
    let earlier = kims.say(&world, &path, &format!("decision=enter_code&code={first}")).await;
    assert_eq!(earlier.status, StatusCode::FORBIDDEN, "the newest counts");
    world.node.clock.advance(9 * MINUTE);
    let late =
        kims.say(&world, &path, &format!("decision=enter_code&code={}", code(&asked, KIM, sent))).await;
    assert_eq!((late.status, late.headers.get("set-cookie")), (StatusCode::FORBIDDEN, None));
    world.node.clock.advance(60 * MINUTE);
    assert_eq!(kims.say(&world, &path, "decision=send_code").await.status, StatusCode::SEE_OTHER);
    world.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_browser_of_who_asked_decides_nothing() {
    let (world, mine) = coded().await;
    let mut browser = Browser::default();
    let path = path_of(&mine, KIM);
    browser.say(&world, &path, "decision=send_code").await;
    let right = code(&mine, KIM, world.node.clock.now());
    browser.say(&world, &path, &format!("decision=enter_code&code={right}")).await;
    // Kim asks for something now, and opens the link that Dana passed on, which even a link alone would do for.
    set(&world, v1::LinkAuth::Link).await;
    let role = v1::KeyRole::Operator.into();
    let request = v1::CreateApiKeyRequest { subject: "kim".into(), role, ..Default::default() };
    let made: v1::CreateApiKeyResponse = world.ask("admin", "CreateApiKey", &request).await;
    let asked = world.asked_by(&made.secret, "kim", &[KIM]).await;
    let danas = path_of(&asked, DANA);
    let page = browser.look(&world, &danas).await;
    assert!(page.contains("This browser is known as") && page.contains("who asked for this"), "{page}");
    let shown = asked.gate.args_digest.as_str();
    let answer = browser.say(&world, &danas, &format!("decision=approve&shown={shown}")).await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN, "{}", text(&answer));
    assert!(is_open(&world, &asked).await);
    let other = Browser::default().say(&world, &danas, "decision=approve").await;
    assert_eq!(other.status, StatusCode::SEE_OTHER, "{}", text(&other));
    world.node.end().await;
}
