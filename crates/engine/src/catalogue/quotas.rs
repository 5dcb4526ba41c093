//! Quotas of a tenant: they are set here, and that of sessions is kept here.

use switchward_state::catalogue::{CatalogueEvent, PutQuotas, Quota, Settings};
use switchward_state::limits::{QUOTA_MAX, WEIGHT_MAX};
use switchward_state::{Key, ReadRows as _, Reason, Rejection, Reply};

use crate::turn::{Stop, Turn, check_etag};

/// Sets the quotas of the command's tenant.
pub(crate) fn put(turn: &mut Turn<'_, '_>, put: &PutQuotas) -> Result<Reply, Stop> {
    let found = turn.rows.tenant_at(&Key::tenant(&put.name))?;
    let Some(tenant) = found.filter(|tenant| tenant.id == turn.tenant()) else {
        return Err(Rejection::new(Reason::NotFound, "there is no such tenant").into());
    };
    check_etag("tenant", &put.etag, Some(tenant.etag()))?;
    let (id, before) = (tenant.id, tenant.settings);
    drop(tenant);
    for quota in Quota::ALL {
        if put.quotas.get(quota).is_some_and(|limit| limit > QUOTA_MAX) {
            let message = format!("{} is more than {QUOTA_MAX}", quota.word());
            return Err(Rejection::new(Reason::FieldInvalid, message).fact("field", quota.word()).into());
        }
    }
    if put.quotas.weight.is_some_and(|weight| !(1..=WEIGHT_MAX).contains(&weight)) {
        let message = format!("weight is not 1 to {WEIGHT_MAX}");
        return Err(Rejection::new(Reason::FieldInvalid, message).fact("field", "weight").into());
    }
    let settings = Settings { quotas: put.quotas, ..before };
    if settings != before {
        turn.emit(CatalogueEvent::TenantChanged(put.name.clone(), settings))?;
        crate::catalogue::tenants::note(turn, id, before, settings)?;
    }
    crate::catalogue::tenants::reply(turn, &put.name)
}

/// Refuses one session more than the shard may hold of the tenant.
pub(crate) fn check_sessions(turn: &Turn<'_, '_>) -> Result<(), Stop> {
    let Some(most) = turn.command.settings.quotas.sessions else { return Ok(()) };
    let held = turn.rows.usage_at(&Key::usage(turn.tenant()))?.map_or(0, |usage| usage.sessions);
    if held < most {
        return Ok(());
    }
    Err(exceeded(Quota::Sessions).into())
}

/// The refusal of what exceeds a quota.
#[must_use]
pub fn exceeded(quota: Quota) -> Rejection {
    let message = match quota {
        Quota::RequestsPerSecond => {
            "the tenant sends more requests per second than its quota allows; send it again later"
        }
        Quota::Sessions => {
            "the tenant has as many sessions as its quota allows; ended sessions count until they are removed"
        }
        Quota::Bytes => {
            "the histories of the tenant's sessions hold as many bytes as its quota allows; remove ended sessions"
        }
    };
    Rejection::new(Reason::QuotaExceeded, message).fact("quota", quota.word())
}
