//! The suite over a real server, and what becomes of a bus whose server has every kind of trouble.

mod faults;
mod pure;
mod server;
mod shared;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;

use self::server::Server;
use super::{Redis, RedisConfig};
use crate::bus::{Bus, Count, Counter, Counting, Delivery, Envelope, Published, Receipt, Settings, Stream};
use crate::conformance::{Factory, run};
use crate::error::BusError;

/// How long tests wait for what must come.
const SOON: Duration = Duration::from_secs(30);
const NONE: Duration = Duration::ZERO;
/// The idle time of most tests: short, and longer than the time between two calls on a busy machine.
const IDLE: Duration = Duration::from_secs(1);
/// The idle time of tests in which nothing may be delivered twice.
const LONG: Duration = Duration::from_secs(60);

/// Each bus of the suite has a prefix of its own.
struct Prefixed<'a> {
    server: &'a Server,
    next: AtomicUsize,
}

#[async_trait]
impl Factory for Prefixed<'_> {
    async fn bus(&self, settings: Settings) -> Arc<dyn Bus> {
        let prefix = format!("suite-{}", self.next.fetch_add(1, Ordering::Relaxed));
        let config = RedisConfig { settings, prefix, ..RedisConfig::new(self.server.url()) };
        Arc::new(Redis::open(config).await.unwrap())
    }
}

#[tokio::test]
async fn the_bus_over_redis_passes_the_suite() {
    let server = Server::start(&[]);
    assert_eq!(run(&Prefixed { server: &server, next: AtomicUsize::new(0) }).await, []);
}

/// How a bus of these tests is set.
fn config(server: &Server, idle: Duration) -> RedisConfig {
    let settings = Settings { idle, ..Settings::default() };
    RedisConfig { settings, ..RedisConfig::new(server.url()) }
}

/// A bus on this server.
async fn open(server: &Server, idle: Duration) -> Redis {
    Redis::open(config(server, idle)).await.unwrap()
}

fn envelope(id: &str) -> Envelope {
    Envelope { tenant: 1, id: id.to_owned(), body: b"body".to_vec() }
}

async fn publish(bus: &Redis, id: &str) -> Result<Published, BusError> {
    bus.publish(Stream::Http, envelope(id)).await
}

async fn take(bus: &Redis, consumer: &str, wait: Duration) -> Result<Vec<Delivery>, BusError> {
    bus.take(Stream::Http, consumer, 256, wait).await
}

/// Ids and counts.
fn seen(deliveries: &[Delivery]) -> Vec<(&str, u32)> {
    deliveries.iter().map(|it| (it.envelope.id.as_str(), it.count)).collect()
}

fn receipts(deliveries: &[Delivery]) -> Vec<Receipt> {
    deliveries.iter().map(|it| it.receipt.clone()).collect()
}

/// Tries until it succeeds.
async fn eventually<T, E, F>(mut attempt: impl FnMut() -> F) -> T
where
    E: std::fmt::Debug,
    F: Future<Output = Result<T, E>>,
{
    let deadline = Instant::now() + SOON;
    loop {
        match attempt().await {
            Ok(done) => return done,
            Err(error) => assert!(Instant::now() < deadline, "{error:?}"),
        }
        tokio::task::yield_now().await;
    }
}

/// The words of an error that says that the server could not be used, and when to try again.
#[track_caller]
fn unreachable<T: std::fmt::Debug>(got: Result<T, BusError>) -> String {
    match got {
        Err(BusError::Unreachable { message, retry_after }) if !retry_after.is_zero() => message,
        other => panic!("expected that the bus cannot be reached, got {other:?}"),
    }
}
