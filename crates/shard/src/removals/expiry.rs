//! Expiry of what exceeds its retention. Small sessions are removed whole, many in one command; for others the
//! removal begins.

use futures::future::join_all;
use std::ops::ControlFlow;
use switchward_machine::{TenantId, Time};
use switchward_state::session::{Expiring, Remove, RemoveStep, Removing, SessionCommand};
use switchward_state::{Body, Command, Key, REMOVED_KINDS, Row, Scope, View, ViewError};

use super::backlog::{Backlog, Late, Remains};
use super::unreadable;
use crate::blocking::blocking;
use crate::failure::Failure;
use crate::limits::{REMOVE_STEP_BYTES, REMOVE_STEP_ROWS};
use crate::metrics::ShardMetrics;
use crate::shard::Shard;
use crate::view::StateView;

/// Expires what exceeds its retention. Returns true if something expired, or if there is more to check.
pub(super) async fn round(shard: &Shard, backlog: &mut Backlog) -> Result<bool, Failure> {
    let (view, now, mut known) = (shard.read_stale(), shard.now(), std::mem::take(backlog));
    // Old rows are read from the disk, which must not hold up callers.
    let read = blocking(move || {
        let over = known.next(&view, now)?;
        Ok((known, Plan::of(&view, over.sessions)?, over.remains))
    });
    let (known, plan, remains) = read.await.map_err(|_| Failure::Stopped)?.map_err(unreadable)?;
    *backlog = known;
    let mut begun = 0;
    for batch in plan.whole {
        let (count, rows) = (batch.sessions.len(), batch.rows);
        let step = RemoveStep::Expire { sessions: batch.sessions, ended_by: batch.ended_by };
        shard
            .submit(Command::in_own_scope(batch.tenant, Body::Session(SessionCommand::RemoveStep(step))))
            .await?;
        begun += count;
        let metrics = shard.group().metrics();
        ShardMetrics::add(&metrics.removed_rows, rows);
        ShardMetrics::add(&metrics.removed, count);
    }
    let sessions = plan.large.into_iter().map(|it| {
        let body = Body::Session(SessionCommand::Remove(Remove { how: it.how, ended_by: Some(it.ended_by) }));
        shard.submit(Command::of_server(it.tenant, Scope::Session(it.id), body))
    });
    for result in join_all(sessions).await {
        match result {
            Ok(_) => begun += 1,
            // Another command was first.
            Err(Failure::Rejected(_)) => {}
            Err(failure) => return Err(failure),
        }
    }
    ShardMetrics::add(&shard.group().metrics().expired, begun);
    for Remains { tenant, keys, ended_by } in remains {
        begun += keys.len();
        let step = RemoveStep::Forget { keys, ended_by };
        shard.submit(Command::in_own_scope(tenant, Body::Session(SessionCommand::RemoveStep(step)))).await?;
    }
    Ok(begun > 0 || !backlog.is_done())
}

/// How sessions are removed.
#[derive(Default)]
struct Plan {
    /// Sessions that are removed whole.
    whole: Vec<Batch>,
    /// Sessions whose removal begins.
    large: Vec<Late>,
}

/// Sessions of one tenant that are removed in one command.
struct Batch {
    tenant: TenantId,
    ended_by: Time,
    sessions: Vec<Expiring>,
    rows: usize,
    bytes: usize,
}

impl Plan {
    fn of(view: &StateView, sessions: Vec<Late>) -> Result<Self, ViewError> {
        let mut plan = Self::default();
        for late in sessions {
            match method(view, &late)? {
                Method::Whole(session, bytes) => plan.add(&late, session, bytes),
                Method::Steps => plan.large.push(late),
                Method::Later => {}
            }
        }
        Ok(plan)
    }

    fn add(&mut self, late: &Late, session: Expiring, bytes: usize) {
        let rows = session.keys.len();
        let fits = |batch: &Batch| {
            (batch.tenant, batch.ended_by) == (late.tenant, late.ended_by)
                && batch.rows + rows <= REMOVE_STEP_ROWS
                && batch.bytes + bytes <= REMOVE_STEP_BYTES
        };
        if !self.whole.last().is_some_and(fits) {
            let (tenant, ended_by) = (late.tenant, late.ended_by);
            self.whole.push(Batch { tenant, ended_by, sessions: Vec::new(), rows: 0, bytes: 0 });
        }
        if let Some(batch) = self.whole.last_mut() {
            batch.sessions.push(session);
            batch.rows += rows;
            batch.bytes += bytes;
        }
    }
}

/// How a session is removed.
enum Method {
    /// Whole: the session with its rows, and their bytes in memory.
    Whole(Expiring, usize),
    /// By a removal that takes several steps of a limited size.
    Steps,
    /// Not before its effects have arrived or are dead letters.
    Later,
}

/// A session can be removed whole if it holds nothing of a ledger, no removal of it is under way, and its rows fit
/// into one step.
fn method(view: &StateView, late: &Late) -> Result<Method, ViewError> {
    let row = view.row(&Key::session(late.tenant, late.id))?;
    let Some(Row::Session(session)) = row.as_deref() else { return Ok(Method::Later) };
    if late.how == Removing::Trimmed {
        return Ok(Method::Steps);
    }
    if session.is_sending() {
        return Ok(Method::Later);
    }
    let removing = session.removal.as_deref().is_some_and(|it| it.under_way() || it.how.hides());
    let (mut fits, mut bytes, mut keys) = (session.calls.is_empty() && !removing, 0, Vec::new());
    for kind in REMOVED_KINDS.into_iter().filter(|kind| !session.lacks(*kind)) {
        if !fits {
            return Ok(Method::Steps);
        }
        view.scan(&Key::prefix_of_session(late.tenant, late.id, kind), None, &mut |key, row| {
            let inner = matches!(&**row, Row::Outbox(effect) if effect.body.inner());
            bytes += row.memory_bytes();
            keys.push(key.clone());
            fits = !inner && keys.len() <= REMOVE_STEP_ROWS && bytes <= REMOVE_STEP_BYTES;
            if fits { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
    }
    let session = Expiring { session: late.id, keys, sequence: session.sequence };
    Ok(if fits { Method::Whole(session, bytes) } else { Method::Steps })
}
