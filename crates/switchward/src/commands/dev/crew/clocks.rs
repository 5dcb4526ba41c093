//! Moves the manual clocks of the servers together.
//!
//! Each server has a clock of its own, and timers fire by the clock of the server that leads their shard. So the clocks
//! are moved one after the other, each to the same time.

use std::collections::BTreeMap;
use std::time::Duration;
use switchward_api::v1;
use switchward_messages::cli::dev as texts;

use super::super::control::Answer;
use super::{Crew, State};
use crate::args::ClockKind;
use crate::client::{Client, Target, drawn_request_id};

/// How long reading or moving one clock may take.
const CALL_MAX: Duration = Duration::from_secs(10);

impl Crew {
    /// Advances the clocks of all servers that serve.
    pub(super) async fn advance(&self, by_ms: u64) -> Result<Answer, String> {
        if self.clock != ClockKind::Manual {
            let message =
                "the servers use the machine's clock; start the cluster with --clock manual to advance it";
            return Err(message.to_owned());
        }
        let times = self.times().await;
        let Some(latest) = latest(&times) else {
            let why = times.into_values().find_map(Result::err);
            let message = why.unwrap_or_else(|| "no server runs whose clock could be advanced".to_owned());
            return Err(message);
        };
        let target = latest.saturating_add(by_ms);
        let mut missed = self.move_to(&times, target).await;
        missed.extend(self.absent());
        let at = jiff::Timestamp::from_millisecond(i64::try_from(target).unwrap_or(i64::MAX));
        let at = at.map_or_else(|_| format!("{target} ms"), |at| at.to_string());
        Ok(Answer::Done { done: texts::time_is(&at), missed })
    }

    /// Moves clocks that are behind to the time of the others. Returns those that did not follow.
    pub(super) async fn align(&self) -> Vec<String> {
        if self.clock != ClockKind::Manual {
            return Vec::new();
        }
        let times = self.times().await;
        match latest(&times) {
            Some(target) => self.move_to(&times, target).await,
            None => Vec::new(),
        }
    }

    /// The times of the servers that serve, milliseconds since 1970, or why one does not say its.
    async fn times(&self) -> BTreeMap<u64, Result<u64, String>> {
        let mut times = BTreeMap::new();
        for (number, state) in &self.states {
            if matches!(state, State::Up(process) if process.serves()) {
                times.insert(*number, self.time(*number).await);
            }
        }
        times
    }

    /// Moves the clocks that are behind this time. Returns the servers that did not follow, and why.
    async fn move_to(&self, times: &BTreeMap<u64, Result<u64, String>>, target: u64) -> Vec<String> {
        let mut missed = Vec::new();
        for (number, time) in times {
            let moved = match time {
                Ok(time) if *time >= target => Ok(()),
                Ok(time) => self.step(*number, target - time).await,
                Err(why) => Err(why.clone()),
            };
            missed.extend(moved.err().map(|why| texts::clock_not_moved(*number, &why)));
        }
        missed
    }

    /// The servers that have no clock now.
    fn absent(&self) -> Vec<String> {
        let absent = self.states.iter().filter_map(|(number, state)| match state {
            State::Up(process) if process.serves() => None,
            State::Up(process) => Some((number, process.state())),
            State::Planned | State::Ended(_) => Some((number, "stopped")),
        });
        absent.map(|(number, state)| texts::clock_absent(*number, state)).collect()
    }

    async fn time(&self, number: u64) -> Result<u64, String> {
        let client = self.client(number).await?;
        let request = v1::GetClockRequest {};
        let read =
            client.call(request, |mut it, request| async move { it.clock.get_clock(request).await }).await;
        let time = read.map_err(|status| status.message().to_owned())?.time.unwrap_or_default();
        let ms = time.seconds.saturating_mul(1_000).saturating_add(i64::from(time.nanos) / 1_000_000);
        Ok(u64::try_from(ms).unwrap_or_default())
    }

    async fn step(&self, number: u64, ms: u64) -> Result<(), String> {
        let client = self.client(number).await?;
        let by =
            prost_types::Duration::try_from(Duration::from_millis(ms)).map_err(|error| error.to_string())?;
        let request = v1::AdvanceClockRequest { duration: Some(by), request_id: drawn_request_id() };
        let moved = client
            .call(request, |mut it, request| async move { it.clock.advance_clock(request).await })
            .await;
        moved.map(drop).map_err(|status| status.message().to_owned())
    }

    async fn client(&self, number: u64) -> Result<Client, String> {
        let target = Target { address: self.plan.server(number)?.url(), key: self.key.clone(), ca: None };
        Client::connect(&target, CALL_MAX).await.map_err(|exit| exit.message().to_owned())
    }
}

fn latest(times: &BTreeMap<u64, Result<u64, String>>) -> Option<u64> {
    times.values().filter_map(|time| time.as_ref().ok()).max().copied()
}
