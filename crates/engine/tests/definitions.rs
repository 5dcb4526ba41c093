//! Definitions are archived and deleted: what goes, what stays, and what is refused.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::sync::Arc;
use switchward_engine::{decide, evolve};
use switchward_formats::compile_file;
use switchward_machine::{TenantId, Time};
use switchward_state::catalogue::{
    ActivateVersion, ArchiveDefinition, CatalogueCommand, CreateTenant, DeleteDefinition, Deploy,
    PutAssistant, RetireVersion, Settings, SourceFile,
};
use switchward_state::policy::{PolicyCommand, SetTenantPolicy};
use switchward_state::{Body, Command, Key, ReadRows as _, Reason, Rejection, Reply, Scope};
use switchward_testkit::Rows;

const ACME: TenantId = TenantId(1);
const GLOBEX: TenantId = TenantId(2);
const GATE: &str = r#"{"name": "gate", "initial": "a",
  "states": {"a": {"question": "Done?", "answers": {"yes": {"next": null}}}},
  "policy": {"role": "agent", "allow": [{"capability": "bash"}], "ask": [], "deny": []}}"#;
const GUARD: &str = r#"{"policy": "guard", "default_effect": "deny"}"#;

struct Catalogue(Rows);

impl Catalogue {
    /// Two tenants without definitions.
    fn new() -> Self {
        let mut catalogue = Self(Rows::default());
        for name in ["acme", "globex"] {
            let create =
                CreateTenant { name: name.into(), display_name: name.into(), settings: Settings::default() };
            catalogue.take(TenantId(0), Body::Catalogue(CatalogueCommand::CreateTenant(create))).unwrap();
        }
        catalogue
    }

    /// Decides a command; replaying the decision must give the same rows.
    fn take(&mut self, tenant: TenantId, body: Body) -> Result<Reply, Rejection> {
        let command = Command::of_server(tenant, Scope::Catalogue, body);
        let mut decided = decide(&[command], &self.0, Time(1_000)).unwrap();
        if let Some(decision) = &decided.decision {
            assert_eq!(evolve(decision, &self.0).unwrap(), decided.changes);
            self.0.apply(decided.changes);
        }
        decided.answers.remove(0)
    }

    fn command(&mut self, command: CatalogueCommand) -> Result<Reply, Reason> {
        self.take(ACME, Body::Catalogue(command)).map_err(|no| no.reason)
    }

    fn deploy(&mut self, tenant: TenantId, source: &str) -> Result<u32, Reason> {
        let compiled = compile_file("gate.json", source.as_bytes(), None);
        let format = compiled.format.unwrap().name().to_owned();
        let ready = compiled.definition.unwrap();
        let deploy = Deploy {
            name: ready.name,
            format,
            files: vec![SourceFile { path: "gate.json".into(), bytes: source.into() }],
            source: ready.source,
            machine: Arc::new(ready.machine),
            activate: true,
            etag: String::new(),
            findings: Vec::new(),
        };
        let reply = self.take(tenant, Body::Catalogue(CatalogueCommand::Deploy(deploy)));
        let reply = reply.map_err(|no| no.reason)?;
        let Reply::Version { number, .. } = reply else { panic!("{reply:?}") };
        Ok(number)
    }

    fn archive(&mut self, name: &str, archived: bool) -> Result<Reply, Reason> {
        let (name, etag) = (name.to_owned(), String::new());
        self.command(CatalogueCommand::ArchiveDefinition(ArchiveDefinition { name, archived, etag }))
    }

    fn retire(&mut self, version: u32) {
        let (name, etag) = ("gate".to_owned(), String::new());
        self.command(CatalogueCommand::RetireVersion(RetireVersion { name, version, etag })).unwrap();
    }

    fn delete(&mut self, name: &str, version: Option<u32>) -> Result<Reply, Reason> {
        let (name, etag) = (name.to_owned(), String::new());
        self.command(CatalogueCommand::DeleteDefinition(DeleteDefinition { name, version, etag }))
    }

    /// How many rows of versions, sources and machines there are.
    fn rows(&self, tenant: TenantId, numbers: u32) -> usize {
        let versions = (1..=numbers).filter_map(|number| {
            self.0.version_at(&Key::version(tenant, "gate", number)).unwrap().map(|row| row.machine)
        });
        versions.filter(|machine| self.0.machine(tenant, *machine).unwrap().is_some()).count()
    }
}

/// The same process with another question, or with the same machine from other bytes.
fn asking(question: &str) -> String {
    GATE.replace("Done?", question)
}

