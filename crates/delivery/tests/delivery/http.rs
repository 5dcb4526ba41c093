//! The guarded client against servers that behave badly.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use switchward_delivery::DeliveryReason;
use switchward_delivery::guard::Egress;
use switchward_delivery::http::{Client, Config, Request, Response};
use switchward_delivery::limits::{ANSWER_BODY_BYTES_MAX, ANSWER_HEADERS_MAX, REQUEST_BODY_BYTES_MAX};
use tokio::net::TcpListener;

use super::server::{self, Act, Names, Server, client, client_with, get, open};

/// What one GET of a server that always does this comes to.
async fn got(act: Act) -> Result<Response, DeliveryReason> {
    let server = Server::always(act).await;
    client(&[server.port]).send(1, &get(&server.url("/"))).await.map_err(|error| error.reason)
}

/// As [`got`], with little time.
async fn got_soon(act: Act, deadline: Duration) -> Result<Response, DeliveryReason> {
    let server = Server::always(act).await;
    let request = Request { deadline, ..get(&server.url("/")) };
    client(&[server.port]).send(1, &request).await.map_err(|error| error.reason)
}

#[tokio::test]
async fn a_request_arrives_as_it_was_meant() {
    let server = Server::always(server::json(201, &json!({ "a": [1] }))).await;
    let request = Request {
        method: "PUT".to_owned(),
        headers: vec![("X-A".to_owned(), "b".to_owned())],
        body: Some(json!({ "c": "d" })),
        ..get(&server.url("/p?q=r#s"))
    };
    let response = client(&[server.port]).send(1, &request).await.expect("the request is answered");
    assert_eq!(response, Response { status: 201, body: json!({ "a": [1] }), retry_after: None });
    let seen = &server.seen()[0];
    assert!(seen.head.starts_with("put /p?q=r http/1.1\r\n"), "{}", seen.head);
    assert_eq!(seen.header("host"), Some(format!("127.0.0.1:{}", server.port).as_str()));
    assert_eq!(seen.header("x-a"), Some("b"));
    assert_eq!(seen.header("content-type"), Some("application/json"));
    assert_eq!(seen.header("accept-encoding"), Some("identity"));
    assert!(seen.header("user-agent").is_some_and(|name| name.starts_with("switchward/")));
    assert_eq!(seen.json(), json!({ "c": "d" }));
}

#[tokio::test]
async fn a_text_of_another_type_is_sent_as_it_is() {
    let server = Server::always(server::json(200, &json!(null))).await;
    for (name, sent) in [("text/plain", "a \"b\""), ("application/json", "\"a \\\"b\\\"\"")] {
        let headers = vec![("content-type".to_owned(), name.to_owned())];
        let request = Request {
            method: "POST".to_owned(),
            headers,
            body: Some(json!("a \"b\"")),
            ..get(&server.url("/"))
        };
        client(&[server.port]).send(1, &request).await.expect("the request is answered");
        assert_eq!(server.seen().last().expect("a request came").body, sent.as_bytes());
    }
}

#[tokio::test]
async fn every_status_is_an_answer() {
    for status in [200, 204, 304, 400, 404, 418, 500, 599] {
        let response =
            got(server::answer(&format!("{status} x"), b"")).await.expect("the request is answered");
        assert_eq!((response.status, response.body), (status, Value::Null));
    }
    let head = "503 x\r\nretry-after: 7\r\ncontent-type: text/plain";
    let response = got(server::answer(head, b"later")).await.expect("the request is answered");
    let expected = Response { status: 503, body: json!("later"), retry_after: Some(Duration::from_secs(7)) };
    assert_eq!(response, expected);
}

#[tokio::test]
async fn a_redirect_is_an_answer_and_is_not_followed() {
    let inner = Server::always(server::json(200, &json!("secret"))).await;
    for (status, location) in
        [(301, "http://10.0.0.1/".to_owned()), (302, inner.url("/")), (307, inner.url("/"))]
    {
        let server =
            Server::always(server::answer(&format!("{status} x\r\nlocation: {location}"), b"")).await;
        let ports = [server.port, inner.port];
        let response = client(&ports).send(1, &get(&server.url("/"))).await.expect("the request is answered");
        assert_eq!(response.status, status);
        assert_eq!(server.seen().len(), 1);
    }
    assert!(inner.seen().is_empty());
}

