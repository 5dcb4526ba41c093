//! The configuration of mail.

mod imap;
mod incoming;
mod oidc;

use anyhow::Context as _;
use incoming::LevelSetting;
pub(crate) use incoming::{Incoming, MailInConfig};
pub(crate) use oidc::OidcConfig;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use switchward_delivery::{
    Secret,
    channels::MailChannel,
    mail::{Sender, Smtp, SmtpConfig, SmtpTls},
    openid::Provider,
};
use switchward_gateway::PageSettings;
use switchward_mail::Signer;
use switchward_state::catalogue::LinkAuth;

/// Who writes mails, and which server takes them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MailConfig {
    /// What stands in `From`, like `Acme approvals <approvals@acme.example>`.
    pub(crate) from: String,
    /// The addresses that replies go to, like `r+{token}@reply.acme.example`; absent: replies are not read.
    #[serde(default)]
    pub(crate) reply: Option<String>,
    /// Where this server's pages are found from outside, like `https://approve.acme.example`; absent: no links.
    #[serde(default)]
    pub(crate) pages: Option<String>,
    /// How those pages recognise the person whose link it is, unless a tenant sets it: `link`, `code` or `oidc`; absent:
    /// `code` if replies must be signed, `link` if `in.level` is `sender`.
    #[serde(default)]
    pub(crate) link_auth: Option<LinkAuthSetting>,
    /// The OpenID provider with which people sign in to those pages; absent: nobody does.
    #[serde(default)]
    pub(crate) oidc: Option<OidcConfig>,
    /// In whose name agents may send mails beside `from`: addresses, `*@domain`, or `*` for anybody.
    #[serde(default)]
    pub(crate) authors: Vec<String>,
    /// The mail server.
    pub(crate) smtp: SmtpSettings,
    /// What mails are signed with; absent: the mail server signs them.
    #[serde(default)]
    pub(crate) dkim: Option<DkimSettings>,
    /// How mail comes in, if there are addresses that replies go to.
    #[serde(default, rename = "in")]
    pub(crate) incoming: MailInConfig,
}

/// How decision pages recognise the person whose link it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LinkAuthSetting {
    /// Everybody who has the link is taken for the person.
    Link,
    /// A code is mailed to the person.
    Code,
    /// The person signs in with the OpenID provider.
    Oidc,
}

/// The mail server that takes mails.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SmtpSettings {
    /// A name or an IP address.
    pub(crate) host: String,
    /// Its port; absent: 465 for `implicit`, else 587.
    #[serde(default)]
    pub(crate) port: Option<u16>,
    /// How the connection is encrypted.
    #[serde(default)]
    pub(crate) tls: SmtpTlsSetting,
    /// The user name there; absent: none is needed.
    #[serde(default)]
    pub(crate) user: Option<String>,
    /// A file that holds the password.
    #[serde(default)]
    pub(crate) password_file: Option<PathBuf>,
    /// What we call ourselves; absent: the machine's name.
    #[serde(default)]
    pub(crate) hello: Option<String>,
}

/// How the connection to a mail server is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SmtpTlsSetting {
    /// From `STARTTLS` on, without which nothing is sent.
    #[default]
    StartTls,
    /// From the first byte on.
    Implicit,
    /// Not at all.
    Plain,
}

/// A DKIM key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DkimSettings {
    /// The domain that signs.
    pub(crate) domain: String,
    /// Which of its keys.
    pub(crate) selector: String,
    /// A file that holds the key: RSA as PEM, or the Ed25519 seed in base64.
    pub(crate) key_file: PathBuf,
}

