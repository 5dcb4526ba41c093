//! The servers of a cluster.

use serde_json::{Value, json};
use switchward_state::catalogue::{
    AssignVoters, CatalogueEvent, ChangedPart, ClusterChange, ClusterMap, FoundCluster, JoinServer,
    LeaderTransfer, RecordTransfers, Server, ServerState, SetServerState, Tenancy, TenantChange, TenantFact,
};
use switchward_state::limits::{SERVER_ADDRESS_BYTES_MAX, SERVER_NUMBER_MAX, SERVERS_MAX, VOTERS_MAX};
use switchward_state::run::Json;
use switchward_state::{Key, ReadRows as _, Reason, Rejection, Reply, ViewError};

use crate::turn::{Stop, Turn};

/// Makes the server the first one of a cluster. Repeated, it changes nothing.
pub(crate) fn found(turn: &mut Turn<'_, '_>, found: &FoundCluster) -> Result<Reply, Stop> {
    let join = &found.server;
    check(join)?;
    if found.voters.is_multiple_of(2) || found.voters > VOTERS_MAX {
        let message = format!("the number of voters is odd, and {VOTERS_MAX} at most");
        return Err(Rejection::new(Reason::FieldInvalid, message).fact("field", "voters").into());
    }
    if let Some(map) = turn.rows.cluster_map_at(&Key::cluster_map())? {
        let known = turn.rows.server_at(&Key::server(join.number))?;
        let same = map.cluster == found.cluster && known.is_some_and(|known| known.folder == join.folder);
        if same {
            return rejoin(turn, join);
        }
        return Err(Rejection::new(Reason::AlreadyExists, "the cluster is founded already").into());
    }
    let map =
        ClusterMap::founded(found.cluster, join.number, found.shards, join.levels.highest, found.voters);
    put(turn, active(join, turn.now()), map)
}

/// Adds a server. If the same server has joined already, its address and its levels may change.
pub(crate) fn join(turn: &mut Turn<'_, '_>, join: &JoinServer) -> Result<Reply, Stop> {
    check(join)?;
    let map = map(turn)?;
    if turn.rows.server_at(&Key::server(join.number))?.is_some() {
        return rejoin(turn, join);
    }
    check_capacity(turn, &map, join.number)?;
    check_level(&map, join)?;
    let server = active(join, turn.now());
    let map = map.changed(&server);
    put(turn, server, map)
}

/// Drains a server, uses it again, or removes it.
pub(crate) fn set_state(turn: &mut Turn<'_, '_>, set: &SetServerState) -> Result<Reply, Stop> {
    let map = map(turn)?;
    let known = turn.rows.server_at(&Key::server(set.number))?.map(|known| Server::clone(&known));
    let Some(known) = known else {
        let message = "the cluster has no server of this number";
        return Err(of_server(Reason::NotFound, set.number, message).into());
    };
    let is_removed = known.state == ServerState::Removed;
    if known.state == set.state && (is_removed || known.replaced_by == set.replaced_by) {
        return Ok(reply(known, map));
    }
    if is_removed {
        return Err(removed(set.number).into());
    }
    if set.epoch.is_some_and(|epoch| epoch != map.epoch) {
        let message = "the servers of the cluster have changed meanwhile";
        return Err(Rejection::new(Reason::EtagMismatch, message).fact("epoch", map.epoch).into());
    }
    check_state(turn, &map, set)?;
    let before = state_of(&known);
    let server = Server { state: set.state, replaced_by: set.replaced_by, ..known };
    let map = map.changed(&server);
    let part = part(format!("servers.{}", server.number), before, state_of(&server));
    note(turn, vec![part])?;
    put(turn, server, map)
}

