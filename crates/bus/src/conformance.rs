//! The conformance suite of [`Bus`], for any implementation.
//!
//! [`run`] runs every case on a bus of its own and returns those that failed. Cases never sleep; they wait in takes, so they
//! are fast on a paused clock, and take some seconds on a real one.

mod answers;
mod counters;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::{Instant, timeout};

use crate::bus::{Bus, Delivery, Envelope, Published, Receipt, Settings, Stream};
use crate::error::BusError;
use crate::limits::{BODY_BYTES_MAX, CONSUMER_BYTES_MAX, ID_BYTES_MAX};

/// Creates the buses for the suite.
#[async_trait]
pub(crate) trait Factory: Sync {
    /// Creates an empty bus with these settings.
    async fn bus(&self, settings: Settings) -> Arc<dyn Bus>;
}

/// A failed case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    /// The case's name.
    pub(crate) case: &'static str,
    /// What was expected and what came instead.
    pub(crate) message: String,
}

/// Every case, in the order in which they run.
pub(crate) const CASES: &[&str] = &[
    "order",
    "at least once",
    "redelivery",
    "keep",
    "release",
    "acknowledged",
    "one id",
    "known for a while",
    "kept ids",
    "age",
    "shared",
    "woken",
    "streams apart",
    "sizes",
    "full",
    "carried",
    "empty wait",
    "counted",
    "counted for a while",
    "answered",
    "answers for a while",
    "close",
];

/// The idle time of the buses of the suite. Long enough that less than half of it passes between two calls on a busy
/// machine.
const IDLE: Duration = Duration::from_secs(1);
/// How long a take waits for what must come.
const SOON: Duration = Duration::from_secs(20);
/// How long a case may take.
const CASE_MAX: Duration = Duration::from_secs(60);
const NONE: Duration = Duration::ZERO;
const SETTINGS: Settings = Settings {
    idle: IDLE,
    envelopes_max: 8,
    bytes_max: 64,
    id_known: SOON,
    counted: SOON,
    answer_kept: SOON,
};

type CaseResult = Result<(), String>;

/// Runs every case and returns the failures.
pub(crate) async fn run(factory: &dyn Factory) -> Vec<Failure> {
    let mut failures = Vec::new();
    for &case in CASES {
        let message = match timeout(CASE_MAX, play(case, factory)).await {
            Ok(Ok(())) => continue,
            Ok(Err(message)) => message,
            Err(_) => format!("the case did not end within {} s", CASE_MAX.as_secs()),
        };
        failures.push(Failure { case, message });
    }
    failures
}

async fn play(case: &str, factory: &dyn Factory) -> CaseResult {
    match case {
        "order" => order(factory).await,
        "at least once" => at_least_once(factory).await,
        "redelivery" => redelivery(factory).await,
        "keep" => keep(factory).await,
        "release" => release(factory).await,
        "acknowledged" => acknowledged(factory).await,
        "one id" => one_id(factory).await,
        "known for a while" => known_for_a_while(factory).await,
        "kept ids" => kept_ids(factory).await,
        "age" => age(factory).await,
        "shared" => shared(factory).await,
        "woken" => woken(factory).await,
        "streams apart" => streams_apart(factory).await,
        "sizes" => sizes(factory).await,
        "full" => full(factory).await,
        "carried" => carried(factory).await,
        "empty wait" => empty_wait(factory).await,
        "counted" => counters::counted(factory).await,
        "counted for a while" => counters::counted_for_a_while(factory).await,
        "answered" => answers::answered(factory).await,
        "answers for a while" => answers::kept_for_a_while(factory).await,
        "close" => close(factory).await,
        other => Err(format!("unknown case {other}")),
    }
}

