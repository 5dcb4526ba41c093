//! The cluster of this process: its certificate, its data folder, and the other servers.

mod compared;

use jiff::Timestamp;
use rustls::pki_types::{CertificateDer, pem::PemObject as _};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use switchward_gateway::proxy::{RedisFacts, RouteServer, ServerDialer, ServerFacts, ask_facts};
use switchward_messages::cli::doctor::{certificate as certificate_texts, cluster as texts};
use switchward_peer::limits::PEERS_MAX;
use switchward_peer::{CallDialer, PeerName, TlsPem, certificate_name};
use switchward_shard::{Clock as _, SystemClock};
use switchward_state::seal::KeyRing;
use switchward_store::{ClusterIdentity, DataDir, Id};
use tokio::task::JoinSet;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::certificate::{at, dated, verified};
use super::{CheckResult, CheckStatus};
use crate::config::Config;
use crate::key_ring::KeyRingLocation;
use crate::member::{self, ClusterConfig, ProcessKind, ToServers};

const WHAT: &str = "cluster";

/// The answer of another server.
struct Answer {
    server: u64,
    facts: ServerFacts,
    /// How far its clock is ahead of that of this machine, milliseconds, less the time that the answer was on its way.
    clock_ahead_ms: i64,
}

/// This machine, as the answers of the others are compared with it.
struct Own {
    /// The servers that this one finds by itself: its `cluster.peers`.
    peers: BTreeMap<u64, String>,
    /// The digest of the key ring as servers send it; `None` for a process without data, and if the ring cannot be read.
    keys: Option<String>,
    /// Its Redis; `None` for a gateway.
    redis: Option<RedisFacts>,
}

/// Checks all that can be checked from here. It asks the other servers what they say of themselves, and changes nothing.
pub(super) async fn look(config: &Config) -> Vec<CheckResult> {
    let Some(cluster) = &config.cluster else { return Vec::new() };
    let (name, id, tls) = match certificate(cluster) {
        Ok(known) => known,
        Err(found) => return vec![found],
    };
    let mut found = vec![judged(cluster, &name, &id, &tls)];
    if let PeerName::Server(server) = name {
        found.extend(folder(&config.data_dir, ClusterIdentity { cluster: Id(id), server }));
    }
    let dialer = match CallDialer::new(id, name, &tls) {
        Ok(dialer) => Arc::new(ToServers(dialer)) as Arc<dyn ServerDialer>,
        Err(error) => {
            found.push(CheckResult::fail(WHAT, error.to_string(), texts::MAKE_CERTIFICATES));
            return found;
        }
    };
    let own = match own(config, cluster).await {
        Ok(own) => own,
        Err(error) => {
            found.push(CheckResult::fail("peers", format!("{error:#}"), texts::CORRECT_PEERS));
            return found;
        }
    };
    let (answers, failed) = asked(&dialer, &own.peers, cluster.server).await;
    found.extend(compared::all(&own, &answers, &failed));
    found
}

/// Whose certificate this process has, and of which cluster.
fn certificate(cluster: &ClusterConfig) -> Result<(PeerName, [u8; 16], TlsPem), CheckResult> {
    let wrong =
        |error: anyhow::Error| CheckResult::fail(WHAT, format!("{error:#}"), texts::MAKE_CERTIFICATES);
    let tls = member::read_certificates(cluster)
        .map_err(|error| CheckResult::fail(WHAT, format!("{error:#}"), texts::COPY_CERTIFICATE))?;
    if cluster.kind() != ProcessKind::Server {
        let (name, id) = member::without_data(cluster, &tls).map_err(wrong)?;
        return Ok((name, id, tls));
    }
    member::identity(cluster).map_err(wrong)?;
    let (name, id) = certificate_name(&tls.cert).map_err(|error| wrong(anyhow::anyhow!(error)))?;
    Ok((name, id, tls))
}

