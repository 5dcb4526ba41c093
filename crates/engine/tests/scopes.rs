//! A command is decided only in a scope that its kind may have.

use switchward_engine::decide;
use switchward_machine::{Micros, SessionId, TenantId, Time};
use switchward_state::catalogue::{CatalogueCommand, DeleteAssistant};
use switchward_state::delivery::{AckEffect, DeliveryCommand};
use switchward_state::policy::{PolicyCommand, Settle};
use switchward_state::run::RunCommand;
use switchward_state::session::{RemoveStep, SessionCommand, Sweep};
use switchward_state::{Body, Command, Key, Scope};
use switchward_testkit::Rows;

/// A command of each kind of scope.
fn bodies() -> Vec<Body> {
    let settle = Settle { call: None, rules: Vec::new(), cost: Micros(0), at: Time(1), release: true };
    let delete = DeleteAssistant { name: "desk".into(), etag: String::new() };
    let forget = RemoveStep::Forget { keys: Vec::new(), ended_by: Time(1) };
    vec![
        RunCommand::SignalCompletion.into(),
        PolicyCommand::Settle(settle).into(),
        CatalogueCommand::DeleteAssistant(delete).into(),
        SessionCommand::RemoveStep(forget).into(),
        DeliveryCommand::AckEffect(AckEffect { number: 1 }).into(),
        SessionCommand::Sweep(Sweep { key: Key::clock() }).into(),
        SessionCommand::RemoveStep(RemoveStep::TenantGone).into(),
    ]
}

#[test]
fn a_command_in_a_scope_that_its_kind_cannot_have_is_not_decided() {
    let scopes =
        [Scope::Session(SessionId([7; 16])), Scope::Ledger("order".into()), Scope::Catalogue, Scope::Shard];
    for body in bodies() {
        for scope in &scopes {
            let command = Command::of_server(TenantId(1), scope.clone(), body.clone());
            let fits = body.traits().scope.takes(scope);
            let decided = decide(std::slice::from_ref(&command), &Rows::default(), Time(9));
            match decided {
                Ok(decided) => assert!(fits && decided.answers.len() == 1, "{command:?}"),
                Err(error) => {
                    assert!(!fits, "{command:?}: {error}");
                    assert_eq!(error, command.check_scope().unwrap_err());
                }
            }
        }
    }
}
