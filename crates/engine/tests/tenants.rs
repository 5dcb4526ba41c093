//! Tenants: recorded changes, held effects, deletion.

mod memory;

use std::sync::Arc;

use serde_json::{Value, json};
use switchward_engine::{
    Actor, Body, Command, CreateKey, CreateTenant, DefaultEffect, DefaultSetIn, DeleteTenant, Directory,
    DirectoryEntry, EnsureTenancy, HoldEffects, InstallTenancy, Key, Kind, MailKey, PutDirectory, Reason,
    RemoveStep, Reply, Role, Row, Scope, Settings, Tenancy, TenantChange, UpdateTenant, decide, evolve,
    holds_effects,
};
use switchward_machine::{Digest, TenantId, Time};

use memory::Rows;

const TENANT: TenantId = TenantId(1);

impl Rows {
    /// Carries a command out; replaying its decision must give the same rows.
    fn attempt(&mut self, tenant: TenantId, scope: Scope, body: Body) -> Result<Reply, Reason> {
        let actor = Actor { subject: "kim".into(), role: Role::Admin };
        let command = Command { actor, ..Command::of_server(tenant, scope, body) };
        let decided = decide(&[command], self, Time(1_000)).expect("the rows can be read");
        let reply = decided.answers.into_iter().next().expect("one answer").map_err(|no| no.reason);
        if let Some(decision) = decided.decision {
            let replayed = evolve(&decision, self).expect("it fits");
            assert_eq!(replayed, decided.changes);
            self.apply(replayed);
        }
        reply
    }

    fn catalogue(&mut self, body: Body) -> Result<Reply, Reason> {
        self.attempt(TENANT, Scope::Catalogue, body)
    }

    fn tenancy(&self, key: &Key) -> Tenancy {
        match self.0.get(key).map(|row| &**row) {
            Some(Row::Tenancy(tenancy)) => tenancy.clone(),
            other => panic!("{other:?}"),
        }
    }

    fn changes(&self) -> Vec<TenantChange> {
        let of = |row: &Arc<Row>| if let Row::TenantChange(one) = &**row { Some(one.clone()) } else { None };
        self.0.values().filter_map(of).collect()
    }
}

/// The catalogue with one tenant.
fn catalogue() -> Rows {
    let mut rows = Rows::default();
    let create =
        CreateTenant { name: "acme".into(), display_name: String::new(), settings: Settings::default() };
    rows.attempt(TenantId(0), Scope::Catalogue, Body::CreateTenant(create)).expect("it is new");
    let ensure = EnsureTenancy { any_approver_address: false, key: MailKey([7; 32]) };
    rows.catalogue(Body::EnsureTenancy(ensure)).expect("it is taken");
    rows
}

fn directory(member: &str) -> Body {
    let entry = DirectoryEntry { name: "kim".into(), members: vec![member.into()], ..Default::default() };
    let directory = Directory { entries: vec![entry], ..Directory::default() };
    Body::PutDirectory(PutDirectory { directory, key: MailKey([7; 32]), etag: String::new() })
}

fn update(settings: Settings) -> Body {
    Body::UpdateTenant(UpdateTenant { name: "acme".into(), settings, etag: String::new() })
}

fn delete() -> Body {
    Body::DeleteTenant(DeleteTenant { tenant: TENANT, name: "acme".into(), etag: String::new() })
}

#[test]
fn every_change_is_recorded_with_who_made_it_and_what_it_was_before() {
    let mut rows = catalogue();
    rows.catalogue(directory("kim@a.example")).expect("it is taken");
    rows.catalogue(directory("kim@a.example")).expect("it is the same");
    rows.catalogue(directory("kim@b.example")).expect("it is taken");
    let stricter = Settings {
        default_effect: DefaultEffect::Deny,
        default_set_in: DefaultSetIn::Tenant,
        ..Default::default()
    };
    rows.catalogue(update(stricter)).expect("it is taken");
    let changes = rows.changes();
    assert!(changes.iter().all(|change| change.by.subject == "kim" && change.at == Time(1_000)));
    let parts: Vec<Vec<(&str, &Value, &Value)>> = changes
        .iter()
        .map(|one| one.parts.iter().map(|it| (it.name.as_str(), &it.before.0, &it.after.0)).collect())
        .collect();
    let members = |address: &str| json!({ "members": [address] });
    let (first, second, deny) = (members("kim@a.example"), members("kim@b.example"), json!("deny"));
    let entry = "directory.entries.kim";
    let expected = [
        vec![(entry, &Value::Null, &first)],
        vec![(entry, &first, &second)],
        vec![("default_effect", &Value::Null, &deny)],
    ];
    assert_eq!(parts, expected.map(|one| one.to_vec()));
    assert_eq!(rows.tenancy(&Key::tenancy_record(TENANT)).changes, 3);
}

