//! A decision page that wants a sign-in with an OpenID provider: whoever cannot prove the address decides nothing.

use http::{Method, StatusCode};
use serde_json::{Value, json};
use switchward_api::v1;
use switchward_engine::limits::SIGN_IN_MS;
use switchward_shard::Clock as _;

use crate::browser::Browser;
use crate::decision_page::{get, path_of, text};
use crate::mailing::answers::fact;
use crate::mailing::{Asked, DANA, KIM};
use crate::openid::{Provider, Signing};
use crate::page_codes::{code, is_open, set};
use crate::told::refused;
use crate::ways::{Answer, Raw};
use crate::world::World;

const SECOND: u64 = 1_000;
const HOUR: u64 = 3_600 * SECOND;

/// A tenant whose pages want a sign-in with this provider, and a gate that asks Kim and Dana.
async fn signing_in() -> (World, Provider, Asked) {
    let provider = Provider::start().await;
    let world = World::signing_in(Some(provider.sign_in())).await;
    set(&world, v1::LinkAuth::Oidc).await;
    let asked = world.asked().await;
    (world, provider, asked)
}

fn now_s(world: &World) -> u64 {
    world.node.clock.now().0 / SECOND
}

/// Follows the page's link: the address of the provider's page.
async fn begun(world: &World, browser: &mut Browser, path: &str) -> String {
    let answer = browser.open(world, &format!("{path}/sign-in")).await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER, "{}", text(&answer));
    assert_eq!(answer.headers["referrer-policy"], "no-referrer");
    answer.headers["location"].to_str().expect("text").to_owned()
}

/// Signs in with this browser: what the server answers to what the provider says of it.
async fn signed_in(
    (world, provider): (&World, &Provider),
    browser: &mut Browser,
    path: &str,
    (signing, change): (Signing, impl FnOnce(&mut Value)),
) -> Answer {
    let page = begun(world, browser, path).await;
    let back = provider.back(&page, now_s(world), signing, change);
    browser.open(world, &back).await
}

/// The right person signs in.
async fn kims(world: &World, provider: &Provider, path: &str) -> Browser {
    let mut browser = Browser::default();
    let answer = signed_in((world, provider), &mut browser, path, (Signing::Right, |_| {})).await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER, "{}", text(&answer));
    assert_eq!(answer.headers["location"], path);
    browser
}

/// The page knows nobody in this browser, and takes no decision from it.
async fn is_unknown(world: &World, browser: &mut Browser, (asked, path): (&Asked, &str)) {
    assert!(browser.look(world, path).await.contains("does not know you yet"));
    let words = format!("decision=approve&shown={}", asked.gate.args_digest);
    let answer = browser.say(world, path, &words).await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN, "{}", text(&answer));
    assert!(is_open(world, asked).await);
}

