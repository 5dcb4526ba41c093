//! Definitions that are archived or deleted, and what differs between versions.

use switchward_api::v1;

use crate::calling::Pair;
use crate::harness::{Harness, RELEASE, bundle, deployment, named, put_assistant};
use crate::refusal::refused;

/// A policy that denies everything.
const GUARD: &str = r#"{ "policy": "guard", "default_effect": "deny" }"#;

fn start_of(definition: &str) -> v1::StartSessionRequest {
    v1::StartSessionRequest { definition: definition.into(), ..Default::default() }
}

impl Harness {
    async fn archive(&self, name: &str) -> v1::Definition {
        let request = v1::ArchiveDefinitionRequest { name: name.into(), ..Default::default() };
        let reply: v1::ArchiveDefinitionResponse = self.ask("author", "ArchiveDefinition", &request).await;
        reply.definition.expect("a definition")
    }

    async fn delete_definition(&self, name: &str) -> Result<v1::DeleteDefinitionResponse, tonic::Status> {
        let request = v1::DeleteDefinitionRequest { name: name.into(), ..Default::default() };
        self.attempt("author", "DeleteDefinition", &request).await
    }

    async fn delete_version(&self, name: &str) -> Result<v1::DeleteVersionResponse, tonic::Status> {
        let request = v1::DeleteVersionRequest { name: name.into(), ..Default::default() };
        self.attempt("author", "DeleteVersion", &request).await
    }

    async fn begin(
        &self,
        request: &v1::StartSessionRequest,
    ) -> Result<v1::StartSessionResponse, tonic::Status> {
        self.attempt("agent", "StartSession", request).await
    }

    async fn cancel(&self, session: &str) {
        let request = v1::CancelSessionRequest { name: session.into(), ..Default::default() };
        let _: v1::CancelSessionResponse = self.ask("operator", "CancelSession", &request).await;
    }

