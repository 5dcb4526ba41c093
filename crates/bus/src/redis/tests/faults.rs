//! Servers that die, forget, are slow, full, not theirs, or not there.
use switchward_testkit::free_port;

use super::*;
use crate::redis::OpenError;

/// A bus with a short response time, for servers that are stopped on purpose.
async fn impatient(server: &Server) -> Redis {
    Redis::open(RedisConfig { response: IDLE, ..config(server, IDLE) }).await.unwrap()
}

/// That a bus works: what is published is taken and acknowledged, by itself.
async fn works(bus: &Redis, id: &str) {
    eventually(async || publish(bus, id).await).await;
    let deadline = Instant::now() + SOON;
    loop {
        assert!(Instant::now() < deadline, "{id} is not delivered");
        let Ok(got) = take(bus, "works", SOON).await else { continue };
        eventually(async || bus.ack(Stream::Http, &receipts(&got)).await).await;
        if got.iter().any(|it| it.envelope.id == id) {
            return;
        }
    }
}

#[tokio::test]
async fn a_server_that_was_killed_and_keeps_nothing_goes_on_with_what_is_new() {
    let mut server = Server::start(&[]);
    let bus = open(&server, IDLE).await;
    publish(&bus, "lost").await.unwrap();
    let held = take(&bus, "one", SOON).await.unwrap();
    server.kill();
    unreachable(publish(&bus, "while it is down").await);
    let message = unreachable(publish(&bus, "again").await);
    assert!(message.contains("the connection was refused"), "{message}");
    unreachable(take(&bus, "one", SOON).await);
    unreachable(bus.ack(Stream::Http, &receipts(&held)).await);
    server.restart();
    works(&bus, "new").await;
    bus.ack(Stream::Http, &receipts(&held)).await.unwrap();
    bus.keep(Stream::Http, "one", &receipts(&held)).await.unwrap();
    bus.release(Stream::Http, "one", &receipts(&held)).await.unwrap();
    assert_eq!(seen(&take(&bus, "one", NONE).await.unwrap()), []);
}

#[tokio::test]
async fn a_server_that_was_killed_and_kept_everything_gives_it_again() {
    let mut server = Server::start(&["--appendonly", "yes", "--appendfsync", "always"]);
    let bus = open(&server, IDLE).await;
    publish(&bus, "taken").await.unwrap();
    publish(&bus, "done").await.unwrap();
    let held = take(&bus, "dies", SOON).await.unwrap();
    bus.ack(Stream::Http, &receipts(&held[1..])).await.unwrap();
    publish(&bus, "waits").await.unwrap();
    server.restart();
    let mut all = Vec::new();
    let deadline = Instant::now() + SOON;
    while all.len() < 2 {
        assert!(Instant::now() < deadline, "{all:?}");
        let Ok(got) = take(&bus, "lives", IDLE).await else { continue };
        bus.ack(Stream::Http, &receipts(&got)).await.unwrap();
        all.extend(got);
    }
    all.sort_by(|one, other| one.receipt.cmp(&other.receipt));
    assert_eq!(seen(&all), [("taken", 2), ("waits", 1)]);
}

#[tokio::test]
async fn a_flush_in_mid_work_loses_what_was_there_and_nothing_more() {
    let server = Server::start(&[]);
    let settings = Settings { idle: IDLE, envelopes_max: 4, bytes_max: 16, ..Settings::default() };
    let bus = Redis::open(RedisConfig { settings, ..config(&server, IDLE) }).await.unwrap();
    for id in ["a", "b", "c", "d"] {
        publish(&bus, id).await.unwrap();
    }
    let held = take(&bus, "one", SOON).await.unwrap();
    let _: () = server.ask(&["FLUSHALL"]).await;
    bus.keep(Stream::Http, "one", &receipts(&held)).await.unwrap();
    bus.release(Stream::Http, "one", &receipts(&held)).await.unwrap();
    // The capacity is the same as before.
    for id in ["e", "f", "g", "h"] {
        publish(&bus, id).await.unwrap();
    }
    let full = publish(&bus, "i").await;
    assert!(matches!(full, Err(BusError::Full { .. })), "{full:?}");
    bus.ack(Stream::Http, &receipts(&held)).await.unwrap();
    let got = take(&bus, "one", SOON).await.unwrap();
    assert_eq!(seen(&got), [("e", 1), ("f", 1), ("g", 1), ("h", 1)]);
}

#[tokio::test]
async fn a_flush_while_one_waits_ends_no_wait() {
    let server = Server::start(&[]);
    let bus = open(&server, LONG).await;
    let flushed = async {
        for _ in 0..3 {
            eventually(async || {
                let clients: String = server.ask(&["INFO", "clients"]).await;
                clients.contains("blocked_clients:1").then_some(()).ok_or(clients)
            })
            .await;
            let _: () = server.ask(&["FLUSHALL"]).await;
        }
        publish(&bus, "a").await
    };
    let (got, published) = tokio::join!(take(&bus, "one", SOON), flushed);
    published.unwrap();
    assert_eq!(seen(&got.unwrap()), [("a", 1)]);
}

