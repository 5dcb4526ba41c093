//! The protocols of the API, and the plain HTTP below them.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::LazyLock;

use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use prost::Message;
use prost_reflect::{DynamicMessage, MethodDescriptor};
use serde_json::Value;
use switchward_api::descriptor_pool;
use tokio::net::TcpStream;
use tonic::{Code, Status};

/// A protocol of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    Grpc,
    Web,
    WebText,
    Json,
}

impl Protocol {
    pub(crate) const ALL: [Self; 4] = [Self::Grpc, Self::Web, Self::WebText, Self::Json];

    fn content_type(self) -> &'static str {
        match self {
            Self::Grpc => "application/grpc",
            Self::Web => "application/grpc-web+proto",
            Self::WebText => "application/grpc-web-text",
            Self::Json => "application/json",
        }
    }
}

/// An HTTP request, below every protocol.
#[derive(Debug, Clone)]
pub(crate) struct Raw {
    pub(crate) http2: bool,
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Bytes,
}

impl Raw {
    pub(crate) fn post(protocol: Protocol, method: &str, body: impl Into<Bytes>) -> Self {
        Self {
            http2: protocol == Protocol::Grpc,
            method: Method::POST,
            path: path(method),
            headers: vec![
                ("content-type", protocol.content_type().to_owned()),
                ("accept", protocol.content_type().to_owned()),
            ],
            body: body.into(),
        }
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.retain(|(known, _)| *known != name);
        self.headers.push((name, value.into()));
        self
    }

    pub(crate) fn into_request(self, address: SocketAddr) -> Request<Full<Bytes>> {
        let mut request = Request::builder().method(self.method);
        request = if self.http2 {
            request.uri(format!("http://{address}{}", self.path))
        } else {
            request.uri(self.path).header("host", address.to_string())
        };
        for (name, value) in self.headers {
            request = request
                .header(HeaderName::from_static(name), HeaderValue::try_from(value).expect("a header value"));
        }
        request.body(Full::new(self.body)).expect("a request")
    }
}

/// An HTTP answer, below every protocol.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) trailers: HeaderMap,
}

impl Answer {
    pub(crate) async fn of(response: Response<Incoming>) -> Self {
        let (head, body) = response.into_parts();
        let body = body.collect().await.expect("a whole answer");
        let trailers = body.trailers().cloned().unwrap_or_default();
        Self { status: head.status, headers: head.headers, body: body.to_bytes(), trailers }
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {:?}", self.body))
    }
}

/// Sends a request over its own connection.
pub(crate) async fn send(address: SocketAddr, raw: Raw) -> Answer {
    let stream = TokioIo::new(TcpStream::connect(address).await.expect("the server listens"));
    let http2 = raw.http2;
    let request = raw.into_request(address);
    let response = if http2 {
        let mut builder = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
        let (mut sender, connection) =
            builder.max_header_list_size(65_536).handshake(stream).await.expect("HTTP/2");
        tokio::spawn(connection);
        sender.send_request(request).await
    } else {
        let (mut sender, connection) = hyper::client::conn::http1::handshake(stream).await.expect("HTTP/1.1");
        tokio::spawn(connection);
        sender.send_request(request).await
    };
    Answer::of(response.expect("an answer")).await
}

/// Makes a unary call.
pub(crate) async fn call<Q: Message, R: Message + Default>(
    address: SocketAddr,
    protocol: Protocol,
    method: &str,
    request: &Q,
) -> Result<R, Status> {
    let body = body(protocol, method, &request.encode_to_vec());
    let answer = send(address, Raw::post(protocol, method, body)).await;
    outcome(protocol, method, &answer)
}

/// A message as the body of a request.
pub(crate) fn body(protocol: Protocol, method: &str, message: &[u8]) -> Bytes {
    match protocol {
        Protocol::Grpc | Protocol::Web => frame(0, message),
        Protocol::WebText => base64(&frame(0, message)).into(),
        Protocol::Json => to_json(method, message).into(),
    }
}

/// Decodes an answer: the reply, or the error with its details.
pub(crate) fn outcome<R: Message + Default>(
    protocol: Protocol,
    method: &str,
    answer: &Answer,
) -> Result<R, Status> {
    reply(protocol, method, answer).map(|message| R::decode(message).expect("a reply"))
}

/// The same, with the reply as bytes of protobuf.
pub(crate) fn reply(protocol: Protocol, method: &str, answer: &Answer) -> Result<Bytes, Status> {
    match protocol {
        Protocol::Grpc | Protocol::Web | Protocol::WebText => {
            let (messages, end) = stream(protocol, answer);
            end.map(|()| messages.into_iter().next().expect("a message"))
        }
        Protocol::Json if answer.status == StatusCode::OK => Ok(from_json(method, &answer.body)),
        Protocol::Json => Err(json_error(&answer.json())),
    }
}

