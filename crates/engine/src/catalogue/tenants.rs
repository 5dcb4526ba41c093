//! Creates tenants and changes their settings.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use switchward_machine::TenantId;
use switchward_state::catalogue::{
    CatalogueEvent, CreateTenant, DefaultEffect, DefaultSetIn, LinkAuth, Quota, Settings, Tenancy, Tenant,
    TenantChange, TenantFact, UpdateTenant, between,
};
use switchward_state::{Key, ReadRows as _, Reason, Rejection, Reply, ViewError};

use crate::turn::{Stop, Turn, check_etag};

/// The longest name of a tenant, characters.
const NAME_CHARS_MAX: usize = 63;

pub(crate) fn create(turn: &mut Turn<'_, '_>, create: &CreateTenant) -> Result<Reply, Stop> {
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
        deleted: None,
    };
    turn.emit(CatalogueEvent::TenantCreated(tenant))?;
    reply(turn, &create.name)
}

pub(crate) fn update(turn: &mut Turn<'_, '_>, update: &UpdateTenant) -> Result<Reply, Stop> {
    let Some(tenant) = turn.rows.tenant_at(&Key::tenant(&update.name))? else {
        return Err(Rejection::new(Reason::NotFound, "there is no such tenant").into());
    };
    check_etag("tenant", &update.etag, Some(tenant.etag()))?;
    let (id, before) = (tenant.id, tenant.settings);
    drop(tenant);
    // An admin of the tenant changes its switches, and must not raise its quotas.
    let settings = Settings { quotas: before.quotas, ..update.settings };
    if before != settings {
        turn.emit(CatalogueEvent::TenantChanged(update.name.clone(), settings))?;
    }
    note(turn, id, before, settings)?;
    reply(turn, &update.name)
}

/// The reply with the tenant of this name as it is now.
pub(crate) fn reply(turn: &Turn<'_, '_>, name: &str) -> Result<Reply, Stop> {
    let tenant = turn.rows.tenant_at(&Key::tenant(name))?;
    let none = || ViewError(format!("there is no row of the tenant {name}"));
    Ok(Reply::Tenant(Box::new(tenant.map(|tenant| Tenant::clone(&tenant)).ok_or_else(none)?)))
}

/// Records what has changed, and has every shard updated.
pub(crate) fn note(
    turn: &mut Turn<'_, '_>,
    id: TenantId,
    before: Settings,
    after: Settings,
) -> Result<(), Stop> {
    let known = turn.rows.tenancy_at(&Key::tenancy_record(id))?.map(|known| Tenancy::clone(&known));
    let Some(mut known) = known else { return Ok(()) };
    let parts = between(&switches(before), &switches(after));
    // Every shard must know of it: gates open there.
    let any_approver_address = after.any_approver_address;
    let link_auth = after.link_auth;
    if known.any_approver_address != any_approver_address || known.link_auth != link_auth {
        known.revision += 1;
        (known.any_approver_address, known.link_auth) = (any_approver_address, link_auth);
    }
    if !parts.is_empty() {
        known.changes += 1;
        let number = known.changes;
        turn.emit(CatalogueEvent::TenancyPut(known))?;
        let change = TenantChange { at: turn.now(), by: turn.command.actor.clone(), parts };
        turn.emit(TenantFact::Changed { number, change })?;
    }
    Ok(())
}

/// The switches of a tenant by name, as an auditor reads them.
fn switches(settings: Settings) -> BTreeMap<String, Value> {
    let said = settings.default_set_in == DefaultSetIn::Tenant;
    let effect = said.then_some(match settings.default_effect {
        DefaultEffect::Allow => "allow",
        DefaultEffect::Ask => "ask",
        DefaultEffect::Deny => "deny",
    });
    let mut all = BTreeMap::from([
        ("allow_foreign_role".to_owned(), json!(settings.allow_foreign_role)),
        ("any_approver_address".to_owned(), json!(settings.any_approver_address)),
        ("browser_known_ms".to_owned(), json!(settings.browser_known_ms)),
        ("default_effect".to_owned(), json!(effect)),
        ("link_auth".to_owned(), json!(settings.link_auth.map(LinkAuth::word))),
    ]);
    for quota in Quota::ALL {
        all.insert(format!("quotas.{}", quota.word()), json!(settings.quotas.get(quota)));
    }
    all.insert("quotas.weight".to_owned(), json!(settings.quotas.weight));
    all
}