/// Verifies the certificate as another server does, and looks at its dates.
fn judged(cluster: &ClusterConfig, name: &PeerName, id: &[u8; 16], tls: &TlsPem) -> CheckResult {
    let file = &cluster.cert_file;
    let read =
        |pem: &[u8]| CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>().unwrap_or_default();
    let (chain, authorities) = (read(&tls.cert), read(&tls.ca));
    let leaf = chain.first().and_then(|der| X509Certificate::from_der(der).ok());
    let dates = leaf.and_then(|(_, leaf)| at(leaf.validity().not_before).zip(at(leaf.validity().not_after)));
    let Some((from, until)) = dates else {
        return CheckResult::fail(WHAT, certificate_texts::unreadable_dates(file), texts::MAKE_CERTIFICATES);
    };
    let mut found = dated(WHAT, file, from, until, Timestamp::now());
    if found.status == CheckStatus::Fail {
        return found;
    }
    if let Err(error) = verified(&chain, &name.dns(id), authorities) {
        let said = certificate_texts::of_other_authority(file, &cluster.ca_file, &error);
        return CheckResult::fail(WHAT, said, texts::USE_SAME_AUTHORITY);
    }
    found.said = certificate_texts::with_cluster(&found.said, name, &Id(*id));
    found
}

/// The data folder must be that of this server of this cluster.
fn folder(path: &Path, own: ClusterIdentity) -> Option<CheckResult> {
    let what = "folder";
    match DataDir::cluster_of(path) {
        Ok(Some(known)) if known == own => None,
        Ok(Some(known)) => {
            let said = texts::folder_of_other_server(path, &known, &own);
            Some(CheckResult::fail(what, said, texts::USE_FILES_OF_ONE_SERVER))
        }
        Ok(None) => Some(CheckResult::warn(what, texts::folder_of_no_cluster(path), texts::INIT_OR_JOIN)),
        Err(error) => Some(CheckResult::fail(what, error.to_string(), texts::RESTORE_OR_REPLACE)),
    }
}

async fn own(config: &Config, cluster: &ClusterConfig) -> anyhow::Result<Own> {
    let peers = cluster.peers()?;
    match cluster.kind() {
        ProcessKind::Gateway => return Ok(Own { peers, keys: None, redis: None }),
        ProcessKind::Delivery => {
            let redis = Some(member::redis_facts(config.redis.as_ref()).await);
            return Ok(Own { peers, keys: None, redis });
        }
        ProcessKind::Server => {}
    }
    let location = KeyRingLocation::find(config.keys_file.as_deref(), &config.data_dir);
    let ring = location.read().ok().map(KeyRing::of);
    let keys = ring.map(|ring| member::keys_text(&member::keys_digest(&ring)));
    Ok(Own { peers, keys, redis: Some(member::redis_facts(config.redis.as_ref()).await) })
}

/// Asks the servers that are configured, and then those of which these know.
async fn asked(
    dialer: &Arc<dyn ServerDialer>,
    peers: &BTreeMap<u64, String>,
    own: u64,
) -> (Vec<Answer>, Vec<(u64, String)>) {
    let (mut answers, mut failed) = (Vec::new(), Vec::new());
    let mut known = BTreeSet::from([own]);
    let route =
        |(number, address): (&u64, &String)| RouteServer { number: *number, address: address.clone() };
    let mut next: Vec<RouteServer> = peers.iter().map(route).collect();
    while !next.is_empty() {
        // More servers than one can have connections with are none of a cluster.
        next.retain(|server| known.len() <= PEERS_MAX && known.insert(server.number));
        let asking: JoinSet<_> = next.drain(..).map(|server| ask(Arc::clone(dialer), server)).collect();
        for (server, answer) in asking.join_all().await {
            match answer {
                Ok(answer) => {
                    next.extend(answer.facts.servers.iter().cloned());
                    answers.push(answer);
                }
                Err(why) => failed.push((server, why)),
            }
        }
    }
    answers.sort_by_key(|answer| answer.server);
    failed.sort();
    (answers, failed)
}

async fn ask(dialer: Arc<dyn ServerDialer>, server: RouteServer) -> (u64, Result<Answer, String>) {
    let number = server.number;
    let facts = ask_facts(dialer, &server).await;
    // The other server looks at its clock last, so only the way back is between the two.
    let now = now_ms();
    let answer = |facts: ServerFacts| Answer {
        server: number,
        clock_ahead_ms: facts.clock_ms.saturating_sub(now),
        facts,
    };
    (number, facts.map(answer))
}

fn now_ms() -> i64 {
    i64::try_from(SystemClock.now().0).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
