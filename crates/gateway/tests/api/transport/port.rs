//! The port apart from its calls: deadlines, health, reflection, pages, and shutdown.

use bytes::Bytes;
use http::{Method, Request};
use std::time::{Duration, Instant};
use switchward_api::v1 as api;
use switchward_gateway::ConnectionLimits;
use switchward_testkit::PATIENCE;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};
use tokio_stream::StreamExt;
use tonic::{Code, Status, transport::Channel};
use tonic_health::pb::{HealthCheckRequest, health_client::HealthClient};
use tonic_reflection::pb::v1::{
    ServerReflectionRequest, server_reflection_client::ServerReflectionClient,
    server_reflection_request::MessageRequest, server_reflection_response::MessageResponse,
};
use tonic_types::StatusExt;

use super::Server;
use super::fake::STUCK;
use crate::protocols::{Protocol, Raw, frame, outcome, send};

fn get(path: &str) -> Raw {
    let raw = Raw::post(Protocol::Json, "", "");
    Raw { method: Method::GET, path: path.to_owned(), headers: Vec::new(), ..raw }
}

async fn channel(server: &Server) -> Channel {
    let endpoint = Channel::from_shared(format!("http://{}", server.address)).expect("an address");
    endpoint.connect().await.expect("a connection")
}

#[tokio::test]
async fn deadlines_end_a_call_that_hangs() {
    let server = Server::start().await;
    let stuck = prost::Message::encode_to_vec(&api::GetSessionRequest {
        name: STUCK.to_owned(),
        ..Default::default()
    });
    let grpc = |millis: &str| {
        Raw::post(Protocol::Grpc, "GetSession", frame(0, &stuck)).with("grpc-timeout", format!("{millis}m"))
    };
    let json = |millis: &str| {
        Raw::post(Protocol::Json, "GetSession", format!("{{\"name\": \"{STUCK}\"}}"))
            .with("connect-timeout-ms", millis)
    };
    let begun = Instant::now();
    for (protocol, raw) in [
        (Protocol::Grpc, grpc("60")),
        (Protocol::Json, json("60")),
        (Protocol::Grpc, grpc("0")),
        (Protocol::Json, json("0")),
    ] {
        let answer = send(server.address, raw).await;
        let outcome: Result<api::GetSessionResponse, Status> = outcome(protocol, "GetSession", &answer);
        let status = outcome.expect_err("a refusal");
        assert_eq!(status.code(), Code::DeadlineExceeded, "{protocol:?}");
        assert_eq!(
            status.get_error_details().error_info().expect("an ErrorInfo").reason,
            "DEADLINE_EXCEEDED"
        );
    }
    assert!(begun.elapsed() < Duration::from_secs(60));
}

#[tokio::test]
async fn a_json_deadline_reaches_the_service() {
    let server = Server::start().await;
    for (sent, seen) in [("2500", "2500m"), ("9999999999", "9999999S")] {
        let raw = Raw::post(Protocol::Json, "StartSession", "{}")
            .with("connect-timeout-ms", sent)
            .with("grpc-timeout", "1n");
        let answer = send(server.address, raw).await;
        assert_eq!(answer.json()["session"]["statusWord"], seen, "{sent}");
    }
}

#[tokio::test]
async fn health_follows_readiness() {
    let server = Server::start().await;
    let mut client = HealthClient::new(channel(&server).await);
    for ready in [false, true, false] {
        if ready {
            server.health.set_ready().await;
        } else {
            server.health.set_not_ready().await;
        }
        for service in ["", "readiness", "liveness", "switchward.v1.SessionService"] {
            let reply =
                client.check(HealthCheckRequest { service: service.to_owned() }).await.expect("a reply");
            let serving = reply.into_inner().status()
                == tonic_health::pb::health_check_response::ServingStatus::Serving;
            assert_eq!(serving, ready || service == "liveness", "{service:?}");
        }
        assert_eq!(send(server.address, get("/healthz")).await.status, 200);
        assert_eq!(send(server.address, get("/readyz")).await.status, if ready { 200 } else { 503 });
    }
}

#[tokio::test]
async fn reflection_lists_the_services() {
    let server = Server::start().await;
    let mut client = ServerReflectionClient::new(channel(&server).await);
    let request = ServerReflectionRequest {
        host: String::new(),
        message_request: Some(MessageRequest::ListServices(String::new())),
    };
    let mut replies =
        client.server_reflection_info(tokio_stream::once(request)).await.expect("a stream").into_inner();
    let reply = replies.next().await.expect("a reply").expect("no error");
    let Some(MessageResponse::ListServicesResponse(list)) = reply.message_response else {
        panic!("{reply:?}")
    };
    let names: Vec<String> = list.service.into_iter().map(|service| service.name).collect();
    for service in switchward_api::descriptor_pool().services() {
        assert!(names.iter().any(|name| name == service.full_name()), "{} is missing", service.full_name());
    }
    assert!(names.iter().any(|name| name == "grpc.health.v1.Health"), "{names:?}");
}

