//! Requests and answers.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::join_all;
use switchward_peer::limits::INBOUND_FACTOR;
use switchward_peer::{PeerError, PeerLimits, PeerOptions, Request, Traffic};
use switchward_testkit::until;
use tokio::runtime::Builder;

use crate::proxy::Proxy;
use crate::support::{
    Cluster, ECHO, HANG, HANG_THERE, LENGTH, LONG, PANIC, PANIC_THERE, REFUSE, Server, THREAD, request,
};

#[tokio::test(flavor = "multi_thread")]
async fn calls_go_both_ways_on_all_classes_of_traffic() {
    let [first, second] = Cluster::new(1).pair();
    for traffic in [Traffic::Control, Traffic::Bulk, Traffic::Commands] {
        for (server, to) in [(&first, 2), (&second, 1)] {
            let answer = server.peers.call(to, traffic, request(ECHO, b"hello"), LONG).await;
            assert_eq!(answer, Ok(Bytes::from_static(b"hello")));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_calls_at_once_get_their_own_answers() {
    let [first, _second] = Cluster::new(1).pair();
    for traffic in [Traffic::Control, Traffic::Commands] {
        let calls = (0..1_000_u64).map(|number| {
            let body = Bytes::copy_from_slice(&number.to_be_bytes());
            let request = Request { kind: ECHO, group: number, body: body.clone() };
            first.peers.call(2, traffic, request, LONG).map(move |answer| assert_eq!(answer, Ok(body)))
        });
        join_all(calls).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_of_the_largest_entry_arrives_whole() {
    let [first, _second] = Cluster::new(1).pair();
    let body: Bytes = (0..32 * 1024 * 1024_u32).map(|n| (n % 251) as u8).collect::<Vec<_>>().into();
    let request = Request { kind: ECHO, group: 1, body: body.clone() };
    assert!(first.peers.call(2, Traffic::Bulk, request, LONG).await == Ok(body));
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_on_bulk_do_not_delay_control() {
    let cluster = Cluster::new(1);
    let [mut options, mut other] = [cluster.options(1), cluster.options(2)];
    for options in [&mut options, &mut other] {
        options.limits.idle = LONG;
    }
    let [first, second] = [Server::start(options), Server::start(other)];
    let proxy = Proxy::start(second.address()).await;
    first.dial(2, proxy.address);
    first.connected(2).await;
    proxy.stop_at(1024 * 1024);
    let body = Bytes::from(vec![0; 16 * 1024 * 1024]);
    let mut bulk = Box::pin(first.peers.call(2, Traffic::Bulk, Request { kind: ECHO, group: 0, body }, LONG));
    for _ in 0..100 {
        assert!(bulk.as_mut().now_or_never().is_none(), "its connection carries no more than a part of it");
        assert_eq!(first.call(2, ECHO, b"quick").await, Ok(Bytes::from_static(b"quick")));
    }
    proxy.go_on();
    assert_eq!(bulk.await.map(|body| body.len()), Ok(16 * 1024 * 1024));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_can_refuse_and_may_panic() {
    let [first, second] = Cluster::new(1).pair();
    assert_eq!(first.call(2, REFUSE, b"").await, Err(PeerError::Refused("server 1 may not".into())));
    assert_eq!(first.call(2, PANIC, b"").await, Err(PeerError::Unknown("the handler panicked".into())));
    assert_eq!(first.call(2, ECHO, b"on").await, Ok(Bytes::from_static(b"on")));
    second.handler.running(0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_answers_on_the_runtime_that_it_wants_with_the_same_outcomes() {
    let own = Builder::new_multi_thread().worker_threads(1).thread_name("own").build().unwrap();
    let [first, second] = Cluster::new(1).pair();
    second.handler.own.set(own.handle().clone()).unwrap();
    assert_eq!(first.call(2, THREAD, b"").await, Ok(Bytes::from_static(b"own")));
    let panicked = first.call(2, PANIC_THERE, b"").await;
    assert_eq!(panicked, Err(PeerError::Unknown("the handler panicked".into())), "it may have acted");
    let call = Box::pin(first.call(2, HANG_THERE, b""));
    tokio::select! {
        _ = call => panic!("no call is answered"),
        () = second.handler.running(1) => {}
    }
    second.handler.running(0).await;
    assert_eq!(first.call(2, ECHO, b"on").await, Ok(Bytes::from_static(b"on")));
    own.shutdown_background();
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_are_given_up_do_not_count_although_their_runtime_is_late() {
    let late = Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let (free, busy) = std::sync::mpsc::channel::<()>();
    late.spawn(async move { busy.recv() });
    let cluster = Cluster::new(1);
    let limits = PeerLimits { control_requests: 1, ..PeerLimits::default() };
    let options = |server| PeerOptions { limits: limits.clone(), ..cluster.options(server) };
    let [first, second] = [1, 2].map(|server| Server::start(options(server)));
    second.handler.own.set(late.handle().clone()).unwrap();
    first.dial(2, second.address());
    first.connected(2).await;
    for _ in 0..3 * INBOUND_FACTOR {
        let deadline = Duration::from_millis(200);
        let ended = first.peers.call(2, Traffic::Control, request(HANG_THERE, b""), deadline).await;
        assert_eq!(ended, Err(PeerError::TimedOut), "its connection goes on");
    }
    assert_eq!(first.call(2, ECHO, b"on").await, Ok(Bytes::from_static(b"on")));
    drop(free);
    late.shutdown_background();
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_for_commands_run_on_a_runtime_of_their_own() {
    let own = Builder::new_multi_thread().worker_threads(1).thread_name("own").enable_all().build().unwrap();
    let cluster = Cluster::new(1);
    let options = |server| PeerOptions { commands: own.handle().clone(), ..cluster.options(server) };
    let [first, second] = [1, 2].map(|server| Server::start(options(server)));
    first.dial(2, second.address());
    first.connected(2).await;
    for (traffic, on_own) in [(Traffic::Control, false), (Traffic::Bulk, false), (Traffic::Commands, true)] {
        let thread = first.peers.call(2, traffic, request(THREAD, b""), LONG).await.unwrap();
        assert_eq!(thread == "own", on_own, "{traffic:?}");
    }
    own.shutdown_background();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_call_drops_the_handlers_future() {
    let [first, second] = Cluster::new(1).pair();
    let calls = Box::pin(join_all((0..3).map(|_| first.call(2, HANG, b""))));
    tokio::select! {
        _ = calls => panic!("no call is answered"),
        () = second.handler.running(3) => {}
    }
    second.handler.running(0).await;
    assert_eq!(first.call(2, ECHO, b"on").await, Ok(Bytes::from_static(b"on")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deadline_ends_the_call_and_the_handlers_future() {
    let [first, second] = Cluster::new(1).pair();
    first.connected(2).await;
    let deadline = Duration::from_millis(200);
    let ended = first.peers.call(2, Traffic::Control, request(HANG, b""), deadline).await;
    assert_eq!(ended, Err(PeerError::TimedOut));
    second.handler.running(0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_connection_ends_calls_and_the_handlers_futures() {
    let [first, second] = Cluster::new(1).pair();
    first.connected(2).await;
    let (peers, handler) = (first.peers.clone(), Arc::clone(&second.handler));
    let call = tokio::spawn(async move { peers.call(2, Traffic::Control, request(HANG, b""), LONG).await });
    handler.running(1).await;
    second.peers.close();
    assert!(matches!(call.await.unwrap(), Err(PeerError::Unknown(_))));
    handler.running(0).await;

    let [first, second] = Cluster::new(1).pair();
    first.connected(2).await;
    let peers = first.peers.clone();
    let call = tokio::spawn(async move { peers.call(2, Traffic::Control, request(HANG, b""), LONG).await });
    second.handler.running(1).await;
    first.peers.close();
    assert!(matches!(call.await.unwrap(), Err(PeerError::Unknown(_))));
    second.handler.running(0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_over_the_limit_is_not_sent_and_an_answer_over_it_is_lost() {
    let [first, second] = Cluster::new(1).pair();
    for (traffic, max) in [
        (Traffic::Control, 64 * 1024),
        (Traffic::Bulk, 40 * 1024 * 1024),
        (Traffic::Commands, 40 * 1024 * 1024),
    ] {
        let body = Bytes::from(vec![0; max + 1]);
        let request = Request { kind: ECHO, group: 0, body };
        let refused = first.peers.call(2, traffic, request, LONG).await.unwrap_err();
        assert!(matches!(&refused, PeerError::NotSent(why) if why.contains("at most")), "{refused}");
    }
    assert_eq!(second.handler.begun(), 0);
    let request = |group| Request { kind: LENGTH, group, body: Bytes::new() };
    let most = first.peers.call(2, Traffic::Control, request(64 * 1024), LONG).await;
    assert_eq!(most.map(|body| body.len()), Ok(64 * 1024));
    let lost = first.peers.call(2, Traffic::Control, request(64 * 1024 + 1), LONG).await.unwrap_err();
    assert!(matches!(&lost, PeerError::Unknown(why) if why.contains("the answer has 65537 bytes")), "{lost}");
}

#[tokio::test(flavor = "multi_thread")]
async fn beyond_the_limits_a_call_is_not_sent_and_fails_at_once() {
    let cluster = Cluster::new(1);
    let second = cluster.start(2);
    let limits = PeerLimits { control_requests: 2, queued_bytes: 10, ..PeerLimits::default() };
    let first = Server::start(PeerOptions { limits, ..cluster.options(1) });
    first.dial(2, second.address());
    first.connected(2).await;
    let mut calls: Vec<_> = (0..2).map(|_| Box::pin(first.call(2, HANG, b""))).collect();
    for call in &mut calls {
        assert!(call.as_mut().now_or_never().is_none());
    }
    let refused = first.call(2, ECHO, b"").now_or_never();
    assert_eq!(refused, Some(Err(PeerError::NotSent("2 requests are under way".into()))));
    drop(calls);
    until("the calls that were given up count no more", async || {
        first.call(2, ECHO, b"0123456789").await.is_ok()
    })
    .await;
    let mut call = Box::pin(first.call(2, HANG, b"0123456789"));
    assert!(call.as_mut().now_or_never().is_none());
    let refused = first.call(2, ECHO, b"0").now_or_never();
    assert_eq!(refused, Some(Err(PeerError::NotSent("requests with 10 bytes are under way".into()))));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_sent_is_certain() {
    let cluster = Cluster::new(1);
    let first = cluster.start(1);
    let refused = first.call(2, ECHO, b"").await;
    assert_eq!(refused, Err(PeerError::NotSent("server 2 has no address".into())));
    // A listener that accepts and never shakes hands.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    first.dial(2, silent.local_addr().unwrap());
    let refused = first.peers.call(2, Traffic::Control, request(ECHO, b""), Duration::from_millis(50)).await;
    assert!(matches!(&refused, Err(PeerError::NotSent(why)) if why.contains("deadline")), "{refused:?}");
    drop(silent);
    let refused = first.refused(2, "no connection").await;
    assert!(matches!(refused, PeerError::NotSent(_)), "{refused:?}");
}
