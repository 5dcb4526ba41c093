//! `switchward policy`: attaches policies to definitions and to the tenant.

use switchward_api::v1;
use switchward_messages::cli;

use super::show;
use super::talk::Talk;
use crate::args::{AttachPolicy, DetachPolicy, PolicyCommand};
use crate::exit::Exit;
use crate::output::{Table, clean};

pub(super) async fn run(talk: &Talk, what: PolicyCommand) -> Result<(), Exit> {
    match what {
        PolicyCommand::Attach(attach) => self::attach(talk, attach).await,
        PolicyCommand::Detach(detach) => self::detach(talk, detach).await,
        PolicyCommand::List => list(talk).await,
    }
}

async fn attach(talk: &Talk, attach: AttachPolicy) -> Result<(), Exit> {
    let AttachPolicy { policy, to, version, .. } = attach;
    let Some(definition) = to else {
        let request = v1::SetTenantPolicyRequest { policy, version, request_id: talk.request_id() };
        let reply = talk
            .client
            .call(request, |mut it, request| async move { it.policy.set_tenant_policy(request).await });
        let reply = reply.await?;
        let policies: Vec<v1::TenantPolicy> = reply.policy.clone().into_iter().collect();
        return talk.printer.message("SetTenantPolicyResponse", &reply, || table(&policies));
    };
    let request = v1::AttachPolicyRequest {
        definition,
        policy,
        expected_etag: String::new(),
        request_id: talk.request_id(),
    };
    let reply =
        talk.client.call(request, |mut it, request| async move { it.policy.attach_policy(request).await });
    let reply = reply.await?;
    let definition = reply.definition.clone().unwrap_or_default();
    talk.printer.message("AttachPolicyResponse", &reply, || show::definition(&definition))
}

async fn detach(talk: &Talk, detach: DetachPolicy) -> Result<(), Exit> {
    let DetachPolicy { policy, from, .. } = detach;
    let Some(definition) = from else {
        let request = v1::RemoveTenantPolicyRequest { policy, request_id: talk.request_id() };
        let reply = talk
            .client
            .call(request, |mut it, request| async move { it.policy.remove_tenant_policy(request).await });
        let reply = reply.await?;
        let text = || format!("{}\n", cli::client::DETACHED);
        return talk.printer.message("RemoveTenantPolicyResponse", &reply, text);
    };
    let request = v1::DetachPolicyRequest {
        definition,
        policy,
        expected_etag: String::new(),
        request_id: talk.request_id(),
    };
    let reply =
        talk.client.call(request, |mut it, request| async move { it.policy.detach_policy(request).await });
    let reply = reply.await?;
    let definition = reply.definition.clone().unwrap_or_default();
    talk.printer.message("DetachPolicyResponse", &reply, || show::definition(&definition))
}

async fn list(talk: &Talk) -> Result<(), Exit> {
    let request = v1::GetTenantRequest { name: "tenants/-".into(), ..v1::GetTenantRequest::default() };
    let reply =
        talk.client.call(request, |mut it, request| async move { it.tenants.get_tenant(request).await });
    let reply = reply.await?;
    let policies = reply.tenant.clone().unwrap_or_default().policies;
    talk.printer.message("GetTenantResponse", &reply, || table(&policies))
}

fn table(policies: &[v1::TenantPolicy]) -> String {
    let mut table = Table::new(&["POLICY", "VERSION", "SET_BY", "SET_TIME"]);
    for policy in policies {
        let name = show::definition_of(&policy.policy).to_owned();
        let since = show::time(policy.set_time.as_ref());
        table.row([clean(&name), policy.version.to_string(), clean(&policy.set_by), since]);
    }
    table.text("no policies")
}
