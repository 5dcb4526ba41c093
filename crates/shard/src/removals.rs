//! A leader task: expire what exceeds its retention, and remove data in bounded steps.
//!
//! A removal is a mark on its session and an entry of an index, so another leader can continue it. Each step is a
//! command that names the rows, few enough that no caller waits for it; between two rounds there is a rest.

use switchward_state::session::SessionCommand;
mod backlog;
mod expiry;
mod tenants;

use backlog::Backlog;
use futures::future::join_all;
use openraft::async_runtime::WatchReceiver;
use std::ops::ControlFlow;
use std::sync::Weak;
use std::time::Duration;
use switchward_machine::{SessionId, TenantId};
use switchward_state::session::{RemoveStep, Removing, Session, is_redacted};
use switchward_state::{Body, Command, IndexKey, Key, Kind, REMOVED_KINDS, Row, View, ViewError};

use crate::clock::instant;
use crate::failure::Failure;
use crate::limits::{
    CLOCK_LOOK, EXPIRY_LOOK, LEADER_TICK, REMOVALS_AT_ONCE, REMOVALS_COUNTED_MAX, REMOVE_REST,
    REMOVE_REST_MAX, REMOVE_RESTS, REMOVE_STEP_BYTES, REMOVE_STEP_ROWS, REMOVE_STEPS,
};
use crate::metrics::ShardMetrics;
use crate::shard::Shard;
use crate::shards::Shards;
use crate::view::StateView;

/// Runs for one shard until the cluster or the shard is gone.
pub(crate) async fn work(shard: Shard, cluster: Weak<Shards>) {
    let notify = shard.group().shared.removals.clone();
    shard.clock().subscribe(notify.clone());
    let mut leads = shard.group().raft().server_metrics();
    let mut backlog = Backlog::default();
    loop {
        let Some(parts) = cluster.upgrade().map(|cluster| cluster.parts()) else { return };
        if shard.draining() {
            return;
        }
        let begun = instant();
        let sleep = if shard.leads() { round(&shard, &cluster, &mut backlog).await } else { CLOCK_LOOK };
        let rest = ((instant() - begun) * REMOVE_RESTS * parts).clamp(REMOVE_REST, REMOVE_REST_MAX);
        tokio::select! {
            () = notify.notified() => {}
            () = tokio::time::sleep(sleep) => {}
            changed = leads.changed() => if changed.is_err() {
                // The node has stopped: maintenance finds and reports it.
                tokio::time::sleep(LEADER_TICK).await;
            },
        }
        // However often it is notified, callers come first: the longer a round takes, the more load they have.
        tokio::time::sleep(rest).await;
    }
}

/// Does what is due now, and returns how long there is nothing to do if nothing happens.
async fn round(shard: &Shard, cluster: &Weak<Shards>, backlog: &mut Backlog) -> Duration {
    let done = async {
        let open = open(&shard.read_stale())?;
        ShardMetrics::set(&shard.group().metrics().removing, open.count);
        let results = join_all(open.first.iter().map(|key| steps(shard, key))).await;
        let mut moved = false;
        for result in results {
            moved |= result?;
        }
        // Expiry waits until there is capacity for it.
        let expired =
            if open.first.len() < REMOVALS_AT_ONCE { expiry::round(shard, backlog).await? } else { false };
        let tenants = tenants::round(shard, cluster).await?;
        ShardMetrics::set(&shard.group().metrics().tenants_deleting, tenants.left);
        Ok::<_, Failure>((open.count + tenants.left > 0, moved || expired || tenants.moved))
    };
    match done.await {
        Ok((_, true)) => Duration::ZERO,
        Ok((true, false)) | Err(_) => LEADER_TICK,
        Ok((false, false)) => EXPIRY_LOOK,
    }
}

/// The removals that are under way.
struct Removals {
    first: Vec<Key>,
    count: usize,
}

fn unreadable(error: ViewError) -> Failure {
    tracing::error!(%error, "failed to read the rows to remove");
    Failure::Stopped
}

