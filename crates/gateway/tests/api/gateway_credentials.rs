//! A gateway asks a server about the credential of a call before it reads the body of that call.

use axum::Router;
use axum::body::Body;
use axum::routing::any;
use http::{HeaderMap, Request};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use switchward_gateway::proxy::{Holder, Holders};
use switchward_gateway::{Port, Reason, Refusal, auth::NewKey};
use switchward_machine::TenantId;
use switchward_testkit::until;
use tokio::sync::watch;
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use crate::client::Line;
use crate::credentials::waits_for_no_body;
use crate::node::Node;
use crate::protocols::Protocol;
use crate::proxying::{Far, Fixed, Gateway, Pair, reason};

/// A text with the form of an API key.
pub(crate) const KEY: &str =
    "swk_0123456789abcdef_0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
const HOLDER: Holder = Holder { tenant: TenantId(1), is_key: true };
/// Calls that are made at one time.
const CALLS: usize = 20;

/// What a server says of credentials: counted, and only while it answers.
pub(crate) struct FakeHolders {
    /// The answers in their order; the last one is repeated.
    said: Mutex<VecDeque<Result<Holder, Refusal>>>,
    count: AtomicUsize,
    answers: watch::Sender<bool>,
}

impl FakeHolders {
    /// Accepts every credential.
    pub(crate) fn accepting() -> Arc<dyn Holders> {
        Self::saying([Ok(HOLDER)])
    }

    fn saying<const N: usize>(said: [Result<Holder, Refusal>; N]) -> Arc<Self> {
        let (count, answers) = (AtomicUsize::default(), watch::Sender::new(true));
        Arc::new(Self { said: Mutex::new(said.into()), count, answers })
    }

    fn count(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }
}

#[tonic::async_trait]
impl Holders for FakeHolders {
    async fn holder(&self, headers: &HeaderMap) -> Result<Holder, Refusal> {
        assert!(headers["authorization"].as_bytes().starts_with(b"Bearer "), "it comes as it was sent");
        self.count.fetch_add(1, Ordering::SeqCst);
        assert!(self.answers.subscribe().wait_for(|answers| *answers).await.is_ok());
        let mut said = self.said.lock();
        let next = if said.len() > 1 { said.pop_front() } else { said.front().cloned() };
        next.expect("an answer")
    }
}

/// What a node says of credentials.
pub(crate) fn holders(node: &Node) -> Arc<dyn Holders> {
    Arc::new(node.api.clone())
}

/// A port that counts requests, and answers all so.
fn answering(counted: &Arc<AtomicUsize>, code: Code) -> Port {
    let counted = Arc::clone(counted);
    let page = move |_: Request<Body>| {
        counted.fetch_add(1, Ordering::SeqCst);
        async move { Status::new(code, "what every call is answered with").into_http::<Body>() }
    };
    Router::new().fallback(any(page)).into()
}

/// A server that answers calls so, and a gateway before it.
struct Cluster {
    asked: Arc<FakeHolders>,
    calls: Arc<AtomicUsize>,
    far: Far,
    gateway: Gateway,
}

impl Cluster {
    async fn start(asked: &Arc<FakeHolders>, code: Code) -> Self {
        let (asked, calls) = (Arc::clone(asked), Arc::default());
        let holders = Arc::clone(&asked) as Arc<dyn Holders>;
        let port = answering(&calls, code);
        let far = Far::start(port, holders, Fixed::alone).await;
        let gateway = Gateway::start(&[far.address]).await;
        gateway.ready().await;
        Self { asked, calls, far, gateway }
    }

    /// How a call is refused.
    async fn refused(&self) -> Status {
        let line = Line::connect(self.gateway.address).await;
        line.call(Protocol::Grpc, "GetTenant", KEY, b"").await.expect_err("no server answers with a message")
    }

