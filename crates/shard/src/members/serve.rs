//! Answers what other servers ask of an open one, besides Raft's messages.

use async_trait::async_trait;
use bytes::Bytes;
use std::sync::{Arc, Weak};
use switchward_state::catalogue::{CatalogueCommand, JoinServer};
use switchward_state::{Body, Reply};

use super::handler::Serve;
use super::join::of_catalogue;
use super::message::{HAND_OVER, JOIN, JoinAnswer, Joining, STATUS, encode_join_answer, framed, unframed};
use super::peers::servers;
use super::report::report;
use super::transfer::hand_over_here;
use crate::cluster::Cluster;
use crate::failure::Failure;
use crate::peers::PeerRequest;
use crate::remote::{self, QUESTION};
use crate::shard::Shard;
use crate::shards::Shards;

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
                let shard = cluster.all().find(|shard| shard.number() == request.group);
                let shard = shard.ok_or_else(|| "no such group here".to_owned())?;
                let handed = hand_over_here(&shards, shard, to).await;
                handed.map(|to| framed(&to)).map_err(|error| error.to_string())
            }
            STATUS => Ok(framed(&report(&shards))),
            kind => Err(format!("no message has the kind {kind}")),
        }
    }
}

/// Has the catalogue admit a server.
async fn admit(catalogue: &Shard, joining: Joining) -> JoinAnswer {
    let Joining { number, folder, address, level } = joining;
    let join = CatalogueCommand::JoinServer(JoinServer { number, folder, address, level });
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
