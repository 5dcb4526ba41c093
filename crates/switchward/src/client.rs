//! A client of the public API: one connection, one credential, and the retries of `proto/service_config.json`.

mod mail;
mod retry;

use backon::Retryable as _;
use rustls::pki_types::{CertificateDer, pem::PemObject as _};
use std::future::Future;
use std::path::{Path, PathBuf};
use std::time::Duration;
use switchward_api::v1::{
    api_key_service_client::ApiKeyServiceClient, assistant_service_client::AssistantServiceClient,
    clock_service_client::ClockServiceClient, cluster_service_client::ClusterServiceClient,
    definition_service_client::DefinitionServiceClient, directory_service_client::DirectoryServiceClient,
    effect_service_client::EffectServiceClient, export_service_client::ExportServiceClient,
    gate_service_client::GateServiceClient, mail_service_client::MailServiceClient,
    policy_service_client::PolicyServiceClient, retention_service_client::RetentionServiceClient,
    session_service_client::SessionServiceClient, tenant_service_client::TenantServiceClient,
    webhook_endpoint_service_client::WebhookEndpointServiceClient,
    webhook_source_service_client::WebhookSourceServiceClient, worker_service_client::WorkerServiceClient,
};
use tonic::{
    Request, Response, Status,
    metadata::{Ascii, MetadataValue},
    service::{Interceptor, interceptor::InterceptedService},
    transport::{Certificate, Channel, ClientTlsConfig, Endpoint},
};

use crate::args::{Connection, files};
use crate::commands::context::missing;
use crate::context::{Context, Contexts};
use crate::exit::Exit;
use crate::tls;
pub(crate) use mail::{Brought, bring_mail};
use retry::{Retries, did_nothing, is_repeatable};

/// The time limit of connecting.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// The interval of pings on an idle connection, so that a watch notices a lost server.
const KEEPALIVE: Duration = Duration::from_secs(20);

type Wire = InterceptedService<Channel, Credential>;

/// Adds the credential to every call.
#[derive(Debug, Clone)]
pub(crate) struct Credential(MetadataValue<Ascii>);

impl Interceptor for Credential {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        request.metadata_mut().insert("authorization", self.0.clone());
        Ok(request)
    }
}

/// The services of a server; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Services {
    pub(crate) definitions: DefinitionServiceClient<Wire>,
    pub(crate) assistants: AssistantServiceClient<Wire>,
    pub(crate) directory: DirectoryServiceClient<Wire>,
    pub(crate) retention: RetentionServiceClient<Wire>,
    pub(crate) sessions: SessionServiceClient<Wire>,
    pub(crate) mail: MailServiceClient<Wire>,
    pub(crate) policy: PolicyServiceClient<Wire>,
    pub(crate) gates: GateServiceClient<Wire>,
    pub(crate) effects: EffectServiceClient<Wire>,
    pub(crate) export: ExportServiceClient<Wire>,
    pub(crate) endpoints: WebhookEndpointServiceClient<Wire>,
    pub(crate) sources: WebhookSourceServiceClient<Wire>,
    pub(crate) clock: ClockServiceClient<Wire>,
    pub(crate) cluster: ClusterServiceClient<Wire>,
    pub(crate) keys: ApiKeyServiceClient<Wire>,
    pub(crate) tenants: TenantServiceClient<Wire>,
    pub(crate) work: WorkerServiceClient<Wire>,
}

/// A connected client.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    services: Services,
    timeout: Duration,
    retries: Retries,
}

/// The address of a server and the API key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    /// `http://127.0.0.1:7400`.
    pub(crate) address: String,
    /// The API key.
    pub(crate) key: String,
    /// The certificate authority of the server (PEM); `None` for the authorities that this machine trusts.
    pub(crate) ca: Option<PathBuf>,
}

/// A context with its name.
#[derive(Debug, Clone)]
struct Named {
    name: String,
    context: Context,
    /// Whether the command line names it; it then takes precedence over the environment.
    typed: bool,
}

impl Target {
    /// Combines the command line, the environment and the context in use.
    ///
    /// # Errors
    /// There is no address or no key.
    pub(crate) fn of(connection: &Connection) -> Result<Self, Exit> {
        let said = |value: &Option<String>| value.clone().filter(|value| !value.trim().is_empty());
        let (address, api_key) = (said(&connection.address), said(&connection.api_key));
        let ca = connection.ca.clone().filter(|file| !file.as_os_str().is_empty());
        let named = match &connection.context {
            Some(name) => Some(named(&Contexts::of_user()?, name, true)?),
            // If everything is given, no context is read, and there may be no folder for one.
            None if address.is_some() && api_key.is_some() => None,
            None => implied()?,
        };
        Self::chosen(address, api_key, ca, named)
    }

