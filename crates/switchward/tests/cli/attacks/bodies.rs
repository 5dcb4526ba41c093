//! Bodies of callers without a key: they are refused before they are read, and take no memory. Those of webhooks, which
//! prove themselves by their content, have a budget.

use h2::{
    SendStream,
    client::{ResponseFuture, SendRequest},
};
use http::{Request, StatusCode};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::Duration;
use tokio::task::JoinSet;

use super::machine::peak_mib;
use crate::server::{Running, Site};

const START: &str = "/switchward.v1.SessionService/StartSession";
/// Calls on one connection, and what each sends of its body, which it never ends.
const STREAMS: usize = 300;
const STREAM_BYTES: usize = 4_000_000;
const PIECE_BYTES: usize = 16 * 1024;
/// What a webhook that does not end sends, and how much of such bodies one connection may bring at one time.
const HOOK_BYTES: usize = 250_000;
const CONNECTION_BYTES: usize = 32 * 1024 * 1024;
/// The server's maximal additional memory at its peak, MiB. Reading all those bodies would take at least 1,144.
const MORE_MIB: u64 = 128;
/// Bodies of JSON that are sent at one time, and the empty lists in each, of three bytes in the body and hundreds when read.
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

/// Sends this much of a body, or until the server stops taking it.
async fn pour(mut stream: SendStream<bytes::Bytes>, most: usize) -> usize {
    let mut sent = 0;
    while sent < most {
        stream.reserve_capacity(PIECE_BYTES);
        let capacity = std::future::poll_fn(|context| stream.poll_capacity(context)).await;
        let Some(Ok(capacity)) = capacity else { break };
        if stream.send_data(vec![0; capacity.min(PIECE_BYTES)].into(), false).is_err() {
            break;
        }
        sent += capacity.min(PIECE_BYTES);
    }
    // Do not end the stream before the answer.
    let _reset = std::future::poll_fn(|context| stream.poll_reset(context)).await;
    sent
}

/// Begins a call without a key, or a webhook before its signature is checked.
async fn begin(
    sender: SendRequest<bytes::Bytes>,
    at: SocketAddr,
    (path, kind): (&str, &str),
) -> (ResponseFuture, SendStream<bytes::Bytes>) {
    let request = Request::post(format!("http://{at}{path}"));
    let request = request.header("content-type", kind).header("te", "trailers");
    let mut sender = sender.ready().await.expect("the server takes another call");
    sender.send_request(request.body(()).expect("a request"), false).expect("it is sent")
}

async fn connected(at: SocketAddr) -> SendRequest<bytes::Bytes> {
    let stream = tokio::net::TcpStream::connect(at).await.expect("it listens");
    let (sender, connection) = h2::client::handshake(stream).await.expect("HTTP/2");
    tokio::spawn(connection);
    sender
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_without_a_key_over_one_connection_take_no_memory() {
    let site = Site::new();
    let (server, at) = server(&site);
    let before = peak_mib(server.pid());
    let sender = connected(at).await;
    let (mut answers, mut bodies) = (JoinSet::new(), JoinSet::new());
    for _ in 0..STREAMS {
        let (answer, body) = begin(sender.clone(), at, (START, "application/grpc")).await;
        bodies.spawn(pour(body, STREAM_BYTES));
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn webhooks_that_do_not_end_over_one_connection_have_a_budget() {
    const HOOK: (&str, &str) = ("/v1/in/acme/nobody", "application/json");
    let site = Site::new();
    let (server, at) = server(&site);
    let before = peak_mib(server.pid());
    let sender = connected(at).await;
    let (mut answers, mut bodies) = (JoinSet::new(), JoinSet::new());
    for _ in 0..STREAMS {
        let (answer, body) = begin(sender.clone(), at, HOOK).await;
        bodies.spawn(pour(body, HOOK_BYTES));
        answers.spawn(answer);
    }
    let refused = async {
        for _ in 0..STREAMS - CONNECTION_BYTES / HOOK_BYTES - 1 {
            let answer = answers.join_next().await.expect("one more is answered").expect("it ends");
            assert_eq!(answer.expect("it is answered").status(), StatusCode::TOO_MANY_REQUESTS);
        }
    };
    tokio::time::timeout(ANSWER, refused)
        .await
        .expect("what exceeds the capacity is refused before its time is over");
    // Another sender is answered meanwhile, with a refusal.
    let (answer, mut body) = begin(connected(at).await, at, HOOK).await;
    body.send_data(bytes::Bytes::from_static(b"{}"), true).expect("it is sent");
    let answer = tokio::time::timeout(ANSWER, answer).await.expect("in time").expect("it is answered");
    assert_eq!(answer.status(), StatusCode::UNAUTHORIZED);
    let after = peak_mib(server.pid());
    assert!(after < before + MORE_MIB, "{before} MiB before, {after} MiB at its peak");
    drop((answers, bodies, sender));
    let (log, code) = server.stop();
    assert_eq!(code, Some(0), "{log}");
}

/// Begins a call as JSON without a key, whose body has this length.
fn head(at: SocketAddr, length: usize) -> TcpStream {
    let mut stream = TcpStream::connect(at).expect("it listens");
    let head = format!(
        "POST {START} HTTP/1.1\r\nhost: {at}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).expect("it is read");
    stream.set_read_timeout(Some(ANSWER)).expect("a socket");
    stream
}

/// The first line of the answer; empty if the connection ended before it could be read.
fn first_line(mut stream: &TcpStream) -> String {
    let mut answer = [0; 64];
    let read = stream.read(&mut answer).unwrap_or_default();
    String::from_utf8_lossy(&answer[..read]).lines().next().unwrap_or_default().to_owned()
}

#[test]
fn a_body_of_json_without_a_key_is_refused_before_it_comes() {
    let site = Site::new();
    let (server, at) = server(&site);
    let lists = vec!["[]"; LISTS].join(",");
    let body = format!("{{\"input\":{{\"a\":[{lists}]}}}}");
    assert!((3_900_000..4_000_000).contains(&body.len()), "{}", body.len());
    let silent = head(at, body.len());
    assert_eq!(first_line(&silent), "HTTP/1.1 401 Unauthorized", "nothing of the body was sent");
    let before = peak_mib(server.pid());
    thread::scope(|scope| {
        for _ in 0..BODIES {
            scope.spawn(|| {
                let stream = head(at, body.len());
                // It is refused meanwhile, and need not be read to its end.
                let _refused = (&stream).write_all(body.as_bytes());
                let line = first_line(&stream);
                assert!(line.is_empty() || line == "HTTP/1.1 401 Unauthorized", "{line}");
            });
        }
    });
    let after = peak_mib(server.pid());
    assert!(after < before + MORE_MIB, "{before} MiB before, {after} MiB at its peak");
    let (log, code) = server.stop();
    assert_eq!(code, Some(0), "{log}");
}
