//! Mail in quarantine ends with the session that it names, with its tenant, and when its tenant keeps it no longer.
//!
//! Chosen: each server periodically checks all mail that it keeps against the rows. Rejected: deleting it
//! when a session or a tenant is removed. The quarantine is no part of the replicated state, so a removal would have to
//! reach the folder of every server, also of one that is down; and a mail may still come in after the removal.

use std::collections::BTreeMap;
use std::sync::{Arc, atomic::Ordering};
use switchward_machine::{TenantId, Time};
use switchward_query::{Ask as _, CheckRemoved, GetMailRetention, Reader};
use switchward_shard::{ClockAgreement, Cluster, Failure};
use switchward_state::session::Retention;
use tokio::runtime::Handle;

use super::{QuarantineStore, QuarantinedMail};
use crate::api::Api;
use crate::error::Refusal;
use crate::limits::MAIL_KEPT_MS_MAX;
use crate::refusals::unreadable;
use crate::stale;

/// Deletes the mail in this server's quarantine that is kept no longer, and returns how many mails that were. What cannot
/// be read or deleted now is left to the next sweep.
pub async fn sweep(api: &Api) -> u64 {
    let Some(quarantine) = api.quarantine.get().map(Arc::clone) else { return 0 };
    if let Err(failure) = current(&api.cluster).await {
        tracing::warn!(%failure, "skipped the sweep of the quarantine: the state cannot be read");
        return 0;
    }
    if !tells_ages(api.cluster.clock_agreement()) {
        tracing::info!(
            "skipped the sweep of the quarantine: the clock is not compared with the other servers' yet"
        );
        return 0;
    }
    let api = api.clone();
    let swept = tokio::task::spawn_blocking(move || sweep_quarantine(&api, &*quarantine)).await;
    swept.unwrap_or_else(|error| {
        tracing::error!(%error, "the sweep of the quarantine failed");
        0
    })
}

/// Returns how long mail of a tenant with these rules is kept in quarantine, milliseconds.
pub(crate) fn kept_ms(retention: &Retention) -> u64 {
    retention.quarantine_ms().map_or(MAIL_KEPT_MS_MAX, |rule| rule.min(MAIL_KEPT_MS_MAX))
}

/// Returns true if the age of mail may be judged by this server's clock: before it is compared, it may be years ahead.
fn tells_ages(clock: ClockAgreement) -> bool {
    match clock {
        ClockAgreement::Unknown => false,
        ClockAgreement::Alone
        | ClockAgreement::Agrees
        | ClockAgreement::Undecided { .. }
        | ClockAgreement::Differs { .. } => true,
    }
}

/// Waits until every shard's rows are not older than what was answered before: mail is deleted for what they do not hold.
async fn current(cluster: &Cluster) -> Result<(), Failure> {
    for shard in cluster.all() {
        shard.read().await?;
    }
    Ok(())
}

fn sweep_quarantine(api: &Api, quarantine: &dyn QuarantineStore) -> u64 {
    let now = api.cluster.now();
    let mut sweep = Sweep { api, now, tenants: BTreeMap::new(), asked_in_vain: false };
    let mut deleted = 0;
    for mail in quarantine.list() {
        let ends = sweep.ends(&mail).map_err(|refusal| refusal.message().to_owned());
        match ends.and_then(|ends| if ends { quarantine.delete(&mail) } else { Ok(false) }) {
            Ok(false) => {}
            Ok(true) => {
                deleted += 1;
                api.swept.fetch_add(1, Ordering::Relaxed);
            }
            Err(error) => {
                tracing::error!(mail = mail.id, error, "failed to sweep a mail in quarantine");
            }
        }
    }
    deleted
}

/// One look at all mail.
struct Sweep<'a> {
    api: &'a Api,
    now: Time,
    /// How long mail of each tenant is kept, milliseconds; `None` of a tenant that is deleted.
    tenants: BTreeMap<TenantId, Option<u64>>,
    /// The owner of a bucket has not answered: no other is asked, so that the end of the server does not wait for each mail.
    asked_in_vain: bool,
}

impl Sweep<'_> {
    /// Returns true if a mail is kept no longer.
    fn ends(&mut self, mail: &QuarantinedMail) -> Result<bool, Refusal> {
        let age_ms = self.now.since_ms(mail.at);
        let Some(tenant) = mail.tenant else { return Ok(age_ms > MAIL_KEPT_MS_MAX) };
        let Some(kept_ms) = self.kept_ms(tenant)? else { return Ok(true) };
        match mail.session {
            _ if age_ms > kept_ms => Ok(true),
            None => Ok(false),
            Some(session) => self.is_removed(&CheckRemoved { tenant, session, came: mail.at }),
        }
    }

    /// Asks the owner of the session's bucket before mail is deleted: the rows here may be those of a former owner. What
    /// they do not show is left to a later sweep.
    fn is_removed(&mut self, query: &CheckRemoved) -> Result<bool, Refusal> {
        let rows = Reader::stale(query.source().shard(&self.api.cluster));
        if !rows.answer(query).map_err(unreadable)? || self.asked_in_vain {
            return Ok(false);
        }
        let answer = Handle::current().block_on(self.api.ask(query));
        self.asked_in_vain = answer.is_err();
        answer
    }

    fn kept_ms(&mut self, tenant: TenantId) -> Result<Option<u64>, Refusal> {
        if let Some(known) = self.tenants.get(&tenant) {
            return Ok(*known);
        }
        let rules = stale::answer(&self.api.cluster, &GetMailRetention { tenant })?;
        let found = rules.map(|rules| kept_ms(&rules));
        self.tenants.insert(tenant, found);
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_mail_is_deleted_by_a_clock_that_was_not_compared() {
        assert!(!tells_ages(ClockAgreement::Unknown));
        // A clock that is too far ahead is not followed, and one that is behind deletes late.
        for clock in [
            ClockAgreement::Alone,
            ClockAgreement::Agrees,
            ClockAgreement::Undecided { by_ms: 9 },
            ClockAgreement::Differs { by_ms: 9 },
        ] {
            assert!(tells_ages(clock), "{clock:?}");
        }
    }
}
