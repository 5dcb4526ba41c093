//! `switchward cluster`: the commands that call a server of the cluster.

mod shown;
mod verified;

use std::time::Duration;
use switchward_api::v1;
use switchward_messages::cli;
use tokio::time::{Instant, sleep};

use super::show;
use super::talk::Talk;
use crate::args::{
    ClusterDrain, ClusterLevel, ClusterRemove, ClusterReplace, ClusterTransfer, ClusterVerify,
};
use crate::exit::Exit;
use crate::output::{card, period};

/// How often a command that waits looks at the cluster.
const LOOK: Duration = Duration::from_secs(1);
/// How often it looks for the leader of a group.
const LEADER_LOOK: Duration = Duration::from_millis(200);
/// How long it looks for one: an election takes a second or two.
const LEADER_WAIT: Duration = Duration::from_secs(5);
/// How long a command waits. The change goes on without it.
const WAIT_MAX: Duration = Duration::from_secs(15 * 60);

pub(super) async fn status(talk: &Talk) -> Result<(), Exit> {
    let cluster = get(talk).await?;
    talk.printer.message("GetClusterResponse", &cluster, || shown::cluster(&cluster))?;
    if cluster.effects_held_tenants > 0 {
        talk.printer.advice("switchward effect release --all-tenants   sends what is held since the restore");
    }
    Ok(())
}

pub(super) async fn verify(talk: &Talk, verify: ClusterVerify) -> Result<(), Exit> {
    let groups = match verify.groups {
        groups if groups.is_empty() => get(talk).await?.groups.iter().map(|group| group.number).collect(),
        groups => groups,
    };
    verified::run(talk, &groups).await
}

pub(super) async fn drain(talk: &Talk, drain: ClusterDrain) -> Result<(), Exit> {
    let request = v1::DrainServerRequest { server: drain.server, request_id: talk.request_id() };
    let reply =
        talk.client.call(request, |mut it, request| async move { it.cluster.drain_server(request).await });
    let reply = reply.await?;
    if drain.wait {
        wait(talk, |cluster| drains(cluster, drain.server)).await?;
    }
    talk.printer.message("DrainServerResponse", &reply, || changed(reply.change.as_ref()))?;
    talk.printer.advice(&format!("switchward cluster activate {}   uses it again", drain.server));
    Ok(())
}

pub(super) async fn activate(talk: &Talk, server: u64) -> Result<(), Exit> {
    let request = v1::ActivateServerRequest { server, request_id: talk.request_id() };
    let reply = talk
        .client
        .call(request, |mut it, request| async move { it.cluster.activate_server(request).await })
        .await?;
    talk.printer.message("ActivateServerResponse", &reply, || changed(reply.change.as_ref()))
}

pub(super) async fn remove(talk: &Talk, remove: ClusterRemove) -> Result<(), Exit> {
    if !remove.yes {
        talk.sure(&format!("removing server {}", remove.server))?;
    }
    let request = v1::RemoveServerRequest { server: remove.server, request_id: talk.request_id() };
    let reply =
        talk.client.call(request, |mut it, request| async move { it.cluster.remove_server(request).await });
    let reply = reply.await?;
    talk.printer.message("RemoveServerResponse", &reply, || changed(reply.change.as_ref()))
}

pub(super) async fn replace(talk: &Talk, replace: ClusterReplace) -> Result<(), Exit> {
    if !replace.yes {
        talk.sure(&format!("replacing server {} by server {}", replace.server, replace.by))?;
    }
    let (server, replaced_by, request_id) = (replace.server, replace.by, talk.request_id());
    let request = v1::ReplaceServerRequest { server, replaced_by, request_id };
    let reply =
        talk.client.call(request, |mut it, request| async move { it.cluster.replace_server(request).await });
    let reply = reply.await?;
    if replace.wait {
        wait(talk, |cluster| leaves(cluster, server)).await?;
    }
    talk.printer.message("ReplaceServerResponse", &reply, || changed(reply.change.as_ref()))
}

