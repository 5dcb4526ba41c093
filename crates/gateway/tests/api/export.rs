//! The export of a tenant: complete, as of one time, and without what must not be in it.

use prost::Message as _;
use prost_types::{Timestamp, value::Kind as ValueKind};
use std::collections::{BTreeMap, BTreeSet};
use switchward_api::v1::{self, ExportRecord, export_record::Record};
use switchward_machine::{SessionId, TenantId};
use switchward_state::{Key, View as _};
use switchward_testkit::Pages;

use crate::ending::{SECRET, cancel, days, eventful, put};
use crate::harness::{Harness, tool_call};
use crate::refusal::refused;

const WRITE: &str = "mcp:filesystem:write_file";
const DAY_MS: u64 = 86_400_000;

fn request(size: u32, token: &str) -> v1::ExportRecordsRequest {
    v1::ExportRecordsRequest { page_size: size, page_token: token.to_owned(), ..Default::default() }
}

async fn page(harness: &Harness, size: u32, token: &str) -> v1::ExportRecordsResponse {
    let reply: v1::ExportRecordsResponse = harness.ask("admin", "ExportRecords", &request(size, token)).await;
    assert!(reply.records.len() <= usize::try_from(size).expect("a size"));
    reply
}

/// The records from a token on, read in pages of this size.
async fn rest(harness: &Harness, size: u32, token: String) -> Vec<ExportRecord> {
    let (mut records, mut pages) = (Vec::new(), Pages::after(token));
    while let Some(token) = pages.next_token() {
        let reply = page(harness, size, &token).await;
        records.extend(reply.records);
        pages.read(reply.next_page_token);
    }
    records
}

async fn whole(harness: &Harness, size: u32) -> (Timestamp, Vec<ExportRecord>) {
    let first = page(harness, size, "").await;
    let mut records = first.records;
    records.extend(rest(harness, size, first.next_page_token).await);
    (first.export_time.expect("a time"), records)
}

/// The same as of a past time.
async fn whole_at(harness: &Harness, time: Timestamp) -> Vec<ExportRecord> {
    let request = v1::ExportRecordsRequest { export_time: Some(time), ..request(1_000, "") };
    let first: v1::ExportRecordsResponse = harness.ask("admin", "ExportRecords", &request).await;
    assert_eq!(first.export_time, Some(time));
    [first.records, rest(harness, 1_000, first.next_page_token).await].concat()
}

/// The records of an export, by kind.
#[derive(Default)]
struct Sorted {
    sessions: Vec<v1::ExportedSession>,
    events: BTreeMap<String, Vec<v1::SessionEvent>>,
    decisions: Vec<v1::ExportedDecision>,
    removals: Vec<v1::ExportedRemoval>,
    changes: Vec<v1::ExportedTenantChange>,
}

fn sorted(records: &[ExportRecord]) -> Sorted {
    let mut sorted = Sorted::default();
    for record in records {
        match record.record.clone().expect("a record") {
            Record::Session(session) => sorted.sessions.push(session),
            Record::Event(event) => {
                sorted.events.entry(event.session).or_default().push(event.event.expect("an event"));
            }
            Record::Decision(decision) => sorted.decisions.push(decision),
            Record::Removal(removal) => sorted.removals.push(removal),
            Record::TenantChange(change) => sorted.changes.push(change),
        }
    }
    sorted
}

fn holds(records: &[ExportRecord], text: &str) -> bool {
    let has = |bytes: &[u8]| bytes.windows(text.len()).any(|part| part == text.as_bytes());
    records.iter().any(|record| has(&record.encode_to_vec()))
}

/// Requests a call that needs an approval, and decides it; returns the gate.
async fn decided(harness: &Harness, session: &str, path: &str, decision: v1::GateDecision) -> String {
    let mut call = tool_call(session, WRITE);
    call.args = format!("{{\"path\":{path:?}}}").into_bytes().into();
    let asked: v1::AuthorizeToolCallResponse = harness.ask("agent", "AuthorizeToolCall", &call).await;
    let name = asked.gate.clone();
    let decide = v1::DecideGateRequest { name, decision: decision.into(), ..Default::default() };
    let _: v1::DecideGateResponse = harness.ask("approver", "DecideGate", &decide).await;
    asked.gate
}

