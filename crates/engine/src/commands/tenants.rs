//! Tenants.

use switchward_machine::TenantId;

use crate::command::{CreateTenant, UpdateTenant};
use crate::turn::{Stop, Turn, check_etag};
use crate::{Event, Key, Reason, Rejection, Reply, Tenancy, Tenant};

/// The longest name of a tenant, characters.
const NAME_CHARS_MAX: usize = 63;

pub(super) fn create(turn: &mut Turn<'_, '_>, create: &CreateTenant) -> Result<Reply, Stop> {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if create.name.is_empty() || create.name.len() > NAME_CHARS_MAX || !create.name.chars().all(fits) {
        let message = format!("a tenant's name is 1 to {NAME_CHARS_MAX} of a-z, 0-9 and -");
        return Err(Rejection::new(Reason::FieldInvalid, message).fact("field", "name").into());
    }
    if turn.rows.tenant_at(&Key::tenant(&create.name))?.is_some() {
        return Err(Rejection::new(Reason::AlreadyExists, "there is a tenant of this name already").into());
    }
    let last = turn.rows.last_tenant_at(&Key::last_tenant())?.map_or(0, |last| *last);
    let id = TenantId(
        last.checked_add(1).ok_or_else(|| Rejection::new(Reason::QuotaExceeded, "too many tenants"))?,
    );
    let tenant = Tenant {
        id,
        name: create.name.clone(),
        display_name: create.display_name.clone(),
        settings: create.settings,
        created: turn.now(),
        updated: turn.now(),
    };
    turn.emit(Event::TenantCreated(tenant))?;
    Ok(Reply::Tenant(id))
}

pub(super) fn update(turn: &mut Turn<'_, '_>, update: &UpdateTenant) -> Result<Reply, Stop> {
    let Some(tenant) = turn.rows.tenant_at(&Key::tenant(&update.name))? else {
        return Err(Rejection::new(Reason::NotFound, "there is no such tenant").into());
    };
    check_etag("tenant", &update.etag, Some(tenant.etag()))?;
    let (id, same) = (tenant.id, tenant.settings == update.settings);
    drop(tenant);
    if !same {
        turn.emit(Event::TenantChanged(update.name.clone(), update.settings))?;
    }
    // Every shard must know of it: gates open there.
    let any_approver_address = update.settings.any_approver_address;
    let known = turn.rows.tenancy_at(&Key::tenancy_record(id))?.map(|known| Tenancy::clone(&known));
    if let Some(known) = known.filter(|known| known.any_approver_address != any_approver_address) {
        let revision = known.revision + 1;
        turn.emit(Event::TenancyPut(Tenancy { revision, any_approver_address, ..known }))?;
    }
    Ok(Reply::Tenant(id))
}
