//! Bodies of callers without a key: they are refused before they are read, and take no memory.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use h2::client::{ResponseFuture, SendRequest};
use h2::{Reason, SendStream};
use http::Request;
use tokio::task::JoinSet;

use super::machine::peak_mib;
use crate::server::{ADMIN_KEY, Running, Site};
use crate::support::private;

const START: &str = "/switchward.v1.SessionService/StartSession";
/// Calls on one connection, and what each sends of its body, which it never ends.
const STREAMS: usize = 300;
const STREAM_BYTES: usize = 4_000_000;
const PIECE_BYTES: usize = 16 * 1024;
/// What the server may take more at its peak, MiB. Whoever read those bodies would take 1,144.
const MORE_MIB: u64 = 128;
/// Bodies of JSON that are sent at one time, and what each holds: an empty list in three bytes.
const BODIES: usize = 8;
const LISTS: usize = 1_300_000;
/// An answer that waits for a body comes after 30 seconds.
const ANSWER: Duration = Duration::from_secs(20);
/// How long all may take together.
const PATIENCE: Duration = Duration::from_secs(120);
const UNAUTHENTICATED: &str = "16";

fn server(site: &Site) -> (Running, SocketAddr) {
    let server = Running::of(&mut site.plain("127.0.0.1:0"));
    let at = server.address.strip_prefix("http://").expect("plain HTTP").parse().expect("an address");
    (server, at)
}

/// Sends a body until it is large or nobody takes it any more.
async fn pour(mut stream: SendStream<bytes::Bytes>) -> usize {
    let mut sent = 0;
    while sent < STREAM_BYTES {
        stream.reserve_capacity(PIECE_BYTES);
        let room = std::future::poll_fn(|context| stream.poll_capacity(context)).await;
        let Some(Ok(room)) = room else { break };
        if stream.send_data(vec![0; room.min(PIECE_BYTES)].into(), false).is_err() {
            break;
        }
        sent += room.min(PIECE_BYTES);
    }
    // It is not ended before it is answered.
    let _reset = std::future::poll_fn(|context| stream.poll_reset(context)).await;
    sent
}

/// Begins a call without a key.
async fn begin(
    sender: SendRequest<bytes::Bytes>,
    at: SocketAddr,
) -> (ResponseFuture, SendStream<bytes::Bytes>) {
    let request = Request::post(format!("http://{at}{START}"));
    let request = request.header("content-type", "application/grpc").header("te", "trailers");
    let mut sender = sender.ready().await.expect("the server takes another call");
    sender.send_request(request.body(()).expect("a request"), false).expect("it is sent")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_without_a_key_over_one_connection_take_no_memory() {
    let site = Site::new();
    let (server, at) = server(&site);
    let before = peak_mib(server.pid());
    let stream = tokio::net::TcpStream::connect(at).await.expect("it listens");
    let (sender, connection) = h2::client::handshake(stream).await.expect("HTTP/2");
    tokio::spawn(connection);
    let (mut answers, mut bodies) = (JoinSet::new(), JoinSet::new());
    for _ in 0..STREAMS {
        let (answer, body) = begin(sender.clone(), at).await;
        bodies.spawn(pour(body));
        answers.spawn(answer);
    }
    let all = async {
        while let Some(answer) = answers.join_next().await {
            let answer = answer.expect("it ends").expect("it is answered");
            assert_eq!(answer.headers()["grpc-status"], UNAUTHENTICATED, "{answer:?}");
        }
    };
    tokio::time::timeout(PATIENCE, all).await.expect("all are answered");
    bodies.shutdown().await;
    let after = peak_mib(server.pid());
    assert!(after < before + MORE_MIB, "{before} MiB before, {after} MiB at its peak");
    let (log, code) = server.stop();
    assert_eq!(code, Some(0), "{log}");
}
