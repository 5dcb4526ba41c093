//! Several ends of one bus, and what stands in the server.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::*;

/// What the server has under this name.
async fn length(server: &Server) -> usize {
    server.ask(&["XLEN", "switchward:http"]).await
}

async fn counted(server: &Server) -> Option<u64> {
    server.ask(&["GET", "{switchward:http}:bytes"]).await
}

#[tokio::test]
async fn what_is_acknowledged_leaves_nothing_behind() {
    let server = Server::start(&[]);
    let bus = open(&server, IDLE).await;
    for id in ["a", "b", "c"] {
        publish(&bus, id).await.unwrap();
    }
    assert_eq!((length(&server).await, counted(&server).await), (3, Some(12)));
    let got = take(&bus, "one", SOON).await.unwrap();
    bus.ack(Stream::Http, &receipts(&got[..1])).await.unwrap();
    bus.ack(Stream::Http, &receipts(&got[..1])).await.unwrap();
    assert_eq!(
        (length(&server).await, counted(&server).await),
        (2, Some(8)),
        "acknowledging twice has no effect"
    );
    bus.ack(Stream::Http, &receipts(&got)).await.unwrap();
    assert_eq!((length(&server).await, counted(&server).await), (0, None));
}

#[tokio::test]
async fn a_counter_that_is_wrong_is_right_again_when_the_stream_is_empty() {
    let server = Server::start(&[]);
    let settings = Settings { idle: IDLE, envelopes_max: 8, bytes_max: 6 };
    let bus = Redis::open(RedisConfig { settings, ..config(&server, IDLE) }).await.unwrap();
    for wrong in ["6", "-100", "nonsense"] {
        publish(&bus, "a").await.unwrap();
        let _: () = server.ask(&["SET", "{switchward:http}:bytes", wrong]).await;
        let got = take(&bus, "one", SOON).await.unwrap();
        bus.ack(Stream::Http, &receipts(&got)).await.unwrap();
        let _: () = server.ask(&["SET", "{switchward:http}:bytes", wrong]).await;
        publish(&bus, "b").await.unwrap();
        assert_eq!(counted(&server).await, Some(4));
        let full = publish(&bus, "c").await;
        assert!(matches!(full, Err(BusError::Full { .. })), "{full:?}");
        let got = take(&bus, "one", SOON).await.unwrap();
        bus.ack(Stream::Http, &receipts(&got)).await.unwrap();
    }
}

