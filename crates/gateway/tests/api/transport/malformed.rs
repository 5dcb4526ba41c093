//! Requests that are not calls are refused as such, and never with `INTERNAL` or `UNKNOWN`.

use bytes::Bytes;
use http::Method;
use prost::Message;
use switchward_api::v1 as api;
use switchward_gateway::limits::MESSAGE_BYTES_MAX;
use tonic::{Code, Status};
use tonic_types::StatusExt;

use super::Server;
use crate::protocols::{Protocol, Raw, base64, frame, outcome, send};

const METHOD: &str = "StartSession";

/// Sends a request that must be refused with this code and reason.
async fn check(
    server: &Server,
    name: &str,
    protocol: Protocol,
    raw: Raw,
    code: Code,
    reason: &str,
) -> Status {
    let answer = send(server.address, raw).await;
    let outcome: Result<api::StartSessionResponse, Status> = outcome(protocol, METHOD, &answer);
    let status = outcome.err().unwrap_or_else(|| panic!("{name} by {protocol:?}: was accepted"));
    assert_eq!(status.code(), code, "{name} by {protocol:?}: {status}");
    let details = status.get_error_details();
    let info =
        details.error_info().unwrap_or_else(|| panic!("{name} by {protocol:?}: no ErrorInfo in {status}"));
    assert_eq!(info.reason, reason, "{name} by {protocol:?}: {status}");
    status
}

#[tokio::test]
async fn broken_frames_are_refused() {
    let server = Server::start().await;
    let request = api::StartSessionRequest { role: "agent".to_owned(), ..Default::default() };
    let whole = frame(0, &request.encode_to_vec());
    let lying = Bytes::from_static(&[0, 0xff, 0xff, 0xff, 0xff, 1, 2, 3]);
    let cases: [(&str, Bytes, Code, &str); 9] = [
        ("no message", Bytes::new(), Code::InvalidArgument, "FIELD_INVALID"),
        ("half a frame header", whole.slice(..3), Code::InvalidArgument, "FIELD_INVALID"),
        ("a truncated message", whole.slice(..whole.len() - 2), Code::InvalidArgument, "FIELD_INVALID"),
        ("two messages", [&whole[..], &whole[..]].concat().into(), Code::InvalidArgument, "FIELD_INVALID"),
        ("an unknown flag", frame(7, b""), Code::InvalidArgument, "FIELD_INVALID"),
        ("compressed by nothing", frame(1, b"xx"), Code::InvalidArgument, "FIELD_INVALID"),
        ("a length that lies", lying, Code::ResourceExhausted, "QUOTA_EXCEEDED"),
        ("no protobuf", frame(0, b"\xff\xff\xff"), Code::InvalidArgument, "FIELD_INVALID"),
        // Field 5, text: the byte 0xff is not UTF-8.
        ("text that is no UTF-8", frame(0, b"\x2a\x01\xff"), Code::InvalidArgument, "FIELD_INVALID"),
    ];
    for (name, body, code, reason) in cases {
        check(&server, name, Protocol::Grpc, Raw::post(Protocol::Grpc, METHOD, body.clone()), code, reason)
            .await;
        check(&server, name, Protocol::Web, Raw::post(Protocol::Web, METHOD, body.clone()), code, reason)
            .await;
        let text = base64(&body);
        check(&server, name, Protocol::WebText, Raw::post(Protocol::WebText, METHOD, text), code, reason)
            .await;
    }
    let raw = Raw::post(Protocol::WebText, METHOD, "%%%%%");
    check(&server, "no base64", Protocol::WebText, raw, Code::InvalidArgument, "FIELD_INVALID").await;
}

#[tokio::test]
async fn deep_messages_are_refused_by_every_protocol() {
    let server = Server::start().await;
    // Struct in Value in Struct: field 1 of a struct is an entry, whose field 2 is a value, whose field 5 is a struct.
    let mut input = Vec::new();
    for _ in 0..200 {
        let wrap = |tag: u8, inner: &[u8]| {
            let mut outer = vec![tag];
            prost::encode_length_delimiter(inner.len(), &mut outer).expect("a length");
            outer.extend_from_slice(inner);
            outer
        };
        input = wrap(0x0a, &wrap(0x12, &wrap(0x2a, &input)));
    }
    let mut message = vec![0x22];
    prost::encode_length_delimiter(input.len(), &mut message).expect("a length");
    message.extend_from_slice(&input);
    let raw = Raw::post(Protocol::Grpc, METHOD, frame(0, &message));
    check(&server, "depth 200", Protocol::Grpc, raw, Code::InvalidArgument, "FIELD_INVALID").await;

    let json = format!("{{\"input\": {}{}}}", "{\"a\":".repeat(200), "1".to_owned() + &"}".repeat(200));
    let raw = Raw::post(Protocol::Json, METHOD, json);
    let status =
        check(&server, "depth 200", Protocol::Json, raw, Code::InvalidArgument, "FIELD_INVALID").await;
    assert!(status.message().contains("nested deeper than"), "{status}");
}