pub(super) async fn transfer(talk: &Talk, transfer: ClusterTransfer) -> Result<(), Exit> {
    let ClusterTransfer { from, groups, to } = transfer;
    let from_server = match (from, groups.as_slice()) {
        (Some(from), _) => from,
        (None, [group]) => leader(talk, *group).await?,
        (None, _) => return Err(Exit::usage("several groups need --from, the server that leads them")),
    };
    let (to_server, request_id) = (to.unwrap_or(0), talk.request_id());
    let request = v1::TransferLeadersRequest { from_server, groups, to_server, request_id };
    // Groups are handed over one after the other.
    let client = talk.client.waiting(LOOK * 60);
    let reply =
        client.call(request, |mut it, request| async move { it.cluster.transfer_leaders(request).await });
    let reply = reply.await?;
    let cluster = get(talk).await?;
    talk.printer.message("TransferLeadersResponse", &reply, || shown::groups(&cluster))
}

pub(super) async fn level(talk: &Talk, level: ClusterLevel) -> Result<(), Exit> {
    let cluster = get(talk).await?;
    if !level.raise {
        let possible = levels_possible(&cluster);
        talk.printer.message("GetClusterResponse", &cluster, || shown::levels(&cluster))?;
        if possible > cluster.level {
            talk.printer
                .advice(&format!("switchward cluster level --raise   raises it to {possible}, for good"));
        }
        return Ok(());
    }
    let to = levels_possible(&cluster).max(cluster.level);
    if to > cluster.level && !level.yes {
        talk.sure(&format!("raising the feature level from {} to {to}", cluster.level))?;
    }
    let request = v1::RaiseLevelRequest { level: to, request_id: talk.request_id() };
    let reply =
        talk.client.call(request, |mut it, request| async move { it.cluster.raise_level(request).await });
    let reply = reply.await?;
    talk.printer.message("RaiseLevelResponse", &reply, || {
        card(&[("level", reply.level.to_string()), ("epoch", reply.epoch.to_string())])
    })
}

/// The highest level that all servers know; 0 if there are none.
fn levels_possible(cluster: &v1::GetClusterResponse) -> u32 {
    let present = cluster.servers.iter().filter(|one| one.state() != v1::ClusterServerState::Removed);
    present.map(|server| server.highest_level).min().unwrap_or(0)
}

async fn get(talk: &Talk) -> Result<v1::GetClusterResponse, Exit> {
    let request = v1::GetClusterRequest {};
    let reply =
        talk.client.call(request, |mut it, request| async move { it.cluster.get_cluster(request).await });
    Ok(reply.await?)
}

/// The server that leads a group. While one is being elected, it is looked for again, at most for [`LEADER_WAIT`].
///
/// # Errors
/// The cluster cannot be read, or has no such group, or the group has no leader in time.
async fn leader(talk: &Talk, group: u64) -> Result<u64, Exit> {
    let until = Instant::now() + LEADER_WAIT;
    loop {
        match led_by(&get(talk).await?, group)? {
            Some(leader) => return Ok(leader),
            None if Instant::now() < until => sleep(LEADER_LOOK).await,
            None => {
                let message = cli::client::group_without_leader(group);
                return Err(Exit::unreachable(format!("{message}; try again")));
            }
        }
    }
}

/// The server that leads a group; `None` while none does.
fn led_by(cluster: &v1::GetClusterResponse, group: u64) -> Result<Option<u64>, Exit> {
    let found = cluster.groups.iter().find(|one| one.number == group);
    let found = found.ok_or_else(|| Exit::missing(format!("there is no group {group}")))?;
    Ok(found.leader)
}

/// Looks at the cluster until `left` says that nothing is left to wait for.
///
/// # Errors
/// The cluster cannot be read, or it takes longer than [`WAIT_MAX`].
async fn wait(talk: &Talk, left: impl Fn(&v1::GetClusterResponse) -> Option<String>) -> Result<(), Exit> {
    let until = Instant::now() + WAIT_MAX;
    let mut before = String::new();
    while let Some(left) = left(&get(talk).await?) {
        if Instant::now() >= until {
            let message = format!("not finished within {}: {left}", period(WAIT_MAX));
            return Err(Exit::unreachable(message).next("switchward cluster status"));
        }
        if before != left {
            talk.printer.progress(&left);
            before = left;
        }
        sleep(LOOK).await;
    }
    Ok(())
}

