//! TenantService: creates, updates and deletes tenants, and sets their quotas.

use switchward_api::v1::{self, tenant_service_server::TenantService};
use switchward_machine::TenantId;
use switchward_query::{GetTenant, GetTenantRecord, ListTenants};
use switchward_state::catalogue::{
    CatalogueCommand, CreateKey, CreateTenant, DefaultEffect, DefaultSetIn, DeleteTenant, EnsureTenancy,
    LinkAuth, Role, Settings, Tenant, UpdateTenant,
};
use switchward_state::limits::{BROWSER_KNOWN_MS_MAX, BROWSER_KNOWN_MS_MIN};
use switchward_state::{Reply, RequestId, Scope};
use tonic::{Request, Response, Status};

use super::{policies, quotas};
use crate::api::{Api, Call, request_id};
use crate::auth::{Caller, NewKey, roles};
use crate::convert::keys::api_key;
use crate::convert::{duration, known, ms_of, timestamp};
use crate::error::{Reason, Refusal};
use crate::limits::TENANT_TRIES_MAX;
use crate::mask::Mask;
use crate::pages::{Page, order};
use crate::refusals::{named, odd};
use crate::sealing;

type Answered<T> = Result<Response<T>, Status>;

/// The server's first tenant, whose admins look after the others.
pub(super) const FIRST: TenantId = TenantId(1);
/// The longest `display_name` of a tenant, bytes.
const DISPLAY_NAME_BYTES_MAX: usize = 128;
/// The fields of a tenant that can be changed.
const SWITCHES: [&str; 5] =
    ["default_effect", "allow_foreign_role", "any_approver_address", "link_auth", "browser_known_time"];
/// A tenant's id, characters.
const NAME_CHARS_MAX: usize = 63;

#[tonic::async_trait]
impl TenantService for Api {
    async fn create_tenant(
        &self,
        request: Request<v1::CreateTenantRequest>,
    ) -> Answered<v1::CreateTenantResponse> {
        let (call, message) = self.open(request, roles::ADMIN)?;
        first(&call.caller)?;
        // Two commands: a caller who disconnects in between must not leave a tenant without a key.
        let (api, caller) = (self.clone(), call.caller.clone());
        let made =
            tokio::spawn(async move { create(&Call { api: &api, caller, trace: None }, message).await });
        let made = made.await.map_err(|_| Refusal::new(Reason::InternalError, "failed to create the tenant"));
        Ok(Response::new(made??))
    }

    async fn get_tenant(&self, request: Request<v1::GetTenantRequest>) -> Answered<v1::GetTenantResponse> {
        let (call, message) = self.open(request, roles::ANY)?;
        let mask = Mask::read("Tenant", message.read_mask)?;
        let name = own(&call.caller, "name", &message.name)?;
        let row = tenant(&call, &name).await?;
        let quota_uses = if mask.wants("quotas") { quotas::uses(self, &row)? } else { Vec::new() };
        let policies = policies::of_tenant(&call).await?;
        let tenant = v1::Tenant { policies, effects_held_time: held(&call).await?, ..of_tenant(&row) };
        Ok(Response::new(v1::GetTenantResponse { tenant: Some(mask.keep(tenant)), quota_uses }))
    }

    async fn get_tenant_quotas(
        &self,
        request: Request<v1::GetTenantQuotasRequest>,
    ) -> Answered<v1::GetTenantQuotasResponse> {
        let (call, message) = self.open(request, roles::ADMIN)?;
        first(&call.caller)?;
        let mask = Mask::read("Tenant", message.read_mask)?;
        let row = tenant(&call, &message.tenant_id).await?;
        let quota_uses = if mask.wants("quotas") { quotas::uses(self, &row)? } else { Vec::new() };
        let tenant = Some(mask.keep(of_tenant(&row)));
        Ok(Response::new(v1::GetTenantQuotasResponse { tenant, quota_uses }))
    }

    async fn set_tenant_quotas(
        &self,
        request: Request<v1::SetTenantQuotasRequest>,
    ) -> Answered<v1::SetTenantQuotasResponse> {
        let (call, message) = self.open(request, roles::ADMIN)?;
        first(&call.caller)?;
        let row = tenant(&call, &message.tenant_id).await?;
        let row = quotas::set(&call, &row, message).await?;
        Ok(Response::new(v1::SetTenantQuotasResponse { tenant: Some(of_tenant(&row)) }))
    }

