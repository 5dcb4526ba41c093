//! TLS of the port, from files.

use anyhow::Context as _;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::path::Path;
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;

/// Installs the one provider of cryptography. Called first thing, and good to call again.
pub(crate) fn install_provider() {
    // It was installed before where this says no.
    let _installed = rustls::crypto::ring::default_provider().install_default();
}

/// What accepts TLS with this certificate chain and key, both PEM; HTTP/2 and HTTP/1.1 are offered.
pub(crate) fn acceptor(cert: &Path, key: &Path) -> anyhow::Result<TlsAcceptor> {
    let chain = CertificateDer::pem_file_iter(cert)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .with_context(|| format!("tls.cert_file: failed to read {}", cert.display()))?;
    let key_der = PrivateKeyDer::from_pem_file(key)
        .with_context(|| format!("tls.key_file: failed to read {}", key.display()))?;
    let mut config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain, key_der)
        .context("tls: the certificate and the key do not fit")?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
