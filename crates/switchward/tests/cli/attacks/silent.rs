//! Silent connections: more than the server's limit, and callers are still answered.

use std::net::SocketAddr;
use std::time::Duration;
use switchward_gateway::limits::{CONNECTIONS_MAX, CONNECTIONS_OF_PEER_MAX};
use tokio::{
    io::AsyncReadExt as _,
    net::{TcpSocket, TcpStream},
    task::JoinSet,
};

use super::machine::open_files;
use crate::server::{ADMIN_KEY, Running, Site};
use crate::support::{Ended, program};

/// Files that a process opens beside its connections.
const OTHER_FILES: usize = 500;
/// Those that are being opened at one time.
const AT_ONCE: usize = 64;
/// Beyond the server's limits.
const MORE: usize = 100;
/// How long a caller waits, and how long a silent connection may stay open.
const ANSWER: &str = "10s";
const CLOSED: Duration = Duration::from_secs(90);

/// A connection from this address of the machine.
async fn silent(from: u8, to: SocketAddr) -> Option<TcpStream> {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind(SocketAddr::from(([127, 0, 0, from], 0))).expect("a free port");
    socket.connect(to).await.ok()
}

/// Opens this many from each of these addresses.
async fn flood(to: SocketAddr, addresses: std::ops::RangeInclusive<u8>, each: usize) -> Vec<TcpStream> {
    let (mut open, mut opening) = (Vec::new(), JoinSet::new());
    for from in addresses.flat_map(|from| std::iter::repeat_n(from, each)) {
        if opening.len() == AT_ONCE {
            open.extend(opening.join_next().await.and_then(Result::ok).flatten());
        }
        opening.spawn(silent(from, to));
    }
    while let Some(opened) = opening.join_next().await {
        open.extend(opened.ok().flatten());
    }
    open
}

/// Calls with a key over a connection of its own.
fn answered(address: &str) {
    let mut command = program();
    command.args(["list", "sessions", "--address", address, "--api-key", ADMIN_KEY, "--timeout", ANSWER]);
    Ended::of(&mut command).with_code(0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_say_nothing_keep_no_caller_out() {
    let files = open_files(20_000) - OTHER_FILES;
    let site = Site::new();
    let server = Running::of(&mut site.plain("127.0.0.1:0"));
    let to: SocketAddr =
        server.address.strip_prefix("http://").expect("plain HTTP").parse().expect("an address");
    // From the caller's own address, and from enough others that all connections are used.
    let addresses = CONNECTIONS_MAX / CONNECTIONS_OF_PEER_MAX + 1;
    let each = (CONNECTIONS_OF_PEER_MAX + MORE).min(files / addresses);
    let own = flood(to, 1..=1, each).await;
    answered(&server.address);
    let rest = flood(to, 2..=u8::try_from(addresses).expect("a few"), each).await;
    let count = own.len() + rest.len();
    assert!(count >= (each * addresses).min(CONNECTIONS_MAX), "{count} could be opened");
    for _ in 0..3 {
        answered(&server.address);
    }
    let mut waiting = JoinSet::new();
    for mut stream in own.into_iter().chain(rest) {
        waiting.spawn(async move { stream.read(&mut [0]).await.unwrap_or(0) });
    }
    let all = async {
        while let Some(read) = waiting.join_next().await {
            assert_eq!(read.expect("it ends"), 0, "nothing is said to it");
        }
    };
    tokio::time::timeout(CLOSED, all).await.expect("all are closed");
    answered(&server.address);
    let (log, code) = server.stop();
    assert_eq!(code, Some(0), "{log}");
}