async fn put_directory(harness: &Harness, member: &str) {
    let kim =
        v1::DirectoryEntry { name: "kim".into(), members: vec![member.to_owned()], ..Default::default() };
    let directory = Some(v1::Directory { entries: vec![kim], ..Default::default() });
    let put = v1::PutDirectoryRequest { directory, ..Default::default() };
    let _: v1::PutDirectoryResponse = harness.ask("admin", "PutDirectory", &put).await;
}

async fn erase(harness: &Harness, name: &str) {
    let erase = v1::EraseSessionRequest { name: name.to_owned(), ..Default::default() };
    let _: v1::EraseSessionResponse = harness.ask("admin", "EraseSession", &erase).await;
}

async fn delete(harness: &Harness, name: &str) {
    let delete = v1::DeleteSessionRequest { name: name.to_owned(), ..Default::default() };
    let _: v1::DeleteSessionResponse = harness.ask("admin", "DeleteSession", &delete).await;
}

async fn events(harness: &Harness, name: &str) -> Vec<v1::SessionEvent> {
    let request =
        v1::ListSessionEventsRequest { name: name.to_owned(), page_size: 1_000, ..Default::default() };
    let listed: v1::ListSessionEventsResponse = harness.ask("agent", "ListSessionEvents", &request).await;
    listed.events
}

/// Creates records of each kind: decided gates, an erased session and a deleted one.
struct Furnished {
    gates: BTreeMap<String, &'static str>,
    erased: v1::Session,
    deleted: v1::Session,
}

