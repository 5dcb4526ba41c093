//! The same call returns the same result by every way in.

use futures::StreamExt;
use prost::Message;
use prost_types::{Struct, Value, value::Kind};
use std::collections::BTreeMap;
use switchward_api::v1::{
    self as api, session_service_client::SessionServiceClient, watch_session_response::Update,
};
use switchward_gateway::{
    DOMAIN, Reason,
    limits::{JSON_DEPTH_MAX, STATUS_DETAILS_BYTES_MAX},
};
use tonic::Code;
use tonic_types::StatusExt;

use super::Server;
use crate::protocols::{Protocol, Raw, body, call, outcome, send};

fn start(input: Option<Struct>) -> api::StartSessionRequest {
    api::StartSessionRequest {
        definition: "deploy-gate".to_owned(),
        version: Some(3),
        session_id: "release-7".to_owned(),
        input,
        role: "agent \u{e4}\u{1f600}\u{202e}".to_owned(),
        labels: BTreeMap::from([("team".to_owned(), "core".to_owned()), ("a.b".to_owned(), String::new())]),
        request_id: "r-1".to_owned(),
        ..Default::default()
    }
}

fn object(name: &str, kind: Kind) -> Struct {
    Struct { fields: BTreeMap::from([(name.to_owned(), Value { kind: Some(kind) })]) }
}

/// An object of nested objects with `levels` levels.
fn nested(levels: usize) -> Struct {
    (1..levels)
        .fold(object("leaf", Kind::NumberValue(0.5)), |inner, _| object("in", Kind::StructValue(inner)))
}

#[tokio::test]
async fn replies_are_equal() {
    let server = Server::start().await;
    // The request itself is one level of JSON.
    for input in [None, Some(nested(1)), Some(nested(JSON_DEPTH_MAX - 1))] {
        let request = start(input);
        let wanted: api::StartSessionResponse =
            call(server.address, Protocol::Grpc, "StartSession", &request).await.expect("a reply");
        let session = wanted.session.clone().expect("a session");
        assert_eq!((session.labels, session.version), (request.labels.clone(), 3));
        for protocol in Protocol::ALL {
            let reply: api::StartSessionResponse = call(server.address, protocol, "StartSession", &request)
                .await
                .unwrap_or_else(|e| panic!("{protocol:?}: {e}"));
            assert_eq!(reply, wanted, "{protocol:?}");
        }
    }
}

#[tokio::test]
async fn long_and_empty_messages_are_equal() {
    let server = Server::start().await;
    let long = api::PauseSessionRequest { name: "release-7".to_owned(), ..Default::default() };
    for protocol in Protocol::ALL {
        let reply: api::PauseSessionResponse =
            call(server.address, protocol, "PauseSession", &long).await.expect("a reply");
        assert_eq!(reply.session.expect("a session").labels.len(), 200, "{protocol:?}");
        let empty = api::CancelSessionRequest::default();
        let reply: api::CancelSessionResponse =
            call(server.address, protocol, "CancelSession", &empty).await.expect("a reply");
        assert_eq!(reply, api::CancelSessionResponse::default(), "{protocol:?}");
    }
}

