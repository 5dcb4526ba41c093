//! A tenant's usage is counted as its sessions start, grow and are removed, and its quota of sessions is enforced.

#![expect(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test looks at what it is about, and stops where it cannot go on"
)]

use switchward_state::catalogue::CatalogueCommand;
use switchward_state::session::SessionCommand;
mod memory;

use memory::{Rows, sealed};
use std::collections::BTreeMap;
use std::sync::Arc;
use switchward_engine::{decide, evolve};
use switchward_formats::compile_file;
use switchward_machine::{Digest, SessionId, TenantId, Time};
use switchward_state::catalogue::{
    CreateTenant, EnsureTenancy, InstallMachine, PutQuotas, Quotas, Role, Settings, TenantChange,
    UpdateTenant, Usage,
};
use switchward_state::limits::QUOTA_MAX;
use switchward_state::seal::SecretOf;
use switchward_state::session::{Cancel, Expiring, Remove, RemoveStep, Removing, Session};
use switchward_state::{
    Actor, Body, Command, Key, Kind, REMOVED_KINDS, Reason, Rejection, Reply, Row, Scope,
};
use switchward_testkit::start_of;

const TENANT: TenantId = TenantId(1);
const SOURCE: &str = "\
name: gate
initial: ask
states: {ask: {question: q, answers: {yes: {next: null}}}}
";

impl Rows {
    /// Executes a command; replaying its decision must give the same rows, and the counts must match the rows.
    fn attempt(&mut self, scope: Scope, quotas: Quotas, body: Body) -> Result<Reply, Rejection> {
        let actor = Actor { subject: "kim".into(), role: Role::Admin };
        let settings = Settings { quotas, ..Settings::default() };
        let command = Command { actor, settings, ..Command::of_server(TENANT, scope, body) };
        let decided = decide(&[command], self, Time(1_000)).expect("the rows can be read");
        if let Some(decision) = decided.decision {
            let replayed = evolve(&decision, self).expect("it fits");
            assert_eq!(replayed, decided.changes);
            self.apply(replayed);
        }
        assert_eq!(self.usage(), self.counted());
        decided.answers.into_iter().next().expect("one answer")
    }

    fn execute(&mut self, scope: Scope, body: Body) -> Reply {
        self.attempt(scope, Quotas::default(), body).expect("it is taken")
    }

    fn usage(&self) -> Usage {
        match self.0.get(&Key::usage(TENANT)).map(|row| &**row) {
            Some(Row::Usage(usage)) => *usage,
            None => Usage::default(),
            other => panic!("{other:?}"),
        }
    }

    /// The usage, counted from the rows.
    fn counted(&self) -> Usage {
        let mut bytes: BTreeMap<SessionId, u64> = BTreeMap::new();
        for (key, row) in &self.0 {
            let held = match &**row {
                Row::History(history) => minicbor::to_vec(history).unwrap().len(),
                Row::Reply(reply) => minicbor::to_vec(reply).unwrap().len(),
                _ => continue,
            };
            let id = key.session_of().expect("it is a session's");
            *bytes.entry(id).or_default() += u64::try_from(held).unwrap();
        }
        let mut usage = Usage::default();
        for (key, row) in &self.0 {
            let Row::Session(session) = &**row else { continue };
            let held = session.bytes;
            usage.sessions += 1;
            usage.bytes += held;
            // The rows of a hidden session are removed before the session's own row.
            if !session.removal.as_ref().is_some_and(|removal| removal.how == Removing::Deleted) {
                let id = key.session_of().expect("it is a session's");
                assert_eq!(held, bytes.get(&id).copied().unwrap_or_default(), "{id}");
            }
        }
        usage
    }

    fn session(&self, id: SessionId) -> Option<&Session> {
        self.0.get(&Key::session(TENANT, id)).map(|row| match &**row {
            Row::Session(session) => session,
            other => panic!("{other:?}"),
        })
    }

    /// The rows of a session that a removal takes, in the order in which it takes them.
    fn rows_of(&self, id: SessionId) -> Vec<Key> {
        let of = |kind: &Kind| {
            let prefix = Key::prefix_of_session(TENANT, id, *kind);
            self.0.keys().filter(move |key| key.as_bytes().starts_with(&prefix)).cloned()
        };
        REMOVED_KINDS.iter().flat_map(of).collect()
    }

    fn remove(&mut self, id: SessionId, how: Removing) {
        self.execute(
            Scope::Session(id),
            Body::Session(SessionCommand::Remove(Remove { how, ended_by: None })),
        );
        let trims = how == Removing::Trimmed;
        let keys = self.rows_of(id).into_iter().filter(|key| !trims || key.is(Kind::History)).collect();
        let step = RemoveStep::Rows { session: id, keys, last: None };
        self.execute(Scope::Shard, Body::Session(SessionCommand::RemoveStep(step)));
        let last = self.session(id).map(|session| session.sequence);
        let step = RemoveStep::Rows { session: id, keys: Vec::new(), last };
        self.execute(Scope::Shard, Body::Session(SessionCommand::RemoveStep(step)));
    }
}

fn machine() -> Arc<switchward_machine::Machine> {
    let compiled = compile_file("gate.yaml", SOURCE.as_bytes(), None);
    let definition = compiled.definition.unwrap_or_else(|| panic!("{:?}", compiled.findings));
    Arc::new(definition.machine)
}

fn shard() -> (Rows, Digest) {
    let (mut rows, machine) = (Rows::default(), machine());
    let digest = machine.digest();
    rows.execute(Scope::Shard, Body::Catalogue(CatalogueCommand::InstallMachine(InstallMachine { machine })));
    (rows, digest)
}

fn id(number: u8) -> SessionId {
    SessionId::from_key(TENANT, &number.to_string())
}