#[test]
fn effects_are_held_until_they_are_released_and_every_shard_knows() {
    let mut rows = catalogue();
    let hold = |held| Body::HoldEffects(HoldEffects { held });
    assert!(!holds_effects(&rows, TENANT).expect("readable"));
    rows.catalogue(hold(true)).expect("it is taken");
    assert!(holds_effects(&rows, TENANT).expect("readable"), "the catalogue's own");
    let record = rows.tenancy(&Key::tenancy_record(TENANT));
    let mut shard = Rows::default();
    let install = |tenancy| Body::InstallTenancy(InstallTenancy { tenancy });
    shard.attempt(TENANT, Scope::Shard, install(record.clone())).expect("it is taken");
    assert!(holds_effects(&shard, TENANT).expect("readable"));
    rows.catalogue(hold(false)).expect("it is taken");
    rows.catalogue(hold(false)).expect("it changes nothing");
    let released = rows.tenancy(&Key::tenancy_record(TENANT));
    assert_eq!(released.revision, record.revision + 1);
    shard.attempt(TENANT, Scope::Shard, install(released)).expect("it is taken");
    shard.attempt(TENANT, Scope::Shard, install(record)).expect("an older one changes nothing");
    assert!(!holds_effects(&shard, TENANT).expect("readable"));
}

#[test]
fn nothing_is_done_for_a_deleted_tenant_and_its_rows_go_but_for_the_record_of_it() {
    let mut rows = catalogue();
    rows.catalogue(directory("kim@a.example")).expect("it is taken");
    let key = CreateKey {
        id: "0011223344556677".into(),
        tenant_name: "acme".into(),
        hash: Digest([1; 32]),
        role: Role::Agent,
        subject: "bot".into(),
        display_name: String::new(),
        expires: None,
    };
    rows.catalogue(Body::CreateKey(key)).expect("it is taken");
    let before = rows.tenancy(&Key::tenancy_record(TENANT));
    let other = TenantId(9);
    let wrong = DeleteTenant { tenant: other, name: "acme".into(), etag: String::new() };
    assert_eq!(rows.catalogue(Body::DeleteTenant(wrong)), Err(Reason::NotFound), "it is another one's name");
    rows.attempt(other, Scope::Catalogue, delete()).expect("it begins");
    rows.attempt(other, Scope::Catalogue, delete()).expect("said twice, it changes nothing");
    let tombstone = rows.tenancy(&Key::tenancy_record(TENANT));
    assert_eq!(tombstone.directory, Directory::default(), "its people are gone at once");
    assert!(tombstone.keys.is_empty() && tombstone.revision > before.revision && tombstone.holds_effects());
    assert_eq!(rows.catalogue(directory("kim@a.example")), Err(Reason::NotFound));
    let again =
        CreateTenant { name: "acme".into(), display_name: String::new(), settings: Settings::default() };
    let taken = rows.attempt(TenantId(0), Scope::Catalogue, Body::CreateTenant(again.clone()));
    assert_eq!(taken, Err(Reason::AlreadyExists), "its name is free when all is gone");
    let record = Key::tenancy_record(TENANT);
    let wrong = [record.clone(), Key::definition(TenantId(2), "other")];
    for key in wrong {
        let step = Body::RemoveStep(RemoveStep::OfTenant { keys: vec![key] });
        assert_eq!(rows.catalogue(step), Err(Reason::FieldInvalid));
    }
    let of_tenant = |key: &Key| {
        let named = key.is(Kind::Tenant) || key.is(Kind::ApiKey);
        (key.tenant_of() == TENANT || named) && *key != record
    };
    let keys: Vec<Key> = rows.0.keys().filter(|key| of_tenant(key)).cloned().collect();
    assert!(keys.len() > 2, "{keys:?}");
    rows.catalogue(Body::RemoveStep(RemoveStep::OfTenant { keys })).expect("they go");
    rows.catalogue(Body::RemoveStep(RemoveStep::TenantGone)).expect("it is over");
    assert_eq!(rows.0.keys().filter(|key| of_tenant(key)).count(), 0);
    let deletion = rows.tenancy(&record).deletion.expect("it is known for good");
    assert_eq!((deletion.by.as_str(), deletion.done), ("kim", Some(Time(1_000))));
    rows.attempt(TenantId(0), Scope::Catalogue, Body::CreateTenant(again)).expect("its name is free");
    assert_eq!(rows.catalogue(directory("kim@a.example")), Err(Reason::NotFound), "it stays deleted");
}

#[test]
fn a_tenant_that_is_not_deleted_loses_no_row() {
    let mut rows = catalogue();
    let count = rows.0.len();
    let keys = vec![Key::tenant("acme")];
    rows.catalogue(Body::RemoveStep(RemoveStep::OfTenant { keys })).expect("it does nothing");
    rows.catalogue(Body::RemoveStep(RemoveStep::TenantGone)).expect("it does nothing");
    assert_eq!(rows.0.len(), count);
    assert_eq!(rows.tenancy(&Key::tenancy_record(TENANT)).deletion, None);
}
