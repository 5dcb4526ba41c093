//! The connections of delivery processes: questions and answers, and no calls.

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use switchward_gateway::limits::{DELIVERY_ANSWER_BYTES_MAX, DELIVERY_QUESTION_BYTES_MAX};
use switchward_gateway::proxy::{AnswersDelivery, CallServer, Proxy};
use switchward_gateway::routes::Services;
use switchward_machine::Bucket;
use switchward_testkit::until;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::client::Line;
use crate::gateway_credentials::holders;
use crate::node::Node;
use crate::protocols::Protocol;
use crate::proxying::{Fixed, Gateway, Plain, TestFacts};

/// Answers with the length of the question, and refuses an empty one.
#[derive(Default)]
struct Lengths {
    asked: Mutex<usize>,
    answers_too_much: AtomicBool,
}

#[tonic::async_trait]
impl AnswersDelivery for Lengths {
    async fn answer(&self, question: Bytes) -> Result<Bytes, String> {
        *self.asked.lock() += 1;
        if self.answers_too_much.load(Ordering::SeqCst) {
            return Ok(Bytes::from(vec![b'a'; DELIVERY_ANSWER_BYTES_MAX + 1]));
        }
        if question.is_empty() {
            Err("nothing was asked".to_owned())
        } else {
            Ok(question.len().to_string().into())
        }
    }
}

/// A server whose connections are those of delivery processes.
struct Far {
    address: SocketAddr,
    lengths: Arc<Lengths>,
    calls: CallServer,
    task: JoinHandle<()>,
}

impl Far {
    async fn start(node: &Node) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("the listener is bound");
        let calls = CallServer::new(
            1,
            node.app.clone(),
            holders(node),
            Arc::new(Fixed::of(&[address])),
            Arc::new(TestFacts),
        );
        let (lengths, answers) = (Arc::new(Lengths::default()), calls.clone());
        let delivery = Arc::clone(&lengths);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (answers, delivery) =
                    (answers.clone(), Arc::clone(&delivery) as Arc<dyn AnswersDelivery>);
                tokio::spawn(async move { answers.serve_delivery(stream, delivery).await });
            }
        });
        Self { address, lengths, calls, task }
    }

    /// A delivery process that knows this server, and the task that keeps its map.
    async fn process(&self) -> (Proxy, JoinHandle<()>) {
        let proxy = Proxy::of_delivery(BTreeMap::from([(1, self.address.to_string())]), Arc::new(Plain));
        let (_, health) = Services::new().await;
        let follow = proxy.clone();
        let task = tokio::spawn(async move { follow.follow(health).await });
        until("it knows the cluster", async || ask(&proxy, 1).await.is_ok()).await;
        (proxy, task)
    }
}

impl Drop for Far {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Asks with this many bytes.
async fn ask(proxy: &Proxy, length: usize) -> Result<Bytes, String> {
    proxy.ask_about_delivery(Bucket::new(3), Bytes::from(vec![b'q'; length])).await
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_are_answered_within_their_limits() {
    let node = Node::start(None).await;
    let far = Far::start(&node).await;
    let (proxy, task) = far.process().await;
    let most = DELIVERY_QUESTION_BYTES_MAX;
    assert_eq!(ask(&proxy, most).await, Ok(most.to_string().into()));
    let asked = *far.lengths.asked.lock();
    let refused = ask(&proxy, most + 1).await.expect_err("too much is asked");
    assert!(refused.starts_with("server 1: "), "{refused}");
    assert_eq!(*far.lengths.asked.lock(), asked, "nobody has read it");
    let refused = ask(&proxy, 0).await.expect_err("nothing is asked");
    assert!(refused.contains("400 Bad Request: nothing was asked"), "{refused}");
    far.lengths.answers_too_much.store(true, Ordering::SeqCst);
    assert!(ask(&proxy, 1).await.is_err(), "the answer is too long");
    task.abort();
    node.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_process_passes_no_calls_on() {
    let node = Node::start(None).await;
    let secret = node.first_tenant("acme").await;
    let far = Far::start(&node).await;
    // A gateway with the certificate of a delivery process: it gets the map, and no answer to any call.
    let gateway = Gateway::start(&[far.address]).await;
    gateway.ready().await;
    let line = Line::connect(gateway.address).await;
    for protocol in Protocol::ALL {
        line.call(protocol, "GetTenant", &secret, b"").await.expect_err("no call is answered");
    }
    let page = Request::builder().uri(format!("http://{}/v1/mail", gateway.address));
    let page = line.exchange(page.body(Full::default()).expect("a request")).await;
    assert_eq!(page.status, 404);
    assert_eq!(*far.lengths.asked.lock(), 0);
    drop((line, gateway));
    node.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stops_waits_for_open_connections() {
    let node = Node::start(None).await;
    let far = Far::start(&node).await;
    far.calls.ended().await;
    let (proxy, task) = far.process().await;
    task.abort();
    let open = tokio::spawn({
        let calls = far.calls.clone();
        async move { calls.ended().await }
    });
    tokio::task::yield_now().await;
    assert!(!open.is_finished(), "a connection is open");
    assert!(ask(&proxy, 1).await.is_ok());
    far.calls.stop();
    open.await.expect("the connection has ended");
    node.end().await;
}
