//! The decision page: looking changes nothing, and saying counts once.

use http::{Method, StatusCode};
use switchward_api::v1;
use switchward_engine::Way;

use crate::mailing::{Asked, DANA, KIM};
use crate::ways::{Answer, Raw};
use crate::world::World;

pub(crate) fn get(path: &str) -> Raw {
    Raw {
        http2: true,
        method: Method::GET,
        path: path.to_owned(),
        headers: Vec::new(),
        body: bytes::Bytes::new(),
    }
}

fn post(path: &str, form: &str) -> Raw {
    let kind = ("content-type", "application/x-www-form-urlencoded".to_owned());
    Raw { method: Method::POST, headers: vec![kind], body: form.to_owned().into(), ..get(path) }
}

pub(crate) fn text(answer: &Answer) -> String {
    String::from_utf8(answer.body.to_vec()).expect("a page")
}

fn path_of(asked: &Asked, person: &str) -> String {
    format!("/a/{}", asked.token(Way::Page, person))
}

/// What approving on somebody's page is answered with.
pub(crate) async fn decide(world: &World, asked: &Asked, person: &str) -> Answer {
    world.node.line.send(post(&path_of(asked, person), "decision=approve")).await
}

async fn status(world: &World, asked: &Asked) -> i32 {
    let request = v1::GetGateRequest { name: asked.gate.name.clone(), ..Default::default() };
    let reply: v1::GetGateResponse = world.ask("agent", "GetGate", &request).await;
    reply.gate.expect("a gate").status
}

const OPEN: i32 = v1::GateStatus::Open as i32;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scanner_changes_nothing() {
    let world = World::start().await;
    let asked = world.asked().await;
    let path = path_of(&asked, KIM);
    let before = world.node.state().await;
    for method in [Method::GET, Method::HEAD, Method::GET] {
        let answer = world.node.line.send(Raw { method, ..get(&path) }).await;
        assert_eq!(answer.status, StatusCode::OK);
        let policy = answer.headers["content-security-policy"].to_str().expect("text");
        assert!(policy.starts_with("default-src 'none'"), "{policy}");
        assert_eq!(answer.headers["cache-control"], "no-store");
        assert_eq!(answer.headers["referrer-policy"], "no-referrer");
    }
    // A form that says nothing is none, and no other method does anything.
    for form in ["", "decision=", "decision=approved", "comment=yes", "decision=discuss&comment="] {
        let answer = world.node.line.send(post(&path, form)).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{form}");
        assert!(text(&answer).contains("Nothing was recorded."), "{form}");
    }
    let put = world.node.line.send(Raw { method: Method::PUT, ..get(&path) }).await;
    assert_eq!(put.status, StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(world.node.state().await, before);
    world.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_shown_is_what_is_decided() {
    let world = World::start().await;
    let asked = world.asked().await;
    let path = path_of(&asked, KIM);
    let page = text(&world.node.line.send(get(&path)).await);
    assert!(page.contains("mcp:filesystem:write_file") && page.contains(&asked.gate.args_digest), "{page}");
    assert!(page.contains("What the engine knows") && page.contains(KIM), "{page}");
    assert!(!page.contains("checked"), "nothing is chosen beforehand: {page}");
    assert!(!page.contains("<script"), "{page}");
    let other = format!("decision=approve&shown={}", "0".repeat(64));
    let answer = world.node.line.send(post(&path, &other)).await;
    assert_eq!(answer.status, StatusCode::CONFLICT, "{}", text(&answer));
    assert_eq!(status(&world, &asked).await, OPEN);
    let form = format!("decision=approve&comment=for+this+release&shown={}", asked.gate.args_digest);
    let answer = world.node.line.send(post(&path, &form)).await;
    assert_eq!(
        (answer.status, &answer.headers["location"]),
        (StatusCode::SEE_OTHER, &path.parse().expect("a value"))
    );
    let page = text(&world.node.line.send(get(&path)).await);
    assert!(page.contains("kim@acme.example decided at") && page.contains("for this release"), "{page}");
    assert!(!page.contains("<form"), "{page}");
    // The second one learns who was faster.
    let late = world.node.line.send(post(&path_of(&asked, DANA), "decision=refuse")).await;
    assert_eq!(late.status, StatusCode::CONFLICT);
    assert!(text(&late).contains("kim@acme.example decided before"), "{}", text(&late));
    let request = v1::GetGateRequest { name: asked.gate.name.clone(), ..Default::default() };
    let reply: v1::GetGateResponse = world.ask("agent", "GetGate", &request).await;
    let made = reply.gate.expect("a gate").resolution.expect("a decision");
    assert_eq!((made.by.as_str(), made.via.as_str()), (KIM, "page"));
    world.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_link_is_good_for_whom_it_was_made() {
    let world = World::start().await;
    let asked = world.asked().await;
    let (page, reply) = (asked.token(Way::Page, KIM).to_string(), asked.token(Way::Reply, KIM).to_string());
    let stranger = asked.token(Way::Page, "eve@acme.example").to_string();
    let mut broken = page.clone();
    broken.replace_range(40..41, if &page[40..41] == "a" { "b" } else { "a" });
    let before = world.node.state().await;
    for token in [&reply, &stranger, &broken, &page[..30].to_owned(), &"x".repeat(300), &"%00".to_owned()] {
        let path = format!("/a/{token}");
        let (seen, said) = (
            world.node.line.send(get(&path)).await,
            world.node.line.send(post(&path, "decision=approve")).await,
        );
        assert_eq!((seen.status, said.status), (StatusCode::NOT_FOUND, StatusCode::NOT_FOUND), "{token}");
        assert!(text(&seen).contains("This link leads to no request."), "{token}");
    }
    assert_eq!(world.node.state().await, before);
    assert_eq!(
        world.node.line.send(get(&format!("/a/{}", page.to_uppercase()))).await.status,
        StatusCode::OK
    );
    world.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_is_noted_and_the_gate_stays_open() {
    let world = World::start().await;
    let asked = world.asked().await;
    let path = path_of(&asked, DANA);
    let answer = world.node.line.send(post(&path, "decision=discuss&comment=which+file%3F")).await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER, "{}", text(&answer));
    assert_eq!(status(&world, &asked).await, OPEN);
    let answer = world.node.line.send(post(&path, "decision=refuse&comment=no")).await;
    assert_eq!(answer.status, StatusCode::SEE_OTHER);
    assert_ne!(status(&world, &asked).await, OPEN);
    world.node.end().await;
}
