//! ApiKeyService: creates, lists and revokes keys of a tenant.

use switchward_api::v1::{self, api_key_service_server::ApiKeyService};
use switchward_query::ListApiKeys;
use switchward_state::catalogue::{ApiKey, CatalogueCommand, CreateKey, KeySummary, RevokeKey, Role};
use switchward_state::{Body, Reply, SharedRow};
use tonic::{Request, Response, Status};

use super::tenants::check_display_text;
use crate::api::{Api, Call, request_id};
use crate::auth::{NewKey, roles};
use crate::convert::keys::api_key;
use crate::convert::{known, time};
use crate::error::Refusal;
use crate::mask::Mask;
use crate::names;
use crate::pages::{Page, order};
use crate::refusals::{named, odd};

type Answered<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl ApiKeyService for Api {
    async fn create_api_key(
        &self,
        request: Request<v1::CreateApiKeyRequest>,
    ) -> Answered<v1::CreateApiKeyResponse> {
        let (call, message) = self.open(request, roles::ADMIN)?;
        Ok(Response::new(create(&call, message).await?))
    }

    async fn list_api_keys(
        &self,
        request: Request<v1::ListApiKeysRequest>,
    ) -> Answered<v1::ListApiKeysResponse> {
        let (call, message) = self.open(request, roles::ADMIN)?;
        names::parent(&call.caller, "parent", &message.parent)?;
        let mask = Mask::read("ApiKey", message.read_mask)?;
        order(&message.order_by, "create_time desc")?;
        let list = ["api keys", call.caller.tenant_name.as_str()];
        let page = Page::read(message.page_size, &message.page_token, &list)?;
        let keys = keys(&call).await?.into_iter().map(|key| {
            let newest = (u64::MAX - key.created.0).to_be_bytes();
            ([&newest, key.id.as_bytes()].concat(), api_key(&call.caller, &KeySummary::of(&key)))
        });
        let (api_keys, next_page_token) = page.cut(keys.collect());
        let api_keys = mask.keep_each(api_keys);
        Ok(Response::new(v1::ListApiKeysResponse { api_keys, next_page_token }))
    }

    async fn revoke_api_key(
        &self,
        request: Request<v1::RevokeApiKeyRequest>,
    ) -> Answered<v1::RevokeApiKeyResponse> {
        let (call, message) = self.open(request, roles::ADMIN)?;
        let request = request_id(&message.request_id, "RevokeApiKey", &message)?;
        let id = names::api_key(&call.caller, "name", &message.name)?;
        let body = Body::Catalogue(CatalogueCommand::RevokeKey(RevokeKey { id: id.to_owned() }));
        let reply = call.execute_in_own_scope(request, body).await;
        let reply = reply.map_err(|refusal| named(refusal, "API key", &message.name))?;
        let Reply::Key(key) = reply else { return Err(odd(&reply).into()) };
        Ok(Response::new(v1::RevokeApiKeyResponse { api_key: Some(api_key(&call.caller, &key)) }))
    }
}

/// Creates a key of the caller's tenant.
pub(super) async fn create(
    call: &Call<'_>,
    message: v1::CreateApiKeyRequest,
) -> Result<v1::CreateApiKeyResponse, Refusal> {
    names::parent(&call.caller, "parent", &message.parent)?;
    let request = request_id(&message.request_id, "CreateApiKey", &message)?;
    let role = role(known("role", message.role)?)?;
    check_display_text("display_name", &message.display_name)?;
    check_display_text("subject", &message.subject)?;
    let expires = message.expire_time.map(|at| time("expire_time", at)).transpose()?;
    let key = NewKey::draw();
    let subject = if message.subject.is_empty() { key.id.clone() } else { message.subject };
    let body = CreateKey {
        id: key.id.clone(),
        tenant_name: call.caller.tenant_name.clone(),
        hash: key.hash,
        role,
        subject,
        display_name: message.display_name,
        expires,
    };
    let reply =
        call.execute_in_own_scope(request, Body::Catalogue(CatalogueCommand::CreateKey(body))).await?;
    let Reply::Key(made) = reply else { return Err(odd(&reply)) };
    // A repeated request finds the key that it made; its secret is not stored.
    let secret = if made.id == key.id { key.secret } else { String::new() };
    Ok(v1::CreateApiKeyResponse { api_key: Some(api_key(&call.caller, &made)), secret })
}

/// All keys of the caller's tenant.
async fn keys(call: &Call<'_>) -> Result<Vec<SharedRow<ApiKey>>, Refusal> {
    call.ask(&ListApiKeys { tenant: call.caller.tenant }).await
}

fn role(role: v1::KeyRole) -> Result<Role, Refusal> {
    match role {
        v1::KeyRole::Agent => Ok(Role::Agent),
        v1::KeyRole::Author => Ok(Role::Author),
        v1::KeyRole::Approver => Ok(Role::Approver),
        v1::KeyRole::Operator => Ok(Role::Operator),
        v1::KeyRole::Admin => Ok(Role::Admin),
        v1::KeyRole::Worker => Ok(Role::Worker),
        v1::KeyRole::Integration => Ok(Role::Integration),
        v1::KeyRole::Unspecified => Err(Refusal::field("role", "is required, for example KEY_ROLE_AGENT")),
    }
}
