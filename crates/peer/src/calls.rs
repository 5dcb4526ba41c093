//! Connections for calls of clients that one process passes on to a server: HTTP/2 over mutual TLS, at the same address as
//! the rest of the transport. Servers and gateways dial them, and delivery processes, which report instead; who dials is known
//! by its certificate.

use std::sync::Arc;

use parking_lot::RwLock;
use rustls::pki_types::CertificateDer;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::{TlsConnector, TlsStream};

use crate::error::PeerError;
use crate::limits::HANDSHAKE_WAIT;
use crate::name::PeerName;
use crate::tls::{TlsError, TlsFailure, TlsPem, call_connector, dialled_name, failure, named};

/// A connection for calls after its TLS handshake. HTTP/2 begins now.
pub type CallStream = TlsStream<TcpStream>;

/// Dials servers for calls. Cheap to clone.
#[derive(Clone)]
pub struct CallDialer(Arc<Inner>);

struct Inner {
    cluster: [u8; 16],
    own: PeerName,
    connector: RwLock<TlsConnector>,
}

impl CallDialer {
    /// Dials as `own`, with its certificate.
    ///
    /// # Errors
    ///
    /// The certificates cannot be read, the key is another certificate's, or the certificate is not that of `own`.
    pub fn new(cluster: [u8; 16], own: PeerName, tls: &TlsPem) -> Result<Self, TlsError> {
        let connector = RwLock::new(call_connector(tls, &own, &cluster)?);
        Ok(Self(Arc::new(Inner { cluster, own, connector })))
    }

    /// Uses other certificates for new connections. Certificates that cannot be used change nothing.
    ///
    /// # Errors
    ///
    /// As of [`new`](Self::new).
    pub fn set_tls(&self, tls: &TlsPem) -> Result<(), TlsError> {
        *self.0.connector.write() = call_connector(tls, &self.0.own, &self.0.cluster)?;
        Ok(())
    }

    /// Connects to the server of this number at `host:port`, within
    /// [`HANDSHAKE_WAIT`](crate::limits::HANDSHAKE_WAIT) for each of TCP and TLS.
    ///
    /// # Errors
    ///
    /// [`PeerError::NotSent`] if it cannot be reached, [`PeerError::Refused`] if it is another server.
    pub async fn dial(&self, server: u64, address: &str) -> Result<CallStream, PeerError> {
        let late = |what: &str| PeerError::NotSent(format!("{what} took longer than {HANDSHAKE_WAIT:?}"));
        let tcp = timeout(HANDSHAKE_WAIT, TcpStream::connect(address)).await;
        let tcp = tcp.map_err(|_| late("the connection"))?;
        let tcp = tcp.map_err(|error| PeerError::NotSent(format!("no connection: {error}")))?;
        // Only latency depends on it.
        let _set = tcp.set_nodelay(true);
        let name = dialled_name(&self.0.cluster, server).map_err(PeerError::Refused)?;
        let connector = self.0.connector.read().clone();
        let tls = timeout(HANDSHAKE_WAIT, connector.connect(name, tcp)).await;
        match tls.map_err(|_| late("the TLS handshake"))? {
            Ok(tls) => Ok(TlsStream::from(tls)),
            Err(error) => Err(match failure(&error, Some(server), &self.0.cluster) {
                TlsFailure::Refused(why) => PeerError::Refused(why),
                TlsFailure::Failed(why) => PeerError::NotSent(why),
            }),
        }
    }
}

/// Who has dialled a connection for calls.
///
/// # Errors
/// The certificate is not that of a process of this cluster.
pub(crate) fn caller(
    certificate: Option<&CertificateDer<'_>>,
    cluster: &[u8; 16],
) -> Result<PeerName, String> {
    named(certificate.ok_or_else(|| "the other side sent no certificate".to_owned())?, cluster)
}

/// Reads whose certificate a PEM text has first, and of which cluster.
///
/// # Errors
///
/// The bytes are not a certificate, or the certificate is not that of a process of a cluster.
pub fn certificate_name(pem: &[u8]) -> Result<(PeerName, [u8; 16]), String> {
    crate::tls::named_in_any(pem)
}
