//! Who is refused, and that both servers say why.

use std::sync::atomic::Ordering;

use switchward_peer::{CallDialer, PeerError, PeerName, PeerOptions, TlsPem, server_name};
use tokio::io::AsyncReadExt as _;

use crate::support::{Cluster, Server, lines, logged, short, year};

/// Starts server 1 and server 2 with these options, lets 1 dial 2 under this number, and expects that the dialling server
/// fails with this text and that both log it.
async fn refused(options: [PeerOptions; 2], dialled: u64, text: &str) {
    let [first, second] = options.map(|options| Server::start(PeerOptions { limits: short(), ..options }));
    expect_refused(&first, &second, dialled, [text, text]).await;
}

/// As [`refused`], with what the dialling server and the dialled one log.
async fn expect_refused(first: &Server, second: &Server, dialled: u64, texts: [&str; 2]) {
    first.dial(dialled, second.address());
    let error = first.refused(dialled, texts[0]).await;
    assert!(matches!(error, PeerError::Refused(_)), "{error:?}");
    let address = second.address().to_string();
    logged(&[&format!("failed to connect to server {dialled} at {address}"), texts[0]]).await;
    logged(&["refused a connection from 127.0.0.1", texts[1]]).await;
    assert_eq!([first.handler.begun(), second.handler.begun()], [0, 0], "no request is answered");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_cluster_is_refused() {
    let (one, other) = (Cluster::new(0x31), Cluster::new(0x32));
    let mut second = one.options(2);
    second.hello.cluster = other.id;
    second.tls = one.pem(2, &[server_name(&other.id, 2)]);
    refused([one.options(1), second], 2, "belongs to the cluster 3").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_number_than_the_dialled_one_is_refused() {
    let cluster = Cluster::new(3);
    let mut second = cluster.options(2);
    second.tls = cluster.pem(2, &[server_name(&cluster.id, 3)]);
    refused([cluster.options(1), second], 3, "server 3 was dialled, and server 2 answered").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_without_the_dialled_name_is_refused() {
    let cluster = Cluster::new(3);
    let [first, second] = [cluster.start(1), cluster.start(2)];
    let name =
        format!("the certificate of server 3 does not contain the name {}", server_name(&cluster.id, 3));
    let alert = "the other side refused this server's certificate";
    expect_refused(&first, &second, 3, [&name, alert]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_its_own_name_does_not_start() {
    let cluster = Cluster::new(3);
    let options = PeerOptions { tls: cluster.pem(2, &[]), ..cluster.options(1) };
    let handler = cluster.start(9).handler;
    let error = switchward_peer::Peers::start(options, handler).err().unwrap().to_string();
    assert!(error.contains("does not contain the name server-1."), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_authority_is_refused_by_both() {
    let (cluster, foreign) = (Cluster::new(3), Cluster::new(3));
    let [first, second] = [cluster.start(1), foreign.start(2)];
    let unsigned = "the certificate of server 2 is not signed by the cluster's authority";
    expect_refused(&first, &second, 2, [unsigned, "the other side refused this server's certificate"]).await;
    // The dialling server trusts both authorities, and the dialled one only its own.
    let mut third = PeerOptions { limits: short(), ..cluster.options(3) };
    third.tls.ca.extend_from_slice(foreign.authority.cert_pem().as_bytes());
    let third = Server::start(third);
    let unsigned = "the certificate of the other side is not signed by the cluster's authority";
    expect_refused(&third, &second, 2, ["server 2 refused this server's certificate", unsigned]).await;
}

/// The cluster was restored from a backup: the servers of the old one have an authority and an id of their own.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_of_the_cluster_before_a_restore_is_refused_in_one_clear_line() {
    let (old, new) = (Cluster::new(0x51), Cluster::new(0x52));
    let [first, second] = [old.start(1), new.start(2)];
    let ids = |one: &str, other: &str| {
        let (one, other) = (one.repeat(16), other.repeat(16));
        format!("its certificate is of the cluster {one}, and this server belongs to {other}")
    };
    let said = format!("server 2 belongs to another cluster: {}", ids("52", "51"));
    let dials = format!(
        "the other side belongs to another cluster: it dials a server of that one, and this server belongs to {}",
        "52".repeat(16)
    );
    expect_refused(&first, &second, 2, [&said, &dials]).await;
    // With its old certificate it cannot say that it belongs to the new cluster.
    let claims = PeerOptions { hello: new.hello(3), ..old.options(3) };
    let error = switchward_peer::Peers::start(claims, old.start(9).handler).err().unwrap().to_string();
    assert!(error.contains(&server_name(&new.id, 3)), "{error}");
}

/// An authority that signs for both clusters makes no difference.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_of_another_cluster_with_the_same_authority_is_refused() {
    let mut cluster = Cluster::new(0x54);
    let second = cluster.start(2);
    cluster.id = [0x53; 16];
    let first = cluster.start(1);
    let [said, dials] = ["server 2 belongs to another cluster", "the other side belongs to another cluster"];
    expect_refused(&first, &second, 2, [said, dials]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_major_version_is_refused_and_a_minor_one_is_not() {
    let cluster = Cluster::new(3);
    let mut second = cluster.options(2);
    second.hello.protocol += 0x0100;
    refused([cluster.options(1), second], 2, "speaks version").await;
    let (first, mut third) = (cluster.start(1), cluster.options(3));
    third.hello.protocol += 1;
    let third = Server::start(third);
    first.dial(3, third.address());
    first.connected(3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_own_number_is_refused() {
    let cluster = Cluster::new(3);
    let mut second = cluster.options(1);
    second.tls = cluster.pem(1, &[server_name(&cluster.id, 2)]);
    refused([cluster.options(1), second], 2, "both servers have the number 1").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn other_keys_are_refused_until_they_are_the_same() {
    let cluster = Cluster::new(3);
    let [first, second] =
        [1, 2].map(|server| Server::start(PeerOptions { limits: short(), ..cluster.options(server) }));
    first.peers.set_keys([1; 32]);
    let text = "the key rings of server 2 and server 1 have different keys";
    expect_refused(&first, &second, 2, [text, text]).await;
    second.peers.set_keys([1; 32]);
    first.connected(2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_handler_can_refuse_on_either_side() {
    let cluster = Cluster::new(3);
    let start = |server| Server::start(PeerOptions { limits: short(), ..cluster.options(server) });
    let [first, second] = [start(1), start(2)];
    second.handler.boot_min.store(2, Ordering::SeqCst);
    let text = "server 1 has the boot counter 1";
    expect_refused(&first, &second, 2, [text, text]).await;
    second.handler.boot_min.store(0, Ordering::SeqCst);
    first.connected(2).await;
    let [third, fourth] = [start(3), start(4)];
    third.handler.boot_min.store(2, Ordering::SeqCst);
    let text = "server 4 has the boot counter 1";
    expect_refused(&third, &fourth, 4, [text, text]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lasting_refusal_is_logged_once_on_each_side() {
    let cluster = Cluster::new(0x3a);
    let start = |server| Server::start(PeerOptions { limits: short(), ..cluster.options(server) });
    let [first, second] = [start(71), start(72)];
    second.handler.boot_min.store(2, Ordering::SeqCst);
    let text = "server 71 has the boot counter 1";
    expect_refused(&first, &second, 72, [text, text]).await;
    for _ in 0..20 {
        first.refused(72, text).await;
    }
    for line in ["failed to connect", "refused a connection"] {
        assert_eq!(lines(&[line, text]).len(), 1, "{line}");
    }
}

/// The certificate of a gateway of this cluster.
pub(crate) fn gateway(cluster: &Cluster) -> TlsPem {
    let name = PeerName::gateway("edge").expect("a name");
    let issued = cluster.authority.issue(&cluster.id, &name, &[], year()).unwrap();
    TlsPem {
        ca: cluster.authority.cert_pem().into(),
        cert: issued.cert_pem.into(),
        key: issued.key_pem.into(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_certificate_of_a_gateway_is_not_that_of_a_server() {
    let cluster = Cluster::new(0x41);
    let options = PeerOptions { tls: gateway(&cluster), ..cluster.options(2) };
    let handler = cluster.start(9).handler;
    let error = switchward_peer::Peers::start(options, handler).err().unwrap().to_string();
    assert!(error.contains("does not contain the name server-2."), "{error}");
    // And the other way round.
    let own = PeerName::gateway("edge").expect("a name");
    assert!(CallDialer::new(cluster.id, own.clone(), &cluster.pem(2, &[])).is_err());
    let two = cluster.pem(2, &[own.dns(&cluster.id)]);
    let error = CallDialer::new(cluster.id, own, &two).err().unwrap().to_string();
    assert!(error.contains("names several"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_are_refused_unless_the_handler_admits_their_sender() {
    let cluster = Cluster::new(0x42);
    let server = cluster.start(1);
    let own = PeerName::gateway("edge").expect("a name");
    let dialer = CallDialer::new(cluster.id, own.clone(), &gateway(&cluster)).unwrap();
    let mut stream = dialer.dial(1, &server.address().to_string()).await.unwrap();
    // The connection ends without a byte.
    assert!(!matches!(stream.read(&mut [0; 16]).await, Ok(1..)));
    logged(&["refused a connection from 127.0.0.1", "gateway edge may not pass on calls"]).await;
    let refused = dialer.dial(2, &server.address().to_string()).await.err().unwrap();
    assert!(matches!(refused, PeerError::Refused(_)), "{refused:?}");
    let other = Cluster::new(0x43);
    let foreign = CallDialer::new(other.id, own, &gateway(&other)).unwrap();
    assert!(foreign.dial(1, &server.address().to_string()).await.is_err());
    assert_eq!(server.handler.begun(), 0, "no request is answered");
}