fn start(machine: Digest) -> Body {
    Body::Session(SessionCommand::Start(start_of("gate", 1, machine, "agent")))
}

fn cancel() -> Body {
    Body::Session(SessionCommand::Cancel(Cancel::written("over")))
}

#[test]
fn sessions_and_their_bytes_are_counted_until_they_are_gone() {
    let (mut rows, machine) = shard();
    for number in 1..=5 {
        rows.execute(Scope::Session(id(number)), start(machine));
    }
    let begun = rows.usage();
    assert_eq!(begun.sessions, 5);
    assert!(begun.bytes > 500, "{begun:?}");
    for number in 1..=4 {
        rows.execute(Scope::Session(id(number)), cancel());
    }
    let ended = rows.usage();
    assert!(ended.sessions == 5 && ended.bytes > begun.bytes, "{ended:?} after {begun:?}");

    rows.remove(id(1), Removing::Trimmed);
    assert_eq!(rows.session(id(1)).map(|session| session.bytes), Some(0));
    rows.remove(id(2), Removing::Erased);
    assert!(rows.session(id(2)).is_some() && rows.usage().bytes < ended.bytes);
    assert_eq!(rows.usage().sessions, 5, "what remains of a session is one");
    rows.remove(id(3), Removing::Deleted);
    assert_eq!(rows.usage().sessions, 4);
    let whole = rows.session(id(4)).map(|session| session.sequence).expect("it is there");
    let whole = Expiring { session: id(4), keys: rows.rows_of(id(4)), sequence: whole };
    let step = RemoveStep::Expire { sessions: vec![whole], ended_by: Time(2_000) };
    rows.execute(Scope::Shard, Body::Session(SessionCommand::RemoveStep(step)));
    assert_eq!(rows.usage().sessions, 3);
    for number in [1, 2] {
        rows.remove(id(number), Removing::Deleted);
    }
    let left = rows.usage();
    assert_eq!((left.sessions, Some(left.bytes)), (1, rows.session(id(5)).map(|session| session.bytes)));
}

#[test]
fn one_session_more_than_the_quota_is_refused_until_one_has_gone() {
    let (mut rows, machine) = shard();
    let two = Quotas { sessions: Some(2), ..Quotas::default() };
    for number in 1..=2 {
        rows.attempt(Scope::Session(id(number)), two, start(machine)).expect("the quota allows it");
    }
    let refused = rows.attempt(Scope::Session(id(3)), two, start(machine)).expect_err("the quota is reached");
    assert_eq!(refused.reason, Reason::QuotaExceeded);
    assert_eq!(refused.facts, [("quota".to_owned(), "sessions".to_owned())]);
    // Existing sessions continue, and the end of one does not free quota.
    rows.attempt(Scope::Session(id(1)), two, cancel()).expect("it ends");
    assert!(rows.attempt(Scope::Session(id(3)), two, start(machine)).is_err());
    rows.remove(id(1), Removing::Deleted);
    rows.attempt(Scope::Session(id(3)), two, start(machine)).expect("the quota allows it");
}

fn tenant(rows: &Rows) -> switchward_state::catalogue::Tenant {
    match rows.0.get(&Key::tenant("acme")).map(|row| &**row) {
        Some(Row::Tenant(tenant)) => tenant.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn quotas_are_set_by_their_own_command_alone_and_recorded() {
    let mut rows = Rows::default();
    let none = Quotas::default();
    let create =
        CreateTenant { name: "acme".into(), display_name: String::new(), settings: Settings::default() };
    rows.execute(Scope::Catalogue, Body::Catalogue(CatalogueCommand::CreateTenant(create)));
    let key = sealed(TENANT, SecretOf::Mail, &[7; 32]);
    let ensure = EnsureTenancy { any_approver_address: false, link_auth: None, key: Some(key) };
    rows.execute(Scope::Catalogue, Body::Catalogue(CatalogueCommand::EnsureTenancy(ensure)));
    let quotas = Quotas { sessions: Some(9), ..none };
    let put = |quotas, etag: &str| {
        Body::Catalogue(CatalogueCommand::PutQuotas(PutQuotas {
            name: "acme".into(),
            quotas,
            etag: etag.to_owned(),
        }))
    };
    rows.execute(Scope::Catalogue, put(quotas, &tenant(&rows).etag()));
    assert_eq!(tenant(&rows).settings.quotas, quotas);

    let settings = Settings { allow_foreign_role: true, ..Settings::default() };
    let update = UpdateTenant { name: "acme".into(), settings, etag: String::new() };
    rows.execute(Scope::Catalogue, Body::Catalogue(CatalogueCommand::UpdateTenant(update)));
    let now = tenant(&rows).settings;
    assert!(now.allow_foreign_role && now.quotas == quotas, "{now:?}");

    let too_many = Quotas { bytes: Some(QUOTA_MAX + 1), ..none };
    for (body, reason) in [
        (put(none, "0123456789abcdef"), Reason::EtagMismatch),
        (put(too_many, ""), Reason::FieldInvalid),
        (
            Body::Catalogue(CatalogueCommand::PutQuotas(PutQuotas {
                name: "other".into(),
                quotas,
                etag: String::new(),
            })),
            Reason::NotFound,
        ),
    ] {
        let refused = rows.attempt(Scope::Catalogue, none, body).expect_err("it is refused");
        assert_eq!(refused.reason, reason);
    }
    let changes = rows.0.values().filter_map(|row| match &**row {
        Row::TenantChange(TenantChange { parts, .. }) => Some(parts[0].name.clone()),
        _ => None,
    });
    assert_eq!(changes.collect::<Vec<_>>(), ["quotas.sessions", "allow_foreign_role"]);
}
