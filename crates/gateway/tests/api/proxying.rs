//! A gateway before a server: calls and pages are passed on, and what a client says about itself is not believed.

use axum::Router;
use axum::routing::any;
use http::{Request, Response};
use http_body_util::Full;
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use switchward_api::v1;
use switchward_gateway::limits::URI_BYTES_MAX;
use switchward_gateway::proxy::{
    CallIo, CallServer, ClientAddress, Facts, Holders, Maps, Proxy, RedisFacts, RouteGroup, RouteMap,
    RouteServer, ServerDialer, ServerFacts, ask_facts, gateway_port,
};
use switchward_gateway::serve::serve;
use switchward_gateway::{ConnectionLimits, Port};
use switchward_state::catalogue::BucketMap;
use switchward_testkit::until;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tonic::Code;
use tonic_types::{ErrorDetails, StatusExt as _};

use crate::client::Line;
use crate::gateway_credentials::{FakeHolders, KEY, holders};
use crate::node::Node;
use crate::protocols::{Protocol, Raw, body};

/// The memory of a gateway, bytes.
const MEMORY: usize = 256 * 1024 * 1024;

/// Where servers answer processes of the cluster.
const INTERNAL: [&str; 3] = ["/-/route-map", "/-/facts", "/-/credential"];

/// The map of one server, or of several that all have everything.
pub(crate) struct Fixed(pub(crate) Arc<RouteMap>);

impl Fixed {
    /// The map of one server alone, at this address.
    pub(crate) fn alone(address: SocketAddr) -> Arc<dyn Maps> {
        Arc::new(Self::of(&[address]))
    }

    pub(crate) fn of(addresses: &[SocketAddr]) -> Self {
        let numbers: Vec<u64> = (1..).take(addresses.len()).collect();
        let servers = numbers.iter().zip(addresses);
        let group = |group, leader| RouteGroup { group, servers: numbers.clone(), leader: Some(leader) };
        Self(Arc::new(RouteMap {
            epoch: 1,
            servers: servers
                .map(|(number, address)| RouteServer { number: *number, address: address.to_string() })
                .collect(),
            groups: vec![group(0, 1), group(1, 1)],
            buckets: BucketMap::InTurn { groups: 1 },
            removed: Vec::new(),
        }))
    }
}

impl Maps for Fixed {
    fn map(&self) -> Option<Arc<RouteMap>> {
        Some(Arc::clone(&self.0))
    }

    fn outdated(&self) {}
}

/// Dials without TLS.
pub(crate) struct Plain;

#[tonic::async_trait]
impl ServerDialer for Plain {
    async fn dial(&self, _: u64, address: &str) -> io::Result<Box<dyn CallIo>> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Box::new(stream))
    }
}

/// What a server of these tests says of itself.
pub(crate) struct TestFacts;

#[tonic::async_trait]
impl Facts for TestFacts {
    async fn facts(&self) -> ServerFacts {
        ServerFacts {
            version: "1.2.3".into(),
            lowest_level: 1,
            highest_level: 2,
            level: 1,
            clock_ms: 60_000,
            certificate_expire_ms: None,
            disk_free_bytes: None,
            disk_low: false,
            keys: "0a".into(),
            redis: RedisFacts::None,
            servers: Vec::new(),
        }
    }
}

/// The connections for calls of a server, which end with this.
pub(crate) struct Far {
    pub(crate) address: SocketAddr,
    calls: CallServer,
    open: Arc<Mutex<Vec<JoinHandle<()>>>>,
    task: JoinHandle<()>,
}

