//! Streams.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use switchward_peer::limits::STREAM_PIECE_BYTES_MAX;
use switchward_peer::{PeerError, PeerOptions, PeerStream};
use switchward_testkit::{PATIENCE, until};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::timeout;

use crate::proxy::Proxy;
use crate::support::{Alive, Cluster, Server, logged, request, short};

const PIECE: usize = 1024 * 1024;
const PIECES: usize = 64;

/// Waits for an outcome, at most [`PATIENCE`].
async fn in_time<T>(outcome: impl Future<Output = T>) -> T {
    timeout(PATIENCE, outcome).await.expect("it comes in time")
}

/// Receives a stream to its end, and answers with the number of bytes.
async fn count(stream: PeerStream) -> Result<(), PeerError> {
    let mut total = 0_u64;
    while let Some(piece) = stream.recv().await? {
        total += piece.len() as u64;
    }
    stream.send(Bytes::copy_from_slice(&total.to_be_bytes())).await?;
    stream.finish().await
}

/// A server, and another one that counts the bytes of streams.
fn pair(cluster: &Cluster) -> [Server; 2] {
    let pair = cluster.pair();
    pair[1].handler.serve_streams(|_, stream| async move { count(stream).await.unwrap_or(()) });
    pair
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_of_64_mib_waits_for_its_receiver() {
    let [first, second] = Cluster::new(6).pair();
    let (pieces, gate) = (Arc::new(AtomicUsize::new(0)), Arc::new(Semaphore::new(0)));
    let opened = Arc::clone(&gate);
    second.handler.serve_streams(move |request, stream| {
        let opened = Arc::clone(&opened);
        async move {
            assert_eq!((request.kind, &request.body[..]), (9, &b"snapshot"[..]));
            let _permit = opened.acquire().await.unwrap();
            count(stream).await.unwrap();
        }
    });
    let stream = first.peers.stream(2, request(9, b"snapshot")).await.unwrap();
    let sent = Arc::clone(&pieces);
    let sender = tokio::spawn(async move {
        for _ in 0..PIECES {
            stream.send(Bytes::from(vec![5; PIECE])).await.unwrap();
            sent.fetch_add(1, Ordering::SeqCst);
        }
        stream.finish().await.unwrap();
        let total = stream.recv().await.unwrap().unwrap();
        assert_eq!(stream.recv().await, Ok(None));
        total
    });
    // Other calls go on while the stream is full; the sender has stopped when it makes no progress during many of them.
    let (mut before, mut same) = (0, 0);
    in_time(async {
        while same < 200 {
            first.connected(2).await;
            let now = pieces.load(Ordering::SeqCst);
            same = if now == before && now > 0 { same + 1 } else { 0 };
            before = now;
        }
    })
    .await;
    assert!(before < PIECES, "the receiver takes nothing, and {before} pieces were sent");
    gate.add_permits(1);
    assert_eq!(
        in_time(sender).await.unwrap(),
        Bytes::copy_from_slice(&((PIECES * PIECE) as u64).to_be_bytes())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_dropped_after_its_end_arrives_whole() {
    let [first, second] = Cluster::new(6).pair();
    let (done, mut result) = mpsc::channel(1);
    second.handler.serve_streams(move |_, stream| {
        let done = done.clone();
        async move {
            let mut total = 0;
            while let Ok(Some(piece)) = stream.recv().await {
                total += piece.len();
            }
            done.send((total, stream.recv().await)).await.unwrap();
        }
    });
    let stream = first.peers.stream(2, request(0, b"")).await.unwrap();
    for _ in 0..8 {
        stream.send(Bytes::from(vec![5; PIECE])).await.unwrap();
    }
    stream.finish().await.unwrap();
    assert!(matches!(stream.send(Bytes::new()).await, Err(PeerError::NotSent(_))));
    assert!(matches!(stream.finish().await, Err(PeerError::NotSent(_))));
    drop(stream);
    assert_eq!(in_time(result.recv()).await, Some((8 * PIECE, Ok(None))));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_dropped_before_its_end_is_an_error() {
    let [first, second] = Cluster::new(6).pair();
    let (done, mut result) = mpsc::channel(1);
    second.handler.serve_streams(move |_, stream| {
        let done = done.clone();
        async move {
            let last = loop {
                match stream.recv().await {
                    Ok(Some(_)) => {}
                    last => break last,
                }
            };
            done.send(last).await.unwrap();
        }
    });
    let stream = first.peers.stream(2, request(0, b"")).await.unwrap();
    stream.send(Bytes::from_static(b"some")).await.unwrap();
    drop(stream);
    assert!(matches!(in_time(result.recv()).await, Some(Err(PeerError::Unknown(_)))));
    // And on the other side, if the handler does not finish it.
    second.handler.serve_streams(|_, _stream| async {});
    let stream = first.peers.stream(2, request(0, b"")).await.unwrap();
    assert!(matches!(in_time(stream.recv()).await, Err(PeerError::Unknown(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_piece_has_a_largest_size() {
    let cluster = Cluster::new(6);
    let [first, _second] = pair(&cluster);
    let stream = first.peers.stream(2, request(0, b"")).await.unwrap();
    let refused = stream.send(Bytes::from(vec![0; STREAM_PIECE_BYTES_MAX + 1])).await;
    assert!(matches!(refused, Err(PeerError::NotSent(_))));
    stream.send(Bytes::from(vec![0; STREAM_PIECE_BYTES_MAX])).await.unwrap();
    stream.finish().await.unwrap();
    let total = in_time(stream.recv()).await.unwrap().unwrap();
    assert_eq!(total, Bytes::copy_from_slice(&(STREAM_PIECE_BYTES_MAX as u64).to_be_bytes()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_nobody_uses_stays_open_and_ends_with_its_connection() {
    let cluster = Cluster::new(6);
    let [first, second] =
        [1, 2].map(|server| Server::start(PeerOptions { limits: short(), ..cluster.options(server) }));
    let proxy = Proxy::start(second.address()).await;
    first.dial(2, proxy.address);
    let (done, mut result) = mpsc::channel(1);
    second.handler.serve_streams(move |_, stream| {
        let done = done.clone();
        async move { done.send(stream.recv().await).await.unwrap() }
    });
    let stream = first.peers.stream(2, request(0, b"")).await.unwrap();
    let begun = tokio::time::Instant::now();
    until("more time passes than a connection may be idle", async || begun.elapsed() > 2 * short().idle)
        .await;
    assert!(result.try_recv().is_err());
    proxy.stop_at(0);
    assert!(matches!(in_time(result.recv()).await, Some(Err(PeerError::Unknown(_)))));
    assert!(matches!(in_time(stream.recv()).await, Err(PeerError::Unknown(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_server_has_a_maximum_of_streams() {
    let cluster = Cluster::new(6);
    let first = cluster.start(1);
    let mut options = cluster.options(2);
    options.limits.streams_per_peer = 2;
    let second = Server::start(options);
    let alive = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&alive);
    second.handler.serve_streams(move |_, stream| {
        let alive = Alive::new(&counted);
        async move {
            let _end = stream.recv().await;
            drop(alive);
        }
    });
    first.dial(2, second.address());
    let open = async || first.peers.stream(2, request(0, b"")).await.unwrap();
    let streams = [open().await, open().await];
    until("both are served", async || alive.load(Ordering::SeqCst) == 2).await;
    let refused = first.peers.stream(2, request(0, b"")).await.err();
    let text = "server 1 has 2 streams open";
    assert!(matches!(&refused, Some(PeerError::Refused(why)) if why.contains(text)), "{refused:?}");
    logged(&["refused a connection from 127.0.0.1", text]).await;
    drop(streams);
    until("both have ended", async || alive.load(Ordering::SeqCst) == 0).await;
    until("another one is accepted", async || first.peers.stream(2, request(0, b"")).await.is_ok()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_the_transport_drops_the_handlers_of_streams() {
    let [first, second] = Cluster::new(6).pair();
    let (sender, dropped) = oneshot::channel::<()>();
    let (alive, counted) = (Arc::new(AtomicUsize::new(0)), std::sync::Mutex::new(Some(sender)));
    let served = Arc::clone(&alive);
    second.handler.serve_streams(move |_, stream| {
        let held = (counted.lock().unwrap().take(), Alive::new(&served), stream);
        async move {
            let _held = held;
            std::future::pending::<()>().await;
        }
    });
    let stream = first.peers.stream(2, request(0, b"")).await.unwrap();
    until("it is served", async || alive.load(Ordering::SeqCst) == 1).await;
    second.peers.close();
    assert!(in_time(dropped).await.is_err());
    assert!(in_time(stream.recv()).await.is_err());
}