/// First deliveries come in the order of publishing, over several takes.
async fn order(factory: &dyn Factory) -> CaseResult {
    let bus = factory.bus(SETTINGS).await;
    for id in ["a", "b", "c", "d", "e"] {
        publish(&*bus, id).await?;
    }
    let first = take(&*bus, "one", 3, SOON).await?;
    let second = take(&*bus, "one", 3, SOON).await?;
    same("first take", ids(&first), vec!["a", "b", "c"])?;
    same("second take", ids(&second), vec!["d", "e"])
}

/// A published envelope is delivered, even if nobody waited for it, until it is acknowledged.
async fn at_least_once(factory: &dyn Factory) -> CaseResult {
    let bus = factory.bus(SETTINGS).await;
    publish(&*bus, "a").await?;
    for count in 1..=3 {
        let got = take(&*bus, "one", 1, SOON).await?;
        same("ids", ids(&got), vec!["a"])?;
        same("count", got[0].count, count)?;
    }
    Ok(())
}

/// An unacknowledged delivery goes to another consumer, after the idle time and before new ones, with its count incremented.
async fn redelivery(factory: &dyn Factory) -> CaseResult {
    let bus = factory.bus(SETTINGS).await;
    publish(&*bus, "a").await?;
    let begun = Instant::now();
    let first = take(&*bus, "dies", 1, SOON).await?;
    same("count of the first delivery", first.first().map(|it| it.count), Some(1))?;
    same("before the idle time", ids(&take(&*bus, "lives", 1, NONE).await?), vec![])?;
    let second = take(&*bus, "lives", 1, SOON).await?;
    same("after the idle time", ids(&second), vec!["a"])?;
    same("count of the second delivery", second[0].count, 2)?;
    same("whether the delivery came too early", begun.elapsed() < IDLE * 9 / 10, false)?;
    bus.release(Stream::Http, "lives", &receipts(&second)).await.map_err(describe)?;
    publish(&*bus, "b").await?;
    same("the overdue delivery, first", ids(&take(&*bus, "lives", 2, SOON).await?), vec!["a", "b"])
}

/// A heartbeat of its holder keeps a delivery from going to another consumer; one of any other consumer does not.
async fn keep(factory: &dyn Factory) -> CaseResult {
    let bus = factory.bus(SETTINGS).await;
    publish(&*bus, "a").await?;
    let held = take(&*bus, "one", 1, SOON).await?;
    for _ in 0..4 {
        same("while the delivery is kept", ids(&take(&*bus, "other", 1, IDLE / 2).await?), vec![])?;
        bus.keep(Stream::Http, "one", &receipts(&held)).await.map_err(describe)?;
    }
    same("after the last keep", ids(&take(&*bus, "other", 1, SOON).await?), vec!["a"])?;
    same("right after it was taken", ids(&take(&*bus, "third", 1, IDLE / 2).await?), vec![])?;
    let begun = Instant::now();
    bus.keep(Stream::Http, "one", &receipts(&held)).await.map_err(describe)?;
    same(
        "kept by a consumer that no longer holds it",
        ids(&take(&*bus, "third", 1, SOON).await?),
        vec!["a"],
    )?;
    same("whether that delayed the delivery", begun.elapsed() >= IDLE, false)
}

/// A released delivery comes again at once.
async fn release(factory: &dyn Factory) -> CaseResult {
    let bus = factory.bus(SETTINGS).await;
    publish(&*bus, "a").await?;
    let held = take(&*bus, "one", 1, SOON).await?;
    bus.release(Stream::Http, "other", &receipts(&held)).await.map_err(describe)?;
    same(
        "given back by a consumer that does not hold it",
        ids(&take(&*bus, "other", 1, NONE).await?),
        vec![],
    )?;
    bus.release(Stream::Http, "one", &receipts(&held)).await.map_err(describe)?;
    let again = take(&*bus, "other", 1, NONE).await?;
    same("given back", ids(&again), vec!["a"])?;
    same("count", again[0].count, 2)
}

