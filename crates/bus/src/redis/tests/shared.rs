//! Several ends of one bus, and what stands in the server.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::*;

/// What the server has under this name.
async fn length(server: &Server) -> usize {
    server.ask(&["XLEN", "switchward:http"]).await
}

async fn ids_taken(server: &Server) -> usize {
    server.ask(&["HLEN", "{switchward:http}:ids"]).await
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
    assert_eq!(ids_taken(&server).await, 3);
    let got = take(&bus, "one", SOON).await.unwrap();
    bus.ack(Stream::Http, &receipts(&got[..1])).await.unwrap();
    bus.ack(Stream::Http, &receipts(&got[..1])).await.unwrap();
    assert_eq!(
        (length(&server).await, counted(&server).await),
        (2, Some(8)),
        "acknowledging twice has no effect"
    );
    assert_eq!(ids_taken(&server).await, 2);
    bus.ack(Stream::Http, &receipts(&got)).await.unwrap();
    assert_eq!((length(&server).await, counted(&server).await), (0, None));
    let keys: Vec<String> = server.ask(&["KEYS", "*:ids"]).await;
    assert_eq!(keys, Vec::<String>::new());
}

/// Publishers that know nothing of each other, as the leaders of a shard one after the other.
#[tokio::test]
async fn one_id_is_taken_at_all_ends_until_it_is_acknowledged_at_one() {
    let server = Server::start(&[]);
    let (one, other) = (open(&server, LONG).await, open(&server, LONG).await);
    for round in 0..3 {
        assert_eq!(publish(&one, "a").await, Ok(Published::Added), "round {round}");
        assert_eq!(publish(&other, "a").await, Ok(Published::Already));
        assert_eq!(length(&server).await, 1);
        let got = take(&other, "other", SOON).await.unwrap();
        assert_eq!(seen(&got), [("a", 1)]);
        assert_eq!(publish(&other, "a").await, Ok(Published::Already));
        one.ack(Stream::Http, &receipts(&got)).await.unwrap();
    }
}

/// Many ends publish the same at one time, again and again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn publishers_that_race_add_each_id_once() {
    let server = Server::start(&[]);
    let mut publishers = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let bus = open(&server, LONG).await;
        publishers.spawn(async move {
            let mut added = 0;
            for id in 0..100 {
                added += usize::from(publish(&bus, &id.to_string()).await == Ok(Published::Added));
            }
            added
        });
    }
    assert_eq!(publishers.join_all().await.iter().sum::<usize>(), 100);
    assert_eq!((length(&server).await, ids_taken(&server).await), (100, 100));
}

#[tokio::test]
async fn ids_that_the_server_lost_or_spoiled_are_free() {
    let server = Server::start(&[]);
    let bus = open(&server, LONG).await;
    publish(&bus, "a").await.unwrap();
    let _: () = server.ask(&["FLUSHALL"]).await;
    assert_eq!(publish(&bus, "a").await, Ok(Published::Added), "after a flush");
    let _: u32 = server.ask(&["DEL", "switchward:http"]).await;
    assert_eq!(publish(&bus, "a").await, Ok(Published::Added), "without the stream");
    let _: u32 = server.ask(&["HSET", "{switchward:http}:ids", "a", "nonsense"]).await;
    assert_eq!(publish(&bus, "a").await, Ok(Published::Added), "after nonsense");
    let got = take(&bus, "one", SOON).await.unwrap();
    assert_eq!(seen(&got), [("a", 1), ("a", 1)]);
    bus.ack(Stream::Http, &receipts(&got)).await.unwrap();
    assert_eq!(ids_taken(&server).await, 0);
}

/// An entry's id begins with the time of the server, which is the only clock that matters.
#[tokio::test]
async fn ages_are_measured_by_the_clock_of_the_server() {
    let server = Server::start(&[]);
    let bus = open(&server, LONG).await;
    let (seconds, _): (u64, u64) = server.ask(&["TIME"]).await;
    let minute = Duration::from_secs(60);
    for (id, at) in [("hour", seconds - 3_600), ("minute", seconds - 90), ("ahead", seconds + 3_600)] {
        let entry = format!("{at}000-0");
        let fields = ["tenant", "1", "id", id, "body", "b"];
        let _: String =
            server.ask(&[&["XADD", "switchward:http", entry.as_str()][..], &fields].concat()).await;
    }
    let got = take(&bus, "one", SOON).await.unwrap();
    let ages: Vec<Duration> = got.iter().map(|it| it.age).collect();
    assert!((minute * 60..minute * 61).contains(&ages[0]), "{ages:?}");
    assert!((minute * 3 / 2..minute * 3).contains(&ages[1]), "{ages:?}");
    assert_eq!(ages[2], NONE, "the server's clock was set back");
}

#[tokio::test]
async fn a_counter_that_is_wrong_is_right_again_when_the_stream_is_empty() {
    let server = Server::start(&[]);
    let settings = Settings { idle: IDLE, envelopes_max: 8, bytes_max: 6, ..Settings::default() };
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

/// Ends that know nothing of each other count in one counter, and none goes beyond its maximum.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ends_that_race_count_no_more_than_the_maximum() {
    let server = Server::start(&[]);
    let mut ends = tokio::task::JoinSet::new();
    for end in 0..4 {
        let bus = open(&server, LONG).await;
        ends.spawn(async move {
            let mut counted = 0;
            for id in 0..50 {
                let counters = ["tenant", "address"].map(|name| Counter { name: name.to_owned(), most: 60 });
                let count = Count { id: format!("{end}/{id}"), counters: counters.to_vec() };
                counted += usize::from(bus.count(&count).await.unwrap() == Counting::Counted);
            }
            counted
        });
    }
    assert_eq!(ends.join_all().await.iter().sum::<usize>(), 60);
    for name in ["tenant", "address"] {
        let key = format!("{{switchward:counters}}:{name}");
        let held: (usize, i64) = (server.ask(&["SCARD", &key]).await, server.ask(&["PTTL", &key]).await);
        assert!(held.0 == 60 && held.1 > 0, "{name}: {held:?}");
    }
    // Another owner has counters of its own.
    let owned = RedisConfig { owner: Some("other".to_owned()), ..config(&server, LONG) };
    let other = Redis::open(owned).await.unwrap();
    let counters = vec![Counter { name: "tenant".to_owned(), most: 1 }];
    assert_eq!(other.count(&Count { id: "a".to_owned(), counters }).await, Ok(Counting::Counted));
}

/// What the server has lost is counted from the beginning; a server that cannot be reached counts nothing.
#[tokio::test]
async fn counters_are_lost_with_the_server() {
    let server = Server::start(&[]);
    let bus = open(&server, LONG).await;
    let count = |id: &str| Count {
        id: id.to_owned(),
        counters: vec![Counter { name: "tenant".to_owned(), most: 1 }],
    };
    assert_eq!(bus.count(&count("a")).await, Ok(Counting::Counted));
    assert_eq!(bus.count(&count("b")).await, Ok(Counting::Reached(0)));
    let _: () = server.ask(&["FLUSHALL"]).await;
    assert_eq!(bus.count(&count("b")).await, Ok(Counting::Counted));
    drop(server);
    unreachable(bus.count(&count("b")).await);
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