#[tokio::test]
async fn a_group_that_was_taken_away_is_made_again_and_what_was_in_the_stream_comes() {
    let server = Server::start(&[]);
    let bus = open(&server, LONG).await;
    publish(&bus, "a").await.unwrap();
    publish(&bus, "b").await.unwrap();
    let held = bus.take(Stream::Http, "one", 1, SOON).await.unwrap();
    let _: u32 = server.ask(&["XGROUP", "DESTROY", "switchward:http", "consumers"]).await;
    bus.keep(Stream::Http, "one", &receipts(&held)).await.unwrap();
    assert_eq!(seen(&take(&bus, "two", SOON).await.unwrap()), [("a", 1), ("b", 1)]);
}

/// A group that is destroyed repeatedly does not cause a busy loop.
#[tokio::test]
async fn a_group_that_is_taken_away_again_and_again_keeps_nobody_busy() {
    let server = Server::start(&[]);
    let bus = open(&server, LONG).await;
    let begun = Instant::now();
    let taken_away = async {
        let mut times = 0;
        while begun.elapsed() < IDLE * 3 {
            times += server.ask::<u32>(&["XGROUP", "DESTROY", "switchward:http", "consumers"]).await;
        }
        publish(&bus, "a").await.unwrap();
        times
    };
    publish(&bus, "makes the stream").await.unwrap();
    let got = take(&bus, "first", SOON).await.unwrap();
    bus.ack(Stream::Http, &receipts(&got)).await.unwrap();
    let (got, times) = tokio::join!(take(&bus, "one", SOON), taken_away);
    assert_eq!(seen(&got.unwrap()), [("a", 1)]);
    let stats: String = server.ask(&["INFO", "commandstats"]).await;
    let scripts =
        stats.lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:calls=")?.split(',').next());
    let scripts: u128 = scripts.unwrap().parse().unwrap();
    // Those of this test itself are few.
    let most = begun.elapsed().as_millis() / u128::from(crate::limits::REGROUP_MS) + 12;
    assert!(times > 2 && scripts <= most, "{times} times taken away, {scripts} scripts, {most} at most");
}

#[tokio::test]
async fn a_server_that_stands_still_is_reported_and_waited_for() {
    let server = Server::start(&[]);
    let bus = impatient(&server).await;
    publish(&bus, "a").await.unwrap();
    server.signal("STOP");
    let begun = Instant::now();
    let message = unreachable(publish(&bus, "b").await);
    assert!(message.contains("does not answer in time"), "{message}");
    unreachable(take(&bus, "one", SOON).await);
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    server.signal("CONT");
    works(&bus, "c").await;
}

#[tokio::test]
async fn a_server_that_stops_while_one_waits_ends_the_wait() {
    let server = Server::start(&[]);
    let bus = impatient(&server).await;
    let stopped = async {
        eventually(async || {
            let clients: String = server.ask(&["INFO", "clients"]).await;
            clients.contains("blocked_clients:1").then_some(()).ok_or(clients)
        })
        .await;
        server.signal("STOP");
    };
    let (got, ()) = tokio::join!(take(&bus, "one", SOON * 2), stopped);
    let message = unreachable(got);
    assert!(message.contains("does not answer in time"), "{message}");
    server.signal("CONT");
    works(&bus, "a").await;
}

#[tokio::test]
async fn connections_that_are_cut_are_made_again() {
    let server = Server::start(&[]);
    let bus = open(&server, IDLE).await;
    // Twice: with a new connection, and with a spare one.
    for id in ["a", "b"] {
        let cut = async {
            eventually(async || {
                let clients: String = server.ask(&["INFO", "clients"]).await;
                clients.contains("blocked_clients:1").then_some(()).ok_or(clients)
            })
            .await;
            let _: u32 = server.ask(&["CLIENT", "KILL", "TYPE", "normal"]).await;
        };
        let (got, ()) = tokio::join!(take(&bus, "one", SOON), cut);
        unreachable(got);
        works(&bus, id).await;
    }
}

#[tokio::test]
async fn a_server_without_memory_takes_nothing_and_still_gives() {
    let server = Server::start(&[]);
    let bus = open(&server, IDLE).await;
    publish(&bus, "a").await.unwrap();
    publish(&bus, "b").await.unwrap();
    assert_eq!(seen(&bus.take(Stream::Http, "one", 1, SOON).await.unwrap()), [("a", 1)]);
    let _: () = server.ask(&["CONFIG", "SET", "maxmemory", "1"]).await;
    let message = unreachable(publish(&bus, "c").await);
    assert!(message.contains("OOM"), "{message}");
    let mut got = Vec::new();
    while got.len() < 2 {
        got.extend(take(&bus, "two", SOON).await.unwrap());
    }
    bus.keep(Stream::Http, "two", &receipts(&got)).await.unwrap();
    bus.ack(Stream::Http, &receipts(&got)).await.unwrap();
    assert_eq!(server.ask::<u32>(&["XLEN", "switchward:http"]).await, 0);
    let _: () = server.ask(&["CONFIG", "SET", "maxmemory", "0"]).await;
    works(&bus, "d").await;
}