    /// How many questions and how many calls the server has got.
    fn got(&self) -> (usize, usize) {
        (self.asked.count(), self.calls.load(Ordering::SeqCst))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_waits_for_no_body_of_a_caller_with_a_wrong_key_and_keeps_nothing_for_it() {
    let node = Node::start(None).await;
    let secret = node.first_tenant("acme").await;
    let far = Far::start(node.app.clone(), holders(&node), Fixed::alone).await;
    let gateway = Gateway::start(&[far.address]).await;
    gateway.ready().await;
    let unknown = format!("authorization: Bearer {KEY}\r\n");
    let other = format!("authorization: Bearer {}\r\n", NewKey::draw().secret);
    for credential in ["", "authorization: Bearer swk_none\r\n", &unknown, &other] {
        waits_for_no_body(gateway.address, credential).await;
    }
    let line = Line::connect(gateway.address).await;
    for protocol in Protocol::ALL {
        line.call(protocol, "GetTenant", &secret, b"").await.expect("an answer");
        let refused = line.call(protocol, "GetTenant", KEY, b"").await.expect_err("no key");
        let direct = node.line.call(protocol, "GetTenant", KEY, b"").await.expect_err("no key");
        assert_eq!((refused.code(), refused.message()), (direct.code(), direct.message()), "{protocol:?}");
        assert_eq!(reason(&refused), "CREDENTIAL_INVALID");
    }
    drop((line, gateway, far));
    node.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_calls_with_one_valid_key_ask_once() {
    let asked = FakeHolders::saying([Ok(HOLDER)]);
    let cluster = Cluster::start(&asked, Code::NotFound).await;
    asked.answers.send_replace(false);
    let line = Line::connect(cluster.gateway.address).await;
    let calls = (0..CALLS).map(|at| {
        let (line, protocol) = (line.clone(), Protocol::ALL[at % Protocol::ALL.len()]);
        tokio::spawn(async move { line.call(protocol, "GetTenant", KEY, b"").await })
    });
    let calls: Vec<_> = calls.collect();
    until("the server is asked", async || asked.count() == 1).await;
    assert_eq!(cluster.got(), (1, 0), "no call goes on without the answer");
    asked.answers.send_replace(true);
    for call in calls {
        let refused = call.await.expect("no panic").expect_err("there is no tenant");
        assert_eq!(refused.code(), Code::NotFound);
    }
    assert_eq!(cluster.refused().await.code(), Code::NotFound, "over another connection");
    assert_eq!(cluster.got(), (1, CALLS + 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_a_call_is_refused_for_is_asked_about_again() {
    let asked =
        FakeHolders::saying([Ok(HOLDER), Err(Refusal::new(Reason::CredentialInvalid, "it was revoked"))]);
    let cluster = Cluster::start(&asked, Code::Unauthenticated).await;
    assert_eq!(cluster.refused().await.message(), "what every call is answered with");
    assert_eq!(cluster.got(), (1, 1));
    for count in 2..4 {
        let refused = cluster.refused().await;
        assert_eq!((refused.code(), refused.message()), (Code::Unauthenticated, "it was revoked"));
        assert_eq!(cluster.got(), (count, 1), "refusals are not remembered");
    }
    waits_for_no_body(cluster.gateway.address, &format!("authorization: Bearer {KEY}\r\n")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_refused_as_its_server_does_if_no_server_knows_whose_the_key_is() {
    let cut_off = Refusal::new(Reason::ShardElecting, "it is cut off").retry_after(Duration::from_secs(1));
    let asked = FakeHolders::saying([Err(cut_off)]);
    let cluster = Cluster::start(&asked, Code::NotFound).await;
    let refused = cluster.refused().await;
    assert_eq!((refused.code(), refused.message()), (Code::Unavailable, "it is cut off"));
    assert_eq!(reason(&refused), "SHARD_ELECTING");
    let retry = refused.get_details_retry_info().and_then(|info| info.retry_delay);
    assert_eq!(retry, Some(Duration::from_secs(1)));
    assert_eq!(cluster.got(), (1, 0), "nothing was done");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_server_is_asked_if_one_does_not_know_whose_a_key_is() {
    let cut_off = Refusal::new(Reason::ShardElecting, "it is cut off");
    let (asked, calls) = (FakeHolders::saying([Err(cut_off), Ok(HOLDER)]), Arc::default());
    let holders = Arc::clone(&asked) as Arc<dyn Holders>;
    let servers = Pair::of(&answering(&calls, Code::NotFound), &holders).await;
    let gateway = Gateway::start(&servers.addresses()).await;
    gateway.ready().await;
    let line = Line::connect(gateway.address).await;
    let refused = line.call(Protocol::Grpc, "GetTenant", KEY, b"").await.expect_err("there is no tenant");
    assert_eq!(refused.code(), Code::NotFound);
    assert_eq!((asked.count(), calls.load(Ordering::SeqCst)), (2, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_whose_key_no_server_answers_about_is_unavailable_and_did_nothing() {
    let asked = FakeHolders::saying([Ok(HOLDER)]);
    let cluster = Cluster::start(&asked, Code::NotFound).await;
    asked.answers.send_replace(false);
    let line = Line::connect(cluster.gateway.address).await;
    let call = tokio::spawn(async move { line.call(Protocol::Grpc, "GetTenant", KEY, b"").await });
    until("the server is asked", async || asked.count() == 1).await;
    cluster.far.die();
    let lost = call.await.expect("no panic").expect_err("the server is lost");
    for refused in [lost, cluster.refused().await] {
        assert_eq!(refused.code(), Code::Unavailable, "{refused:?}");
        assert_eq!(reason(&refused), "SERVER_UNREACHABLE");
    }
    assert_eq!(cluster.got(), (1, 0));
}
