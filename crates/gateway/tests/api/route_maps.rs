//! The map that servers show to the other processes of their cluster.

use http::Request;
use http_body_util::Full;
use parking_lot::Mutex;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use switchward_gateway::proxy::{Maps, RouteMap};
use switchward_state::catalogue::{BucketMap, BucketRange, MapEpochs};

use crate::client::Line;
use crate::gateway_credentials::{FakeHolders, holders};
use crate::node::Node;
use crate::protocols::Protocol;
use crate::proxying::{Far, Fixed, Gateway, Seen, reason};

/// The map of the server at this address after a bucket has moved, which it has not by the map of [`Fixed`].
fn moved(address: SocketAddr, epoch: u64) -> Arc<RouteMap> {
    let map = Fixed::of(&[address]).map().expect("a map");
    let buckets = BucketMap::Ranges(vec![BucketRange { first: 0, group: 1 }]);
    Arc::new(RouteMap { epoch, buckets, ..(*map).clone() })
}

/// A map that changes. Counts what is refused because of it.
struct Changing {
    map: Mutex<Arc<RouteMap>>,
    refused: AtomicUsize,
}

/// The map as the test and the server have it.
struct Shared(Arc<Changing>);

#[tonic::async_trait]
impl Maps for Shared {
    fn map(&self) -> Option<Arc<RouteMap>> {
        Some(Arc::clone(&self.0.map.lock()))
    }

    fn outdated(&self) {}

    async fn agree(&self, theirs: MapEpochs) -> Result<(), u64> {
        let own = self.0.map.lock().epochs();
        if own.overlap(theirs) {
            return Ok(());
        }
        self.0.refused.fetch_add(1, Ordering::SeqCst);
        Err(own.newest)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_was_removed_shows_no_map() {
    let present = Far::start(Seen::default().port(), FakeHolders::accepting(), Fixed::alone).await;
    let removed = |address| -> Arc<dyn Maps> {
        let map = Fixed::of(&[address]).map().expect("a map");
        Arc::new(Fixed(Arc::new(RouteMap { removed: vec![1], ..(*map).clone() })))
    };
    let removed = Far::start(Seen::default().port(), FakeHolders::accepting(), removed).await;
    for (far, expected) in [(&present, 200), (&removed, 410)] {
        let asked = Request::builder().uri(format!("http://{}/-/route-map", far.address));
        let line = Line::connect(far.address).await;
        let answer = line.exchange(asked.body(Full::default()).expect("a request")).await;
        assert_eq!(answer.status, expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_was_routed_by_another_map_is_refused_before_it_begins() {
    let seen = Seen::default();
    let maps = |address| -> Arc<dyn Maps> { Arc::new(Fixed(moved(address, 5))) };
    let far = Far::start(seen.port(), FakeHolders::accepting(), maps).await;
    let line = Line::connect(far.address).await;
    for (path, since, newest, status, expected) in [
        ("/a/page", 5, 5, 200, None),
        ("/a/page", 4, 6, 200, None),
        ("/a/page", 1, 4, 503, Some("5")),
        ("/a/page", 6, 6, 503, Some("5")),
        ("/switchward.v1.SessionService/GetSession", 1, 4, 200, Some("5")),
    ] {
        let request = Request::builder()
            .method("POST")
            .uri(format!("http://{}{path}", far.address))
            .header("switchward-epoch", newest.to_string())
            .header("switchward-epoch-since", since.to_string());
        let answer = line.exchange(request.body(Full::default()).expect("a request")).await;
        let other = answer.headers.get("switchward-other-map").map(|value| value.to_str().expect("text"));
        assert_eq!((answer.status.as_u16(), other), (status, expected), "{path} {since}-{newest}");
        if path.starts_with("/switchward") {
            assert_eq!(answer.headers["grpc-status"], "14", "UNAVAILABLE");
        }
    }
    assert_eq!(seen.count(), 2, "the refused ones did not begin");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_with_an_older_map_gets_the_newer_one_and_routes_again() {
    let node = Node::start(None).await;
    let secret = node.first_tenant("acme").await;
    let mut changing = None;
    let far = Far::start(node.app.clone(), holders(&node), |address| -> Arc<dyn Maps> {
        let map = Fixed::of(&[address]).map().expect("a map");
        let shared = Arc::new(Changing { map: Mutex::new(map), refused: AtomicUsize::default() });
        changing = Some(Arc::clone(&shared));
        Arc::new(Shared(shared))
    })
    .await;
    let changing = changing.expect("the server has begun");
    let gateway = Gateway::start(&[far.address]).await;
    gateway.ready().await;
    let line = Line::connect(gateway.address).await;
    for epoch in [2, 4] {
        *changing.map.lock() = moved(far.address, epoch);
        let answered = line.call(Protocol::Grpc, "GetTenant", &secret, b"").await;
        answered.unwrap_or_else(|status| panic!("{}: {status:?}", reason(&status)));
    }
    // Unless the gateway has asked for the map between the change and the call.
    assert!(changing.refused.load(Ordering::SeqCst) <= 2, "each call is routed a second time at most");
    drop((line, gateway, far));
    node.end().await;
}