    async fn list_tenants(
        &self,
        request: Request<v1::ListTenantsRequest>,
    ) -> Answered<v1::ListTenantsResponse> {
        let (call, message) = self.open(request, roles::ADMIN)?;
        first(&call.caller)?;
        let mask = Mask::read("Tenant", message.read_mask)?;
        order(&message.order_by, "name")?;
        let page = Page::read(message.page_size, &message.page_token, &["tenants"])?;
        let found = call.ask(&ListTenants { bounds: page.bounds() }).await?;
        let (tenants, next_page_token) = page.shown(&found, of_tenant);
        let tenants = mask.keep_each(tenants);
        Ok(Response::new(v1::ListTenantsResponse { tenants, next_page_token }))
    }

    async fn update_tenant(
        &self,
        request: Request<v1::UpdateTenantRequest>,
    ) -> Answered<v1::UpdateTenantResponse> {
        let (call, message) = self.open(request, roles::ADMIN)?;
        let request = request_id(&message.request_id, "UpdateTenant", &message)?;
        let Some(requested) = message.tenant else {
            return Err(Refusal::field("tenant", "is required").into());
        };
        let name = own(&call.caller, "tenant.name", &requested.name)?;
        let paths = message.update_mask.map(|mask| mask.paths).unwrap_or_default();
        let all = paths.is_empty();
        let switch = |path: &&String| SWITCHES.contains(&path.as_str());
        if let Some(path) = paths.iter().find(|path| !switch(path)) {
            return Err(Refusal::field("update_mask", format!("has the unknown path {path}")).into());
        }
        let named = |path: &str| all || paths.iter().any(|known| known == path);
        let change = |row: &Tenant, etag| {
            let settings = changed(row.settings, &requested, named, self)?;
            Ok(CatalogueCommand::UpdateTenant(UpdateTenant { name: name.clone(), settings, etag }))
        };
        let row = change_row(&call, request, &name, &requested.etag, change).await?;
        Ok(Response::new(v1::UpdateTenantResponse { tenant: Some(of_tenant(&row)) }))
    }

    async fn delete_tenant(
        &self,
        request: Request<v1::DeleteTenantRequest>,
    ) -> Answered<v1::DeleteTenantResponse> {
        let (call, message) = self.open(request, roles::ADMIN)?;
        first(&call.caller)?;
        let request = request_id(&message.request_id, "DeleteTenant", &message)?;
        let found = known_tenant(&call, &message.tenant_id).await?;
        if found.as_ref().is_some_and(|tenant| tenant.id == FIRST) {
            let message = "the server's first tenant cannot be deleted: its admins manage the others";
            return Err(Refusal::new(Reason::StateMismatch, message).into());
        }
        // A repeated request finds its reply after the tenant is gone, too.
        let id = found.map_or(TenantId(0), |tenant| tenant.id);
        let body = DeleteTenant { tenant: id, name: message.tenant_id.clone(), etag: message.etag };
        let reply = call.execute_in_own_scope(request, CatalogueCommand::DeleteTenant(body).into()).await;
        let reply = reply.map_err(|refusal| named(refusal, "tenant", &message.tenant_id))?;
        let Reply::Tenant(_) = reply else { return Err(odd(&reply).into()) };
        Ok(Response::new(v1::DeleteTenantResponse {}))
    }
}

/// Executes a change that follows from a tenant's row, and returns the row afterwards. If the caller gives no etag and
/// another change comes in between, it is derived again from the row as it is then: neither takes the other back.
pub(super) async fn change_row(
    call: &Call<'_>,
    request: Option<RequestId>,
    name: &str,
    etag: &str,
    change: impl Fn(&Tenant, String) -> Result<CatalogueCommand, Refusal>,
) -> Result<Box<Tenant>, Refusal> {
    let mut tries = 0;
    let reply = loop {
        tries += 1;
        let body = async {
            let row = tenant(call, name).await?;
            let seen = if etag.is_empty() { row.etag() } else { etag.to_owned() };
            Ok(change(&row, seen)?.into())
        };
        let again = etag.is_empty() && tries < TENANT_TRIES_MAX;
        match call.execute_prepared(Scope::Catalogue, request.clone(), body).await {
            Err(refused) if refused.reason() == Reason::EtagMismatch && again => {}
            done => break done?,
        }
    };
    if let Reply::Tenant(tenant) = reply { Ok(tenant) } else { Err(odd(&reply)) }
}

