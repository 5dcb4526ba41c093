//! How much one tenant may take of what all tenants share.

use minicbor::{CborLen, Decode, Encode};

/// What a tenant's use of the cluster is limited by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Quota {
    /// Requests per second that one server takes from all keys of the tenant together.
    RequestsPerSecond,
    /// Sessions that are kept: those that have ended count until they are removed.
    Sessions,
    /// Bytes of the histories of these sessions, as they are stored.
    Bytes,
}

impl Quota {
    /// Every quota.
    pub const ALL: [Self; 3] = [Self::RequestsPerSecond, Self::Sessions, Self::Bytes];

    /// The public name.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::RequestsPerSecond => "requests_per_second",
            Self::Sessions => "sessions",
            Self::Bytes => "bytes",
        }
    }
}

/// The quotas of a tenant. In a tenant's row, `None` means the server's default, and 0 means no limit. In the limits that
/// apply, which [`Quotas::over`] returns, `None` means no limit, and 0 does not occur.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Encode, Decode, CborLen)]
pub struct Quotas {
    /// See [`Quota::RequestsPerSecond`].
    #[n(0)]
    pub requests_per_second: Option<u64>,
    /// See [`Quota::Sessions`]. In a command: what the shard of the command may hold of them.
    #[n(1)]
    pub sessions: Option<u64>,
    /// See [`Quota::Bytes`].
    #[n(2)]
    pub bytes: Option<u64>,
    /// The tenant's share of the server's time, in shares of a tenant of weight 1, when tenants want more than there is:
    /// 1 to [`WEIGHT_MAX`](crate::limits::WEIGHT_MAX). It is no quota: it refuses nothing, and `None` is always the
    /// default.
    #[n(3)]
    pub weight: Option<u32>,
}

impl Quotas {
    /// Returns true if nothing is set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The value of one of them.
    #[must_use]
    pub fn get(&self, quota: Quota) -> Option<u64> {
        match quota {
            Quota::RequestsPerSecond => self.requests_per_second,
            Quota::Sessions => self.sessions,
            Quota::Bytes => self.bytes,
        }
    }

    /// Sets one of the quotas. `None` means the server's default, 0 no limit.
    pub fn set(&mut self, quota: Quota, value: Option<u64>) {
        match quota {
            Quota::RequestsPerSecond => self.requests_per_second = value,
            Quota::Sessions => self.sessions = value,
            Quota::Bytes => self.bytes = value,
        }
    }

    /// What applies to a tenant that sets these, on a server with these defaults; `None`: no limit.
    #[must_use]
    pub fn over(self, defaults: Self) -> Self {
        let mut all = Self { weight: self.weight.or(defaults.weight), ..Self::default() };
        for quota in Quota::ALL {
            all.set(quota, self.get(quota).or(defaults.get(quota)).filter(|limit| *limit > 0));
        }
        all
    }
}

/// A tenant gets these quotas. The command is of that tenant, and its actor an admin of the server's first tenant.
#[derive(Debug, Clone, PartialEq, Encode, Decode, CborLen)]
pub struct PutQuotas {
    /// The tenant's name.
    #[n(0)]
    pub name: String,
    /// All of its quotas.
    #[n(1)]
    pub quotas: Quotas,
    /// What the caller saw, see [`Tenant::etag`](crate::catalogue::Tenant::etag); empty if any will do.
    #[n(2)]
    pub etag: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenant_beats_the_defaults_and_zero_is_no_limit() {
        let of = |requests_per_second, sessions, bytes, weight| Quotas {
            requests_per_second,
            sessions,
            bytes,
            weight,
        };
        let defaults = of(Some(10), Some(20), Some(0), Some(3));
        let own = of(Some(0), Some(5), None, Some(4));
        assert_eq!(own.over(defaults), of(None, Some(5), None, Some(4)));
        let expected = of(Some(10), Some(20), None, Some(3));
        assert_eq!(Quotas::default().over(defaults), expected);
    }
}