/// An acknowledged delivery never comes again, even if its holder had lost it by then.
async fn acknowledged(factory: &dyn Factory) -> CaseResult {
    let bus = factory.bus(SETTINGS).await;
    publish(&*bus, "a").await?;
    publish(&*bus, "b").await?;
    let got = take(&*bus, "one", 2, SOON).await?;
    same("taken", ids(&got), vec!["a", "b"])?;
    bus.ack(Stream::Http, &receipts(&got[..1])).await.map_err(describe)?;
    let again = take(&*bus, "two", 2, SOON).await?;
    same("the delivery that was not acknowledged", ids(&again), vec!["b"])?;
    bus.ack(Stream::Http, &receipts(&got)).await.map_err(describe)?;
    bus.ack(Stream::Http, &[Receipt::new("0-0".to_owned())]).await.map_err(describe)?;
    same("acknowledged by its first holder", ids(&take(&*bus, "two", 2, IDLE * 3).await?), vec![])
}

/// A stream holds one envelope with an id from its publishing to its acknowledgement, also while another consumer has it.
async fn one_id(factory: &dyn Factory) -> CaseResult {
    let bus = factory.bus(SETTINGS).await;
    same("published", added(&*bus, "a").await?, Published::Added)?;
    same("while it waits", added(&*bus, "a").await?, Published::Already)?;
    let other = bus.publish(Stream::Model, envelope("a", b"")).await.map_err(describe)?;
    same("in another stream", other, Published::Added)?;
    let held = take(&*bus, "one", 8, SOON).await?;
    same("taken", ids(&held), vec!["a"])?;
    same("while it is taken", added(&*bus, "a").await?, Published::Already)?;
    bus.release(Stream::Http, "one", &receipts(&held)).await.map_err(describe)?;
    same("given back", added(&*bus, "a").await?, Published::Already)?;
    let again = take(&*bus, "two", 8, SOON).await?;
    same("taken again", ids(&again), vec!["a"])?;
    bus.ack(Stream::Http, &receipts(&again)).await.map_err(describe)?;
    same("acknowledged", added(&*bus, "a").await?, Published::Added)?;
    // An acknowledgement that comes late is not one of the next envelope.
    bus.ack(Stream::Http, &receipts(&held)).await.map_err(describe)?;
    same("after a late acknowledgement", added(&*bus, "a").await?, Published::Already)?;
    same("the remaining envelopes", ids(&take(&*bus, "two", 8, SOON).await?), vec!["a"])
}

/// An id that was not kept is free after its time, and belongs to the newest envelope then.
async fn known_for_a_while(factory: &dyn Factory) -> CaseResult {
    let bus = factory.bus(Settings { idle: SOON, id_known: IDLE, ..SETTINGS }).await;
    publish(&*bus, "a").await?;
    let first = take(&*bus, "one", 1, SOON).await?;
    same("nothing else", ids(&take(&*bus, "one", 1, IDLE * 3 / 2).await?), vec![])?;
    same("after its time", added(&*bus, "a").await?, Published::Added)?;
    bus.ack(Stream::Http, &receipts(&first)).await.map_err(describe)?;
    same("while the second waits", added(&*bus, "a").await?, Published::Already)?;
    let second = take(&*bus, "one", 8, SOON).await?;
    same("the second", ids(&second), vec!["a"])?;
    bus.ack(Stream::Http, &receipts(&second)).await.map_err(describe)?;
    same("after both", added(&*bus, "a").await?, Published::Added)
}

/// An id is taken as long as a consumer keeps its envelope.
async fn kept_ids(factory: &dyn Factory) -> CaseResult {
    let bus = factory.bus(Settings { idle: SOON, id_known: IDLE * 2, ..SETTINGS }).await;
    publish(&*bus, "a").await?;
    let held = take(&*bus, "one", 1, SOON).await?;
    for _ in 0..5 {
        same("nothing else", ids(&take(&*bus, "other", 1, IDLE / 2).await?), vec![])?;
        // Only its holder can keep it.
        bus.keep(Stream::Http, "one", &receipts(&held)).await.map_err(describe)?;
    }
    same("while it is kept", added(&*bus, "a").await?, Published::Already)?;
    for _ in 0..5 {
        same("nothing else", ids(&take(&*bus, "other", 1, IDLE / 2).await?), vec![])?;
        bus.keep(Stream::Http, "other", &receipts(&held)).await.map_err(describe)?;
    }
    same("kept by somebody else", added(&*bus, "a").await?, Published::Added)
}

