//! Answers what other servers ask of an open one, besides Raft's messages.

use async_trait::async_trait;
use bytes::Bytes;
use std::sync::{Arc, Weak};
use switchward_state::catalogue::{CatalogueCommand, JoinServer};
use switchward_state::{Body, Reply};

use super::handler::Serve;
use super::join::of_catalogue;
use super::message::{
    BACKUP_MARK, BACKUP_PAUSE, BACKUP_RESUME, DIGEST, HAND_OVER, JOIN, JoinAnswer, Joining, MARK, OUTVOTED,
    STATUS, encode_join_answer, framed, unframed,
};
use super::peers::servers;
use super::report::report;
use super::transfer::hand_over_here;
use crate::backup;
use crate::cluster::Cluster;
use crate::failure::Failure;
use crate::mark::ID_BYTES;
use crate::peers::PeerRequest;
use crate::remote::{self, QUESTION};
use crate::shard::Shard;
use crate::shards::Shards;
use crate::verify;

/// The shards of a server, as long as they are open.
pub(crate) struct Served(Weak<Shards>);

impl Served {
    pub(crate) fn of(shards: &Arc<Shards>) -> Arc<Self> {
        Arc::new(Self(Arc::downgrade(shards)))
    }
}

#[async_trait]
impl Serve for Served {
    async fn serve(&self, from: u64, request: PeerRequest) -> Result<Bytes, String> {
        let shards = self.0.upgrade().ok_or_else(|| "this server is shut down".to_owned())?;
        let cluster = Cluster::of_shards(Arc::clone(&shards));
        match request.kind {
            QUESTION => {
                let answered = remote::serve(&cluster, request.group, &request.body).await;
                answered.map_err(|error| error.to_string())
            }
            JOIN => {
                let joining: Joining = unframed(&request.body).map_err(|error| error.to_string())?;
                if joining.number != from {
                    return Err("the message is in another server's name".into());
                }
                Ok(encode_join_answer(&admit(cluster.catalogue(), joining).await))
            }
            HAND_OVER => {
                let to: Option<u64> = unframed(&request.body).map_err(|error| error.to_string())?;
                let handed = hand_over_here(&shards, shard_of(&cluster, &request)?, to).await;
                handed.map(|to| framed(&to)).map_err(|error| error.to_string())
            }
            STATUS => Ok(framed(&report(&shards))),
            MARK => {
                let () = unframed(&request.body).map_err(|error| error.to_string())?;
                verify::write_digest_mark(shard_of(&cluster, &request)?).await.map(|marked| framed(&marked))
            }
            DIGEST => {
                let index: u64 = unframed(&request.body).map_err(|error| error.to_string())?;
                Ok(framed(&verify::digest(shard_of(&cluster, &request)?, index).await))
            }
            OUTVOTED => {
                let verdict = unframed(&request.body).map_err(|error| error.to_string())?;
                verify::outvoted(shard_of(&cluster, &request)?, &verdict).await.map(|()| framed(&()))
            }
            BACKUP_PAUSE | BACKUP_MARK | BACKUP_RESUME => {
                serve_backup(shard_of(&cluster, &request)?, &request).await.map(|()| framed(&()))
            }
            kind => Err(format!("no message has the kind {kind}")),
        }
    }
}

/// Stops, marks or goes on for a backup that another server takes.
async fn serve_backup(shard: &Shard, request: &PeerRequest) -> Result<(), String> {
    let id: minicbor::bytes::ByteArray<ID_BYTES> =
        unframed(&request.body).map_err(|error| error.to_string())?;
    let id = id.into();
    match request.kind {
        BACKUP_PAUSE => backup::pause(shard, id).await,
        BACKUP_MARK => backup::mark(shard, id).await.map(drop),
        _ => {
            backup::resume(shard, id);
            Ok(())
        }
    }
}

/// The shard of the group that a message is about.
fn shard_of<'c>(cluster: &'c Cluster, request: &PeerRequest) -> Result<&'c Shard, String> {
    let shard = cluster.all().find(|shard| shard.number() == request.group);
    shard.ok_or_else(|| "no such group here".to_owned())
}

/// Has the catalogue admit a server.
async fn admit(catalogue: &Shard, joining: Joining) -> JoinAnswer {
    let Joining { number, folder, address, levels } = joining;
    let join = CatalogueCommand::JoinServer(JoinServer { number, folder, address, levels });
    match catalogue.submit(of_catalogue(Body::Catalogue(join))).await {
        // Rows that hold the change: the new server must know all others.
        Ok(Reply::Cluster(change)) => match catalogue.read().await {
            Ok(rows) => JoinAnswer::Admitted { change, servers: servers(&rows).unwrap_or_default() },
            Err(failure) => JoinAnswer::Again(failure.to_string()),
        },
        Ok(other) => JoinAnswer::Again(format!("unexpected reply of the catalogue: {other:?}")),
        Err(Failure::Rejected(rejection)) => JoinAnswer::Refused(rejection),
        Err(failure) => JoinAnswer::Again(failure.to_string()),
    }
}