/// The settings with the switches that an update names.
fn changed(
    mut settings: Settings,
    requested: &v1::Tenant,
    named: impl Fn(&str) -> bool,
    api: &Api,
) -> Result<Settings, Refusal> {
    if named("default_effect") {
        settings = effect("tenant.default_effect", requested.default_effect, settings)?;
    }
    if named("allow_foreign_role") {
        settings.allow_foreign_role = requested.allow_foreign_role;
    }
    if named("any_approver_address") {
        settings.any_approver_address = requested.any_approver_address;
    }
    if named("link_auth") {
        settings.link_auth = link_auth(requested.link_auth, api)?;
    }
    if named("browser_known_time") {
        settings.browser_known_ms = browser_known(requested.browser_known_time)?;
    }
    Ok(settings)
}

/// Returns since when the effects of the caller's tenant are held.
async fn held(call: &Call<'_>) -> Result<Option<prost_types::Timestamp>, Refusal> {
    let found = call.ask(&GetTenantRecord { tenant: call.caller.tenant }).await?;
    Ok(found.and_then(|record| record.held).map(timestamp))
}

/// A short text for people.
pub(super) fn check_display_text(field: &str, text: &str) -> Result<(), Refusal> {
    if text.len() > DISPLAY_NAME_BYTES_MAX || text.chars().any(char::is_control) {
        let message = format!("must be at most {DISPLAY_NAME_BYTES_MAX} bytes without control characters");
        return Err(Refusal::field(field, message));
    }
    Ok(())
}

/// Refuses callers outside of the first tenant: only its admins see other tenants.
fn first(caller: &Caller) -> Result<(), Refusal> {
    if caller.tenant == FIRST {
        return Ok(());
    }
    let message = "only an admin key of the server's first tenant may create, list and delete tenants and read and set \
                   their quotas";
    Err(Refusal::new(Reason::RoleNotAllowed, message))
}

/// The caller's own tenant; any other does not exist.
fn own(caller: &Caller, field: &str, name: &str) -> Result<String, Refusal> {
    crate::names::parent(caller, field, name)?;
    Ok(caller.tenant_name.clone())
}

pub(super) async fn create(
    call: &Call<'_>,
    message: v1::CreateTenantRequest,
) -> Result<v1::CreateTenantResponse, Refusal> {
    let request = request_id(&message.request_id, "CreateTenant", &message)?;
    let requested = message.tenant.unwrap_or_default();
    check_display_text("tenant.display_name", &requested.display_name)?;
    let name = message.tenant_id;
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if !(1..=NAME_CHARS_MAX).contains(&name.len()) || !name.chars().all(fits) {
        let problem = format!("must be 1 to {NAME_CHARS_MAX} characters of a-z, 0-9 and -");
        return Err(Refusal::field("tenant_id", problem));
    }
    let any_approver_address = requested.any_approver_address;
    let settings = Settings {
        allow_foreign_role: requested.allow_foreign_role,
        any_approver_address,
        ..Settings::default()
    };
    let settings = effect("tenant.default_effect", requested.default_effect, settings)?;
    let settings = Settings {
        link_auth: link_auth(requested.link_auth, call.api)?,
        browser_known_ms: browser_known(requested.browser_known_time)?,
        quotas: quotas::requested("tenant.quotas", requested.quotas.as_ref())?,
        ..settings
    };
    let body = CreateTenant { name: name.clone(), display_name: requested.display_name, settings };
    let reply = call.execute_in_own_scope(request.clone(), CatalogueCommand::CreateTenant(body).into()).await;
    let reply = reply.map_err(|refusal| {
        let taken = refusal.reason() == Reason::AlreadyExists;
        if taken { refusal.resource("tenant", format!("tenants/{name}")) } else { refusal }
    })?;
    let Reply::Tenant(tenant) = reply else { return Err(odd(&reply)) };
    let mut inside = Call { api: call.api, caller: call.caller.clone(), trace: None };
    inside.caller.tenant = tenant.id;
    inside.caller.tenant_name.clone_from(&name);
    let ensure = CatalogueCommand::EnsureTenancy(EnsureTenancy {
        any_approver_address,
        link_auth: settings.link_auth,
        key: sealing::mail_key(&call.api.cluster.ring(), inside.caller.tenant),
    })
    .into();
    // The tenant exists: repeated with its request id, the call goes on from here.
    inside.execute_in_own_scope(None, ensure).await.map_err(Refusal::after_part)?;
    let key = NewKey::draw();
    let body = CreateKey {
        id: key.id.clone(),
        tenant_name: name.clone(),
        hash: key.hash,
        role: Role::Admin,
        subject: key.id.clone(),
        display_name: "first admin".into(),
        expires: None,
    };
    let create = CatalogueCommand::CreateKey(body).into();
    let reply = inside.execute_in_own_scope(request, create).await.map_err(Refusal::after_part)?;
    let Reply::Key(made) = reply else { return Err(odd(&reply)) };
    let fresh = made.id == key.id;
    Ok(v1::CreateTenantResponse {
        tenant: Some(of_tenant(&tenant)),
        admin_key: Some(api_key(&inside.caller, &made)),
        admin_secret: if fresh { key.secret } else { String::new() },
    })
}

