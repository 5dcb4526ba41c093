//! A call that moves the clock and fails on its way says so, and goes on when it is repeated.

use parking_lot::Mutex;
use std::sync::Arc;
use switchward_api::v1::{self, clock_service_server::ClockService as _};
use switchward_gateway::{Api, services::MovableClock};
use switchward_machine::Time;
use switchward_shard::{Clock, Failure, ManualClock};
use tonic::{Request, Status};

use crate::harness::Harness;
use crate::node::Node;
use crate::refusal::refused;

const STEP_S: i64 = 60;
const SECOND_MS: u64 = 1_000;

/// A clock that fails as often as `failures` says, each time after it has moved on by this many milliseconds.
struct Failing {
    clock: ManualClock,
    failures: Mutex<Vec<u64>>,
}

#[tonic::async_trait]
impl MovableClock for Failing {
    fn now(&self) -> Time {
        Clock::now(&self.clock)
    }

    async fn advance_to(&self, time: Time) -> Result<(), Failure> {
        if let Some(ms) = self.failures.lock().pop() {
            self.clock.advance(ms);
            return Err(Failure::Electing);
        }
        self.clock.advance_to(time);
        Ok(())
    }
}

/// Moves the clock by a minute; returns the answered time, milliseconds since 1970.
async fn advance(api: &Api, key: &str, request_id: &str) -> Result<i64, Status> {
    let duration = Some(prost_types::Duration { seconds: STEP_S, nanos: 0 });
    let mut request = Request::new(v1::AdvanceClockRequest { duration, request_id: request_id.into() });
    let credential = format!("Bearer {key}").parse().expect("a header");
    request.metadata_mut().insert("authorization", credential);
    let time = api.advance_clock(request).await?.into_inner().time.expect("a time");
    Ok(time.seconds * 1_000 + i64::from(time.nanos) / 1_000_000)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_advance_that_failed_goes_on_to_the_same_time_when_it_is_repeated() {
    let harness = Harness::over(Node::start_one(None).await).await;
    let (clock, key) = (harness.node.clock.clone(), harness.acme.key("operator"));
    let failing = |failures: &[u64]| {
        let failures = Mutex::new(failures.to_vec());
        let clock = Failing { clock: clock.clone(), failures };
        Api::new(harness.node.cluster.clone(), Some(Arc::new(clock)))
    };
    let after = |time: Time| i64::try_from(time.0).expect("a time") + STEP_S * 1_000;

    let api = failing(&[0, SECOND_MS]);
    let begun = Clock::now(&clock);
    for _ in 0..2 {
        refused(advance(&api, key, "stopped").await, "OUTCOME_UNKNOWN");
        assert_eq!(Clock::now(&clock), begun.after_ms(SECOND_MS));
    }
    for _ in 0..2 {
        assert_eq!(advance(&api, key, "stopped").await.expect("it goes on"), after(begun));
    }
    assert_eq!(Clock::now(&clock).0, u64::try_from(after(begun)).expect("a time"));

    let api = failing(&[0]);
    refused(advance(&api, key, "not begun").await, "SHARD_ELECTING");
    let begun = clock.advance(SECOND_MS);
    assert_eq!(advance(&api, key, "not begun").await.expect("it begins"), after(begun));
    harness.node.end().await;
}