#[tokio::test]
async fn what_a_consumer_leaves_that_died_goes_to_another_end() {
    let server = Server::start(&[]);
    let (dies, lives) = (open(&server, IDLE).await, open(&server, IDLE).await);
    publish(&dies, "a").await.unwrap();
    assert_eq!(seen(&take(&dies, "dies", SOON).await.unwrap()), [("a", 1)]);
    drop(dies);
    let begun = Instant::now();
    assert_eq!(seen(&take(&lives, "lives", NONE).await.unwrap()), []);
    let got = take(&lives, "lives", SOON).await.unwrap();
    assert_eq!(seen(&got), [("a", 2)]);
    assert!(begun.elapsed() < SOON / 2, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_take_that_is_dropped_while_it_waits_loses_nothing() {
    let server = Server::start(&[]);
    let bus = Arc::new(open(&server, IDLE).await);
    let waiting = {
        let bus = Arc::clone(&bus);
        tokio::spawn(async move { take(&bus, "dropped", SOON).await })
    };
    // It waits once the server has a blocked client.
    eventually(async || {
        let clients: String = server.ask(&["INFO", "clients"]).await;
        clients.contains("blocked_clients:1").then_some(()).ok_or(clients)
    })
    .await;
    waiting.abort();
    publish(&bus, "a").await.unwrap();
    let got = take(&bus, "other", SOON).await.unwrap();
    assert_eq!(got[0].envelope.id, "a");
}

/// Many publish at one time, and three ends take at one time: each envelope goes to one of them, once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn consumers_that_race_share_what_there_is() {
    const ENVELOPES: usize = 600;
    let server = Server::start(&[]);
    let bus = Arc::new(open(&server, LONG).await);
    let mut takers = tokio::task::JoinSet::new();
    for name in ["one", "two", "three"] {
        let bus = open(&server, LONG).await;
        takers.spawn(async move {
            let mut ids = Vec::new();
            loop {
                let got = bus.take(Stream::Http, name, 7, SOON / 10).await.unwrap();
                if got.is_empty() && !ids.is_empty() {
                    return ids;
                }
                bus.ack(Stream::Http, &receipts(&got)).await.unwrap();
                ids.extend(got.into_iter().map(|it| (it.envelope.id, it.count)));
            }
        });
    }
    let mut publishers = tokio::task::JoinSet::new();
    for number in 0..ENVELOPES {
        let bus = Arc::clone(&bus);
        publishers.spawn(async move { publish(&bus, &number.to_string()).await });
    }
    assert!(publishers.join_all().await.iter().all(Result::is_ok));
    let mut times = BTreeMap::new();
    for (id, count) in takers.join_all().await.concat() {
        assert_eq!(count, 1, "{id}");
        *times.entry(id).or_insert(0) += 1;
    }
    assert_eq!((times.len(), times.values().max()), (ENVELOPES, Some(&1)));
    assert_eq!(length(&server).await, 0);
}

#[tokio::test]
async fn consumers_that_are_gone_and_hold_nothing_are_forgotten() {
    let server = Server::start(&[]);
    let config = RedisConfig { consumer_gone: IDLE / 4, ..config(&server, LONG) };
    let bus = Redis::open(config).await.unwrap();
    publish(&bus, "a").await.unwrap();
    assert_eq!(take(&bus, "holds", SOON).await.unwrap().len(), 1);
    publish(&bus, "b").await.unwrap();
    let done = take(&bus, "idle", SOON).await.unwrap();
    bus.ack(Stream::Http, &receipts(&done)).await.unwrap();
    let names = async || -> Vec<String> {
        let rows: Vec<BTreeMap<String, ::redis::Value>> =
            server.ask(&["XINFO", "CONSUMERS", "switchward:http", "consumers"]).await;
        let name = |row: &BTreeMap<String, ::redis::Value>| {
            ::redis::from_redis_value::<String>(row["name"].clone()).unwrap()
        };
        rows.iter().map(name).collect()
    };
    assert_eq!(names().await, ["holds", "idle"]);
    publish(&bus, "c").await.unwrap();
    eventually(async || {
        take(&bus, "lives", IDLE / 4).await.unwrap();
        let names = names().await;
        if names == ["holds", "lives"] { Ok(()) } else { Err(names) }
    })
    .await;
}

#[tokio::test]
async fn what_is_none_of_ours_is_dropped_and_holds_nobody_up() {
    let server = Server::start(&[]);
    let bus = open(&server, IDLE).await;
    let long = "x".repeat(crate::limits::BODY_BYTES_MAX + 1);
    for fields in [
        &["a", "b"][..],
        &["tenant", "1", "id", "i"],
        &["tenant", "-1", "id", "i", "body", "b"],
        &["tenant", "4294967296", "id", "i", "body", "b"],
        &["tenant", "1", "id", "", "body", "b"],
        &["tenant", "1", "id", "i", "body", &long],
        &["", "", "", ""],
    ] {
        let _: String = server.ask(&[&["XADD", "switchward:http", "*"][..], fields].concat()).await;
    }
    let _: String = ::redis::cmd("XADD")
        .arg("switchward:http")
        .arg(&["*", "tenant", "1", "body", "b", "id"])
        .arg(&[0xff_u8, 0xfe][..])
        .query_async(&mut bus.link.shared().await.unwrap().connection)
        .await
        .unwrap();
    let more = ["tenant", "7", "later", "versions", "id", "ours", "body", "b"];
    let _: String = server.ask(&[&["XADD", "switchward:http", "*"][..], &more].concat()).await;
    // One at a time, and at once.
    let got = bus.take(Stream::Http, "one", 1, NONE).await.unwrap();
    assert_eq!(seen(&got), [("ours", 1)]);
    assert_eq!(length(&server).await, 1);
    bus.ack(Stream::Http, &receipts(&got)).await.unwrap();
    assert_eq!(length(&server).await, 0);
}

#[tokio::test]
async fn garbage_that_comes_while_one_waits_ends_no_wait() {
    let server = Server::start(&[]);
    let bus = open(&server, IDLE).await;
    let garbage = async {
        for _ in 0..3 {
            let _: String = server.ask(&["XADD", "switchward:http", "*", "a", "b"]).await;
        }
        publish(&bus, "a").await
    };
    let (got, published) = tokio::join!(take(&bus, "one", SOON), garbage);
    published.unwrap();
    assert_eq!(seen(&got.unwrap()), [("a", 1)]);
}
