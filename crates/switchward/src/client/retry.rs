//! Retries of calls, by the service config that is shipped to every client.

use serde::Deserialize;
use std::time::Duration;
use tonic::Status;
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
    factor: u32,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ServiceConfig {
    method_config: Vec<MethodConfig>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MethodConfig {
    retry_policy: RetryPolicy,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RetryPolicy {
    max_attempts: u32,
    initial_backoff: String,
    max_backoff: String,
    backoff_multiplier: u32,
}

impl Retries {
    /// The shipped policy.
    pub(crate) fn shipped() -> Self {
        Self::read(SERVICE_CONFIG).expect("the shipped service config is one, as a test makes sure")
    }

    fn read(text: &str) -> Option<Self> {
        let config: ServiceConfig = serde_json::from_str(text).ok()?;
        let policy = config.method_config.into_iter().next()?.retry_policy;
        Some(Self {
            attempts_max: policy.max_attempts,
            first: seconds(&policy.initial_backoff)?,
            most: seconds(&policy.max_backoff)?,
            factor: policy.backoff_multiplier,
        })
    }

    /// The pause after this attempt: the server's retry delay, else an exponential backoff. It varies by a fifth, so
    /// that callers that were refused together do not return together.
    pub(crate) fn pause(&self, attempt: u32, status: &Status) -> Duration {
        let asked = status.get_error_details().retry_info().and_then(|info| info.retry_delay);
        let grown = self.first.saturating_mul(self.factor.saturating_pow(attempt.saturating_sub(1)));
        asked.unwrap_or(grown).min(self.most).mul_f64(rand::random_range(0.8..1.2))
    }
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
        let expected = Retries { attempts_max: 4, first: millis(100), most: millis(2_000), factor: 3 };
        assert_eq!(Retries::shipped(), expected);
    }

    #[test]
    fn pauses_grow_up_to_a_maximum() {
        let (retries, status) = (Retries::shipped(), Status::unavailable(""));
        for (attempt, most) in [(1, 120), (2, 360), (3, 1_080), (4, 2_400), (60, 2_400)] {
            let pause = retries.pause(attempt, &status);
            assert!(
                pause <= Duration::from_millis(most) && pause >= Duration::from_millis(most / 2),
                "{attempt}: {pause:?}"
            );
        }
    }
}
