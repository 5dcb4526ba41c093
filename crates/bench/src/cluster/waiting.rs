//! Sessions that wait while the cluster changes: for a decision at a gate, and for a timer that is due afterwards.

use anyhow::{Context as _, ensure};
use std::time::{Duration, Instant};
use switchward_api::v1::api_key_service_client::ApiKeyServiceClient;
use switchward_api::v1::gate_service_client::GateServiceClient;
use switchward_api::v1::session_service_client::SessionServiceClient;
use switchward_api::v1::{self, GateDecision, GateStatus, KeyRole};
use tokio::time::sleep;
use tonic::transport::Channel;
use tonic::{Request, Status};

use super::servers::{KEY, Servers, authorized};
use crate::load::{bearer, channel_to, deploy_to};
use crate::timers::{nap, since};

/// A state that waits for the decision of one person.
const DEFINITION: &str = r#"{ "name": "release",
  "states": [
    { "name": "decide", "type": "approval", "approvers": ["approver@example.com"],
      "request_template": { "subject_template": "Release?", "body_template": "The tests have passed." } },
    { "name": "done", "type": "conversation" },
    { "name": "stopped", "type": "conversation" }
  ],
  "transitions": [
    { "from": "decide", "port": "approved", "to": "done" },
    { "from": "decide", "port": "rejected", "to": "stopped" }
  ] }"#;
/// The person who decides, and the state after their approval.
const APPROVER: &str = "approver@example.com";
const APPROVED: &str = "done";
/// The definition of the sessions with a timer.
const TIMER: &str = "growth-nap";
/// How late a timer may be.
const LATE_MAX: Duration = Duration::from_secs(10);
/// The pause between two looks at a session with a timer.
const LOOK: Duration = Duration::from_millis(100);

/// Sessions with an open gate.
pub(super) struct Gates {
    /// The secret of the key of the person who decides.
    secret: String,
    /// Each session with its gate.
    open: Vec<(String, String)>,
}

impl Gates {
    /// Starts this many sessions, each of which then waits at a gate.
    ///
    /// # Errors
    /// A call fails.
    pub(super) async fn open(servers: &Servers, count: usize) -> anyhow::Result<Self> {
        deploy_to(&servers.address(1), KEY, "release.json", DEFINITION).await?;
        let create = v1::CreateApiKeyRequest {
            role: KeyRole::Approver.into(),
            subject: APPROVER.into(),
            ..v1::CreateApiKeyRequest::default()
        };
        let mut keys = ApiKeyServiceClient::new(channel_to(&servers.address(1)).await?);
        let secret = keys.create_api_key(authorized(create)?).await?.into_inner().secret;
        let (mut clients, mut open) = (clients(&servers.addresses()).await?, Vec::new());
        for number in 0..count {
            let session = start(&mut clients, "release", number).await?;
            let gate = session.waiting_on.first().context("a session does not wait at its gate")?;
            open.push((session.name, gate.name.clone()));
        }
        Ok(Self { secret, open })
    }

    /// Decides all gates at the servers at these addresses in turn; returns how many of the sessions then went on.
    ///
    /// # Errors
    /// A server cannot be reached, or a gate is not decided.
    pub(super) async fn decide(self, addresses: &[String]) -> anyhow::Result<usize> {
        let key = bearer(&self.secret)?;
        let (mut sessions, mut gates, mut moved) = (clients(addresses).await?, Vec::new(), 0);
        for address in addresses {
            gates.push(GateServiceClient::new(channel_to(address).await?));
        }
        for (number, (session, gate)) in self.open.into_iter().enumerate() {
            let decide = v1::DecideGateRequest {
                name: gate,
                decision: GateDecision::Approve.into(),
                request_id: format!("decide-{number}"),
                ..v1::DecideGateRequest::default()
            };
            let mut request = Request::new(decide);
            request.metadata_mut().insert("authorization", key.clone());
            let at = number % addresses.len();
            let decided = gates[at].decide_gate(request).await.context("a gate is not decided")?.into_inner();
            let decided = decided.gate.context("the reply to a decision has no gate")?;
            let session = read(&mut sessions[at], &session).await?;
            moved += usize::from(decided.status() == GateStatus::Decided && session.at == [APPROVED]);
        }
        Ok(moved)
    }
}

/// Sessions with a timer.
pub(super) struct Timers {
    names: Vec<String>,
    wait: Duration,
    /// When the last of them was started.
    started: Instant,
}