#[tokio::test]
async fn a_server_that_drips_is_cut_at_the_deadline() {
    let mut bytes = b"HTTP/1.1 200 x\r\ncontent-length: 100000\r\n\r\n".to_vec();
    bytes.extend([b'x'; 100_000]);
    let begun = Instant::now();
    assert_eq!(got_soon(Act::Drip(bytes), Duration::from_millis(300)).await, Err(DeliveryReason::Timeout));
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_server_that_says_nothing_is_cut_at_the_deadline() {
    assert_eq!(got_soon(Act::Hang, Duration::from_millis(200)).await, Err(DeliveryReason::Timeout));
}

#[tokio::test]
async fn a_body_is_read_to_its_limit_and_no_further() {
    let whole = vec![b'x'; ANSWER_BODY_BYTES_MAX];
    let response = got(server::answer("200 x", &whole)).await.expect("the answer fits");
    assert_eq!(response.body.as_str().map(str::len), Some(ANSWER_BODY_BYTES_MAX));
    let more = vec![b'x'; ANSWER_BODY_BYTES_MAX + 1];
    assert_eq!(got(server::answer("200 x", &more)).await, Err(DeliveryReason::AnswerTooLarge));
    let announced = format!("HTTP/1.1 200 x\r\ncontent-length: {}\r\n\r\n", u64::MAX / 2);
    assert_eq!(got(Act::Flood(announced.into_bytes())).await, Err(DeliveryReason::AnswerTooLarge));
    let server = Server::always(Act::Flood(b"HTTP/1.1 200 x\r\n\r\n".to_vec())).await;
    let result = client(&[server.port]).send(1, &get(&server.url("/"))).await;
    assert_eq!(result.map_err(|error| error.reason), Err(DeliveryReason::AnswerTooLarge));
    // What stood in the buffers of two sockets may have been sent beside what was read.
    let sent = server.sent.load(Ordering::SeqCst);
    assert!(sent < ANSWER_BODY_BYTES_MAX + 16 * 1024 * 1024, "{sent}");
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_no_answer() {
    assert_eq!(got(Act::Reset).await, Err(DeliveryReason::AnswerBroken));
    assert_eq!(got(Act::Send(Vec::new())).await, Err(DeliveryReason::AnswerBroken));
    let cut = b"HTTP/1.1 200 x\r\ncontent-length: 9\r\n\r\nhalf".to_vec();
    assert_eq!(got(Act::Send(cut)).await, Err(DeliveryReason::AnswerBroken));
    let chunk = b"HTTP/1.1 200 x\r\ntransfer-encoding: chunked\r\n\r\n4\r\nhalf\r\n".to_vec();
    assert_eq!(got(Act::Send(chunk)).await, Err(DeliveryReason::AnswerBroken));
    assert_eq!(got(Act::Send(b"SSH-2.0-x\r\n".to_vec())).await, Err(DeliveryReason::AnswerBroken));
    let closed = b"HTTP/1.1 200 x\r\n\r\nwhole".to_vec();
    assert_eq!(got(Act::Send(closed)).await.map(|response| response.body), Ok(json!("whole")));
}

#[tokio::test]
async fn headers_have_their_limits() {
    let headers = |count: usize, bytes: usize| {
        let header = format!("\r\na: {}", "b".repeat(bytes));
        server::answer(&format!("200 x{}", header.repeat(count)), b"")
    };
    assert!(got(headers(ANSWER_HEADERS_MAX / 2, 10)).await.is_ok());
    assert_eq!(got(headers(ANSWER_HEADERS_MAX + 1, 10)).await, Err(DeliveryReason::AnswerBroken));
    assert_eq!(got(headers(1, 1024 * 1024)).await, Err(DeliveryReason::AnswerBroken));
}

#[tokio::test]
async fn what_is_compressed_is_not_read() {
    for coding in ["gzip", "br", "identity, gzip", "zstd"] {
        let act = server::answer(&format!("200 x\r\ncontent-encoding: {coding}"), b"\x1f\x8b");
        assert_eq!(got(act).await, Err(DeliveryReason::EncodingRefused), "{coding}");
    }
    assert!(got(server::answer("200 x\r\ncontent-encoding: identity", b"a")).await.is_ok());
}

/// A receiver that says that it has a message has it, whatever else it sends.
#[tokio::test]
async fn where_only_the_head_of_an_answer_matters_its_body_does_not() {
    let announced = |bytes: usize| format!("HTTP/1.1 200 x\r\ncontent-length: {bytes}\r\n\r\n").into_bytes();
    let slow = [announced(2_000), vec![b'x'; 2_000]].concat();
    for (number, act) in [
        server::answer("200 x\r\ncontent-encoding: gzip", b"\x1f\x8b"),
        server::answer("200 x", &vec![b'x'; ANSWER_BODY_BYTES_MAX + 1]),
        Act::Flood(b"HTTP/1.1 200 x\r\n\r\n".to_vec()),
        Act::Send([announced(9), b"half".to_vec()].concat()),
        Act::Drip(slow),
    ]
    .into_iter()
    .enumerate()
    {
        let server = Server::always(act).await;
        let (client, request) = (client(&[server.port]), get(&server.url("/")));
        let found = client.notify(1, &request).await.map(|answer| (answer.status, answer.body));
        assert_eq!(found, Ok((200, json!(null))), "{number}");
    }
    let server = Server::always(Act::Hang).await;
    let request = Request { deadline: Duration::from_millis(200), ..get(&server.url("/")) };
    let silent = client(&[server.port]).notify(1, &request).await.map_err(|failed| failed.reason);
    assert_eq!(silent, Err(DeliveryReason::Timeout));
}

#[tokio::test]
async fn where_nobody_listens_there_is_no_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let port = listener.local_addr().expect("the listener is bound").port();
    drop(listener);
    let result = client(&[port]).send(1, &get(&format!("http://127.0.0.1:{port}/"))).await;
    assert_eq!(result.map_err(|error| error.reason), Err(DeliveryReason::ConnectFailed));
}

#[tokio::test]
async fn what_may_not_be_sent_is_not_sent() {
    let server = Server::always(server::json(200, &json!(null))).await;
    let header = |name: &str, value: &str| vec![(name.to_owned(), value.to_owned())];
    let base = get(&server.url("/"));
    let refused = [
        (Request { headers: header("x", "a\r\nb: c"), ..base.clone() }, DeliveryReason::RequestInvalid),
        (Request { headers: header("Host", "inner"), ..base.clone() }, DeliveryReason::RequestInvalid),
        (Request { method: "CONNECT".to_owned(), ..base.clone() }, DeliveryReason::RequestInvalid),
        (
            Request { body: Some(json!("x".repeat(REQUEST_BODY_BYTES_MAX))), ..base.clone() },
            DeliveryReason::RequestTooLarge,
        ),
        (get("http://user@127.0.0.1/"), DeliveryReason::UrlInvalid),
        (get("http://127.0.0.1:1/"), DeliveryReason::PortRefused),
    ];
    for (request, reason) in refused {
        let result = client(&[server.port]).send(1, &request).await;
        assert_eq!(result.map_err(|error| error.reason), Err(reason), "{request:?}");
    }
    assert!(server.seen().is_empty());
}

/// The name first leads to one server, and then to another on the same port.
#[tokio::test]
async fn a_name_that_changes_its_mind_is_asked_once_and_kept_to() {
    let first = Server::always(server::json(200, &json!("first"))).await;
    let second = TcpListener::bind(("127.0.0.2", first.port)).await.expect("the port is free there");
    let second = Server::at(second, |_| server::json(200, &json!("second")));
    let names = Names::of(&[&["127.0.0.1"], &["127.0.0.2"]]);
    let client = client_with(open(&[first.port]), names.clone());
    let response = client.send(1, &get(&format!("http://rebind.example:{}/", first.port))).await;
    assert_eq!(response.map(|response| response.body), Ok(json!("first")));
    assert_eq!(*names.asked.lock().expect("nobody panicked"), ["rebind.example"]);
    assert_eq!((first.seen().len(), second.seen().len()), (1, 0));
    let host = format!("rebind.example:{}", first.port);
    assert_eq!(first.seen()[0].header("host"), Some(host.as_str()));
}

#[tokio::test]
async fn a_name_that_leads_inside_is_refused_before_anything_is_sent() {
    let server = Server::always(server::json(200, &json!("secret"))).await;
    let url = format!("http://inner.example:{}/", server.port);
    let lost = client(&[server.port]).send(1, &get(&url)).await.expect_err("the name does not exist");
    for row in [&["127.0.0.1"][..], &["10.0.0.1"], &["1.1.1.1", "127.0.0.1"], &["::ffff:127.0.0.1"]] {
        let egress = Egress { allow_loopback: false, ..open(&[server.port]) };
        let error = client_with(egress, Names::of(&[row]))
            .send(1, &get(&url))
            .await
            .expect_err("the request is refused");
        // Nobody learns whether there is such a name inside.
        assert_eq!((error.reason, error.detail), (DeliveryReason::NameUnusable, lost.detail.clone()));
    }
    assert!(server.seen().is_empty());
    assert_eq!(lost.reason, DeliveryReason::NameUnusable);
}

#[tokio::test]
async fn each_tenant_has_its_own_rules() {
    let server = Server::always(server::json(200, &json!("ok"))).await;
    let (dev, strict) = (Arc::new(open(&[server.port])), Arc::new(Egress::default()));
    let rules = move |tenant: u32| Arc::clone(if tenant == 1 { &dev } else { &strict });
    let client = Client::new(Config::new(Arc::new(rules))).expect("the client can be set up");
    let request = get(&server.url("/"));
    assert!(client.send(1, &request).await.is_ok());
    let refused = client.send(2, &request).await.map_err(|error| error.reason);
    assert_eq!(refused, Err(DeliveryReason::SchemeRefused));
    assert!(client.send_under(&open(&[server.port]), &request).await.is_ok());
}

/// The system's own names, over a real lookup that needs no network.
#[tokio::test]
async fn the_systems_names_are_looked_up() {
    let server = Server::always(server::json(200, &json!("ok"))).await;
    let url = format!("http://localhost:{}/", server.port);
    let send = async |egress: Egress| {
        let egress = Arc::new(egress);
        let config = Config::new(Arc::new(move |_tenant: u32| Arc::clone(&egress)));
        let client = Client::new(config).expect("the client can be set up");
        client.send(1, &get(&url)).await.map_err(|error| error.reason)
    };
    assert!(send(open(&[server.port])).await.is_ok());
    let inside = Egress { allow_loopback: false, ..open(&[server.port]) };
    assert_eq!(send(inside).await, Err(DeliveryReason::NameUnusable));
}

/// Another test of this program is run with proxies in its environment, which would see what it sends.
#[tokio::test]
async fn proxies_of_the_environment_are_not_used() {
    let proxy = Server::always(server::json(200, &json!("proxied"))).await;
    let proxy_url = format!("http://127.0.0.1:{}", proxy.port);
    let program = std::env::current_exe().expect("the test program has a path");
    let child = tokio::task::spawn_blocking(move || {
        let mut child = Command::new(program);
        child.args(["--exact", "http::a_request_arrives_as_it_was_meant"]).env_remove("NO_PROXY");
        for name in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"] {
            child.env(name, &proxy_url);
        }
        child.env_remove("no_proxy").output()
    });
    let output = child.await.expect("the program ends").expect("the program starts");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && stdout.contains("1 passed"), "{stdout}");
    assert!(proxy.seen().is_empty());
}

