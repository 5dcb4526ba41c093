//! A signed message that a session has recorded is known again for a time, and then forgotten.

use switchward_engine::decide;
use switchward_machine::{SessionId, TenantId, Time};
use switchward_state::session::{SessionCommand, Sweep};
use switchward_state::{Body, Command, IndexKey, Key, Row, Scope};
use switchward_testkit::Rows;

const TENANT: TenantId = TenantId(7);
const UNTIL: Time = Time(60_000);

/// Sweeps everything that is in the index of what falls due, at this time.
fn sweep(rows: &mut Rows, now: Time) {
    let entries = rows.iter().map(|(key, _)| key.clone());
    let entries: Vec<Key> = entries.filter(|key| key.as_bytes().starts_with(&IndexKey::due())).collect();
    for due in entries.iter().filter_map(IndexKey::due_of) {
        assert_eq!((due.at, due.scope()), (UNTIL, Scope::Shard));
        let scope = due.scope();
        let body = Body::Session(SessionCommand::Sweep(Sweep { key: due.key }));
        let command = Command::of_server(TENANT, scope, body);
        let decided = decide(&[command], &*rows, now).expect("the rows can be read");
        rows.apply(decided.changes);
    }
}

#[test]
fn a_message_is_forgotten_when_it_is_not_known_again_any_more() {
    let key = Key::recorded(TENANT, SessionId([9; 16]), [5; 16]);
    let mut rows = Rows::default();
    rows.apply(vec![(key.clone(), Some(Row::Recorded(UNTIL).into()))]);
    let known = |rows: &Rows| rows.iter().any(|(known, _)| *known == key);
    sweep(&mut rows, Time(UNTIL.0 - 1));
    assert!(known(&rows), "a copy is still refused");
    sweep(&mut rows, UNTIL);
    assert!(!known(&rows));
}
