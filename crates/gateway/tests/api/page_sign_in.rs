//! A decision page that requires a sign-in with an OpenID provider: nobody decides without proving the address.

use http::{Method, StatusCode};
use serde_json::{Value, json};
use switchward_api::v1;
use switchward_shard::Clock as _;
use switchward_state::limits::SIGN_IN_MS;

use crate::browser::Browser;
use crate::decision_page::{get, path_of, text};
use crate::harness::Harness;
use crate::mailing::answers::fact;
use crate::mailing::{DANA, KIM, NotifiedGate};
use crate::openid::{Provider, Signing};
use crate::page_codes::{code, is_open, set};
use crate::protocols::{Answer, Raw};
use crate::refusal::refused;

const SECOND: u64 = 1_000;
const HOUR: u64 = 3_600 * SECOND;

/// A tenant whose pages require a sign-in with this provider, and a gate that asks Kim and Dana.
async fn signing_in() -> (Harness, Provider, NotifiedGate) {
    let provider = Provider::start().await;
    let harness = Harness::signing_in(Some(provider.sign_in())).await;
    set(&harness, v1::LinkAuth::Oidc).await;
    let asked = harness.asked().await;
    (harness, provider, asked)
}

fn now_s(harness: &Harness) -> u64 {
    harness.node.clock.now().0 / SECOND
}

/// Follows the page's link; returns the address of the provider's page.
async fn begun(harness: &Harness, browser: &mut Browser, path: &str) -> String {
    let answer = browser.open(harness, &format!("{path}/sign-in")).await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER, "{}", text(&answer));
    assert_eq!(answer.headers["referrer-policy"], "no-referrer");
    answer.headers["location"].to_str().expect("text").to_owned()
}

/// Signs in with this browser; returns the server's answer to the provider's callback.
async fn signed_in(
    (harness, provider): (&Harness, &Provider),
    browser: &mut Browser,
    path: &str,
    (signing, change): (Signing, impl FnOnce(&mut Value)),
) -> Answer {
    let page = begun(harness, browser, path).await;
    let back = provider.back(&page, now_s(harness), signing, change);
    browser.open(harness, &back).await
}

/// Signs Kim in correctly.
async fn kims(harness: &Harness, provider: &Provider, path: &str) -> Browser {
    let mut browser = Browser::default();
    let answer = signed_in((harness, provider), &mut browser, path, (Signing::Right, |_| {})).await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER, "{}", text(&answer));
    assert_eq!(answer.headers["location"], path);
    browser
}

/// Checks that the page does not know this browser, and refuses its decision.
async fn is_unknown(harness: &Harness, browser: &mut Browser, (asked, path): (&NotifiedGate, &str)) {
    assert!(browser.look(harness, path).await.contains("does not know you yet"));
    let words = format!("decision=approve&shown={}", asked.gate.args_digest);
    let answer = browser.say(harness, path, &words).await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN, "{}", text(&answer));
    assert!(is_open(harness, asked).await);
}

