//! The certificates of a server's end, and what TLS makes of them.

use std::fmt::Display;
use std::io;
use std::sync::Arc;

use rustls::client::{Resumption, WebPkiServerVerifier, verify_server_name};
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject as _};
use rustls::server::{NoServerSessionStorage, ParsedCertificate, WebPkiClientVerifier};
use rustls::version::TLS13;
use rustls::{CertificateError, ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer as _;

use crate::hello::Hello;
use crate::name::{PeerName, cluster_text, server_name};
use crate::verifier::{OfCluster, other_cluster};

/// What both sides offer as the protocol inside TLS.
const ALPN: &[u8] = b"switchward-peer";
/// What is offered for calls of clients that are passed on: HTTP/2.
const ALPN_CALLS: &[u8] = b"h2";

/// The certificates of a server's end, as PEM texts.
#[derive(Clone)]
pub struct TlsPem {
    /// The authorities that sign the certificates of all servers of the cluster.
    pub ca: Vec<u8>,
    /// This server's certificate chain, its own first. It must contain [`server_name`](crate::server_name).
    pub cert: Vec<u8>,
    /// The private key of the certificate.
    pub key: Vec<u8>,
}

/// Why certificates cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TlsError(pub(crate) String);

/// What TLS needs for new connections: version 1.3, a certificate on both sides, no sessions that are resumed.
pub(crate) struct Configs {
    pub(crate) connector: TlsConnector,
    pub(crate) acceptor: TlsAcceptor,
}

impl Configs {
    /// # Errors
    /// The texts are no certificates, the key is another certificate's, or the certificate does not name this server.
    pub(crate) fn new(pem: &TlsPem, own: &Hello) -> Result<Self, TlsError> {
        let Parts { roots, chain, key } = Parts::read(pem)?;
        names(&chain[0], own).map_err(TlsError)?;
        let client = client(&roots, chain.clone(), key.clone_key(), own.cluster, ALPN).map_err(unusable)?;
        Ok(Self {
            connector: TlsConnector::from(Arc::new(client)),
            acceptor: acceptor(roots, chain, key, own.cluster)?,
        })
    }
}

/// Certificates as they were read.
struct Parts {
    roots: Arc<RootCertStore>,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl Parts {
    fn read(pem: &TlsPem) -> Result<Self, TlsError> {
        let roots = Arc::new(roots(&pem.ca)?);
        let chain = chain(&pem.cert, "the certificate")?;
        let key = PrivateKeyDer::from_pem_slice(&pem.key)
            .map_err(|error| TlsError(format!("the private key cannot be read: {error}")))?;
        Ok(Self { roots, chain, key })
    }
}

/// What TLS needs to dial servers for calls.
///
/// # Errors
/// The texts are no certificates, the key is another certificate's, or the certificate is not that of `own`.
pub(crate) fn call_connector(
    pem: &TlsPem,
    own: &PeerName,
    cluster: &[u8; 16],
) -> Result<TlsConnector, TlsError> {
    let Parts { roots, chain, key } = Parts::read(pem)?;
    if named(&chain[0], cluster).map_err(TlsError)? != *own {
        return Err(TlsError(format!("the certificate does not contain the name {}", own.dns(cluster))));
    }
    let client = client(&roots, chain, key, *cluster, ALPN_CALLS).map_err(unusable)?;
    Ok(TlsConnector::from(Arc::new(client)))
}

/// Returns true if the other side has dialled for calls.
pub(crate) fn is_for_calls(chosen: Option<&[u8]>) -> bool {
    chosen == Some(ALPN_CALLS)
}

/// Whose certificate it is.
///
/// # Errors
/// The certificate has no name of this cluster, or several.
pub(crate) fn named(certificate: &CertificateDer<'_>, cluster: &[u8; 16]) -> Result<PeerName, String> {
    let (name, of) = named_in(certificate)?;
    if of != *cluster {
        return Err(format!("the certificate is of another cluster, {}", cluster_text(&of)));
    }
    Ok(name)
}

/// Whose certificate comes first in a PEM text, and of which cluster.
///
/// # Errors
/// The bytes are not a certificate, or the certificate has no name of a process of a cluster, or several.
pub(crate) fn named_in_any(pem: &[u8]) -> Result<(PeerName, [u8; 16]), String> {
    named_in(&chain(pem, "the certificate").map_err(|error| error.0)?[0])
}

pub(crate) fn named_in(certificate: &CertificateDer<'_>) -> Result<(PeerName, [u8; 16]), String> {
    let unreadable = |error: &dyn Display| format!("the certificate cannot be read: {error}");
    let (_, parsed) = X509Certificate::from_der(certificate).map_err(|error| unreadable(&error))?;
    let names = parsed.subject_alternative_name().map_err(|error| unreadable(&error))?;
    let names = names.iter().flat_map(|names| &names.value.general_names);
    let mut found = names.filter_map(|name| {
        let GeneralName::DNSName(name) = name else { return None };
        PeerName::read(name)
    });
    match (found.next(), found.next()) {
        (Some(found), None) => Ok(found),
        (None, _) => Err("the certificate names no process of a cluster".to_owned()),
        (Some(_), Some(_)) => Err("the certificate names several processes".to_owned()),
    }
}

fn client(
    roots: &Arc<RootCertStore>,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    cluster: [u8; 16],
    protocol: &[u8],
) -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(ring::default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::clone(roots), Arc::clone(&provider))
        .build()
        .map_err(|error| rustls::Error::General(error.to_string()))?;
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(OfCluster { by: verifier, cluster }))
        .with_client_auth_cert(chain, key)?;
    config.alpn_protocols = vec![protocol.to_vec()];
    config.resumption = Resumption::disabled();
    Ok(config)
}

