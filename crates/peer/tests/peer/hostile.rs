//! Clients that do not keep to the protocol.

use switchward_peer::{PeerLimits, PeerOptions};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::raw::{self, Raw, Shows};
use crate::support::{Cluster, ECHO, HANG, Server, lines, logged, short};

/// A server, and a client that has greeted it as server 1.
async fn greeted(cluster: &Cluster, purpose: u8) -> (Server, Raw) {
    let server = cluster.start(2);
    let (own, to) = (cluster.hello(1), cluster.hello(2));
    let mut raw = Raw::connect(server.address(), &to, &cluster.pem(1, &[]), Shows::Certificate).await;
    raw.greet(&own, 2, purpose).await;
    (server, raw)
}

/// The server still serves.
async fn serves(cluster: &Cluster, server: &Server) {
    let other = cluster.start(3);
    other.dial(2, server.address());
    other.connected(2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_keeps_to_the_protocol_is_answered() {
    let cluster = Cluster::new(4);
    let (_server, mut raw) = greeted(&cluster, raw::CONTROL).await;
    raw.send(&raw::request(5, ECHO, b"body")).await;
    let answer = loop {
        match raw.next().await.unwrap() {
            (raw::PING, _) => {}
            other => break other,
        }
    };
    assert_eq!(answer, (raw::ANSWER, b"body".to_vec()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_without_a_certificate_is_refused() {
    let cluster = Cluster::new(4);
    let server = cluster.start(2);
    let mut raw =
        Raw::connect(server.address(), &cluster.hello(2), &cluster.pem(1, &[]), Shows::Nothing).await;
    raw.send(&raw::frame(raw::HELLO, 0, &[0; 16], &raw::greeting(&cluster.hello(1), 2, raw::CONTROL))).await;
    raw.closed().await;
    logged(&["refused a connection from 127.0.0.1", "the other side sent no certificate"]).await;
    serves(&cluster, &server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_says_to_be_another_one_is_refused() {
    let cluster = Cluster::new(4);
    let server = cluster.start(2);
    let pem = cluster.pem(1, &[]);
    let mut raw = Raw::connect(server.address(), &cluster.hello(2), &pem, Shows::Certificate).await;
    raw.send(&raw::frame(raw::HELLO, 0, &[0; 16], &raw::greeting(&cluster.hello(7), 2, raw::CONTROL))).await;
    let (op, why) = raw.next().await.unwrap();
    let why = String::from_utf8(why).unwrap();
    assert!(op == raw::REFUSE && why.contains("server 7 does not contain the name"), "{why}");
    raw.closed().await;
    logged(&["refused a connection from 127.0.0.1", &why]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn garbage_ends_a_connection_with_one_line() {
    let cluster = Cluster::new(4);
    let server = cluster.start(2);
    for garbage in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xff; 4096], &[0; 64]] {
        let mut tcp = TcpStream::connect(server.address()).await.unwrap();
        // The server may close it before everything is written.
        let _sent = tcp.write_all(garbage).await;
        let _sent = tcp.shutdown().await;
        let mut rest = Vec::new();
        let _closed = tcp.read_to_end(&mut rest).await;
    }
    logged(&["refused a connection from 127.0.0.1", "the TLS handshake failed"]).await;
    serves(&cluster, &server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_handshake_is_ended() {
    let cluster = Cluster::new(4);
    let limits = PeerLimits { handshakes: 2, ..short() };
    let server = Server::start(PeerOptions { limits, ..cluster.options(2) });
    let mut before_tls = TcpStream::connect(server.address()).await.unwrap();
    let pem = cluster.pem(1, &[]);
    let mut after_tls = Raw::connect(server.address(), &cluster.hello(2), &pem, Shows::Certificate).await;
    let mut rest = Vec::new();
    let _closed = before_tls.read_to_end(&mut rest).await;
    after_tls.closed().await;
    logged(&["refused a connection from 127.0.0.1", "the handshake took longer than 1000 ms"]).await;
    serves(&cluster, &server).await;
}

/// Opens three connections to a server with these limits, of which the third is refused with this text. The server serves others
/// afterwards.
async fn third_is_refused(limits: PeerLimits, why: &str) {
    let cluster = Cluster::new(4);
    let limits = PeerLimits { handshake: crate::support::LONG, ..limits };
    let server = Server::start(PeerOptions { limits, ..cluster.options(2) });
    let first = TcpStream::connect(server.address()).await.unwrap();
    let second = TcpStream::connect(server.address()).await.unwrap();
    let mut third = TcpStream::connect(server.address()).await.unwrap();
    let mut rest = Vec::new();
    let _closed = third.read_to_end(&mut rest).await;
    logged(&["refused a connection from 127.0.0.1", why]).await;
    drop((first, second));
    serves(&cluster, &server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn more_connections_than_the_limit_are_closed_at_once() {
    third_is_refused(PeerLimits { handshakes: 2, ..short() }, "there are too many connections").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_address_has_a_part_of_the_handshakes() {
    let limits = PeerLimits { handshakes_per_address: 2, ..short() };
    third_is_refused(limits, "too many connections from this address").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_frame_closes_the_connection_with_one_line() {
    let mut damaged = raw::request(1, ECHO, b"body");
    *damaged.last_mut().unwrap() ^= 1;
    let mut version = raw::request(1, ECHO, b"body");
    version[0] = 2;
    let mut flags = raw::request(1, ECHO, b"body");
    flags[3] = 1;
    let oversized = raw::request(1, ECHO, &[0; 64 * 1024 + 1]);
    let twice = [raw::request(1, HANG, b""), raw::request(1, HANG, b"")].concat();
    for (byte, sent, line) in [
        (0x41, damaged, "the checksum of a frame is wrong"),
        (0x42, version, "the first byte of a frame is 2"),
        (0x43, flags, "unknown flags 0x01"),
        (0x44, oversized, "a frame has 65537 bytes, and at most 65536 are allowed"),
        (0x45, raw::frame(99, 0, &[0; 16], b""), "the unknown type 99"),
        (0x46, raw::frame(raw::HELLO, 0, &[0; 16], b""), "a frame of the type Hello came"),
        (0x47, twice, "the request 1 came twice"),
    ] {
        let cluster = Cluster::new(byte);
        let (server, mut raw) = greeted(&cluster, raw::CONTROL).await;
        raw.send(&sent).await;
        raw.closed().await;
        logged(&["closed the connection with server 1 (control)", line]).await;
        assert_eq!(lines(&["closed the connection", line]).len(), 1, "{line}");
        server.handler.running(0).await;
        serves(&cluster, &server).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn more_requests_than_the_limit_close_the_connection() {
    let cluster = Cluster::new(4);
    let limits = PeerLimits { control_requests: 4, ..PeerLimits::default() };
    let server = Server::start(PeerOptions { limits, ..cluster.options(2) });
    let pem = cluster.pem(1, &[]);
    let mut raw = Raw::connect(server.address(), &cluster.hello(2), &pem, Shows::Certificate).await;
    raw.greet(&cluster.hello(1), 2, raw::CONTROL).await;
    for id in 0..8 {
        raw.send(&raw::request(id, HANG, b"")).await;
    }
    server.handler.running(8).await;
    raw.send(&raw::request(8, HANG, b"")).await;
    raw.closed().await;
    logged(&["closed the connection with server 1 (control)", "8 requests are under way"]).await;
    server.handler.running(0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_no_stream_is_closed() {
    let cluster = Cluster::new(4);
    let (server, mut raw) = greeted(&cluster, raw::STREAM).await;
    raw.send(&raw::frame(raw::PING, 0, &[0; 16], b"")).await;
    raw.closed().await;
    logged(&["closed the connection with server 1 (stream)", "a frame of the type Ping came"]).await;
    serves(&cluster, &server).await;
}
