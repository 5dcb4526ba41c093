//! The connections to the server: one that all callers share, separate ones for blocking reads, and pauses between failed
//! attempts to connect.
//!
//! Chosen: our own, over the library's plain connections. Rejected: the library's connection manager, which lets callers
//! wait for its attempts, tries again with a wrong password, and stays with a server that has become a replica.

use std::collections::BTreeMap;
use std::time::Duration;

use ::redis::aio::MultiplexedConnection;
use ::redis::{AsyncConnectionConfig, Client, RedisError, RedisResult};
use backon::{BackoffBuilder as _, ExponentialBackoff, ExponentialBuilder};
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};

use super::fault::{Fault, What};
use crate::error::BusError;
use crate::limits::{
    BACKOFF_MS, BACKOFF_MS_MAX, BLOCK_MS_MAX, COMMANDS_MAX, CONNECT_MS, REFUSED_RETRY_MS, REPORT_INTERVAL_MS,
    SPARE_CONNECTIONS_MAX,
};

/// The longest pause between two attempts to connect.
const PAUSE_MAX: Duration = Duration::from_millis(BACKOFF_MS_MAX);
/// The pauses after failed attempts to connect, without an end.
const PAUSES: ExponentialBuilder = ExponentialBuilder::new()
    .with_min_delay(Duration::from_millis(BACKOFF_MS))
    .with_max_delay(PAUSE_MAX)
    .without_max_times();

/// The shared connection, with its number: only the one that failed is dropped.
pub(super) struct Shared {
    pub(super) connection: MultiplexedConnection,
    number: u64,
}

/// A connection for blocking reads.
pub(super) struct Own {
    pub(super) connection: MultiplexedConnection,
    /// Whether it is new; a spare one may have ended long ago.
    pub(super) fresh: bool,
}

pub(super) struct Link {
    client: Client,
    address: String,
    response: Duration,
    state: Mutex<State>,
    /// Held by the task that opens the shared connection; the others wait for it.
    dialing: Semaphore,
}

#[derive(Default)]
struct State {
    shared: Option<(u64, MultiplexedConnection)>,
    spare: Vec<MultiplexedConnection>,
    number: u64,
    /// The pauses that follow further failed attempts to connect; `None` after a success.
    pauses: Option<ExponentialBackoff>,
    /// No attempt to connect before this time, and why.
    pause: Option<(Instant, &'static str)>,
    /// Whether an outage was reported, and its end was not yet.
    away: bool,
    /// When each fault was last reported.
    reported: BTreeMap<&'static str, Instant>,
}

impl Link {
    pub(super) fn new(client: Client, address: String, response: Duration) -> Self {
        Self { client, address, response, state: Mutex::default(), dialing: Semaphore::new(1) }
    }

    /// Returns the shared connection, and opens it if there is none.
    pub(super) async fn shared(&self) -> Result<Shared, BusError> {
        if let Some(shared) = self.known()? {
            return Ok(shared);
        }
        let _one = self.dialing.acquire().await;
        if let Some(shared) = self.known()? {
            return Ok(shared);
        }
        let connection = self.dial(self.response).await.map_err(|fault| self.unreachable(fault))?;
        let mut state = self.state.lock();
        state.number += 1;
        let number = state.number;
        state.shared = Some((number, connection.clone()));
        Ok(Shared { connection, number })
    }

    /// Returns a connection for blocking reads.
    pub(super) async fn own(&self) -> Result<Own, BusError> {
        let spare = self.state.lock().spare.pop();
        if let Some(connection) = spare {
            return Ok(Own { connection, fresh: false });
        }
        self.pausing()?;
        let response = self.response + Duration::from_millis(BLOCK_MS_MAX);
        let connection = self.dial(response).await.map_err(|fault| self.unreachable(fault))?;
        Ok(Own { connection, fresh: true })
    }

    /// Keeps a connection for the next blocking read.
    pub(super) fn spare(&self, own: Own) {
        let mut state = self.state.lock();
        if state.spare.len() < SPARE_CONNECTIONS_MAX {
            state.spare.push(own.connection);
        }
    }

    /// Closes the spare connections.
    pub(super) fn drop_spare(&self) {
        self.state.lock().spare.clear();
    }

    /// Closes every connection; those in use end with their users.
    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        state.shared = None;
        state.spare.clear();
    }

