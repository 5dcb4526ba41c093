//! Sends requests under a tenant's rules.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{ACCEPT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue};
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use switchward_state::delivery::{AddressProblem, ExchangeProblem, RequestProblem, SizedPart};
use tokio::time::timeout;

use super::lookups::Lookups;
use super::resolve::{Pinned, Resolve, SystemResolver, pin};
use super::transports::{To, Transports};
use super::{Request, Response, answer, headers};
use crate::failed::length;
use crate::guard::{Egress, Policies, RulesUnknown, Target, TargetHost};
use crate::limits::{
    ANSWER_HEADERS_MAX, CONNECT_MS_MAX, CONNECTION_KEPT_MS, CONNECTIONS_KEPT_MAX, DEADLINE_MS_MAX,
    REQUEST_BODY_BYTES_MAX,
};
use crate::{DeliveryDetail, DeliveryReason, Failed};

/// A client's configuration.
pub struct Config {
    /// What each tenant may reach.
    pub policies: Arc<dyn Policies>,
    /// Resolves host names.
    pub resolver: Arc<dyn Resolve>,
    /// Root certificates that are trusted beside the system's.
    pub roots: Vec<CertificateDer<'static>>,
}

impl Config {
    /// A configuration with the system's resolver and certificates.
    #[must_use]
    pub fn new(policies: Arc<dyn Policies>) -> Self {
        Self { policies, resolver: Arc::new(SystemResolver::default()), roots: Vec::new() }
    }
}

/// The client cannot be created.
#[derive(Debug, thiserror::Error)]
#[error("failed to set up TLS for requests")]
pub struct SetupError(#[from] rustls::Error);

/// The tenant, `None` for the operator's own requests, and the rules that apply.
type Under<'a> = (Option<u32>, &'a Egress);

/// Sends requests. Cheap to clone.
#[derive(Clone)]
pub struct Client {
    policies: Arc<dyn Policies>,
    resolver: Arc<dyn Resolve>,
    lookups: Arc<Lookups>,
    tls: ClientConfig,
    transports: Arc<Transports>,
}

impl Client {
    /// Reads the certificates that the system trusts; unreadable ones are skipped and logged.
    ///
    /// # Errors
    ///
    /// [`SetupError`] if a certificate of the configuration cannot be a root.
    pub fn new(config: Config) -> Result<Self, SetupError> {
        let mut roots = RootCertStore::empty();
        let found = rustls_native_certs::load_native_certs();
        let (_, unreadable) = roots.add_parsable_certificates(found.certs);
        if unreadable > 0 || !found.errors.is_empty() {
            let errors = found.errors.len();
            tracing::warn!(unreadable, errors, "failed to read some certificates of the system");
        }
        for root in config.roots {
            roots.add(root)?;
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let (policies, resolver) = (config.policies, config.resolver);
        Ok(Self { policies, resolver, lookups: Arc::default(), tls, transports: Arc::default() })
    }

    /// Sends a request under its tenant's rules.
    ///
    /// # Errors
    ///
    /// [`Failed`] if there is no complete answer: the request is not allowed, failed on its way, or something is too
    /// large. An answer with any status, even a redirect, is not an error. Nothing is sent if the rules are unknown.
    pub async fn send(&self, tenant: u32, request: &Request) -> Result<Response, Failed> {
        let egress = self.policies.egress(tenant).map_err(unknown)?;
        self.whole((Some(tenant), &*egress), request).await
    }

    /// Sends a request under rules that are not a tenant's, such as those of an endpoint that the operator set up.
    ///
    /// # Errors
    ///
    /// As for [`send`](Self::send).
    pub async fn send_under(&self, egress: &Egress, request: &Request) -> Result<Response, Failed> {
        self.whole((None, egress), request).await
    }

    /// Sends a message to a receiver of whose answer only the head matters. The body of the message is a string that is sent
    /// byte for byte, whatever its `content-type`: signed content must not change. That of the answer does not matter, even if
    /// it is compressed, too large or never ends: the [`Response`] has none.
    ///
    /// # Errors
    ///
    /// [`Failed`] if no head of an answer came in time, otherwise as for [`send`](Self::send).
    pub async fn notify(&self, tenant: u32, request: &Request) -> Result<Response, Failed> {
        let egress = self.policies.egress(tenant).map_err(unknown)?;
        let answered = self.exchange((Some(tenant), &*egress), request, true);
        Ok(answer::head(in_time(request.deadline, answered).await?).await)
    }

    async fn whole(&self, under: Under<'_>, request: &Request) -> Result<Response, Failed> {
        let answered = async { answer::read(self.exchange(under, request, false).await?).await };
        in_time(request.deadline, answered).await
    }

    /// Sends a request, and returns the answer with its body unread.
    async fn exchange(
        &self,
        (tenant, egress): Under<'_>,
        request: &Request,
        as_is: bool,
    ) -> Result<reqwest::Response, Failed> {
        let target = Target::read(&request.url, egress)?;
        let method = headers::read_method(&request.method)?;
        let mut headers = headers::read_headers(&request.headers)?;
        let body = body_of(request.body.as_ref(), &mut headers, as_is)?;
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let turn = match target.host() {
            TargetHost::Name(_) => Some(self.lookups.begin(tenant).await),
            TargetHost::Address(_) => None,
        };
        let addresses = pin(&target, egress, &*self.resolver).await?;
        drop(turn);
        let to = To::new(tenant, target.url(), &addresses);
        let transport = self.transports.get(to, || self.transport(addresses))?;
        let mut sending = transport.request(method, target.url().clone()).headers(headers);
        if let Some(body) = body {
            sending = sending.body(body);
        }
        sending.send().await.map_err(failed)
    }

    /// Creates a transport that can connect only to these addresses.
    fn transport(&self, addresses: Vec<SocketAddr>) -> Result<reqwest::Client, Failed> {
        reqwest::Client::builder()
            .tls_backend_preconfigured(self.tls.clone())
            .dns_resolver(Pinned(addresses))
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .http1_only()
            .http1_max_headers(ANSWER_HEADERS_MAX)
            .pool_max_idle_per_host(CONNECTIONS_KEPT_MAX)
            .pool_idle_timeout(Duration::from_millis(CONNECTION_KEPT_MS))
            .connect_timeout(Duration::from_millis(CONNECT_MS_MAX))
            .user_agent(concat!("switchward/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| {
                tracing::error!(error = %chain(&error), "failed to set up an HTTP client");
                Failed::new(DeliveryReason::ConnectFailed, ExchangeProblem::Setup)
            })
    }
}

/// Waits for an answer as long as its request may take.
async fn in_time<T>(
    deadline: Duration,
    answer: impl Future<Output = Result<T, Failed>>,
) -> Result<T, Failed> {
    let deadline = deadline.min(Duration::from_millis(DEADLINE_MS_MAX));
    match timeout(deadline, answer).await {
        Ok(result) => result,
        Err(_) => {
            let max_ms = u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX);
            Err(Failed::new(DeliveryReason::Timeout, ExchangeProblem::AnswerTime { max_ms }))
        }
    }
}