/// Refuses a state that the server cannot have beside the others.
fn check_state(turn: &Turn<'_, '_>, map: &ClusterMap, set: &SetServerState) -> Result<(), Stop> {
    match set.state {
        ServerState::Active => check_capacity(turn, map, set.number),
        ServerState::Draining => {
            let Some(by) = set.replaced_by else { return Ok(()) };
            let state = turn.rows.server_at(&Key::server(by))?.map(|server| server.state);
            if by != set.number && state == Some(ServerState::Active) {
                return Ok(());
            }
            let message = "a server is replaced by another one that is active";
            Err(of_server(Reason::StateMismatch, by, message).into())
        }
        ServerState::Removed if map.replicas(0).len() == 1 => {
            let message = "the only server of a cluster cannot be removed";
            Err(of_server(Reason::StateMismatch, set.number, message).into())
        }
        ServerState::Removed => Ok(()),
    }
}

/// Refuses one more active server than a cluster may have. Beside them there may be one that drains, so that a lost server
/// can be replaced in the largest cluster, too.
fn check_capacity(turn: &Turn<'_, '_>, map: &ClusterMap, number: u64) -> Result<(), Stop> {
    let others: Vec<u64> = map.replicas(0).iter().copied().filter(|other| *other != number).collect();
    let mut active = 0;
    for other in &others {
        let state = turn.rows.server_at(&Key::server(*other))?.map(|server| server.state);
        active += usize::from(state == Some(ServerState::Active));
    }
    if active < SERVERS_MAX && others.len() <= SERVERS_MAX {
        return Ok(());
    }
    let message = format!("the cluster has {SERVERS_MAX} active servers already, and cannot have more");
    Err(Rejection::new(Reason::QuotaExceeded, message).fact("servers", SERVERS_MAX).into())
}

/// Has other servers vote in a group. Each replica stays where it is.
pub(crate) fn assign(turn: &mut Turn<'_, '_>, assign: &AssignVoters) -> Result<Reply, Stop> {
    let map = map(turn)?;
    let Some(known) = map.groups.iter().find(|known| known.group == assign.group) else {
        let message = "the cluster has no group of this number";
        return Err(Rejection::new(Reason::NotFound, message).fact("group", assign.group).into());
    };
    if known.voters == assign.voters {
        return Ok(Reply::Done);
    }
    if assign.epoch != map.epoch {
        let message = "the servers of the cluster have changed meanwhile";
        return Err(Rejection::new(Reason::EtagMismatch, message).fact("epoch", map.epoch).into());
    }
    let voters = &assign.voters;
    let is_sorted = voters.is_sorted_by(|one, next| one < next);
    let held = voters.iter().all(|voter| known.servers.contains(voter));
    let gone = known.voters.iter().filter(|voter| !voters.contains(voter)).count();
    let new = voters.iter().filter(|voter| !known.voters.contains(voter)).count();
    if voters.is_empty() || voters.len() > map.seats() || !is_sorted || !held || gone > 1 || new > 1 {
        let message = "the voters of a group have replicas of it, and one of them moves at a time";
        return Err(Rejection::new(Reason::StateMismatch, message).fact("group", assign.group).into());
    }
    turn.emit(CatalogueEvent::VotersPlaced(Box::new(map.placed(assign.group, voters))))?;
    Ok(Reply::Done)
}

/// Records for auditors that leaders were transferred.
pub(crate) fn record_transfers(turn: &mut Turn<'_, '_>, record: &RecordTransfers) -> Result<Reply, Stop> {
    let part = |transfer: &LeaderTransfer| {
        part(format!("leaders.group-{}", transfer.group), json!(record.from), json!(transfer.to))
    };
    note(turn, record.transfers.iter().map(part).collect())?;
    Ok(Reply::Done)
}

/// Records what an operator has changed, in the tenant of their key. Commands of the servers themselves have none.
pub(super) fn note(turn: &mut Turn<'_, '_>, parts: Vec<ChangedPart>) -> Result<(), Stop> {
    let known =
        turn.rows.tenancy_at(&Key::tenancy_record(turn.tenant()))?.map(|known| Tenancy::clone(&known));
    let Some(known) = known.filter(|_| !parts.is_empty()) else { return Ok(()) };
    let number = known.changes + 1;
    turn.emit(CatalogueEvent::TenancyPut(Tenancy { changes: number, ..known }))?;
    let change = TenantChange { at: turn.now(), by: turn.command.actor.clone(), parts };
    turn.emit(TenantFact::Changed { number, change })?;
    Ok(())
}