#[tokio::test]
async fn a_server_that_becomes_a_replica_is_reported_until_it_is_none() {
    let (server, other) = (Server::start(&[]), Server::start(&[]));
    let bus = open(&server, IDLE).await;
    let port = other.port().to_string();
    let _: () = server.ask(&["REPLICAOF", "127.0.0.1", &port]).await;
    for _ in 0..2 {
        let message = unreachable(publish(&bus, "a").await);
        assert!(message.contains("READONLY"), "{message}");
        let message = unreachable(take(&bus, "one", SOON).await);
        assert!(message.contains("READONLY"), "{message}");
    }
    let _: () = server.ask(&["REPLICAOF", "NO", "ONE"]).await;
    works(&bus, "b").await;
}

#[tokio::test]
async fn a_wrong_password_is_refused_when_it_is_opened() {
    let server = Server::start(&["--requirepass", "hunter2"]);
    for password in [None, Some("hunter3")] {
        let password = password.map(str::to_owned);
        let error = Redis::open(RedisConfig { password, ..config(&server, IDLE) }).await.err().unwrap();
        assert!(matches!(error, OpenError::Password { .. }), "{error:?}");
        let message = error.to_string();
        assert!(message.contains("password") && !message.contains("hunter"), "{message}");
    }
    let password = Some("hunter2".to_owned());
    let bus = Redis::open(RedisConfig { password, ..config(&server, IDLE) }).await.unwrap();
    works(&bus, "a").await;
}

#[tokio::test]
async fn a_password_that_changes_is_reported() {
    let server = Server::start(&[]);
    let bus = open(&server, IDLE).await;
    works(&bus, "a").await;
    let client = ::redis::Client::open(server.url()).unwrap();
    let mut admin = client.get_multiplexed_async_connection().await.unwrap();
    let _: () =
        ::redis::cmd("CONFIG").arg(&["SET", "requirepass", "other"]).query_async(&mut admin).await.unwrap();
    let kill = ["KILL", "TYPE", "normal", "SKIPME", "yes"];
    let _: u32 = ::redis::cmd("CLIENT").arg(&kill).query_async(&mut admin).await.unwrap();
    let deadline = Instant::now() + SOON;
    loop {
        let message = unreachable(publish(&bus, "b").await);
        if message.contains("requires a password") {
            break;
        }
        assert!(Instant::now() < deadline, "{message}");
    }
    let _: () =
        ::redis::cmd("CONFIG").arg(&["SET", "requirepass", ""]).query_async(&mut admin).await.unwrap();
    works(&bus, "c").await;
}

#[tokio::test]
async fn a_server_that_is_not_there_yet_is_found_when_it_is() {
    let mut server = Server::absent();
    let bus = open(&server, IDLE).await;
    let message = unreachable(publish(&bus, "a").await);
    assert!(message.contains("the connection was refused"), "{message}");
    unreachable(take(&bus, "one", SOON).await);
    server.restart();
    works(&bus, "b").await;
}

#[tokio::test]
async fn scripts_that_a_server_forgets_are_given_to_it_again() {
    let server = Server::start(&[]);
    let bus = open(&server, IDLE).await;
    for id in ["a", "b"] {
        works(&bus, id).await;
        let _: () = server.ask(&["SCRIPT", "FLUSH"]).await;
    }
}

#[tokio::test]
async fn a_name_that_something_else_has_is_reported() {
    let server = Server::start(&[]);
    let bus = open(&server, IDLE).await;
    let _: () = server.ask(&["SET", "switchward:http", "mine"]).await;
    for message in [unreachable(publish(&bus, "a").await), unreachable(take(&bus, "one", SOON).await)] {
        assert!(message.contains("WRONGTYPE"), "{message}");
    }
    let _: u32 = server.ask(&["DEL", "switchward:http"]).await;
    works(&bus, "b").await;
}

#[tokio::test]
async fn a_certificate_that_is_not_trusted_lets_nothing_through() {
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(at("tls.crt"), made.cert.pem()).unwrap();
    std::fs::write(at("tls.key"), made.signing_key.serialize_pem()).unwrap();
    let port = free_port().to_string();
    let (crt, key) = (at("tls.crt"), at("tls.key"));
    let _server = Server::start(&[
        "--tls-port",
        &port,
        "--tls-cert-file",
        &crt,
        "--tls-key-file",
        &key,
        "--tls-auth-clients",
        "no",
    ]);
    let bus = Redis::open(RedisConfig::new(format!("rediss://127.0.0.1:{port}"))).await.unwrap();
    let message = unreachable(publish(&bus, "a").await);
    assert!(message.contains("the connection failed"), "{message}");
}
