//! Separate policies: attached to definitions, and set for the tenant.

use switchward_api::v1;
use switchward_query::GetTenantRecord;
use switchward_state::policy::{
    AttachPolicy, PolicyCommand, RemoveTenantPolicy, SetTenantPolicy, TenantPolicy,
};
use switchward_state::{Body, Reply};

use super::definitions::of_definition;
use crate::api::{Call, request_id};
use crate::convert::timestamp;
use crate::error::{Reason, Refusal};
use crate::refusals::{named, odd};
use crate::{names, sealing};

/// A change of the policies attached to a definition.
pub(super) struct Change<'m> {
    pub(super) definition: &'m str,
    pub(super) policy: &'m str,
    pub(super) attached: bool,
    pub(super) etag: &'m str,
    pub(super) request: Option<switchward_state::RequestId>,
}

/// Attaches or detaches a policy, and returns the definition afterwards.
pub(super) async fn change(call: &Call<'_>, change: Change<'_>) -> Result<v1::Definition, Refusal> {
    let name = names::definition(&call.caller, "definition", change.definition)?;
    let policy = names::definition(&call.caller, "policy", change.policy)?;
    let body = Body::Policy(PolicyCommand::AttachPolicy(AttachPolicy {
        definition: name.to_owned(),
        policy: policy.to_owned(),
        attached: change.attached,
        etag: change.etag.to_owned(),
    }));
    let reply = call.execute_in_own_scope(change.request, body).await;
    let reply = reply.map_err(|refusal| {
        // The fact names what the catalogue lacks.
        if refusal.has_meta("definition") {
            return named(refusal, "definition", change.definition);
        }
        if change.attached {
            return named(refusal, "definition", change.policy);
        }
        absent(refusal, change.policy, &format!("is not attached to {:?}", change.definition))
    })?;
    let Reply::Definition(row) = reply else { return Err(odd(&reply)) };
    Ok(of_definition(&call.caller, &row))
}

pub(super) async fn set(
    call: &Call<'_>,
    message: v1::SetTenantPolicyRequest,
) -> Result<v1::SetTenantPolicyResponse, Refusal> {
    let request = request_id(&message.request_id, "SetTenantPolicy", &message)?;
    let name = names::definition(&call.caller, "policy", &message.policy)?;
    let key = sealing::mail_key(&call.api.cluster.ring(), call.caller.tenant);
    let body = Body::Policy(PolicyCommand::SetTenantPolicy(SetTenantPolicy {
        name: name.to_owned(),
        version: message.version,
        key,
    }));
    let reply = call.execute_in_own_scope(request, body).await;
    let reply = reply.map_err(|refusal| named(refusal, "definition", &message.policy))?;
    let Reply::Policy(policy) = reply else { return Err(odd(&reply)) };
    Ok(v1::SetTenantPolicyResponse { policy: Some(shown(call, *policy)) })
}

/// Removes a policy from the tenant. Fails if it is not set.
pub(super) async fn remove(
    call: &Call<'_>,
    message: v1::RemoveTenantPolicyRequest,
) -> Result<v1::RemoveTenantPolicyResponse, Refusal> {
    let request = request_id(&message.request_id, "RemoveTenantPolicy", &message)?;
    let not_set = |refusal| absent(refusal, &message.policy, "is not set for the tenant");
    let name = names::definition(&call.caller, "policy", &message.policy).map_err(not_set)?.to_owned();
    let body = Body::Policy(PolicyCommand::RemoveTenantPolicy(RemoveTenantPolicy { name }));
    let reply = call.execute_in_own_scope(request, body).await;
    reply.map_err(not_set)?;
    Ok(v1::RemoveTenantPolicyResponse {})
}

/// The refusal to take away a policy that does not apply; any other refusal is unchanged.
fn absent(refusal: Refusal, policy: &str, why: &str) -> Refusal {
    if refusal.reason() != Reason::NotFound {
        return refusal;
    }
    Refusal::new(Reason::NotFound, format!("the policy {policy:?} {why}")).resource("definition", policy)
}

/// The policies set for the tenant.
pub(super) async fn of_tenant(call: &Call<'_>) -> Result<Vec<v1::TenantPolicy>, Refusal> {
    Ok(list(call).await?.into_iter().map(|policy| shown(call, policy)).collect())
}

async fn list(call: &Call<'_>) -> Result<Vec<TenantPolicy>, Refusal> {
    let found = call.ask(&GetTenantRecord { tenant: call.caller.tenant }).await?;
    Ok(found.map(|record| record.policies.clone()).unwrap_or_default())
}

fn shown(call: &Call<'_>, policy: TenantPolicy) -> v1::TenantPolicy {
    v1::TenantPolicy {
        policy: names::of_definition(&call.caller, &policy.name),
        version: policy.version,
        set_by: policy.by,
        set_time: Some(timestamp(policy.at)),
    }
}
