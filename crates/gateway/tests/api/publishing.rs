//! Definitions and tenants: versions by number and by word, what is active, switches that hold at once, and maxima.

use switchward_api::v1;

use crate::harness::{Harness, RELEASE, bundle, deployment, named, tool_call};
use crate::refusal::refused;

fn second() -> String {
    RELEASE.replace("Is it ready?", "Is it all ready?")
}

async fn version(harness: &Harness, name: &str) -> Result<v1::Version, tonic::Status> {
    let get = v1::GetVersionRequest {
        name: name.to_owned(),
        view: v1::VersionView::Source.into(),
        ..Default::default()
    };
    let outcome: Result<v1::GetVersionResponse, _> = harness.attempt("agent", "GetVersion", &get).await;
    outcome.map(|reply| reply.version.expect("a version"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_version_has_a_number_and_sometimes_a_word() {
    let harness = Harness::start().await;
    let quiet = v1::DeployDefinitionRequest { activate: Some(false), ..deployment(&second()) };
    let deployed: v1::DeployDefinitionResponse = harness.ask("author", "DeployDefinition", &quiet).await;
    assert!(deployed.created && !deployed.version.expect("a version").active);
    for (name, number) in [
        ("release/versions/1", 1),
        ("release/versions/active", 1),
        ("tenants/-/definitions/release/versions/latest", 2),
        ("definitions/release/versions/2", 2),
    ] {
        let found = version(&harness, name).await.expect(name);
        assert_eq!(found.number, number, "{name}");
        let source = if number == 1 { RELEASE.to_owned() } else { second() };
        assert_eq!(found.files[0].content, source.as_bytes(), "{name}");
    }
    let activate =
        v1::ActivateVersionRequest { name: "release/versions/latest".into(), ..Default::default() };
    let reply: v1::ActivateVersionResponse = harness.ask("author", "ActivateVersion", &activate).await;
    assert_eq!(reply.definition.expect("a definition").active_version, 2);
    assert_eq!(version(&harness, "release/versions/active").await.expect("active").number, 2);
    assert_eq!(harness.session().await.version, 2);
    assert_eq!(harness.look(&harness.acme.session.name).await.version, 1, "a session keeps its version");

    let again: v1::DeployDefinitionResponse =
        harness.ask("author", "DeployDefinition", &deployment(RELEASE)).await;
    let first = again.version.expect("a version");
    assert_eq!(
        (again.created, first.number, first.active),
        (false, 1, true),
        "the same bytes make no new version"
    );
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_definition_without_an_active_version_starts_nothing() {
    let harness = Harness::start().await;
    let quiet = v1::DeployDefinitionRequest { activate: Some(false), ..deployment(&named("quiet")) };
    let _: v1::DeployDefinitionResponse = harness.ask("author", "DeployDefinition", &quiet).await;
    refused(version(&harness, "quiet/versions/active").await, "NOT_FOUND");
    let start = v1::StartSessionRequest { definition: "quiet".into(), ..Default::default() };
    let outcome: Result<v1::StartSessionResponse, _> = harness.attempt("agent", "StartSession", &start).await;
    refused(outcome, "STATE_MISMATCH");
    let chosen = v1::StartSessionRequest { version: Some(1), ..start };
    let _: v1::StartSessionResponse = harness.ask("operator", "StartSession", &chosen).await;
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_definition_with_errors_is_refused_with_every_one_of_them() {
    let harness = Harness::start().await;
    let states = r#"{"a": {"question": 1, "answers": {"y": {"next": "b"}}}}"#;
    let bad = format!(r#"{{"name": "Bad", "initial": "none", "states": {states}}}"#);
    let check = v1::CheckDefinitionRequest { files: bundle(&bad), format: 0 };
    let checked: v1::CheckDefinitionResponse = harness.ask("agent", "CheckDefinition", &check).await;
    assert!(!checked.ok && checked.digest.is_empty() && checked.findings.len() >= 4, "{checked:?}");
    let outcome: Result<v1::DeployDefinitionResponse, _> =
        harness.attempt("author", "DeployDefinition", &deployment(&bad)).await;
    let positions: Vec<String> = checked
        .findings
        .iter()
        .filter(|finding| finding.severity() == v1::Severity::Error)
        .map(|finding| format!("{}:{}:{}", finding.file, finding.line, finding.column))
        .collect();
    assert_eq!(refused(outcome, "DEFINITION_INVALID").fields, positions);
    harness.node.end().await;
}

fn switches(effect: v1::DefaultEffect, paths: &[&str]) -> v1::UpdateTenantRequest {
    let paths = paths.iter().map(|path| (*path).to_owned()).collect();
    v1::UpdateTenantRequest {
        tenant: Some(v1::Tenant { default_effect: effect.into(), ..v1::Tenant::default() }),
        update_mask: Some(prost_types::FieldMask { paths }),
        ..v1::UpdateTenantRequest::default()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenants_switches_hold_at_once_and_for_it_alone() {
    let harness = Harness::start().await;
    let decision = async || harness.authorize(&harness.acme.session.name, "mcp:any:thing").await.decision();
    assert_eq!(decision().await, v1::ToolDecision::Allow);
    for (effect, paths, wanted) in [
        (v1::DefaultEffect::Deny, vec!["default_effect"], v1::ToolDecision::Deny),
        (v1::DefaultEffect::Ask, vec!["allow_foreign_role"], v1::ToolDecision::Deny),
        (v1::DefaultEffect::Ask, vec![], v1::ToolDecision::Ask),
        (v1::DefaultEffect::Unspecified, vec!["default_effect"], v1::ToolDecision::Allow),
        (v1::DefaultEffect::Deny, vec![], v1::ToolDecision::Deny),
    ] {
        let _: v1::UpdateTenantResponse =
            harness.ask("admin", "UpdateTenant", &switches(effect, &paths)).await;
        assert_eq!(decision().await, wanted, "{effect:?} {paths:?}");
    }
    let call = tool_call(&harness.globex.session.name, "mcp:any:thing");
    let theirs: Result<v1::AuthorizeToolCallResponse, _> =
        harness.node.line.ask(harness.globex.key("agent"), "AuthorizeToolCall", &call).await;
    assert_eq!(theirs.expect("a decision").decision(), v1::ToolDecision::Allow);
    let outcome: Result<v1::UpdateTenantResponse, _> =
        harness.attempt("admin", "UpdateTenant", &switches(v1::DefaultEffect::Deny, &["name"])).await;
    assert_eq!(refused(outcome, "FIELD_INVALID").fields, ["update_mask"]);
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_foreign_role_starts_where_the_tenant_allows_it() {
    let harness = Harness::start().await;
    let start = v1::StartSessionRequest {
        definition: "release".into(),
        role: "robot".into(),
        ..v1::StartSessionRequest::default()
    };
    let outcome: Result<v1::StartSessionResponse, _> = harness.attempt("agent", "StartSession", &start).await;
    refused(outcome, "POLICY_DENIED");
    let update = v1::UpdateTenantRequest {
        tenant: Some(v1::Tenant { allow_foreign_role: true, ..v1::Tenant::default() }),
        ..v1::UpdateTenantRequest::default()
    };
    let _: v1::UpdateTenantResponse = harness.ask("admin", "UpdateTenant", &update).await;
    let outcome: Result<v1::StartSessionResponse, _> = harness.attempt("agent", "StartSession", &start).await;
    assert_eq!(refused(outcome, "ROLE_NOT_ALLOWED").metadata["field"], "role", "the policy holds for agents");
    let started: v1::StartSessionResponse = harness.ask("operator", "StartSession", &start).await;
    assert!(started.session.expect("a session").without_policy);
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_too_many_is_refused_with_its_limit() {
    let harness = Harness::start().await;
    let name = harness.session().await.name;
    for number in 0..=100 {
        let call = v1::AuthorizeToolCallRequest {
            args: format!("{{\"n\":{number}}}").into_bytes().into(),
            ..tool_call(&name, "mcp:filesystem:write_file")
        };
        let outcome: Result<v1::AuthorizeToolCallResponse, _> =
            harness.attempt("agent", "AuthorizeToolCall", &call).await;
        if number < 100 {
            assert_eq!(outcome.expect("an ask").decision(), v1::ToolDecision::Ask);
        } else {
            refused(outcome, "QUOTA_EXCEEDED");
        }
    }
    assert_eq!(harness.look(&name).await.waiting_on.len(), 100);
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_based_on_a_stale_etag_is_refused() {
    let harness = Harness::start().await;
    let get = v1::GetDefinitionRequest { name: "release".into(), ..Default::default() };
    let seen: v1::GetDefinitionResponse = harness.ask("agent", "GetDefinition", &get).await;
    let seen = seen.definition.expect("a definition").etag;
    let changed = v1::DeployDefinitionRequest { expected_etag: seen.clone(), ..deployment(&second()) };
    let _: v1::DeployDefinitionResponse = harness.ask("author", "DeployDefinition", &changed).await;
    let late = v1::DeployDefinitionRequest { expected_etag: seen.clone(), ..deployment(RELEASE) };
    let outcome: Result<v1::DeployDefinitionResponse, _> =
        harness.attempt("author", "DeployDefinition", &late).await;
    let now = refused(outcome, "ETAG_MISMATCH").metadata["etag"].clone();
    assert_ne!(now, seen);
    let mut activate = v1::ActivateVersionRequest {
        name: "release/versions/1".into(),
        expected_etag: seen,
        ..v1::ActivateVersionRequest::default()
    };
    let outcome: Result<v1::ActivateVersionResponse, _> =
        harness.attempt("author", "ActivateVersion", &activate).await;
    refused(outcome, "ETAG_MISMATCH");
    activate.expected_etag = now;
    let _: v1::ActivateVersionResponse = harness.ask("author", "ActivateVersion", &activate).await;
    let fresh = v1::DeployDefinitionRequest { expected_etag: "0".into(), ..deployment(&named("fresh")) };
    let outcome: Result<v1::DeployDefinitionResponse, _> =
        harness.attempt("author", "DeployDefinition", &fresh).await;
    refused(outcome, "ETAG_MISMATCH");

    let get = v1::GetTenantRequest { name: "tenants/-".into(), ..Default::default() };
    let tenant: v1::GetTenantResponse = harness.ask("admin", "GetTenant", &get).await;
    let mut update = switches(v1::DefaultEffect::Deny, &["default_effect"]);
    update.tenant.as_mut().expect("a tenant").etag = tenant.tenant.expect("a tenant").etag;
    let _: v1::UpdateTenantResponse = harness.ask("admin", "UpdateTenant", &update).await;
    let outcome: Result<v1::UpdateTenantResponse, _> =
        harness.attempt("admin", "UpdateTenant", &update).await;
    refused(outcome, "ETAG_MISMATCH");
    harness.node.end().await;
}