impl Far {
    /// Answers calls that are passed on as the server 1 with this port, says whose credentials are, and shows this map.
    pub(crate) async fn start(
        app: Port,
        holders: Arc<dyn Holders>,
        maps: impl FnOnce(SocketAddr) -> Arc<dyn Maps>,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("the listener is bound");
        let calls = CallServer::new(1, app, holders, maps(address), Arc::new(TestFacts));
        let open: Arc<Mutex<Vec<JoinHandle<()>>>> = Arc::default();
        let (answers, kept) = (calls.clone(), Arc::clone(&open));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                stream.set_nodelay(true).expect("a socket");
                let answers = answers.clone();
                kept.lock().push(tokio::spawn(async move { answers.serve(stream).await }));
            }
        });
        Self { address, calls, open, task }
    }

    /// Is lost, with its connections.
    pub(crate) fn die(&self) {
        self.task.abort();
        self.open.lock().iter().for_each(JoinHandle::abort);
    }
}

impl Drop for Far {
    fn drop(&mut self) {
        self.die();
    }
}

/// A gateway.
pub(crate) struct Gateway {
    pub(crate) address: SocketAddr,
    tasks: [JoinHandle<()>; 2],
}

impl Gateway {
    /// Passes everything on to these servers, and has their map.
    pub(crate) async fn start(servers: &[SocketAddr]) -> Self {
        let seeds: BTreeMap<u64, String> = (1..).zip(servers.iter().map(SocketAddr::to_string)).collect();
        let proxy = Proxy::of_gateway(seeds, Arc::new(Plain), MEMORY);
        let (app, health) = gateway_port(&proxy, Vec::new(), MEMORY).await;
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("the listener is bound");
        let served =
            tokio::spawn(serve(listener, None, app, ConnectionLimits::default(), std::future::pending()));
        let followed = tokio::spawn(async move { proxy.follow(health).await });
        Self { address, tasks: [served, followed] }
    }

