//! What is left of a tenant that was deleted.

use std::ops::ControlFlow;
use switchward_machine::{Micros, TenantId};
use switchward_shard::Shard;
use switchward_state::catalogue::{CatalogueCommand, DeleteTenant};
use switchward_state::delivery::{AckEffect, DeliveryCommand};
use switchward_state::limits::REPLIES_LISTED_MAX;
use switchward_state::policy::{PolicyCommand, ReportUsage};
use switchward_state::{Body, Key, Kind, Row, Scope, View};
use switchward_testkit::until;

use crate::commands::{
    DEPLOY_GATE, TENANTS, command, create_tenants, definition, deploys, session, start, tenant,
};
use crate::server::{Server, Setup};

/// A session of the second tenant.
const KEY: &str = "gone 1";
/// Commands of the session: more replies than its own row lists.
const COMMANDS: usize = 2 * REPLIES_LISTED_MAX;

/// How many rows whose keys begin with this are such.
fn count(shard: &Shard, prefix: &[u8], is: impl Fn(&Key) -> bool) -> usize {
    let mut found = 0;
    let look = &mut |key: &Key, _: &_| {
        found += usize::from(is(key));
        ControlFlow::Continue(())
    };
    shard.read_stale().scan(prefix, None, look).unwrap();
    found
}

/// Returns true if the catalogue's record of the tenant says that its last row is gone, here and in every shard.
fn is_deleted(catalogue: &Shard, tenant: TenantId) -> bool {
    let record = catalogue.read_stale().row(&Key::tenancy_record(tenant)).unwrap();
    let Some(Row::Tenancy(record)) = record.as_deref() else { return false };
    record.deletion.as_ref().is_some_and(|deletion| deletion.done.is_some())
}

#[test]
fn nothing_of_a_deleted_tenant_stays_but_the_record_of_it_and_no_reply_waits_for_its_age() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::open(&Setup::new(folder.path()));
    let (cluster, gate) = (server.cluster(), definition(DEPLOY_GATE));
    let (own, id) = (tenant(KEY), session(KEY));
    assert_eq!(own, TENANTS[1]);
    server.run(async {
        for made in create_tenants().into_iter().chain(deploys(&gate, DEPLOY_GATE)) {
            cluster.execute(made).await.unwrap();
        }
        cluster.execute(start(&gate, KEY)).await.unwrap();
        for number in 0..COMMANDS {
            let report = PolicyCommand::ReportUsage(ReportUsage { cost: Micros(0), tokens: 1 });
            let nothing = DeliveryCommand::AckEffect(AckEffect { number: 9_999 });
            for (name, body) in [("report", Body::Policy(report)), ("nothing", Body::Delivery(nothing))] {
                let request = format!("{name} {number}");
                cluster.execute(command(own, Scope::Session(id), Some(&request), body)).await.unwrap();
            }
        }
        let replies = Key::prefix_of_session(own, id, Kind::Reply);
        assert!(count(cluster.shard_of(id.bucket()), &replies, |_| true) > COMMANDS);

        let delete = DeleteTenant { tenant: own, name: "globex".into(), etag: String::new() };
        let delete = Body::Catalogue(CatalogueCommand::DeleteTenant(delete));
        cluster.execute(command(TENANTS[0], Scope::Catalogue, Some("delete"), delete)).await.unwrap();
        until("the tenant is deleted", async || is_deleted(cluster.catalogue(), own)).await;
    });
    for shard in cluster.all() {
        for home in Key::homes_of_tenant(own) {
            assert_eq!(count(shard, &home, |key| !key.is(Kind::Tenancy)), 0);
        }
    }
    server.assert_sound();
    server.shut_down();
}