#[tokio::test]
async fn errors_are_equal_with_all_their_details() {
    let server = Server::start().await;
    let request = api::AnswerCheckpointRequest { answer: "maybe".to_owned(), ..Default::default() };
    for protocol in Protocol::ALL {
        let answered: Result<api::AnswerCheckpointResponse, _> =
            call(server.address, protocol, "AnswerCheckpoint", &request).await;
        let status = answered.expect_err("a refusal");
        assert_eq!(status.code(), Code::FailedPrecondition, "{protocol:?}");
        assert_eq!(status.message(), "\"maybe\" is not an answer of env-check: ü", "{protocol:?}");
        let details = status.get_error_details();
        let info = details.error_info().expect("an ErrorInfo");
        assert_eq!((info.reason.as_str(), info.domain.as_str()), (Reason::AnswerNotAllowed.word(), DOMAIN));
        assert_eq!(info.metadata["allowed"], r#"["yes","no"]"#);
        assert_eq!(details.bad_request().expect("a BadRequest").field_violations.len(), 1, "{protocol:?}");
        assert_eq!(details.precondition_failure().expect("a PreconditionFailure").violations.len(), 1);
        let delay = details.retry_info().expect("a RetryInfo").retry_delay.expect("a delay");
        assert_eq!(delay.as_millis(), 1_500, "{protocol:?}");
    }
}

#[tokio::test]
async fn an_error_in_words_alone_gets_its_reason() {
    let server = Server::start().await;
    let request = api::ListSessionEventsRequest::default();
    for protocol in Protocol::ALL {
        let answered: Result<api::ListSessionEventsResponse, _> =
            call(server.address, protocol, "ListSessionEvents", &request).await;
        let status = answered.expect_err("a refusal");
        assert_eq!(
            (status.code(), status.message()),
            (Code::InvalidArgument, "in words alone"),
            "{protocol:?}"
        );
        assert_eq!(status.get_error_details().error_info().expect("an ErrorInfo").reason, "FIELD_INVALID");
    }
}

#[tokio::test]
async fn the_largest_error_gets_through_every_way() {
    let server = Server::start().await;
    for protocol in Protocol::ALL {
        let answered: Result<api::RaiseCapResponse, _> =
            call(server.address, protocol, "RaiseCap", &api::RaiseCapRequest::default()).await;
        let status = answered.expect_err("a refusal");
        assert_eq!(status.code(), Code::InvalidArgument, "{protocol:?}");
        assert!(status.details().len() <= STATUS_DETAILS_BYTES_MAX, "{protocol:?}");
        let metadata = &status.get_error_details().error_info().expect("an ErrorInfo").metadata.clone();
        assert!(metadata.contains_key("violations_omitted"), "{protocol:?}");
    }
}

#[tokio::test]
async fn a_json_error_says_its_reason_in_words() {
    let server = Server::start().await;
    let raw = Raw::post(Protocol::Json, "GetSession", r#"{"name": "tenants/other/sessions/s"}"#);
    let answer = send(server.address, raw).await;
    assert_eq!(answer.status, 404);
    let error = answer.json();
    assert_eq!(error["code"], "not_found");
    let details = error["details"].as_array().expect("details");
    let info = details.iter().find(|detail| detail["type"] == "google.rpc.ErrorInfo").expect("an ErrorInfo");
    assert_eq!(info["debug"]["reason"], "NOT_FOUND");
    assert_eq!(info["debug"]["domain"], DOMAIN);
    let resource =
        details.iter().find(|detail| detail["type"] == "google.rpc.ResourceInfo").expect("a ResourceInfo");
    assert_eq!(resource["debug"]["resourceName"], "tenants/other/sessions/s");
}

#[tokio::test]
async fn credentials_and_metadata_pass_every_way() {
    let server = Server::start().await;
    for protocol in Protocol::ALL {
        let body = match protocol {
            Protocol::Grpc | Protocol::Web => crate::protocols::frame(0, b""),
            Protocol::WebText => crate::protocols::base64(&crate::protocols::frame(0, b"")).into(),
            Protocol::Json => "{}".into(),
        };
        let raw = Raw::post(protocol, "StartSession", body).with("authorization", "Bearer swk_1");
        let answer = send(server.address, raw).await;
        let reply: api::StartSessionResponse = outcome(protocol, "StartSession", &answer).expect("a reply");
        assert_eq!(reply.session.expect("a session").reason, "0:Bearer swk_1", "{protocol:?}");
        assert_eq!(answer.headers["x-shown-by"], "r-1", "{protocol:?}");
    }
}

#[tokio::test]
async fn the_generated_client_calls_and_streams() {
    let server = Server::start().await;
    let mut client =
        SessionServiceClient::connect(format!("http://{}", server.address)).await.expect("a connection");
    let reply = client.start_session(start(None)).await.expect("a reply").into_inner();
    assert_eq!(reply.session.expect("a session").session_id, "release-7");

    let request = api::WatchSessionRequest { name: "release-7".to_owned(), from_sequence: 5 };
    let mut stream = client.watch_session(request).await.expect("a stream").into_inner();
    let mut seen = Vec::new();
    let end = loop {
        match stream.next().await.expect("an end") {
            Ok(api::WatchSessionResponse { update: Some(Update::Event(event)) }) => seen.push(event.sequence),
            Ok(api::WatchSessionResponse { update }) => assert!(matches!(update, Some(Update::Heartbeat(_)))),
            Err(status) => break status,
        }
    };
    assert_eq!(seen, [5, 6]);
    assert_eq!(end.code(), Code::Unavailable);
    assert_eq!(end.get_error_details().error_info().expect("an ErrorInfo").reason, "DRAINING");
}

#[tokio::test]
async fn every_answer_names_its_request() {
    let server = Server::start().await;
    for protocol in Protocol::ALL {
        let sent = body(protocol, "StartSession", &start(None).encode_to_vec());
        for content in [sent, bytes::Bytes::from_static(b"nonsense")] {
            let id = |answer: &crate::protocols::Answer| {
                let id =
                    answer.headers.get("x-request-id").unwrap_or_else(|| panic!("{protocol:?}: {answer:?}"));
                id.to_str().expect("text").to_owned()
            };
            let post = || Raw::post(protocol, "StartSession", content.clone());
            let (one, other) =
                (id(&send(server.address, post()).await), id(&send(server.address, post()).await));
            assert!(one != other && one.len() == 32, "{protocol:?}: {one} {other}");
            let own = "r".repeat(128);
            assert_eq!(
                id(&send(server.address, post().with("x-request-id", own.as_str())).await),
                own,
                "{protocol:?}"
            );
            for bad in ["", "two words", &"r".repeat(129)] {
                let drawn = id(&send(server.address, post().with("x-request-id", bad)).await);
                assert!(drawn != bad && drawn.len() == 32, "{protocol:?} took {bad:?}");
            }
        }
    }
}
