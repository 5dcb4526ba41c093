//! Slow lists without results, whose callers have gone: others are answered meanwhile.

use prost_types::{Struct, value::Kind};
use std::time::Duration;
use switchward_api::v1::{self, session_service_client::SessionServiceClient};
use tokio::task::JoinSet;
use tonic::{
    Request,
    transport::{Channel, Endpoint},
};

use crate::addresses::{OTHER_KEY, server};
use crate::mail::ASKS;
use crate::server::{ADMIN_KEY, Site};
use crate::support::{Ended, folder, program};

/// Sessions that are looked through, and what each was started with, bytes.
const SESSIONS: usize = 4_000;
const INPUT_BYTES: usize = 4_000;
const STARTERS: usize = 16;
/// Connections, the lists that are asked for over each at one time, how often, and how long their callers wait.
const CALLERS: usize = 16;
const LISTS: usize = 400;
const ROUNDS: usize = 2;
const GONE: Duration = Duration::from_secs(1);
/// How long others wait for an answer.
const ANSWER: Duration = Duration::from_secs(10);

/// A connection of its own.
pub(super) async fn sessions(address: &str) -> SessionServiceClient<Channel> {
    let endpoint = Endpoint::from_shared(address.to_owned()).expect("an address");
    SessionServiceClient::new(endpoint.connect().await.expect("it listens"))
}

pub(super) fn with_key<T>(key: &str, message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.metadata_mut().insert("authorization", format!("Bearer {key}").parse().expect("a header"));
    request
}

/// Starts sessions that are large.
async fn furnish(address: &str) {
    let text = prost_types::Value { kind: Some(Kind::StringValue("x".repeat(INPUT_BYTES))) };
    let input = Struct { fields: [("text".to_owned(), text)].into() };
    let client = sessions(address).await;
    let mut starters = JoinSet::new();
    for _ in 0..STARTERS {
        let (mut client, input) = (client.clone(), input.clone());
        starters.spawn(async move {
            for _ in 0..SESSIONS / STARTERS {
                let definition = "asks".to_owned();
                let start =
                    v1::StartSessionRequest { definition, input: Some(input.clone()), ..Default::default() };
                client.start_session(with_key(ADMIN_KEY, start)).await.expect("it starts");
            }
        });
    }
    starters.join_all().await;
}

/// Lists without results, whose caller does not wait for their end.
async fn lists(address: String) {
    let client = sessions(&address).await;
    let mut calls = JoinSet::new();
    for _ in 0..LISTS {
        let mut client = client.clone();
        calls.spawn(async move { client.list_sessions(with_key(ADMIN_KEY, nothing())).await });
    }
    // Some are answered in time, some are refused; most callers have gone before.
    let _gone = tokio::time::timeout(GONE, calls.join_all()).await;
}

/// A list that looks through all sessions.
fn nothing() -> v1::ListSessionsRequest {
    let filter = "labels.x=\"y\"".to_owned();
    v1::ListSessionsRequest { page_size: 1000, filter, ..Default::default() }
}

/// Asks for the health, and for another tenant's sessions, over connections of their own.
async fn others(address: &str) {
    let ready = async {
        let host = address.strip_prefix("http://").expect("plain HTTP").to_owned();
        let asked =
            tokio::task::spawn_blocking(move || crate::support::ask(&host, &host, "GET /readyz", &[], ""));
        let (head, _) = asked.await.expect("it is answered");
        assert!(head.starts_with("http/1.1 200"), "{head}");
    };
    tokio::time::timeout(ANSWER, ready).await.expect("the health is told in time");
    let other = async {
        let list = v1::ListSessionsRequest::default();
        let page = sessions(address).await.list_sessions(with_key(OTHER_KEY, list)).await;
        assert_eq!(page.expect("a list").into_inner().sessions.len(), 0);
    };
    tokio::time::timeout(ANSWER, other).await.expect("another tenant is answered in time");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_that_nobody_waits_for_hold_up_nobody() {
    let site = Site::new();
    let server = server(&site, "");
    let files = folder(&[("asks.yaml", ASKS)]);
    let path = files.path().join("asks.yaml");
    let mut deploy = program();
    deploy.arg("deploy").arg(path).args(["--address", &server.address, "--api-key", ADMIN_KEY]);
    Ended::of(&mut deploy).with_code(0);
    furnish(&server.address).await;
    let page = sessions(&server.address).await.list_sessions(with_key(ADMIN_KEY, nothing())).await;
    assert_eq!(page.expect("a list").into_inner().sessions.len(), 0);
    for _ in 0..ROUNDS {
        let mut callers = JoinSet::new();
        for _ in 0..CALLERS {
            callers.spawn(lists(server.address.clone()));
        }
        others(&server.address).await;
        callers.join_all().await;
        others(&server.address).await;
    }
    let (log, code) = server.stop();
    assert_eq!(code, Some(0), "{log}");
}