/// Checks for a refusal with this reason, which leaves the browser without a cookie.
fn is_refused(browser: &Browser, answer: &Answer, status: StatusCode, word: &str) {
    let page = text(answer);
    assert_eq!(answer.status, status, "{word}: {page}");
    assert!(page.contains(&format!("({word})")), "{word}: {page}");
    assert!(browser.cookies.is_empty(), "{word}: {:?}", browser.cookies);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_who_proves_the_address_is_known_and_decides() {
    let (harness, provider, asked) = signing_in().await;
    let path = path_of(&asked, KIM);
    let mut eve = Browser::default();
    let page = eve.look(&harness, &path).await;
    assert!(page.contains("mcp:filesystem:write_file") && page.contains("does not know you yet"), "{page}");
    assert!(page.contains(&format!("href=\"{path}/sign-in\"")), "{page}");
    is_unknown(&harness, &mut eve, (&asked, &path)).await;
    // Neither a code nor a visit by a scanner does anything.
    let code = eve.say(&harness, &path, "decision=send_code").await;
    assert_eq!(code.status, StatusCode::BAD_REQUEST, "{}", text(&code));
    let before = harness.node.state().await;
    for method in [Method::HEAD, Method::GET] {
        let answer = harness.node.line.send(Raw { method, ..get(&format!("{path}/sign-in")) }).await;
        assert_eq!(answer.status, StatusCode::SEE_OTHER);
    }
    assert_eq!(harness.node.state().await, before);

    let mut browser = Browser::default();
    let capital = |claims: &mut Value| claims["email"] = json!("Kim@ACME.example");
    let answer = signed_in((&harness, &provider), &mut browser, &path, (Signing::Right, capital)).await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER, "{}", text(&answer));
    assert_eq!(answer.headers["location"], path);
    assert_eq!(browser.cookies.len(), 1, "the cookie of the sign-in is removed: {:?}", browser.cookies);
    assert!(browser.look(&harness, &path).await.contains("Record the decision"));
    assert!(browser.look(&harness, &path_of(&asked, DANA)).await.contains("does not know you yet"));
    let decided = browser.say(&harness, &path, "decision=approve").await;
    assert_eq!(decided.status, StatusCode::SEE_OTHER, "{}", text(&decided));
    assert!(!is_open(&harness, &asked).await);
    assert_eq!(fact(&harness, &asked.session, "approval.decided", "link_auth").await, "oidc");
    // Another gate requires no sign-in until the browser is forgotten.
    let next = harness.asked().await;
    let path = path_of(&next, KIM);
    assert!(browser.look(&harness, &path).await.contains("Record the decision"));
    harness.node.clock.advance(31 * 24 * HOUR);
    assert!(browser.look(&harness, &path).await.contains("does not know you yet"));
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_id_token_that_proves_too_little_proves_nothing() {
    let (harness, provider, asked) = signing_in().await;
    let path = path_of(&asked, KIM);
    let now = now_s(&harness);
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
        let answer = signed_in((&harness, &provider), &mut browser, &path, (signing, change)).await;
        is_refused(&browser, &answer, StatusCode::FORBIDDEN, word);
        assert!(!text(&answer).contains("evil"), "{word}: {}", text(&answer));
        is_unknown(&harness, &mut browser, (&asked, &path)).await;
    }
    // A code is valid once, for the sign-in that it was issued for.
    let (mut first, mut second) = (Browser::default(), Browser::default());
    let page = begun(&harness, &mut first, &path).await;
    let back = provider.back(&page, now, Signing::Right, |_| {});
    let other = begun(&harness, &mut second, &path).await;
    let state = |text: &str| text.split_once("state=").expect("a state").1[..32].to_owned();
    let mixed = back.replace(&state(&back), &state(&other));
    let answer = second.open(&harness, &mixed).await;
    is_refused(&second, &answer, StatusCode::FORBIDDEN, "code_refused");
    let answer = first.open(&harness, &back).await;
    is_refused(&first, &answer, StatusCode::FORBIDDEN, "code_refused");
    kims(&harness, &provider, &path).await;
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sign_in_counts_where_it_was_begun() {
    let (harness, provider, asked) = signing_in().await;
    let path = path_of(&asked, KIM);
    let unknown = |answer: &Answer| {
        let page = text(answer);
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{page}");
        assert!(page.contains("(state_unknown)") && answer.headers.get("set-cookie").is_none(), "{page}");
    };
    let mut browser = Browser::default();
    let page = begun(&harness, &mut browser, &path).await;
    let back = provider.back(&page, now_s(&harness), Signing::Right, |_| {});
    let (name, (value, cookie_path)) = browser.cookies.clone().pop_first().expect("a cookie");
    assert_eq!(cookie_path, "/a/oidc/callback");
    // The callback's address in another browser, and callbacks of sign-ins that were never begun.
    unknown(&Browser::default().open(&harness, &back).await);
    for query in ["", "?", "?code=x", "?state=", "?state=x&code=x", "?state=a&state=b&code=x", "?state=%00"] {
        unknown(&browser.clone().open(&harness, &format!("/a/oidc/callback{query}")).await);
    }
    let state = back.split_once("state=").expect("a state").1[..32].to_owned();
    unknown(&browser.clone().open(&harness, &back.replace(&state, &"0".repeat(32))).await);
    // Another person's page, another state, another time, and no mac over them.
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
        forged.cookies.insert(name.clone(), (changed, cookie_path.clone()));
        unknown(&forged.open(&harness, &back).await);
    }
    let mut other = browser.clone();
    other.cookies = [(name.replace(&state, &"0".repeat(32)), (value.clone(), cookie_path.clone()))].into();
    unknown(&other.open(&harness, &back.replace(&state, &"0".repeat(32))).await);
    // In time, it is valid; later it is not.
    harness.node.clock.advance(SIGN_IN_MS - 1);
    let mut late = browser.clone();
    let answer = browser.open(&harness, &back).await;
    is_refused(&browser, &answer, StatusCode::FORBIDDEN, "id_token_expired");
    harness.node.clock.advance(1);
    unknown(&late.open(&harness, &back).await);
    is_unknown(&harness, &mut late, (&asked, &path)).await;
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_provider_says_is_not_shown() {
    let (harness, provider, asked) = signing_in().await;
    let path = path_of(&asked, KIM);
    for (query, word) in [
        ("error=%3Cscript%3Eevil&error_description=%3Cscript%3Eevil", "sign_in_denied"),
        ("error=access_denied&code=x", "sign_in_denied"),
        ("", "code_missing"),
        ("code=", "code_missing"),
        ("code=%3Cscript%3Eevil", "code_refused"),
    ] {
        let mut browser = Browser::default();
        let page = begun(&harness, &mut browser, &path).await;
        let state = page.split_once("state=").expect("a state").1[..32].to_owned();
        let back = format!("/a/oidc/callback?state={state}&{query}");
        let answer = browser.open(&harness, &back).await;
        is_refused(&browser, &answer, StatusCode::FORBIDDEN, word);
        assert!(!text(&answer).contains("evil"), "{query}: {}", text(&answer));
    }
    let mut browser = Browser::default();
    begun(&harness, &mut browser, &path).await;
    let state =
        browser.cookies.keys().next().expect("a cookie").rsplit('-').next().expect("a state").to_owned();
    let long = format!("/a/oidc/callback?state={state}&code={}", "x".repeat(4 * 1024 + 1));
    let answer = browser.open(&harness, &long).await;
    is_refused(&browser, &answer, StatusCode::FORBIDDEN, "code_missing");
    // An unknown link does not lead to a sign-in.
    let stranger = Browser::default().open(&harness, &format!("/a/{}/sign-in", "a".repeat(60))).await;
    assert_eq!(stranger.status, StatusCode::NOT_FOUND);
    kims(&harness, &provider, &path).await;
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_that_is_down_stops_nothing_else() {
    let (harness, provider, asked) = signing_in().await;
    let path = path_of(&asked, KIM);
    provider.set_down(true);
    let mut browser = Browser::default();
    let answer = browser.open(&harness, &format!("{path}/sign-in")).await;
    is_refused(&browser, &answer, StatusCode::SERVICE_UNAVAILABLE, "sign_in_unavailable");
    assert!(text(&answer).contains("Sign-in is not possible now") && !text(&answer).contains("<b>down"));
    // Known browsers and API calls need no provider; and the provider is not asked again at once.
    let next = browser.open(&harness, &format!("{path}/sign-in")).await;
    provider.set_down(false);
    let again = browser.open(&harness, &format!("{path}/sign-in")).await;
    assert_eq!((next.status, again.status, provider.discovered()), (answer.status, answer.status, 0));
    harness.node.clock.advance(5 * SECOND);
    let mut known = kims(&harness, &provider, &path).await;
    let page = begun(&harness, &mut browser, &path).await;
    let back = provider.back(&page, now_s(&harness), Signing::Right, |_| {});
    provider.set_down(true);
    let answer = browser.open(&harness, &back).await;
    is_refused(&browser, &answer, StatusCode::SERVICE_UNAVAILABLE, "sign_in_unavailable");
    is_unknown(&harness, &mut browser, (&asked, &path)).await;
    let decided = known.say(&harness, &path, "decision=approve").await;
    assert_eq!(decided.status, StatusCode::SEE_OTHER, "{}", text(&decided));
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_provider_publishes_is_kept_for_a_time() {
    let (harness, provider, asked) = signing_in().await;
    let path = path_of(&asked, KIM);
    kims(&harness, &provider, &path).await;
    kims(&harness, &provider, &path).await;
    assert_eq!(provider.discovered(), 1);
    // A new key is fetched, but not each time.
    provider.turn();
    let mut browser = Browser::default();
    let answer = signed_in((&harness, &provider), &mut browser, &path, (Signing::Right, |_| {})).await;
    is_refused(&browser, &answer, StatusCode::FORBIDDEN, "key_unknown");
    assert_eq!(provider.discovered(), 1);
    harness.node.clock.advance(60 * SECOND);
    kims(&harness, &provider, &path).await;
    assert_eq!(provider.discovered(), 2);
    kims(&harness, &provider, &path).await;
    assert_eq!(provider.discovered(), 2);
    harness.node.clock.advance(HOUR);
    kims(&harness, &provider, &path).await;
    assert_eq!(provider.discovered(), 3);
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_weaker_proof_is_not_enough_and_a_stronger_one_is() {
    let (harness, provider, asked) = signing_in().await;
    let path = path_of(&asked, KIM);
    // A browser that is known because of a code.
    set(&harness, v1::LinkAuth::Code).await;
    let mut browser = Browser::default();
    browser.say(&harness, &path, "decision=send_code").await;
    let right = code(&asked, KIM, harness.node.clock.now());
    let entered = browser.say(&harness, &path, &format!("decision=enter_code&code={right}")).await;
    assert_eq!(entered.status, StatusCode::SEE_OTHER, "{}", text(&entered));
    assert!(browser.look(&harness, &path).await.contains("Record the decision"));
    // No sign-in if none is required.
    let needless = browser.open(&harness, &format!("{path}/sign-in")).await;
    assert_eq!(needless.status, StatusCode::BAD_REQUEST, "{}", text(&needless));
    set(&harness, v1::LinkAuth::Oidc).await;
    is_unknown(&harness, &mut browser, (&asked, &path)).await;
    let mut signed = kims(&harness, &provider, &path).await;
    for wanted in [v1::LinkAuth::Code, v1::LinkAuth::Link, v1::LinkAuth::Oidc] {
        set(&harness, wanted).await;
        assert!(signed.look(&harness, &path).await.contains("Record the decision"), "{wanted:?}");
    }
    // A sign-in that was begun while it was required has no effect when it is no longer required.
    let mut begun_before = Browser::default();
    let page = begun(&harness, &mut begun_before, &path).await;
    let back = provider.back(&page, now_s(&harness), Signing::Right, |_| {});
    set(&harness, v1::LinkAuth::Code).await;
    let answer = begun_before.open(&harness, &back).await;
    assert_eq!(
        (answer.status, begun_before.cookies.len()),
        (StatusCode::BAD_REQUEST, 0),
        "{}",
        text(&answer)
    );
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_browser_of_who_asked_signs_nobody_in() {
    let (harness, provider, mine) = signing_in().await;
    let mut browser = kims(&harness, &provider, &path_of(&mine, KIM)).await;
    let role = v1::KeyRole::Operator.into();
    let request = v1::CreateApiKeyRequest { subject: "kim".into(), role, ..Default::default() };
    let made: v1::CreateApiKeyResponse = harness.ask("admin", "CreateApiKey", &request).await;
    let asked = harness.asked_by(&made.secret, "kim", &[KIM]).await;
    // Kim opens the link that Dana passed on.
    let danas = path_of(&asked, DANA);
    let page = browser.look(&harness, &danas).await;
    assert!(page.contains("who asked for this") && !page.contains("/sign-in"), "{page}");
    let answer = browser.open(&harness, &format!("{danas}/sign-in")).await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN, "{}", text(&answer));
    assert_eq!(answer.headers.get("set-cookie"), None);
    let words = format!("decision=approve&shown={}", asked.gate.args_digest);
    assert_eq!(browser.say(&harness, &danas, &words).await.status, StatusCode::FORBIDDEN);
    // It is Dana's page, even for a new browser that signs in as Kim.
    let mut other = Browser::default();
    let page = other.open(&harness, &format!("{danas}/sign-in")).await;
    let page = page.headers["location"].to_str().expect("text").replace("dana%40", "kim%40");
    let back = provider.back(&page, now_s(&harness), Signing::Right, |_| {});
    // The requester becomes known in this browser before it comes back.
    let mut both = other.clone();
    both.cookies.extend(browser.cookies.clone());
    let answer = both.open(&harness, &back).await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN, "{}", text(&answer));
    assert!(text(&answer).contains("who asked for this"), "{}", text(&answer));
    let answer = other.open(&harness, &back).await;
    is_refused(&other, &answer, StatusCode::FORBIDDEN, "address_other");
    assert!(is_open(&harness, &asked).await);
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_a_provider_lets_nobody_ask_for_one() {
    let harness = Harness::start().await;
    let tenant = v1::Tenant { name: "-".into(), link_auth: v1::LinkAuth::Oidc.into(), ..Default::default() };
    let update_mask = Some(prost_types::FieldMask { paths: vec!["link_auth".into()] });
    let request = v1::UpdateTenantRequest { tenant: Some(tenant.clone()), update_mask, ..Default::default() };
    let outcome = harness.attempt::<v1::UpdateTenantResponse>("admin", "UpdateTenant", &request).await;
    refused(outcome, "SIGN_IN_NOT_CONFIGURED");
    let tenant_id = "initech".into();
    let create = v1::CreateTenantRequest { tenant_id, tenant: Some(tenant), ..Default::default() };
    let outcome = harness.attempt::<v1::CreateTenantResponse>("admin", "CreateTenant", &create).await;
    refused(outcome, "SIGN_IN_NOT_CONFIGURED");
    // The server had a provider when the tenant required the sign-in.
    let asked = harness.asked().await;
    harness.node.want_sign_in("acme").await;
    let path = path_of(&asked, KIM);
    let mut browser = Browser::default();
    let page = browser.look(&harness, &path).await;
    assert!(page.contains("has no OpenID provider") && !page.contains("/sign-in"), "{page}");
    let answer = browser.open(&harness, &format!("{path}/sign-in")).await;
    is_refused(&browser, &answer, StatusCode::SERVICE_UNAVAILABLE, "sign_in_not_configured");
    is_unknown(&harness, &mut browser, (&asked, &path)).await;
    harness.node.end().await;
}