/// What a server that is drained still leads; `None` if it leads nothing.
fn drains(cluster: &v1::GetClusterResponse, server: u64) -> Option<String> {
    if let Some(group) = cluster.groups.iter().find(|group| group.leader.is_none()) {
        return Some(cli::client::group_without_leader(group.number));
    }
    let leads = cluster.groups.iter().filter(|group| group.leader == Some(server));
    let leads: Vec<String> = leads.map(|group| group.number.to_string()).collect();
    (!leads.is_empty()).then(|| cli::client::server_leads(server, &leads))
}

/// In which groups a server that is replaced still votes; `None` if it is removed.
fn leaves(cluster: &v1::GetClusterResponse, server: u64) -> Option<String> {
    let known = cluster.servers.iter().find(|known| known.number == server);
    if known.is_some_and(|known| known.state() == v1::ClusterServerState::Removed) {
        return None;
    }
    let votes = |group: &&v1::ClusterGroup| {
        group.replicas.iter().any(|replica| replica.server == server && replica.voter)
    };
    let votes: Vec<String> =
        cluster.groups.iter().filter(votes).map(|group| group.number.to_string()).collect();
    Some(cli::client::server_votes(server, &votes))
}

fn changed(change: Option<&v1::ClusterServerChange>) -> String {
    let change = change.copied().unwrap_or_default();
    card(&[
        ("server", change.server.to_string()),
        ("state", show::word(change.state().as_str_name(), "CLUSTER_SERVER_STATE_")),
        ("epoch", change.epoch.to_string()),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster(leader: Option<u64>, voters: &[u64], state: v1::ClusterServerState) -> v1::GetClusterResponse {
        let replica =
            |server: &u64| v1::ClusterReplica { server: *server, voter: true, ..Default::default() };
        let replicas = voters.iter().map(replica).collect();
        let group = v1::ClusterGroup { number: 2, leader, replicas, ..Default::default() };
        let server = v1::ClusterServer { number: 3, state: state.into(), ..Default::default() };
        v1::GetClusterResponse { servers: vec![server], groups: vec![group], ..Default::default() }
    }

    #[test]
    fn a_command_waits_until_nothing_is_left() {
        let draining = v1::ClusterServerState::Draining;
        let text = |text: &str| Some(text.to_owned());
        let led = |leader| drains(&cluster(leader, &[1, 2, 3], draining), 3);
        assert_eq!(led(Some(3)), text("server 3 still leads: 2"));
        assert_eq!(led(None), text("group 2 has no leader now"));
        assert_eq!(led(Some(1)), None);
        let left = |voters: &[u64], state| leaves(&cluster(Some(1), voters, state), 3);
        assert_eq!(left(&[1, 2, 3], draining), text("server 3 still votes in: 2"));
        assert_eq!(left(&[1, 2, 4], draining), text("server 3 votes nowhere and will be removed"));
        assert_eq!(left(&[1, 2, 4], v1::ClusterServerState::Removed), None);
    }

    #[test]
    fn the_level_may_rise_to_what_all_servers_know() {
        let server = |highest_level, state: v1::ClusterServerState| v1::ClusterServer {
            highest_level,
            state: state.into(),
            ..Default::default()
        };
        let (active, removed) = (v1::ClusterServerState::Active, v1::ClusterServerState::Removed);
        for (servers, expected) in [
            (vec![], 0),
            (vec![server(3, active), server(2, active)], 2),
            (vec![server(3, active), server(2, removed)], 3),
        ] {
            let cluster = v1::GetClusterResponse { servers, ..Default::default() };
            assert_eq!(levels_possible(&cluster), expected);
        }
    }

    #[test]
    fn the_leader_of_a_group_is_looked_up() {
        let seen = cluster(Some(1), &[1, 2, 3], v1::ClusterServerState::Active);
        assert_eq!(led_by(&seen, 2).unwrap(), Some(1));
        assert!(led_by(&seen, 9).is_err());
        assert_eq!(led_by(&cluster(None, &[1], v1::ClusterServerState::Active), 2).unwrap(), None);
    }
}