/// The messages of an answer that is not JSON, and how it ended.
pub(crate) fn stream(protocol: Protocol, answer: &Answer) -> (Vec<Bytes>, Result<(), Status>) {
    let body = if protocol == Protocol::WebText { unbase64(&answer.body) } else { answer.body.to_vec() };
    let (messages, trailers) = split(&body);
    let trailers = if protocol == Protocol::Grpc { answer.trailers.clone() } else { trailers };
    let status = Status::from_header_map(&answer.headers).or_else(|| Status::from_header_map(&trailers));
    let status = status.unwrap_or_else(|| panic!("no gRPC status in {answer:?}"));
    let details = Bytes::copy_from_slice(status.details());
    let code = status.code();
    let end =
        if code == Code::Ok { Ok(()) } else { Err(Status::with_details(code, status.message(), details)) };
    (messages, end)
}

pub(crate) fn frame(flag: u8, message: &[u8]) -> Bytes {
    let mut frame = BytesMut::new();
    frame.put_u8(flag);
    frame.put_u32(u32::try_from(message.len()).expect("a short message"));
    frame.put_slice(message);
    frame.freeze()
}

/// The messages of a body, and the trailers that gRPC-Web writes after them.
fn split(body: &[u8]) -> (Vec<Bytes>, HeaderMap) {
    let (mut rest, mut messages, mut trailers) = (body, Vec::new(), HeaderMap::new());
    while let Some((header, after)) = rest.split_first_chunk::<5>() {
        let [flag, length @ ..] = *header;
        let (content, next) = after.split_at(usize::try_from(u32::from_be_bytes(length)).expect("a length"));
        if flag & 0x80 == 0 {
            messages.push(Bytes::copy_from_slice(content));
        } else {
            for line in String::from_utf8_lossy(content).lines() {
                let (name, value) = line.split_once(':').expect("name and value");
                let name = HeaderName::try_from(name).expect("a name");
                trailers.append(name, HeaderValue::try_from(value.trim()).expect("a value"));
            }
        }
        rest = next;
    }
    (messages, trailers)
}

pub(crate) fn to_json(method: &str, message: &[u8]) -> Vec<u8> {
    let descriptor = find(method).input();
    serde_json::to_vec(&DynamicMessage::decode(descriptor, message).expect("a message")).expect("proto-JSON")
}

fn from_json(method: &str, json: &[u8]) -> Bytes {
    let mut reader = serde_json::Deserializer::from_slice(json);
    let message = DynamicMessage::deserialize(find(method).output(), &mut reader).expect("proto-JSON");
    message.encode_to_vec().into()
}

static METHODS: LazyLock<HashMap<String, MethodDescriptor>> = LazyLock::new(|| {
    let all = descriptor_pool().services().flat_map(|service| service.methods().collect::<Vec<_>>());
    all.map(|method| (method.name().to_owned(), method)).collect()
});

/// The method with this name, which is unique across services.
pub(crate) fn find(method: &str) -> MethodDescriptor {
    METHODS.get(method).unwrap_or_else(|| panic!("there is no method {method:?}")).clone()
}

fn path(method: &str) -> String {
    let service = METHODS.get(method).map(|known| known.parent_service().full_name().to_owned());
    format!("/{}/{method}", service.as_deref().unwrap_or("switchward.v1.SessionService"))
}

/// The error of a JSON answer as the status that gRPC would have given.
pub(crate) fn json_error(error: &Value) -> Status {
    let word = error["code"].as_str().expect("a code").to_uppercase();
    let code = (0..=16).map(Code::from_i32).find(|code| snake(*code) == word).expect("a known code");
    let details = error["details"].as_array().expect("details").iter().map(|detail| prost_types::Any {
        type_url: format!("type.googleapis.com/{}", detail["type"].as_str().expect("a type")),
        value: unbase64(detail["value"].as_str().expect("a value").as_bytes()),
    });
    let message = error["message"].as_str().expect("a message").to_owned();
    let status =
        tonic_types::pb::Status { code: code.into(), message: message.clone(), details: details.collect() };
    Status::with_details(code, message, status.encode_to_vec().into())
}

fn snake(code: Code) -> String {
    let mut word = String::new();
    for char in format!("{code:?}").chars() {
        if char.is_ascii_uppercase() && !word.is_empty() {
            word.push('_');
        }
        word.push(char.to_ascii_uppercase());
    }
    word
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

pub(crate) fn base64(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let group =
            chunk.iter().fold(0u32, |group, byte| group << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for at in 0..4 {
            let index = usize::try_from(group >> (18 - 6 * at) & 63).expect("six bits");
            text.push(if at <= chunk.len() { char::from(ALPHABET[index]) } else { '=' });
        }
    }
    text
}

/// Decodes concatenated padded pieces, as a gRPC-Web server sends them.
pub(crate) fn unbase64(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for chunk in text.chunks(4) {
        let digits: Vec<u8> = chunk.iter().copied().filter(|digit| *digit != b'=').collect();
        let value = |digit| ALPHABET.iter().position(|known| *known == digit).expect("a letter of base64");
        let group =
            digits.iter().fold(0, |group, digit| group << 6 | value(*digit)) << (6 * (4 - digits.len()));
        let three = u32::try_from(group).expect("24 bits").to_be_bytes();
        bytes.extend_from_slice(&three[1..digits.len()]);
    }
    bytes
}