/// A refusal with this word, which leaves the browser without a cookie.
fn is_refused(browser: &Browser, answer: &Answer, status: StatusCode, word: &str) {
    let page = text(answer);
    assert_eq!(answer.status, status, "{word}: {page}");
    assert!(page.contains(&format!("({word})")), "{word}: {page}");
    assert!(browser.cookies.is_empty(), "{word}: {:?}", browser.cookies);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_proves_the_address_is_known_and_decides() {
    let (world, provider, asked) = signing_in().await;
    let path = path_of(&asked, KIM);
    let mut eve = Browser::default();
    let page = eve.look(&world, &path).await;
    assert!(page.contains("mcp:filesystem:write_file") && page.contains("does not know you yet"), "{page}");
    assert!(page.contains(&format!("href=\"{path}/sign-in\"")), "{page}");
    is_unknown(&world, &mut eve, (&asked, &path)).await;
    // Neither a code nor a look by machines does anything.
    let code = eve.say(&world, &path, "decision=send_code").await;
    assert_eq!(code.status, StatusCode::BAD_REQUEST, "{}", text(&code));
    let before = world.node.state().await;
    for method in [Method::HEAD, Method::GET] {
        let answer = world.node.line.send(Raw { method, ..get(&format!("{path}/sign-in")) }).await;
        assert_eq!(answer.status, StatusCode::SEE_OTHER);
    }
    assert_eq!(world.node.state().await, before);

    let mut browser = Browser::default();
    let capital = |claims: &mut Value| claims["email"] = json!("Kim@ACME.example");
    let answer = signed_in((&world, &provider), &mut browser, &path, (Signing::Right, capital)).await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER, "{}", text(&answer));
    assert_eq!(answer.headers["location"], path);
    assert_eq!(browser.cookies.len(), 1, "what was begun is done: {:?}", browser.cookies);
    assert!(browser.look(&world, &path).await.contains("Record the decision"));
    assert!(browser.look(&world, &path_of(&asked, DANA)).await.contains("does not know you yet"));
    let decided = browser.say(&world, &path, "decision=approve").await;
    assert_eq!(decided.status, StatusCode::SEE_OTHER, "{}", text(&decided));
    assert!(!is_open(&world, &asked).await);
    assert_eq!(fact(&world, &asked.session, "approval.decided", "link_auth").await, "oidc");
    // Another gate asks her nothing more, until her browser is forgotten.
    let next = world.asked().await;
    let path = path_of(&next, KIM);
    assert!(browser.look(&world, &path).await.contains("Record the decision"));
    world.node.clock.advance(31 * 24 * HOUR);
    assert!(browser.look(&world, &path).await.contains("does not know you yet"));
    world.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_id_token_that_proves_too_little_proves_nothing() {
    let (world, provider, asked) = signing_in().await;
    let path = path_of(&asked, KIM);
    let now = now_s(&world);
    let faults: [(&str, Signing, Value); 17] = [
        ("address_other", Signing::Right, json!({ "email": "eve@acme.example" })),
        ("address_other", Signing::Right, json!({ "email": "kim@acme.example.evil.example" })),
        ("address_other", Signing::Right, json!({ "email": "" })),
        ("address_missing", Signing::Right, json!({ "email": null })),
        ("address_unverified", Signing::Right, json!({ "email_verified": false })),
        ("address_unverified", Signing::Right, json!({ "email_verified": null })),
        ("nonce_wrong", Signing::Right, json!({ "nonce": "0".repeat(64) })),
        ("nonce_wrong", Signing::Right, json!({ "nonce": null })),
        ("audience_wrong", Signing::Right, json!({ "aud": "another" })),
        ("audience_wrong", Signing::Right, json!({ "aud": ["switchward", "another"] })),
        ("id_token_expired", Signing::Right, json!({ "exp": now })),
        ("issuer_wrong", Signing::Right, json!({ "iss": "https://login.evil.example" })),
        ("id_token_invalid", Signing::Right, json!({ "exp": "tomorrow" })),
        ("signature_wrong", Signing::OtherKey, json!({})),
        ("signature_wrong", Signing::Secret, json!({})),
        ("signature_wrong", Signing::Nothing, json!({})),
        ("nonce_wrong", Signing::Right, json!({ "nonce": "" })),
    ];
    for (word, signing, fault) in faults {
        let mut browser = Browser::default();
        let change = |claims: &mut Value| {
            for (name, value) in fault.as_object().expect("claims") {
                claims[name] = value.clone();
            }
            claims.as_object_mut().expect("claims").retain(|_, value| !value.is_null());
        };
        let answer = signed_in((&world, &provider), &mut browser, &path, (signing, change)).await;
        is_refused(&browser, &answer, StatusCode::FORBIDDEN, word);
        assert!(!text(&answer).contains("evil"), "{word}: {}", text(&answer));
        is_unknown(&world, &mut browser, (&asked, &path)).await;
    }
    // A code counts once, for the sign-in that it was given for.
    let (mut first, mut second) = (Browser::default(), Browser::default());
    let page = begun(&world, &mut first, &path).await;
    let back = provider.back(&page, now, Signing::Right, |_| {});
    let other = begun(&world, &mut second, &path).await;
    let state = |text: &str| text.split_once("state=").expect("a state").1[..32].to_owned();
    let mixed = back.replace(&state(&back), &state(&other));
    let answer = second.open(&world, &mixed).await;
    is_refused(&second, &answer, StatusCode::FORBIDDEN, "code_refused");
    let answer = first.open(&world, &back).await;
    is_refused(&first, &answer, StatusCode::FORBIDDEN, "code_refused");
    kims(&world, &provider, &path).await;
    world.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sign_in_counts_where_it_was_begun() {
    let (world, provider, asked) = signing_in().await;
    let path = path_of(&asked, KIM);
    let unknown = |answer: &Answer| {
        let page = text(answer);
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{page}");
        assert!(page.contains("(state_unknown)") && answer.headers.get("set-cookie").is_none(), "{page}");
    };
    let mut browser = Browser::default();
    let page = begun(&world, &mut browser, &path).await;
    let back = provider.back(&page, now_s(&world), Signing::Right, |_| {});
    let (name, (value, place)) = browser.cookies.clone().pop_first().expect("a cookie");
    assert_eq!(place, "/a/oidc/callback");
    // Whoever has the way back and not the browser, and what nobody has begun.
    unknown(&Browser::default().open(&world, &back).await);
    for query in ["", "?", "?code=x", "?state=", "?state=x&code=x", "?state=a&state=b&code=x", "?state=%00"] {
        unknown(&browser.clone().open(&world, &format!("/a/oidc/callback{query}")).await);
    }
    let state = back.split_once("state=").expect("a state").1[..32].to_owned();
    unknown(&browser.clone().open(&world, &back.replace(&state, &"0".repeat(32))).await);
    // The page of somebody else, another state, another time, and no code over them.
    let token = |path: String| path.trim_start_matches("/a/").to_owned();
    let (mine, danas) = (token(path.clone()), token(path_of(&asked, DANA)));
    let (at, rest) = value.split_once('.').expect("a time");
    let later = (at.parse::<u64>().expect("a time") + 1).to_string();
    for changed in [
        value.replace(&mine, &danas),
        format!("{later}.{rest}"),
        format!("{at}.{mine}."),
        format!("{at}.{mine}"),
        format!("{value}.x"),
        format!("{value}AAAA"),
    ] {
        assert_ne!(changed, value);
        let mut forged = browser.clone();
        forged.cookies.insert(name.clone(), (changed, place.clone()));
        unknown(&forged.open(&world, &back).await);
    }
    let mut other = browser.clone();
    other.cookies = [(name.replace(&state, &"0".repeat(32)), (value.clone(), place.clone()))].into();
    unknown(&other.open(&world, &back.replace(&state, &"0".repeat(32))).await);
    // In time, it counts; then no more.
    world.node.clock.advance(SIGN_IN_MS - 1);
    let mut late = browser.clone();
    let answer = browser.open(&world, &back).await;
    is_refused(&browser, &answer, StatusCode::FORBIDDEN, "id_token_expired");
    world.node.clock.advance(1);
    unknown(&late.open(&world, &back).await);
    is_unknown(&world, &mut late, (&asked, &path)).await;
    world.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_provider_says_is_not_shown() {
    let (world, provider, asked) = signing_in().await;
    let path = path_of(&asked, KIM);
    for (query, word) in [
        ("error=%3Cscript%3Eevil&error_description=%3Cscript%3Eevil", "sign_in_denied"),
        ("error=access_denied&code=x", "sign_in_denied"),
        ("", "code_missing"),
        ("code=", "code_missing"),
        ("code=%3Cscript%3Eevil", "code_refused"),
    ] {
        let mut browser = Browser::default();
        let page = begun(&world, &mut browser, &path).await;
        let state = page.split_once("state=").expect("a state").1[..32].to_owned();
        let back = format!("/a/oidc/callback?state={state}&{query}");
        let answer = browser.open(&world, &back).await;
        is_refused(&browser, &answer, StatusCode::FORBIDDEN, word);
        assert!(!text(&answer).contains("evil"), "{query}: {}", text(&answer));
    }
    let mut browser = Browser::default();
    begun(&world, &mut browser, &path).await;
    let state =
        browser.cookies.keys().next().expect("a cookie").rsplit('-').next().expect("a state").to_owned();
    let long = format!("/a/oidc/callback?state={state}&code={}", "x".repeat(4 * 1024 + 1));
    let answer = browser.open(&world, &long).await;
    is_refused(&browser, &answer, StatusCode::FORBIDDEN, "code_missing");
    // A link that leads to nothing leads to no sign-in either.
    let stranger = Browser::default().open(&world, &format!("/a/{}/sign-in", "a".repeat(60))).await;
    assert_eq!(stranger.status, StatusCode::NOT_FOUND);
    kims(&world, &provider, &path).await;
    world.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_that_is_down_stops_nothing_else() {
    let (world, provider, asked) = signing_in().await;
    let path = path_of(&asked, KIM);
    provider.set_down(true);
    let mut browser = Browser::default();
    let answer = browser.open(&world, &format!("{path}/sign-in")).await;
    is_refused(&browser, &answer, StatusCode::SERVICE_UNAVAILABLE, "sign_in_unavailable");
    assert!(text(&answer).contains("Sign-in is not possible now") && !text(&answer).contains("<b>down"));
    // Somebody whom the page knows, and calls, need no provider; and it is not asked again at once.
    let next = browser.open(&world, &format!("{path}/sign-in")).await;
    provider.set_down(false);
    let again = browser.open(&world, &format!("{path}/sign-in")).await;
    assert_eq!((next.status, again.status, provider.discovered()), (answer.status, answer.status, 0));
    world.node.clock.advance(5 * SECOND);
    let mut known = kims(&world, &provider, &path).await;
    let page = begun(&world, &mut browser, &path).await;
    let back = provider.back(&page, now_s(&world), Signing::Right, |_| {});
    provider.set_down(true);
    let answer = browser.open(&world, &back).await;
    is_refused(&browser, &answer, StatusCode::SERVICE_UNAVAILABLE, "sign_in_unavailable");
    is_unknown(&world, &mut browser, (&asked, &path)).await;
    let decided = known.say(&world, &path, "decision=approve").await;
    assert_eq!(decided.status, StatusCode::SEE_OTHER, "{}", text(&decided));
    world.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_provider_publishes_is_kept_for_a_time() {
    let (world, provider, asked) = signing_in().await;
    let path = path_of(&asked, KIM);
    kims(&world, &provider, &path).await;
    kims(&world, &provider, &path).await;
    assert_eq!(provider.discovered(), 1);
    // A new key is looked for, but not each time.
    provider.turn();
    let mut browser = Browser::default();
    let answer = signed_in((&world, &provider), &mut browser, &path, (Signing::Right, |_| {})).await;
    is_refused(&browser, &answer, StatusCode::FORBIDDEN, "key_unknown");
    assert_eq!(provider.discovered(), 1);
    world.node.clock.advance(60 * SECOND);
    kims(&world, &provider, &path).await;
    assert_eq!(provider.discovered(), 2);
    kims(&world, &provider, &path).await;
    assert_eq!(provider.discovered(), 2);
    world.node.clock.advance(HOUR);
    kims(&world, &provider, &path).await;
    assert_eq!(provider.discovered(), 3);
    world.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_weaker_proof_is_not_enough_and_a_stronger_one_is() {
    let (world, provider, asked) = signing_in().await;
    let path = path_of(&asked, KIM);
    // A browser that is known by a code.
    set(&world, v1::LinkAuth::Code).await;
    let mut browser = Browser::default();
    browser.say(&world, &path, "decision=send_code").await;
    let right = code(&asked, KIM, world.node.clock.now());
    let entered = browser.say(&world, &path, &format!("decision=enter_code&code={right}")).await;
    assert_eq!(entered.status, StatusCode::SEE_OTHER, "{}", text(&entered));
    assert!(browser.look(&world, &path).await.contains("Record the decision"));
    // No sign-in where none is wanted.
    let needless = browser.open(&world, &format!("{path}/sign-in")).await;
    assert_eq!(needless.status, StatusCode::BAD_REQUEST, "{}", text(&needless));
    set(&world, v1::LinkAuth::Oidc).await;
    is_unknown(&world, &mut browser, (&asked, &path)).await;
    let mut signed = kims(&world, &provider, &path).await;
    for wanted in [v1::LinkAuth::Code, v1::LinkAuth::Link, v1::LinkAuth::Oidc] {
        set(&world, wanted).await;
        assert!(signed.look(&world, &path).await.contains("Record the decision"), "{wanted:?}");
    }
    // A sign-in that was begun while it was wanted makes nobody known when it is not any more.
    let mut begun_before = Browser::default();
    let page = begun(&world, &mut begun_before, &path).await;
    let back = provider.back(&page, now_s(&world), Signing::Right, |_| {});
    set(&world, v1::LinkAuth::Code).await;
    let answer = begun_before.open(&world, &back).await;
    assert_eq!(
        (answer.status, begun_before.cookies.len()),
        (StatusCode::BAD_REQUEST, 0),
        "{}",
        text(&answer)
    );
    world.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_browser_of_who_asked_signs_nobody_in() {
    let (world, provider, mine) = signing_in().await;
    let mut browser = kims(&world, &provider, &path_of(&mine, KIM)).await;
    let role = v1::KeyRole::Operator.into();
    let request = v1::CreateApiKeyRequest { subject: "kim".into(), role, ..Default::default() };
    let made: v1::CreateApiKeyResponse = world.ask("admin", "CreateApiKey", &request).await;
    let asked = world.asked_by(&made.secret, "kim", &[KIM]).await;
    // Kim opens the link that Dana passed on.
    let danas = path_of(&asked, DANA);
    let page = browser.look(&world, &danas).await;
    assert!(page.contains("who asked for this") && !page.contains("/sign-in"), "{page}");
    let answer = browser.open(&world, &format!("{danas}/sign-in")).await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN, "{}", text(&answer));
    assert_eq!(answer.headers.get("set-cookie"), None);
    let words = format!("decision=approve&shown={}", asked.gate.args_digest);
    assert_eq!(browser.say(&world, &danas, &words).await.status, StatusCode::FORBIDDEN);
    // As whoever signs in: it is Dana's page.
    let mut other = Browser::default();
    let page = other.open(&world, &format!("{danas}/sign-in")).await;
    let page = page.headers["location"].to_str().expect("text").replace("dana%40", "kim%40");
    let back = provider.back(&page, now_s(&world), Signing::Right, |_| {});
    // The requester becomes known in this browser before it comes back.
    let mut both = other.clone();
    both.cookies.extend(browser.cookies.clone());
    let answer = both.open(&world, &back).await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN, "{}", text(&answer));
    assert!(text(&answer).contains("who asked for this"), "{}", text(&answer));
    let answer = other.open(&world, &back).await;
    is_refused(&other, &answer, StatusCode::FORBIDDEN, "address_other");
    assert!(is_open(&world, &asked).await);
    world.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_a_provider_lets_nobody_ask_for_one() {
    let world = World::start().await;
    let tenant = v1::Tenant { name: "-".into(), link_auth: v1::LinkAuth::Oidc.into(), ..Default::default() };
    let update_mask = Some(prost_types::FieldMask { paths: vec!["link_auth".into()] });
    let request = v1::UpdateTenantRequest { tenant: Some(tenant.clone()), update_mask, ..Default::default() };
    let outcome = world.attempt::<v1::UpdateTenantResponse>("admin", "UpdateTenant", &request).await;
    refused(outcome, "SIGN_IN_NOT_CONFIGURED");
    let tenant_id = "initech".into();
    let create = v1::CreateTenantRequest { tenant_id, tenant: Some(tenant), ..Default::default() };
    let outcome = world.attempt::<v1::CreateTenantResponse>("admin", "CreateTenant", &create).await;
    refused(outcome, "SIGN_IN_NOT_CONFIGURED");
    // It had one when the tenant asked for it.
    let asked = world.asked().await;
    world.node.want_sign_in("acme").await;
    let path = path_of(&asked, KIM);
    let mut browser = Browser::default();
    let page = browser.look(&world, &path).await;
    assert!(page.contains("has no OpenID provider") && !page.contains("/sign-in"), "{page}");
    let answer = browser.open(&world, &format!("{path}/sign-in")).await;
    is_refused(&browser, &answer, StatusCode::SERVICE_UNAVAILABLE, "sign_in_not_configured");
    is_unknown(&world, &mut browser, (&asked, &path)).await;
    world.node.end().await;
}
