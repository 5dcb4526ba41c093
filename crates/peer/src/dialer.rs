//! The connection to another server for one class of traffic: it is dialled, and dialled again after each loss.

use std::sync::Arc;
use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBackoff, ExponentialBuilder};
use bytes::Bytes;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, timeout_at};

use crate::endpoint::Core;
use crate::error::PeerError;
use crate::handshake::{Connection, dial};
use crate::hello::Purpose;
use crate::limits::RETRY_MIN;
use crate::link::Link;
use crate::pings::Pings;
use crate::queue::{Capacity, write_queue};
use crate::reach::{Failure, Reach};
use crate::request::{Request, Traffic};
use crate::wire::WireError;

/// The connection to another server for one class of traffic.
#[derive(Debug)]
pub(crate) struct Dialer {
    to: u64,
    address: String,
    traffic: Traffic,
    body_max: usize,
    capacity: Arc<Capacity>,
    reach: Arc<Reach>,
    state: watch::Sender<State>,
}

#[derive(Debug, Clone)]
enum State {
    /// It is dialled for the first time, or for the first time after a loss: calls wait.
    Connecting,
    Up(Arc<Link>),
    /// It could not be reached, or the handshake was refused: calls fail with this.
    Down(PeerError),
}

impl Dialer {
    /// `reach` is shared by the connections to this server.
    pub(crate) fn new(core: &Core, to: u64, address: String, traffic: Traffic, reach: Arc<Reach>) -> Self {
        Self {
            to,
            address,
            traffic,
            body_max: core.body_max(traffic),
            capacity: Capacity::new(core.requests_max(traffic), core.limits.queued_bytes),
            reach,
            state: watch::Sender::new(State::Connecting),
        }
    }

    /// See [`Peers::call`](crate::Peers::call).
    pub(crate) async fn call(&self, request: Request, deadline: Duration) -> Result<Bytes, PeerError> {
        let (length, max) = (request.body.len(), self.body_max);
        if length > max {
            return Err(PeerError::NotSent(format!(
                "the request has {length} bytes, and at most {max} are allowed"
            )));
        }
        let held = self.capacity.take(length).map_err(PeerError::NotSent)?;
        let until = Instant::now() + deadline;
        let link = timeout_at(until, self.link()).await.map_err(|_| {
            PeerError::NotSent(format!("server {} was not connected before the deadline", self.to))
        })??;
        let mut pending = link.send(request, held)?;
        match timeout_at(until, pending.answer()).await {
            Ok(answer) => answer,
            Err(_) => Err(pending.give_up()),
        }
    }

    /// The live connection, as soon as there is one.
    async fn link(&self) -> Result<Arc<Link>, PeerError> {
        if let State::Up(link) = &*self.state.borrow() {
            return Ok(Arc::clone(link));
        }
        let mut states = self.state.subscribe();
        let decided = states.wait_for(|state| !matches!(state, State::Connecting)).await;
        match decided.map(|state| state.clone()) {
            Ok(State::Up(link)) => Ok(link),
            Ok(State::Down(error)) => Err(error),
            Ok(State::Connecting) | Err(_) => Err(PeerError::NotSent("it is not connected".to_owned())),
        }
    }

    /// Keeps it connected. Never returns; dropped, it fails all calls.
    pub(crate) async fn keep(self: Arc<Self>, core: Arc<Core>) {
        let _closes = Closes(&self);
        let mut retries = Retries::new(core.limits.retry_max);
        loop {
            match dial(&core, self.to, &self.address, Purpose::Requests(self.traffic)).await {
                Ok(connection) => {
                    let began = Instant::now();
                    let why = self.run(&core, connection).await;
                    // A connection that ends at once, again and again, is dialled as seldom as one that fails.
                    if began.elapsed() > core.limits.retry_max {
                        retries = Retries::new(core.limits.retry_max);
                    } else {
                        retries.failures += 1;
                    }
                    let once = retries.failures < 2;
                    let again = if once { State::Connecting } else { State::Down(PeerError::NotSent(why)) };
                    self.state.send_replace(again);
                }
                Err(error) => {
                    retries.failures += 1;
                    self.report(&core, &error);
                    self.state.send_replace(State::Down(error));
                }
            }
            sleep(retries.pause()).await;
        }
    }