async fn tenant(call: &Call<'_>, name: &str) -> Result<Tenant, Refusal> {
    known_tenant(call, name).await?.ok_or_else(|| Refusal::not_found("tenant", name))
}

/// The tenant of this name; `None` if there is none.
async fn known_tenant(call: &Call<'_>, name: &str) -> Result<Option<Tenant>, Refusal> {
    let found = call.ask(&GetTenant { name: name.to_owned() }).await?;
    Ok(found.map(|tenant| Tenant::clone(&tenant)))
}

/// Returns the settings with the tenant's effect for calls that no rule names; unspecified: no setting of its own.
fn effect(field: &str, effect: i32, settings: Settings) -> Result<Settings, Refusal> {
    let (default_effect, default_set_in) = match known(field, effect)? {
        v1::DefaultEffect::Unspecified => (DefaultEffect::Allow, DefaultSetIn::Source),
        v1::DefaultEffect::Allow => (DefaultEffect::Allow, DefaultSetIn::Tenant),
        v1::DefaultEffect::Ask => (DefaultEffect::Ask, DefaultSetIn::Tenant),
        v1::DefaultEffect::Deny => (DefaultEffect::Deny, DefaultSetIn::Tenant),
    };
    Ok(Settings { default_effect, default_set_in, ..settings })
}

/// How decision pages recognise people; unspecified: no setting of its own.
///
/// # Errors
/// SIGN_IN_NOT_CONFIGURED if the server has no OpenID provider.
fn link_auth(requested: i32, api: &Api) -> Result<Option<LinkAuth>, Refusal> {
    match known("tenant.link_auth", requested)? {
        v1::LinkAuth::Unspecified => Ok(None),
        v1::LinkAuth::Link => Ok(Some(LinkAuth::Link)),
        v1::LinkAuth::Code => Ok(Some(LinkAuth::Code)),
        v1::LinkAuth::Oidc if api.sign_in.is_some() => Ok(Some(LinkAuth::Oidc)),
        v1::LinkAuth::Oidc => {
            let message = "this server has no OpenID provider; configure one under [mail.oidc]";
            Err(Refusal::new(Reason::SignInNotConfigured, message))
        }
    }
}

/// How long a browser stays known, milliseconds; absent: no setting of its own.
fn browser_known(requested: Option<prost_types::Duration>) -> Result<Option<u64>, Refusal> {
    let Some(requested) = requested else { return Ok(None) };
    match ms_of(requested) {
        Some(ms) if (BROWSER_KNOWN_MS_MIN..=BROWSER_KNOWN_MS_MAX).contains(&ms) => Ok(Some(ms)),
        Some(_) | None => Err(Refusal::field("tenant.browser_known_time", "must be 10 minutes to 365 days")),
    }
}

fn of_tenant(tenant: &Tenant) -> v1::Tenant {
    let said = match tenant.settings.default_effect {
        DefaultEffect::Allow => v1::DefaultEffect::Allow,
        DefaultEffect::Ask => v1::DefaultEffect::Ask,
        DefaultEffect::Deny => v1::DefaultEffect::Deny,
    };
    let silent = tenant.settings.default_set_in == DefaultSetIn::Source;
    let effect = if silent { v1::DefaultEffect::Unspecified } else { said };
    v1::Tenant {
        name: format!("tenants/{}", tenant.name),
        display_name: tenant.display_name.clone(),
        default_effect: effect.into(),
        allow_foreign_role: tenant.settings.allow_foreign_role,
        create_time: Some(timestamp(tenant.created)),
        update_time: Some(timestamp(tenant.updated)),
        etag: tenant.etag(),
        policies: Vec::new(),
        any_approver_address: tenant.settings.any_approver_address,
        delete_time: tenant.deleted.map(timestamp),
        effects_held_time: None,
        link_auth: match tenant.settings.link_auth {
            None => v1::LinkAuth::Unspecified,
            Some(LinkAuth::Link) => v1::LinkAuth::Link,
            Some(LinkAuth::Code) => v1::LinkAuth::Code,
            Some(LinkAuth::Oidc) => v1::LinkAuth::Oidc,
        }
        .into(),
        browser_known_time: tenant.settings.browser_known_ms.map(duration),
        quotas: quotas::of_quotas(tenant.settings.quotas),
    }
}
