//! Retries of calls, by the service config that is shipped to every client.

use backon::{BackoffBuilder as _, ExponentialBackoff, ExponentialBuilder};
use serde::Deserialize;
use std::error::Error;
use std::time::Duration;
use tonic::{Code, ConnectError, Status, TimeoutExpired};
use tonic_types::StatusExt as _;

/// The shipped service config.
const SERVICE_CONFIG: &str = include_str!("../../../../proto/service_config.json");

/// The retry policy of calls that the server could not answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Retries {
    /// Attempts, including the first one.
    pub(crate) attempts_max: u32,
    first: Duration,
    most: Duration,
    factor: f32,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ServiceConfig {
    method_config: Vec<MethodConfig>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MethodConfig {
    /// `None` for methods that are not retried.
    retry_policy: Option<RetryPolicy>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RetryPolicy {
    max_attempts: u32,
    initial_backoff: String,
    max_backoff: String,
    backoff_multiplier: f32,
}

impl Retries {
    /// The shipped policy.
    pub(crate) fn shipped() -> Self {
        Self::read(SERVICE_CONFIG).expect("the shipped service config is one, as a test makes sure")
    }

    fn read(text: &str) -> Option<Self> {
        let config: ServiceConfig = serde_json::from_str(text).ok()?;
        let policy = config.method_config.into_iter().find_map(|methods| methods.retry_policy)?;
        Some(Self {
            attempts_max: policy.max_attempts,
            first: seconds(&policy.initial_backoff)?,
            most: seconds(&policy.max_backoff)?,
            factor: policy.backoff_multiplier,
        })
    }

    /// The growing pauses between the attempts of a call.
    pub(crate) fn of_call(&self) -> ExponentialBuilder {
        let again = usize::try_from(self.attempts_max.saturating_sub(1)).unwrap_or(usize::MAX);
        self.growing().with_max_times(again)
    }

    /// The growing pauses of something that is attempted without an end.
    pub(crate) fn pauses(&self) -> ExponentialBackoff {
        self.growing().without_max_times().build()
    }

    fn growing(&self) -> ExponentialBuilder {
        ExponentialBuilder::new()
            .with_min_delay(self.first)
            .with_max_delay(self.most)
            .with_factor(self.factor)
    }

    /// The pause after this error: the server's retry delay, else the grown one. It varies by a fifth, so that callers
    /// that were refused together do not return together.
    pub(crate) fn pause(&self, grown: Duration, status: &Status) -> Duration {
        let wanted = status.get_error_details().retry_info().and_then(|info| info.retry_delay);
        wanted.unwrap_or(grown).min(self.most).mul_f64(rand::random_range(0.8..1.2))
    }
}

/// Returns true if a failed call certainly did nothing: the server says so, or could not be connected to.
pub(crate) fn did_nothing(status: &Status) -> bool {
    let of_connection = status.source().is_some();
    status.code() == Code::Unavailable && (!of_connection || has_cause::<ConnectError>(status))
}

/// Returns true if a failed call may be made again that does the same twice as once: it did nothing, or its connection broke. A
/// server that stops refuses requests that it has not begun, and a connection breaks with it; the client's library says
/// both with whatever code, and with a cause.
pub(crate) fn is_repeatable(status: &Status) -> bool {
    let of_connection = status.source().is_some() && !has_cause::<TimeoutExpired>(status);
    did_nothing(status) || of_connection
}

fn has_cause<E: Error + 'static>(status: &Status) -> bool {
    std::iter::successors(status.source(), |cause| (*cause).source()).any(|cause| cause.is::<E>())
}

/// Parses a duration of proto-JSON, such as `0.1s`.
fn seconds(text: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(text.strip_suffix('s')?.parse().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shipped_is_read() {
        let millis = Duration::from_millis;
        let expected = Retries { attempts_max: 4, first: millis(100), most: millis(2_000), factor: 3.0 };
        assert_eq!(Retries::shipped(), expected);
    }

    #[test]
    fn a_broken_connection_is_tried_again_only_for_calls_that_may_happen_twice() {
        let of = |error: Box<dyn Error + Send + Sync>| Status::from_error(error);
        let reset = || std::io::Error::from(std::io::ErrorKind::ConnectionReset);
        let (neither, repeatable, both) = ((false, false), (true, false), (true, true));
        for (status, expected) in [
            (Status::unavailable("the shard elects a leader"), both),
            (of(Box::new(ConnectError(Box::new(reset())))), both),
            (of(Box::new(reset())), repeatable),
            (of(Box::new(TimeoutExpired(()))), neither),
            (Status::internal("a defect"), neither),
            (Status::cancelled("by the server"), neither),
            (Status::deadline_exceeded("late"), neither),
            (Status::aborted("the outcome is unknown"), neither),
        ] {
            assert_eq!((is_repeatable(&status), did_nothing(&status)), expected, "{status:?}");
        }
    }

    #[test]
    fn pauses_grow_up_to_a_maximum() {
        let (retries, status) = (Retries::shipped(), Status::unavailable(""));
        let mut grown = retries.pauses();
        for most in [120, 360, 1_080, 2_400, 2_400, 2_400] {
            let pause = retries.pause(grown.next().unwrap(), &status);
            let most = Duration::from_millis(most);
            // The pauses grow in floats.
            assert!(pause <= most.mul_f64(1.001) && pause >= most / 2, "{most:?}: {pause:?}");
        }
        assert_eq!(retries.of_call().build().count(), 3, "four attempts in all");
    }
}