/// A delivery says how long ago it was published, however often it was delivered before.
async fn age(factory: &dyn Factory) -> CaseResult {
    let bus = factory.bus(SETTINGS).await;
    publish(&*bus, "a").await?;
    let begun = Instant::now();
    let nothing = bus.take(Stream::Model, "one", 1, IDLE).await.map_err(describe)?;
    same("in another stream", ids(&nothing), vec![])?;
    let first = take(&*bus, "one", 1, SOON).await?;
    same("the first delivery", ids(&first), vec!["a"])?;
    between("the age at the first delivery", first[0].age, IDLE * 9 / 10, begun.elapsed() + IDLE)?;
    let second = take(&*bus, "two", 1, SOON).await?;
    same("the second delivery", ids(&second), vec!["a"])?;
    between("the age at the second delivery", second[0].age, IDLE * 9 / 5, begun.elapsed() + IDLE)?;
    // One that comes while somebody waits has no age.
    let begun = Instant::now();
    let publishing = async {
        tokio::task::yield_now().await;
        publish(&*bus, "b").await
    };
    let (taken, published) = tokio::join!(take(&*bus, "three", 1, SOON), publishing);
    published?;
    let taken = taken?;
    same("the new envelope", ids(&taken), vec!["b"])?;
    between("the age of a new envelope", taken[0].age, NONE, begun.elapsed() + IDLE / 2)
}

fn between(what: &str, got: Duration, least: Duration, most: Duration) -> CaseResult {
    if (least..=most).contains(&got) {
        Ok(())
    } else {
        Err(format!("{what}: expected {least:?} to {most:?}, got {got:?}"))
    }
}

/// Two consumers share a stream: each envelope goes to one of them.
async fn shared(factory: &dyn Factory) -> CaseResult {
    let bus = factory.bus(SETTINGS).await;
    for id in ["a", "b", "c", "d"] {
        publish(&*bus, id).await?;
    }
    let one = take(&*bus, "one", 2, SOON).await?;
    let two = take(&*bus, "two", 8, SOON).await?;
    let mut all = ids(&one);
    all.extend(ids(&two));
    all.sort_unstable();
    same("the deliveries of both consumers", all, vec!["a", "b", "c", "d"])?;
    same("the deliveries of the first consumer", one.len(), 2)
}

/// A publishing wakes a taker that waits.
async fn woken(factory: &dyn Factory) -> CaseResult {
    let bus = factory.bus(SETTINGS).await;
    let begun = Instant::now();
    let taking = async { take(&*bus, "one", 1, SOON).await };
    let publishing = async {
        // Lets the taker wait first.
        tokio::task::yield_now().await;
        publish(&*bus, "a").await
    };
    let (taken, published) = tokio::join!(taking, publishing);
    published?;
    same("taken", ids(&taken?), vec!["a"])?;
    same("whether the take waited to the end", begun.elapsed() >= SOON, false)
}

/// A stream does not see what another holds.
async fn streams_apart(factory: &dyn Factory) -> CaseResult {
    let bus = factory.bus(SETTINGS).await;
    publish(&*bus, "a").await?;
    for stream in Stream::ALL.into_iter().filter(|stream| *stream != Stream::Http) {
        let got = bus.take(stream, "one", 1, NONE).await.map_err(describe)?;
        same(stream.name(), ids(&got), vec![])?;
        bus.ack(stream, &[Receipt::new("1".to_owned())]).await.map_err(describe)?;
    }
    same("its own stream", ids(&take(&*bus, "one", 1, SOON).await?), vec!["a"])
}