    /// Combines the given address, key and authority with a context.
    fn chosen(
        address: Option<String>,
        api_key: Option<String>,
        ca: Option<PathBuf>,
        named: Option<Named>,
    ) -> Result<Self, Exit> {
        let address = address.map(|address| address.trim_end_matches('/').to_owned());
        let is_of = |named: &Named| {
            address.as_ref().is_none_or(|said| said == named.context.address.trim_end_matches('/'))
        };
        if let Some(other) = named.as_ref().filter(|named| named.typed && !is_of(named)) {
            let message = format!(
                "the context {} is for {}, not for another server",
                other.name, other.context.address
            );
            return Err(Exit::usage(message).next("omit --address, SWITCHWARD_ADDRESS or --context"));
        }
        // A context's key is for the context's server, and is sent to no other.
        let named = named.filter(is_of);
        let Some(address) = address.or(named.as_ref().map(|named| named.context.address.clone())) else {
            return Err(Exit::unreachable("no server address is set")
                .next("switchward dev           starts a server on this machine")
                .next("set --address URL or SWITCHWARD_ADDRESS for another server"));
        };
        let key = match (&named, api_key) {
            (Some(named), _) if named.typed => Some(named.context.api_key.clone()),
            (_, Some(key)) => Some(key.trim().to_owned()),
            (named, None) => named.as_ref().map(|named| named.context.api_key.clone()),
        };
        let Some(key) = key else {
            let message = format!("no API key is set for {address}");
            return Err(Exit::usage(message).next("set SWITCHWARD_API_KEY or --api-key KEY"));
        };
        Ok(Self { address, key, ca: ca.or(named.and_then(|named| named.context.ca)) })
    }
}

/// Returns the context that the environment names, or else the one in use; `None` if there is neither.
fn implied() -> Result<Option<Named>, Exit> {
    let contexts = Contexts::of_user()?;
    match std::env::var("SWITCHWARD_CONTEXT").ok().filter(|name| !name.is_empty()) {
        Some(name) => named(&contexts, &name, false).map(Some),
        None => contexts.current()?.map(|name| named(&contexts, &name, false)).transpose(),
    }
}

fn named(contexts: &Contexts, name: &str, typed: bool) -> Result<Named, Exit> {
    let context = contexts.load(name)?.ok_or_else(|| missing(name))?;
    Ok(Named { name: name.to_owned(), context, typed })
}

impl Client {
    /// Connects.
    ///
    /// # Errors
    /// The address or the key is malformed, or the server cannot be reached.
    pub(crate) async fn connect(target: &Target, timeout: Duration) -> Result<Self, Exit> {
        let credential = MetadataValue::try_from(format!("Bearer {}", target.key));
        let credential = credential
            .map_err(|_| Exit::usage("the API key has characters that are not allowed in a key"))?;
        let endpoint = endpoint(&target.address, target.ca.as_deref())?;
        let channel = endpoint.connect().await.map_err(|error| silent(&target.address, &error))?;
        let wire = InterceptedService::new(channel, Credential(credential));
        let services = Services {
            definitions: DefinitionServiceClient::new(wire.clone()),
            assistants: AssistantServiceClient::new(wire.clone()),
            directory: DirectoryServiceClient::new(wire.clone()),
            retention: RetentionServiceClient::new(wire.clone()),
            sessions: SessionServiceClient::new(wire.clone()),
            mail: MailServiceClient::new(wire.clone()),
            policy: PolicyServiceClient::new(wire.clone()),
            gates: GateServiceClient::new(wire.clone()),
            effects: EffectServiceClient::new(wire.clone()),
            export: ExportServiceClient::new(wire.clone()),
            endpoints: WebhookEndpointServiceClient::new(wire.clone()),
            sources: WebhookSourceServiceClient::new(wire.clone()),
            clock: ClockServiceClient::new(wire.clone()),
            cluster: ClusterServiceClient::new(wire.clone()),
            keys: ApiKeyServiceClient::new(wire.clone()),
            tenants: TenantServiceClient::new(wire.clone()),
            work: WorkerServiceClient::new(wire),
        };
        Ok(Self { services, timeout, retries: Retries::shipped() })
    }

