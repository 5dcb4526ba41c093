//! What a tenant's requests may reach.

use std::sync::Arc;

use url::Host;

use crate::limits::PORTS;

/// What a tenant's requests may reach. The default is for an unknown tenant: https to the public network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Egress {
    /// Allows this machine's own addresses (127.0.0.0/8 and ::1). For development.
    pub allow_loopback: bool,
    /// Allows addresses of private networks (10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16 and fc00::/7). Only for addresses
    /// that an operator has named, never for those of a tenant.
    pub allow_private: bool,
    /// Allows http without TLS.
    pub allow_http: bool,
    /// The allowed ports.
    pub ports: Vec<u16>,
    /// The only allowed hosts; `None` allows any. Never allows an address that is refused otherwise.
    pub allowed_hosts: Option<Vec<HostRule>>,
}

impl Default for Egress {
    fn default() -> Self {
        Self {
            allow_loopback: false,
            allow_private: false,
            allow_http: false,
            ports: PORTS.to_vec(),
            allowed_hosts: None,
        }
    }
}

impl Egress {
    /// Returns true if there is no list of hosts, or if it contains this host.
    pub(super) fn allows_host(&self, host: &Host<String>) -> bool {
        self.allowed_hosts.as_ref().is_none_or(|rules| rules.iter().any(|rule| rule.holds(host)))
    }
}

/// An allowed host, or all hosts below a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostRule {
    host: Host<String>,
    /// Whether the rule matches the names below `host`, and not `host` itself.
    below: bool,
}

/// The text is neither a host nor `*.` and a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a host rule is a name, an address or `*.` and a name")]
pub struct HostRuleError;

impl HostRule {
    /// Reads `api.example.org`, `*.example.org` (every name below, not `example.org` itself) or an IP address.
    ///
    /// # Errors
    ///
    /// [`HostRuleError`] for anything else, including a `*` at any other position.
    pub fn read(text: &str) -> Result<Self, HostRuleError> {
        let (below, name) = text.strip_prefix("*.").map_or((false, text), |name| (true, name));
        let host = Host::parse(name).map_err(|_| HostRuleError)?;
        match host {
            Host::Domain(name) if name.contains('*') => Err(HostRuleError),
            Host::Domain(name) => {
                let name = name.strip_suffix('.').unwrap_or(&name).to_owned();
                if name.is_empty() {
                    Err(HostRuleError)
                } else {
                    Ok(Self { host: Host::Domain(name), below })
                }
            }
            Host::Ipv4(_) | Host::Ipv6(_) if below => Err(HostRuleError),
            Host::Ipv4(_) | Host::Ipv6(_) => Ok(Self { host, below }),
        }
    }

    fn holds(&self, host: &Host<String>) -> bool {
        match (&self.host, host) {
            (Host::Domain(rule), Host::Domain(name)) => {
                let name = name.strip_suffix('.').unwrap_or(name);
                if self.below {
                    name.strip_suffix(rule.as_str())
                        .and_then(|rest| rest.strip_suffix('.'))
                        .is_some_and(|rest| !rest.is_empty())
                } else {
                    name == rule
                }
            }
            (rule, host) => rule == host,
        }
    }
}

/// Knows what each tenant may reach.
pub trait Policies: Send + Sync + 'static {
    /// The rules for this tenant now.
    ///
    /// # Errors
    ///
    /// [`RulesUnknown`] if they cannot be determined; then nothing is requested for this tenant.
    fn egress(&self, tenant: u32) -> Result<Arc<Egress>, RulesUnknown>;
}

/// What a tenant may reach cannot be determined now. The implementation logs the cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the rules of this tenant's requests cannot be read now")]
pub struct RulesUnknown;

/// Rules that are always known.
impl<F: Fn(u32) -> Arc<Egress> + Send + Sync + 'static> Policies for F {
    fn egress(&self, tenant: u32) -> Result<Arc<Egress>, RulesUnknown> {
        Ok(self(tenant))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(rule: &str, host: &str) -> bool {
        let rule = HostRule::read(rule).expect("the rule is valid");
        rule.holds(&Host::parse(host).expect("the host is valid"))
    }

    #[test]
    fn a_name_is_that_name_alone() {
        assert!(allows("api.example.org", "API.example.org."));
        assert!(!allows("api.example.org", "x.api.example.org"));
        assert!(!allows("api.example.org", "api.example.org.evil.test"));
        assert!(allows("bücher.example", "xn--bcher-kva.example"));
    }

    #[test]
    fn a_suffix_is_every_name_below_and_whole_labels() {
        assert!(allows("*.example.org", "a.example.org"));
        assert!(allows("*.example.org", "a.b.example.org"));
        assert!(!allows("*.example.org", "example.org"));
        assert!(!allows("*.example.org", ".example.org"));
        assert!(!allows("*.example.org", "evilexample.org"));
    }

    #[test]
    fn an_address_is_that_address_in_any_spelling() {
        assert!(allows("8.8.8.8", "0x08080808"));
        assert!(allows("[2606:4700::1111]", "[2606:4700:0:0::1111]"));
        assert!(!allows("8.8.8.8", "8.8.4.4"));
    }

    #[test]
    fn what_is_no_rule_is_refused() {
        for text in ["", "*", "*.", "a.*.org", "*.*.org", "*.8.8.8.8", "a b", "."] {
            assert_eq!(HostRule::read(text), Err(HostRuleError), "{text}");
        }
    }
}