impl MailConfig {
    /// The files that hold secrets.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &PathBuf> {
        let smtp = self.smtp.password_file.as_ref();
        let dkim = self.dkim.as_ref().map(|dkim| &dkim.key_file);
        let imap = self.incoming.imap.as_ref().map(|imap| &imap.password_file);
        let oidc = self.oidc.as_ref().map(|oidc| &oidc.client_secret_file);
        [smtp, dkim, imap, oidc].into_iter().flatten()
    }

    /// Looks whether its parts fit, as far as that can be seen without reading secrets.
    ///
    /// # Errors
    /// Pages want a sign-in and there is no provider, or a provider and no pages.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        let wanted = self.link_auth == Some(LinkAuthSetting::Oidc);
        anyhow::ensure!(
            !wanted || self.oidc.is_some(),
            "mail.link_auth: \"oidc\" needs an OpenID provider; configure one under [mail.oidc]"
        );
        self.oidc.as_ref().map_or(Ok(()), |oidc| oidc.check(self.pages.as_deref()))
    }

    /// The OpenID provider, if there is one.
    ///
    /// # Errors
    /// Its secret cannot be read, or TLS cannot be set up.
    pub(crate) fn provider(&self) -> anyhow::Result<Option<Provider>> {
        self.oidc.as_ref().map(|oidc| oidc.provider(self.pages.as_deref())).transpose()
    }

    /// How decision pages recognise people, and how they are reached.
    pub(crate) fn page_settings(&self) -> PageSettings {
        let unsigned = self.incoming.level == LevelSetting::Sender;
        let link_auth = match self.link_auth {
            Some(LinkAuthSetting::Link) => LinkAuth::Link,
            Some(LinkAuthSetting::Code) => LinkAuth::Code,
            Some(LinkAuthSetting::Oidc) => LinkAuth::Oidc,
            None if unsigned => LinkAuth::Link,
            None => LinkAuth::Code,
        };
        let plain = self.pages.as_ref().is_some_and(|pages| pages.starts_with("http://"));
        PageSettings { link_auth, secure: !plain }
    }

    /// Who writes, and who takes what was written.
    ///
    /// # Errors
    /// A secret cannot be read, an address is none, or TLS cannot be set up.
    pub(crate) fn channel(&self) -> anyhow::Result<MailChannel> {
        let dkim = self.dkim.as_ref().map(DkimSettings::read).transpose()?;
        let (from, reply, pages) = (self.from.clone(), self.reply.clone(), self.pages.clone());
        let sender = Sender { from, reply, pages, authors: self.authors.clone(), dkim };
        sender.check().map_err(|problem| anyhow::anyhow!("mail.{problem}"))?;
        Ok(MailChannel { sender: Arc::new(sender), post: Arc::new(self.smtp.open()?) })
    }

    /// Returns true if something is set of how mail comes in by itself, beside the pages of the port.
    pub(crate) fn reads_replies(&self) -> bool {
        self.incoming.lmtp.is_some() || self.incoming.imap.is_some()
    }

    /// What takes replies; `None` if there are no addresses for them.
    ///
    /// # Errors
    /// The DNS cannot be used, or a listener could be reached from outside.
    pub(crate) fn incoming(&self) -> anyhow::Result<Option<Incoming>> {
        if self.reply.is_none() && self.incoming != MailInConfig::default() {
            anyhow::bail!("mail.in: mail.reply, the address that replies go to, must be set as well");
        }
        self.reply.as_ref().map(|reply| self.incoming.open(reply)).transpose()
    }
}

impl SmtpSettings {
    /// The mail server, not connected yet.
    ///
    /// # Errors
    /// The password cannot be read, or TLS cannot be set up.
    pub(crate) fn open(&self) -> anyhow::Result<Smtp> {
        let login = match (&self.user, &self.password_file) {
            (None, None) => None,
            (Some(user), Some(file)) => Some((user.clone(), secret("mail.smtp.password_file", file)?)),
            _ => anyhow::bail!("mail.smtp: set both user and password_file, or neither"),
        };
        let (tls, port) = match self.tls {
            SmtpTlsSetting::StartTls => (SmtpTls::StartTls, 587),
            SmtpTlsSetting::Implicit => (SmtpTls::Implicit, 465),
            SmtpTlsSetting::Plain => (SmtpTls::Plain, 587),
        };
        let (host, port) = (self.host.clone(), self.port.unwrap_or(port));
        let config = SmtpConfig { host, port, tls, login, hello: self.hello.clone() };
        Smtp::new(&config).context("mail.smtp")
    }
}

impl DkimSettings {
    fn read(&self) -> anyhow::Result<Signer> {
        let key = secret("mail.dkim.key_file", &self.key_file)?;
        let signer = Signer::read(&self.domain, &self.selector, key.reveal());
        signer.map_err(|problem| anyhow::anyhow!("mail.dkim.key_file: {problem}"))
    }
}

fn secret(key: &str, file: &Path) -> anyhow::Result<Secret> {
    let text = std::fs::read_to_string(file);
    let text = text.with_context(|| format!("{key}: failed to read {}", file.display()))?;
    Ok(Secret::new(text.trim().to_owned()))
}
