//! A replica that is behind its leader, and the callers of its server.

use switchward_engine::session_view;
use switchward_shard::{Failure, StateView};
use switchward_state::catalogue::{CatalogueCommand, CreateTenant, Settings};
use switchward_state::{Body, Key, Reply, Scope, View as _};
use switchward_testkit::until;

use crate::commands::{DEPLOY_GATE, TENANTS, command, definition, moved, session, start, tenant};
use crate::ensemble::{Ensemble, insist};
use crate::joining::callers;

const GROUP: usize = 1;
/// Writes at a server that does not lead.
const WRITES: usize = 20;

#[test]
fn rows_that_lack_what_a_caller_was_answered_are_not_read() {
    let runtime = callers();
    let ensemble = Ensemble::of_three(&runtime);
    runtime.block_on(async {
        let behind = 1 + ensemble.leader(GROUP).await % 3;
        let (cluster, shard) = (ensemble.cluster(behind), ensemble.shard(behind, GROUP));
        let lives = |key: &String| std::ptr::eq(cluster.shard_of(session(key).bucket()), shard);
        // Of one tenant, whose machine the first of them brings to the shard.
        let mut keys = (0..).step_by(2).map(|number| format!("behind {number}")).filter(lives);
        let (first, second) = (keys.next().unwrap(), keys.next().unwrap());
        insist(cluster, start(&definition(DEPLOY_GATE), &first)).await;

        ensemble.network.withhold(behind);
        let mut reply = cluster.execute(start(&definition(DEPLOY_GATE), &second)).await.unwrap();
        let rows = reply.take_loaded();
        assert!(rows.0.is_some(), "the leader sends the rows along");
        moved(Ok(reply));
        let has_it =
            |rows: StateView| session_view(&rows, tenant(&second), session(&second)).unwrap().is_some();
        assert!(!has_it(shard.read_stale()), "the replica cannot have it");
        let read = shard.read().await;
        assert_eq!(read.map(has_it), Err(Failure::Electing), "older rows are not given for newer ones");

        ensemble.network.heal();
        until("the replica catches up", async || shard.read().await.is_ok_and(has_it)).await;
    });
    ensemble.assert_sound();
}

/// The reply says which entry it comes from, so no leader is asked once more.
#[test]
fn who_was_answered_finds_its_own_write_without_another_question() {
    let runtime = callers();
    let ensemble = Ensemble::of_three(&runtime);
    runtime.block_on(async {
        for number in 0..WRITES {
            let behind = 1 + ensemble.leader(0).await % 3;
            let catalogue = ensemble.cluster(behind).catalogue();
            let name = format!("own-{number}");
            let body = CreateTenant {
                name: name.clone(),
                display_name: name.clone(),
                settings: Settings::default(),
            };
            let body = Body::Catalogue(CatalogueCommand::CreateTenant(body));
            let create = command(TENANTS[0], Scope::Catalogue, Some(&name), body);
            let reply = catalogue.submit(create).await.unwrap();
            assert!(matches!(reply, Reply::Tenant(_)), "it brings no rows of a session: {reply:?}");
            let row = catalogue.read_stale().row(&Key::tenant(&name)).unwrap();
            assert!(row.is_some(), "server {behind} does not have {name}");
        }
    });
    ensemble.assert_sound();
}
