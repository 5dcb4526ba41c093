//! The configuration of quotas: `[quotas]`.

use serde::{Deserialize, Serialize};
use switchward_gateway::QuotaDefaults;
use switchward_state::catalogue::{Quota, Quotas};
use switchward_state::limits::QUOTA_MAX;

/// The quotas of a tenant for which none is set; 0 is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct QuotaConfig {
    /// Requests per second of all of its keys together.
    #[serde(default)]
    requests_per_second: Option<u64>,
    /// Sessions that are kept.
    #[serde(default)]
    sessions: Option<u64>,
    /// Bytes of their histories and of the replies that they remember.
    #[serde(default)]
    bytes: Option<u64>,
}

impl QuotaConfig {
    fn quotas(self) -> Quotas {
        let Self { requests_per_second, sessions, bytes } = self;
        Quotas { requests_per_second, sessions, bytes, weight: None }
    }

    /// The quotas of tenants on this server, with the limits of this build for those that are not set.
    pub(crate) fn defaults(self) -> QuotaDefaults {
        QuotaDefaults::of_server(self.quotas())
    }

    /// Looks whether no limit is too large.
    ///
    /// # Errors
    /// One is.
    pub(crate) fn check(self) -> anyhow::Result<()> {
        for quota in Quota::ALL {
            if self.quotas().get(quota).is_some_and(|limit| limit > QUOTA_MAX) {
                anyhow::bail!("quotas.{}: must be at most {QUOTA_MAX}, or 0 for no limit", quota.word());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_is_no_limit_and_what_is_not_said_is_as_shipped() {
        let config: QuotaConfig = toml_of("sessions = 0\nbytes = 4096\n");
        let defaults = config.defaults();
        assert_eq!(defaults.configured, Quotas { sessions: Some(0), bytes: Some(4096), ..Quotas::default() });
        assert!(defaults.shipped.requests_per_second.is_some_and(|rate| rate > 0));
        assert!(config.check().is_ok());
        let error = toml_of("bytes = 9000000000000000000\n").check().unwrap_err().to_string();
        assert!(error.starts_with("quotas.bytes: must be at most"), "{error}");
    }

    fn toml_of(text: &str) -> QuotaConfig {
        use figment::providers::Format as _;
        figment::Figment::from(figment::providers::Toml::string(text)).extract().unwrap()
    }
}