pub(super) fn part(name: String, before: Value, after: Value) -> ChangedPart {
    ChangedPart { name, before: Json(before), after: Json(after) }
}

/// A server's state as an auditor reads it.
fn state_of(server: &Server) -> Value {
    match server.replaced_by {
        None => json!({ "state": server.state.word() }),
        Some(by) => json!({ "state": server.state.word(), "replaced_by": by }),
    }
}

/// A server that is known joins again, with the folder that it had.
fn rejoin(turn: &mut Turn<'_, '_>, join: &JoinServer) -> Result<Reply, Stop> {
    let map = map(turn)?;
    let known = turn.rows.server_at(&Key::server(join.number))?.map(|known| Server::clone(&known));
    let known = known.ok_or_else(|| ViewError(format!("there is no row of server {}", join.number)))?;
    if known.state == ServerState::Removed {
        return Err(removed(join.number).into());
    }
    if known.folder != join.folder {
        let message = "the number belongs to a server with another data folder; a wiped or replaced server joins \
                       under a new number, after the old one was removed";
        return Err(of_server(Reason::AlreadyExists, join.number, message).into());
    }
    check_level(&map, join)?;
    let server = Server { address: join.address.clone(), levels: join.levels, ..known.clone() };
    if server == known {
        return Ok(reply(known, map));
    }
    let map = map.changed(&server);
    put(turn, server, map)
}

fn put(turn: &mut Turn<'_, '_>, server: Server, map: ClusterMap) -> Result<Reply, Stop> {
    let change = ClusterChange { server, map };
    turn.emit(CatalogueEvent::ClusterChanged(Box::new(change.clone())))?;
    Ok(Reply::Cluster(Box::new(change)))
}

fn reply(server: Server, map: ClusterMap) -> Reply {
    Reply::Cluster(Box::new(ClusterChange { server, map }))
}

pub(super) fn map(turn: &Turn<'_, '_>) -> Result<ClusterMap, Stop> {
    let map = turn.rows.cluster_map_at(&Key::cluster_map())?;
    let none = || Rejection::new(Reason::NotFound, "the server stands alone: no cluster was founded");
    Ok(map.map(|map| ClusterMap::clone(&map)).ok_or_else(none)?)
}

fn active(join: &JoinServer, now: switchward_machine::Time) -> Server {
    Server {
        number: join.number,
        folder: join.folder,
        address: join.address.clone(),
        state: ServerState::Active,
        levels: join.levels,
        joined: now,
        replaced_by: None,
    }
}

fn check(join: &JoinServer) -> Result<(), Rejection> {
    if !(1..=SERVER_NUMBER_MAX).contains(&join.number) {
        let message = format!("the number of a server is 1 to {SERVER_NUMBER_MAX}");
        return Err(of_server(Reason::FieldInvalid, join.number, message).fact("field", "number"));
    }
    if join.address.is_empty() || join.address.len() > SERVER_ADDRESS_BYTES_MAX {
        let message = format!("the address of a server has 1 to {SERVER_ADDRESS_BYTES_MAX} bytes");
        return Err(of_server(Reason::FieldInvalid, join.number, message).fact("field", "address"));
    }
    Ok(())
}

fn check_level(map: &ClusterMap, join: &JoinServer) -> Result<(), Rejection> {
    join.levels
        .check(map.level)
        .map_err(|message| of_server(Reason::StateMismatch, join.number, message).fact("level", map.level.0))
}

fn removed(number: u64) -> Rejection {
    let message = "the server was removed; its number cannot be used again";
    of_server(Reason::StateMismatch, number, message)
}

fn of_server(reason: Reason, number: u64, message: impl Into<String>) -> Rejection {
    Rejection::new(reason, message).fact("server", number)
}
