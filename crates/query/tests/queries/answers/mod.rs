//! One or more answers to each kind of query. A new kind does not compile until it has some here.

mod rows;
mod views;

use switchward_machine::{Digest, Micros, OpenId, Time};
use switchward_query::{
    ApprovalQuery, CatalogueQuery, DefinitionUse, DeliveryQuery, EffectShown, Evaluate, ExportPart,
    ExportQuery, List, NumberedChange, Origin, Pinning, PolicyQuery, Query, Ready, Remains, Rows, Sent,
    SessionQuery, TenantQuery, UseKind, Uses, WorkQuery,
};
use switchward_state::policy::{LimitCheck, LimitOutcome, PinnedPolicy, Remaining};
use switchward_state::run::Pinned;
use switchward_state::session::Retention;
use switchward_state::{Answered, Due, Key, Reason, Rejection, Reply, RowKind, SharedMachine};

use self::rows::{history, machine, row, sealed};
use crate::golden::{SESSION, TENANT};

/// The encoded answers to a query.
pub(crate) fn of(query: &Query) -> Vec<Vec<u8>> {
    match query {
        Query::Session(query) => session(query),
        Query::Approval(query) => approval(query),
        Query::Work(query) => work(query),
        Query::Delivery(query) => delivery(query),
        Query::Policy(query) => policy(query),
        Query::Catalogue(query) => catalogue(query),
        Query::Tenant(query) => tenant(query),
        Query::Export(query) => export(query),
    }
}

/// Encodes answers to this query.
fn to<Q: Evaluate>(_: &Q, answers: impl IntoIterator<Item = Q::Answer>) -> Vec<Vec<u8>> {
    answers.into_iter().map(encoded).collect()
}

/// Encodes entries of this list.
fn entries<L: List>(_: &L, items: impl IntoIterator<Item = L::Item>) -> Vec<Vec<u8>> {
    items.into_iter().map(encoded).collect()
}

/// Encodes a value, which must be the same after it was decoded.
fn encoded<T: Sent>(value: T) -> Vec<u8> {
    let bytes = minicbor::to_vec(value).unwrap();
    let back: T = minicbor::decode(&bytes).unwrap();
    assert_eq!(minicbor::to_vec(back).unwrap(), bytes, "a value is another one when it is read back");
    bytes
}

/// A page of rows.
fn page<T: RowKind>(name: &str) -> Rows<T> {
    Rows { rows: vec![row(name)], next: Some(b"deploy".to_vec()) }
}

fn session(query: &SessionQuery) -> Vec<Vec<u8>> {
    let answered = Answered { body: Digest([2; 32]), reply: Reply::Done };
    match query {
        SessionQuery::Get(query) => to(query, [Some(views::session()), Some(views::forked_session()), None]),
        SessionQuery::Show(query) => to(query, [Some(views::session_shown())]),
        SessionQuery::List(query) => entries(query, [views::session_shown()]),
        SessionQuery::Answered(query) => to(query, [Some(answered)]),
        SessionQuery::ReplyToken(query) => to(query, [true]),
        SessionQuery::Removed(query) => to(query, [false]),
        SessionQuery::History(query) => to(query, [vec![history()]]),
        SessionQuery::HistoryBefore(query) => to(query, [vec![history()]]),
        SessionQuery::Machines(query) => to(query, [views::machines()]),
        SessionQuery::ListPinned(query) => entries(query, [SESSION]),
    }
}

fn approval(query: &ApprovalQuery) -> Vec<Vec<u8>> {
    match query {
        ApprovalQuery::Get(query) => to(query, [Some(views::open_gate()), Some(views::closed_gate())]),
        ApprovalQuery::Show(query) => to(query, [Some(views::gate_shown())]),
        ApprovalQuery::List(query) => entries(query, [views::gate_shown()]),
        ApprovalQuery::Linked(query) => to(query, [Some(views::linked())]),
        ApprovalQuery::MailToken(query) => to(query, [Origin::Recipient, Origin::Unknown]),
    }
}

fn work(query: &WorkQuery) -> Vec<Vec<u8>> {
    let due = Due { at: Time(8), key: Key::session(TENANT, SESSION) };
    let ready = Ready { at: Time(7), session: SESSION, work: OpenId(6) };
    match query {
        WorkQuery::Get(query) => to(query, [Some(views::work())]),
        WorkQuery::ListReady(query) => to(query, [vec![ready]]),
        WorkQuery::FirstTimer(query) => to(query, [Some(due)]),
    }
}

