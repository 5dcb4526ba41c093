//! Sent forms: one of each, as hex, so that a change of a form is seen in review. `BLESS=1` rewrites the files.

use std::collections::BTreeSet;
use switchward_machine::{
    Bucket, Channel, Digest, GateKind, Limit, Micros, OpenId, Period, RunId, SessionId, Status, TenantId,
    Time, WorkKind,
};
use switchward_query::{
    ApprovalQuery, Bounds, CatalogueQuery, CheckLedger, CheckMailToken, CheckRemoved, CheckReplyToken,
    Compared, DeliveryQuery, ExplainCall, ExportQuery, FindLinkedGate, FindUses, FindWebhookSource,
    FiredTimers, GetAnswered, GetApiKey, GetAssistant, GetDefinition, GetEffect, GetExportPart,
    GetFirstTimer, GetGate, GetHistory, GetHistoryBefore, GetMachine, GetMachines, GetMailKeys,
    GetMailRetention, GetMissed, GetNextSession, GetRemains, GetSession, GetShardTenant, GetSourceVersion,
    GetStarter, GetTenant, GetTenantNumbered, GetTenantRecord, GetVersion, GetWebhookSource, GetWork,
    HasTenant, HistoryFrom, ListApiKeys, ListAssistants, ListChanged, ListDefinitions, ListEffects,
    ListGates, ListPinned, ListReady, ListSessions, ListTenantChanges, ListTenantNames, ListTenants,
    ListTenantsHeld, ListWebhookSources, PinDefinitions, PolicyQuery, Query, SessionQuery, ShowGate,
    ShowSession, TenantQuery, TimeTerm, WorkQuery,
};
use switchward_state::approval::{MailKey, MailToken, TokenUse};
use switchward_state::catalogue::Settings;
use switchward_state::delivery::{EffectKind, EffectStatus, Endpoint};
use switchward_state::policy::{Args, LedgerRule};
use switchward_state::session::ReplyToken;
use switchward_state::{Due, Key, RequestId, Scope};

use crate::{answers, kinds};

pub(crate) const TENANT: TenantId = TenantId(7);
pub(crate) const SESSION: SessionId = SessionId([9; 16]);
pub(crate) const GATE: OpenId = OpenId(5);

/// Compares encoded queries with the golden file, and decodes them.
fn check(name: &str, lines: &[(&str, Query)]) {
    let path = format!("{}/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"));
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let mut text = String::new();
    for (of, query) in lines {
        let bytes = minicbor::to_vec(query).unwrap();
        assert_eq!(minicbor::len(query), bytes.len(), "{of}");
        assert_eq!(minicbor::decode::<Query>(&bytes).unwrap(), *query, "{of}");
        text += &format!("{of} {}\n", hex(&bytes));
    }
    if std::env::var_os("BLESS").is_some() {
        std::fs::create_dir_all(std::path::Path::new(&path).parent().unwrap()).unwrap();
        std::fs::write(&path, &text).unwrap();
    }
    let known = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text, known, "a sent form has changed: servers of two versions could not ask each other");
}

fn mail_token() -> MailToken {
    MailKey([3; 32]).token(TokenUse::Page, TENANT, SESSION, GATE, 2, "kim@example.com")
}

pub(crate) fn reply_token() -> ReplyToken {
    MailKey([3; 32]).reply_token("acme", SESSION, RunId(1), 4)
}

fn bounds() -> Bounds {
    Bounds { after: Some(b"deploy".to_vec()), size: 50 }
}

fn bucket() -> Bucket {
    Bucket::new(12).unwrap()
}

fn sessions() -> Vec<(&'static str, Query)> {
    let (tenant, session) = (TENANT, SESSION);
    let list = ListSessions {
        tenant,
        status: Some(Status::Waiting),
        definition: Some("deploy-gate".into()),
        labels: vec![("team".into(), "web".into())],
        created: vec![TimeTerm { compared: Compared::GreaterOrEqual, time: Time(11) }],
    };
    let from = HistoryFrom::Event(40);
    [
        ("session.get", SessionQuery::Get(GetSession { tenant, session })),
        ("session.show", SessionQuery::Show(ShowSession { tenant, session })),
        ("session.list", SessionQuery::List(list)),
        (
            "session.answered",
            SessionQuery::Answered(GetAnswered {
                tenant,
                scope: Scope::Session(session),
                request: request(),
            }),
        ),
        ("session.reply_token", SessionQuery::ReplyToken(CheckReplyToken { tenant, token: reply_token() })),
        ("session.removed", SessionQuery::Removed(CheckRemoved { tenant, session, came: Time(3) })),
        ("session.history", SessionQuery::History(GetHistory { tenant, session, from })),
        (
            "session.history_after",
            SessionQuery::History(GetHistory { tenant, session, from: HistoryFrom::After(64) }),
        ),
        (
            "session.history_before",
            SessionQuery::HistoryBefore(GetHistoryBefore { tenant, session, end: 900 }),
        ),
        (
            "session.machines",
            SessionQuery::Machines(GetMachines { tenant, session, runs: vec![RunId(1), RunId(2)] }),
        ),
        (
            "session.pinned",
            SessionQuery::ListPinned(ListPinned {
                tenant,
                status: Status::Waiting,
                definition: "deploy-gate".into(),
                version: Some(3),
            }),
        ),
    ]
    .map(|(of, query)| (of, Query::Session(query)))
    .to_vec()
}

