//! The certificates of a process of a cluster: read from their files, and again when these change or a SIGHUP comes.

use anyhow::Context as _;
use std::fs;
use std::path::Path;
use switchward_machine::Time;
use switchward_peer::{PeerName, TlsError, TlsPem, certificate_name};
use switchward_state::policy::time_text;
use switchward_store::{ClusterIdentity, Id};
use tokio::signal::unix::Signal;
use x509_parser::pem::parse_x509_pem;

use super::config::{ClusterConfig, ProcessKind};
use crate::private;
use crate::reload::WatchedFiles;

/// Reads the certificates.
///
/// # Errors
/// A file cannot be read, or others than its owner may read the private key.
pub(crate) fn read(config: &ClusterConfig) -> anyhow::Result<TlsPem> {
    private::refuse_open_file(&config.key_file)?;
    let file = |key: &str, path: &Path| {
        fs::read(path).with_context(|| format!("cluster.{key}: failed to read {}", path.display()))
    };
    Ok(TlsPem {
        ca: file("ca_file", &config.ca_file)?,
        cert: file("cert_file", &config.cert_file)?,
        key: file("key_file", &config.key_file)?,
    })
}

/// The cluster that the certificate names.
///
/// # Errors
/// It cannot be read, or it names another server or none.
fn cluster_of(config: &ClusterConfig, tls: &TlsPem) -> anyhow::Result<Id> {
    let (name, cluster) = named(config, tls)?;
    anyhow::ensure!(
        name == PeerName::Server(config.server),
        "cluster.cert_file: {} is for {name}, and cluster.server is {}",
        config.cert_file.display(),
        config.server
    );
    Ok(Id(cluster))
}

/// Whose certificate it is, and of which cluster.
///
/// # Errors
/// It cannot be read, or has no name of a process.
fn named(config: &ClusterConfig, tls: &TlsPem) -> anyhow::Result<(PeerName, [u8; 16])> {
    certificate_name(&tls.cert).map_err(|error| {
        let file = config.cert_file.display();
        anyhow::anyhow!("cluster.cert_file: {file}: {error}; make one with `switchward cluster certs`")
    })
}

/// Until when a server's certificate is valid; `None` if it cannot be read, or is older than 1970.
pub(crate) fn expires(tls: &TlsPem) -> Option<Time> {
    let (_, pem) = parse_x509_pem(&tls.cert).ok()?;
    let seconds = pem.parse_x509().ok()?.validity().not_after.timestamp();
    u64::try_from(seconds).ok().map(|seconds| Time(seconds.saturating_mul(1_000)))
}

/// Which server of which cluster the certificate is for.
///
/// # Errors
/// As of [`read`] and [`cluster_of`].
pub(crate) fn identity(config: &ClusterConfig) -> anyhow::Result<ClusterIdentity> {
    let cluster = cluster_of(config, &read(config)?)?;
    Ok(ClusterIdentity { cluster, server: config.server })
}

/// The name of the process without data that the certificate is for, and its cluster.
///
/// # Errors
/// It cannot be read, or it is that of another kind of process.
pub(crate) fn without_data(config: &ClusterConfig, tls: &TlsPem) -> anyhow::Result<(PeerName, [u8; 16])> {
    let (name, cluster) = named(config, tls)?;
    let (fits, option) = match config.kind() {
        ProcessKind::Gateway => (matches!(name, PeerName::Gateway(_)), "gateway"),
        ProcessKind::Delivery => (matches!(name, PeerName::Delivery(_)), "delivery"),
        ProcessKind::Server => anyhow::bail!("cluster.roles: this process has data"),
    };
    anyhow::ensure!(
        fits,
        "cluster.cert_file: {} is for {name}; make one for this process with `switchward cluster certs --{option} NAME`",
        config.cert_file.display()
    );
    Ok((name, cluster))
}

/// Hands the certificates to `set`, for new connections, when their files have changed or a SIGHUP comes. Ones that cannot be
/// used change nothing. Ends when it is dropped.
pub(crate) async fn follow(
    config: ClusterConfig,
    hangups: Option<Signal>,
    set: impl Fn(&TlsPem) -> Result<(), TlsError> + Send,
) {
    let files = vec![config.ca_file.clone(), config.cert_file.clone(), config.key_file.clone()];
    let mut files = WatchedFiles::new(files, hangups);
    loop {
        files.changed().await;
        let fresh = read(&config).and_then(|tls| set(&tls).map(|()| tls).map_err(anyhow::Error::from));
        match fresh {
            Ok(tls) => {
                let valid_until = expires(&tls).map(time_text);
                tracing::info!(valid_until, "reloaded the certificates of the cluster");
            }
            Err(error) => {
                let error = format!("{error:#}");
                tracing::error!(
                    error,
                    "failed to reload the certificates of the cluster; the previous ones stay in use"
                );
            }
        }
    }
}