fn unknown(_: RulesUnknown) -> Failed {
    Failed::new(DeliveryReason::RulesUnknown, AddressProblem::RulesUnknown)
}

/// Serialises a body, and sets its content type if the sender named none.
fn body_of(body: Option<&Value>, headers: &mut HeaderMap, as_is: bool) -> Result<Option<Vec<u8>>, Failed> {
    let Some(body) = body else { return Ok(None) };
    let named = headers.get(CONTENT_TYPE).map(|name| name.as_bytes().to_ascii_lowercase());
    let is_json = !as_is && named.as_ref().is_none_or(|name| name.windows(4).any(|part| part == b"json"));
    if named.is_none() {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    let bytes = match body {
        Value::String(text) if !is_json => text.clone().into_bytes(),
        Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_) => serde_json::to_vec(body)
            .map_err(|_| Failed::new(DeliveryReason::RequestInvalid, RequestProblem::BodyJson))?,
    };
    if bytes.len() > REQUEST_BODY_BYTES_MAX {
        let (part, bytes, max) = (SizedPart::Body, length(bytes.len()), length(REQUEST_BODY_BYTES_MAX));
        let detail = DeliveryDetail::TooLarge { part, bytes, max };
        return Err(Failed::new(DeliveryReason::RequestTooLarge, detail));
    }
    Ok(Some(bytes))
}

/// Maps a transport failure to a reason. Its message may contain addresses, so it is only logged.
pub(super) fn failed(error: reqwest::Error) -> Failed {
    let error = error.without_url();
    let message = chain(&error);
    tracing::debug!(error = %message, "a request failed");
    if is_tls(&error) {
        return Failed::new(DeliveryReason::TlsFailed, ExchangeProblem::Tls);
    }
    if error.is_timeout() {
        return Failed::new(DeliveryReason::Timeout, ExchangeProblem::ConnectTime { max_ms: CONNECT_MS_MAX });
    }
    if error.is_connect() {
        return Failed::new(DeliveryReason::ConnectFailed, ExchangeProblem::NotConnected);
    }
    Failed::new(DeliveryReason::AnswerBroken, ExchangeProblem::Broken)
}

fn causes(error: &reqwest::Error) -> impl Iterator<Item = &(dyn std::error::Error + 'static)> {
    std::iter::successors(Some(error as &(dyn std::error::Error + 'static)), |error| error.source())
}

fn chain(error: &reqwest::Error) -> String {
    causes(error).map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// Returns true if TLS failed.
fn is_tls(error: &reqwest::Error) -> bool {
    causes(error).any(holds_tls)
}

/// An IO error does not report its inner error as its source, so this looks into it; errors may be nested.
fn holds_tls(error: &(dyn std::error::Error + 'static)) -> bool {
    let inner = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
    error.is::<rustls::Error>() || inner.is_some_and(|inner| holds_tls(inner))
}
