//! Commands about the catalogue.

use switchward_machine::{TenantId, Time};
use switchward_state::catalogue::{
    ActivateVersion, ArchiveDefinition, AssignVoters, CatalogueCommand, CreateKey, CreateTenant,
    DeleteAssistant, DeleteDefinition, DeleteTenant, Deploy, Directory, DirectoryEntry, EnsureTenancy,
    FoundCluster, InstallMachine, InstallTenancy, JoinServer, LeaderTransfer, LinkAuth, PutAssistant,
    PutDirectory, PutQuotas, PutRetention, Quotas, RaiseLevel, RecordTransfers, Reseal, RetireVersion,
    RevokeKey, Role, ServerState, SetServerState, Settings, SourceFile, Tenancy, UpdateTenant,
};
use switchward_state::seal::{KeyRing, RingKey, SEAL_NONCE_BYTES, Sealed, SecretOf};
use switchward_state::session::Retention;
use switchward_state::{Body, Level, Levels};

use super::digest;
use crate::stored::machine;

pub(crate) fn sealed() -> Sealed {
    let ring = KeyRing::of(vec![RingKey::of([1; 32])]);
    ring.seal([2; SEAL_NONCE_BYTES], TenantId(1), SecretOf::Mail, &[5; 32]).unwrap()
}

fn directory() -> Directory {
    let members = vec!["kim@example.com".into()];
    let entry = DirectoryEntry { name: "group:release".into(), members, ..DirectoryEntry::default() };
    Directory { entries: vec![entry], audience: vec!["group:release".into()], ..Directory::default() }
}

fn tenancy() -> Tenancy {
    Tenancy {
        revision: 3,
        keys: vec![sealed()],
        directory: directory(),
        endpoints: Vec::new(),
        outbox: None,
        policies: Vec::new(),
        any_approver_address: true,
        link_auth: Some(LinkAuth::Oidc),
        retention: Retention::default(),
        held: None,
        deletion: None,
        changes: 2,
    }
}

fn definitions() -> Vec<CatalogueCommand> {
    let (name, etag, version) = (|| "order".to_owned(), || "e".to_owned(), 2);
    vec![
        CatalogueCommand::InstallMachine(InstallMachine { machine: machine() }),
        CatalogueCommand::Deploy(Deploy {
            findings: Vec::new(),
            name: name(),
            format: "checkpoint".into(),
            files: vec![SourceFile { path: "order.json".into(), bytes: vec![123, 125] }],
            source: digest(6),
            machine: machine(),
            activate: true,
            etag: etag(),
        }),
        CatalogueCommand::ActivateVersion(ActivateVersion { name: name(), version, etag: etag() }),
        CatalogueCommand::RetireVersion(RetireVersion { name: name(), version, etag: etag() }),
        CatalogueCommand::ArchiveDefinition(ArchiveDefinition { name: name(), archived: true, etag: etag() }),
        CatalogueCommand::DeleteDefinition(DeleteDefinition {
            name: name(),
            version: Some(version),
            etag: etag(),
        }),
        CatalogueCommand::PutAssistant(PutAssistant {
            name: "desk".into(),
            workflows: vec![name()],
            instructions: "Be brief.".into(),
            etag: etag(),
        }),
        CatalogueCommand::DeleteAssistant(DeleteAssistant { name: "desk".into(), etag: etag() }),
    ]
}

fn tenants() -> Vec<CatalogueCommand> {
    let (name, etag, key) = (|| "acme".to_owned(), || "e".to_owned(), Some(sealed()));
    let quotas = Quotas { sessions: Some(5), ..Quotas::default() };
    let settings = Settings { quotas, ..Settings::default() };
    vec![
        CatalogueCommand::CreateTenant(CreateTenant { name: name(), display_name: "Acme".into(), settings }),
        CatalogueCommand::UpdateTenant(UpdateTenant { name: name(), settings, etag: etag() }),
        CatalogueCommand::PutQuotas(PutQuotas { name: name(), quotas, etag: etag() }),
        CatalogueCommand::CreateKey(CreateKey {
            id: "k1".into(),
            tenant_name: name(),
            hash: digest(7),
            role: Role::Agent,
            subject: "bot".into(),
            display_name: "Bot".into(),
            expires: Some(Time(99)),
        }),
        CatalogueCommand::RevokeKey(RevokeKey { id: "k1".into() }),
        CatalogueCommand::EnsureTenancy(EnsureTenancy {
            any_approver_address: false,
            link_auth: Some(LinkAuth::Code),
            key: key.clone(),
        }),
        CatalogueCommand::PutDirectory(PutDirectory {
            directory: directory(),
            key: key.clone(),
            etag: etag(),
        }),
        CatalogueCommand::InstallTenancy(InstallTenancy { tenancy: tenancy() }),
        CatalogueCommand::PutRetention(PutRetention { retention: Retention::default(), key, etag: etag() }),
        CatalogueCommand::Reseal(Reseal {
            secrets: vec![(sealed(), sealed())],
            sources: vec!["shop".into()],
        }),
        CatalogueCommand::DeleteTenant(DeleteTenant { tenant: TenantId(2), name: name(), etag: etag() }),
    ]
}

fn servers() -> Vec<CatalogueCommand> {
    let join = |number, address: &str| JoinServer {
        number,
        folder: [2; 16],
        address: address.into(),
        levels: Levels::OF_PROGRAM,
    };
    vec![
        CatalogueCommand::FoundCluster(FoundCluster {
            cluster: [1; 16],
            server: join(1, "10.0.0.1:7001"),
            shards: 4,
            voters: 3,
        }),
        CatalogueCommand::JoinServer(join(2, "10.0.0.2:7001")),
        CatalogueCommand::SetServerState(SetServerState {
            number: 2,
            state: ServerState::Draining,
            replaced_by: Some(4),
            epoch: Some(7),
        }),
        CatalogueCommand::RecordTransfers(RecordTransfers {
            from: 1,
            transfers: vec![LeaderTransfer { group: 2, to: 3 }],
        }),
        CatalogueCommand::RaiseLevel(RaiseLevel { level: Level(2) }),
        CatalogueCommand::AssignVoters(AssignVoters { group: 2, voters: vec![1, 3, 4], epoch: 7 }),
    ]
}

pub(crate) fn commands() -> Vec<Body> {
    definitions().into_iter().chain(tenants()).chain(servers()).map(Body::Catalogue).collect()
}
