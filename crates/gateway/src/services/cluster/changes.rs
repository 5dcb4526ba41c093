//! Changes of one server of the cluster: what the servers report is checked first, and the catalogue refuses the change if
//! the servers have changed since.

use std::time::Duration;
use switchward_api::v1;
use switchward_shard::{ClusterStatus, NotNow};
use switchward_state::catalogue::{CatalogueCommand, ServerState, SetServerState};
use switchward_state::{Reply, RequestId, Scope};
use tokio::time::sleep;

use super::{of_lone_server, of_state, required, status};
use crate::api::Call;
use crate::error::{Reason, Refusal};
use crate::limits::{CLUSTER_CHECKS_MAX, ELECTING_LOOKS_MAX};
use crate::refusals::{odd, refusal};

/// How soon a group may have a leader: until the cluster is looked at again, and until a caller may call again.
const ELECTING_RETRY: Duration = Duration::from_millis(200);

/// What happens to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// It leads nothing any more.
    Drain,
    /// It is used again.
    Activate,
    /// It is removed for good.
    Remove,
    /// Another server takes its seats.
    Replace {
        /// The other server.
        by: u64,
    },
}

/// Makes a change, unless the cluster would suffer from it.
pub(super) async fn make(
    call: &Call<'_>,
    request: Option<RequestId>,
    server: u64,
    change: Change,
) -> Result<v1::ClusterServerChange, Refusal> {
    required("server", server)?;
    let mut checks = 0;
    let reply = loop {
        checks += 1;
        let body = async {
            let set = decided(call, |status| checked(status, server, change)).await?;
            Ok(CatalogueCommand::SetServerState(set).into())
        };
        match call.execute_prepared(Scope::Catalogue, request.clone(), body).await {
            // Another change came in between: what was checked may no longer hold.
            Err(refused) if refused.reason() == Reason::EtagMismatch && checks < CLUSTER_CHECKS_MAX => {}
            done => break done,
        }
    };
    let reply = reply.map_err(of_lone_server)?;
    let Reply::Cluster(change) = reply else { return Err(odd(&reply)) };
    let state = of_state(change.server.state).into();
    Ok(v1::ClusterServerChange { server: change.server.number, state, epoch: change.map.epoch })
}

/// What follows from the cluster as it is now. While a group elects its leader nobody knows its members: the cluster is looked at
/// again, at most [`ELECTING_LOOKS_MAX`] times.
///
/// # Errors
/// As [`NotNow`] says, or the catalogue has no leader.
pub(super) async fn decided<T>(
    call: &Call<'_>,
    decide: impl Fn(&ClusterStatus) -> Result<T, NotNow>,
) -> Result<T, Refusal> {
    let mut looks = 0;
    loop {
        looks += 1;
        match decide(&fresh(call).await?) {
            Err(NotNow::NoLeader(_)) if looks < ELECTING_LOOKS_MAX => sleep(ELECTING_RETRY).await,
            decided => return decided.map_err(not_now),
        }
    }
}

/// The cluster as it is after all that was answered before.
async fn fresh(call: &Call<'_>) -> Result<ClusterStatus, Refusal> {
    call.api.cluster.catalogue().read().await.map_err(refusal)?;
    status(call.api).await
}

/// The command of a change that can be made now.
fn checked(status: &ClusterStatus, server: u64, change: Change) -> Result<SetServerState, NotNow> {
    let known = status.servers.iter().find(|known| known.number == server);
    let (state, replaced_by) = match change {
        Change::Drain => {
            status.check_drain(server)?;
            // A replacement that was begun goes on.
            let replaced_by = known.filter(|known| known.state == ServerState::Draining);
            (ServerState::Draining, replaced_by.and_then(|known| known.replaced_by))
        }
        Change::Activate => {
            known.ok_or(NotNow::NoServer(server))?;
            (ServerState::Active, None)
        }
        Change::Remove => {
            status.check_remove(server)?;
            (ServerState::Removed, known.and_then(|known| known.replaced_by))
        }
        Change::Replace { by } => {
            status.check_replace(server, by)?;
            // Its seats may be taken already.
            let is_removed = known
                .is_some_and(|known| known.state == ServerState::Removed && known.replaced_by == Some(by));
            let state = if is_removed { ServerState::Removed } else { ServerState::Draining };
            (state, Some(by))
        }
    };
    Ok(SetServerState { number: server, state, replaced_by, epoch: Some(status.epoch) })
}

/// The refusal of what cannot be done with the servers now.
fn not_now(why: NotNow) -> Refusal {
    let message = why.to_string();
    match why {
        NotNow::NoServer(server) => Refusal::not_found("server", server.to_string()),
        NotNow::NoGroup(group) => Refusal::not_found("group", group.to_string()),
        NotNow::NoLeader(group) => {
            Refusal::new(Reason::ShardElecting, message).meta("group", group).retry_after(ELECTING_RETRY)
        }
        NotNow::Votes { server, groups } => {
            let groups: Vec<String> = groups.iter().map(u64::to_string).collect();
            Refusal::new(Reason::ServerVotes, message).meta("server", server).meta("groups", groups.join(","))
        }
        NotNow::TooFewVoters { server, group } => {
            Refusal::new(Reason::TooFewVoters, message).meta("server", server).meta("group", group)
        }
        NotNow::NotLost(server) => Refusal::new(Reason::ServerNotLost, message).meta("server", server),
        NotNow::NotReady { server, group } => {
            Refusal::new(Reason::ServerNotReady, message).meta("server", server).meta("group", group)
        }
        NotNow::NoSuccessor(group) => Refusal::new(Reason::ServerNotReady, message).meta("group", group),
    }
}
