//! What each kind of command says of itself, as a table, so that a change is seen in review; and the scopes that it may have.

use std::fmt::Write as _;
use switchward_machine::{SessionId, TenantId};
use switchward_state::approval::{AnswerGate, ApprovalCommand, DecideGate, DiscussGate};
use switchward_state::{Body, Command, Scope};

use super::{bodies, check_text, command, kind};

/// The command's own tenant in this test; a deletion names another one.
const OWN: TenantId = TenantId(90);

/// The commands of decision pages as they are elsewhere.
fn elsewhere(mut body: Body) -> Option<Body> {
    let Body::Approval(command) = &mut body else { return None };
    match command {
        ApprovalCommand::DecideGate(DecideGate { proof, .. })
        | ApprovalCommand::DiscussGate(DiscussGate { proof, .. })
        | ApprovalCommand::AnswerGate(AnswerGate { proof, .. })
        | ApprovalCommand::AssignGate { proof, .. } => *proof = None,
        ApprovalCommand::RecordReply(_)
        | ApprovalCommand::SendPageCode(_)
        | ApprovalCommand::EnterPageCode(_) => return None,
    }
    Some(body)
}

fn line(body: &Body) -> String {
    let traits = body.traits();
    let mut line = format!("{} {:?} {:?}", kind(body), traits.scope, traits.admission);
    let words = [
        (body.grows(), "grows"),
        (body.fills(), "fills"),
        (body.shows_session(), "shows_session"),
        (body.shows_gate(), "shows_gate"),
        (body.decides_gate(), "decides_gate"),
        (body.may_need_ledger(), "may_need_ledger"),
    ];
    words.into_iter().filter(|(holds, _)| *holds).for_each(|(_, word)| line.extend([" ", word]));
    if let Some(tenant) = body.changes_tenancy(OWN) {
        write!(line, " changes_tenancy({})", if tenant == OWN { "own" } else { "named" }).unwrap();
    }
    let words =
        [(traits.in_removed_session, "in_removed_session"), (traits.in_deleted_tenant, "in_deleted_tenant")];
    words.into_iter().filter(|(holds, _)| *holds).for_each(|(_, word)| line.extend([" ", word]));
    line + "\n"
}

#[test]
fn every_kind_says_the_same_of_itself_as_before() {
    let elsewhere = bodies().into_iter().filter_map(elsewhere);
    let text: String = bodies().into_iter().chain(elsewhere).map(|body| line(&body)).collect();
    check_text("traits.v1.txt", &text, "a kind of command says something else of itself");
}

#[test]
fn the_ledger_answers_the_kinds_that_may_need_it() {
    for mut body in bodies() {
        let needs = body.may_need_ledger();
        assert_eq!(body.limits_mut().is_some(), needs, "{}", kind(&body));
    }
}

/// The words of the scopes that a command of a kind takes.
fn taken(body: &Body) -> Vec<&'static str> {
    let scopes = [
        ("session", Scope::Session(SessionId([7; 16]))),
        ("ledger", Scope::Ledger("order".into())),
        ("catalogue", Scope::Catalogue),
        ("shard", Scope::Shard),
    ];
    let takes = |scope: &Scope| {
        let command = Command { scope: scope.clone(), ..command(body.clone()) };
        command.check_scope().is_ok()
    };
    scopes.iter().filter(|(_, scope)| takes(scope)).map(|(word, _)| *word).collect()
}

#[test]
fn every_kind_takes_the_scopes_that_it_names_and_no_other() {
    for body in bodies() {
        let (kind, table) = (kind(&body), line(&body));
        let expected: &[&str] = match table.split(' ').nth(1) {
            Some("Session") => &["session"],
            Some("Ledger") => &["ledger"],
            Some("Catalogue") => &["catalogue"],
            Some("Shard") => &["shard"],
            Some("Outbox") => &["session", "catalogue"],
            Some("Due") => &["session", "shard"],
            Some("ShardOrCatalogue") => &["catalogue", "shard"],
            other => panic!("{kind}: {other:?}"),
        };
        assert_eq!(taken(&body), expected, "{kind}");
        let named = expected.iter().all(|scope| !["catalogue", "shard"].contains(scope));
        let own = Command::in_own_scope(OWN, body).check_scope();
        assert_eq!(own.is_err(), named || expected == ["session", "catalogue"], "{kind}");
    }
}
