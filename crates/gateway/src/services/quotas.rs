//! Quotas of tenants, for TenantService.

use switchward_api::v1;
use switchward_state::catalogue::{CatalogueCommand, PutQuotas, Quota, Quotas, Tenant};
use switchward_state::limits::{QUOTA_MAX, WEIGHT_MAX};

use super::tenants::change_row;
use crate::api::{Api, Call, request_id};
use crate::error::Refusal;
use crate::quotas::SetIn;
use crate::refusals::{named, refusal};

/// The path of the weight, which is set with the quotas but is not a quota.
const WEIGHT: &str = "weight";

/// Returns the requested quotas.
///
/// # Errors
/// FIELD_INVALID for one above [`QUOTA_MAX`], and for a weight outside 1 to [`WEIGHT_MAX`].
pub(super) fn requested(field: &str, requested: Option<&v1::Quotas>) -> Result<Quotas, Refusal> {
    let requested = requested.copied().unwrap_or_default();
    let v1::Quotas { requests_per_second, sessions, bytes, weight } = requested;
    let quotas = Quotas { requests_per_second, sessions, bytes, weight };
    if weight.is_some_and(|weight| !(1..=WEIGHT_MAX).contains(&weight)) {
        let field = format!("{field}.{WEIGHT}");
        return Err(Refusal::field(field, format!("must be 1 to {WEIGHT_MAX}")));
    }
    match Quota::ALL.into_iter().find(|quota| quotas.get(*quota).is_some_and(|limit| limit > QUOTA_MAX)) {
        None => Ok(quotas),
        Some(quota) => {
            let field = format!("{field}.{}", quota.word());
            Err(Refusal::field(field, format!("must be at most {QUOTA_MAX}, or 0 for no limit")))
        }
    }
}

/// The quotas that are set for a tenant; `None` if none is.
pub(super) fn of_quotas(quotas: Quotas) -> Option<v1::Quotas> {
    let Quotas { requests_per_second, sessions, bytes, weight } = quotas;
    (!quotas.is_empty()).then_some(v1::Quotas { requests_per_second, sessions, bytes, weight })
}

/// Each quota of a tenant, and its current use.
pub(super) fn uses(api: &Api, tenant: &Tenant) -> Result<Vec<v1::QuotaUse>, Refusal> {
    let (own, held) = (tenant.settings.quotas, api.cluster.usage(tenant.id).map_err(refusal)?);
    let limits = api.quotas.under(own);
    let one = |quota: Quota| v1::QuotaUse {
        quota: quota.word().to_owned(),
        limit: limits.get(quota).unwrap_or_default(),
        set_in: match api.quotas.set_in(own, quota) {
            SetIn::Tenant => v1::QuotaSource::Tenant,
            SetIn::Configuration => v1::QuotaSource::Configuration,
            SetIn::Default => v1::QuotaSource::Default,
        }
        .into(),
        used: match quota {
            Quota::RequestsPerSecond => {
                limits.get(quota).map(|_| api.rates.used(tenant.id, api.cluster.now()))
            }
            Quota::Sessions => Some(held.sessions),
            Quota::Bytes => Some(held.bytes),
        },
    };
    Ok(Quota::ALL.map(one).to_vec())
}

/// Sets quotas of a tenant, whose row is `tenant`, and returns its row afterwards; the caller is an admin of the first one.
pub(super) async fn set(
    call: &Call<'_>,
    tenant: &Tenant,
    message: v1::SetTenantQuotasRequest,
) -> Result<Box<Tenant>, Refusal> {
    let request = request_id(&message.request_id, "SetTenantQuotas", &message)?;
    let requested = requested("quotas", message.quotas.as_ref())?;
    let paths = message.update_mask.map(|mask| mask.paths).unwrap_or_default();
    let known = |path: &String| path == WEIGHT || Quota::ALL.iter().any(|quota| quota.word() == path);
    if let Some(path) = paths.iter().find(|path| !known(path)) {
        return Err(Refusal::field("update_mask", format!("has the unknown path {path}")));
    }
    let wanted = |name: &str| paths.is_empty() || paths.iter().any(|path| path == name);
    // The command is of the tenant that it is about, so that the change stands in the record of that tenant.
    let mut inside = Call { api: call.api, caller: call.caller.clone(), trace: call.trace.clone() };
    inside.caller.tenant = tenant.id;
    inside.caller.tenant_name.clone_from(&tenant.name);
    let row = change_row(&inside, request, &tenant.name, &message.etag, |row, etag| {
        let mut quotas = row.settings.quotas;
        for quota in Quota::ALL.into_iter().filter(|quota| wanted(quota.word())) {
            quotas.set(quota, requested.get(quota));
        }
        if wanted(WEIGHT) {
            quotas.weight = requested.weight;
        }
        Ok(CatalogueCommand::PutQuotas(PutQuotas { name: row.name.clone(), quotas, etag }))
    });
    row.await.map_err(|refusal| named(refusal, "tenant", &tenant.name))
}
