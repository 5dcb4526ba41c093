//! Servers that were removed from the cluster: their certificates are still valid, and nobody listens to them.

use std::sync::atomic::Ordering;

use switchward_peer::{CallDialer, CallStream, PeerLimits, PeerName, PeerOptions};
use tokio::io::AsyncReadExt as _;

use crate::handshakes::gateway;
use crate::support::{Cluster, Server, logged};

/// The name of the gateway.
fn edge() -> PeerName {
    PeerName::gateway("edge").expect("a name")
}

/// A connection for calls to server 1.
async fn calls(cluster: &Cluster, own: PeerName, to: &Server) -> CallStream {
    let pem = match &own {
        PeerName::Server(number) => cluster.pem(*number, &[]),
        PeerName::Gateway(_) | PeerName::Delivery(_) => gateway(cluster),
    };
    let dialer = CallDialer::new(cluster.id, own, &pem).unwrap();
    dialer.dial(1, &to.address().to_string()).await.unwrap()
}

/// Waits until a connection ends, which brings no byte.
async fn ended(mut stream: CallStream) {
    assert!(!matches!(stream.read(&mut [0; 16]).await, Ok(1..)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_server_is_refused_for_good_and_its_connections_end() {
    let cluster = Cluster::new(0x51);
    let [first, second] = cluster.pair();
    first.connected(2).await;
    second.connected(1).await;
    first.peers.remove(2);
    first.refused(2, "has no address").await;
    second.refused(1, "server 2 was removed from the cluster").await;
    first.dial(2, second.address());
    first.refused(2, "has no address").await;
    assert!(first.peers.contact(2).is_none());
    let third = cluster.start(3);
    third.dial(1, first.address());
    third.connected(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_calls_of_a_removed_server_end_and_those_of_others_go_on() {
    let cluster = Cluster::new(0x52);
    let server = cluster.start(1);
    server.handler.takes_calls.store(true, Ordering::SeqCst);
    let of_server = calls(&cluster, PeerName::Server(2), &server).await;
    let of_gateway = calls(&cluster, edge(), &server).await;
    server.handler.serves_calls(2).await;
    server.peers.remove(2);
    ended(of_server).await;
    server.handler.serves_calls(1).await;
    ended(calls(&cluster, PeerName::Server(2), &server).await).await;
    logged(&["refused a connection from 127.0.0.1", "server 2 was removed from the cluster"]).await;
    server.handler.serves_calls(1).await;
    drop(of_gateway);
    server.handler.serves_calls(0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_name_has_a_part_of_the_connections_for_calls() {
    let cluster = Cluster::new(0x53);
    let limits = PeerLimits { call_connections_per_peer: 1, ..PeerLimits::default() };
    let server = Server::start(PeerOptions { limits, ..cluster.options(1) });
    server.handler.takes_calls.store(true, Ordering::SeqCst);
    let first = calls(&cluster, edge(), &server).await;
    server.handler.serves_calls(1).await;
    ended(calls(&cluster, edge(), &server).await).await;
    logged(&["refused a connection", "there are too many connections for calls of gateway edge"]).await;
    let other = calls(&cluster, PeerName::Server(2), &server).await;
    server.handler.serves_calls(2).await;
    drop((first, other));
    server.handler.serves_calls(0).await;
    let again = calls(&cluster, edge(), &server).await;
    server.handler.serves_calls(1).await;
    drop(again);
}
