//! A leader's duty: what was kept long enough expires, and what is removed goes in bounded steps.
//!
//! A removal is a mark on its session and an entry of an index, so another leader goes on with it. Each step is a command
//! that names the rows, few enough that no caller waits for it; between two rounds there is a rest.

pub(crate) mod tenants;

use futures::future::join_all;
use openraft::async_runtime::WatchReceiver;
use std::ops::ControlFlow;
use std::sync::Weak;
use std::time::Duration;
use switchward_engine::{
    Body, Command, IndexKey, Key, Kind, REMOVED_KINDS, Remove, RemoveStep, Removing, Retention, Row, Scope,
    Session, View, ViewError, is_redacted,
};
use switchward_machine::{SessionId, TenantId, Time};
use switchward_store::Record as _;

use crate::cluster::Inner;
use crate::failure::Failure;
use crate::limits::{
    CLOCK_LOOK, DUTY_TICK, EXPIRE_AT_ONCE, EXPIRY_LOOK, REMOVALS_AT_ONCE, REMOVALS_COUNTED_MAX, REMOVE_REST,
    REMOVE_STEP_BYTES, REMOVE_STEP_ROWS, REMOVE_STEPS,
};
use crate::metrics::ShardMetrics;
use crate::record::Stored;
use crate::shard::Shard;
use crate::view::StateView;

/// Works for one shard until the cluster or the shard is gone.
pub(crate) async fn work(shard: Shard, cluster: Weak<Inner>) {
    let told = shard.group().shared.removals.clone();
    shard.clock().tell(told.clone());
    let mut leads = shard.group().raft().server_metrics();
    loop {
        if cluster.strong_count() == 0 || shard.draining() {
            return;
        }
        let sleep = if shard.leads() { round(&shard, &cluster).await } else { CLOCK_LOOK };
        tokio::select! {
            () = told.notified() => {}
            () = tokio::time::sleep(sleep) => {}
            changed = leads.changed() => if changed.is_err() {
                // The node has stopped: whoever looks after the disk finds out and says so.
                tokio::time::sleep(DUTY_TICK).await;
            },
        }
        // However often it is told, callers come first.
        tokio::time::sleep(REMOVE_REST).await;
    }
}

/// Does what is to be done now, and gives how long there will be nothing to do, if nothing happens.
async fn round(shard: &Shard, cluster: &Weak<Inner>) -> Duration {
    let done = async {
        let open = open(&shard.read_stale())?;
        ShardMetrics::set(&shard.group().metrics().removing, open.count);
        let results = join_all(open.first.iter().map(|key| steps(shard, key))).await;
        let mut moved = false;
        for result in results {
            moved |= result?;
        }
        // What expires waits until there is room for it.
        let expired = if open.first.len() < REMOVALS_AT_ONCE { expire(shard).await? } else { 0 };
        let tenants = tenants::round(shard, cluster).await?;
        ShardMetrics::set(&shard.group().metrics().tenants_deleting, tenants.left);
        Ok::<_, Failure>((open.count + tenants.left > 0, moved || expired > 0 || tenants.moved))
    };
    match done.await {
        Ok((_, true)) => Duration::ZERO,
        Ok((true, false)) | Err(_) => DUTY_TICK,
        Ok((false, false)) => EXPIRY_LOOK,
    }
}

/// The removals that are under way.
struct Removals {
    first: Vec<Key>,
    count: usize,
}