#[test]
fn an_archived_definition_gets_no_version_and_comes_back_as_it_was() {
    let mut catalogue = Catalogue::new();
    catalogue.deploy(ACME, GATE).unwrap();
    catalogue.deploy(ACME, &asking("Ready?")).unwrap();
    catalogue.retire(1);
    let before = catalogue.0.definition(ACME, "gate").unwrap().unwrap();
    catalogue.archive("gate", true).unwrap();
    assert_eq!(catalogue.deploy(ACME, &asking("Sure?")), Err(Reason::DefinitionArchived));
    let activate = ActivateVersion { name: "gate".into(), version: 1, etag: String::new() };
    let outcome = catalogue.command(CatalogueCommand::ActivateVersion(activate));
    assert_eq!(outcome, Err(Reason::DefinitionArchived));
    catalogue.archive("gate", true).unwrap();
    catalogue.archive("gate", false).unwrap();
    let after = catalogue.0.definition(ACME, "gate").unwrap().unwrap();
    assert_eq!(*after, *before, "active and retired versions are as before");
    assert_eq!(catalogue.archive("none", true), Err(Reason::NotFound));
}

#[test]
fn a_deleted_definition_leaves_the_number_of_its_last_version() {
    let mut catalogue = Catalogue::new();
    catalogue.deploy(GLOBEX, GATE).unwrap();
    catalogue.deploy(ACME, GATE).unwrap();
    catalogue.deploy(ACME, &asking("Ready?")).unwrap();
    let machine = catalogue.0.version_at(&Key::version(ACME, "gate", 1)).unwrap().unwrap().machine;
    assert_eq!(catalogue.delete("gate", None), Err(Reason::StateMismatch));
    catalogue.archive("gate", true).unwrap();
    assert_eq!(catalogue.delete("gate", None), Ok(Reply::Done));
    assert!(catalogue.0.definition(ACME, "gate").unwrap().is_none());
    assert_eq!(catalogue.rows(ACME, 2), 0);
    assert!(catalogue.0.machine(ACME, machine).unwrap().is_none());
    assert_eq!(catalogue.rows(GLOBEX, 1), 1, "the definition of another tenant stays");
    assert_eq!(catalogue.delete("gate", None), Err(Reason::NotFound));
    assert_eq!(catalogue.archive("gate", false), Err(Reason::NotFound));
    let assistant = PutAssistant {
        name: "helper".into(),
        workflows: vec!["gate".into()],
        instructions: String::new(),
        etag: String::new(),
    };
    let outcome = catalogue.command(CatalogueCommand::PutAssistant(assistant));
    assert_eq!(outcome, Err(Reason::FieldInvalid), "a deleted definition does not exist");
    assert_eq!(catalogue.deploy(ACME, GATE), Ok(3));
    let row = catalogue.0.definition(ACME, "gate").unwrap().unwrap();
    assert!(row.active == Some(3) && row.archived.is_none() && row.deleted.is_none(), "{row:?}");
}

#[test]
fn a_machine_stays_as_long_as_a_version_has_it() {
    let mut catalogue = Catalogue::new();
    catalogue.deploy(ACME, GATE).unwrap();
    // Other bytes, and the same machine.
    catalogue.deploy(ACME, &GATE.replace("\"initial\":", "\"initial\": ")).unwrap();
    catalogue.deploy(ACME, &asking("Ready?")).unwrap();
    let machine = |catalogue: &Catalogue, number| {
        catalogue.0.version_at(&Key::version(ACME, "gate", number)).unwrap().unwrap().machine
    };
    let shared = machine(&catalogue, 1);
    assert_eq!(machine(&catalogue, 2), shared);
    assert_eq!(catalogue.delete("gate", Some(1)), Err(Reason::StateMismatch), "it is not retired");
    assert_eq!(catalogue.delete("gate", Some(3)), Err(Reason::StateMismatch), "it is active");
    assert_eq!(catalogue.delete("gate", Some(4)), Err(Reason::NotFound), "it does not exist");
    catalogue.retire(1);
    catalogue.retire(2);
    assert_eq!(catalogue.delete("gate", Some(1)), Ok(Reply::Done));
    assert!(catalogue.0.machine(ACME, shared).unwrap().is_some());
    assert_eq!(catalogue.delete("gate", Some(1)), Err(Reason::NotFound));
    assert_eq!(catalogue.delete("gate", Some(2)), Ok(Reply::Done));
    assert!(catalogue.0.machine(ACME, shared).unwrap().is_none());
    let row = catalogue.0.definition(ACME, "gate").unwrap().unwrap();
    assert!(row.retired.is_empty() && row.latest == 3, "{row:?}");
    assert_eq!(catalogue.deploy(ACME, GATE), Ok(4), "the bytes of a deleted version are new");
}

#[test]
fn a_policy_of_the_tenant_is_not_deleted_and_an_archived_one_is_not_set() {
    let mut catalogue = Catalogue::new();
    catalogue.deploy(ACME, GUARD).unwrap();
    let set = || {
        let set = SetTenantPolicy { name: "guard".into(), version: None, key: None };
        Body::Policy(PolicyCommand::SetTenantPolicy(set))
    };
    catalogue.take(ACME, set()).unwrap();
    catalogue.archive("guard", true).unwrap();
    assert_eq!(catalogue.delete("guard", None), Err(Reason::DefinitionInUse));
    assert_eq!(catalogue.take(ACME, set()).map_err(|no| no.reason), Err(Reason::DefinitionArchived));
}