    /// The same client with a longer time limit, for calls that wait on the server.
    pub(crate) fn waiting(&self, longer: Duration) -> Self {
        Self { timeout: self.timeout.saturating_add(longer), ..self.clone() }
    }

    /// The services, for calls that are not retried, such as streams.
    pub(crate) fn services(&self) -> Services {
        self.services.clone()
    }

    /// The policy for restarting streams.
    pub(crate) fn retries(&self) -> &Retries {
        &self.retries
    }

    /// Makes a unary call, and makes it again while the server is unavailable, or if the connection breaks. The request must do
    /// the same twice as once: it only reads, has a request id, or is about a lease that is given back.
    ///
    /// # Errors
    /// The last error of the server or of the connection.
    pub(crate) async fn call<Q, R, F>(
        &self,
        request: Q,
        method: impl Fn(Services, Request<Q>) -> F,
    ) -> Result<R, Status>
    where
        Q: Clone,
        F: Future<Output = Result<Response<R>, Status>>,
    {
        self.call_while(is_repeatable, request, method).await
    }

    /// Makes a unary call whose request has no request id, and makes it again only while it certainly did nothing.
    ///
    /// # Errors
    /// The last error of the server or of the connection.
    pub(crate) async fn call_once<Q, R, F>(
        &self,
        request: Q,
        method: impl Fn(Services, Request<Q>) -> F,
    ) -> Result<R, Status>
    where
        Q: Clone,
        F: Future<Output = Result<Response<R>, Status>>,
    {
        self.call_while(did_nothing, request, method).await
    }

    /// Makes a unary call again and again while `may_repeat` says so of its failure.
    async fn call_while<Q, R, F>(
        &self,
        may_repeat: fn(&Status) -> bool,
        request: Q,
        method: impl Fn(Services, Request<Q>) -> F,
    ) -> Result<R, Status>
    where
        Q: Clone,
        F: Future<Output = Result<Response<R>, Status>>,
    {
        let attempt = move || {
            let mut request = Request::new(request.clone());
            request.set_timeout(self.timeout);
            method(self.services.clone(), request)
        };
        let retried = attempt
            .retry(self.retries.of_call())
            .when(may_repeat)
            .adjust(|status: &Status, grown| Some(self.retries.pause(grown?, status)));
        retried.await.map(Response::into_inner)
    }
}

fn endpoint(address: &str, ca: Option<&Path>) -> Result<Endpoint, Exit> {
    let shape = || {
        Exit::usage(format!(
            "{address:?} is not a server address; write http://HOST:PORT or https://HOST:PORT"
        ))
    };
    let secure = address.starts_with("https://");
    if !secure && !address.starts_with("http://") {
        return Err(shape());
    }
    let endpoint = Endpoint::from_shared(address.to_owned()).map_err(|_| shape())?;
    let endpoint = endpoint
        .connect_timeout(CONNECT_MAX)
        .http2_keep_alive_interval(KEEPALIVE)
        .user_agent(concat!("switchward/", env!("CARGO_PKG_VERSION")))
        .map_err(anyhow::Error::from)?;
    if !secure {
        return Ok(endpoint);
    }
    tls::install_provider();
    let config = match ca {
        Some(file) => ClientTlsConfig::new().ca_certificate(authority(file)?),
        None => ClientTlsConfig::new().with_native_roots(),
    };
    Ok(endpoint.tls_config(config).map_err(anyhow::Error::from)?)
}

/// Reads the certificates of a file.
fn authority(file: &Path) -> Result<Certificate, Exit> {
    let pem = files::read(file)?;
    let mut certificates = CertificateDer::pem_slice_iter(&pem);
    if certificates.next().is_none_or(|first| first.is_err()) {
        return Err(Exit::usage(format!("{} contains no certificate (PEM)", file.display())));
    }
    Ok(Certificate::from_pem(pem))
}

/// The error of a server that does not respond, with the innermost cause.
fn silent(address: &str, error: &tonic::transport::Error) -> Exit {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    let exit = Exit::unreachable(format!("no response from the server at {address}: {cause}"));
    if address.starts_with("https://") {
        return exit.next(
            "set --ca FILE or SWITCHWARD_CA if this machine does not trust the authority of the certificate",
        );
    }
    exit.next("switchward dev           starts a server on this machine")
        .next("set --address URL or SWITCHWARD_ADDRESS for another server")
}

/// A random request id.
pub(crate) fn drawn_request_id() -> String {
    format!("cli-{:032x}", rand::random::<u128>())
}

#[cfg(test)]
mod tests;