    /// Waits until it knows the cluster.
    pub(crate) async fn ready(&self) {
        let line = Line::connect(self.address).await;
        until("the gateway is ready", async || {
            let ready = Request::builder().uri(format!("http://{}/readyz", self.address));
            line.exchange(ready.body(Full::default()).expect("a request")).await.status == 200
        })
        .await;
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// A port of pages that records where each request came from, and which headers it had.
#[derive(Clone, Default)]
pub(crate) struct Seen(Arc<Mutex<Vec<SeenRequest>>>);

/// The address of the client, and the names of the headers.
pub(crate) type SeenRequest = (Option<ClientAddress>, Vec<String>);

impl Seen {
    pub(crate) fn port(&self) -> Port {
        let seen = self.clone();
        let page = move |request: Request<axum::body::Body>| {
            let client = request.extensions().get::<ClientAddress>().copied();
            let names = request.headers().keys().map(|name| name.as_str().to_owned()).collect();
            seen.0.lock().push((client, names));
            async { Response::new(axum::body::Body::from("seen")) }
        };
        Router::new().fallback(any(page)).into()
    }

    /// The number of requests.
    pub(crate) fn count(&self) -> usize {
        self.0.lock().len()
    }
}

pub(crate) fn reason(status: &tonic::Status) -> String {
    status.get_details_error_info().map(|info| info.reason).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_and_pages_through_a_gateway_are_answered_as_without() {
    let node = Node::start(None).await;
    let secret = node.first_tenant("acme").await;
    let far = Far::start(node.app.clone(), holders(&node), Fixed::alone).await;
    let gateway = Gateway::start(&[far.address]).await;
    gateway.ready().await;
    let line = Line::connect(gateway.address).await;
    for protocol in Protocol::ALL {
        let method = "GetTenant";
        let expected = node.line.call(protocol, method, &secret, b"").await.expect("an answer");
        let answer = line.call(protocol, method, &secret, b"").await.expect("an answer");
        assert_eq!(answer, expected, "{protocol:?}");
        let refused = line.call(protocol, method, "swk_wrong", b"").await.expect_err("no key");
        assert_eq!(reason(&refused), "CREDENTIAL_INVALID", "the far server checks the key");
    }
    let missing =
        v1::GetSessionRequest { name: "ses_00000000000000000000000001".into(), ..Default::default() };
    let refused = line.ask::<v1::GetSessionResponse>(&secret, "GetSession", &missing).await;
    assert_eq!(refused.expect_err("no session").code(), Code::NotFound);
    // A page that only the far server has.
    let page = Request::builder().uri(format!("http://{}/a/nothing", gateway.address));
    let through = line.exchange(page.body(Full::default()).expect("a request")).await;
    let page = Request::builder().uri(format!("http://{}/a/nothing", node.line.address));
    let direct = node.line.exchange(page.body(Full::default()).expect("a request")).await;
    assert_eq!((through.status, through.body), (direct.status, direct.body));
    drop((line, gateway, far));
    node.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_cannot_say_that_it_is_a_gateway_or_another_address() {
    let seen = Seen::default();
    let far = Far::start(seen.port(), FakeHolders::accepting(), Fixed::alone).await;
    let gateway = Gateway::start(&[far.address]).await;
    gateway.ready().await;
    // The same port, open to clients.
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let public = listener.local_addr().expect("the listener is bound");
    let served =
        tokio::spawn(serve(listener, None, seen.port(), ConnectionLimits::default(), std::future::pending()));
    for (address, status) in [(gateway.address, 404_u16), (public, 200)] {
        let line = Line::connect(address).await;
        let forged = Request::builder()
            .method("POST")
            .uri(format!("http://{address}/v1/in/acme/shop"))
            .header("switchward-client", "203.0.113.9")
            .header("switchward-epoch", "99");
        let answer = line.exchange(forged.body(Full::default()).expect("a request")).await;
        assert_eq!(answer.status, 200);
        // They are for processes of the cluster: a server has no such pages, and a gateway asks no server for them.
        for path in INTERNAL {
            let asked = Request::builder().uri(format!("http://{address}{path}"));
            let answer = line.exchange(asked.body(Full::default()).expect("a request")).await;
            assert_eq!(answer.status, status, "{path}: {:?}", answer.body);
            assert!(status == 404 || &answer.body[..] == b"seen", "{path} is a page");
        }
    }
    let seen = std::mem::take(&mut *seen.0.lock());
    assert_eq!(seen.len(), 2 + INTERNAL.len());
    for (client, names) in seen {
        assert_eq!(client, Some(ClientAddress("127.0.0.1".parse().expect("an address"))));
        assert!(names.iter().all(|name| !name.starts_with("switchward-")), "{names:?}");
    }
    served.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_server_is_passed_over_and_no_server_is_unavailable() {
    let node = Node::start(None).await;
    let secret = node.first_tenant("acme").await;
    let listeners = Pair::start(&node).await;
    let gateway = Gateway::start(&listeners.addresses()).await;
    gateway.ready().await;
    let line = Line::connect(gateway.address).await;
    let get = || async { line.call(Protocol::Grpc, "GetTenant", &secret, b"").await };
    get().await.expect("an answer");
    listeners.far[0].die();
    for _ in 0..4 {
        until("the other server answers", async || get().await.is_ok()).await;
    }
    listeners.far[1].die();
    until("no server answers", async || {
        let refused = get().await.expect_err("no server");
        assert_eq!(refused.code(), Code::Unavailable, "{refused:?}");
        reason(&refused) == "SERVER_UNREACHABLE"
    })
    .await;
    drop((line, gateway, listeners));
    node.end().await;
}

/// Two servers that show the map of both.
pub(crate) struct Pair {
    far: [Far; 2],
}

impl Pair {
    async fn start(node: &Node) -> Self {
        Self::of(&node.app, &holders(node)).await
    }

    pub(crate) async fn of(app: &Port, holders: &Arc<dyn Holders>) -> Self {
        let shared: Arc<Mutex<Vec<SocketAddr>>> = Arc::default();
        let far = |shared: Arc<Mutex<Vec<SocketAddr>>>| {
            Far::start(app.clone(), Arc::clone(holders), move |address| {
                shared.lock().push(address);
                Arc::new(Late(shared)) as Arc<dyn Maps>
            })
        };
        Self { far: [far(Arc::clone(&shared)).await, far(Arc::clone(&shared)).await] }
    }

    pub(crate) fn addresses(&self) -> [SocketAddr; 2] {
        self.far.each_ref().map(|far| far.address)
    }
}

/// The map of all servers that were started.
struct Late(Arc<Mutex<Vec<SocketAddr>>>);

impl Maps for Late {
    fn map(&self) -> Option<Arc<RouteMap>> {
        Fixed::of(&self.0.lock()).map()
    }

    fn outdated(&self) {}
}

/// A port that counts requests, and never answers while `hangs`.
fn hanging(counted: &Arc<AtomicUsize>, hangs: &Arc<AtomicBool>) -> Port {
    let (counted, hangs) = (Arc::clone(counted), Arc::clone(hangs));
    let page = move |_: Request<axum::body::Body>| {
        counted.fetch_add(1, Ordering::SeqCst);
        let hangs = hangs.load(Ordering::SeqCst);
        async move {
            if hangs {
                std::future::pending::<()>().await;
            }
            Response::new(axum::body::Body::empty())
        }
    };
    Router::new().fallback(any(page)).into()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_lost_server_had_got_is_unknown_for_changes_and_unavailable_for_reads() {
    for (method, code, expected) in [
        ("PauseSession", Code::Aborted, "OUTCOME_UNKNOWN"),
        ("GetSession", Code::Unavailable, "SERVER_UNREACHABLE"),
    ] {
        let (counted, hangs) = (Arc::<AtomicUsize>::default(), Arc::new(AtomicBool::new(true)));
        let far = Far::start(hanging(&counted, &hangs), FakeHolders::accepting(), Fixed::alone).await;
        let gateway = Gateway::start(&[far.address]).await;
        gateway.ready().await;
        let line = Line::connect(gateway.address).await;
        let call = tokio::spawn(async move { line.call(Protocol::Grpc, method, KEY, b"").await });
        until("the server has got the call", async || counted.load(Ordering::SeqCst) == 1).await;
        far.die();
        let refused = call.await.expect("no panic").expect_err("the server is lost");
        assert_eq!((refused.code(), reason(&refused).as_str()), (code, expected), "{method}");
        assert_eq!(counted.load(Ordering::SeqCst), 1, "it is not sent again");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stops_takes_no_more_calls_and_another_one_answers() {
    let node = Node::start(None).await;
    let secret = node.first_tenant("acme").await;
    let servers = Pair::start(&node).await;
    let gateway = Gateway::start(&servers.addresses()).await;
    gateway.ready().await;
    let line = Line::connect(gateway.address).await;
    line.call(Protocol::Grpc, "GetTenant", &secret, b"").await.expect("an answer");
    servers.far[0].calls.stop();
    for _ in 0..8 {
        let answer = line.call(Protocol::Grpc, "GetTenant", &secret, b"").await;
        answer.expect("the other server answers");
    }
    drop((line, gateway, servers));
    node.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_uri_that_is_too_long_is_refused_before_it_is_passed_on() {
    let seen = Seen::default();
    let far = Far::start(seen.port(), FakeHolders::accepting(), Fixed::alone).await;
    let gateway = Gateway::start(&[far.address]).await;
    gateway.ready().await;
    // HTTP/2 sends each of these bytes as more than two.
    for path in ["/", "/v1/in/acme/", "/grpc.reflection.v1.ServerReflection/"] {
        for address in [gateway.address, far.address] {
            let line = Line::connect(address).await;
            let long = format!("http://{address}{path}{}", "\\".repeat(URI_BYTES_MAX));
            let request = Request::builder().method("POST").uri(long);
            let answer = line.exchange(request.body(Full::default()).expect("a request")).await;
            assert_eq!(answer.status, 414, "{path}");
        }
    }
    // Almost the longest that HTTP/1.1 accepts.
    let mut stream = TcpStream::connect(gateway.address).await.expect("the gateway listens");
    let head = format!("GET /{} HTTP/1.1\r\nhost: a\r\n\r\n", "a".repeat(60_000));
    stream.write_all(head.as_bytes()).await.expect("it is sent");
    let mut begin = [0; 12];
    stream.read_exact(&mut begin).await.expect("an answer");
    assert_eq!(&begin, b"HTTP/1.1 414");
    assert!(seen.0.lock().is_empty(), "no server got any");
    let line = Line::connect(gateway.address).await;
    let page = Request::builder().uri(format!("http://{}/a/{}", gateway.address, "\\".repeat(8_000)));
    let answer = line.exchange(page.body(Full::default()).expect("a request")).await;
    assert_eq!(&answer.body[..], b"seen");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_says_which_calls_had_a_key_and_shows_its_map_to_no_client() {
    let node = Node::start(None).await;
    let secret = node.first_tenant("acme").await;
    let far = Far::start(node.app.clone(), holders(&node), Fixed::alone).await;
    let gateway = Gateway::start(&[far.address]).await;
    gateway.ready().await;
    let method = "GetTenant";
    let keyed = async |address: SocketAddr, secret: &str| {
        let raw = Raw::post(Protocol::Grpc, method, body(Protocol::Grpc, method, b"")).with_key(secret);
        let answer = Line::connect(address).await.send(raw).await;
        answer.headers.contains_key("switchward-keyed")
    };
    assert!(keyed(far.address, &secret).await, "a server says it to processes of the cluster");
    assert!(!keyed(far.address, "swk_wrong").await);
    // A call that is refused before anybody looks at its credential.
    let other =
        Request::builder().method("POST").uri(format!("http://{}/switchward.v1.None/Such", far.address));
    let line = Line::connect(far.address).await;
    let answer = line.exchange(other.body(Full::default()).expect("a request")).await;
    assert!(!answer.headers.contains_key("switchward-keyed"));
    assert!(!keyed(gateway.address, &secret).await, "it is for the gateway alone");
    let ask = |path: &str, client: Option<&str>| {
        let mut asked = Request::builder().uri(format!("http://{}{path}", far.address));
        if let Some(client) = client {
            asked = asked.header("switchward-client", client);
        }
        asked.body(Full::default()).expect("a request")
    };
    for path in INTERNAL {
        assert_eq!(line.exchange(ask(path, None)).await.status, 200);
        for client in ["192.0.2.1", "nobody"] {
            assert_eq!(line.exchange(ask(path, Some(client))).await.status, 404);
        }
    }
    let server = RouteServer { number: 1, address: far.address.to_string() };
    assert_eq!(ask_facts(Arc::new(Plain), &server).await, Ok(TestFacts.facts().await));
    drop((line, gateway, far));
    node.end().await;
}

/// A port that counts requests, and answers all that it stops.
fn draining(counted: &Arc<AtomicUsize>) -> Port {
    let counted = Arc::clone(counted);
    let page = move |_: Request<axum::body::Body>| {
        counted.fetch_add(1, Ordering::SeqCst);
        let details =
            ErrorDetails::with_error_info("DRAINING", "switchward.dev", HashMap::<String, String>::new());
        let status = tonic::Status::with_error_details(Code::Unavailable, "the server is stopping", details);
        async move { status.into_http::<axum::body::Body>() }
    };
    Router::new().fallback(any(page)).into()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_may_have_several_commands_is_not_sent_again_to_another_server() {
    let counted = Arc::<AtomicUsize>::default();
    let servers = Pair::of(&draining(&counted), &FakeHolders::accepting()).await;
    let gateway = Gateway::start(&servers.addresses()).await;
    gateway.ready().await;
    let line = Line::connect(gateway.address).await;
    for (method, sent) in [
        ("GetTenant", 2),
        ("PauseSession", 2),
        ("RecoverWebhookEndpoint", 1),
        ("TransferLeaders", 1),
        ("PollWork", 1),
    ] {
        counted.store(0, Ordering::SeqCst);
        let refused = line.call(Protocol::Grpc, method, KEY, b"").await.expect_err("all servers stop");
        assert_eq!(reason(&refused), "DRAINING", "{method}");
        assert_eq!(counted.load(Ordering::SeqCst), sent, "{method}");
    }
}
