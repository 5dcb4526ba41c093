//! A tenant's quotas span the shards of its server, and the counts survive a restart.

use switchward_shard::Failure;
use switchward_state::catalogue::Quotas;
use switchward_state::session::{Cancel, Remove, Removing, SessionCommand};
use switchward_state::{Body, Command, Key, Reason, Reply, Row, Scope, View};
use switchward_testkit::until;

use crate::commands::{DEPLOY_GATE, answer, command, definition, session, start, tenant};
use crate::one_server::prepare;
use crate::server::{Server, Setup};

fn execute(server: &Server, quotas: Quotas, mut command: Command) -> Result<Reply, Option<Reason>> {
    command.settings.quotas = quotas;
    server
        .run(server.cluster().execute(command))
        .map_err(|failure| if let Failure::Rejected(no) = failure { Some(no.reason) } else { None })
}

/// Keys of sessions of one tenant, more than one in each shard.
fn keys() -> impl Iterator<Item = String> {
    (0..40).step_by(2).map(|number| format!("key {number}"))
}

fn of_session(key: &str, body: Body) -> Command {
    command(tenant(key), Scope::Session(session(key)), None, body)
}

#[test]
fn sessions_of_all_shards_count_against_the_quota() {
    let folder = tempfile::tempdir().unwrap();
    let setup = Setup::new(folder.path());
    let server = Server::open(&setup);
    prepare(&server);
    let gate = definition(DEPLOY_GATE);
    let ten = Quotas { sessions: Some(10), ..Quotas::default() };
    let outcomes: Vec<_> = keys().map(|key| execute(&server, ten, start(&gate, &key)).is_ok()).collect();
    assert_eq!(outcomes, (0..20).map(|number| number < 10).collect::<Vec<_>>());
    let first = keys().next().unwrap();
    let usage = |server: &Server| server.cluster().usage(tenant(&first)).unwrap();
    let homes = server.cluster().shards().iter().filter(|shard| {
        let row = shard.read_stale().row(&Key::usage(tenant(&first))).unwrap();
        matches!(row.as_deref(), Some(Row::Usage(held)) if held.sessions > 0)
    });
    assert!(homes.count() > 1, "the sessions must use several shards");
    // A request that was executed before gets its first answer, and another tenant has its own quota.
    assert!(execute(&server, ten, start(&gate, &first)).is_ok());
    assert!(execute(&server, ten, start(&gate, "key 1")).is_ok());

    let counted = usage(&server);
    assert_eq!(counted.sessions, 10);
    server.crash();
    let server = Server::open(&setup);
    assert_eq!(usage(&server), counted);
    let last = keys().last().unwrap();
    assert_eq!(execute(&server, ten, start(&gate, &last)), Err(Some(Reason::QuotaExceeded)));
    execute(&server, ten, of_session(&first, Body::Session(SessionCommand::Cancel(Cancel::written("")))))
        .unwrap();
    let remove = Remove { how: Removing::Deleted, ended_by: None };
    execute(&server, ten, of_session(&first, Body::Session(SessionCommand::Remove(remove)))).unwrap();
    // Its rows are removed in the background.
    server.run(until("its rows are removed", async || usage(&server).sessions != 10));
    assert!(execute(&server, ten, start(&gate, &last)).is_ok());
}

#[test]
fn steps_are_refused_while_the_histories_are_too_long_and_ends_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::open(&Setup::new(folder.path()));
    prepare(&server);
    let gate = definition(DEPLOY_GATE);
    let none = Quotas::default();
    assert!(execute(&server, none, start(&gate, "key 0")).is_ok());
    let held = server.cluster().usage(tenant("key 0")).unwrap().bytes;
    assert!(held > 0);
    let (full, more) = (Quotas { bytes: Some(held), ..none }, Quotas { bytes: Some(held + 1), ..none });
    let refused = Err(Some(Reason::QuotaExceeded));
    assert_eq!(execute(&server, full, start(&gate, "key 2")), refused);
    assert_eq!(execute(&server, full, answer("key 0", "one", "yes")), refused);
    // A request that was executed before gets its first answer.
    assert!(execute(&server, full, start(&gate, "key 0")).is_ok());
    assert!(execute(&server, more, answer("key 0", "one", "yes")).is_ok());
    assert_eq!(execute(&server, more, answer("key 0", "two", "n/a")), refused);
    assert!(
        execute(
            &server,
            more,
            of_session("key 0", Body::Session(SessionCommand::Cancel(Cancel::written("full"))))
        )
        .is_ok()
    );
    assert!(server.cluster().usage(tenant("key 1")).unwrap().bytes == 0, "the other tenant has none");
}
