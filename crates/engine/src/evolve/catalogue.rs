//! Tenants, keys, definitions, and the machines that a shard knows.

use super::{Site, endpoints};
use crate::command::Scope;
use crate::limits::TENANT_CHANGES_MAX;
use crate::state::{Definition, Retired, Tenancy, Version};
use crate::working::Working;
use crate::{
    AssistantFact, Event, Key, PolicyFact, Row, TenantFact, VersionFact, ViewError, WebhookSourceFact,
};

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the match in evolve/mod.rs is exhaustive and says what comes here"
)]
pub(super) fn apply(rows: &mut Working<'_>, site: &Site<'_>, event: &Event) -> Result<(), ViewError> {
    match event {
        Event::MachineInstalled { machine } => {
            rows.put(Key::machine(site.tenant, machine.digest()), Row::Machine(machine.clone()));
        }
        Event::TenantCreated(tenant) => {
            rows.put(Key::last_tenant(), Row::LastTenant(tenant.id.0));
            rows.put(Key::tenant(&tenant.name), Row::Tenant(tenant.clone()));
        }
        Event::TenantChanged(name, settings) => {
            let tenant = rows.tenant_at_mut(&Key::tenant(name))?;
            tenant.settings = *settings;
            tenant.updated = site.at;
        }
        Event::KeyCreated(key) => rows.put(Key::api_key(&key.id), Row::ApiKey(key.clone())),
        Event::KeyRevoked(id) => rows.api_key_at_mut(&Key::api_key(id))?.revoked = Some(site.at),
        Event::VersionDeployed { name, format, version, machine } => {
            deployed(rows, site, name, format, version)?;
            rows.put(Key::machine(site.tenant, version.machine), Row::Machine(machine.clone()));
        }
        Event::Versions(VersionFact::Activated { name, number }) => {
            let definition = rows.definition_at_mut(&Key::definition(site.tenant, name))?;
            definition.active = Some(*number);
            definition.retired.retain(|retired| retired.number != *number);
            definition.updated = site.at;
        }
        Event::Versions(VersionFact::Retired { name, number, by }) => {
            let definition = rows.definition_at_mut(&Key::definition(site.tenant, name))?;
            definition.retired.push(Retired { number: *number, at: site.at, by: by.clone() });
            definition.updated = site.at;
        }
        Event::Policies(PolicyFact::Attached { name, policies }) => {
            let definition = rows.definition_at_mut(&Key::definition(site.tenant, name))?;
            definition.policies.clone_from(policies);
            definition.updated = site.at;
        }
        Event::Assistants(AssistantFact::Put { assistant, machine }) => {
            rows.put(Key::assistant(site.tenant, &assistant.name), Row::Assistant(assistant.clone()));
            rows.put(Key::machine(site.tenant, assistant.machine), Row::Machine(machine.clone()));
        }
        Event::Assistants(AssistantFact::Deleted { name }) => {
            rows.delete(Key::assistant(site.tenant, name));
        }
        Event::TenancyPut(tenancy) => {
            let key = match site.scope {
                Scope::Catalogue => Key::tenancy_record(site.tenant),
                Scope::Session(_) | Scope::Ledger(_) | Scope::Shard => Key::tenancy(site.tenant),
            };
            rows.put(key, Row::Tenancy(tenancy.clone()));
        }
        Event::Tenants(fact) => of_tenant(rows, site, fact)?,
        Event::Endpoints(fact) => endpoints::apply(rows, site, fact)?,
        Event::WebhookSources(WebhookSourceFact::Put { source }) => {
            rows.put(Key::webhook_source(site.tenant, &source.name), Row::WebhookSource(source.clone()));
        }
        Event::WebhookSources(WebhookSourceFact::Deleted { name }) => {
            rows.delete(Key::webhook_source(site.tenant, name));
        }
        _ => {}
    }
    Ok(())
}

/// Something about a tenant as a whole.
fn of_tenant(rows: &mut Working<'_>, site: &Site<'_>, fact: &TenantFact) -> Result<(), ViewError> {
    match fact {
        TenantFact::Changed { number, change } => {
            rows.put(Key::tenant_change(site.tenant, *number), Row::TenantChange(change.clone()));
            if let Some(oldest) = number.checked_sub(TENANT_CHANGES_MAX).filter(|oldest| *oldest > 0) {
                rows.delete(Key::tenant_change(site.tenant, oldest));
            }
        }
        TenantFact::Deleted { tenant, name, tombstone } => {
            rows.put(Key::tenancy_record(*tenant), Row::Tenancy(Tenancy::clone(tombstone)));
            let tenant = rows.tenant_at_mut(&Key::tenant(name))?;
            tenant.deleted = Some(site.at);
            tenant.updated = site.at;
        }
    }
    Ok(())
}

fn deployed(
    rows: &mut Working<'_>,
    site: &Site<'_>,
    name: &str,
    format: &str,
    version: &Version,
) -> Result<(), ViewError> {
    let key = Key::definition(site.tenant, name);
    if rows.definition_at(&key)?.is_none() {
        let fresh = Definition {
            name: name.to_owned(),
            format: format.to_owned(),
            active: None,
            latest: 0,
            created: site.at,
            updated: site.at,
            policies: Vec::new(),
            retired: Vec::new(),
        };
        rows.put(key.clone(), Row::Definition(fresh));
    }
    let definition = rows.definition_at_mut(&key)?;
    definition.latest = version.number;
    definition.updated = site.at;
    rows.put(Key::source(site.tenant, name, version.source), Row::Source(version.number));
    rows.put(Key::version(site.tenant, name, version.number), Row::Version(version.clone()));
    Ok(())
}
