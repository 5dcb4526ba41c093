//! Which role may make which call: the table of `proto/README.md`, tried with a key of every role.

use prost::Message;
use prost_reflect::MethodDescriptor;
use switchward_api::v1;

use crate::harness::{Harness, ROLES};
use crate::protocols::Protocol;
use crate::refusal::{Refusal, refused};
use crate::rpcs::{Rpc, all, changes};

/// Calls that an agent must never make, whatever the published table says: with any of these it could pass a gate.
const NEVER_AN_AGENT: [&str; 72] = [
    "RecordEvent",
    "AttachPolicy",
    "DetachPolicy",
    "SetTenantPolicy",
    "RemoveTenantPolicy",
    "DecideGate",
    "AssignGate",
    "FailEffect",
    "RetryEffect",
    "DismissEffect",
    "ReleaseEffects",
    "DeleteTenant",
    "GetTenantQuotas",
    "SetTenantQuotas",
    "DeployDefinition",
    "ActivateVersion",
    "RetireVersion",
    "ArchiveDefinition",
    "UnarchiveDefinition",
    "DeleteDefinition",
    "DeleteVersion",
    "DiffVersions",
    "PutAssistant",
    "PutDirectory",
    "GetDirectory",
    "DeleteAssistant",
    "CreateWebhookSource",
    "GetWebhookSource",
    "ListWebhookSources",
    "UpdateWebhookSource",
    "RotateWebhookSourceSecret",
    "DeleteWebhookSource",
    "PutWebhookEndpoint",
    "GetWebhookEndpoint",
    "ListWebhookEndpoints",
    "RotateWebhookEndpointSecret",
    "PingWebhookEndpoint",
    "RecoverWebhookEndpoint",
    "DeleteWebhookEndpoint",
    "ListQuarantinedMail",
    "GetQuarantinedMail",
    "DeleteQuarantinedMail",
    "CreateApiKey",
    "ListApiKeys",
    "RevokeApiKey",
    "CreateTenant",
    "ListTenants",
    "UpdateTenant",
    "RaiseCap",
    "PauseSession",
    "ResumeSession",
    "CancelSession",
    "RecordReply",
    "DeleteSession",
    "EraseSession",
    "PutRetention",
    "GetRetention",
    "AdvanceClock",
    "GetCluster",
    "VerifyGroup",
    "DrainServer",
    "ActivateServer",
    "RemoveServer",
    "ReplaceServer",
    "TransferLeaders",
    "RaiseLevel",
    "PollWork",
    "StreamWork",
    "ExtendLease",
    "CompleteWork",
    "FailWork",
    "ReleaseWork",
];

/// The cells of a row of a Markdown table.
fn cells(line: &str) -> Option<Vec<&str>> {
    Some(line.strip_prefix('|')?.strip_suffix('|')?.split('|').map(str::trim).collect())
}

/// Returns true if a row of the published table covers this method.
fn about(calls: &str, method: &MethodDescriptor) -> bool {
    let (listed, but) = calls.split_once(" except ").unwrap_or((calls, ""));
    if but.split(", ").any(|name| name == method.name()) {
        return false;
    }
    listed.split(", ").any(|name| match name {
        "all that read" => !changes(method),
        name => name == method.name() || name == method.parent_service().name(),
    })
}

/// Returns true if the published table lets a role make a call. A later row is more specific and takes precedence.
pub(crate) fn allowed(method: &MethodDescriptor, role: &str) -> bool {
    let readme = include_str!("../../../../proto/README.md");
    let (_, section) = readme.split_once("## Roles").expect("the section");
    let rows: Vec<Vec<&str>> = section.lines().filter_map(cells).collect();
    let column = rows[0].iter().position(|word| *word == role).expect("the role's column");
    let row = rows[2..].iter().rfind(|row| about(row[0], method));
    let row = row.unwrap_or_else(|| panic!("the table has no row for {}", method.name()));
    row[column] == "yes"
}

