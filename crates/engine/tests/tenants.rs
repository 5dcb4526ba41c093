//! Tenants: recorded changes, held effects, deletion.

use switchward_state::catalogue::{CatalogueCommand, DeleteTenant};
use switchward_state::delivery::{
    ChangeEndpoint, ChangeWebhookSource, DeliveryCommand, HoldEffects, WebhookSourceKind,
};
use switchward_state::session::SessionCommand;
mod memory;

use memory::{Rows, sealed};
use serde_json::{Value, json};
use std::cell::Cell;
use std::ops::ControlFlow;
use std::sync::Arc;
use switchward_engine::{decide, evolve, holds_effects};
use switchward_machine::{Digest, TenantId, Time};
use switchward_state::catalogue::{
    CreateKey, CreateTenant, DefaultEffect, DefaultSetIn, Directory, DirectoryEntry, EnsureTenancy,
    InstallTenancy, PutDirectory, Reseal, Role, Settings, Tenancy, TenantChange, UpdateTenant,
};
use switchward_state::delivery::{Correlation, SourceSecret, TextSource};
use switchward_state::limits::{DIRECTORY_MEMBERS_MAX, DIRECTORY_MEMBERS_TOTAL_MAX};
use switchward_state::seal::{KeyRing, Sealed, SecretOf};
use switchward_state::session::RemoveStep;
use switchward_state::{
    Actor, Body, Command, Key, Kind, Reason, Reply, Row, Scope, View, ViewError, index_keys, tenant_numbered,
};

const TENANT: TenantId = TenantId(1);