    async fn definitions(&self, show_archived: bool) -> Vec<String> {
        let request = v1::ListDefinitionsRequest { show_archived, ..Default::default() };
        let reply: v1::ListDefinitionsResponse = self.ask("agent", "ListDefinitions", &request).await;
        let short = |one: &v1::Definition| one.name.replace("tenants/acme/definitions/", "");
        reply.definitions.iter().map(short).collect()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_new_begins_with_an_archived_definition() {
    let harness = Harness::start().await;
    let running = harness.acme.session.clone();
    let archived = harness.archive("release").await;
    assert!(archived.archive_time.is_some() && archived.archived_by == "author@acme", "{archived:?}");
    assert_eq!(harness.archive("release").await, archived, "a repeated call changes nothing");
    let has = |names: Vec<String>| names.contains(&"release".to_owned());
    assert!(!has(harness.definitions(false).await) && has(harness.definitions(true).await));

    refused(harness.begin(&start_of("release")).await, "DEFINITION_ARCHIVED");
    let numbered = v1::StartSessionRequest { version: Some(1), ..start_of("release") };
    let outcome: Result<v1::StartSessionResponse, _> =
        harness.attempt("operator", "StartSession", &numbered).await;
    refused(outcome, "DEFINITION_ARCHIVED");
    let other = deployment(&RELEASE.replace("Is it ready?", "Is it all ready?"));
    let outcome: Result<v1::DeployDefinitionResponse, _> =
        harness.attempt("author", "DeployDefinition", &other).await;
    refused(outcome, "DEFINITION_ARCHIVED");
    let activate = v1::ActivateVersionRequest { name: "release/versions/1".into(), ..Default::default() };
    let outcome: Result<v1::ActivateVersionResponse, _> =
        harness.attempt("author", "ActivateVersion", &activate).await;
    refused(outcome, "DEFINITION_ARCHIVED");
    assert_eq!(harness.answer(&running.name, "go").await.at, ["check"], "a session that runs goes on");

    let unarchive = v1::UnarchiveDefinitionRequest { name: "release".into(), ..Default::default() };
    let reply: v1::UnarchiveDefinitionResponse =
        harness.ask("author", "UnarchiveDefinition", &unarchive).await;
    assert_eq!(reply.definition.expect("a definition").active_version, 1);
    harness.begin(&start_of("release")).await.expect("the definition is in use again");
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_definition_is_deleted_only_if_nothing_needs_it() {
    let harness = Harness::start().await;
    let source = named("gone");
    harness.deploy(&source).await;
    let session = harness.begin(&start_of("gone")).await.expect("a start").session.expect("a session");
    refused(harness.delete_definition("gone").await, "STATE_MISMATCH");
    harness.archive("gone").await;
    let refusal = refused(harness.delete_definition("gone").await, "DEFINITION_IN_USE");
    assert!(refusal.others.iter().any(|detail| detail.contains(&session.name)), "{refusal:?}");
    let validate = v1::DeleteDefinitionRequest {
        name: "gone".into(),
        validate_only: true,
        ..v1::DeleteDefinitionRequest::default()
    };
    let outcome: Result<v1::DeleteDefinitionResponse, _> =
        harness.attempt("author", "DeleteDefinition", &validate).await;
    refused(outcome, "DEFINITION_IN_USE");

    harness.cancel(&session.name).await;
    let _: v1::DeleteDefinitionResponse = harness.ask("author", "DeleteDefinition", &validate).await;
    assert!(harness.definitions(true).await.contains(&"gone".to_owned()), "it was only checked");
    let stale = v1::DeleteDefinitionRequest {
        name: "gone".into(),
        expected_etag: "0011223344556677".into(),
        ..v1::DeleteDefinitionRequest::default()
    };
    let outcome: Result<v1::DeleteDefinitionResponse, _> =
        harness.attempt("author", "DeleteDefinition", &stale).await;
    refused(outcome, "ETAG_MISMATCH");
    harness.delete_definition("gone").await.expect("nothing needs it");
    refused(harness.delete_definition("gone").await, "NOT_FOUND");
    refused(harness.begin(&start_of("gone")).await, "NOT_FOUND");
    assert!(!harness.definitions(true).await.contains(&"gone".to_owned()));
    assert_eq!(harness.look(&session.name).await.version, 1, "an ended session is shown as before");
    assert_eq!(harness.deploy(&source).await.number, 2, "a number is not used a second time");
    harness.begin(&start_of("gone")).await.expect("the new definition is active");
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_version_is_deleted_only_if_it_is_retired_and_nothing_needs_it() {
    let harness = Harness::start().await;
    let first = named("kept");
    harness.deploy(&first).await;
    let session = harness.begin(&start_of("kept")).await.expect("a start").session.expect("a session");
    // The second version has the bytes of the first one but for a space, and the same machine.
    harness.deploy(&first.replace("\"initial\":", "\"initial\": ")).await;
    harness.deploy(&first.replace("Is it ready?", "Is it all ready?")).await;
    refused(harness.delete_version("kept/versions/3").await, "STATE_MISMATCH");
    refused(harness.delete_version("kept/versions/1").await, "STATE_MISMATCH");
    refused(harness.delete_version("kept/versions/4").await, "NOT_FOUND");
    for number in [1, 2] {
        let name = format!("kept/versions/{number}");
        let retire = v1::RetireVersionRequest { name, ..Default::default() };
        let _: v1::RetireVersionResponse = harness.ask("author", "RetireVersion", &retire).await;
    }
    refused(harness.delete_version("kept/versions/1").await, "DEFINITION_IN_USE");
    harness.delete_version("kept/versions/2").await.expect("no session has it");
    assert_eq!(harness.answer(&session.name, "go").await.at, ["check"], "the session has its machine");
    harness.cancel(&session.name).await;
    let compiled = v1::GetVersionRequest {
        name: "kept/versions/1".into(),
        view: v1::VersionView::Compiled.into(),
        ..v1::GetVersionRequest::default()
    };
    let reply: v1::GetVersionResponse = harness.ask("author", "GetVersion", &compiled).await;
    assert!(reply.version.expect("a version").compiled.is_some(), "both versions had one machine");
    harness.delete_version("kept/versions/1").await.expect("its session has ended");

    let list = v1::ListVersionsRequest { parent: "kept".into(), ..Default::default() };
    let reply: v1::ListVersionsResponse = harness.ask("author", "ListVersions", &list).await;
    assert_eq!(reply.versions.iter().map(|version| version.number).collect::<Vec<_>>(), [3]);
    let get = v1::GetDefinitionRequest { name: "kept".into(), ..Default::default() };
    let reply: v1::GetDefinitionResponse = harness.ask("author", "GetDefinition", &get).await;
    let definition = reply.definition.expect("a definition");
    assert_eq!((definition.latest_version, definition.retired_versions.len()), (3, 0));
    assert_eq!(harness.deploy(&first).await.number, 4, "the bytes of a deleted version make another one");
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_of_an_archived_definition_is_warned_and_does_not_start() {
    let harness = Harness::start().await;
    let pair = Pair::of(&harness);
    let called = harness.deploy(&pair.called()).await.name;
    let called = called.split('/').nth(3).expect("a name").to_owned();
    let caller = harness.deploy(&pair.caller()).await.name;
    let name = caller.split('/').nth(3).expect("a name").to_owned();
    harness.archive(&called).await;
    let check = v1::CheckDefinitionRequest { files: bundle(&pair.caller()), format: 0 };
    let checked: v1::CheckDefinitionResponse = harness.ask("author", "CheckDefinition", &check).await;
    assert!(checked.ok && checked.findings.iter().any(|one| one.code == "SW1250"), "{checked:?}");
    let activate = v1::ActivateVersionRequest { name: caller, ..Default::default() };
    let reply: v1::ActivateVersionResponse = harness.ask("author", "ActivateVersion", &activate).await;
    assert_eq!(reply.findings.len(), 1);
    assert!(reply.findings[0].message.contains("is archived"), "{reply:?}");
    let again: v1::DeployDefinitionResponse =
        harness.ask("author", "DeployDefinition", &deployment(&pair.caller())).await;
    assert!(again.findings.iter().any(|one| one.message.contains("is archived")), "{again:?}");
    refused(harness.begin(&start_of(&name)).await, "NO_SUCH_WORKFLOW");

    let refusal = refused(harness.delete_definition(&called).await, "DEFINITION_IN_USE");
    assert!(refusal.others.iter().any(|detail| detail.contains(&name)), "{refusal:?}");
    harness.archive(&name).await;
    harness.delete_definition(&called).await.expect("its caller is archived");
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn assistants_and_policies_need_their_definitions() {
    let harness = Harness::start().await;
    let _: v1::PutAssistantResponse = harness.ask("author", "PutAssistant", &put_assistant("helper")).await;
    harness.archive("talk").await;
    let refusal = refused(harness.delete_definition("talk").await, "DEFINITION_IN_USE");
    assert!(refusal.others.iter().any(|detail| detail.contains("assistants/helper")), "{refusal:?}");

    harness.deploy(GUARD).await;
    let (definition, policy) = ("release".to_owned(), "guard".to_owned());
    let attach = v1::AttachPolicyRequest { definition, policy, ..Default::default() };
    let _: v1::AttachPolicyResponse = harness.ask("author", "AttachPolicy", &attach).await;
    harness.archive("guard").await;
    let session = harness.begin(&start_of("release")).await.expect("a start").session.expect("a session");
    let decision = harness.authorize(&session.name, "bash").await;
    assert_eq!(decision.decision(), v1::ToolDecision::Deny, "an archived policy still applies");
    let refusal = refused(harness.delete_definition("guard").await, "DEFINITION_IN_USE");
    assert!(refusal.others.iter().any(|detail| detail.contains("definitions/release")), "{refusal:?}");
    let outcome: Result<v1::SetTenantPolicyResponse, _> = harness
        .attempt(
            "admin",
            "SetTenantPolicy",
            &v1::SetTenantPolicyRequest { policy: "guard".into(), ..Default::default() },
        )
        .await;
    refused(outcome, "DEFINITION_ARCHIVED");
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_comparison_marks_what_weakens_a_control() {
    let harness = Harness::start().await;
    let weaker = RELEASE.replace(", \"action\": \"notify_human\"", "");
    assert_ne!(weaker, RELEASE, "the review asks nobody any more");
    let request = v1::DiffVersionsRequest {
        name: "release/versions/active".into(),
        files: bundle(&weaker),
        ..v1::DiffVersionsRequest::default()
    };
    let reply: v1::DiffVersionsResponse = harness.ask("approver", "DiffVersions", &request).await;
    assert!(reply.weaker > 0 && reply.after.is_none() && reply.omitted == 0, "{reply:?}");
    let people = reply.differences.iter().find(|one| one.part() == v1::DifferencePart::People);
    let people = people.expect("a gate that is gone");
    assert_eq!((people.change(), people.weaker), (v1::DifferenceChange::Removed, true));
    assert_eq!(people.state, "look");

    harness.deploy(&RELEASE.replace("Is it ready?", "Is it all ready?")).await;
    let versions = v1::DiffVersionsRequest {
        name: "release/versions/1".into(),
        other: "release/versions/latest".into(),
        ..v1::DiffVersionsRequest::default()
    };
    let reply: v1::DiffVersionsResponse = harness.ask("author", "DiffVersions", &versions).await;
    let [question] = &reply.differences[..] else { panic!("{reply:?}") };
    assert_eq!((question.before.as_str(), question.after.as_str()), ("Is it ready?", "Is it all ready?"));
    assert_eq!((reply.weaker, reply.after.map(|version| version.number)), (0, Some(2)));

    let neither = v1::DiffVersionsRequest { name: "release/versions/1".into(), ..Default::default() };
    let outcome: Result<v1::DiffVersionsResponse, _> =
        harness.attempt("author", "DiffVersions", &neither).await;
    assert_eq!(refused(outcome, "FIELD_INVALID").fields, ["other"]);
    let both = v1::DiffVersionsRequest { files: bundle(RELEASE), ..versions };
    let outcome: Result<v1::DiffVersionsResponse, _> = harness.attempt("author", "DiffVersions", &both).await;
    assert_eq!(refused(outcome, "FIELD_INVALID").fields, ["files"]);
    harness.node.end().await;
}
