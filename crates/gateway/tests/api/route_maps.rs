//! The map that servers show to the other processes of their cluster.

use http::Request;
use http_body_util::Full;
use std::sync::Arc;
use switchward_gateway::proxy::{Maps, RouteMap};

use crate::client::Line;
use crate::gateway_credentials::FakeHolders;
use crate::proxying::{Far, Fixed, Seen};

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
