//! The health of endpoints, and the outbox of the tenant itself: both stand in the catalogue's record of the tenant,
//! whose revision stays, because shards do not need to know them.

use crate::catalogue::Tenancy;
use crate::delivery::{Dead, Effect, EndpointFact, Fate};
use crate::{Key, Row, Site, TENANT_ITSELF, ViewError, Working};

pub(crate) fn apply(rows: &mut Working<'_>, site: &Site<'_>, fact: &EndpointFact) -> Result<(), ViewError> {
    match fact {
        EndpointFact::Noted { id, health } => change(rows, site, |tenancy| {
            if let Some(endpoint) = tenancy.endpoints.iter_mut().find(|one| one.id == *id) {
                endpoint.health = Some(health.clone());
            }
        }),
        EndpointFact::Queued { effect } => {
            rows.put(key(site, effect.number), Row::Outbox(Effect::clone(effect)));
            change(rows, site, |tenancy| {
                let outbox = tenancy.outbox.get_or_insert_default();
                outbox.last = effect.number;
                outbox.waiting = outbox.waiting.saturating_add(1);
            })
        }
        EndpointFact::Deferred { number, until, code, message } => {
            let key = key(site, *number);
            let Some(effect) = rows.outbox_at(&key)?.map(|effect| Effect::clone(&effect)) else {
                return Err(ViewError(format!("key {key:?} holds no effect")));
            };
            let before = effect.fate.clone().unwrap_or_default();
            let last = Some(Dead { code: code.clone(), message: message.clone(), at: site.at });
            let since = before.since.or(Some(effect.deliver_at));
            let fate = Some(Fate { attempts: before.attempts.saturating_add(1), last, since, ..before });
            rows.put(key, Row::Outbox(Effect { fate, deliver_at: *until, ..effect }));
            Ok(())
        }
        EndpointFact::Gone { number, arrived: _ } => {
            rows.delete(key(site, *number));
            change(rows, site, |tenancy| {
                let outbox = tenancy.outbox.get_or_insert_default();
                outbox.waiting = outbox.waiting.saturating_sub(1);
            })
        }
    }
}

fn key(site: &Site<'_>, number: u64) -> Key {
    Key::outbox(site.tenant, TENANT_ITSELF, number)
}

/// Changes the tenant's record.
fn change(rows: &mut Working<'_>, site: &Site<'_>, how: impl FnOnce(&mut Tenancy)) -> Result<(), ViewError> {
    let key = Key::tenancy_record(site.tenant);
    let Some(mut tenancy) = rows.tenancy_at(&key)?.map(|known| Tenancy::clone(&known)) else {
        return Err(ViewError(format!("key {key:?} holds no tenancy")));
    };
    how(&mut tenancy);
    rows.put(key, Row::Tenancy(tenancy));
    Ok(())
}