fn open(view: &StateView) -> Result<Removals, Failure> {
    let mut open = Removals { first: Vec::new(), count: 0 };
    view.scan(&IndexKey::removals(), None, &mut |entry, _| {
        if open.first.len() < REMOVALS_AT_ONCE {
            open.first.extend(IndexKey::due_of(entry).map(|due| due.key));
        }
        open.count += 1;
        if open.count < REMOVALS_COUNTED_MAX { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })
    .map_err(unreadable)?;
    Ok(open)
}

/// The position at which the next step of a removal begins.
#[derive(Default)]
struct From {
    /// The index of the row kind in [`REMOVED_KINDS`].
    kind: usize,
    /// The last key of the step before.
    after: Option<Vec<u8>>,
}

/// Continues the removal of one session. Returns true if something was done.
async fn steps(shard: &Shard, key: &Key) -> Result<bool, Failure> {
    let Some(id) = key.session_of() else { return Ok(false) };
    let (tenant, view) = (key.tenant_of(), shard.read_stale());
    let row = view.row(key).map_err(unreadable)?;
    let Some(Row::Session(session)) = row.as_deref() else { return Ok(false) };
    let (mut from, mut whole, mut moved) = (From::default(), true, false);
    for _ in 0..REMOVE_STEPS {
        let found = next(&view, tenant, id, session, &mut from, &mut whole).map_err(unreadable)?;
        let over = from.kind >= REMOVED_KINDS.len();
        let last = (over && whole).then_some(session.sequence);
        if found.is_empty() && last.is_none() {
            return Ok(moved);
        }
        let rows = found.len();
        let step = RemoveStep::Rows { session: id, keys: found, last };
        shard.submit(Command::in_own_scope(tenant, Body::Session(SessionCommand::RemoveStep(step)))).await?;
        ShardMetrics::add(&shard.group().metrics().removed_rows, rows);
        moved |= rows > 0;
        if over {
            let gone = shard.read_stale().row(key).map_err(unreadable)?;
            let over = !matches!(gone.as_deref(), Some(Row::Session(left)) if left.removal.as_ref().is_some_and(|it| it.under_way()));
            ShardMetrics::add(&shard.group().metrics().removed, usize::from(over));
            return Ok(moved || over);
        }
    }
    Ok(moved)
}

/// The rows of the next step. `whole` becomes false if some rows cannot be removed yet.
fn next(
    view: &StateView,
    tenant: TenantId,
    id: SessionId,
    session: &Session,
    from: &mut From,
    whole: &mut bool,
) -> Result<Vec<Key>, ViewError> {
    let Some(removal) = session.removal.as_deref() else { return Ok(Vec::new()) };
    let (mut found, mut bytes) = (Vec::new(), 0);
    while let Some(kind) = REMOVED_KINDS.get(from.kind).copied() {
        let prefix = Key::prefix_of_session(tenant, id, kind);
        if from.after.is_none() && kind == Kind::History && removal.upto > 0 {
            from.after = Some(Key::history(tenant, id, removal.upto - 1).as_bytes().to_vec());
        }
        let wanted = removal.how != Removing::Trimmed || kind == Kind::History;
        let (mut full, after) = (false, from.after.clone());
        if wanted {
            view.scan(&prefix, after.as_deref(), &mut |key, row| {
                from.after = Some(key.as_bytes().to_vec());
                let on_its_way = matches!(&**row, Row::Outbox(effect) if effect.body.inner());
                let erases = removal.how == Removing::Erased;
                let stays = erases && matches!(&**row, Row::Run(run) if is_redacted(run));
                *whole &= !on_its_way;
                if !on_its_way && !stays {
                    bytes += row.memory_bytes();
                    found.push(key.clone());
                }
                full = found.len() >= REMOVE_STEP_ROWS || bytes >= REMOVE_STEP_BYTES;
                if full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })?;
        }
        if full {
            return Ok(found);
        }
        from.kind += 1;
        from.after = None;
    }
    Ok(found)
}
