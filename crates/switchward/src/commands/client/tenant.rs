//! `switchward tenant`.

use switchward_api::v1;
use switchward_messages::cli;

mod quotas;

use super::admin::{rows as key_rows, with_secret};
use super::show;
use super::talk::Talk;
use crate::args::{
    CreateTenant, DefaultEffect, DeleteTenant, GetTenant, LinkAuth, Page, SetTenant, TenantCommand,
};
use crate::exit::Exit;
use crate::output::{Table, card, clean, period};

/// The maximum number of tenants of one call.
const PAGE: u32 = 1_000;
/// The default number of listed tenants.
const LIMIT: usize = 100;

pub(super) async fn run(talk: &Talk, what: TenantCommand) -> Result<(), Exit> {
    match what {
        TenantCommand::Create(create) => self::create(talk, create).await,
        TenantCommand::Get(get) => self::get(talk, get).await,
        TenantCommand::List(page) => list(talk, page).await,
        TenantCommand::Set(set) => self::set(talk, set).await,
        TenantCommand::Quotas(which) => quotas::run(talk, which).await,
        TenantCommand::Delete(delete) => self::delete(talk, delete).await,
    }
}

async fn delete(talk: &Talk, delete: DeleteTenant) -> Result<(), Exit> {
    if !delete.yes {
        talk.sure(&format!("deleting the tenant {} and all its data", delete.tenant))?;
    }
    let request = v1::DeleteTenantRequest {
        tenant_id: delete.tenant.clone(),
        request_id: talk.request_id(),
        ..v1::DeleteTenantRequest::default()
    };
    let reply =
        talk.client.call(request, |mut it, request| async move { it.tenants.delete_tenant(request).await });
    let reply = reply.await?;
    talk.printer.message("DeleteTenantResponse", &reply, || card(&[("deleted", clean(&delete.tenant))]))
}

async fn create(talk: &Talk, create: CreateTenant) -> Result<(), Exit> {
    let tenant = v1::Tenant {
        display_name: create.display_name.unwrap_or_default(),
        default_effect: effect(create.default_effect).into(),
        allow_foreign_role: create.allow_foreign_role,
        ..v1::Tenant::default()
    };
    let request = v1::CreateTenantRequest {
        tenant_id: create.tenant,
        tenant: Some(tenant),
        request_id: talk.request_id(),
    };
    let reply = talk
        .client
        .call(request, |mut it, request| async move { it.tenants.create_tenant(request).await })
        .await;
    let reply = reply.map_err(|status| Exit::refused(&status).calling("tenant_id", "TENANT"))?;
    talk.printer.message("CreateTenantResponse", &reply, || created(&reply))
}

/// A new tenant and its first key.
pub(in crate::commands) fn created(reply: &v1::CreateTenantResponse) -> String {
    let tenant = shown(&reply.tenant.clone().unwrap_or_default());
    let key = key_rows(&reply.admin_key.clone().unwrap_or_default());
    format!("{tenant}\n{}", with_secret(key, &reply.admin_secret))
}

async fn get(talk: &Talk, get: GetTenant) -> Result<(), Exit> {
    let request = v1::GetTenantRequest { name: get.tenant, ..v1::GetTenantRequest::default() };
    let reply =
        talk.client.call(request, |mut it, request| async move { it.tenants.get_tenant(request).await });
    let reply = reply.await?;
    let tenant = reply.tenant.clone().unwrap_or_default();
    talk.printer.message("GetTenantResponse", &reply, || {
        format!("{}\n{}", shown(&tenant), quotas::table(&reply.quota_uses))
    })?;
    if tenant.effects_held_time.is_some() {
        talk.printer.advice(
            "switchward list effects, then: switchward effect release   (effects are held until then)",
        );
    }
    Ok(())
}

async fn set(talk: &Talk, set: SetTenant) -> Result<(), Exit> {
    let mut tenant = v1::Tenant { name: set.tenant, ..v1::Tenant::default() };
    let mut paths = Vec::new();
    if let Some(default) = set.switches.default_effect {
        tenant.default_effect = effect(Some(default)).into();
        paths.push("default_effect".to_owned());
    }
    if let Some(allow) = set.switches.allow_foreign_role {
        tenant.allow_foreign_role = allow;
        paths.push("allow_foreign_role".to_owned());
    }
    if let Some(any) = set.switches.any_approver_address {
        tenant.any_approver_address = any;
        paths.push("any_approver_address".to_owned());
    }
    if let Some(how) = set.switches.link_auth {
        let how = match how {
            LinkAuth::Link => v1::LinkAuth::Link,
            LinkAuth::Code => v1::LinkAuth::Code,
            LinkAuth::Oidc => v1::LinkAuth::Oidc,
            LinkAuth::Default => v1::LinkAuth::Unspecified,
        };
        tenant.link_auth = how.into();
        paths.push("link_auth".to_owned());
    }
    if let Some(time) = set.switches.browser_known {
        let time = prost_types::Duration::try_from(time);
        tenant.browser_known_time = time.ok();
        paths.push("browser_known_time".to_owned());
    }
    let request = v1::UpdateTenantRequest {
        tenant: Some(tenant),
        update_mask: Some(prost_types::FieldMask { paths }),
        request_id: talk.request_id(),
    };
    let reply =
        talk.client.call(request, |mut it, request| async move { it.tenants.update_tenant(request).await });
    let reply = reply.await?;
    let tenant = reply.tenant.clone().unwrap_or_default();
    talk.printer.message("UpdateTenantResponse", &reply, || shown(&tenant))
}

