//! How many mails may go out in an hour: of one tenant, and to one address, whichever sessions they come from.
//!
//! A session's own cap is a part of its row, and so the same on every replica. These two span sessions whose rows lie in
//! different buckets, so the leader of each shard counts here what it puts on the bus. It counts from nothing where it
//! has just become the leader, so after a change an hour may see twice as many and never more than that for each change;
//! in a cluster each shard counts for itself. What finds no room is put off to the next hour, and its session's history
//! says so.

use std::collections::BTreeMap;

use switchward_machine::{TenantId, Time};

/// Mails of one tenant that one shard puts on the bus in a calendar hour.
const OF_TENANT_MAX: u32 = 20_000;
/// Mails of one tenant to one address that one shard puts on the bus in a calendar hour: more than a person can read.
const TO_ADDRESS_MAX: u32 = 120;
/// Addresses that are counted at one time; beyond it the next hour begins with them.
const ADDRESSES_MAX: usize = 200_000;
/// Milliseconds.
const HOUR_MS: u64 = 3_600_000;

/// The mails of this hour.
#[derive(Debug, Default)]
pub(super) struct Caps {
    hour: u64,
    tenants: BTreeMap<TenantId, u32>,
    addresses: BTreeMap<(TenantId, String), u32>,
}

/// Why a mail must wait, and until when.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Full {
    pub(super) until: Time,
    /// A lower-case code.
    pub(super) code: &'static str,
    pub(super) message: String,
}

impl Caps {
    /// Counts a mail that goes out now, where there is room for it.
    ///
    /// # Errors
    /// There is none in this hour; nothing is counted then.
    pub(super) fn count(&mut self, tenant: TenantId, to: &str, now: Time) -> Result<(), Full> {
        let hour = now.0 / HOUR_MS;
        if hour != self.hour {
            *self = Self { hour, ..Self::default() };
        }
        let full = |code, message| Full { until: Time((hour + 1) * HOUR_MS), code, message };
        let of = self.tenants.get(&tenant).copied().unwrap_or_default();
        if of >= OF_TENANT_MAX {
            let message = format!("the tenant has sent {OF_TENANT_MAX} mails in this hour");
            return Err(full("mail_tenant_limit", message));
        }
        let key = (tenant, to.to_lowercase());
        let at = self.addresses.get(&key).copied();
        if at.unwrap_or_default() >= TO_ADDRESS_MAX {
            let message = format!("{TO_ADDRESS_MAX} mails went to this address in this hour");
            return Err(full("mail_address_limit", message));
        }
        if at.is_none() && self.addresses.len() >= ADDRESSES_MAX {
            let message = format!("mails went to {ADDRESSES_MAX} addresses in this hour");
            return Err(full("mail_addresses_limit", message));
        }
        self.tenants.insert(tenant, of + 1);
        self.addresses.insert(key, at.unwrap_or_default() + 1);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time(5 * HOUR_MS + 7);

    #[test]
    fn one_address_is_written_to_so_often_in_an_hour_whatever_its_case() {
        let mut caps = Caps::default();
        for _ in 0..TO_ADDRESS_MAX {
            assert_eq!(caps.count(TenantId(1), "Kim@a.example", NOW), Ok(()));
        }
        let full = caps.count(TenantId(1), "kim@A.example", NOW).unwrap_err();
        assert_eq!((full.until, full.code), (Time(6 * HOUR_MS), "mail_address_limit"));
        assert!(caps.count(TenantId(1), "ann@a.example", NOW).is_ok());
        assert!(caps.count(TenantId(2), "kim@a.example", NOW).is_ok());
        assert!(caps.count(TenantId(1), "kim@a.example", full.until).is_ok());
    }

    #[test]
    fn one_tenant_sends_so_many_in_an_hour_and_takes_nothing_from_another() {
        let mut caps = Caps::default();
        for n in 0..OF_TENANT_MAX {
            assert!(caps.count(TenantId(1), &format!("a{}@a.example", n / TO_ADDRESS_MAX), NOW).is_ok());
        }
        assert_eq!(caps.count(TenantId(1), "new@a.example", NOW).unwrap_err().code, "mail_tenant_limit");
        assert!(caps.count(TenantId(2), "new@a.example", NOW).is_ok());
        assert!(caps.count(TenantId(1), "new@a.example", Time(6 * HOUR_MS)).is_ok());
    }
}