fn delivery(query: &DeliveryQuery) -> Vec<Vec<u8>> {
    match query {
        DeliveryQuery::Effect(query) => to(query, [Some(views::effect())]),
        DeliveryQuery::ListEffects(query) => {
            entries(query, [EffectShown { session: SESSION, effect: views::effect() }])
        }
        DeliveryQuery::ListChanged(query) => entries(query, [SESSION]),
        DeliveryQuery::Missed(query) => to(&**query, [Some(views::missed())]),
        DeliveryQuery::Source(query) => to(query, [Some(row("webhook-source"))]),
        DeliveryQuery::ListSources(query) => to(query, [page("webhook-source")]),
        DeliveryQuery::FindSource(query) => to(query, [Some((row("tenant"), row("webhook-source")))]),
    }
}

fn policy(query: &PolicyQuery) -> Vec<Vec<u8>> {
    let remaining = Remaining { calls: Some(1), usd: Some(Micros(2)) };
    let outcome = LimitOutcome::Available { remaining };
    let check = LimitCheck { rules: Vec::new(), estimate: Micros(3), age_ms: 4, outcome, held: Vec::new() };
    match query {
        PolicyQuery::Explain(query) => {
            let refusal = Rejection::new(Reason::StateMismatch, "several active runs fit");
            to(&**query, [Some(Ok(views::explanation())), Some(Err(refusal))])
        }
        PolicyQuery::Ledger(query) => to(query, [check]),
    }
}

fn catalogue(query: &CatalogueQuery) -> Vec<Vec<u8>> {
    let pinned = Pinned { callee: views::callee(), version: 2, machine: Digest([3; 32]) };
    let policy = PinnedPolicy {
        name: "limits".into(),
        version: 1,
        machine: Digest([4; 32]),
        of: "deploy-gate".into(),
    };
    let pinning = Pinning { callees: vec![pinned], policies: vec![policy] };
    let caller = DefinitionUse { name: "release".into(), kind: UseKind::Calls };
    let guarded = DefinitionUse { name: "deploy".into(), kind: UseKind::Policy };
    let uses = Uses { uses: vec![caller, guarded], next: Some(b"deploy".to_vec()) };
    match query {
        CatalogueQuery::Definition(query) => to(query, [Some(row("definition"))]),
        CatalogueQuery::ListDefinitions(query) => to(query, [page("definition")]),
        CatalogueQuery::Version(query) => to(query, [Some(row("version"))]),
        CatalogueQuery::SourceVersion(query) => to(query, [Some(3)]),
        CatalogueQuery::Machine(query) => to(query, [Some(SharedMachine(machine()))]),
        CatalogueQuery::Assistant(query) => to(query, [Some(row("assistant"))]),
        CatalogueQuery::ListAssistants(query) => to(query, [page("assistant")]),
        CatalogueQuery::Uses(query) => to(query, [uses]),
        CatalogueQuery::Pin(query) => {
            to(query, [Ok(pinning), Err(Rejection::new(Reason::NotFound, "there is no such definition"))])
        }
    }
}

fn tenant(query: &TenantQuery) -> Vec<Vec<u8>> {
    let tenant = row::<switchward_state::catalogue::Tenant>("tenant");
    match query {
        TenantQuery::Get(query) => to(query, [Some(tenant)]),
        TenantQuery::Numbered(query) => to(query, [Some((*tenant).clone())]),
        TenantQuery::Has(query) => to(query, [true]),
        TenantQuery::List(query) => to(query, [page("tenant")]),
        TenantQuery::Names(query) => to(query, [vec!["acme".to_owned()]]),
        TenantQuery::Record(query) => to(query, [Some(row("tenancy"))]),
        TenantQuery::ShardRecord(query) => to(query, [Some(row("tenancy"))]),
        TenantQuery::MailRetention(query) => to(query, [Some(Retention::default())]),
        TenantQuery::MailKeys(query) => to(query, [vec![sealed()]]),
        TenantQuery::ApiKey(query) => to(query, [Some(row("api-key"))]),
        TenantQuery::ListApiKeys(query) => to(query, [vec![row("api-key")]]),
        TenantQuery::Held(query) => to(query, [vec![TENANT]]),
    }
}

fn export(query: &ExportQuery) -> Vec<Vec<u8>> {
    let (session, removed) = (Some(row("session")), Some(row("removed")));
    match query {
        ExportQuery::ListTenantChanges(query) => {
            to(query, [vec![NumberedChange { number: 1, change: row("tenant-change") }]])
        }
        ExportQuery::NextSession(query) => to(query, [Some(SESSION)]),
        ExportQuery::Remains(query) => to(query, [Remains { session, removed }]),
        ExportQuery::Starter(query) => to(query, [Some(switchward_state::Actor::server())]),
        ExportQuery::Part(query) => to(query, [ExportPart { session, removed, rows: vec![history()] }]),
    }
}