/// Makes a call with acme's key of a role. A stream counts as accepted when it has begun.
async fn call(harness: &Harness, rpc: &Rpc, role: &str, message: &[u8]) -> Result<(), tonic::Status> {
    let (line, secret) = (&harness.node.line, harness.acme.key(role));
    if rpc.streams() {
        return line.watch(Protocol::Grpc, rpc.method, secret, message).await.1;
    }
    line.call(Protocol::Grpc, rpc.method, secret, message).await.map(drop)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_role_may_what_the_table_says_and_nothing_else() {
    let harness = Harness::start().await;
    for rpc in all() {
        for (role, _) in ROLES {
            let request = rpc.request(&harness).await.encode_to_vec();
            let before = harness.node.state().await;
            let outcome = call(&harness, &rpc, role, &request).await;
            if allowed(&rpc.descriptor(), role) {
                if rpc.is_about_a_lease() && role != rpc.role() {
                    refused(outcome, "LEASE_LOST");
                    assert_eq!(
                        harness.node.state().await,
                        before,
                        "{} by {role} changed the state",
                        rpc.method
                    );
                    continue;
                }
                outcome.unwrap_or_else(|status| panic!("{} with a key of {role}: {status:?}", rpc.method));
                continue;
            }
            let refusal = refused(outcome, "ROLE_NOT_ALLOWED");
            assert_eq!(refusal.metadata["role"], role, "{}", rpc.method);
            assert_eq!(harness.node.state().await, before, "{} by {role} changed the state", rpc.method);
        }
    }
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_is_kept_from_all_that_could_pass_a_gate() {
    let harness = Harness::start().await;
    let rpcs = all();
    for method in NEVER_AN_AGENT {
        let rpc = rpcs.iter().find(|rpc| rpc.method == method).expect("a row");
        let request = rpc.request(&harness).await.encode_to_vec();
        for protocol in
            Protocol::ALL.into_iter().filter(|protocol| !rpc.streams() || *protocol != Protocol::Json)
        {
            let outcome = harness.node.line.call(protocol, method, harness.acme.key("agent"), &request).await;
            let refusal = refused(outcome, "ROLE_NOT_ALLOWED");
            assert_eq!(refusal.code, tonic::Code::PermissionDenied, "{method}");
        }
    }
    let rest: Vec<&str> = rpcs
        .iter()
        .filter(|rpc| rpc.changes() && !NEVER_AN_AGENT.contains(&rpc.method))
        .map(|rpc| rpc.method)
        .collect();
    // Decide here for every new call that changes something: may an agent make it?
    assert_eq!(
        rest,
        [
            "AnswerCheckpoint",
            "PostMessage",
            "EndTurn",
            "RecordData",
            "SignalCompletion",
            "RetryState",
            "SwitchWorkflow",
            "StartSession",
            "AuthorizeToolCall",
            "SendEmail",
            "ReportToolUsage",
            "ReportUsage",
        ]
    );
    harness.node.end().await;
}

/// The calls about tenants, with names of existing tenants and of one that never existed.
fn about_tenants() -> Vec<(&'static str, Vec<u8>)> {
    let mut calls = vec![("ListTenants", Vec::new()), ("CreateTenant", created(""))];
    for tenant_id in ["acme", "globex", "never", "tenants/acme", "-", ""].map(str::to_owned) {
        let quotas = Some(v1::Quotas { sessions: Some(1), ..Default::default() });
        let set = v1::SetTenantQuotasRequest { tenant_id: tenant_id.clone(), quotas, ..Default::default() };
        let get = v1::GetTenantQuotasRequest { tenant_id: tenant_id.clone(), ..Default::default() };
        calls.extend([
            ("CreateTenant", created(&tenant_id)),
            ("SetTenantQuotas", set.encode_to_vec()),
            ("GetTenantQuotas", get.encode_to_vec()),
            ("DeleteTenant", v1::DeleteTenantRequest { tenant_id, ..Default::default() }.encode_to_vec()),
        ]);
    }
    calls
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_an_admin_of_the_first_tenant_learns_of_other_tenants() {
    let harness = Harness::start().await;
    let mut tried = 0;
    for (role, _) in ROLES {
        let (mut seen, before): (Vec<Refusal>, _) = (Vec::new(), harness.node.state().await);
        for (method, request) in about_tenants() {
            for protocol in Protocol::ALL {
                let outcome =
                    harness.node.line.call(protocol, method, harness.globex.key(role), &request).await;
                seen.push(refused(outcome, "ROLE_NOT_ALLOWED").with(method, "METHOD"));
            }
        }
        assert!(seen.iter().all(|refusal| *refusal == seen[0]), "{role}: {seen:?}");
        assert_eq!(harness.node.state().await, before, "a call by {role} changed the state");
        tried += seen.len();
    }
    assert_eq!(tried, ROLES.len() * about_tenants().len() * Protocol::ALL.len());
    harness.node.end().await;
}

fn created(tenant: &str) -> Vec<u8> {
    v1::CreateTenantRequest { tenant_id: tenant.to_owned(), ..Default::default() }.encode_to_vec()
}
