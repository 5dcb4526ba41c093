//! What a tenant holds in a shard, counted as its sessions begin, grow and go.

use switchward_machine::{SessionId, TenantId};

use crate::catalogue::Usage;
use crate::{Key, Row, ViewError, WriteRows};

/// The row of what the tenant holds; it is made if there is none.
fn of(rows: &mut dyn WriteRows, tenant: TenantId) -> Result<&mut Usage, ViewError> {
    let key = Key::usage(tenant);
    if rows.get(&key)?.is_none() {
        rows.put(key.clone(), Row::Usage(Usage::default()));
    }
    rows.usage_at_mut(&key)
}

/// A session has begun.
pub(crate) fn began(rows: &mut dyn WriteRows, tenant: TenantId) -> Result<(), ViewError> {
    of(rows, tenant)?.sessions += 1;
    Ok(())
}

/// The history of a session has this many bytes more.
pub(crate) fn grew(rows: &mut dyn WriteRows, tenant: TenantId, bytes: u64) -> Result<(), ViewError> {
    let usage = of(rows, tenant)?;
    usage.bytes = usage.bytes.saturating_add(bytes);
    Ok(())
}

/// A part of a session's history or of its replies had `before` bytes and has `after` now.
pub(crate) fn replaced(
    rows: &mut dyn WriteRows,
    tenant: TenantId,
    id: SessionId,
    before: u64,
    after: u64,
) -> Result<(), ViewError> {
    let session = rows.session_at_mut(&Key::session(tenant, id))?;
    let held = session.bytes;
    // Both rows move by the same, whatever is asked for, so that the sum stays a sum.
    let now = held.saturating_sub(before).saturating_add(after);
    session.bytes = now;
    let usage = of(rows, tenant)?;
    usage.bytes = usage.bytes.saturating_sub(held).saturating_add(now);
    Ok(())
}

/// The row of a session is about to go.
pub(crate) fn gone(rows: &mut dyn WriteRows, tenant: TenantId, id: SessionId) -> Result<(), ViewError> {
    let session = rows.session(tenant, id)?;
    let Some(bytes) = session.map(|session| session.bytes) else { return Ok(()) };
    let usage = of(rows, tenant)?;
    usage.sessions = usage.sessions.saturating_sub(1);
    usage.bytes = usage.bytes.saturating_sub(bytes);
    Ok(())
}
