//! The measured tenant: reads and writes at a constant rate, each timed from when it was due, so that a delay counts for all
//! later calls.

use anyhow::Context as _;
use hdrhistogram::Histogram;
use std::time::Duration;
use switchward_api::v1;
use switchward_api::v1::session_service_client::SessionServiceClient;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tonic::Request;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Channel, Endpoint};

use crate::load::bearer;

/// Reads a second, and as many writes.
const RATE: u64 = 100;
const CONNECTIONS: usize = 4;
const LATENCY_MAX_US: u64 = 60_000_000;
/// Sessions that are read.
const READ: u64 = 100;

/// A caller with a key of the tenant.
pub(crate) struct Measured {
    channels: Vec<Channel>,
    key: MetadataValue<Ascii>,
}

/// How long reads and writes took, microseconds.
pub(crate) struct Took {
    pub(crate) reads: Histogram<u64>,
    pub(crate) writes: Histogram<u64>,
}

impl Took {
    fn none() -> anyhow::Result<Self> {
        let none = || Histogram::new_with_max(LATENCY_MAX_US, 3);
        Ok(Self { reads: none()?, writes: none()? })
    }
}

fn name(number: u64) -> String {
    format!("read-{number}")
}

impl Measured {
    /// Connects, and starts the sessions that are read.
    pub(crate) async fn new(address: &str, key: &str) -> anyhow::Result<Self> {
        let mut channels = Vec::new();
        for _ in 0..CONNECTIONS {
            channels.push(Endpoint::from_shared(address.to_owned())?.tcp_nodelay(true).connect().await?);
        }
        let measured = Self { channels, key: bearer(key)? };
        for number in 0..READ {
            let start = v1::StartSessionRequest { session_id: name(number), ..start() };
            measured.client(0).start_session(measured.request(start)).await.context("failed to start")?;
        }
        Ok(measured)
    }

    fn client(&self, number: u64) -> SessionServiceClient<Channel> {
        let at = usize::try_from(number).unwrap_or_default() % self.channels.len();
        SessionServiceClient::new(self.channels[at].clone())
    }

    fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        request.metadata_mut().insert("authorization", self.key.clone());
        request
    }

    /// Reads and writes for this long. Any refusal fails it.
    pub(crate) async fn measure(&self, time: Duration) -> anyhow::Result<Took> {
        let begun = Instant::now();
        let every = Duration::from_secs(1) / u32::try_from(2 * RATE)?;
        let mut calls = JoinSet::new();
        for number in 0.. {
            let due = begun + every * u32::try_from(number)?;
            if due >= begun + time {
                break;
            }
            sleep_until(due).await;
            let mut client = self.client(number);
            if number % 2 == 0 {
                let name = name(number / 2 % READ);
                let get = self.request(v1::GetSessionRequest { name, ..v1::GetSessionRequest::default() });
                calls.spawn(async move {
                    client.get_session(get).await?;
                    anyhow::Ok((true, due.elapsed()))
                });
            } else {
                let start = self.request(start());
                calls.spawn(async move {
                    client.start_session(start).await?;
                    anyhow::Ok((false, due.elapsed()))
                });
            }
        }
        let mut took = Took::none()?;
        while let Some(call) = calls.join_next().await {
            let (read, elapsed) = call??;
            let of = if read { &mut took.reads } else { &mut took.writes };
            of.saturating_record(u64::try_from(elapsed.as_micros())?);
        }
        Ok(took)
    }
}

fn start() -> v1::StartSessionRequest {
    v1::StartSessionRequest { definition: "deploy-gate".into(), ..v1::StartSessionRequest::default() }
}