    /// Serves a connection until it ends. Returns why it did.
    async fn run(&self, core: &Core, connection: Connection) -> String {
        let Connection { mut reader, writer, cell, .. } = connection;
        let (queue, frames) = mpsc::unbounded_channel();
        let link = Arc::new(Link::new(queue.clone()));
        let _ends = Ends(&link);
        let pings = Pings::new(core, &cell, &queue);
        reader.max = self.body_max;
        core.reports.over(&self.about());
        // As in `report`.
        if self.traffic != Traffic::Commands
            && let Some(lasted) = self.reach.reached()
        {
            tracing::info!("reached {} again after {} s", self.about(), lasted.as_secs());
        }
        tracing::info!("connected to {} ({})", self.about(), Purpose::Requests(self.traffic).word());
        self.state.send_replace(State::Up(Arc::clone(&link)));
        let error = tokio::select! {
            error = write_queue(writer, frames, self.traffic) => error,
            error = link.read(&mut reader, &pings) => error,
            error = pings.send() => error,
            () = cell.ended() => WireError::Closed,
        };
        let why = error.to_string();
        link.end(&why);
        report_end(self.to, Purpose::Requests(self.traffic), &error);
        why
    }

    fn about(&self) -> String {
        format!("server {} at {}", self.to, self.address)
    }

    fn report(&self, core: &Core, error: &PeerError) {
        let (about, reason) = (self.about(), error.to_string());
        if matches!(error, PeerError::Refused(_)) {
            if core.reports.is_new(&about, &reason) {
                tracing::warn!("failed to connect to {about}: {reason}");
            }
            return;
        }
        if self.traffic == Traffic::Commands {
            // The other connections say whether the server is reached: this one may only have waited for its runtime.
            tracing::debug!("failed to connect to {about}: {reason}");
            return;
        }
        match self.reach.failed() {
            Failure::First => {
                tracing::info!("{about} cannot be reached now: {reason}");
                core.handler.lost(self.to);
            }
            Failure::Repeated => tracing::debug!("failed to connect to {about}: {reason}"),
            Failure::Lasting(lasted) => {
                tracing::warn!("{about} has not been reached for {} s: {reason}", lasted.as_secs());
            }
        }
    }
}

/// Logs the end of a connection after its handshake.
pub(crate) fn report_end(server: u64, purpose: Purpose, error: &WireError) {
    let purpose = purpose.word();
    if error.is_violation() {
        tracing::error!("closed the connection with server {server} ({purpose}): {error}");
    } else {
        tracing::info!("the connection with server {server} ended ({purpose}): {error}");
    }
}

/// The failures in a row, and the pauses after them.
struct Retries {
    failures: u32,
    /// Without an end: doubled each time, and varied from a half of that to the whole.
    pauses: ExponentialBackoff,
    max: Duration,
}

impl Retries {
    /// No failure yet. No pause is longer than `max`.
    fn new(max: Duration) -> Self {
        let pauses = ExponentialBuilder::new()
            .with_min_delay(RETRY_MIN.min(max) / 2)
            .with_max_delay(max / 2)
            .with_jitter()
            .without_max_times()
            .build();
        Self { failures: 0, pauses, max }
    }

    /// The pause before the next attempt; none if nothing has failed.
    fn pause(&mut self) -> Duration {
        if self.failures == 0 { Duration::ZERO } else { self.pauses.next().unwrap_or(self.max) }
    }
}

/// Ends the calls of a dialer when it is dropped.
struct Closes<'a>(&'a Dialer);

impl Drop for Closes<'_> {
    fn drop(&mut self) {
        self.0.state.send_replace(State::Down(PeerError::NotSent("the transport was closed".to_owned())));
    }
}

/// Ends a connection when it is dropped. Declared before what writes, so that it runs after it.
struct Ends<'a>(&'a Link);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.end("the transport was closed");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_their_maximum() {
        let max = Duration::from_secs(1);
        let mut retries = Retries::new(max);
        assert_eq!(retries.pause(), Duration::ZERO);
        for failures in 1..200 {
            retries.failures = failures;
            let pause = retries.pause();
            assert!(pause <= max && pause >= RETRY_MIN / 2, "{failures}: {pause:?}");
            assert!(failures < 7 || pause >= max / 2, "{failures}: {pause:?}");
        }
    }
}
