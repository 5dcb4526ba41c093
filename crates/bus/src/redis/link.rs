//! The way to the server: one connection that all share, connections of their own for those who wait, and pauses between
//! tries where there is no way.
//!
//! Chosen: our own, over the library's plain connections. Rejected: the library's connection manager, which lets callers
//! wait behind its tries, tries again with a wrong password, and stays with a server that has become a replica.

use std::collections::BTreeMap;
use std::time::Duration;

use ::redis::aio::MultiplexedConnection;
use ::redis::{AsyncConnectionConfig, Client, RedisError, RedisResult};
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};

use super::fault::{Fault, What};
use crate::error::BusError;
use crate::limits::{
    BACKOFF_MS, BACKOFF_MS_MAX, BLOCK_MS_MAX, COMMANDS_MAX, CONNECT_MS, REFUSED_RETRY_MS,
    SPARE_CONNECTIONS_MAX, TOLD_AGAIN_MS,
};

/// The connection that all share, with its number: only the one that failed is given up.
pub(super) struct Shared {
    pub(super) connection: MultiplexedConnection,
    number: u64,
}

/// A connection of one who waits.
pub(super) struct Own {
    pub(super) connection: MultiplexedConnection,
    /// Whether it was just made; one that lay there may have ended long ago.
    pub(super) fresh: bool,
}

pub(super) struct Link {
    client: Client,
    place: String,
    response: Duration,
    state: Mutex<State>,
    /// Held by who connects the shared connection; the others wait and have it then.
    dialing: Semaphore,
}

#[derive(Default)]
struct State {
    shared: Option<(u64, MultiplexedConnection)>,
    spare: Vec<MultiplexedConnection>,
    number: u64,
    /// Tries to connect that failed, since the last that did not.
    failures: u32,
    /// Before this time nobody tries to connect, and why.
    pause: Option<(Instant, &'static str)>,
    /// Whether it was told that there is no way, and not yet that there is one again.
    away: bool,
    /// When each thing was told last.
    told: BTreeMap<&'static str, Instant>,
}

impl Link {
    pub(super) fn new(client: Client, place: String, response: Duration) -> Self {
        Self { client, place, response, state: Mutex::default(), dialing: Semaphore::new(1) }
    }

    /// The connection that all share, made where there is none.
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

    /// A connection for waiting.
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

    /// Keeps a connection for waiting for the next who waits.
    pub(super) fn spare(&self, own: Own) {
        let mut state = self.state.lock();
        if state.spare.len() < SPARE_CONNECTIONS_MAX {
            state.spare.push(own.connection);
        }
    }

    /// Ends the connections that nobody uses.
    pub(super) fn drop_spare(&self) {
        self.state.lock().spare.clear();
    }

    /// Ends every connection; those in use with their users.
    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        state.shared = None;
        state.spare.clear();
    }

    /// What a failure on the shared connection means to the caller; the connection is given up where it must be.
    pub(super) fn failed(&self, shared: &Shared, error: &RedisError) -> BusError {
        let fault = Fault::read(error);
        if matches!(fault.what, What::Lost | What::Unfit | What::Password) {
            let mut state = self.state.lock();
            state.shared.take_if(|(number, _)| *number == shared.number);
        }
        tracing::debug!(place = self.place, %error, "Redis did not do it");
        self.refused(fault)
    }

    /// The same on a connection for waiting.
    pub(super) fn failed_waiting(&self, error: &RedisError) -> BusError {
        tracing::debug!(place = self.place, %error, "Redis did not let us wait");
        self.refused(Fault::read(error))
    }

    /// Connects, and makes sure that the other side is there and lets us in. The error is as told, and a pause begins.
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
                tracing::debug!(place = self.place, %error, "failed to connect to Redis");
                Fault::read(&error)
            }
            Err(_) => Fault::SILENT,
        };
        self.pause(fault);
        Err(fault)
    }

    /// Where it leads.
    pub(super) fn place(&self) -> &str {
        &self.place
    }

    fn known(&self) -> Result<Option<Shared>, BusError> {
        let shared = self.state.lock().shared.clone();
        match shared {
            Some((number, connection)) => Ok(Some(Shared { connection, number })),
            None => self.pausing().map(|()| None),
        }
    }

    /// An error while nobody may try to connect.
    fn pausing(&self) -> Result<(), BusError> {
        let Some((until, told)) = self.state.lock().pause else { return Ok(()) };
        match until.checked_duration_since(Instant::now()) {
            Some(left) if !left.is_zero() => Err(self.error(told, left)),
            _ => Ok(()),
        }
    }

    fn pause(&self, fault: Fault) {
        let mut state = self.state.lock();
        let pause = BACKOFF_MS.saturating_mul(1 << state.failures.min(16)).min(BACKOFF_MS_MAX);
        state.failures = state.failures.saturating_add(1);
        state.pause = Some((Instant::now() + Duration::from_millis(pause), fault.told));
        state.away = true;
        drop(state);
        self.tell(fault);
    }

    fn reached(&self) {
        let mut state = self.state.lock();
        state.failures = 0;
        state.pause = None;
        if std::mem::take(&mut state.away) {
            state.told.clear();
            drop(state);
            tracing::info!(place = self.place, "Redis is reached again");
        }
    }

    /// Tells what is wrong, unless it was told a short time ago.
    fn tell(&self, fault: Fault) {
        let now = Instant::now();
        let mut state = self.state.lock();
        let again = Duration::from_millis(TOLD_AGAIN_MS);
        let told = state.told.get(fault.told).is_some_and(|at| now.duration_since(*at) < again);
        if told {
            return;
        }
        state.told.insert(fault.told, now);
        drop(state);
        match fault.what {
            What::Password => tracing::error!(place = self.place, "Redis is of no use: {}", fault.told),
            What::Lost | What::Unfit | What::Server | What::Group => {
                tracing::warn!(
                    place = self.place,
                    "Redis is of no use now, what goes out waits: {}",
                    fault.told
                );
            }
        }
    }

    fn refused(&self, fault: Fault) -> BusError {
        // Of a connection that ended only that is of interest that there is no other.
        if fault.what != What::Lost {
            self.tell(fault);
        }
        self.error(fault.told, Duration::from_millis(REFUSED_RETRY_MS))
    }

    fn unreachable(&self, fault: Fault) -> BusError {
        let left = self.pausing().err();
        left.unwrap_or_else(|| self.error(fault.told, Duration::from_millis(BACKOFF_MS)))
    }

    fn error(&self, told: &str, retry_after: Duration) -> BusError {
        BusError::Unreachable { told: format!("Redis at {}: {told}", self.place), retry_after }
    }
}
