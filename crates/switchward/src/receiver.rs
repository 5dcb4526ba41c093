//! A receiver of this tenant's webhooks on this machine: what is verified is forwarded, everything else is refused.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use anyhow::Context as _;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use serde_json::Value;
use switchward_delivery::guard::{Egress, Policies, RulesUnknown, Target, TargetHost};
use switchward_delivery::http::{Client, Config, Request};
use switchward_webhook::limits::IN_BODY_BYTES_MAX;
use switchward_webhook::{Headers, SourceKind, Unproven, verify};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Messages that wait to be read; beyond it the sender has to retry.
const WAITING_MAX: usize = 256;
/// How long the target that messages are forwarded to may take.
const FORWARD_MAX: Duration = Duration::from_secs(10);

/// Egress rules that allow this machine only.
pub(crate) struct Here;

impl Policies for Here {
    fn egress(&self, _tenant: u32) -> Result<Arc<Egress>, RulesUnknown> {
        let ports = (1..=u16::MAX).collect();
        Ok(Arc::new(Egress {
            allow_loopback: true,
            allow_http: true,
            ports,
            allow_private: false,
            allowed_hosts: None,
        }))
    }
}

/// Refuses an address that messages cannot be forwarded to: an invalid one, or one of another machine.
///
/// # Errors
/// In words.
pub(crate) fn near(to: &str) -> Result<(), String> {
    let message = "cannot be checked";
    let egress = Here.egress(0).map_err(|_| message.to_owned())?;
    let target = Target::read(to, &egress).map_err(|refused| refused.to_string())?;
    let here = match target.host() {
        TargetHost::Name(name) => name == "localhost" || name.ends_with(".localhost"),
        TargetHost::Address(address) => address.is_loopback(),
    };
    let message = || format!("{to} is on another machine; use 127.0.0.1 or localhost");
    if here { Ok(()) } else { Err(message()) }
}

/// A message that came.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Received {
    /// Its id, the same however often it comes.
    pub(crate) id: String,
    /// Its body; null if that is no JSON.
    pub(crate) body: Value,
    /// Why it is not believed; `None` if its signature is good.
    pub(crate) refused: Option<String>,
    /// The answer of the target it was forwarded to; `None` if it was not forwarded.
    pub(crate) forwarded: Option<Result<u16, String>>,
}

impl Received {
    /// Its type, like `session.completed`.
    pub(crate) fn kind(&self) -> &str {
        self.body["type"].as_str().unwrap_or_default()
    }
}

#[derive(Clone)]
struct ReceiverState {
    secret: Arc<OnceLock<String>>,
    news: mpsc::Sender<Received>,
    forward: Option<(Client, String)>,
}

/// A receiver at work, until it is dropped.
pub(crate) struct Receiver {
    /// Where it listens.
    pub(crate) url: String,
    secret: Arc<OnceLock<String>>,
    news: mpsc::Receiver<Received>,
    served: JoinHandle<()>,
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.served.abort();
    }
}

impl Receiver {
    /// Listens on this machine, on any port if it is 0, and forwards what is verified to this address.
    ///
    /// # Errors
    /// The port is taken.
    pub(crate) async fn listen(port: u16, forward: Option<String>) -> anyhow::Result<Self> {
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let listener = TcpListener::bind(address).await;
        let listener = listener.with_context(|| format!("failed to listen on {address}"))?;
        let url = format!("http://{}/webhooks", listener.local_addr()?);
        let (news, received) = mpsc::channel(WAITING_MAX);
        let forward = match forward {
            Some(to) => Some((Client::new(Config::new(Arc::new(Here)))?, to)),
            None => None,
        };
        let secret = Arc::new(OnceLock::new());
        let state = ReceiverState { secret: Arc::clone(&secret), news, forward };
        let app = Router::new()
            .route("/webhooks", post(take))
            .layer(DefaultBodyLimit::max(IN_BODY_BYTES_MAX))
            .with_state(state);
        let served = tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, app).await {
                tracing::error!(%error, "the receiver has stopped");
            }
        });
        Ok(Self { url, secret, news: received, served })
    }

    /// Believes what is signed with this secret; the first one counts.
    pub(crate) fn knows(&self, secret: &str) {
        let _ = self.secret.set(secret.to_owned());
    }

    /// The next message.
    ///
    /// # Errors
    /// Nobody listens any more.
    pub(crate) async fn next(&mut self) -> anyhow::Result<Received> {
        self.news.recv().await.context("the receiver has stopped")
    }
}

async fn take(State(state): State<ReceiverState>, headers: HeaderMap, body: Bytes) -> StatusCode {
    // What comes before the secret is known comes again.
    let Some(secret) = state.secret.get() else { return StatusCode::SERVICE_UNAVAILABLE };
    let Ok(permit) = state.news.try_reserve() else { return StatusCode::SERVICE_UNAVAILABLE };
    let mut received = verified(secret, &headers, &body);
    let mut status =
        if received.refused.is_some() { StatusCode::UNAUTHORIZED } else { StatusCode::NO_CONTENT };
    if let (Some((client, to)), None) = (&state.forward, &received.refused) {
        let forwarded = forward(client, to, &headers, &body).await;
        let code = forwarded.as_ref().ok().and_then(|code| StatusCode::from_u16(*code).ok());
        status = code.unwrap_or(StatusCode::BAD_GATEWAY);
        received.forwarded = Some(forwarded);
    }
    permit.send(received);
    status
}

/// Looks at a message: whether this secret has signed it.
pub(crate) fn verified(secret: &str, headers: &HeaderMap, body: &[u8]) -> Received {
    let pairs: Vec<(&str, &[u8])> =
        headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let headers = Headers::new(&pairs);
    let verified = verify(SourceKind::StandardWebhooks, &[secret], headers, body, now, Unproven::Refused);
    let (id, refused) = match verified {
        Ok(verified) => (verified.id.unwrap_or_default(), None),
        Err(why) => (String::new(), Some(why.to_string())),
    };
    Received { id, body: serde_json::from_slice(body).unwrap_or_default(), refused, forwarded: None }
}

/// Forwards a message as it came.
async fn forward(client: &Client, to: &str, headers: &HeaderMap, body: &[u8]) -> Result<u16, String> {
    let passed = |name: &str| name.starts_with("webhook-") || name == "content-type" || name == "traceparent";
    let headers = headers.iter().filter(|(name, _)| passed(name.as_str()));
    let headers =
        headers.filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.to_owned())));
    let request = Request {
        method: "POST".to_owned(),
        url: to.to_owned(),
        headers: headers.collect(),
        body: Some(Value::String(String::from_utf8_lossy(body).into_owned())),
        deadline: FORWARD_MAX,
    };
    client.notify(0, &request).await.map(|answer| answer.status).map_err(|error| error.to_string())
}
