//! Connections that break, servers that restart, certificates that change.

use switchward_peer::{PeerError, PeerOptions, Request, Traffic};
use switchward_testkit::until;

use crate::proxy::Proxy;
use crate::support::{Cluster, HANG, LONG, Server, lines, logged, request, short};

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_on_which_nothing_comes_is_ended_and_made_again() {
    let cluster = Cluster::new(5);
    let [first, second] =
        [1, 2].map(|server| Server::start(PeerOptions { limits: short(), ..cluster.options(server) }));
    let proxy = Proxy::start(second.address()).await;
    first.dial(2, proxy.address);
    first.connected(2).await;
    let peers = first.peers.clone();
    let call = tokio::spawn(async move { peers.call(2, Traffic::Control, request(HANG, b""), LONG).await });
    second.handler.running(1).await;
    proxy.stop_at(0);
    let lost = call.await.unwrap();
    assert!(matches!(&lost, Err(PeerError::Unknown(why)) if why.contains("nothing came")), "{lost:?}");
    logged(&["the connection with server 2 ended (control)", "nothing came for 1000 ms"]).await;
    // The other side has found it too.
    second.handler.running(0).await;
    proxy.go_on();
    first.connected(2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_restarts_on_its_port_is_dialled_again() {
    let cluster = Cluster::new(5);
    let [first, second] = cluster.pair();
    first.connected(2).await;
    assert_eq!(first.handler.lost(), Vec::<u64>::new());
    let address = second.address();
    drop(second);
    until("the port is free", async || tokio::net::TcpListener::bind(address).await.is_ok()).await;
    first.refused(2, "no connection").await;
    assert_eq!(first.handler.lost(), [2], "once, although it is dialled for three kinds of traffic");
    let mut options = PeerOptions { listen: address, ..cluster.options(2) };
    options.hello.boot = 2;
    let second = Server::start(options);
    first.connected(2).await;
    assert_eq!(first.peers.contact(2).map(|contact| contact.hello.boot), Some(2));
    drop(second);
    until("it is lost again", async || first.handler.lost() == [2, 2]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_address_is_dialled_instead_of_the_old_one() {
    let cluster = Cluster::new(5);
    let [first, old, new] = [cluster.start(1), cluster.start(2), cluster.start(2)];
    first.dial(2, old.address());
    first.connected(2).await;
    first.dial(2, new.address());
    first.connected(2).await;
    assert!(new.handler.begun() > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn new_certificates_are_used_for_new_connections() {
    let (old, new) = (Cluster::new(5), Cluster::new(5));
    let start = |server| Server::start(PeerOptions { limits: short(), ..old.options(server) });
    let [first, second, third] = [start(1), start(2), start(3)];
    first.dial(2, second.address());
    first.connected(2).await;
    second.peers.set_tls(&new.pem(2, &[])).unwrap();
    // The open connection stays, and a new one is refused.
    first.connected(2).await;
    third.dial(2, second.address());
    third.refused(2, "is not signed by the cluster's authority").await;
    third.peers.set_tls(&new.pem(3, &[])).unwrap();
    third.connected(2).await;
    let wrong = third.peers.set_tls(&new.pem(4, &[])).unwrap_err().to_string();
    assert!(wrong.contains("does not contain the name server-3."), "{wrong}");
    third.peers.forget(2);
    third.dial(2, second.address());
    third.connected(2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_transport_fails_calls_and_streams() {
    let [first, second] = Cluster::new(5).pair();
    first.connected(2).await;
    first.peers.close();
    first.refused(2, "closed").await;
    let stream = first.peers.stream(2, Request { kind: 0, group: 0, body: Vec::new().into() }).await;
    assert!(stream.is_err());
    second.refused(1, "").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_not_there_yet_is_logged_once_and_without_a_warning() {
    let cluster = Cluster::new(0x51);
    let first = Server::start(PeerOptions { limits: short(), ..cluster.options(81) });
    // Nobody listens at this address, and nobody else gets it.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = socket.local_addr().unwrap();
    first.dial(82, address);
    for _ in 0..20 {
        first.refused(82, "no connection").await;
    }
    let about = format!("server 82 at {address}");
    logged(&[&about, "cannot be reached now"]).await;
    assert_eq!(lines(&[&about]).len(), 1, "of all connections, and of all attempts");
    assert_eq!(lines(&["WARN", &about]).len(), 0);
}