impl Rows {
    /// Executes a command; replaying its decision must give the same rows.
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

/// A sealed key for the tenant's mail tokens.
fn mail_key(byte: u8) -> Sealed {
    sealed(TENANT, SecretOf::Mail, &[byte; 32])
}

/// The catalogue with one tenant.
fn catalogue() -> Rows {
    let mut rows = Rows::default();
    let create =
        CreateTenant { name: "acme".into(), display_name: String::new(), settings: Settings::default() };
    rows.attempt(TenantId(0), Scope::Catalogue, Body::Catalogue(CatalogueCommand::CreateTenant(create)))
        .expect("it is new");
    let ensure = EnsureTenancy { any_approver_address: false, link_auth: None, key: Some(mail_key(7)) };
    rows.catalogue(Body::Catalogue(CatalogueCommand::EnsureTenancy(ensure))).expect("it is taken");
    rows
}

fn directory(member: &str) -> Body {
    let entry = DirectoryEntry { name: "kim".into(), members: vec![member.into()], ..Default::default() };
    let directory = Directory { entries: vec![entry], ..Directory::default() };
    Body::Catalogue(CatalogueCommand::PutDirectory(PutDirectory {
        directory,
        key: Some(mail_key(7)),
        etag: String::new(),
    }))
}

fn update(settings: Settings) -> Body {
    Body::Catalogue(CatalogueCommand::UpdateTenant(UpdateTenant {
        name: "acme".into(),
        settings,
        etag: String::new(),
    }))
}

fn delete() -> Body {
    Body::Catalogue(CatalogueCommand::DeleteTenant(DeleteTenant {
        tenant: TENANT,
        name: "acme".into(),
        etag: String::new(),
    }))
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
fn a_directory_is_answered_as_it_is_stored() {
    let mut rows = catalogue();
    let entry = |name: &str| {
        let members = vec!["kim@a.example".into()];
        DirectoryEntry { name: name.into(), members, ..Default::default() }
    };
    let directory = Directory { entries: vec![entry(" Kim "), entry("ada")], ..Directory::default() };
    let put = PutDirectory { directory, key: None, etag: String::new() };
    let put = Body::Catalogue(CatalogueCommand::PutDirectory(put));
    for _ in 0..2 {
        let Ok(Reply::Directory(answer)) = rows.catalogue(put.clone()) else { panic!("it is taken") };
        assert_eq!(answer.entries, [entry("ada"), entry("kim")]);
        assert_eq!(*answer, rows.tenancy(&Key::tenancy_record(TENANT)).directory);
    }
}

#[test]
fn the_lists_of_a_directory_hold_a_bounded_number_of_members_together() {
    let entry = |at: usize| {
        let members = vec!["kim@a.example".into(); DIRECTORY_MEMBERS_MAX];
        DirectoryEntry { name: format!("n{at}"), members, ..Default::default() }
    };
    let put = |audience: &[&str]| {
        let entries = (0..DIRECTORY_MEMBERS_TOTAL_MAX / DIRECTORY_MEMBERS_MAX).map(entry).collect();
        let audience = audience.iter().map(|one| (*one).to_owned()).collect();
        let directory = Directory { entries, audience, ..Directory::default() };
        let put = PutDirectory { directory, key: None, etag: String::new() };
        Body::Catalogue(CatalogueCommand::PutDirectory(put))
    };
    let mut rows = catalogue();
    rows.catalogue(put(&[])).expect("it is taken");
    let actor = Actor { subject: "kim".into(), role: Role::Admin };
    let more = Command { actor, ..Command::of_server(TENANT, Scope::Catalogue, put(&["n0"])) };
    let decided = decide(&[more], &rows, Time(1_000)).expect("the rows can be read");
    let answer = decided.answers.into_iter().next().expect("one answer");
    let refused = answer.expect_err("it is one too many");
    assert_eq!(
        (refused.reason, refused.fact_named("field")),
        (Reason::FieldInvalid, Some("directory.entries[99]"))
    );
}

#[test]
fn effects_are_held_until_they_are_released_and_every_shard_knows() {
    let mut rows = catalogue();
    let hold = |held| Body::Delivery(DeliveryCommand::HoldEffects(HoldEffects { held }));
    assert!(!holds_effects(&rows, TENANT).expect("readable"));
    rows.catalogue(hold(true)).expect("it is taken");
    assert!(holds_effects(&rows, TENANT).expect("readable"), "the catalogue's own");
    let record = rows.tenancy(&Key::tenancy_record(TENANT));
    let mut shard = Rows::default();
    let install = |tenancy| Body::Catalogue(CatalogueCommand::InstallTenancy(InstallTenancy { tenancy }));
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
    rows.catalogue(Body::Catalogue(CatalogueCommand::CreateKey(key))).expect("it is taken");
    let before = rows.tenancy(&Key::tenancy_record(TENANT));
    let other = TenantId(9);
    let wrong = DeleteTenant { tenant: other, name: "acme".into(), etag: String::new() };
    assert_eq!(
        rows.catalogue(Body::Catalogue(CatalogueCommand::DeleteTenant(wrong))),
        Err(Reason::NotFound),
        "it is another one's name"
    );
    rows.attempt(other, Scope::Catalogue, delete()).expect("it begins");
    rows.attempt(other, Scope::Catalogue, delete()).expect("said twice, it changes nothing");
    let tombstone = rows.tenancy(&Key::tenancy_record(TENANT));
    assert_eq!(tombstone.directory, Directory::default(), "its people are gone at once");
    assert!(tombstone.keys.is_empty() && tombstone.revision > before.revision && tombstone.holds_effects());
    assert_eq!(rows.catalogue(directory("kim@a.example")), Err(Reason::NotFound));
    let again =
        CreateTenant { name: "acme".into(), display_name: String::new(), settings: Settings::default() };
    let taken = rows.attempt(
        TenantId(0),
        Scope::Catalogue,
        Body::Catalogue(CatalogueCommand::CreateTenant(again.clone())),
    );
    assert_eq!(taken, Err(Reason::AlreadyExists), "its name is free when all is gone");
    let record = Key::tenancy_record(TENANT);
    let wrong = [record.clone(), Key::definition(TenantId(2), "other")];
    for key in wrong {
        let step = Body::Session(SessionCommand::RemoveStep(RemoveStep::OfTenant { keys: vec![key] }));
        assert_eq!(rows.catalogue(step), Err(Reason::FieldInvalid));
    }
    let of_tenant = |key: &Key| {
        let named = key.is(Kind::Tenant) || key.is(Kind::ApiKey);
        (key.tenant_of() == TENANT || named) && *key != record
    };
    let keys: Vec<Key> = rows.0.keys().filter(|key| of_tenant(key)).cloned().collect();
    assert!(keys.len() > 2, "{keys:?}");
    rows.catalogue(Body::Session(SessionCommand::RemoveStep(RemoveStep::OfTenant { keys })))
        .expect("they go");
    rows.catalogue(Body::Session(SessionCommand::RemoveStep(RemoveStep::TenantGone))).expect("it is over");
    assert_eq!(rows.0.keys().filter(|key| of_tenant(key)).count(), 0);
    let deletion = rows.tenancy(&record).deletion.expect("it is known for good");
    assert_eq!((deletion.by.as_str(), deletion.done), ("kim", Some(Time(1_000))));
    rows.attempt(TenantId(0), Scope::Catalogue, Body::Catalogue(CatalogueCommand::CreateTenant(again)))
        .expect("its name is free");
    assert_eq!(rows.catalogue(directory("kim@a.example")), Err(Reason::NotFound), "it stays deleted");
}

#[test]
fn a_tenant_that_is_not_deleted_loses_no_row() {
    let mut rows = catalogue();
    let count = rows.0.len();
    let keys = vec![Key::tenant("acme")];
    rows.catalogue(Body::Session(SessionCommand::RemoveStep(RemoveStep::OfTenant { keys })))
        .expect("it does nothing");
    rows.catalogue(Body::Session(SessionCommand::RemoveStep(RemoveStep::TenantGone)))
        .expect("it does nothing");
    assert_eq!(rows.0.len(), count);
    assert_eq!(rows.tenancy(&Key::tenancy_record(TENANT)).deletion, None);
}

fn source(rows: &Rows) -> Vec<Sealed> {
    let Some(Row::WebhookSource(source)) = rows.0.get(&Key::webhook_source(TENANT, "shop")).map(|row| &**row)
    else {
        panic!("the source is there")
    };
    assert_eq!(source.revision, 1, "for those who use it nothing changes");
    source.secrets.iter().map(|secret| secret.sealed.clone()).collect()
}

#[test]
fn secrets_come_under_another_key_where_they_are_still_as_they_were() {
    let mut rows = catalogue();
    let of = |text: &str| sealed(TENANT, SecretOf::Source("shop"), text.as_bytes());
    let ops = |text: &str| sealed(TENANT, SecretOf::Endpoint("ops"), text.as_bytes());
    let fixed = || TextSource::Fixed("x".into());
    let correlation =
        Correlation { session: fixed(), event_key: fixed(), data: String::new(), known_ms: None };
    let (name, kind) = ("shop".to_owned(), WebhookSourceKind::Github);
    let secret = Some(SourceSecret { sealed: of("before"), until: None });
    let create = ChangeWebhookSource::Create { name: name.clone(), kind, secret, correlation };
    rows.catalogue(Body::Delivery(DeliveryCommand::WebhookSource(create))).expect("it is taken");
    let (id, url, etag) = ("ops".into(), "https://ops.example/in".into(), String::new());
    let put = ChangeEndpoint::Put { id, url, filters: Vec::new(), secret: ops("before"), key: None, etag };
    rows.catalogue(Body::Delivery(DeliveryCommand::Endpoint(put))).expect("it is taken");

    let record = |rows: &Rows| rows.tenancy(&Key::tenancy_record(TENANT));
    let before = record(&rows);
    let mut reseal = |secrets: Vec<(Sealed, Sealed)>| {
        rows.catalogue(Body::Catalogue(CatalogueCommand::Reseal(Reseal {
            secrets,
            sources: vec![name.clone(), "gone".into()],
        })))
        .expect("it is taken");
        (record(&rows), source(&rows))
    };
    let (stale, _) =
        reseal(vec![(mail_key(1), mail_key(2)), (of("other"), of("after")), (ops("x"), ops("y"))]);
    assert_eq!(stale, before, "none of them is there");
    let (fresh, shop) =
        reseal(vec![(mail_key(7), mail_key(8)), (of("before"), of("after")), (ops("before"), ops("after"))]);
    assert_eq!(
        (&fresh.keys, fresh.revision),
        (&vec![mail_key(8)], before.revision + 1),
        "the shards are told"
    );
    assert_eq!(fresh.endpoints[0].secrets[0].sealed, ops("after"));
    assert_eq!(shop, [of("after")]);
    let (again, _) = reseal(vec![(mail_key(7), mail_key(9))]);
    assert_eq!(again, fresh);
}

#[test]
fn a_tenant_that_was_made_without_a_key_ring_gets_its_key_later_and_keeps_it() {
    let mut rows = Rows::default();
    let create =
        CreateTenant { name: "acme".into(), display_name: String::new(), settings: Settings::default() };
    rows.attempt(TenantId(0), Scope::Catalogue, Body::Catalogue(CatalogueCommand::CreateTenant(create)))
        .expect("it is new");
    let mut ensure = |key: Option<Sealed>| {
        let ensure = EnsureTenancy { any_approver_address: false, link_auth: None, key };
        rows.catalogue(Body::Catalogue(CatalogueCommand::EnsureTenancy(ensure))).expect("it is taken");
        let record = rows.tenancy(&Key::tenancy_record(TENANT));
        (record.keys, record.revision)
    };
    assert_eq!(ensure(None), (Vec::new(), 1));
    assert_eq!(ensure(None), (Vec::new(), 1));
    assert_eq!(ensure(Some(mail_key(7))), (vec![mail_key(7)], 2));
    assert_eq!(ensure(Some(mail_key(8))), (vec![mail_key(7)], 2));
}

/// Rows that count their reads.
struct Counted {
    rows: Rows,
    looks: Cell<usize>,
}

impl View for Counted {
    fn row(&self, key: &Key) -> Result<Option<Arc<Row>>, ViewError> {
        self.looks.set(self.looks.get() + 1);
        self.rows.row(key)
    }

    fn scan(
        &self,
        prefix: &[u8],
        after: Option<&[u8]>,
        visit: &mut dyn FnMut(&Key, &Arc<Row>) -> ControlFlow<()>,
    ) -> Result<(), ViewError> {
        self.rows.scan(prefix, after, &mut |key, row| {
            self.looks.set(self.looks.get() + 1);
            visit(key, row)
        })
    }

    fn ring(&self) -> &KeyRing {
        self.rows.ring()
    }
}

#[test]
fn a_tenant_is_found_by_its_number_however_many_there_are() {
    let mut rows = Rows::default();
    for number in 0..1_000 {
        let create = CreateTenant {
            name: format!("tenant-{number}"),
            display_name: String::new(),
            settings: Settings::default(),
        };
        rows.attempt(TenantId(0), Scope::Catalogue, Body::Catalogue(CatalogueCommand::CreateTenant(create)))
            .expect("it is new");
    }
    // A shard keeps the indices beside the rows.
    let entries: Vec<Key> = rows.0.iter().flat_map(|(key, row)| index_keys(key, row)).collect();
    rows.0.extend(entries.into_iter().map(|entry| (entry, Arc::new(Row::Index))));
    let tenants = rows.0.values().filter_map(|row| {
        if let Row::Tenant(tenant) = &**row { Some((tenant.id, tenant.name.clone())) } else { None }
    });
    let tenants: Vec<_> = tenants.collect();
    assert_eq!(tenants.len(), 1_000);
    let counted = Counted { rows, looks: Cell::new(0) };
    for (id, name) in tenants {
        counted.looks.set(0);
        let found = tenant_numbered(&counted, id).expect("the rows can be read").expect("it is there");
        assert_eq!((found.name, counted.looks.get()), (name, 2), "its entry and its row are looked at");
    }
}