    /// Maps a failure on the shared connection to the caller's error; drops the connection if necessary.
    pub(super) fn failed(&self, shared: &Shared, error: &RedisError) -> BusError {
        let fault = Fault::read(error);
        if matches!(fault.what, What::Lost | What::Unfit | What::Password) {
            let mut state = self.state.lock();
            state.shared.take_if(|(number, _)| *number == shared.number);
        }
        tracing::debug!(address = self.address, %error, "a command to Redis failed");
        self.refused(fault)
    }

    /// Maps a failure on a connection for blocking reads to the caller's error.
    pub(super) fn failed_waiting(&self, error: &RedisError) -> BusError {
        tracing::debug!(address = self.address, %error, "a blocking read from Redis failed");
        self.refused(Fault::read(error))
    }

    /// Connects, and checks that the server answers and accepts the password. A failure is reported, and begins a pause.
    pub(super) async fn dial(&self, response: Duration) -> Result<MultiplexedConnection, Fault> {
        let connect = Duration::from_millis(CONNECT_MS);
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(connect))
            .set_response_timeout(Some(response))
            .set_pipeline_buffer_size(COMMANDS_MAX);
        let dialled = async {
            let mut connection = self.client.get_multiplexed_async_connection_with_config(&config).await?;
            let _pong: ::redis::Value = ::redis::cmd("PING").query_async(&mut connection).await?;
            RedisResult::Ok(connection)
        };
        let fault = match timeout(connect.min(response), dialled).await {
            Ok(Ok(connection)) => {
                self.reached();
                return Ok(connection);
            }
            Ok(Err(error)) => {
                tracing::debug!(address = self.address, %error, "failed to connect to Redis");
                Fault::read(&error)
            }
            Err(_) => Fault::SILENT,
        };
        self.pause(fault);
        Err(fault)
    }

    /// Returns the server's address without secrets.
    pub(super) fn address(&self) -> &str {
        &self.address
    }

    fn known(&self) -> Result<Option<Shared>, BusError> {
        let shared = self.state.lock().shared.clone();
        match shared {
            Some((number, connection)) => Ok(Some(Shared { connection, number })),
            None => self.pausing().map(|()| None),
        }
    }

    /// Fails during a pause.
    fn pausing(&self) -> Result<(), BusError> {
        let Some((until, message)) = self.state.lock().pause else { return Ok(()) };
        match until.checked_duration_since(Instant::now()) {
            Some(left) if !left.is_zero() => Err(self.error(message, left)),
            _ => Ok(()),
        }
    }

    fn pause(&self, fault: Fault) {
        let mut state = self.state.lock();
        let pause = state.pauses.get_or_insert_with(|| PAUSES.build()).next().unwrap_or(PAUSE_MAX);
        state.pause = Some((Instant::now() + pause, fault.message));
        state.away = true;
        drop(state);
        self.report(fault);
    }

    fn reached(&self) {
        let mut state = self.state.lock();
        state.pauses = None;
        state.pause = None;
        if std::mem::take(&mut state.away) {
            state.reported.clear();
            drop(state);
            tracing::info!(address = self.address, "Redis is available again");
        }
    }

    /// Logs a fault, unless it was logged within [`REPORT_INTERVAL_MS`].
    fn report(&self, fault: Fault) {
        let now = Instant::now();
        let mut state = self.state.lock();
        let again = Duration::from_millis(REPORT_INTERVAL_MS);
        let reported = state.reported.get(fault.message).is_some_and(|at| now.duration_since(*at) < again);
        if reported {
            return;
        }
        state.reported.insert(fault.message, now);
        drop(state);
        match fault.what {
            What::Password => {
                tracing::error!(address = self.address, "Redis cannot be used: {}", fault.message)
            }
            What::Lost | What::Unfit | What::Server | What::Group => {
                tracing::warn!(
                    address = self.address,
                    "Redis is unavailable; deliveries are queued: {}",
                    fault.message
                );
            }
        }
    }

    fn refused(&self, fault: Fault) -> BusError {
        // A lost connection matters only if there is no new one.
        if fault.what != What::Lost {
            self.report(fault);
        }
        self.error(fault.message, Duration::from_millis(REFUSED_RETRY_MS))
    }

    fn unreachable(&self, fault: Fault) -> BusError {
        let left = self.pausing().err();
        left.unwrap_or_else(|| self.error(fault.message, Duration::from_millis(BACKOFF_MS)))
    }

    fn error(&self, message: &str, retry_after: Duration) -> BusError {
        BusError::Unreachable { message: format!("Redis at {}: {message}", self.address), retry_after }
    }
}