#[tokio::test]
async fn large_messages_are_refused_in_words() {
    let server = Server::start().await;
    let large = vec![b'a'; MESSAGE_BYTES_MAX + 1_000_000];
    for protocol in Protocol::ALL {
        let body: Bytes = match protocol {
            Protocol::Grpc | Protocol::Web => frame(0, &large),
            Protocol::WebText => base64(&frame(0, &large)).into(),
            Protocol::Json => [b"{\"role\": \"", &large[..], b"\"}"].concat().into(),
        };
        let raw = Raw::post(protocol, METHOD, body);
        let status = check(&server, "5 MB", protocol, raw, Code::ResourceExhausted, "QUOTA_EXCEEDED").await;
        assert!(status.message().contains(&MESSAGE_BYTES_MAX.to_string()), "{status}");
    }
}

#[tokio::test]
async fn bad_json_is_refused_and_its_fields_named() {
    let server = Server::start().await;
    let cases: [(&str, &[u8], &str); 14] = [
        ("nothing", b"", ""),
        ("no object", b"[]", ""),
        ("cut off", b"{\"role\": \"ag", ""),
        ("trailing data", b"{} x", ""),
        ("NaN", b"{\"version\": NaN}", ""),
        ("a number beyond doubles", b"{\"version\": 1e400}", ""),
        ("a lone surrogate", br#"{"role": "\ud83d"}"#, ""),
        ("no UTF-8", b"{\"role\": \"\xff\"}", ""),
        ("a raw NUL", b"{\"role\": \"\x00\"}", ""),
        ("a member twice", br#"{"role": "a", "role": "b"}"#, ""),
        ("an unknown field", br#"{"rolle": "agent"}"#, "rolle"),
        ("a wrong type", br#"{"role": 7}"#, "role"),
        ("a negative number", br#"{"version": -1}"#, "version"),
        ("an inexact integer", br#"{"input": {"n": 9007199254740993}}"#, "input.n"),
    ];
    for (name, body, field) in cases {
        let raw = Raw::post(Protocol::Json, METHOD, Bytes::copy_from_slice(body));
        let status = check(&server, name, Protocol::Json, raw, Code::InvalidArgument, "FIELD_INVALID").await;
        let details = status.get_error_details();
        let violations = &details.bad_request().expect("a BadRequest").field_violations;
        assert_eq!(violations[0].field, field, "{name}");
    }
}

#[tokio::test]
async fn bad_heads_are_refused() {
    let server = Server::start().await;
    let grpc = || Raw::post(Protocol::Grpc, METHOD, frame(0, b""));
    let json = || Raw::post(Protocol::Json, METHOD, "{}");
    let invalid = (Code::InvalidArgument, "FIELD_INVALID");
    let missing = (Code::Unimplemented, "UNIMPLEMENTED");
    let unknown =
        |protocol, path: &str| Raw { path: path.to_owned(), ..Raw::post(protocol, METHOD, frame(0, b"")) };
    let cases = [
        ("a bad time-out", Protocol::Grpc, grpc().with("grpc-timeout", "soon"), invalid),
        ("a bad time-out", Protocol::Json, json().with("connect-timeout-ms", "-5"), invalid),
        ("an unknown Connect", Protocol::Json, json().with("connect-protocol-version", "2"), invalid),
        ("a compressed body", Protocol::Json, json().with("content-encoding", "gzip"), missing),
        ("a compressed message", Protocol::Grpc, grpc().with("grpc-encoding", "gzip"), missing),
        ("an unknown encoding", Protocol::Grpc, grpc().with("grpc-encoding", "zzz"), missing),
        (
            "an unknown service",
            Protocol::Grpc,
            unknown(Protocol::Grpc, "/switchward.v1.NoService/Get"),
            missing,
        ),
        (
            "an unknown method",
            Protocol::Grpc,
            unknown(Protocol::Grpc, "/switchward.v1.SessionService/Get"),
            missing,
        ),
        (
            "a service that is off",
            Protocol::Grpc,
            unknown(Protocol::Grpc, "/switchward.v1.ClockService/GetClock"),
            missing,
        ),
        (
            "an unknown method",
            Protocol::Json,
            unknown(Protocol::Json, "/switchward.v1.SessionService/Get"),
            missing,
        ),
        ("another path", Protocol::Json, unknown(Protocol::Json, "/"), missing),
    ];
    for (name, protocol, raw, (code, reason)) in cases {
        check(&server, name, protocol, raw, code, reason).await;
    }
    let large = (Code::ResourceExhausted, "QUOTA_EXCEEDED");
    for (protocol, raw) in [(Protocol::Grpc, grpc()), (Protocol::Json, json())] {
        let raw = raw.with("x-large", "x".repeat(20_000));
        check(&server, "large headers", protocol, raw, large.0, large.1).await;
    }
}

#[tokio::test]
async fn http_statuses_say_what_was_wrong() {
    let server = Server::start().await;
    let json = || Raw::post(Protocol::Json, METHOD, "{}");
    let path = |path: &str| Raw { path: path.to_owned(), ..json() };
    let cases = [
        (200, json()),
        (200, json().with("content-type", "application/json; charset=utf-8")),
        (400, Raw::post(Protocol::Json, METHOD, "{")),
        (404, path("/switchward.v1.SessionService/Get")),
        (404, path("/switchward.v1.SessionService/")),
        (404, path("/nothing")),
        (405, Raw { method: Method::GET, ..json() }),
        (405, Raw { method: Method::PUT, ..json() }),
        (415, json().with("content-type", "text/plain")),
        (415, json().with("content-type", "application/x-www-form-urlencoded")),
        (415, json().with("content-type", "application/connect+json")),
        (415, Raw { http2: true, ..json().with("content-type", "application/grpc+json") }),
        (429, Raw::post(Protocol::Json, METHOD, vec![b' '; MESSAGE_BYTES_MAX + 1])),
        (501, Raw::post(Protocol::Json, "WatchSession", "{}")),
        (501, path("/switchward.v1.ClockService/GetClock")),
        (505, json().with("content-type", "application/grpc")),
    ];
    for (status, raw) in cases {
        let shown = format!("{raw:?}");
        let answer = send(server.address, raw).await;
        assert_eq!(
            answer.status,
            status,
            "{} to {}",
            String::from_utf8_lossy(&answer.body),
            &shown[..shown.len().min(300)]
        );
        if status != 200 {
            assert!(answer.json()["details"][0]["debug"]["reason"].is_string(), "{shown:.300}");
        }
    }
}

/// Pseudorandom numbers that are the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).expect("31 bits") % end.max(1)
    }

    /// The body with a few bytes changed, removed, or inserted.
    fn damage(&mut self, body: &[u8]) -> Bytes {
        let mut body = body.to_vec();
        for _ in 0..=self.below(2) {
            let (at, byte) = (self.below(body.len()), u8::try_from(self.below(256)).expect("a byte"));
            match self.below(8) {
                0 => body.truncate(at),
                1 => body.insert(at, byte),
                _ if at < body.len() => body[at] = byte,
                _ => body.push(byte),
            }
        }
        body.into()
    }
}

#[tokio::test]
async fn damaged_requests_never_look_like_a_fault_of_the_server() {
    let server = Server::start().await;
    let request = api::StartSessionRequest {
        definition: "deploy-gate".to_owned(),
        version: Some(7),
        role: "agent".to_owned(),
        labels: [("team".to_owned(), "core".to_owned())].into(),
        ..Default::default()
    };
    let framed = frame(0, &request.encode_to_vec());
    let json = br#"{"definition": "deploy-gate", "version": 7, "labels": {"team": "core"}, "input": {"a": [1, null]}}"#;
    let mut dice = Dice(0x5eed_5eed_5eed_5eed);
    let (mut accepted, mut refused) = (0, 0);
    for round in 0..400 {
        let protocol = Protocol::ALL[round % Protocol::ALL.len()];
        let body = match protocol {
            Protocol::Grpc | Protocol::Web => dice.damage(&framed),
            Protocol::WebText => dice.damage(base64(&framed).as_bytes()),
            Protocol::Json => dice.damage(json),
        };
        let answer = send(server.address, Raw::post(protocol, METHOD, body.clone())).await;
        match outcome::<api::StartSessionResponse>(protocol, METHOD, &answer) {
            Ok(_) => accepted += 1,
            Err(status) => {
                let blamed = matches!(status.code(), Code::InvalidArgument | Code::ResourceExhausted);
                assert!(blamed, "{protocol:?} {body:?}: {status}");
                refused += 1;
            }
        }
    }
    assert!(accepted > 20 && refused > 100, "{accepted} accepted, {refused} refused");
}
