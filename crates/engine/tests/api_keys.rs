//! Keys of the API: somebody can always make another one.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use switchward_engine::{decide, evolve};
use switchward_machine::{Digest, TenantId, Time};
use switchward_state::catalogue::{CatalogueCommand, CreateKey, CreateTenant, RevokeKey, Role, Settings};
use switchward_state::{Body, Command, Reason, Rejection, Reply, Scope};
use switchward_testkit::Rows;

const ACME: TenantId = TenantId(1);
const GLOBEX: TenantId = TenantId(2);
const BEGIN: Time = Time(1_000);

#[derive(Default)]
struct Catalogue(Rows);

impl Catalogue {
    /// Two tenants without keys.
    fn new() -> Self {
        let mut catalogue = Self::default();
        for name in ["acme", "globex"] {
            let body =
                CreateTenant { name: name.into(), display_name: name.into(), settings: Settings::default() };
            let [made] = catalogue.take(BEGIN, [(TenantId(0), CatalogueCommand::CreateTenant(body))]);
            made.unwrap();
        }
        catalogue
    }

    /// Decides all commands in one batch.
    fn take<const N: usize>(
        &mut self,
        now: Time,
        commands: [(TenantId, CatalogueCommand); N],
    ) -> [Result<Reply, Rejection>; N] {
        let commands = commands
            .map(|(tenant, body)| Command::of_server(tenant, Scope::Catalogue, Body::Catalogue(body)));
        let decided = decide(&commands, &self.0, now).unwrap();
        if let Some(decision) = &decided.decision {
            assert_eq!(evolve(decision, &self.0).unwrap(), decided.changes);
            self.0.apply(decided.changes);
        }
        decided.answers.try_into().unwrap()
    }

    fn create(&mut self, tenant: TenantId, id: &str, role: Role, expires: Option<Time>) {
        let [made] = self.take(BEGIN, [create(tenant, id, role, expires)]);
        made.unwrap();
    }

    fn revoke(&mut self, now: Time, tenant: TenantId, id: &str) -> Result<Reply, Rejection> {
        let [revoked] = self.take(now, [revoke(tenant, id)]);
        revoked
    }
}

fn create(tenant: TenantId, id: &str, role: Role, expires: Option<Time>) -> (TenantId, CatalogueCommand) {
    let key = CreateKey {
        id: id.into(),
        tenant_name: if tenant == ACME { "acme" } else { "globex" }.into(),
        hash: Digest::of(id.as_bytes()),
        role,
        subject: id.into(),
        display_name: id.into(),
        expires,
    };
    (tenant, CatalogueCommand::CreateKey(key))
}

fn revoke(tenant: TenantId, id: &str) -> (TenantId, CatalogueCommand) {
    (tenant, CatalogueCommand::RevokeKey(RevokeKey { id: id.into() }))
}

fn reason(outcome: &Result<Reply, Rejection>) -> Reason {
    outcome.as_ref().unwrap_err().reason
}

#[test]
fn two_admins_who_revoke_each_other_at_once_leave_one() {
    let mut catalogue = Catalogue::new();
    catalogue.create(ACME, "kim", Role::Admin, None);
    catalogue.create(ACME, "lee", Role::Admin, None);
    let [first, second] = catalogue.take(BEGIN, [revoke(ACME, "lee"), revoke(ACME, "kim")]);
    assert!(first.is_ok(), "{first:?}");
    assert_eq!(reason(&second), Reason::StateMismatch);
    assert_eq!(
        reason(&catalogue.revoke(BEGIN, ACME, "kim")),
        Reason::StateMismatch,
        "in a batch of its own, too"
    );
    assert!(catalogue.revoke(BEGIN, ACME, "lee").is_ok(), "said again, it changes nothing");
}

#[test]
fn only_keys_that_make_an_admin_of_the_tenant_now_count() {
    let mut catalogue = Catalogue::new();
    let over = BEGIN.after_ms(1_000);
    catalogue.create(GLOBEX, "ann", Role::Admin, None);
    catalogue.create(ACME, "kim", Role::Admin, None);
    catalogue.create(ACME, "lee", Role::Admin, Some(over));
    catalogue.create(ACME, "author", Role::Author, None);
    assert_eq!(reason(&catalogue.revoke(over, ACME, "kim")), Reason::StateMismatch, "lee's has expired");
    assert!(catalogue.revoke(over, ACME, "lee").is_ok(), "and is no admin's any more");
    assert!(catalogue.revoke(over, ACME, "author").is_ok());
}

#[test]
fn a_key_that_was_made_in_the_same_batch_counts() {
    let mut catalogue = Catalogue::new();
    catalogue.create(ACME, "kim", Role::Admin, None);
    let commands = [create(ACME, "lee", Role::Admin, None), revoke(ACME, "kim"), revoke(ACME, "lee")];
    let [made, first, second] = catalogue.take(BEGIN, commands);
    assert!(made.is_ok() && first.is_ok(), "{made:?} {first:?}");
    assert_eq!(reason(&second), Reason::StateMismatch);
}

#[test]
fn of_several_keys_that_expire_the_last_one_counts() {
    let mut catalogue = Catalogue::new();
    for (id, ms) in [("one", 1_000), ("two", 3_000), ("three", 2_000)] {
        catalogue.create(ACME, id, Role::Admin, Some(BEGIN.after_ms(ms)));
    }
    let then = BEGIN.after_ms(2_500);
    assert_eq!(reason(&catalogue.revoke(then, ACME, "two")), Reason::StateMismatch);
    let before = BEGIN.after_ms(1_500);
    assert!(catalogue.revoke(before, ACME, "two").is_ok(), "three works at that time");
}