fn acceptor(
    roots: Arc<RootCertStore>,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    cluster: [u8; 16],
) -> Result<TlsAcceptor, TlsError> {
    let provider = Arc::new(ring::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(&provider))
        .build()
        .map_err(|error| TlsError(format!("the authority's certificate cannot be used: {error}")))?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])
        .map_err(unusable)?
        .with_client_cert_verifier(Arc::new(OfCluster { by: verifier, cluster }))
        .with_single_cert(chain, key)
        .map_err(unusable)?;
    config.alpn_protocols = vec![ALPN.to_vec(), ALPN_CALLS.to_vec()];
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn unusable(error: rustls::Error) -> TlsError {
    TlsError(format!("the certificate cannot be used: {error}"))
}

fn roots(pem: &[u8]) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in chain(pem, "the authority's certificate")? {
        roots
            .add(certificate)
            .map_err(|error| TlsError(format!("the authority's certificate cannot be used: {error}")))?;
    }
    Ok(roots)
}

/// The certificates of a text, at least one.
fn chain(pem: &[u8], what: &str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let chain: Vec<_> = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<_, _>>()
        .map_err(|error| TlsError(format!("{what} cannot be read: {error}")))?;
    if chain.is_empty() { Err(TlsError(format!("{what} is missing"))) } else { Ok(chain) }
}

/// The DNS name in the certificate of that server alone.
pub(crate) fn dialled_name(cluster: &[u8; 16], server: u64) -> Result<ServerName<'static>, String> {
    ServerName::try_from(server_name(cluster, server)).map_err(|error| error.to_string())
}

/// Checks that a certificate contains the name of a server.
///
/// # Errors
/// It does not; the text reads the same on both sides.
pub(crate) fn names(certificate: &CertificateDer<'_>, server: &Hello) -> Result<(), String> {
    let name = dialled_name(&server.cluster, server.server)?;
    ParsedCertificate::try_from(certificate)
        .and_then(|parsed| verify_server_name(&parsed, &name))
        .map_err(|_| not_named(server.server, &server.cluster))
}

fn not_named(server: u64, cluster: &[u8; 16]) -> String {
    format!("the certificate of server {server} does not contain the name {}", server_name(cluster, server))
}

/// Says that a process which has connected dials a server of another cluster. The name is its own choice, so it is not
/// repeated.
pub(crate) fn dials_other(own: &[u8; 16]) -> String {
    format!(
        "the other side belongs to another cluster: it dials a server of that one, and this server belongs to {}",
        cluster_text(own)
    )
}

/// How TLS failed.
pub(crate) enum TlsFailure {
    /// One side refused the other's certificate.
    Refused(String),
    /// Anything else.
    Failed(String),
}

/// Says how TLS with the server of this name failed; `None` if it is not known yet.
pub(crate) fn failure(error: &io::Error, server: Option<u64>, cluster: &[u8; 16]) -> TlsFailure {
    let Some(tls) = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) else {
        return TlsFailure::Failed(format!("the TLS handshake failed: {error}"));
    };
    let known = server.map_or_else(|| "the other side".to_owned(), |server| format!("server {server}"));
    if let rustls::Error::InvalidCertificate(why) = tls {
        return TlsFailure::Refused(invalid(why, &known, server, cluster));
    }
    if matches!(tls, rustls::Error::NoCertificatesPresented) {
        return TlsFailure::Refused(format!("{known} sent no certificate"));
    }
    if let rustls::Error::AlertReceived(alert) = tls {
        return TlsFailure::Refused(format!("{known} refused this server's certificate: {alert:?}"));
    }
    TlsFailure::Failed(format!("the TLS handshake failed: {tls}"))
}

/// Says why a certificate of the other side is not valid.
fn invalid(why: &CertificateError, known: &str, server: Option<u64>, cluster: &[u8; 16]) -> String {
    let other_name =
        matches!(why, CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. });
    match (other_cluster(why), server) {
        (Some(other), Some(_)) => return other.to_string(),
        // A process that connects chooses what its certificate says, so it is not repeated: that would fill the log.
        (Some(_), None) => {
            let own = cluster_text(cluster);
            return format!(
                "the certificate of {known} is of another cluster, and this server belongs to {own}"
            );
        }
        (None, _) => {}
    }
    if let Some(server) = server.filter(|_| other_name) {
        return not_named(server, cluster);
    }
    // Two authorities of one name differ by their signatures.
    if matches!(why, CertificateError::UnknownIssuer | CertificateError::BadSignature) {
        return format!("the certificate of {known} is not signed by the cluster's authority");
    }
    format!("the certificate of {known} is not valid: {why}")
}
