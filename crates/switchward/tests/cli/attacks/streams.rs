//! One tenant holds as many connections and streams as it may: others can still connect.

use std::time::Duration;
use switchward_api::v1;
use tonic::{Code, Streaming};

use super::lists::{sessions, with_key};
use crate::addresses::{OTHER_KEY, server};
use crate::mail::ASKS;
use crate::server::{ADMIN_KEY, Site};
use crate::support::{Ended, folder, program};

/// What the server lets a tenant have, and what it takes in all.
const OF_TENANT: usize = 4;
const CONFIG: &str = "[connections]\nmax = 6\nmax_of_tenant = 4\n";
/// How long it may take until an ended stream is released.
const PATIENCE: Duration = Duration::from_secs(60);

/// A session's stream, on a connection of its own.
async fn watch(address: &str, name: &str) -> Result<Streaming<v1::WatchSessionResponse>, tonic::Status> {
    let watch = v1::WatchSessionRequest { name: name.to_owned(), ..Default::default() };
    sessions(address).await.watch_session(with_key(ADMIN_KEY, watch)).await.map(tonic::Response::into_inner)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenant_that_holds_many_streams_keeps_no_other_out() {
    let site = Site::new();
    let server = server(&site, CONFIG);
    let files = folder(&[("asks.yaml", ASKS)]);
    let mut deploy = program();
    deploy.arg("deploy").arg(files.path().join("asks.yaml"));
    Ended::of(deploy.args(["--address", &server.address, "--api-key", ADMIN_KEY])).with_code(0);
    let start = v1::StartSessionRequest { definition: "asks".to_owned(), ..Default::default() };
    let started = sessions(&server.address).await.start_session(with_key(ADMIN_KEY, start)).await;
    let name = started.expect("it starts").into_inner().session.expect("a session").name;

    let mut held = Vec::new();
    for _ in 0..OF_TENANT {
        held.push(watch(&server.address, &name).await.expect("it may have four"));
    }
    for _ in 0..2 * OF_TENANT {
        let status = watch(&server.address, &name).await.expect_err("it has as many as it may");
        assert_eq!(status.code(), Code::ResourceExhausted, "{status:?}");
        assert!(status.message().contains("4 connections"), "{status:?}");
    }
    let list = v1::ListSessionsRequest::default();
    let page = sessions(&server.address).await.list_sessions(with_key(OTHER_KEY, list)).await;
    page.expect("another tenant is answered");
    // Those that it has go on.
    for stream in &mut held {
        stream.message().await.expect("it goes on").expect("an event");
    }
    held.truncate(OF_TENANT - 1);
    let again = async {
        while watch(&server.address, &name).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, again).await.expect("one that has ended frees capacity");
    let (log, code) = server.stop();
    assert_eq!(code, Some(0), "{log}");
}
