//! TLS of the port: a certificate and its key from files, which are read again when they change.

use anyhow::Context as _;
use parking_lot::RwLock;
use rustls::{
    ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::signal::unix::Signal;
use tokio_rustls::TlsAcceptor;

use crate::config::Tls;
use crate::private;
use crate::reload::WatchedFiles;

/// Installs the one provider of cryptography. Called first, and safe to call again.
pub(crate) fn install_provider() {
    // An error means that it was installed before.
    let _installed = ring::default_provider().install_default();
}

/// The certificate that new connections are shown.
#[derive(Debug)]
pub(crate) struct Certificates {
    files: Tls,
    current: RwLock<Arc<CertifiedKey>>,
}

impl Certificates {
    /// Reads the certificate chain and its key, both PEM.
    ///
    /// # Errors
    /// A file cannot be read, or the key is another certificate's.
    pub(crate) fn open(files: &Tls) -> anyhow::Result<Arc<Self>> {
        let current = RwLock::new(Arc::new(read(files)?));
        Ok(Arc::new(Self { files: files.clone(), current }))
    }

    /// Accepts TLS with whatever certificate is current; offers HTTP/2 and HTTP/1.1.
    pub(crate) fn acceptor(self: &Arc<Self>) -> TlsAcceptor {
        let resolver: Arc<Self> = Arc::clone(self);
        let mut config = ServerConfig::builder().with_no_client_auth().with_cert_resolver(resolver);
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        TlsAcceptor::from(Arc::new(config))
    }

    /// Shows the files' certificate to new connections from now on. One that is not usable changes nothing.
    fn reload(&self) {
        let fresh = private::refuse_open_file(&self.files.key_file).and_then(|()| read(&self.files));
        match fresh {
            Ok(fresh) => {
                *self.current.write() = Arc::new(fresh);
                tracing::info!(file = %self.files.cert_file.display(), "reloaded the certificate");
            }
            Err(error) => {
                let error = format!("{error:#}");
                tracing::error!(error, "failed to load the new certificate; the previous one stays in use");
            }
        }
    }

    fn files(&self) -> Vec<PathBuf> {
        vec![self.files.cert_file.clone(), self.files.key_file.clone()]
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.current.read()))
    }
}

/// Reads the certificates again whenever a SIGHUP comes or their files have changed. Connections that are open stay so.
pub(crate) async fn follow(certificates: Option<Arc<Certificates>>, hangups: Option<Signal>) {
    let files = certificates.as_ref().map(|certificates| certificates.files());
    let mut files = WatchedFiles::new(files.unwrap_or_default(), hangups);
    loop {
        files.changed().await;
        match &certificates {
            Some(certificates) => certificates.reload(),
            None => tracing::info!("SIGHUP: the public port has no certificate to reload"),
        }
    }
}

/// The certificates of a file, the server's own first.
///
/// # Errors
/// The file cannot be read, or holds anything that is no certificate.
pub(crate) fn chain(file: &Path) -> anyhow::Result<Vec<CertificateDer<'static>>> {
    CertificateDer::pem_file_iter(file)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .with_context(|| format!("tls.cert_file: failed to read {}", file.display()))
}

/// The certificate chain and its key.
///
/// # Errors
/// A file cannot be read, or the key is another certificate's.
pub(crate) fn read(files: &Tls) -> anyhow::Result<CertifiedKey> {
    let chain = chain(&files.cert_file)?;
    anyhow::ensure!(
        !chain.is_empty(),
        "tls.cert_file: {} contains no certificate",
        files.cert_file.display()
    );
    let key = PrivateKeyDer::from_pem_file(&files.key_file)
        .with_context(|| format!("tls.key_file: failed to read {}", files.key_file.display()))?;
    CertifiedKey::from_der(chain, key, &ring::default_provider())
        .context("tls: the key does not belong to the certificate")
}