fn request() -> RequestId {
    RequestId { id: "r-1".into(), body: Digest([2; 32]) }
}

fn approvals() -> Vec<(&'static str, Query)> {
    let (tenant, session, gate) = (TENANT, SESSION, GATE);
    let list = ListGates { tenant, kind: Some(GateKind::Approval), session: Some(session) };
    let from = "kim@example.com".into();
    [
        ("approval.get", ApprovalQuery::Get(GetGate { tenant, session, gate })),
        ("approval.show", ApprovalQuery::Show(ShowGate { tenant, session, gate })),
        ("approval.list", ApprovalQuery::List(list)),
        ("approval.linked", ApprovalQuery::Linked(FindLinkedGate { token: mail_token() })),
        ("approval.mail_token", ApprovalQuery::MailToken(CheckMailToken { token: mail_token(), from })),
    ]
    .map(|(of, query)| (of, Query::Approval(query)))
    .to_vec()
}

fn work() -> Vec<(&'static str, Query)> {
    let (tenant, session) = (TENANT, SESSION);
    let (kinds, queues) = (vec![WorkKind::Extract, WorkKind::Judge], vec!["deploy-gate".into()]);
    let mut fired = FiredTimers::default();
    fired.insert(&Due { at: Time(8), key: Key::session(tenant, session) });
    [
        ("work.get", WorkQuery::Get(GetWork { tenant, session, work: OpenId(6) })),
        ("work.ready", WorkQuery::ListReady(ListReady { tenant, kinds, queues, max: 10 })),
        ("work.first_timer", WorkQuery::FirstTimer(GetFirstTimer { by: Time(9), fired })),
    ]
    .map(|(of, query)| (of, Query::Work(query)))
    .to_vec()
}

fn deliveries() -> Vec<(&'static str, Query)> {
    let (tenant, session) = (TENANT, SESSION);
    let effects = |kind| ListEffects {
        tenant,
        status: Some(EffectStatus::DeadLetter),
        kind: Some(kind),
        session: Some(session),
    };
    let endpoint = Endpoint {
        id: "orders".into(),
        url: "https://example.com/hook".into(),
        secrets: Vec::new(),
        filters: vec!["session.*".into()],
        disabled: None,
        created: Time(1),
        health: None,
    };
    let missed = GetMissed { tenant, session, endpoint, since: Time(2), after: 3, delivered: true };
    [
        ("delivery.effect", DeliveryQuery::Effect(GetEffect { tenant, session, number: 4 })),
        ("delivery.notices", DeliveryQuery::ListEffects(effects(EffectKind::Notice))),
        ("delivery.messages", DeliveryQuery::ListEffects(effects(EffectKind::Message(Channel::Email)))),
        ("delivery.events", DeliveryQuery::ListEffects(effects(EffectKind::Event))),
        ("delivery.changed", DeliveryQuery::ListChanged(ListChanged { tenant, since: Time(2) })),
        ("delivery.missed", DeliveryQuery::Missed(Box::new(missed))),
        ("delivery.source", DeliveryQuery::Source(GetWebhookSource { tenant, name: "shop".into() })),
        ("delivery.sources", DeliveryQuery::ListSources(ListWebhookSources { tenant, bounds: bounds() })),
        (
            "delivery.find_source",
            DeliveryQuery::FindSource(FindWebhookSource { tenant: "acme".into(), name: "shop".into() }),
        ),
    ]
    .map(|(of, query)| (of, Query::Delivery(query)))
    .to_vec()
}

fn policies() -> Vec<(&'static str, Query)> {
    let (tenant, session) = (TENANT, SESSION);
    let explain = ExplainCall {
        tenant,
        session,
        settings: Settings::default(),
        capability: "mail.send".into(),
        args: Args::parse(b"{\"to\": \"kim@example.com\"}").unwrap(),
        estimate: Some(Micros(1_500)),
        now: Time(12),
        address: None,
    };
    let rule = LedgerRule {
        process: "deploy-gate".into(),
        role: "agent".into(),
        capability: "mail.*".into(),
        limits: vec![
            Limit::Rate { max: 3, window_ms: 60_000 },
            Limit::Money { max: Micros(5_000_000), period: Period::Day },
        ],
        layers: vec!["policy".into()],
    };
    let ledger = CheckLedger { tenant, rules: vec![rule], estimate: Micros(2), now: Time(12) };
    [
        ("policy.explain", PolicyQuery::Explain(Box::new(explain))),
        ("policy.ledger", PolicyQuery::Ledger(ledger)),
    ]
    .map(|(of, query)| (of, Query::Policy(query)))
    .to_vec()
}

