//! Becoming a server of a cluster.

use std::io;
use switchward_machine::TenantId;
use switchward_state::catalogue::{CatalogueCommand, ClusterMap, FoundCluster, JoinServer, Server};
use switchward_state::{Body, Command, Reply};
use switchward_store::{DataDir, Id};
use tokio::time::{Instant, sleep};

use super::message::{JOIN, JoinAnswer, Joining, decode_join_answer, framed};
use super::options::MemberOptions;
use super::peers::peers_of;
use crate::failure::Failure;
use crate::limits::{JOIN_AGAIN, JOIN_WAIT, PROGRESS_INTERVAL};
use crate::peers::{PeerConnection, PeerRequest};
use crate::shard::Shard;
use crate::shards::CATALOGUE;

/// A command about the servers themselves, which belong to no tenant.
pub(crate) fn of_catalogue(body: Body) -> Command {
    Command::in_own_scope(TenantId(0), body)
}

/// The cluster that the folder is bound to.
///
/// # Errors
/// It is bound to none, or to another number.
pub(crate) fn check_claimed(data: &DataDir, number: u64) -> io::Result<Id> {
    let refused = |what: String| {
        let message = format!("the data folder {} {what}", data.path().display());
        io::Error::new(io::ErrorKind::InvalidInput, message)
    };
    match data.identity().cluster {
        Some(claimed) if claimed.server == number => Ok(claimed.cluster),
        Some(claimed) => Err(refused(format!("belongs to {claimed}, and not to server {number}"))),
        None => Err(refused("belongs to no cluster".into())),
    }
}

/// Records the server as the first one of its cluster.
///
/// # Errors
/// Another cluster was founded here, or the catalogue has no leader.
pub(crate) async fn found(
    catalogue: &Shard,
    data: &DataDir,
    member: &MemberOptions,
    shards: u32,
) -> io::Result<()> {
    let cluster = check_claimed(data, member.number)?;
    let server = this_server(data, member);
    let found = FoundCluster { cluster: cluster.0, server, shards: u64::from(shards), voters: member.voters };
    let command = of_catalogue(Body::Catalogue(CatalogueCommand::FoundCluster(found)));
    match catalogue.submit(command).await {
        Ok(Reply::Cluster(_)) => Ok(()),
        Ok(other) => Err(io::Error::other(format!("unexpected reply of the catalogue: {other:?}"))),
        Err(Failure::Rejected(rejection)) => Err(io::Error::other(rejection.message)),
        Err(failure) => Err(io::Error::other(failure)),
    }
}

/// What this server says about itself.
pub(super) fn this_server(data: &DataDir, member: &MemberOptions) -> JoinServer {
    JoinServer {
        number: member.number,
        folder: data.identity().folder.0,
        address: member.address.clone(),
        levels: member.levels,
    }
}

/// The message in which a server says this about itself.
pub(super) fn joining(server: &JoinServer) -> Joining {
    let JoinServer { number, folder, address, levels } = server.clone();
    Joining { number, folder, address, levels }
}

/// Asks the peers, in turn and until one of them has an answer, to admit this server. Returns the map of the cluster.
///
/// # Errors
/// The cluster refuses the server, or there is nobody to ask.
pub(crate) async fn join(data: &DataDir, member: &MemberOptions, peers: &[u64]) -> io::Result<ClusterMap> {
    let cluster = check_claimed(data, member.number)?;
    let joining = joining(&this_server(data, member));
    let others: Vec<u64> = peers.iter().copied().filter(|peer| *peer != member.number).collect();
    if others.is_empty() {
        let message = "a server that joins needs another server to ask";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    let mut report_at = Instant::now();
    loop {
        let mut last = String::new();
        for peer in &others {
            match ask(member, *peer, &joining).await {
                Ok(JoinAnswer::Admitted { change, servers }) => {
                    return admitted(member, cluster, change.map, &servers);
                }
                Ok(JoinAnswer::Refused(rejection)) => {
                    let message = format!("the cluster refuses this server: {}", rejection.message);
                    return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
                }
                Ok(JoinAnswer::Again(why)) | Err(why) => last = format!("server {peer}: {why}"),
            }
        }
        if Instant::now() >= report_at {
            tracing::info!(server = member.number, last, "waiting for the cluster to admit this server");
            report_at = Instant::now() + PROGRESS_INTERVAL;
        }
        sleep(JOIN_AGAIN).await;
    }
}

fn admitted(
    member: &MemberOptions,
    cluster: Id,
    map: ClusterMap,
    servers: &[Server],
) -> io::Result<ClusterMap> {
    if map.cluster != cluster.0 {
        let message = format!(
            "the server was admitted by cluster {}, and its folder belongs to {cluster}",
            Id(map.cluster)
        );
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    member.transport.know(&peers_of(servers, member.number));
    Ok(map)
}

/// Asks a peer to admit this server, or to take its new address.
///
/// # Errors
/// Why the peer has not answered.
pub(super) async fn ask(member: &MemberOptions, peer: u64, joining: &Joining) -> Result<JoinAnswer, String> {
    let request = PeerRequest { kind: JOIN, group: CATALOGUE, body: framed(joining) };
    let answer = member.transport.call(peer, PeerConnection::Control, request, JOIN_WAIT).await;
    let bytes = answer.map_err(|error| error.to_string())?;
    decode_join_answer(&bytes).map_err(|error| error.to_string())
}
