//! `switchward tenant quotas`.

use switchward_api::v1;

use crate::args::{Limit, TenantQuotas, Weight};
use crate::commands::client::show;
use crate::commands::client::talk::Talk;
use crate::exit::Exit;
use crate::output::{Table, card, clean};

pub(super) async fn run(talk: &Talk, which: TenantQuotas) -> Result<(), Exit> {
    let TenantQuotas { tenant, requests_per_second, sessions, bytes, weight } = which;
    let wished = [
        ("requests_per_second", requests_per_second.is_some()),
        ("sessions", sessions.is_some()),
        ("bytes", bytes.is_some()),
        ("weight", weight.is_some()),
    ];
    let paths: Vec<String> =
        wished.iter().filter(|(_, wished)| *wished).map(|(path, _)| (*path).to_owned()).collect();
    if paths.is_empty() {
        return get(talk, tenant).await;
    }
    let value = |limit: Option<Limit>| limit.and_then(|Limit(value)| value);
    let quotas = v1::Quotas {
        requests_per_second: value(requests_per_second),
        sessions: value(sessions),
        bytes: value(bytes),
        weight: weight.and_then(|Weight(value)| value),
    };
    let request = v1::SetTenantQuotasRequest {
        tenant_id: tenant.clone(),
        quotas: Some(quotas),
        update_mask: Some(prost_types::FieldMask { paths }),
        request_id: talk.request_id(),
        ..v1::SetTenantQuotasRequest::default()
    };
    let reply = talk
        .client
        .call(request, |mut it, request| async move { it.tenants.set_tenant_quotas(request).await })
        .await;
    reply.map_err(|status| Exit::refused(&status).calling("tenant_id", "TENANT"))?;
    get(talk, tenant).await
}

async fn get(talk: &Talk, tenant_id: String) -> Result<(), Exit> {
    let request = v1::GetTenantQuotasRequest { tenant_id, ..v1::GetTenantQuotasRequest::default() };
    let reply = talk
        .client
        .call(request, |mut it, request| async move { it.tenants.get_tenant_quotas(request).await })
        .await;
    let reply = reply.map_err(|status| Exit::refused(&status).calling("tenant_id", "TENANT"))?;
    talk.printer
        .message("GetTenantQuotasResponse", &reply, || shown(reply.tenant.as_ref(), &reply.quota_uses))
}

fn shown(tenant: Option<&v1::Tenant>, uses: &[v1::QuotaUse]) -> String {
    let name = tenant.map(|tenant| clean(show::id(&tenant.name))).unwrap_or_default();
    let weight = tenant.and_then(|tenant| tenant.quotas.and_then(|quotas| quotas.weight));
    let weight = weight.map_or_else(|| "1 (default)".to_owned(), |weight| weight.to_string());
    format!("{}\n{}", card(&[("tenant", name), ("weight", weight)]), table(uses))
}

/// Each quota, its use, and where it is set.
pub(super) fn table(uses: &[v1::QuotaUse]) -> String {
    let mut table = Table::new(&["QUOTA", "USED", "LIMIT", "SET_IN"]);
    for one in uses {
        let set_in = match one.set_in() {
            v1::QuotaSource::Unspecified => "",
            v1::QuotaSource::Tenant => "tenant",
            v1::QuotaSource::Configuration => "configuration",
            v1::QuotaSource::Default => "default",
        };
        table.row([
            clean(&one.quota),
            one.used.map_or_else(|| "not counted".to_owned(), |used| used.to_string()),
            if one.limit == 0 { "none".to_owned() } else { one.limit.to_string() },
            set_in.to_owned(),
        ]);
    }
    table.text("no quotas")
}
