//! Quotas of tenants: what they refuse and how, who sets them, and what is shown.

use futures::future::join_all;
use prost::Message as _;
use switchward_api::v1;
use switchward_testkit::until;
use tonic::Status;

use crate::client::Line;
use crate::harness::Harness;
use crate::protocols::Protocol;
use crate::refusal::{Refusal, refused};

const NONE: v1::Quotas = v1::Quotas { requests_per_second: None, sessions: None, bytes: None, weight: None };

fn set_request(tenant: &str, quotas: v1::Quotas, paths: &[&str]) -> v1::SetTenantQuotasRequest {
    let paths: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
    v1::SetTenantQuotasRequest {
        tenant_id: tenant.to_owned(),
        quotas: Some(quotas),
        update_mask: (!paths.is_empty()).then_some(prost_types::FieldMask { paths }),
        ..Default::default()
    }
}

/// Sets quotas of a tenant as an admin of the first one.
async fn set(harness: &Harness, tenant: &str, quotas: v1::Quotas) -> v1::SetTenantQuotasResponse {
    harness.ask("admin", "SetTenantQuotas", &set_request(tenant, quotas, &[])).await
}

/// Reads globex with its own key.
async fn look(harness: &Harness, role: &str) -> Result<v1::GetTenantResponse, Status> {
    look_by(&harness.node.line, harness, role).await
}

async fn look_by(line: &Line, harness: &Harness, role: &str) -> Result<v1::GetTenantResponse, Status> {
    let get = v1::GetTenantRequest { name: "-".into(), ..Default::default() };
    line.ask(harness.globex.key(role), "GetTenant", &get).await
}

/// Starts a session of globex.
async fn start(harness: &Harness) -> Result<v1::StartSessionResponse, Status> {
    let request = v1::StartSessionRequest {
        definition: "release".into(),
        session_id: harness.fresh("order"),
        ..Default::default()
    };
    harness.node.line.ask(harness.globex.key("agent"), "StartSession", &request).await
}

fn named(refusal: &Refusal, quota: &str, limit: &str) {
    let of = |name: &str| refusal.metadata.get(name).map(String::as_str);
    assert_eq!((of("quota"), of("limit")), (Some(quota), Some(limit)), "{refusal:?}");
    let failure = refusal.others.iter().find(|detail| detail.starts_with("QuotaFailure"));
    assert!(failure.is_some_and(|failure| failure.contains(&format!("subject: \"{quota}\""))), "{refusal:?}");
}

