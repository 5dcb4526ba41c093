//! What servers know of each other.

use std::sync::Arc;

use switchward_peer::PeerOptions;
use switchward_testkit::until;

use crate::support::{Cluster, Server, logged, short};

#[tokio::test(flavor = "multi_thread")]
async fn pings_show_that_a_server_is_alive_and_how_far_its_clock_is_off() {
    let cluster = Cluster::new(2);
    let fast = PeerOptions { clock: Arc::new(|| 1_005_000), limits: short(), ..cluster.options(2) };
    let second = Server::start(fast);
    let first = Server::start(PeerOptions { limits: short(), ..cluster.options(1) });
    assert!(first.peers.contact(2).is_none());
    first.dial(2, second.address());
    for (server, other, expected) in [(&first, 2, 5_000), (&second, 1, -5_000)] {
        until("the clocks are compared", async || {
            let offset = server.peers.contact(other).and_then(|contact| contact.clock_offset_ms);
            offset.is_some_and(|offset| (offset - expected).abs() < 1_000)
        })
        .await;
        let contact = server.peers.contact(other).unwrap();
        assert_eq!((contact.hello.server, contact.hello.highest_level, contact.hello.boot), (other, 3, 1));
        assert_eq!(contact.hello.boot_id, [4; 16]);
        until("it is seen again", async || server.peers.contact(other).unwrap().seen > contact.seen).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forgotten_server_is_not_dialled_and_can_come_back() {
    let [first, second] = Cluster::new(2).pair();
    first.connected(2).await;
    second.connected(1).await;
    first.peers.forget(2);
    first.refused(2, "has no address").await;
    // It is still dialled by the other one.
    second.connected(1).await;
    first.dial(2, second.address());
    first.connected(2).await;
    assert_eq!(first.peers.contact(2).map(|contact| contact.hello.server), Some(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_does_not_dial_itself() {
    let first = Cluster::new(2).start(1);
    first.dial(1, first.address());
    logged(&["server 1", "is not dialled"]).await;
    first.refused(1, "has no address").await;
}
