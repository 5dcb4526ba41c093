//! Creates a server's first tenant and keys for the owner of its data folder, without a credential.

use switchward_api::v1;
use switchward_machine::TenantId;
use switchward_query::{GetTenant, ListTenantNames};
use switchward_state::Actor;
use switchward_state::catalogue::Settings;

use super::{api_keys, tenants};
use crate::api::{Api, Call};
use crate::auth::Caller;
use crate::error::Refusal;

/// Creates a tenant and its first admin key, on behalf of the server itself.
///
/// # Errors
/// As CreateTenant of TenantService.
pub async fn create_tenant(
    api: &Api,
    message: v1::CreateTenantRequest,
) -> Result<v1::CreateTenantResponse, Refusal> {
    tenants::create(&call(api, TenantId(0), String::new()), message).await
}

/// Creates a key of a tenant, on behalf of the server itself.
///
/// # Errors
/// NOT_FOUND for an unknown tenant; else as CreateApiKey of ApiKeyService.
pub async fn create_api_key(
    api: &Api,
    tenant: &str,
    message: v1::CreateApiKeyRequest,
) -> Result<v1::CreateApiKeyResponse, Refusal> {
    let row = api.ask(&GetTenant { name: tenant.to_owned() }).await?;
    let row = row.ok_or_else(|| Refusal::not_found("tenant", tenant))?;
    api_keys::create(&call(api, row.id, row.name.clone()), message).await
}

/// The names of all tenants, in order.
///
/// # Errors
/// INTERNAL_ERROR if the rows cannot be read.
pub fn tenant_names(api: &Api) -> Result<Vec<String>, Refusal> {
    api.ask_stale(&ListTenantNames {})
}

fn call(api: &Api, tenant: TenantId, tenant_name: String) -> Call<'_> {
    let caller = Caller {
        tenant,
        tenant_name,
        settings: Settings::default(),
        actor: Actor::server(),
        key_id: String::new(),
    };
    Call { api, caller, trace: None }
}
