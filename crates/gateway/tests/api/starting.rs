//! Session starts: what each role may set, where gate settings come from, which recipients named by data are asked, and
//! versions that cannot be started.

use switchward_api::v1::{self, SettingSource, quorum::Rule};
use switchward_testkit::until;

use crate::harness::{Harness, RELEASE, bundle, deployment, tool_call};
use crate::refusal::refused;

const EVE: &str = "eve@evil.example";

/// An approval by the approver that the data names, with a second round for the contact.
const CHOSEN: &str = r#"{
  "name": "chosen",
  "states": [
    {
      "name": "decide",
      "type": "approval",
      "approvers": ["{gathered_data.approver}"],
      "escalation": { "timeout_hours": 1, "escalation_contacts": ["conversation_contact"] }
    },
    { "name": "pay", "type": "conversation" },
    { "name": "keep", "type": "conversation" }
  ],
  "transitions": [
    { "from": "decide", "port": "approved", "to": "pay" },
    { "from": "decide", "port": "rejected", "to": "keep" },
    { "from": "decide", "port": "discussion", "to": "keep" },
    { "from": "decide", "port": "timeout", "to": "keep" }
  ]
}"#;

fn list(names: &[&str]) -> Vec<String> {
    names.iter().map(|one| (*one).to_owned()).collect()
}

fn entry(name: &str, members: &[&str], settings: Option<v1::GateSettings>) -> v1::DirectoryEntry {
    v1::DirectoryEntry { name: name.into(), members: list(members), settings }
}

fn at_least(least: u32) -> Option<v1::Quorum> {
    Some(v1::Quorum { rule: Some(Rule::AtLeast(least)) })
}

fn hourly(max: u32) -> Option<v1::Reminders> {
    Some(v1::Reminders { every: Some(prost_types::Duration { seconds: 3_600, nanos: 0 }), max })
}

fn start_of(definition: &str) -> v1::StartSessionRequest {
    v1::StartSessionRequest { definition: definition.into(), ..Default::default() }
}

impl Harness {
    async fn directory(&self, entries: Vec<v1::DirectoryEntry>, audience: &[&str]) {
        let directory = Some(v1::Directory { entries, audience: list(audience), ..Default::default() });
        let put = v1::PutDirectoryRequest { directory, ..Default::default() };
        let _: v1::PutDirectoryResponse = self.ask("admin", "PutDirectory", &put).await;
    }

    async fn begun(&self, role: &str, request: &v1::StartSessionRequest) -> v1::Session {
        let reply: v1::StartSessionResponse = self.ask(role, "StartSession", request).await;
        self.look(&reply.session.expect("a session").name).await
    }

    /// Starts a session with an approval whose approver the agent chooses.
    async fn choosing(&self, approver: &str, contact: &str) -> v1::Session {
        let kind = Some(prost_types::value::Kind::StringValue(approver.into()));
        let input = [("approver".to_owned(), prost_types::Value { kind })].into_iter().collect();
        let input = Some(prost_types::Struct { fields: input });
        let request = v1::StartSessionRequest { input, contact: contact.into(), ..start_of("chosen") };
        self.begun("agent", &request).await
    }