impl Timers {
    /// Starts this many sessions, each of which ends after `wait`: a multiple of 3.6 s, as definitions say it in hours.
    ///
    /// # Errors
    /// A call fails.
    pub(super) async fn start(servers: &Servers, count: usize, wait: Duration) -> anyhow::Result<Self> {
        let definition = nap(TIMER, u64::try_from(wait.as_millis())?);
        deploy_to(&servers.address(1), KEY, "growth-nap.json", &definition).await?;
        let (mut clients, mut names) = (clients(&servers.addresses()).await?, Vec::new());
        for number in 0..count {
            names.push(start(&mut clients, TIMER, number).await?.name);
        }
        Ok(Self { names, wait, started: Instant::now() })
    }

    /// How many have not fired yet, as the servers at these addresses say it.
    ///
    /// # Errors
    /// A call fails.
    pub(super) async fn pending(&self, addresses: &[String]) -> anyhow::Result<usize> {
        let (mut clients, mut pending) = (clients(addresses).await?, 0);
        for (number, name) in self.names.iter().enumerate() {
            let session = read(&mut clients[number % addresses.len()], name).await?;
            pending += usize::from(session.end_time.is_none());
        }
        Ok(pending)
    }

    /// Waits until all timers are due, and returns how many have fired: none early, and none later than ten seconds.
    ///
    /// # Errors
    /// A call fails.
    pub(super) async fn fired(self, addresses: &[String]) -> anyhow::Result<usize> {
        let (mut clients, due) = (clients(addresses).await?, self.started + self.wait);
        sleep(due.saturating_duration_since(Instant::now())).await;
        let mut fired = 0;
        for (number, name) in self.names.iter().enumerate() {
            fired += usize::from(ended(&mut clients[number % addresses.len()], name, self.wait, due).await?);
        }
        Ok(fired)
    }
}

/// Returns true if the timer of a session fired in time.
async fn ended(
    client: &mut SessionServiceClient<Channel>,
    name: &str,
    wait: Duration,
    due: Instant,
) -> anyhow::Result<bool> {
    loop {
        let session = read(client, name).await?;
        if session.end_time.is_some() {
            let waited = since(session.end_time)?.saturating_sub(since(session.create_time)?);
            return Ok(is_in_time(waited, wait));
        }
        if due.elapsed() > LATE_MAX {
            return Ok(false);
        }
        sleep(LOOK).await;
    }
}

/// Returns true if a session that waits for `wait` ended neither early nor too late.
fn is_in_time(waited: Duration, wait: Duration) -> bool {
    (wait..=wait + LATE_MAX).contains(&waited)
}

/// A client of the server at each of these addresses.
async fn clients(addresses: &[String]) -> anyhow::Result<Vec<SessionServiceClient<Channel>>> {
    ensure!(!addresses.is_empty(), "there are no servers");
    let mut clients = Vec::new();
    for address in addresses {
        clients.push(SessionServiceClient::new(channel_to(address).await?));
    }
    Ok(clients)
}

/// Starts a session at one of the servers.
async fn start(
    clients: &mut [SessionServiceClient<Channel>],
    definition: &str,
    number: usize,
) -> anyhow::Result<v1::Session> {
    let id = format!("{definition}-{number}");
    let start = v1::StartSessionRequest {
        definition: definition.to_owned(),
        session_id: id.clone(),
        request_id: id,
        ..v1::StartSessionRequest::default()
    };
    let at = number % clients.len();
    let started = clients[at].start_session(authorized(start)?).await?.into_inner();
    started.session.context("the reply to a start has no session")
}

async fn read(client: &mut SessionServiceClient<Channel>, name: &str) -> anyhow::Result<v1::Session> {
    let get = v1::GetSessionRequest { name: name.to_owned(), ..v1::GetSessionRequest::default() };
    let found = client.get_session(authorized(get)?).await;
    let found = found.map_err(|status: Status| anyhow::anyhow!("{name} cannot be read: {status}"))?;
    found.into_inner().session.context("the reply has no session")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_is_in_time_if_it_is_neither_early_nor_late() {
        let wait = Duration::from_secs(36);
        let early = wait.checked_sub(Duration::from_millis(1)).unwrap();
        assert!(is_in_time(wait, wait) && is_in_time(wait + LATE_MAX, wait));
        assert!(!is_in_time(early, wait));
        assert!(!is_in_time(wait + LATE_MAX + Duration::from_millis(1), wait));
    }
}