/// Bodies, ids and names of consumers that are too long, or empty although they must not be, are refused by name.
async fn sizes(factory: &dyn Factory) -> CaseResult {
    let bus = factory.bus(Settings::default()).await;
    let send = async |id: usize, body: usize| {
        let envelope = Envelope { tenant: 1, id: "i".repeat(id), body: vec![0; body] };
        bus.publish(Stream::Http, envelope).await.map(drop)
    };
    same("the largest", send(ID_BYTES_MAX, BODY_BYTES_MAX).await, Ok(()))?;
    same("an empty body", send(1, 0).await, Ok(()))?;
    let size = |what, bytes, bytes_max| Err(BusError::Size { what, bytes, bytes_max });
    same("a long body", send(1, BODY_BYTES_MAX + 1).await, size("body", BODY_BYTES_MAX + 1, BODY_BYTES_MAX))?;
    same("a long id", send(ID_BYTES_MAX + 1, 0).await, size("id", ID_BYTES_MAX + 1, ID_BYTES_MAX))?;
    same("no id", send(0, 0).await, size("id", 0, ID_BYTES_MAX))?;
    for bytes in [0, CONSUMER_BYTES_MAX + 1] {
        let got = bus.take(Stream::Http, &"c".repeat(bytes), 1, NONE).await.map(|_| ());
        same("a consumer's name", got, size("consumer", bytes, CONSUMER_BYTES_MAX))?;
    }
    same("the accepted envelopes", take(&*bus, "one", 9, SOON).await?.len(), 2)
}

/// A full stream says when to try again, accepts nothing, and has capacity again only after acknowledgements.
async fn full(factory: &dyn Factory) -> CaseResult {
    let bus = factory.bus(SETTINGS).await;
    for number in 0..SETTINGS.envelopes_max {
        bus.ready(Stream::Http).await.map_err(describe)?;
        publish(&*bus, &number.to_string()).await?;
    }
    same("what a full stream holds", added(&*bus, "0").await?, Published::Already)?;
    refused_as_full(bus.ready(Stream::Http).await)?;
    bus.ready(Stream::Model).await.map_err(describe)?;
    refused_as_full(bus.publish(Stream::Http, envelope("b", b"")).await)?;
    let got = take(&*bus, "one", SETTINGS.envelopes_max, SOON).await?;
    same("taken", got.len(), SETTINGS.envelopes_max)?;
    refused_as_full(bus.publish(Stream::Http, envelope("b", b"")).await)?;
    bus.ack(Stream::Http, &receipts(&got)).await.map_err(describe)?;
    let half = vec![0; SETTINGS.bytes_max / 2 + 1];
    bus.publish(Stream::Http, envelope("c", &half)).await.map_err(describe)?;
    refused_as_full(bus.publish(Stream::Http, envelope("d", &half)).await)?;
    bus.publish(Stream::Model, envelope("e", &half)).await.map_err(describe)?;
    same("the remaining envelopes", ids(&take(&*bus, "one", 8, SOON).await?), vec!["c"])
}

fn refused_as_full<T: std::fmt::Debug>(got: Result<T, BusError>) -> CaseResult {
    match got {
        Err(BusError::Full { stream: Stream::Http, retry_after }) if !retry_after.is_zero() => Ok(()),
        other => Err(format!("expected that the stream is full, got {other:?}")),
    }
}

/// Tenant, id and body arrive unchanged.
async fn carried(factory: &dyn Factory) -> CaseResult {
    let bus = factory.bus(SETTINGS).await;
    let sent = [
        Envelope { tenant: 7, id: "one/two - 3".to_owned(), body: vec![0, 255, 10, 13] },
        Envelope { tenant: u32::MAX, id: "%0".to_owned(), body: Vec::new() },
        Envelope { tenant: 0, id: "ä €".to_owned(), body: b"x".to_vec() },
    ];
    for envelope in &sent {
        bus.publish(Stream::Http, envelope.clone()).await.map_err(describe)?;
    }
    let got = take(&*bus, "one", 8, SOON).await?;
    bus.ack(Stream::Http, &receipts(&got)).await.map_err(describe)?;
    same("envelopes", got.into_iter().map(|it| it.envelope).collect::<Vec<_>>(), sent.to_vec())?;
    for envelope in sent {
        let again = bus.publish(Stream::Http, envelope).await.map_err(describe)?;
        same("an id that was acknowledged", again, Published::Added)?;
    }
    Ok(())
}

