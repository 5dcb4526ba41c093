//! The certificates of a server or a gateway of a cluster: read from their files, and again when these change.

use anyhow::Context as _;
use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};
use switchward_machine::Time;
use switchward_peer::{PeerName, TlsError, TlsPem, certificate_name, cluster_id};
use switchward_store::{ClusterIdentity, Id};
use x509_parser::extensions::GeneralName;
use x509_parser::pem::parse_x509_pem;

use super::config::ClusterConfig;
use crate::private;

/// How often the files are checked for changes.
const LOOK: Duration = Duration::from_secs(1);

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
    let file = config.cert_file.display();
    let (_, pem) = parse_x509_pem(&tls.cert)
        .map_err(|error| anyhow::anyhow!("cluster.cert_file: {file} is no certificate: {error}"))?;
    let certificate = pem
        .parse_x509()
        .map_err(|error| anyhow::anyhow!("cluster.cert_file: {file} is no certificate: {error}"))?;
    let names = certificate.subject_alternative_name().ok().flatten();
    let mut names = names.iter().flat_map(|names| &names.value.general_names);
    let named = names.find_map(|name| {
        let GeneralName::DNSName(name) = name else { return None };
        server_and_cluster(name)
    });
    let named = named.with_context(|| {
        format!("cluster.cert_file: {file} names no server; make one with `switchward cluster certs`")
    })?;
    anyhow::ensure!(
        named.0 == config.server,
        "cluster.cert_file: {file} is for server {}, and cluster.server is {}",
        named.0,
        config.server
    );
    Ok(Id(named.1))
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

/// The name of the gateway that the certificate is for, and its cluster.
///
/// # Errors
/// It cannot be read, or it is that of a server.
pub(crate) fn gateway(config: &ClusterConfig, tls: &TlsPem) -> anyhow::Result<(PeerName, [u8; 16])> {
    let file = config.cert_file.display();
    let (name, cluster) =
        certificate_name(&tls.cert).map_err(|error| anyhow::anyhow!("cluster.cert_file: {file}: {error}"))?;
    match name {
        PeerName::Gateway(_) => Ok((name, cluster)),
        PeerName::Server(_) => anyhow::bail!(
            "cluster.cert_file: {file} is for {name}; make one for this gateway with `switchward cluster certs --gateway NAME`"
        ),
    }
}

/// Reads `server-<n>.<cluster id>.switchward`.
fn server_and_cluster(name: &str) -> Option<(u64, [u8; 16])> {
    let (server, rest) = name.strip_prefix("server-")?.split_once('.')?;
    Some((server.parse().ok()?, cluster_id(rest.strip_suffix(".switchward")?)?))
}

/// Hands new certificates to `set` when the files change, for new connections. Ends when it is dropped.
pub(crate) async fn follow(config: ClusterConfig, set: impl Fn(&TlsPem) -> Result<(), TlsError> + Send) {
    let mut known = stamps(&config);
    let mut tick = tokio::time::interval(LOOK);
    loop {
        tick.tick().await;
        let now = stamps(&config);
        if now == known {
            continue;
        }
        known = now;
        match read(&config).and_then(|tls| set(&tls).map_err(anyhow::Error::from)) {
            Ok(()) => tracing::info!("reloaded the certificates of the cluster"),
            Err(error) => {
                tracing::error!(
                    "failed to reload the certificates of the cluster, the old ones stay: {error:#}"
                );
            }
        }
    }
}

/// What tells changed files: when each was last written.
fn stamps(config: &ClusterConfig) -> [Option<SystemTime>; 3] {
    let written = |path: &Path| fs::metadata(path).and_then(|file| file.modified()).ok();
    [written(&config.ca_file), written(&config.cert_file), written(&config.key_file)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_names_its_server_and_cluster() {
        let id = [0x0a; 16];
        assert_eq!(server_and_cluster(&switchward_peer::server_name(&id, 12)), Some((12, id)));
        for other in ["localhost", "server-1", "server-x.0a.switchward", "server-1.0a0a.switchward"] {
            assert_eq!(server_and_cluster(other), None);
        }
    }
}