    async fn retire(&self, name: &str) -> Result<v1::Version, tonic::Status> {
        let request = v1::RetireVersionRequest { name: name.into(), ..Default::default() };
        let outcome: Result<v1::RetireVersionResponse, _> =
            self.attempt("author", "RetireVersion", &request).await;
        outcome.map(|reply| reply.version.expect("a version"))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agents_key_starts_with_nothing_that_decides_who_approves() {
    let harness = Harness::start().await;
    harness.deploy(&RELEASE.replace("Is it ready?", "Is it all ready?")).await;
    harness.deploy(crate::harness::TALK).await;
    let release = || start_of("release");
    let requests = [
        ("audience", v1::StartSessionRequest { audience: list(&[EVE]), ..release() }),
        ("quorum", v1::StartSessionRequest { quorum: at_least(1), ..release() }),
        ("quorum", v1::StartSessionRequest { quorum: Some(v1::Quorum { rule: None }), ..release() }),
        ("reminders", v1::StartSessionRequest { reminders: hourly(1), ..release() }),
        ("escalation", v1::StartSessionRequest { escalation: list(&[EVE]), ..release() }),
        ("version", v1::StartSessionRequest { version: Some(1), ..release() }),
        ("version", v1::StartSessionRequest { version: Some(9), ..release() }),
        ("role", v1::StartSessionRequest { role: "root".into(), ..start_of("talk") }),
    ];
    for (field, request) in requests {
        let before = harness.node.state().await;
        let outcome: Result<v1::StartSessionResponse, _> =
            harness.attempt("agent", "StartSession", &request).await;
        let refusal = refused(outcome, "ROLE_NOT_ALLOWED");
        assert_eq!(refusal.metadata["field"], field);
        assert!(refusal.message.contains(field), "{}", refusal.message);
        // The policy's role is checked in the session's shard, which has stored the definition by then.
        if field != "role" {
            assert_eq!(harness.node.state().await, before, "{field} changed the state");
        }
        if request.version != Some(9) {
            harness.begun("operator", &request).await;
        }
    }
    let active = v1::StartSessionRequest { version: Some(2), ..release() };
    assert_eq!(harness.begun("agent", &active).await.version, 2, "version 2 is the active one");
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_holds_for_gates_stands_in_the_directory_and_a_session_shows_from_where() {
    let harness = Harness::start().await;
    let owner = v1::GateSettings {
        quorum: at_least(3),
        reminders: hourly(2),
        escalation: list(&["head@acme.example"]),
        ..Default::default()
    };
    let own = v1::GateSettings { quorum: at_least(2), ..Default::default() };
    let owners = entry("owner:release", &["kim@acme.example"], Some(owner));
    harness.directory(vec![owners.clone()], &["ops@acme.example"]).await;
    let session = harness.begun("agent", &start_of("release")).await;
    assert_eq!(session.audience, ["kim@acme.example"]);
    assert_eq!(
        (session.audience_source(), session.quorum_source()),
        (SettingSource::OwnerEntry, SettingSource::OwnerEntry)
    );
    assert_eq!(session.quorum, at_least(3));
    // An admin's change holds at once, for running sessions too.
    harness.directory(vec![entry("definition:release", &[], Some(own)), owners], &["ops@acme.example"]).await;
    let session = harness.look(&session.name).await;
    assert_eq!((session.quorum, session.quorum_source()), (at_least(2), SettingSource::DefinitionEntry));
    assert_eq!((session.reminders, session.reminders_source()), (hourly(2), SettingSource::OwnerEntry));
    assert_eq!(session.escalation, ["head@acme.example"]);
    let reply = harness.authorize(&session.name, "mcp:filesystem:write_file").await;
    let get = v1::GetGateRequest { name: reply.gate, ..Default::default() };
    let reply: v1::GetGateResponse = harness.ask("agent", "GetGate", &get).await;
    let gate = reply.gate.expect("a gate");
    assert_eq!(
        (gate.approvals_needed, gate.notified.as_slice()),
        (2, ["kim@acme.example".to_owned()].as_slice())
    );
    // An operator's start takes precedence over both.
    let request = v1::StartSessionRequest {
        audience: list(&["dana@acme.example"]),
        quorum: Some(v1::Quorum { rule: Some(Rule::Any(true)) }),
        ..start_of("release")
    };
    let session = harness.begun("operator", &request).await;
    assert_eq!(
        (session.audience_source(), session.quorum_source()),
        (SettingSource::Start, SettingSource::Start)
    );
    assert_eq!(session.quorum, request.quorum);
    let call = tool_call(&session.name, "mcp:filesystem:write_file");
    let _: v1::AuthorizeToolCallResponse = harness.ask("agent", "AuthorizeToolCall", &call).await;
    let open = harness.look(&session.name).await.waiting_on.remove(0);
    assert_eq!((open.approvals_needed, open.notified), (0, list(&["dana@acme.example"])));
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_stand_under_names_of_definitions_and_owners_alone() {
    let harness = Harness::start().await;
    let quorum = |least| Some(v1::GateSettings { quorum: at_least(least), ..Default::default() });
    let every = Some(v1::GateSettings { reminders: hourly(11), ..Default::default() });
    let bad = [
        (entry("kim", &[], quorum(2)), "directory.entries[0].settings"),
        (entry("owner:", &[], quorum(2)), "directory.entries[0].settings"),
        (entry("owner:release", &[], quorum(0)), "directory.entries[0].settings.quorum"),
        (entry("definition:release", &[], every), "directory.entries[0].settings.reminders"),
    ];
    for (entry, field) in bad {
        let directory = Some(v1::Directory { entries: vec![entry], ..Default::default() });
        let put = v1::PutDirectoryRequest { directory, ..Default::default() };
        let outcome: Result<v1::PutDirectoryResponse, _> =
            harness.attempt("admin", "PutDirectory", &put).await;
        assert_eq!(refused(outcome, "FIELD_INVALID").fields, [field]);
    }
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approver_whom_data_names_is_asked_only_if_the_directory_holds_them() {
    let harness = Harness::start().await;
    harness.deploy(CHOSEN).await;
    // The directory is empty: anyone who may decide decides, except the person who was named.
    let session = harness.choosing(EVE, EVE).await;
    let open = session.waiting_on.first().expect("a gate").clone();
    assert_eq!((open.approvers.len(), open.notified.len(), open.unnotified), (0, 0, true));
    assert_eq!(open.undeliverable, [EVE]);
    assert!(open.warnings.iter().any(|line| line.contains("they are not in the directory")), "{open:?}");
    let decide = v1::DecideGateRequest {
        name: open.name.clone(),
        decision: v1::GateDecision::Approve.into(),
        args_digest: Some(open.args_digest.clone()),
        ..Default::default()
    };
    let _: v1::DecideGateResponse = harness.ask("approver", "DecideGate", &decide).await;
    assert_eq!(harness.look(&session.name).await.at, ["pay"]);
    // The owners of the process are asked instead.
    let people =
        vec![entry("kim", &["kim@acme.example"], None), entry("owner:chosen", &["approver@acme"], None)];
    harness.directory(people, &[]).await;
    let session = harness.choosing(EVE, EVE).await;
    let open = session.waiting_on.first().expect("a gate").clone();
    assert_eq!((open.approvers.as_slice(), open.unnotified), (list(&["approver@acme"]).as_slice(), false));
    let mail = v1::RecordReplyRequest {
        name: session.name.clone(),
        from: EVE.into(),
        text: "yes".into(),
        ..Default::default()
    };
    let _: v1::RecordReplyResponse = harness.ask("operator", "RecordReply", &mail).await;
    assert_eq!(
        harness.look(&session.name).await.at,
        ["decide"],
        "the reply of somebody outside the directory decides nothing"
    );
    // The next round would ask the contact, whom the agent has also chosen.
    harness.node.clock.advance(3_600_000);
    let mut open = harness.look(&session.name).await.waiting_on.remove(0);
    until("both are known to be undeliverable", async || {
        open = harness.look(&session.name).await.waiting_on.remove(0);
        open.undeliverable.len() >= 2
    })
    .await;
    assert_eq!(open.approvers, ["approver@acme"]);
    // A person in the directory is asked, by name or address; and anybody, if the tenant allows it.
    for (who, asked) in [("kim", "kim@acme.example"), ("KIM@acme.example", "KIM@acme.example")] {
        assert_eq!(harness.choosing(who, "").await.waiting_on[0].approvers, [asked]);
    }
    let update = v1::UpdateTenantRequest {
        tenant: Some(v1::Tenant { any_approver_address: true, ..Default::default() }),
        update_mask: Some(prost_types::FieldMask { paths: list(&["any_approver_address"]) }),
        ..Default::default()
    };
    let reply: v1::UpdateTenantResponse = harness.ask("admin", "UpdateTenant", &update).await;
    assert!(reply.tenant.expect("a tenant").any_approver_address);
    assert_eq!(harness.choosing(EVE, "").await.waiting_on[0].approvers, [EVE]);
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_start_names_a_version_that_is_retired() {
    let harness = Harness::start().await;
    harness.deploy(&RELEASE.replace("Is it ready?", "Is it all ready?")).await;
    refused(harness.retire("release/versions/2").await, "STATE_MISMATCH");
    refused(harness.retire("release/versions/3").await, "NOT_FOUND");
    let running = harness.acme.session.clone();
    let version = harness.retire("release/versions/1").await.expect("the version is not the active one");
    assert!(version.retire_time.is_some() && version.retired_by == "author@acme", "{version:?}");
    assert_eq!(harness.retire("release/versions/1").await.expect("a repeated retirement"), version);
    let old = v1::StartSessionRequest { version: Some(1), ..start_of("release") };
    let outcome: Result<v1::StartSessionResponse, _> =
        harness.attempt("operator", "StartSession", &old).await;
    assert_eq!(refused(outcome, "VERSION_RETIRED").metadata["version"], "1");
    assert_eq!(harness.answer(&running.name, "go").await.at, ["check"], "a session that runs goes on");

    let get = v1::GetDefinitionRequest { name: "release".into(), ..Default::default() };
    let reply: v1::GetDefinitionResponse = harness.ask("agent", "GetDefinition", &get).await;
    assert_eq!(reply.definition.expect("a definition").retired_versions, [1]);
    let check = v1::CheckDefinitionRequest { files: bundle(RELEASE), format: 0 };
    let checked: v1::CheckDefinitionResponse = harness.ask("author", "CheckDefinition", &check).await;
    assert_eq!((checked.ok, checked.version, checked.retired), (true, 1, true));
    let outcome: Result<v1::DeployDefinitionResponse, _> =
        harness.attempt("author", "DeployDefinition", &deployment(RELEASE)).await;
    refused(outcome, "VERSION_RETIRED");
    let activate = v1::ActivateVersionRequest { name: "release/versions/1".into(), ..Default::default() };
    let reply: v1::ActivateVersionResponse = harness.ask("author", "ActivateVersion", &activate).await;
    let definition = reply.definition.expect("a definition");
    assert_eq!(
        (definition.active_version, definition.retired_versions.len()),
        (1, 0),
        "the version is active again"
    );
    assert_eq!(harness.begun("agent", &start_of("release")).await.version, 1);
    harness.node.end().await;
}