fn catalogue() -> Vec<(&'static str, Query)> {
    let (tenant, name, digest) = (TENANT, String::from("deploy-gate"), Digest([7; 32]));
    let pin = PinDefinitions { tenant, machines: vec![digest], definitions: vec![name.clone()] };
    [
        ("catalogue.definition", CatalogueQuery::Definition(GetDefinition { tenant, name: name.clone() })),
        (
            "catalogue.definitions",
            CatalogueQuery::ListDefinitions(ListDefinitions { tenant, bounds: bounds(), archived: false }),
        ),
        (
            "catalogue.definitions_archived",
            CatalogueQuery::ListDefinitions(ListDefinitions { tenant, bounds: bounds(), archived: true }),
        ),
        (
            "catalogue.uses",
            CatalogueQuery::Uses(FindUses { tenant, name: name.clone(), version: Some(3), bounds: bounds() }),
        ),
        ("catalogue.version", CatalogueQuery::Version(GetVersion { tenant, name: name.clone(), number: 3 })),
        (
            "catalogue.source_version",
            CatalogueQuery::SourceVersion(GetSourceVersion { tenant, name: name.clone(), files: digest }),
        ),
        ("catalogue.machine", CatalogueQuery::Machine(GetMachine { tenant, digest })),
        ("catalogue.assistant", CatalogueQuery::Assistant(GetAssistant { tenant, name })),
        (
            "catalogue.assistants",
            CatalogueQuery::ListAssistants(ListAssistants {
                tenant,
                bounds: Bounds { after: None, size: 1 },
            }),
        ),
        ("catalogue.pin", CatalogueQuery::Pin(pin)),
    ]
    .map(|(of, query)| (of, Query::Catalogue(query)))
    .to_vec()
}

fn tenants() -> Vec<(&'static str, Query)> {
    let tenant = TENANT;
    [
        ("tenant.get", TenantQuery::Get(GetTenant { name: "acme".into() })),
        ("tenant.numbered", TenantQuery::Numbered(GetTenantNumbered { tenant })),
        ("tenant.has", TenantQuery::Has(HasTenant { tenant })),
        ("tenant.list", TenantQuery::List(ListTenants { bounds: bounds() })),
        ("tenant.names", TenantQuery::Names(ListTenantNames {})),
        ("tenant.record", TenantQuery::Record(GetTenantRecord { tenant })),
        ("tenant.shard_record", TenantQuery::ShardRecord(GetShardTenant { tenant, bucket: bucket() })),
        ("tenant.mail_retention", TenantQuery::MailRetention(GetMailRetention { tenant })),
        ("tenant.mail_keys", TenantQuery::MailKeys(GetMailKeys { tenant })),
        ("tenant.api_key", TenantQuery::ApiKey(GetApiKey { id: "0123456789abcdef".into() })),
        ("tenant.api_keys", TenantQuery::ListApiKeys(ListApiKeys { tenant })),
        ("tenant.held", TenantQuery::Held(ListTenantsHeld {})),
    ]
    .map(|(of, query)| (of, Query::Tenant(query)))
    .to_vec()
}

fn exports() -> Vec<(&'static str, Query)> {
    let (tenant, session) = (TENANT, SESSION);
    let next = GetNextSession { tenant, bucket: bucket(), after: session };
    [
        ("export.changes", ExportQuery::ListTenantChanges(ListTenantChanges { tenant, from: 1 })),
        ("export.next_session", ExportQuery::NextSession(next)),
        ("export.remains", ExportQuery::Remains(GetRemains { tenant, session })),
        ("export.starter", ExportQuery::Starter(GetStarter { tenant, session })),
        ("export.part", ExportQuery::Part(GetExportPart { tenant, session, row: 65 })),
    ]
    .map(|(of, query)| (of, Query::Export(query)))
    .to_vec()
}

fn all() -> Vec<(&'static str, Query)> {
    [sessions(), approvals(), work(), deliveries(), policies(), catalogue(), tenants(), exports()].concat()
}

#[test]
fn every_query_has_the_form_in_which_it_was_sent_first() {
    check("query.v1.txt", &all());
}

#[test]
fn every_kind_of_query_has_a_value_here() {
    let known: BTreeSet<(u8, u8)> = all().iter().map(|(_, query)| kinds::number(query)).collect();
    let found = kinds::all();
    assert_eq!(known, found, "a query without a value in this test");
    assert!(found.len() >= 50, "{}", found.len());
}

#[test]
fn every_answer_has_the_form_in_which_it_was_sent_first() {
    let mut lines = String::new();
    let mut seen = BTreeSet::new();
    for (of, query) in all() {
        if seen.insert(kinds::number(&query)) {
            for bytes in answers::of(&query) {
                let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                lines += &format!("{of} {hex}\n");
            }
        }
    }
    let path = format!("{}/tests/golden/answer.v1.txt", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &lines).unwrap();
    }
    let known = std::fs::read_to_string(&path).unwrap();
    assert_eq!(lines, known, "a sent form has changed: servers of two versions could not answer each other");
}