/// Serves one answer over TLS with a certificate for `tls.example`, for as long as the test runs.
async fn tls_server() -> (u16, rustls::pki_types::CertificateDer<'static>) {
    let made = rcgen::generate_simple_self_signed(["tls.example".to_owned()]).expect("a certificate");
    let key = rustls::pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("a key");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider has the protocol versions")
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .expect("the key belongs to the certificate");
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let port = listener.local_addr().expect("the listener is bound").port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(stream).await else { continue };
            if server::read_request(&mut stream).await.is_some() {
                let act = server::json(200, &json!("over TLS"));
                // The other side may leave at any time.
                let _ = server::play(&mut stream, act, &0.into()).await;
            }
        }
    });
    (port, made.cert.der().clone())
}

#[tokio::test]
async fn the_other_side_proves_its_name_although_the_address_is_pinned() {
    let (port, root) = tls_server().await;
    let greeter = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let greeter_port = greeter.local_addr().expect("the listener is bound").port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = greeter.accept().await {
            let greeting = Act::Send(b"220 mail.example\r\n".to_vec());
            // The other side may leave at any time.
            let _ = server::play(&mut stream, greeting, &0.into()).await;
        }
    });
    let send = async |port: u16, name: &str, trusted: bool| {
        let egress = Arc::new(open(&[port]));
        let mut config = Config::new(Arc::new(move |_tenant: u32| Arc::clone(&egress)));
        config.resolver = Arc::new(Names::of(&[&["127.0.0.1"]]));
        config.roots = if trusted { vec![root.clone()] } else { Vec::new() };
        let client = Client::new(config).expect("the client can be set up");
        let response = client.send(1, &get(&format!("https://{name}:{port}/"))).await;
        response.map(|response| response.body).map_err(|error| error.reason)
    };
    assert_eq!(send(port, "tls.example", true).await, Ok(json!("over TLS")));
    assert_eq!(send(port, "other.example", true).await, Err(DeliveryReason::TlsFailed));
    assert_eq!(send(port, "127.0.0.1", true).await, Err(DeliveryReason::TlsFailed));
    assert_eq!(send(port, "tls.example", false).await, Err(DeliveryReason::TlsFailed));
    assert_eq!(send(greeter_port, "tls.example", true).await, Err(DeliveryReason::TlsFailed));
}
