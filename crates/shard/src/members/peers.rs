//! A task of every server: give the transport the servers of the cluster, and write at the cluster's feature level.

use std::io;
use std::ops::ControlFlow;
use std::sync::{Arc, Weak};
use switchward_machine::TenantId;
use switchward_state::catalogue::{ClusterMap, Server, ServerState};
use switchward_state::{Key, Kind, Row, View};

use crate::level::check_rows;
use crate::limits::MEMBERS_LOOK;
use crate::peers::{Peer, Transport};
use crate::shards::Shards;
use crate::view::StateView;

/// The servers of the cluster by their numbers, removed ones included; none for a server alone.
///
/// # Errors
/// A row cannot be read.
pub(crate) fn servers(view: &StateView) -> io::Result<Vec<Server>> {
    let mut servers = Vec::new();
    let prefix = Key::prefix_of_catalogue(TenantId(0), Kind::Server);
    let read = view.scan(&prefix, None, &mut |_, row| {
        if let Row::Server(server) = &**row {
            servers.push(server.clone());
        }
        ControlFlow::Continue(())
    });
    read.map_err(io::Error::other)?;
    Ok(servers)
}

/// The map of the cluster; `None` for a server alone.
///
/// # Errors
/// The row cannot be read.
pub(crate) fn map(view: &StateView) -> io::Result<Option<ClusterMap>> {
    let row = view.row(&Key::cluster_map()).map_err(io::Error::other)?;
    Ok(if let Some(Row::ClusterMap(map)) = row.as_deref() { Some(map.clone()) } else { None })
}

/// The servers that this one exchanges messages with.
pub(crate) fn peers_of(servers: &[Server], own: u64) -> Vec<Peer> {
    let present = servers.iter().filter(|server| server.state != ServerState::Removed);
    let others = present.filter(|server| server.number != own);
    let peer = |server: &Server| Peer {
        number: server.number,
        address: server.address.clone(),
        folder: server.folder,
    };
    others.map(peer).collect()
}

/// Has all groups write at the level of the cluster. If this server does not know that level, its replicas fail.
pub(crate) fn follow_level(cluster: &Shards) {
    let level = match map(&cluster.catalogue().read_stale()) {
        Ok(Some(map)) => map.level,
        Ok(None) => return,
        Err(error) => {
            tracing::warn!(%error, "failed to read the feature level of the cluster");
            return;
        }
    };
    for shard in cluster.all() {
        let group = shard.group();
        group.shared.level.follow(level);
        if let Err(why) = check_rows(group.shared.level.levels(), level)
            && group.failed().is_none()
        {
            group.fail(why);
        }
    }
}

/// Runs until the cluster or the catalogue's replica is gone.
pub(crate) async fn work(cluster: Weak<Shards>, transport: Arc<dyn Transport>, own: u64) {
    let mut applied = {
        let Some(cluster) = cluster.upgrade() else { return };
        cluster.catalogue().group().shared.applied()
    };
    let mut known = Vec::new();
    loop {
        {
            let Some(cluster) = cluster.upgrade() else { return };
            if cluster.catalogue().draining() {
                return;
            }
            follow_level(&cluster);
            match servers(&cluster.catalogue().read_stale()) {
                Ok(servers) if servers != known => {
                    transport.know(&peers_of(&servers, own));
                    known = servers;
                }
                Ok(_) => {}
                Err(error) => tracing::warn!(%error, "failed to read the servers of the cluster"),
            }
        }
        // The sender is gone only with the replica, which the next look finds.
        let _waited = tokio::time::timeout(MEMBERS_LOOK, applied.changed()).await;
    }
}
