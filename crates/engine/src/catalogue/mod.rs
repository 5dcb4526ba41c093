//! What is decided about the catalogue; one file for each command.

pub(crate) mod archive_definition;
pub(crate) mod assistants;
pub(crate) mod definitions;
pub(crate) mod delete_definition;
pub(crate) mod delete_tenant;
pub(crate) mod keys;
pub(crate) mod levels;
pub(crate) mod quotas;
pub(crate) mod reseal;
pub(crate) mod retention;
pub(crate) mod servers;
pub(crate) mod tenancy;
pub(crate) mod tenants;

use switchward_state::Reply;
use switchward_state::catalogue::CatalogueCommand;

use crate::turn::{Stop, Turn};

/// Runs a command of this aggregate.
pub(crate) fn run(turn: &mut Turn<'_, '_>, command: &CatalogueCommand) -> Result<Reply, Stop> {
    match command {
        CatalogueCommand::InstallMachine(install) => definitions::install(turn, install),
        CatalogueCommand::CreateTenant(create) => tenants::create(turn, create),
        CatalogueCommand::UpdateTenant(update) => tenants::update(turn, update),
        CatalogueCommand::PutQuotas(put) => quotas::put(turn, put),
        CatalogueCommand::CreateKey(create) => keys::create(turn, create),
        CatalogueCommand::RevokeKey(revoke) => keys::revoke(turn, revoke),
        CatalogueCommand::Deploy(deploy) => definitions::deploy(turn, deploy),
        CatalogueCommand::ActivateVersion(activate) => definitions::activate(turn, activate),
        CatalogueCommand::RetireVersion(retire) => definitions::retire(turn, retire),
        CatalogueCommand::ArchiveDefinition(archive) => archive_definition::run(turn, archive),
        CatalogueCommand::DeleteDefinition(delete) => delete_definition::run(turn, delete),
        CatalogueCommand::PutAssistant(put) => assistants::put(turn, put),
        CatalogueCommand::DeleteAssistant(delete) => assistants::delete(turn, delete),
        CatalogueCommand::EnsureTenancy(ensure) => tenancy::ensure(turn, ensure),
        CatalogueCommand::PutDirectory(put) => tenancy::put_directory(turn, put),
        CatalogueCommand::InstallTenancy(install) => tenancy::install(turn, install),
        CatalogueCommand::PutRetention(put) => retention::put(turn, put),
        CatalogueCommand::Reseal(secrets) => reseal::run(turn, secrets),
        CatalogueCommand::DeleteTenant(delete) => delete_tenant::begin(turn, delete),
        CatalogueCommand::FoundCluster(found) => servers::found(turn, found),
        CatalogueCommand::JoinServer(join) => servers::join(turn, join),
        CatalogueCommand::SetServerState(set) => servers::set_state(turn, set),
        CatalogueCommand::AssignVoters(assign) => servers::assign(turn, assign),
        CatalogueCommand::RecordTransfers(record) => servers::record_transfers(turn, record),
        CatalogueCommand::RaiseLevel(raise) => levels::raise(turn, raise),
    }
}