fn unreadable(error: ViewError) -> Failure {
    tracing::error!(%error, "failed to read what is to be removed");
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

/// Where the next step of a removal begins.
#[derive(Default)]
struct From {
    /// Which of the session's kinds of row.
    kind: usize,
    /// Behind this key.
    after: Option<Vec<u8>>,
}

/// Goes on with the removal of one session; true where something was done.
async fn steps(shard: &Shard, key: &Key) -> Result<bool, Failure> {
    let Some(id) = key.session_of() else { return Ok(false) };
    let (tenant, view) = (key.tenant_of(), shard.read_stale());
    let row = view.row(key).map_err(unreadable)?;
    let Some(Row::Session(session)) = row.as_deref() else { return Ok(false) };
    let (mut from, mut whole, mut moved) = (From::default(), true, false);
    for _ in 0..REMOVE_STEPS {
        let found = next(&view, (tenant, id), session, &mut from, &mut whole).map_err(unreadable)?;
        let over = from.kind >= REMOVED_KINDS.len();
        let last = (over && whole).then_some(session.sequence);
        if found.is_empty() && last.is_none() {
            return Ok(moved);
        }
        let rows = found.len();
        let step = RemoveStep::Rows { session: id, keys: found, last };
        shard.submit(Command::of_server(tenant, Scope::Shard, Body::RemoveStep(step))).await?;
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

/// The rows of the next step. What cannot go yet makes it that the removal is not `whole`.
fn next(
    view: &StateView,
    (tenant, id): (TenantId, SessionId),
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
                    bytes += Stored(row.clone()).weight();
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

/// Begins the removal of what was kept long enough; how many there were.
async fn expire(shard: &Shard) -> Result<usize, Failure> {
    let (view, now) = (shard.read_stale(), shard.now());
    let over = overdue(&view, now).map_err(unreadable)?;
    let sessions = over.sessions.iter().map(|(tenant, id, how, ended_by)| {
        let body = Body::Remove(Remove { how: *how, ended_by: Some(*ended_by) });
        shard.submit(Command::of_server(*tenant, Scope::Session(*id), body))
    });
    let mut begun = 0;
    for result in join_all(sessions).await {
        match result {
            Ok(_) => begun += 1,
            // Somebody was quicker.
            Err(Failure::Rejected(_)) => {}
            Err(failure) => return Err(failure),
        }
    }
    ShardMetrics::add(&shard.group().metrics().expired, begun);
    for (tenant, keys, ended_by) in over.remains {
        begun += keys.len();
        let step = RemoveStep::Forget { keys, ended_by };
        shard.submit(Command::of_server(tenant, Scope::Shard, Body::RemoveStep(step))).await?;
    }
    Ok(begun)
}

/// What was kept long enough.
#[derive(Default)]
struct Overdue {
    sessions: Vec<(TenantId, SessionId, Removing, Time)>,
    remains: Vec<(TenantId, Vec<Key>, Time)>,
}

fn overdue(view: &StateView, now: Time) -> Result<Overdue, ViewError> {
    let (mut over, mut next, end) = (Overdue::default(), 1, Key::behind_tenants());
    while over.sessions.len() < EXPIRE_AT_ONCE
        && let Some(found) = view.first_between(&Key::before_tenant(TenantId(next)), &end)?
    {
        let tenant = found.tenant_of();
        if let Some(Row::Tenancy(tenancy)) = view.row(&Key::tenancy(tenant))?.as_deref() {
            of_tenant(view, tenant, &tenancy.retention, now, &mut over)?;
        }
        let Some(after) = tenant.0.checked_add(1) else { break };
        next = after;
    }
    Ok(over)
}

fn of_tenant(
    view: &StateView,
    tenant: TenantId,
    retention: &Retention,
    now: Time,
    over: &mut Overdue,
) -> Result<(), ViewError> {
    if retention.rules.is_empty() {
        return Ok(());
    }
    let kept = |ms: Option<u64>| ms.and_then(|ms| now.0.checked_sub(ms)).map(Time);
    for (index, how) in
        [(IndexKey::ended(tenant), Removing::Expired), (IndexKey::histories(tenant), Removing::Trimmed)]
    {
        each_definition(view, &index, &mut |mark| {
            let rule = retention.of(mark);
            let ms = if how == Removing::Expired { rule.sessions_ms } else { rule.history_ms };
            let Some(ended_by) = kept(ms) else { return Ok(()) };
            let room = EXPIRE_AT_ONCE.saturating_sub(over.sessions.len());
            for entry in earliest(view, &index, mark, ended_by, room)? {
                let id = IndexKey::lasting_of(&entry).map(|(_, _, id)| id);
                over.sessions.extend(id.map(|id| (tenant, id, how, ended_by)));
            }
            Ok(())
        })?;
    }
    let index = IndexKey::remains(tenant);
    each_definition(view, &index, &mut |mark| {
        let Some(ended_by) = kept(retention.of(mark).decisions_ms) else { return Ok(()) };
        let entries = earliest(view, &index, mark, ended_by, EXPIRE_AT_ONCE)?;
        let row = |entry: &Key| Some(Key::removed(tenant, IndexKey::lasting_of(entry)?.2));
        let keys: Vec<Key> = entries.iter().filter_map(row).collect();
        if !keys.is_empty() {
            over.remains.push((tenant, keys, ended_by));
        }
        Ok(())
    })
}

/// Looks at each definition that has entries in an index.
fn each_definition(
    view: &StateView,
    index: &[u8],
    look: &mut dyn FnMut([u8; 8]) -> Result<(), ViewError>,
) -> Result<(), ViewError> {
    let end = IndexKey::behind_lasting(index, [u8::MAX; 8], None);
    let mut after = index.to_vec();
    while let Some(entry) = view.first_between(&after, &end)? {
        let Some((mark, _, _)) = IndexKey::lasting_of(&entry) else { return Ok(()) };
        look(mark)?;
        after = IndexKey::behind_lasting(index, mark, None);
    }
    Ok(())
}

/// The entries of a definition that ended no later than this, at most so many.
fn earliest(
    view: &StateView,
    index: &[u8],
    mark: [u8; 8],
    ended_by: Time,
    max: usize,
) -> Result<Vec<Key>, ViewError> {
    let (mut found, prefix) = (Vec::new(), [index, &mark].concat());
    if max == 0 {
        return Ok(found);
    }
    view.scan(&prefix, None, &mut |entry, _| {
        if IndexKey::lasting_of(entry).is_none_or(|(_, ended, _)| ended > ended_by) {
            return ControlFlow::Break(());
        }
        found.push(entry.clone());
        if found.len() < max { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    Ok(found)
}
