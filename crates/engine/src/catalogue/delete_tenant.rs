//! Deletes a tenant: its callers are refused at once, its rows are removed in bounded steps.

use minicbor::bytes::ByteVec;
use switchward_state::catalogue::{CatalogueEvent, DeleteTenant, Deletion, Tenancy, TenantFact};
use switchward_state::limits::REMOVE_ROWS_MAX;
use switchward_state::session::{RemovalFact, SessionEvent};
use switchward_state::{Key, Kind, ReadRows as _, Reason, Rejection, Reply, Scope};

use crate::catalogue::tenants;
use crate::turn::{Stop, Turn, check_etag, check_size};

/// Refuses commands for a tenant that is being deleted or has been deleted.
pub(crate) fn check(turn: &Turn<'_, '_>) -> Result<(), Stop> {
    if turn.command.body.traits().in_deleted_tenant || deletion(turn)?.is_none() {
        return Ok(());
    }
    Err(Rejection::new(Reason::NotFound, "there is no such tenant").into())
}

fn record(turn: &Turn<'_, '_>) -> Key {
    match turn.command.scope {
        Scope::Catalogue => Key::tenancy_record(turn.tenant()),
        Scope::Session(_) | Scope::Ledger(_) | Scope::Shard => Key::tenancy(turn.tenant()),
    }
}

fn deletion(turn: &Turn<'_, '_>) -> Result<Option<Deletion>, Stop> {
    let known = turn.rows.tenancy_at(&record(turn))?;
    Ok(known.and_then(|known| known.deletion.clone()))
}

/// Begins the deletion. A second request changes nothing.
pub(crate) fn begin(turn: &mut Turn<'_, '_>, delete: &DeleteTenant) -> Result<Reply, Stop> {
    let found = turn.rows.tenant_at(&Key::tenant(&delete.name))?;
    let Some(tenant) = found.filter(|tenant| tenant.id == delete.tenant) else {
        return Err(Rejection::new(Reason::NotFound, "there is no such tenant").into());
    };
    let (etag, begun) = (tenant.etag(), tenant.deleted.is_some());
    drop(tenant);
    if begun {
        return tenants::reply(turn, &delete.name);
    }
    check_etag("tenant", &delete.etag, Some(etag))?;
    let known = turn.rows.tenancy_at(&Key::tenancy_record(delete.tenant))?;
    let revision = known.map_or(1, |known| known.revision + 1);
    let deletion = Deletion { by: turn.command.actor.subject.clone(), at: turn.now(), done: None };
    let tombstone = Box::new(Tenancy::tombstone(revision, deletion));
    turn.emit(TenantFact::Deleted { tenant: delete.tenant, name: delete.name.clone(), tombstone })?;
    tenants::reply(turn, &delete.name)
}

/// Removes some of its rows. The record of the deletion stays.
pub(crate) fn step(turn: &mut Turn<'_, '_>, keys: &[Key]) -> Result<(), Stop> {
    check_size("keys", keys.len(), REMOVE_ROWS_MAX, "rows")?;
    if deletion(turn)?.is_none_or(|deletion| deletion.done.is_some()) {
        return Ok(());
    }
    let mut gone = Vec::with_capacity(keys.len());
    for key in keys {
        if !is_of_tenant(turn, key)? || key.is(Kind::Tenancy) {
            return Err(Rejection::new(Reason::FieldInvalid, "a row is none of the tenant's").into());
        }
        gone.push(ByteVec::from(key.as_bytes().to_vec()));
    }
    if !gone.is_empty() {
        turn.emit(SessionEvent::Removals(RemovalFact::OfTenant { keys: gone }))?;
    }
    Ok(())
}

/// Its name and its keys stand among those of all tenants.
fn is_of_tenant(turn: &Turn<'_, '_>, key: &Key) -> Result<bool, Stop> {
    let tenant = turn.tenant();
    if key.is(Kind::Tenant) {
        return Ok(turn.rows.tenant_at(key)?.is_none_or(|row| row.id == tenant));
    }
    if key.is(Kind::ApiKey) {
        return Ok(turn.rows.api_key_at(key)?.is_none_or(|row| row.tenant == tenant));
    }
    Ok(key.tenant_of() == tenant)
}

/// No row is left.
pub(crate) fn done(turn: &mut Turn<'_, '_>) -> Result<(), Stop> {
    let Some(deletion) = deletion(turn)?.filter(|deletion| deletion.done.is_none()) else { return Ok(()) };
    let revision = turn.rows.tenancy_at(&record(turn))?.map_or(1, |known| known.revision);
    let deletion = Deletion { done: Some(turn.now()), ..deletion };
    turn.emit(CatalogueEvent::TenancyPut(Tenancy::tombstone(revision, deletion)))?;
    Ok(())
}