async fn furnish(harness: &Harness) -> Furnished {
    let mut gates = BTreeMap::new();
    for number in 0..6 {
        let session = harness.session().await.name;
        harness.node.clock.advance(number);
        gates.insert(decided(harness, &session, "a", v1::GateDecision::Approve).await, "approve");
        gates.insert(decided(harness, &session, "b", v1::GateDecision::Reject).await, "reject");
        if number % 2 == 0 {
            harness.answer(&session, "stop").await;
        }
    }
    put_directory(harness, "kim@a.example").await;
    let erased = eventful(harness).await;
    harness.node.clock.advance(1);
    put_directory(harness, "kim@b.example").await;
    let deleted = eventful(harness).await;
    erase(harness, &erased.name).await;
    delete(harness, &deleted.name).await;
    harness.node.quiet().await;
    Furnished { gates, erased, deleted }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_of_any_size_make_up_the_whole() {
    let harness = Harness::start().await;
    let Furnished { gates, erased, deleted } = furnish(&harness).await;
    let (_, records) = whole(&harness, 1_000).await;
    for size in [1, 7] {
        assert_eq!(whole(&harness, size).await.1, records, "in pages of {size}");
    }
    let all = sorted(&records);

    let list = v1::ListSessionsRequest { page_size: 1_000, ..Default::default() };
    let listed: v1::ListSessionsResponse = harness.ask("admin", "ListSessions", &list).await;
    let names = |of: &[v1::ExportedSession]| of.iter().map(|one| one.name.clone()).collect::<BTreeSet<_>>();
    assert_eq!(names(&all.sessions), listed.sessions.iter().map(|one| one.name.clone()).collect());
    assert_eq!(all.sessions.len(), listed.sessions.len(), "each session is exported once");
    for session in &all.sessions {
        let same =
            listed.sessions.iter().find(|one| one.name == session.name).expect("the session is listed");
        let shown = (&session.session_id, &session.definition, session.version, &session.role);
        assert_eq!(shown, (&same.session_id, &same.definition, same.version, &same.role));
        assert_eq!((session.create_time, session.end_time), (same.create_time, same.end_time));
        let status = same.end_time.map_or(v1::SessionStatus::Unspecified, |_| same.status());
        assert_eq!(session.status(), status);
        let by = session.started_by.as_ref().expect("the subject that started it");
        assert_eq!((by.subject.as_str(), by.role()), ("agent@acme", v1::KeyRole::Agent));
        assert_eq!(all.events[&session.name], events(&harness, &session.name).await);
    }

    let mut decided: Vec<_> = all.decisions.iter().collect();
    let of_erased = decided.extract_if(.., |one| one.session == erased.name).collect::<Vec<_>>();
    assert!(of_erased.iter().all(|one| one.decision == "approve" && one.by == "approver@acme"));
    assert_eq!(of_erased.len(), 1, "the decision of an erased session is kept");
    let by = decided.iter().all(|one| one.by == "approver@acme" && one.time.is_some());
    assert!(by && decided.iter().all(|one| one.session != deleted.name));
    assert_eq!(
        decided.iter().map(|one| (one.gate.clone(), one.decision.as_str())).collect::<BTreeMap<_, _>>(),
        gates
    );
    assert_eq!(decided.len(), gates.len());

    let removals: BTreeMap<_, _> = all.removals.iter().map(|one| (one.session.as_str(), one)).collect();
    for (session, how) in [(&erased, "erased"), (&deleted, "deleted")] {
        let removal = removals[session.name.as_str()];
        assert_eq!((removal.how.as_str(), removal.by.as_str()), (how, "admin@acme"));
        assert_eq!(
            (removal.create_time, removal.status()),
            (session.create_time, v1::SessionStatus::Cancelled)
        );
        assert!(removal.time.is_some() && removal.definition.ends_with("/release"));
    }
    assert_eq!(removals.len(), 2);
    assert_changes(&all.changes);
    harness.node.end().await;
}

/// The directory was put twice, and each change names the values before and after.
fn assert_changes(changes: &[v1::ExportedTenantChange]) {
    let member = |value: &Option<prost_types::Value>| {
        let Some(ValueKind::StructValue(entry)) = value.clone().expect("a value").kind else { return None };
        let Some(ValueKind::ListValue(members)) = entry.fields["members"].kind.clone() else { return None };
        let Some(ValueKind::StringValue(member)) = members.values[0].kind.clone() else { return None };
        Some(member)
    };
    assert!(changes.array_windows().all(|[one, next]| one.number + 1 == next.number));
    let of_kim = |change: &v1::ExportedTenantChange| {
        let part = change.parts.iter().find(|part| part.name == "directory.entries.kim")?.clone();
        let by = change.by.clone().expect("somebody");
        assert_eq!((by.subject.as_str(), by.role()), ("admin@acme", v1::KeyRole::Admin));
        Some((member(&part.before), member(&part.after)))
    };
    let put: Vec<_> = changes.iter().filter_map(of_kim).collect();
    let text = |text: &str| Some(text.to_owned());
    let wanted = [(None, text("kim@a.example")), (text("kim@a.example"), text("kim@b.example"))];
    assert_eq!(put, wanted);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_comes_after_the_first_page_is_in_no_page() {
    let harness = Harness::start().await;
    let Furnished { gates, .. } = furnish(&harness).await;
    let open = harness.session().await;
    let gate = harness.authorize(&open.name, WRITE).await.gate;
    let (time, wanted) = whole(&harness, 1_000).await;
    for size in [1, 5] {
        harness.node.clock.advance(1);
        let before = whole(&harness, 1_000).await;
        let first = page(&harness, size, "").await;
        assert_eq!(first.export_time, Some(before.0));
        harness.node.clock.advance(1);
        let fresh = harness.session().await.name;
        harness.answer(&fresh, "stop").await;
        let other = harness.session().await.name;
        decided(&harness, &other, &harness.fresh("path"), v1::GateDecision::Approve).await;
        cancel(&harness, &other).await;
        put_directory(&harness, &format!("{}@a.example", harness.fresh("kim"))).await;
        if size == 1 {
            let decide = v1::DecideGateRequest {
                name: gate.clone(),
                decision: v1::GateDecision::Approve.into(),
                ..Default::default()
            };
            let _: v1::DecideGateResponse = harness.ask("approver", "DecideGate", &decide).await;
            cancel(&harness, &open.name).await;
        }
        let all = [first.records, rest(&harness, size, first.next_page_token).await].concat();
        assert_eq!(all, before.1, "in pages of {size}");
        assert!(!holds(&all, &fresh) && !holds(&all, &other));
    }
    assert_eq!(whole_at(&harness, time).await, wanted, "a later export of the same time is the same");
    let then = sorted(&wanted);
    let one = then.sessions.iter().find(|session| session.name == open.name).expect("the session had begun");
    assert_eq!((one.end_time, one.status()), (None, v1::SessionStatus::Unspecified));
    let now = sorted(&whole(&harness, 1_000).await.1);
    let one = now.sessions.iter().find(|session| session.name == open.name).expect("the session is exported");
    assert_eq!(one.status(), v1::SessionStatus::Cancelled);
    assert_eq!(now.sessions.len(), then.sessions.len() + 4);
    // The erased session's first decision is in the export as of then, too.
    assert_eq!((then.decisions.len(), now.decisions.len()), (gates.len() + 1, gates.len() + 4));
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_export_is_an_admins_of_one_tenant_and_of_one_time() {
    let harness = Harness::start().await;
    let first = page(&harness, 2, "").await;
    let (time, token) = (first.export_time.expect("a time"), first.next_page_token);
    for (role, _) in crate::harness::ROLES.into_iter().filter(|(role, _)| *role != "admin") {
        let outcome =
            harness.attempt::<v1::ExportRecordsResponse>(role, "ExportRecords", &request(2, "")).await;
        refused(outcome, "ROLE_NOT_ALLOWED");
    }
    let by_globex = async |request: v1::ExportRecordsRequest| -> Result<v1::ExportRecordsResponse, _> {
        harness.node.line.ask(harness.globex.key("admin"), "ExportRecords", &request).await
    };
    assert_eq!(refused(by_globex(request(2, &token)).await, "FIELD_INVALID").fields, ["page_token"]);
    let named = v1::ExportRecordsRequest { parent: "tenants/acme".into(), ..request(2, "") };
    refused(by_globex(named).await, "NOT_FOUND");
    let theirs = by_globex(request(1_000, "")).await.expect("their own");
    assert!(!holds(&theirs.records, "tenants/acme") && holds(&theirs.records, "tenants/globex"));

    let attempt = async |time, token: &str| {
        let request = v1::ExportRecordsRequest { export_time: time, ..request(2, token) };
        harness.attempt::<v1::ExportRecordsResponse>("admin", "ExportRecords", &request).await
    };
    let later = Timestamp { nanos: time.nanos + 1_000_000, ..time };
    assert_eq!(refused(attempt(Some(later), "").await, "FIELD_INVALID").fields, ["export_time"]);
    harness.node.clock.advance(1);
    assert_eq!(refused(attempt(Some(later), &token).await, "FIELD_INVALID").fields, ["export_time"]);
    assert_eq!(attempt(Some(time), &token).await.expect("the same").export_time, Some(time));
    assert_eq!(attempt(Some(later), "").await.expect("now").export_time, Some(later));
    for at in 0..token.len() {
        let other = if token.as_bytes()[at] == b'0' { "1" } else { "0" };
        let bad = format!("{}{other}{}", &token[..at], &token[at + 1..]);
        assert_eq!(refused(attempt(None, &bad).await, "FIELD_INVALID").fields, ["page_token"], "{bad}");
    }
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_of_what_was_erased_and_no_token_is_in_an_export() {
    let harness = Harness::start().await;
    let (erased, deleted) = (eventful(&harness).await, eventful(&harness).await);
    let talk = harness.talk().await.name;
    let token = harness.seen(&talk).await.reply_token;
    assert!(token.starts_with("swr_acme."));
    let value = prost_types::Value { kind: Some(ValueKind::StringValue(format!("paid by {token}"))) };
    let values = Some(prost_types::Struct { fields: [("order".to_owned(), value)].into() });
    let record = v1::RecordDataRequest { name: talk.clone(), values, ..Default::default() };
    let _: v1::RecordDataResponse = harness.ask("operator", "RecordData", &record).await;
    let (_, before) = whole(&harness, 1_000).await;
    assert!(holds(&before, SECRET), "data that is not erased is exported");
    assert!(!holds(&before, &token) && holds(&before, "paid by swr_…"));
    erase(&harness, &erased.name).await;
    delete(&harness, &deleted.name).await;
    // At once, while their rows are being removed, and afterwards.
    for quiet in [false, true] {
        let (_, records) = whole(&harness, if quiet { 1_000 } else { 3 }).await;
        assert!(!holds(&records, SECRET), "quiet: {quiet}");
        let all = sorted(&records);
        assert!(all.sessions.iter().any(|session| session.name == erased.name));
        assert!(all.sessions.iter().all(|session| session.name != deleted.name));
        let of = |name: &str| all.decisions.iter().filter(|one| one.session == name).count();
        assert_eq!((of(&erased.name), of(&deleted.name)), (1, 0));
        assert!(!all.events.contains_key(&deleted.name));
        harness.node.quiet().await;
    }
    // The business key is free again, and the session of that name is a new one.
    harness.node.clock.advance(1);
    let start = v1::StartSessionRequest {
        definition: "release".into(),
        session_id: deleted.session_id.clone(),
        ..Default::default()
    };
    let _: v1::StartSessionResponse = harness.ask("agent", "StartSession", &start).await;
    let all = sorted(&whole(&harness, 1).await.1);
    let removal =
        all.removals.iter().find(|one| one.session == deleted.name).expect("the deletion is exported");
    let again =
        all.sessions.iter().find(|one| one.name == deleted.name).expect("the new session is exported");
    assert_eq!(removal.create_time, deleted.create_time);
    assert!(again.create_time != deleted.create_time && again.end_time.is_none());
    harness.node.end().await;
}

fn id_of(name: &str) -> SessionId {
    name.rsplit('/').next().and_then(|id| id.parse().ok()).expect("an id")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn decisions_outlast_a_history_that_goes_meanwhile_and_stand_there_once() {
    let harness = Harness::start().await;
    let rule = v1::RetentionRule { ended_sessions: days(30), history: days(10), ..Default::default() };
    put(&harness, vec![rule]).await;
    let name = harness.session().await.name;
    let mut gates = BTreeSet::new();
    for number in 0..5 {
        let path = format!("path-{number}");
        gates.insert(decided(&harness, &name, &path, v1::GateDecision::Approve).await);
    }
    cancel(&harness, &name).await;
    let (time, wanted) = whole(&harness, 1_000).await;
    let decisions = |records: &[ExportRecord]| {
        let all = sorted(records).decisions.into_iter().filter(|one| one.session == name);
        all.map(|one| one.gate).collect::<Vec<_>>()
    };
    assert_eq!(decisions(&wanted).len(), 5);
    // Every point at which an export can be interrupted inside the session.
    let mut resume_points = Vec::new();
    let (mut pages, mut seen) = (Pages::default(), Vec::new());
    while let Some(token) = pages.next_token() {
        if !token.is_empty() && holds(&seen, &name) {
            resume_points.push((seen.clone(), token.clone()));
        }
        let one = page(&harness, 1, &token).await;
        seen.extend(one.records);
        pages.read(one.next_page_token);
    }
    assert_eq!(seen, wanted);
    let shard = harness.node.cluster.shard_of(id_of(&name).bucket());
    let row = |key: Key| shard.read_stale().row(&key).expect("rows that can be read");
    let first = || row(Key::history(TenantId(1), id_of(&name), 0));
    harness.node.clock.advance(11 * DAY_MS);
    harness.node.until(|| first().is_none()).await;
    harness.node.quiet().await;
    assert!(resume_points.len() > 20);
    for (before, token) in &resume_points {
        let all = [before.clone(), rest(&harness, 1_000, token.clone()).await].concat();
        let found = decisions(&all);
        assert_eq!(found.len(), 5, "each decision once after {} records", before.len());
        assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), gates);
    }
    let trimmed = sorted(&whole_at(&harness, time).await);
    let one = trimmed.sessions.iter().find(|session| session.name == name).expect("the session is exported");
    assert!(one.started_by.is_none() && !trimmed.events.contains_key(&name));
    assert!(trimmed.removals.is_empty(), "the removal happened later");

    harness.node.clock.advance(20 * DAY_MS);
    harness.node.until(|| row(Key::session(TenantId(1), id_of(&name))).is_none()).await;
    let expired = sorted(&whole(&harness, 2).await.1);
    assert!(expired.sessions.iter().all(|session| session.name != name));
    let of: Vec<_> = expired.decisions.iter().filter(|one| one.session == name).collect();
    assert_eq!(of.iter().map(|one| one.gate.clone()).collect::<BTreeSet<_>>(), gates);
    let removal = expired.removals.iter().find(|one| one.session == name).expect("the removal is exported");
    assert_eq!((removal.how.as_str(), removal.by.as_str()), ("expired", "server"));
    harness.node.end().await;
}
