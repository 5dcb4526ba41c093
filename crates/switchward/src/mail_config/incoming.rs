//! The configuration of inbound mail.

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use switchward_gateway::{
    Api,
    mail::{Level, MailIngress},
};
use switchward_mail::{
    imap::Account,
    incoming::{Dns, Settings},
};

use super::imap::ImapSettings;

/// How replies are believed, and the listeners that they come in by.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct MailInConfig {
    /// What a reply must prove to decide.
    pub(crate) level: LevelSetting,
    /// The hosts whose `Authentication-Results` are believed, by the names that stand in them. They must take out what
    /// others wrote under their names.
    pub(crate) trusted_hosts: Vec<String>,
    /// The callers of `POST /v1/mail` whose transport data is believed, and the results of trusted hosts in their messages:
    /// `TENANT/NAME`, the name being a key's subject. Anybody else could have written them.
    pub(crate) trusted_callers: Vec<String>,
    /// The fields that a sender's signature must cover to count; none: `From`, `Subject` and `To`. It must cover
    /// `Message-ID` or `Date` too: a reply that is brought again is known by that, whatever else was changed in it.
    pub(crate) signed_fields: Vec<String>,
    /// The name servers that are asked for keys and policies of senders; none: those of the system.
    pub(crate) dns: Vec<SocketAddr>,
    /// Where a mail server in front hands messages over by LMTP; absent: nowhere.
    pub(crate) lmtp: Option<SocketAddr>,
    /// Whether anything but loopback may be listened on by LMTP, which has no TLS and asks for no password.
    pub(crate) insecure_lmtp: bool,
    /// The mailbox that they are read from by IMAP; absent: none.
    pub(crate) imap: Option<ImapSettings>,
}

/// What a reply must prove to decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum LevelSetting {
    /// That its sender wrote it to the reply address: a signature of their domain covers it.
    #[default]
    Strict,
    /// Nothing but the token and the address.
    Sender,
    /// As strict for answers; decisions are made on pages.
    PageOnly,
}

/// A mail ingress that belongs to no server yet.
pub(crate) struct Incoming {
    settings: Settings,
    /// The DNS that is asked for keys and policies.
    pub(crate) dns: Dns,
    level: Level,
    /// Where to listen for LMTP.
    pub(crate) lmtp: Option<SocketAddr>,
    /// What to read by IMAP.
    pub(crate) imap: Option<Account>,
    /// The callers whose transport data is believed.
    pub(crate) trusted_callers: Vec<String>,
}

impl MailInConfig {
    /// What takes replies to addresses of this pattern, like `r+{token}@reply.acme.example`, which was checked.
    ///
    /// # Errors
    /// The DNS cannot be used, LMTP could be reached from outside, or the mailbox cannot be read as configured.
    pub(super) fn open(&self, reply: &str) -> anyhow::Result<Incoming> {
        if let Some(at) = self.lmtp.filter(|at| !at.ip().is_loopback() && !self.insecure_lmtp) {
            anyhow::bail!(
                "mail.in.lmtp: {at} can be reached from outside, and LMTP has no authentication; set \
                 mail.in.insecure_lmtp = true if only your mail server can reach it"
            );
        }
        if let Some(bad) = self.trusted_callers.iter().find(|name| name.split('/').count() != 2) {
            anyhow::bail!(
                "mail.in.trusted_callers: {bad:?} must be TENANT/NAME, the name of a key of a tenant"
            );
        }
        let (local, domain) = reply.rsplit_once('@').context("mail.reply: must contain an @")?;
        let form = local.parse().map_err(|problem| anyhow::anyhow!("mail.reply: {problem}"))?;
        let hosts = self.trusted_hosts.iter().map(|host| host.to_ascii_lowercase()).collect();
        let mut settings = Settings { reply_address: form, trusted_hosts: hosts, ..Settings::of(domain) };
        if !self.signed_fields.is_empty() {
            settings.signed_fields =
                self.signed_fields.iter().map(|name| name.to_ascii_lowercase()).collect();
            anyhow::ensure!(
                settings.signed_fields.iter().any(|name| name == "from"),
                "mail.in.signed_fields: must include from, because a signature without it does not prove the sender"
            );
        }
        let dns = if self.dns.is_empty() { Dns::of_the_system() } else { Dns::at(&self.dns) };
        let level = match self.level {
            LevelSetting::Strict => Level::Strict,
            LevelSetting::Sender => Level::Sender,
            LevelSetting::PageOnly => Level::PageOnly,
        };
        let imap = self.imap.as_ref().map(ImapSettings::open).transpose()?;
        Ok(Incoming {
            settings,
            dns: dns.context("mail.in.dns")?,
            level,
            lmtp: self.lmtp,
            imap,
            trusted_callers: self.trusted_callers.clone(),
        })
    }
}

impl Incoming {
    /// The hosts whose `Authentication-Results` are believed, in lower case.
    pub(crate) fn trusted_hosts(&self) -> &[String] {
        &self.settings.trusted_hosts
    }

    /// The mail ingress of a server, and our name in greetings.
    pub(crate) fn ingress(self, api: Api) -> (MailIngress, String) {
        let host = self.settings.host.clone();
        (MailIngress::new(api, self.settings, self.dns, self.level), host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lmtp_that_can_be_reached_from_outside_needs_a_word() {
        let outside: SocketAddr = "0.0.0.0:2400".parse().unwrap();
        let config = MailInConfig { lmtp: Some(outside), ..MailInConfig::default() };
        let error = config.open("r+{token}@reply.example").err().unwrap().to_string();
        assert!(error.starts_with("mail.in.lmtp: 0.0.0.0:2400 can be reached"), "{error}");
        let said = MailInConfig { insecure_lmtp: true, ..config.clone() };
        assert_eq!(said.open("r+{token}@reply.example").unwrap().lmtp, Some(outside));
        let inside = MailInConfig { lmtp: Some("127.0.0.1:2400".parse().unwrap()), ..config };
        assert!(inside.open("r+{token}@reply.example").is_ok());
    }

    #[test]
    fn the_pattern_of_replies_says_which_addresses_are_ours() {
        let config: MailInConfig = toml("level = \"page-only\"\ntrusted_hosts = [\"MX.Acme.example\"]\n");
        let Incoming { settings, level, .. } = config.open("to-{token}-x@Reply.Example").unwrap();
        assert_eq!(level, Level::PageOnly);
        assert_eq!(settings.reply_domains, ["reply.example"]);
        assert_eq!(settings.trusted_hosts, ["mx.acme.example"]);
        assert_eq!(settings.reply_address, "to-{token}-x".parse().unwrap());
    }

    fn toml(text: &str) -> MailInConfig {
        use figment::providers::{Format as _, Toml};
        figment::Figment::from(Toml::string(text)).extract().unwrap()
    }
}