async fn list(talk: &Talk, page: Page) -> Result<(), Exit> {
    let limit = match page.limit {
        None => LIMIT,
        Some(0) => usize::MAX,
        Some(limit) => limit,
    };
    let mut whole = v1::ListTenantsResponse {
        next_page_token: page.page_token.unwrap_or_default(),
        ..v1::ListTenantsResponse::default()
    };
    loop {
        let left = u32::try_from(limit - whole.tenants.len()).unwrap_or(PAGE).min(PAGE);
        let request = v1::ListTenantsRequest {
            page_size: left,
            page_token: std::mem::take(&mut whole.next_page_token),
            ..v1::ListTenantsRequest::default()
        };
        let part = talk
            .client
            .call(request, |mut it, request| async move { it.tenants.list_tenants(request).await })
            .await?;
        whole.tenants.extend(part.tenants);
        whole.next_page_token = part.next_page_token;
        if whole.next_page_token.is_empty() || whole.tenants.len() >= limit {
            break;
        }
    }
    talk.printer.list("ListTenantsResponse", &whole, "Tenant", &whole.tenants, || table(&whole.tenants))?;
    if !whole.next_page_token.is_empty() {
        talk.printer.advice(&format!("there are more entries: --page-token {}", whole.next_page_token));
    }
    Ok(())
}

fn table(tenants: &[v1::Tenant]) -> String {
    let mut table = Table::new(&["TENANT", "DISPLAY_NAME", "DEFAULT_EFFECT", "CREATE_TIME"]);
    for tenant in tenants {
        table.row([
            clean(show::id(&tenant.name)),
            clean(&tenant.display_name),
            show::word(tenant.default_effect().as_str_name(), "DEFAULT_EFFECT_"),
            show::time(tenant.create_time.as_ref()),
        ]);
    }
    table.text("no tenants")
}

/// The effect for calls that no rule matches, and its source if the tenant does not set it.
fn default_of(tenant: &v1::Tenant) -> String {
    let effect = tenant.default_effect();
    if effect == v1::DefaultEffect::Unspecified {
        return cli::client::NO_DEFAULT_EFFECT.into();
    }
    show::word(effect.as_str_name(), "DEFAULT_EFFECT_")
}

/// How decision pages authenticate people.
fn link_auth_of(tenant: &v1::Tenant) -> String {
    match tenant.link_auth() {
        v1::LinkAuth::Unspecified => "not set (from the server's configuration)".into(),
        set @ (v1::LinkAuth::Link | v1::LinkAuth::Code | v1::LinkAuth::Oidc) => {
            show::word(set.as_str_name(), "LINK_AUTH_")
        }
    }
}

fn shown(tenant: &v1::Tenant) -> String {
    let browser = tenant.browser_known_time.map(|time| period(show::length(time)));
    card(&[
        ("tenant", clean(show::id(&tenant.name))),
        ("display_name", clean(&tenant.display_name)),
        ("default_effect", default_of(tenant)),
        ("allow_foreign_role", tenant.allow_foreign_role.to_string()),
        ("any_approver_address", tenant.any_approver_address.to_string()),
        ("link_auth", link_auth_of(tenant)),
        ("browser_known_time", browser.unwrap_or_default()),
        ("create_time", show::time(tenant.create_time.as_ref())),
        ("update_time", show::time(tenant.update_time.as_ref())),
        ("effects_held_time", show::time(tenant.effects_held_time.as_ref())),
        ("delete_time", show::time(tenant.delete_time.as_ref())),
    ])
}

/// The default effect of an option; unspecified if the option is absent.
pub(in crate::commands) fn effect(default: Option<DefaultEffect>) -> v1::DefaultEffect {
    match default {
        None => v1::DefaultEffect::Unspecified,
        Some(DefaultEffect::Allow) => v1::DefaultEffect::Allow,
        Some(DefaultEffect::Ask) => v1::DefaultEffect::Ask,
        Some(DefaultEffect::Deny) => v1::DefaultEffect::Deny,
    }
}