fn use_of(uses: &[v1::QuotaUse], quota: &str) -> (u64, v1::QuotaSource, Option<u64>) {
    let found = uses.iter().find(|one| one.quota == quota).expect("the quota is listed");
    (found.limit, found.set_in(), found.used)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_that_come_at_once_do_not_take_each_other_back() {
    let harness = Harness::start().await;
    for round in 1..=10 {
        let limit = Some(1_000_000 + round);
        let quotas = v1::Quotas { requests_per_second: limit, sessions: limit, bytes: limit, ..NONE };
        let changes = ["requests_per_second", "sessions", "bytes"];
        let changes = changes.map(|path| set_request("globex", quotas, &[path]));
        let ask = |change| harness.ask::<v1::SetTenantQuotasResponse>("admin", "SetTenantQuotas", change);
        join_all(changes.iter().map(ask)).await;
        let get = v1::GetTenantQuotasRequest { tenant_id: "globex".into(), ..Default::default() };
        let shown: v1::GetTenantQuotasResponse = harness.ask("admin", "GetTenantQuotas", &get).await;
        assert_eq!(shown.tenant.expect("a tenant").quotas, Some(quotas), "round {round}");

        let on = round % 2 == 1;
        let changes = ["allow_foreign_role", "any_approver_address"].map(|path| {
            let (allow_foreign_role, any_approver_address) = (on, on);
            let name = "tenants/acme".to_owned();
            let tenant = v1::Tenant { name, allow_foreign_role, any_approver_address, ..Default::default() };
            let update_mask = Some(prost_types::FieldMask { paths: vec![path.to_owned()] });
            v1::UpdateTenantRequest { tenant: Some(tenant), update_mask, ..Default::default() }
        });
        let ask = |change| harness.ask::<v1::UpdateTenantResponse>("admin", "UpdateTenant", change);
        join_all(changes.iter().map(ask)).await;
        let get = v1::GetTenantRequest { name: "-".into(), ..Default::default() };
        let shown: v1::GetTenantResponse = harness.ask("admin", "GetTenant", &get).await;
        let tenant = shown.tenant.expect("a tenant");
        let switches = (tenant.allow_foreign_role, tenant.any_approver_address);
        assert_eq!(switches, (on, on), "round {round}");
    }
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_beyond_the_rate_are_refused_until_time_passes() {
    let harness = Harness::start().await;
    set(&harness, "globex", v1::Quotas { requests_per_second: Some(4), ..NONE }).await;
    // Each server counts for itself.
    let line = harness.node.line.to(0);
    let look = async |role: &str| look_by(&line, &harness, role).await;
    // All ways in, in turn: each call counts once, in every protocol.
    let get = v1::GetTenantRequest { name: "-".into(), ..Default::default() }.encode_to_vec();
    for protocol in Protocol::ALL.into_iter().cycle().take(8) {
        let key = harness.globex.key("agent");
        line.call(protocol, "GetTenant", key, &get)
            .await
            .unwrap_or_else(|status| panic!("{protocol:?}: {status:?}"));
    }
    for protocol in Protocol::ALL {
        let key = harness.globex.key("agent");
        let refusal = refused(line.call(protocol, "GetTenant", key, &get).await, "QUOTA_EXCEEDED");
        named(&refusal, "requests_per_second", "4");
        let retry = refusal.others.iter().find(|detail| detail.starts_with("RetryInfo"));
        assert!(retry.is_some_and(|retry| retry.contains("250ms")), "{refusal:?}");
    }
    // All keys of the tenant share it; other tenants do not.
    refused(look("operator").await, "QUOTA_EXCEEDED");
    harness.session().await;
    harness.node.clock.advance(250);
    look("operator").await.expect("the quota allows one call");
    refused(look("agent").await, "QUOTA_EXCEEDED");
    harness.node.clock.advance(60_000);
    for _ in 0..8 {
        look("agent").await.expect("the quota allows a call after the wait");
    }
    let uses = look("agent").await.map(drop);
    refused(uses, "QUOTA_EXCEEDED");
    let get = v1::GetTenantQuotasRequest { tenant_id: "globex".into(), ..Default::default() };
    let shown: v1::GetTenantQuotasResponse =
        line.ask(harness.acme.key("admin"), "GetTenantQuotas", &get).await.expect("the call is allowed");
    let used = use_of(&shown.quota_uses, "requests_per_second");
    assert_eq!(used, (4, v1::QuotaSource::Tenant, Some(8)));
    assert_eq!(harness.node.api.quota_refusals().map(|(_, count)| count), [7, 0, 0]);
    for other in 1..harness.node.running() {
        let elsewhere = harness.node.line.to(other);
        look_by(&elsewhere, &harness, "agent").await.expect("this server has counted nothing");
    }
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn neither_an_agent_nor_a_reply_token_keeps_people_from_stopping_it() {
    let harness = Harness::start().await;
    let (paused, cancelled, talk) =
        (harness.session().await, harness.session().await, harness.talk().await.name);
    let token = harness.seen(&talk).await.reply_token;
    set(&harness, "acme", v1::Quotas { requests_per_second: Some(2), ..NONE }).await;
    // Calls with a token and calls with keys have separate quotas, at each server.
    let line = harness.node.line.to(0);
    let event = v1::RecordEventRequest { key: "other".into(), ..Default::default() };
    let send =
        async || -> Result<v1::RecordEventResponse, _> { line.ask(&token, "RecordEvent", &event).await };
    let mut sent = 0;
    while let Ok(reply) = send().await {
        assert!(reply.session.is_some() && sent < 4);
        sent += 1;
    }
    refused(send().await, "QUOTA_EXCEEDED");
    let get = v1::GetTenantRequest { name: "-".into(), ..Default::default() };
    let mut asked = 0;
    let agent = harness.acme.key("agent");
    while line.ask::<v1::GetTenantResponse>(agent, "GetTenant", &get).await.is_ok() {
        assert!(asked < 4, "the quota is never used up");
        asked += 1;
    }
    assert_eq!((sent, asked), (4, 4));
    // Calls that an agent may not make do not use up the quota of those who may.
    let pause = v1::PauseSessionRequest { name: paused.name, ..Default::default() };
    for _ in 0..8 {
        refused(line.ask::<v1::PauseSessionResponse>(agent, "PauseSession", &pause).await, "QUOTA_EXCEEDED");
    }
    let (operator, admin) = (harness.acme.key("operator"), harness.acme.key("admin"));
    line.ask::<v1::PauseSessionResponse>(operator, "PauseSession", &pause).await.expect("it is paused");
    let cancel = v1::CancelSessionRequest { name: cancelled.name, ..Default::default() };
    line.ask::<v1::CancelSessionResponse>(operator, "CancelSession", &cancel).await.expect("it is cancelled");
    let revoke = v1::RevokeApiKeyRequest { name: harness.acme.agent_key.clone(), ..Default::default() };
    line.ask::<v1::RevokeApiKeyResponse>(admin, "RevokeApiKey", &revoke).await.expect("it is revoked");
    let gone = harness.attempt::<v1::GetTenantResponse>("agent", "GetTenant", &get).await;
    refused(gone, "CREDENTIAL_INVALID");
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_can_be_finished_while_the_tenant_asks_too_much() {
    let harness = Harness::start().await;
    let item = harness.leased().await;
    set(&harness, "acme", v1::Quotas { requests_per_second: Some(1), ..NONE }).await;
    let get = v1::GetTenantRequest { name: "-".into(), ..Default::default() };
    for server in 0..harness.node.running() {
        let line = harness.node.line.to(server);
        until("the quota is used up", async || {
            line.ask::<v1::GetTenantResponse>(harness.acme.key("agent"), "GetTenant", &get).await.is_err()
        })
        .await;
    }
    let (name, lease_token) = (item.name.clone(), item.lease_token.clone());
    let complete = v1::CompleteWorkRequest { name, lease_token, ..Default::default() };
    let reply: v1::CompleteWorkResponse = harness.ask("worker", "CompleteWork", &complete).await;
    assert!(reply.accepted, "{reply:?}");
    // The clock of a development server can be moved although the quota is used up, or it could never recover.
    let advance = v1::AdvanceClockRequest {
        duration: Some(prost_types::Duration { seconds: 1, nanos: 0 }),
        ..Default::default()
    };
    let _: v1::AdvanceClockResponse = harness.ask("admin", "AdvanceClock", &advance).await;
    let _: v1::GetTenantResponse = harness.ask("agent", "GetTenant", &get).await;
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_session_more_than_the_quota_is_refused() {
    let harness = Harness::start().await;
    harness.node.caught_up().await;
    let shown = look(&harness, "agent").await.expect("the call is allowed").quota_uses;
    let (limit, set_in, used) = use_of(&shown, "sessions");
    assert_eq!((limit, set_in), (0, v1::QuotaSource::Default));
    let held = used.expect("the use is counted");
    assert!(held > 0);
    set(&harness, "globex", v1::Quotas { sessions: Some(held + 1), ..NONE }).await;
    let session = start(&harness).await.expect("the quota allows a start").session.expect("a session").name;
    let refusal = refused(start(&harness).await, "QUOTA_EXCEEDED");
    named(&refusal, "sessions", &(held + 1).to_string());
    harness.session().await;
    // An ended session counts until it is removed.
    let admin = harness.globex.key("admin");
    let cancel = v1::CancelSessionRequest { name: session.clone(), ..Default::default() };
    let _: v1::CancelSessionResponse =
        harness.node.line.ask(admin, "CancelSession", &cancel).await.expect("the call is allowed");
    refused(start(&harness).await, "QUOTA_EXCEEDED");
    let delete = v1::DeleteSessionRequest { name: session, ..Default::default() };
    let _: v1::DeleteSessionResponse =
        harness.node.line.ask(admin, "DeleteSession", &delete).await.expect("the call is allowed");
    harness.node.quiet().await;
    start(&harness).await.expect("the quota allows a start");
    assert_eq!(harness.node.quota_refusals(), [0, 2, 0]);
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenant_that_holds_too_many_bytes_can_only_end_sessions() {
    let harness = Harness::start().await;
    let session = start(&harness).await.expect("the quota allows a start").session.expect("a session").name;
    harness.node.caught_up().await;
    let uses = look(&harness, "agent").await.expect("the call is allowed").quota_uses;
    let held = use_of(&uses, "bytes").2.expect("the bytes are counted");
    set(&harness, "globex", v1::Quotas { bytes: Some(held), ..NONE }).await;
    named(&refused(start(&harness).await, "QUOTA_EXCEEDED"), "bytes", &held.to_string());
    let (line, agent) = (&harness.node.line, harness.globex.key("agent"));
    let answer =
        v1::AnswerCheckpointRequest { name: session.clone(), answer: "go".into(), ..Default::default() };
    let answered: Result<v1::AnswerCheckpointResponse, _> =
        line.ask(agent, "AnswerCheckpoint", &answer).await;
    refused(answered, "QUOTA_EXCEEDED");
    let event = v1::RecordEventRequest { name: session.clone(), key: "paid".into(), ..Default::default() };
    let recorded: Result<v1::RecordEventResponse, _> =
        line.ask(harness.globex.key("integration"), "RecordEvent", &event).await;
    refused(recorded, "QUOTA_EXCEEDED");
    let decide = v1::DecideGateRequest {
        name: harness.globex.gate.clone(),
        decision: v1::GateDecision::Reject.into(),
        ..Default::default()
    };
    let _: v1::DecideGateResponse =
        line.ask(harness.globex.key("approver"), "DecideGate", &decide).await.expect("the call is allowed");
    let cancel = v1::CancelSessionRequest { name: session, ..Default::default() };
    let _: v1::CancelSessionResponse = line
        .ask(harness.globex.key("operator"), "CancelSession", &cancel)
        .await
        .expect("the call is allowed");
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenant_cannot_raise_its_own_quotas() {
    let harness = Harness::start().await;
    let five = v1::Quotas { sessions: Some(5), ..NONE };
    set(&harness, "globex", five).await;
    let (line, admin) = (&harness.node.line, harness.globex.key("admin"));
    let raise = set_request("globex", v1::Quotas { sessions: Some(0), ..NONE }, &[]);
    let outcome: Result<v1::SetTenantQuotasResponse, _> = line.ask(admin, "SetTenantQuotas", &raise).await;
    refused(outcome, "ROLE_NOT_ALLOWED");
    let get = v1::GetTenantQuotasRequest { tenant_id: "globex".into(), ..Default::default() };
    let outcome: Result<v1::GetTenantQuotasResponse, _> = line.ask(admin, "GetTenantQuotas", &get).await;
    refused(outcome, "ROLE_NOT_ALLOWED");
    let own = |paths: &[&str]| v1::UpdateTenantRequest {
        tenant: Some(v1::Tenant { name: "-".into(), quotas: Some(NONE), ..Default::default() }),
        update_mask: Some(prost_types::FieldMask {
            paths: paths.iter().map(|path| (*path).into()).collect(),
        }),
        ..Default::default()
    };
    let outcome: Result<v1::UpdateTenantResponse, _> =
        line.ask(admin, "UpdateTenant", &own(&["quotas"])).await;
    assert_eq!(refused(outcome, "FIELD_INVALID").fields, ["update_mask"]);
    let _: v1::UpdateTenantResponse =
        line.ask(admin, "UpdateTenant", &own(&[])).await.expect("the call is allowed");
    let shown = look(&harness, "agent").await.expect("the call is allowed");
    assert_eq!(shown.tenant.expect("a tenant").quotas, Some(five));
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn quotas_are_set_one_by_one_or_all_at_once_and_taken_back() {
    let harness = Harness::start().await;
    let create = v1::CreateTenantRequest {
        tenant_id: "initech".into(),
        tenant: Some(v1::Tenant {
            quotas: Some(v1::Quotas { bytes: Some(0), ..NONE }),
            ..Default::default()
        }),
        ..Default::default()
    };
    let made: v1::CreateTenantResponse = harness.ask("admin", "CreateTenant", &create).await;
    assert_eq!(made.tenant.expect("a tenant").quotas, Some(v1::Quotas { bytes: Some(0), ..NONE }));
    let one = set_request("initech", v1::Quotas { sessions: Some(7), ..NONE }, &["sessions"]);
    let reply: v1::SetTenantQuotasResponse = harness.ask("admin", "SetTenantQuotas", &one).await;
    let tenant = reply.tenant.expect("a tenant");
    assert_eq!(tenant.quotas, Some(v1::Quotas { bytes: Some(0), sessions: Some(7), ..NONE }));
    let get = v1::GetTenantQuotasRequest { tenant_id: "initech".into(), ..Default::default() };
    let now: v1::GetTenantQuotasResponse = harness.ask("admin", "GetTenantQuotas", &get).await;
    assert_eq!(use_of(&now.quota_uses, "sessions"), (7, v1::QuotaSource::Tenant, Some(0)));
    assert_eq!(use_of(&now.quota_uses, "bytes"), (0, v1::QuotaSource::Tenant, Some(0)));
    assert_eq!(use_of(&now.quota_uses, "requests_per_second"), (0, v1::QuotaSource::Default, None));
    let heavy = set_request("initech", v1::Quotas { weight: Some(3), ..NONE }, &["weight"]);
    let reply: v1::SetTenantQuotasResponse = harness.ask("admin", "SetTenantQuotas", &heavy).await;
    let tenant = reply.tenant.expect("a tenant");
    let all = v1::Quotas { bytes: Some(0), sessions: Some(7), weight: Some(3), ..NONE };
    assert_eq!(tenant.quotas, Some(all), "the other quotas do not change");
    let stale = v1::SetTenantQuotasRequest { etag: "0011223344556677".into(), ..one.clone() };
    let outcome: Result<v1::SetTenantQuotasResponse, _> =
        harness.attempt("admin", "SetTenantQuotas", &stale).await;
    refused(outcome, "ETAG_MISMATCH");
    let none = v1::SetTenantQuotasRequest { etag: tenant.etag, ..set_request("initech", NONE, &[]) };
    let reply: v1::SetTenantQuotasResponse = harness.ask("admin", "SetTenantQuotas", &none).await;
    assert_eq!(reply.tenant.expect("a tenant").quotas, None);
    for (bad, field) in [
        (set_request("initech", NONE, &["name"]), "update_mask"),
        (set_request("initech", v1::Quotas { bytes: Some(u64::MAX), ..NONE }, &[]), "quotas.bytes"),
        (set_request("initech", v1::Quotas { weight: Some(0), ..NONE }, &[]), "quotas.weight"),
        (set_request("initech", v1::Quotas { weight: Some(101), ..NONE }, &["weight"]), "quotas.weight"),
    ] {
        let outcome: Result<v1::SetTenantQuotasResponse, _> =
            harness.attempt("admin", "SetTenantQuotas", &bad).await;
        assert_eq!(refused(outcome, "FIELD_INVALID").fields, [field]);
    }
    let outcome: Result<v1::SetTenantQuotasResponse, _> =
        harness.attempt("admin", "SetTenantQuotas", &set_request("nobody", NONE, &[])).await;
    refused(outcome, "NOT_FOUND");
    harness.node.end().await;
}
