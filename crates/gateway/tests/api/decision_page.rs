//! The decision page: reading changes nothing, and a decision counts once.

use http::{Method, StatusCode};
use switchward_api::v1;
use switchward_state::approval::TokenUse;

use crate::harness::Harness;
use crate::mailing::{DANA, KIM, NotifiedGate};
use crate::protocols::{Answer, Raw};
use crate::rpcs::directory::of;

pub(crate) fn get(path: &str) -> Raw {
    Raw {
        http2: true,
        method: Method::GET,
        path: path.to_owned(),
        headers: Vec::new(),
        body: bytes::Bytes::new(),
    }
}

/// A form that is sent to a page.
pub(crate) fn form_of(path: &str, form: &str) -> Raw {
    let kind = ("content-type", "application/x-www-form-urlencoded".to_owned());
    Raw { method: Method::POST, headers: vec![kind], body: form.to_owned().into(), ..get(path) }
}

pub(crate) fn text(answer: &Answer) -> String {
    String::from_utf8(answer.body.to_vec()).expect("a page")
}

/// The hidden fields of the form on a page.
pub(crate) fn hidden(page: &str) -> String {
    let value = |name: &str| {
        let (_, rest) = page.split_once(&format!("name=\"{name}\" value=\"")).unwrap_or_default();
        format!("&{name}={}", rest.split('"').next().unwrap_or_default())
    };
    value("shown") + &value("form")
}

/// Opens a page, and sends its form with these words.
async fn say(harness: &Harness, path: &str, words: &str) -> Answer {
    let page = text(&harness.node.line.send(get(path)).await);
    harness.node.line.send(form_of(path, &format!("{words}{}", hidden(&page)))).await
}

pub(crate) fn path_of(asked: &NotifiedGate, person: &str) -> String {
    format!("/a/{}", asked.token(TokenUse::Page, person))
}

/// Approves on a person's page; returns the answer.
pub(crate) async fn decide(harness: &Harness, asked: &NotifiedGate, person: &str) -> Answer {
    say(harness, &path_of(asked, person), "decision=approve").await
}

/// Requesters see that they cannot decide, and cannot.
pub(crate) async fn not_hers(harness: &Harness, asked: &NotifiedGate, person: &str) {
    let path = path_of(asked, person);
    let page = text(&harness.node.line.send(get(&path)).await);
    assert!(page.contains("asked for this yourself") && !page.contains("<form"), "{page}");
    let form = format!("decision=approve&shown={}&form={}", asked.gate.args_digest, "0".repeat(32));
    let answer = harness.node.line.send(form_of(&path, &form)).await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN, "{}", text(&answer));
    assert!(text(&answer).contains("Somebody else must decide."), "{}", text(&answer));
}

async fn status(harness: &Harness, asked: &NotifiedGate) -> i32 {
    let request = v1::GetGateRequest { name: asked.gate.name.clone(), ..Default::default() };
    let reply: v1::GetGateResponse = harness.ask("agent", "GetGate", &request).await;
    reply.gate.expect("a gate").status
}

