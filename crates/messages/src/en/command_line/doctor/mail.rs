//! The checks of mail: the outgoing mail server, the mailbox for replies, and the DNS records of the domains.

use std::fmt::Display;

/// The server sends no mail.
pub const NOT_CONFIGURED: &str = "not configured; mails wait in the outbox";
/// The remedy if the settings of mail are wrong.
pub const SEE_MAIL: &str = "see [mail] in deploy/switchward.toml";
/// The remedy if the settings of inbound mail are wrong.
pub const SEE_MAIL_IN: &str = "see [mail.in] in deploy/switchward.toml";
/// The remedy if the settings of the outgoing mail server are wrong.
pub const SEE_SMTP: &str = "see [mail.smtp] in deploy/switchward.toml";
/// The remedy if the settings of the provider of sign-in are wrong.
pub const SEE_OIDC: &str = "see [mail.oidc] in deploy/switchward.toml";
/// The remedy if the system has no name server.
pub const SET_DNS: &str = "set mail.in.dns";
/// The remedy if the outgoing mail server refuses.
pub const CHECK_SMTP_AND_SENDERS: &str =
    "check host, port, tls and user in mail.smtp, and whether the server accepts these senders";
/// The remedy if nobody can verify a sign-in.
pub const PUBLISH_KEYS: &str = "configure the provider to publish its keys";
/// The remedy if the provider of sign-in is not the configured one.
pub const CHECK_ISSUER: &str = "check mail.oidc.issuer: it must equal the issuer that the provider publishes";
/// The remedy if the mailbox cannot be read.
pub const CHECK_IMAP: &str = "check mail.in.imap: host, port, tls, user, password_file, folder";
/// The server has no key to sign mails with.
pub const NO_DKIM_KEY: &str = "no key configured; the mail server must sign";
/// The text of the mail that is signed to verify the signature.
pub const SIGNED_MAIL: &str = "This mail is not sent.";
/// The remedy if a mail cannot be composed.
pub const CHECK_FROM: &str = "check mail.from";
/// The remedy if the public key is not published.
pub const PUBLISH_DKIM: &str =
    "publish the public part of mail.dkim.key_file there as TXT \"v=DKIM1; k=rsa; p=...\"";
/// The remedy if another public key is published.
pub const CORRECT_DKIM: &str = "publish the public part of mail.dkim.key_file, or correct mail.dkim.selector";

/// The outgoing mail server takes mails of these senders.
#[must_use]
pub fn smtp_accepts(host: &str, senders: &[String]) -> String {
    format!("{host} accepts mail from {}", senders.join(" and "))
}

/// The provider of sign-in works: its page, and the count of its keys with a noun.
#[must_use]
pub fn provider(issuer: &str, page: &impl Display, keys: &str) -> String {
    format!("{issuer} signs people in at {page} and publishes {keys}")
}

/// The provider of sign-in proves nothing.
#[must_use]
pub fn provider_without_keys(issuer: &str, page: &impl Display) -> String {
    format!("{issuer} signs people in at {page}, but publishes no keys")
}

/// The mailbox for replies was opened.
#[must_use]
pub fn mailbox(folder: &str, user: &str, host: &str, messages: &impl Display) -> String {
    format!("{folder} of {user} at {host} has {messages} messages")
}

/// After a finding about the mailbox: the folders that do not exist yet.
#[must_use]
pub fn missing_folders(finding: &str, folders: &[&str]) -> String {
    format!("{finding}; created at the start: {}", folders.join(", "))
}

/// After a finding about the mailbox: its server does not announce new mail.
#[must_use]
pub fn without_idle(finding: &str) -> String {
    format!("{finding}; the server does not support IDLE")
}

/// The consequence of a mail server that does not announce new mail.
#[must_use]
pub fn polls(seconds: u64) -> String {
    format!("new mail is checked every {seconds} s")
}

/// A domain has an SPF record.
#[must_use]
pub fn spf(domain: &str) -> String {
    format!("{domain} publishes its sending hosts")
}

/// A domain has no SPF record that can be used.
#[must_use]
pub fn no_spf(domain: &str) -> String {
    format!("{domain} does not publish its sending hosts")
}

/// The remedy if a domain has no SPF record.
#[must_use]
pub fn publish_spf(domain: &str) -> String {
    format!("publish TXT {domain} \"v=spf1 ... -all\" with your mail server in it")
}

/// A domain has a DMARC record.
#[must_use]
pub fn dmarc(domain: &str) -> String {
    format!("{domain} has a DMARC policy")
}

/// A domain has no DMARC record that can be used.
#[must_use]
pub fn no_dmarc(domain: &str) -> String {
    format!("{domain} has no DMARC policy")
}

/// The remedy if a domain has no DMARC record.
#[must_use]
pub fn publish_dmarc(domain: &str) -> String {
    format!("publish TXT _dmarc.{domain} \"v=DMARC1; p=none\", and a stricter policy later")
}

/// A record cannot be used: what is missing, and why.
#[must_use]
pub fn unusable_record(missing: &str, why: &impl Display) -> String {
    format!("{missing}: {why}")
}

/// Receivers can verify the signatures of mails by the record of this name.
#[must_use]
pub fn dkim(name: &str) -> String {
    format!("{name} is the public key of the configured key")
}

/// The record with the public key is missing.
#[must_use]
pub fn no_dkim(name: &str) -> String {
    format!("{name} does not exist")
}

/// The record has another public key.
#[must_use]
pub fn other_dkim(name: &str, why: &impl Display) -> String {
    format!("{name} is not the public key of the configured key: {why}")
}

/// The mail servers that get replies.
#[must_use]
pub fn mx(domain: &str, hosts: &[String]) -> String {
    format!("mail to {domain} goes to {}", hosts.join(", "))
}

/// Replies to a domain have no destination.
#[must_use]
pub fn no_mx(domain: &str) -> String {
    format!("{domain} has no MX record")
}

/// The remedy if replies to a domain have no destination.
#[must_use]
pub fn publish_mx(domain: &str) -> String {
    format!("publish MX {domain}, so that replies arrive")
}
