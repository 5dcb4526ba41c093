//! The OpenID provider with which people sign in to decision pages.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use switchward_delivery::guard::{Egress, Target};
use switchward_delivery::http::{Client, Config as HttpConfig};
use switchward_delivery::limits::PORTS;
use switchward_delivery::openid::{Config, Provider};
use switchward_gateway::decision::CALLBACK;

/// A provider, and what this server is to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OidcConfig {
    /// Its name, below which it publishes what it is, like `https://login.acme.example`.
    pub(crate) issuer: String,
    /// What it calls this server.
    pub(crate) client_id: String,
    /// A file that holds what it recognises this server by.
    pub(crate) client_secret_file: PathBuf,
    /// Whether it may be on this machine, and be asked over http without TLS.
    #[serde(default)]
    pub(crate) local: bool,
    /// Whether it may have an address of a private network, as the provider of a company often has. It is always asked by TLS,
    /// which the certificates of this system must prove.
    #[serde(default)]
    pub(crate) private: bool,
}

impl OidcConfig {
    /// Looks whether it fits the address of the pages, without reading the secret.
    ///
    /// # Errors
    /// There are no pages, or the provider's name is no address that may be asked.
    pub(super) fn check(&self, pages: Option<&str>) -> anyhow::Result<()> {
        redirect(pages)?;
        anyhow::ensure!(!self.client_id.is_empty(), "mail.oidc.client_id: must not be empty");
        Target::read(&self.issuer, &self.egress()).map(drop).context("mail.oidc.issuer")
    }

    /// The provider, which is not asked yet.
    ///
    /// # Errors
    /// The secret cannot be read, an address is none, or TLS cannot be set up.
    pub(super) fn provider(&self, pages: Option<&str>) -> anyhow::Result<Provider> {
        let egress = self.egress();
        let config = Config {
            issuer: self.issuer.clone(),
            client_id: self.client_id.clone(),
            client_secret: super::secret("mail.oidc.client_secret_file", &self.client_secret_file)?,
            redirect: redirect(pages)?,
            egress: egress.clone(),
        };
        // No tenant asks it: what it may be asked stands in each request.
        let nobody = Arc::new(Egress::default());
        let client = Client::new(HttpConfig::new(Arc::new(move |_: u32| Arc::clone(&nobody))))?;
        Provider::new(client, config).map_err(|error| anyhow::anyhow!("mail.oidc.{error}"))
    }

    /// What may be asked of it: its own port, and those of the web.
    fn egress(&self) -> Egress {
        let port = crate::outbound::port_of(&self.issuer);
        let ports = port.into_iter().chain(PORTS).collect();
        Egress {
            allow_loopback: self.local,
            allow_private: self.private,
            allow_http: self.local,
            ports,
            allowed_hosts: None,
        }
    }
}

/// Where the provider sends people back to.
fn redirect(pages: Option<&str>) -> anyhow::Result<String> {
    let pages = pages
        .context("mail.oidc: set mail.pages, the address that the OpenID provider sends people back to")?;
    Ok(format!("{}{CALLBACK}", pages.trim_end_matches('/')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> OidcConfig {
        OidcConfig {
            issuer: "https://login.acme.example".into(),
            client_id: "switchward".into(),
            client_secret_file: "/nowhere/secret".into(),
            local: false,
            private: false,
        }
    }

    #[test]
    fn people_come_back_to_the_pages() {
        assert_eq!(redirect(Some("https://a.example/")).unwrap(), "https://a.example/a/oidc/callback");
        assert!(config().check(Some("https://a.example")).is_ok());
        let error = config().check(None).unwrap_err().to_string();
        assert!(error.contains("mail.pages"), "{error}");
    }

    #[test]
    fn a_provider_is_asked_by_tls_and_not_on_this_machine_unless_it_is_local() {
        let refused = [
            "http://login.acme.example",
            "https://127.0.0.1:9000",
            "https://10.1.2.3",
            "login.acme.example",
            "",
        ];
        for issuer in refused {
            let error = OidcConfig { issuer: issuer.into(), ..config() }.check(Some("https://a.example"));
            assert!(error.unwrap_err().to_string().contains("mail.oidc.issuer"), "{issuer}");
        }
        let local = OidcConfig { issuer: "http://127.0.0.1:9000/realms/a".into(), local: true, ..config() };
        assert!(local.check(Some("https://a.example")).is_ok());
    }

    #[test]
    fn a_provider_of_a_private_network_is_asked_by_tls_and_only_there() {
        let check = |issuer: &str| {
            let private = OidcConfig { issuer: issuer.into(), private: true, ..config() };
            private.check(Some("https://a.example")).is_ok()
        };
        for issuer in [
            "https://10.1.2.3",
            "https://192.168.0.1:8443/realms/a",
            "https://[fd00::1]",
            "https://login.acme.example",
        ] {
            assert!(check(issuer), "{issuer}");
        }
        for issuer in ["http://10.1.2.3", "https://127.0.0.1", "https://169.254.169.254", "https://[fe80::1]"]
        {
            assert!(!check(issuer), "{issuer}");
        }
    }

    #[test]
    fn a_secret_that_cannot_be_read_is_named() {
        let error = config().provider(Some("https://a.example")).map(drop).unwrap_err();
        assert!(
            format!("{error:#}").starts_with("mail.oidc.client_secret_file: failed to read"),
            "{error:#}"
        );
    }
}