#[tokio::test]
async fn the_server_stops_when_its_calls_are_done() {
    let server = Server::start().await;
    let raw = Raw::post(Protocol::Json, "GetSession", format!("{{\"name\": \"{STUCK}\"}}"))
        .with("connect-timeout-ms", "2000");
    let address = server.address;
    let open = tokio::spawn(async move { send(address, raw).await });
    server.stuck.notified().await;
    server.stop.send(()).expect("the server runs");
    let answer = timeout(PATIENCE, open).await.expect("in time").expect("the call ends");
    assert_eq!(answer.status, 504);
    timeout(PATIENCE, server.done).await.expect("in time").expect("no panic");
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}

/// The HTTP/2 library ends a connection on which it has reset 1,024 streams, with all calls on it. A proxy in front may send the
/// requests of many callers on one connection.
#[tokio::test]
async fn a_thousand_requests_whose_bodies_nobody_needs_leave_their_connection_open() {
    let server = Server::start().await;
    let stream = TcpStream::connect(server.address).await.expect("a connection");
    let (mut client, connection) = h2::client::handshake(stream).await.expect("HTTP/2");
    tokio::spawn(connection);
    let head = |method: Method, path: &str| {
        let uri = format!("http://{}{path}", server.address);
        let head = Request::builder().method(method).uri(uri).header("content-type", "application/json");
        head.body(()).expect("a head")
    };
    let answered = [
        (Method::POST, "/healthz", 405),
        (Method::POST, "/nothing", 404),
        (Method::GET, "/healthz", 200),
        (Method::POST, "/switchward.v1.SessionService/WatchSession", 501),
    ];
    for (method, path, status) in answered.into_iter().cycle().take(1_100) {
        client = client.ready().await.expect("the connection is open");
        let (answer, mut body) = client.send_request(head(method, path), false).expect("it is sent");
        // When another request is answered, the server has begun with this one.
        client = client.ready().await.expect("the connection is open");
        let (other, _) = client.send_request(head(Method::GET, "/healthz"), true).expect("it is sent");
        assert_eq!(status_of(other).await, 200);
        body.send_data(Bytes::from_static(b"{}"), true).expect("the body is sent");
        assert_eq!(status_of(answer).await, status, "{path}");
    }
}

/// The status of an answer, which is read to its end.
async fn status_of(answer: h2::client::ResponseFuture) -> u16 {
    let (head, mut body) = answer.await.expect("an answer").into_parts();
    while let Some(data) = body.data().await {
        let bytes = data.expect("the body is whole").len();
        body.flow_control().release_capacity(bytes).expect("it has come");
    }
    head.status.as_u16()
}

/// Many silent connections keep no other client out, even from the same address.
#[tokio::test]
async fn silent_connections_are_closed_for_new_ones() {
    for limits in [
        ConnectionLimits { all: 8, ..ConnectionLimits::default() },
        ConnectionLimits { of_peer: 8, ..ConnectionLimits::default() },
    ] {
        let server = Server::limited(limits).await;
        let mut silent = Vec::new();
        for _ in 0..40 {
            silent.push(TcpStream::connect(server.address).await.expect("the server listens"));
        }
        let answer = send(server.address, get("/healthz")).await;
        assert!(answer.status.is_success(), "{answer:?}");
        // The first of them was closed.
        let mut rest = Vec::new();
        silent[0].read_to_end(&mut rest).await.expect("the connection is closed cleanly");
        assert!(rest.is_empty());
        server.stop.send(()).expect("the server runs");
        drop(silent);
        timeout(PATIENCE, server.done).await.expect("in time").expect("the server ends");
    }
}

/// Bytes that two parsers could read as different requests are answered once with 400.
#[tokio::test]
async fn ambiguous_heads_are_answered_with_400() {
    let server = Server::start().await;
    let length = "content-length: 2\r\n";
    let chunked = "transfer-encoding: chunked\r\n";
    for head in [
        "GET /healthz HTTP/1.1\r\n\r\n".to_owned(),
        "GET /healthz HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n".to_owned(),
        "GET /healthz HTTP/1.1\nhost: a\n\n".to_owned(),
        format!("POST /healthz HTTP/1.1\r\nhost: a\r\n{length}{chunked}\r\n0\r\n\r\n"),
        format!("POST /healthz HTTP/1.1\r\nhost: a\r\n{chunked}{length}\r\n0\r\n\r\n"),
    ] {
        let mut stream = TcpStream::connect(server.address).await.expect("a connection");
        stream.write_all(head.as_bytes()).await.expect("the request is sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{head:?}: {answer:?}");
        assert_eq!(answer.matches("HTTP/1.1").count(), 1, "{head:?}: {answer:?}");
    }
}
