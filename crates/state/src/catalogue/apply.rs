//! Tenants, keys, definitions, and the machines that a shard knows.

use switchward_machine::Time;

use crate::catalogue::{
    AssistantFact, CatalogueEvent, ClusterMap, Definition, Disposal, Retired, Tenancy, TenantFact, Version,
    VersionFact,
};
use crate::limits::TENANT_CHANGES_MAX;
use crate::{Key, Row, Scope, Site, ViewError, WriteRows};

/// Applies an event about the catalogue.
pub(crate) fn apply(
    rows: &mut dyn WriteRows,
    site: &Site<'_>,
    event: &CatalogueEvent,
) -> Result<(), ViewError> {
    match event {
        CatalogueEvent::MachineInstalled { machine } => {
            rows.put(Key::machine(site.tenant, machine.digest()), Row::Machine(machine.clone()));
        }
        CatalogueEvent::TenantCreated(tenant) => {
            rows.put(Key::last_tenant(), Row::LastTenant(tenant.id.0));
            rows.put(Key::tenant(&tenant.name), Row::Tenant(tenant.clone()));
        }
        CatalogueEvent::TenantChanged(name, settings) => {
            let tenant = rows.tenant_at_mut(&Key::tenant(name))?;
            tenant.settings = *settings;
            tenant.updated = site.at;
        }
        CatalogueEvent::KeyCreated(key) => rows.put(Key::api_key(&key.id), Row::ApiKey(key.clone())),
        CatalogueEvent::KeyRevoked(id) => rows.api_key_at_mut(&Key::api_key(id))?.revoked = Some(site.at),
        CatalogueEvent::VersionDeployed { name, format, version, machine } => {
            deployed(rows, site, name, format, version)?;
            rows.put(Key::machine(site.tenant, version.machine), Row::Machine(machine.clone()));
        }
        CatalogueEvent::Versions(fact) => of_versions(rows, site, fact)?,
        CatalogueEvent::Assistants(AssistantFact::Put { assistant, machine }) => {
            rows.put(Key::assistant(site.tenant, &assistant.name), Row::Assistant(assistant.clone()));
            rows.put(Key::machine(site.tenant, assistant.machine), Row::Machine(machine.clone()));
        }
        CatalogueEvent::Assistants(AssistantFact::Deleted { name }) => {
            rows.delete(Key::assistant(site.tenant, name));
        }
        CatalogueEvent::TenancyPut(tenancy) => {
            let key = match site.scope {
                Scope::Catalogue => Key::tenancy_record(site.tenant),
                Scope::Session(_) | Scope::Ledger(_) | Scope::Shard => Key::tenancy(site.tenant),
            };
            rows.put(key, Row::Tenancy(tenancy.clone()));
        }
        CatalogueEvent::Tenants(fact) => of_tenant(rows, site, fact)?,
        CatalogueEvent::ClusterChanged(change) => {
            rows.put(Key::server(change.server.number), Row::Server(change.server.clone()));
            rows.put(Key::cluster_map(), Row::ClusterMap(change.map.clone()));
        }
        CatalogueEvent::LevelRaised(map) | CatalogueEvent::VotersPlaced(map) => {
            rows.put(Key::cluster_map(), Row::ClusterMap(ClusterMap::clone(map)));
        }
    }
    Ok(())
}

/// Something about a tenant as a whole.
fn of_tenant(rows: &mut dyn WriteRows, site: &Site<'_>, fact: &TenantFact) -> Result<(), ViewError> {
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

/// Which versions new sessions use, and which exist.
fn of_versions(rows: &mut dyn WriteRows, site: &Site<'_>, fact: &VersionFact) -> Result<(), ViewError> {
    let (VersionFact::Activated { name, .. }
    | VersionFact::Retired { name, .. }
    | VersionFact::Archived { name, .. }
    | VersionFact::Unarchived { name }
    | VersionFact::Deleted { name, .. }
    | VersionFact::DefinitionDeleted { name, .. }) = fact;
    let definition = rows.definition_at_mut(&Key::definition(site.tenant, name))?;
    definition.updated = site.at;
    match fact {
        VersionFact::Activated { number, .. } => {
            definition.active = Some(*number);
            definition.retired.retain(|retired| retired.number != *number);
        }
        VersionFact::Retired { number, by, .. } => {
            definition.retired.push(Retired { number: *number, at: site.at, by: by.clone() });
        }
        VersionFact::Archived { by, .. } => {
            definition.archived = Some(Disposal { at: site.at, by: by.clone() });
        }
        VersionFact::Unarchived { .. } => definition.archived = None,
        VersionFact::Deleted { versions, machines, .. } => {
            let gone = |number| versions.iter().any(|version| version.number == number);
            definition.retired.retain(|retired| !gone(retired.number));
            for version in versions {
                rows.delete(Key::version(site.tenant, name, version.number));
                rows.delete(Key::source(site.tenant, name, version.source));
            }
            for machine in machines {
                rows.delete(Key::machine(site.tenant, *machine));
            }
        }
        VersionFact::DefinitionDeleted { by, .. } => {
            let tombstone = Definition {
                deleted: Some(Disposal { at: site.at, by: by.clone() }),
                ..fresh(name, &definition.format, definition.latest, site.at)
            };
            *definition = tombstone;
        }
    }
    Ok(())
}

/// A definition that has no version.
fn fresh(name: &str, format: &str, latest: u32, at: Time) -> Definition {
    Definition {
        name: name.to_owned(),
        format: format.to_owned(),
        active: None,
        latest,
        created: at,
        updated: at,
        policies: Vec::new(),
        retired: Vec::new(),
        archived: None,
        deleted: None,
    }
}

fn deployed(
    rows: &mut dyn WriteRows,
    site: &Site<'_>,
    name: &str,
    format: &str,
    version: &Version,
) -> Result<(), ViewError> {
    let key = Key::definition(site.tenant, name);
    let known = rows.definition_at(&key)?.map(|known| (known.latest, known.deleted.is_some()));
    if known.is_none_or(|(_, deleted)| deleted) {
        let latest = known.map_or(0, |(latest, _)| latest);
        rows.put(key.clone(), Row::Definition(fresh(name, format, latest, site.at)));
    }
    let definition = rows.definition_at_mut(&key)?;
    definition.latest = version.number;
    definition.updated = site.at;
    rows.put(Key::source(site.tenant, name, version.source), Row::Source(version.number));
    rows.put(Key::version(site.tenant, name, version.number), Row::Version(version.clone()));
    Ok(())
}