const OPEN: i32 = v1::GateStatus::Open as i32;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scanner_changes_nothing() {
    let harness = Harness::start().await;
    let asked = harness.asked().await;
    let path = path_of(&asked, KIM);
    let before = harness.node.state().await;
    for method in [Method::GET, Method::HEAD, Method::GET] {
        let answer = harness.node.line.send(Raw { method, ..get(&path) }).await;
        assert_eq!(answer.status, StatusCode::OK);
        let policy = answer.headers["content-security-policy"].to_str().expect("text");
        assert!(policy.starts_with("default-src 'none'"), "{policy}");
        assert_eq!(answer.headers["cache-control"], "no-store");
        assert_eq!(answer.headers["referrer-policy"], "no-referrer");
    }
    // An empty form is refused, and no other method does anything.
    for form in ["", "decision=", "decision=approved", "comment=yes", "decision=discuss&comment="] {
        let answer = say(&harness, &path, form).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{form}");
        assert!(text(&answer).contains("Nothing was recorded."), "{form}");
    }
    let put = harness.node.line.send(Raw { method: Method::PUT, ..get(&path) }).await;
    assert_eq!(put.status, StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(harness.node.state().await, before);
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_shown_is_what_is_decided() {
    let harness = Harness::start().await;
    let asked = harness.asked().await;
    let path = path_of(&asked, KIM);
    let page = text(&harness.node.line.send(get(&path)).await);
    assert!(page.contains("mcp:filesystem:write_file") && page.contains(&asked.gate.args_digest), "{page}");
    assert!(page.contains("<h2>Details</h2>") && page.contains(KIM), "{page}");
    assert!(!page.contains("checked"), "no decision is preselected: {page}");
    assert!(!page.contains("<script"), "{page}");
    let form = page.split_once("name=\"form\" value=\"").expect("a form").1[..32].to_owned();
    let shown = asked.gate.args_digest.as_str();
    for (fields, status) in [
        // The answer must carry the digest of what the page showed, and the form's id.
        (format!("&shown={}&form={form}", "0".repeat(64)), StatusCode::CONFLICT),
        (format!("&form={form}"), StatusCode::BAD_REQUEST),
        (format!("&shown={shown}"), StatusCode::BAD_REQUEST),
        (format!("&shown={shown}&form={}", &form[1..]), StatusCode::BAD_REQUEST),
        (format!("&shown={}&form={form}", &shown[1..]), StatusCode::BAD_REQUEST),
        (String::new(), StatusCode::BAD_REQUEST),
    ] {
        let answer = harness.node.line.send(form_of(&path, &format!("decision=approve{fields}"))).await;
        assert_eq!(answer.status, status, "{fields}: {}", text(&answer));
        assert_eq!(self::status(&harness, &asked).await, OPEN, "{fields}");
        // What a person reads comes from the catalogue, not from the message for developers.
        let changed = text(&answer).contains("The request has changed since this page was opened.");
        assert_eq!(changed, status == StatusCode::CONFLICT, "{fields}: {}", text(&answer));
    }
    let danas = path_of(&asked, DANA);
    let danas_page = text(&harness.node.line.send(get(&danas)).await);
    let answer = say(&harness, &path, "decision=approve&comment=for+this+release").await;
    assert_eq!(
        (answer.status, &answer.headers["location"]),
        (StatusCode::SEE_OTHER, &path.parse().expect("a value"))
    );
    let page = text(&harness.node.line.send(get(&path)).await);
    assert!(page.contains("kim@acme.example decided at") && page.contains("for this release"), "{page}");
    assert!(!page.contains("<form"), "{page}");
    // The second decider learns who was faster.
    let refuses = format!("decision=reject{}", hidden(&danas_page));
    let late = harness.node.line.send(form_of(&danas, &refuses)).await;
    assert_eq!(late.status, StatusCode::CONFLICT);
    assert!(text(&late).contains("kim@acme.example decided before"), "{}", text(&late));
    let request = v1::GetGateRequest { name: asked.gate.name.clone(), ..Default::default() };
    let reply: v1::GetGateResponse = harness.ask("agent", "GetGate", &request).await;
    let made = reply.gate.expect("a gate").resolution.expect("a decision");
    assert_eq!((made.by.as_str(), made.via.as_str()), (KIM, "page"));
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_of_somebody_who_is_no_longer_in_the_directory_decides_nothing() {
    let harness = Harness::start().await;
    let asked = harness.asked().await;
    let path = path_of(&asked, KIM);
    let before = text(&harness.node.line.send(get(&path)).await);
    let people = of(&[("dana", DANA), ("owner:release", DANA)]);
    let _: v1::PutDirectoryResponse = harness.ask("admin", "PutDirectory", &people).await;
    let page = text(&harness.node.line.send(get(&path)).await);
    assert!(
        page.contains("the directory does not lead to you any more") && !page.contains("<form"),
        "{page}"
    );
    for words in
        ["decision=approve", "decision=reject", "decision=discuss&comment=why", "decision=assign&to=dana"]
    {
        let form = form_of(&path, &format!("{words}{}", hidden(&before)));
        let answer = harness.node.line.send(form).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{words}: {}", text(&answer));
        assert!(text(&answer).contains("because the directory named you"), "{}", text(&answer));
        assert_eq!(status(&harness, &asked).await, OPEN, "{words}");
    }
    let request = v1::GetGateRequest { name: asked.gate.name.clone(), ..Default::default() };
    let reply: v1::GetGateResponse = harness.ask("agent", "GetGate", &request).await;
    let warnings = reply.gate.expect("a gate").warnings;
    assert!(
        warnings
            .iter()
            .any(|one| one.contains("the directory does not lead to them any more") && one.contains(KIM))
    );
    let people = of(&[("dana", DANA), ("owner:release", KIM)]);
    let _: v1::PutDirectoryResponse = harness.ask("admin", "PutDirectory", &people).await;
    assert_eq!(decide(&harness, &asked, KIM).await.status, StatusCode::SEE_OTHER);
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_is_good_for_whom_it_was_made() {
    let harness = Harness::start().await;
    let asked = harness.asked().await;
    let (page, reply) =
        (asked.token(TokenUse::Page, KIM).to_string(), asked.token(TokenUse::Reply, KIM).to_string());
    let stranger = asked.token(TokenUse::Page, "eve@acme.example").to_string();
    let mut broken = page.clone();
    broken.replace_range(40..41, if &page[40..41] == "a" { "b" } else { "a" });
    let before = harness.node.state().await;
    for token in [&reply, &stranger, &broken, &page[..30].to_owned(), &"x".repeat(300), &"%00".to_owned()] {
        let path = format!("/a/{token}");
        let (seen, said) = (
            harness.node.line.send(get(&path)).await,
            harness.node.line.send(form_of(&path, "decision=approve")).await,
        );
        assert_eq!((seen.status, said.status), (StatusCode::NOT_FOUND, StatusCode::NOT_FOUND), "{token}");
        assert!(text(&seen).contains("There is no request for this link."), "{token}");
    }
    assert_eq!(harness.node.state().await, before);
    assert_eq!(
        harness.node.line.send(get(&format!("/a/{}", page.to_uppercase()))).await.status,
        StatusCode::OK
    );
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_is_noted_and_the_gate_stays_open() {
    let harness = Harness::start().await;
    let asked = harness.asked().await;
    let path = path_of(&asked, DANA);
    let page = text(&harness.node.line.send(get(&path)).await);
    let before = harness.look(&asked.session.name).await.sequence;
    let asks = format!("decision=discuss&comment=which+file%3F{}", hidden(&page));
    // However often the button is pressed, there is one comment.
    for _ in 0..2 {
        let answer = harness.node.line.send(form_of(&path, &asks)).await;
        assert_eq!(answer.status, StatusCode::SEE_OTHER, "{}", text(&answer));
    }
    assert_eq!(harness.look(&asked.session.name).await.sequence, before + 1);
    assert_eq!(status(&harness, &asked).await, OPEN);
    // The form's name means nothing on another person's page: the same words of another person are another comment.
    let answer = harness.node.line.send(form_of(&path_of(&asked, KIM), &asks)).await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER, "{}", text(&answer));
    assert!(harness.look(&asked.session.name).await.sequence > before + 1);
    // The next reader sees the question.
    let request = v1::GetGateRequest { name: asked.gate.name.clone(), ..Default::default() };
    let reply: v1::GetGateResponse = harness.ask("agent", "GetGate", &request).await;
    let said: Vec<_> =
        reply.gate.expect("a gate").comments.into_iter().map(|one| (one.by, one.comment)).collect();
    let asks = |person: &str| (person.to_owned(), "which file?".to_owned());
    assert_eq!(said, [asks(DANA), asks(KIM)]);
    let kims = text(&harness.node.line.send(get(&path_of(&asked, KIM))).await);
    assert!(kims.contains("Comments so far") && kims.contains("which file?"), "{kims}");
    // The same form is not valid for anything else.
    let answer = harness.node.line.send(form_of(&path, &format!("decision=reject{}", hidden(&page)))).await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{}", text(&answer));
    assert!(text(&answer).contains("This form was sent before."), "{}", text(&answer));
    assert_eq!(status(&harness, &asked).await, OPEN);
    let answer = say(&harness, &path, "decision=reject&comment=no").await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER);
    assert_ne!(status(&harness, &asked).await, OPEN);
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_agent_writes_cannot_dress_up_as_something_else() {
    let harness = Harness::start().await;
    let asked =
        harness.asked_with("{\"path\":\"a\u{202e}txt.exe\u{200b}\",\"note\":\"<b>fine</b>\\u0007\"}").await;
    let page = text(&harness.node.line.send(get(&path_of(&asked, KIM))).await);
    assert!(page.contains("a\\u202etxt.exe\\u200b") && page.contains("&lt;b&gt;fine"), "{page}");
    assert!(!page.contains(['\u{202e}', '\u{200b}', '\u{7}']), "{page}");
    // When the session is cancelled, the page says so, and shows nothing of what would have followed.
    let cancel = v1::CancelSessionRequest { name: asked.session.name.clone(), ..Default::default() };
    let _: v1::CancelSessionResponse = harness.ask("operator", "CancelSession", &cancel).await;
    let page = text(&harness.node.line.send(get(&path_of(&asked, KIM))).await);
    assert!(page.contains("the session was cancelled") && !page.contains("<form"), "{page}");
    harness.node.end().await;
}
