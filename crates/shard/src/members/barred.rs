//! Which servers must not lead now, as they say themselves.

use futures::future::join_all;
use std::collections::BTreeSet;
use switchward_state::catalogue::ServerState;

use super::peers::servers;
use super::status::ask;
use crate::shards::Shards;

/// Asks all other servers, each for at most [`STATUS_WAIT`](crate::limits::STATUS_WAIT). Returns those that say that they
/// must not lead. A server that does not answer is not one of them: it is not known to be barred.
pub(crate) async fn barred(shards: &Shards) -> BTreeSet<u64> {
    let Some(member) = shards.member() else { return BTreeSet::new() };
    let known = servers(&shards.catalogue().read_stale());
    let known =
        known.inspect_err(|error| tracing::warn!(%error, "failed to read the servers of the cluster"));
    let known = known.unwrap_or_default();
    let present = known.iter().filter(|server| server.state != ServerState::Removed);
    let others = present.map(|server| server.number).filter(|server| *server != member.number);
    let answers = join_all(others.map(|server| ask(shards, member, server))).await;
    let barred = answers.into_iter().flatten().filter(|(_, reported)| !reported.report.may_lead);
    barred.map(|(server, _)| server).collect()
}