/// A take that finds nothing waits as long as requested, and returns an empty list.
async fn empty_wait(factory: &dyn Factory) -> CaseResult {
    let bus = factory.bus(SETTINGS).await;
    let begun = Instant::now();
    same("after the wait", ids(&take(&*bus, "one", 1, IDLE).await?), vec![])?;
    same("whether the take waited", begun.elapsed() >= IDLE * 9 / 10, true)?;
    publish(&*bus, "a").await?;
    same("a take of none", ids(&take(&*bus, "one", 0, SOON).await?), vec![])
}

/// A closed bus refuses everything, and lets nobody wait.
async fn close(factory: &dyn Factory) -> CaseResult {
    let bus = factory.bus(SETTINGS).await;
    let begun = Instant::now();
    let taking = async { bus.take(Stream::Http, "one", 1, SOON).await };
    let closing = async {
        tokio::task::yield_now().await;
        bus.close().await;
    };
    let (taken, answered, ()) = tokio::join!(taking, bus.answered("a", SOON), closing);
    same("a waiting take", taken, Err(BusError::Closed))?;
    same("who waits for an answer", answered, Err(BusError::Closed))?;
    same("whether the take waited to the end", begun.elapsed() >= SOON, false)?;
    let receipt = [Receipt::new("1".to_owned())];
    same("publish", bus.publish(Stream::Model, envelope("a", b"")).await, Err(BusError::Closed))?;
    same("take", bus.take(Stream::Http, "one", 1, SOON).await, Err(BusError::Closed))?;
    same("ack", bus.ack(Stream::Http, &receipt).await, Err(BusError::Closed))?;
    same("keep", bus.keep(Stream::Http, "one", &receipt).await, Err(BusError::Closed))?;
    same("count", bus.count(&counters::one("a", 1)).await, Err(BusError::Closed))?;
    same("answer", bus.answer("a", Vec::new()).await, Err(BusError::Closed))?;
    same("answered", bus.answered("a", SOON).await, Err(BusError::Closed))?;
    same("uncount", bus.uncount(&counters::one("a", 1)).await, Err(BusError::Closed))?;
    same("release", bus.release(Stream::Http, "one", &receipt).await, Err(BusError::Closed))
}

fn envelope(id: &str, body: &[u8]) -> Envelope {
    Envelope { tenant: 1, id: id.to_owned(), body: body.to_vec() }
}

/// Publishes an envelope whose id is not taken.
async fn publish(bus: &dyn Bus, id: &str) -> CaseResult {
    same(id, added(bus, id).await?, Published::Added)
}

async fn added(bus: &dyn Bus, id: &str) -> Result<Published, String> {
    bus.publish(Stream::Http, envelope(id, b"")).await.map_err(describe)
}

async fn take(bus: &dyn Bus, consumer: &str, max: usize, wait: Duration) -> Result<Vec<Delivery>, String> {
    bus.take(Stream::Http, consumer, max, wait).await.map_err(describe)
}

fn ids(deliveries: &[Delivery]) -> Vec<&str> {
    deliveries.iter().map(|delivery| delivery.envelope.id.as_str()).collect()
}

fn receipts(deliveries: &[Delivery]) -> Vec<Receipt> {
    deliveries.iter().map(|delivery| delivery.receipt.clone()).collect()
}

fn describe(error: BusError) -> String {
    error.to_string()
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, got: T, expected: T) -> CaseResult {
    if got == expected { Ok(()) } else { Err(format!("{what}: expected {expected:?}, got {got:?}")) }
}
