//! Mail: the outgoing mail server, the mailbox for replies, and the DNS records of the domains.

use switchward_delivery::{
    channels::MailChannel,
    mail::{OutboundMail, Purpose, compose},
    openid::Published as OfProvider,
};
use switchward_mail::{
    imap,
    incoming::{Dns, Published},
};
use switchward_messages::cli::doctor::mail as texts;

use super::{CheckResult, sent};
use crate::mail_config::MailConfig;
use crate::output::count;

/// Whether a mail is sent that comes back through the mailbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TestMail {
    /// It is sent.
    Send,
    /// Nothing is sent.
    Skip,
}

/// All checks of mail; one line if mail is not configured.
pub(super) async fn look(config: Option<&MailConfig>, test_mail: TestMail) -> Vec<CheckResult> {
    let Some(config) = config else {
        return vec![CheckResult::ok("mail", texts::NOT_CONFIGURED)];
    };
    let channel = match config.channel() {
        Ok(channel) => channel,
        Err(error) => {
            return vec![CheckResult::fail("mail", format!("{error:#}"), texts::SEE_MAIL)];
        }
    };
    let mut found = vec![smtp(config).await];
    found.extend(provider(config).await);
    let incoming = match config.incoming() {
        Ok(incoming) => incoming,
        Err(error) => {
            found.push(CheckResult::fail("mail.in", format!("{error:#}"), texts::SEE_MAIL_IN));
            None
        }
    };
    if let Some(account) = incoming.as_ref().and_then(|incoming| incoming.imap.as_ref()) {
        found.push(mailbox(account).await);
    }
    match incoming {
        Some(incoming) => {
            found.extend(names(config, &channel, &incoming.dns).await);
            if test_mail == TestMail::Send {
                found.push(sent::look(config, &incoming).await);
            }
        }
        None => match Dns::of_the_system() {
            Ok(dns) => found.extend(names(config, &channel, &dns).await),
            Err(error) => found.push(CheckResult::fail("dns", error.to_string(), texts::SET_DNS)),
        },
    }
    found
}

/// The address in `From`, and its domain.
pub(super) fn from(config: &MailConfig) -> (String, String) {
    let address = config.from.rsplit_once('<').map_or(config.from.as_str(), |(_, rest)| rest);
    let address = address.trim_end_matches('>').trim().to_owned();
    let domain = address.rsplit_once('@').map(|(_, domain)| domain.to_ascii_lowercase()).unwrap_or_default();
    (address, domain)
}

/// The domain that replies go to.
pub(super) fn reply_domain(config: &MailConfig) -> Option<String> {
    let (_, domain) = config.reply.as_ref()?.rsplit_once('@')?;
    Some(domain.to_ascii_lowercase())
}

async fn smtp(config: &MailConfig) -> CheckResult {
    let what = "smtp";
    let smtp = match config.smtp.open() {
        Ok(smtp) => smtp,
        Err(error) => return CheckResult::fail(what, format!("{error:#}"), texts::SEE_SMTP),
    };
    let mut senders = vec![from(config).0];
    // Bounces go to the reply address.
    senders.extend(config.reply.as_ref().map(|reply| reply.replace("{token}", "doctor")));
    match smtp.probe(&senders).await {
        Ok(()) => CheckResult::ok(what, texts::smtp_accepts(&config.smtp.host, &senders)),
        Err(error) => {
            let said = format!("{}: {error}", config.smtp.host);
            CheckResult::fail(what, said, texts::CHECK_SMTP_AND_SENDERS)
        }
    }
}

/// The OpenID provider, if there is one. No sign-in takes place.
async fn provider(config: &MailConfig) -> Option<CheckResult> {
    let what = "oidc";
    let issuer = &config.oidc.as_ref()?.issuer;
    let provider = match config.provider() {
        Ok(provider) => provider?,
        Err(error) => {
            return Some(CheckResult::fail(what, format!("{error:#}"), texts::SEE_OIDC));
        }
    };
    Some(match provider.published().await {
        Ok(OfProvider { page, keys: 0 }) => {
            CheckResult::fail(what, texts::provider_without_keys(issuer, &page), texts::PUBLISH_KEYS)
        }
        Ok(OfProvider { page, keys }) => {
            CheckResult::ok(what, texts::provider(issuer, &page, &count(keys, "key")))
        }
        Err(unusable) => CheckResult::fail(what, format!("{issuer}: {unusable}"), texts::CHECK_ISSUER),
    })
}

async fn mailbox(account: &imap::Account) -> CheckResult {
    let what = "imap";
    match imap::probe(account).await {
        Ok(found) => {
            let mut said = texts::mailbox(&account.folder, &account.user, &account.host, &found.messages);
            let missing: Vec<&str> =
                found.folders.iter().filter(|(_, there)| !there).map(|(name, _)| name.as_str()).collect();
            if !missing.is_empty() {
                said = texts::missing_folders(&said, &missing);
            }
            if found.idle {
                CheckResult::ok(what, said)
            } else {
                let seconds = account.pace.poll.as_secs();
                CheckResult::warn(what, texts::without_idle(&said), texts::polls(seconds))
            }
        }
        Err(error) => CheckResult::fail(what, format!("{}: {error}", account.host), texts::CHECK_IMAP),
    }
}

/// The DNS records of the domains of the sender and the reply address.
async fn names(config: &MailConfig, channel: &MailChannel, dns: &Dns) -> Vec<CheckResult> {
    let (_, domain) = from(config);
    let mut found = vec![dkim(config, channel, dns).await];
    let mut sending = vec![domain.clone()];
    if let Some(reply) = reply_domain(config) {
        found.push(hosts(&reply, dns).await);
        // Mail servers see it as the return path.
        sending.insert(0, reply);
    }
    sending.dedup();
    for sending in sending {
        found.push(published(
            "spf",
            dns.senders_of(&sending).await,
            texts::spf(&sending),
            texts::no_spf(&sending),
            texts::publish_spf(&sending),
        ));
    }
    found.push(published(
        "dmarc",
        dns.policy_of(&domain).await,
        texts::dmarc(&domain),
        texts::no_dmarc(&domain),
        texts::publish_dmarc(&domain),
    ));
    found
}

fn published(
    what: &'static str,
    found: Published,
    there: String,
    missing: String,
    advice: String,
) -> CheckResult {
    match found {
        Published::There => CheckResult::ok(what, there),
        Published::Missing => CheckResult::warn(what, missing, advice),
        Published::Unusable(why) => CheckResult::fail(what, texts::unusable_record(&missing, &why), advice),
    }
}

/// Composes and signs a mail, and verifies its signature as a receiver does.
async fn dkim(config: &MailConfig, channel: &MailChannel, dns: &Dns) -> CheckResult {
    let what = "dkim";
    let Some(key) = &config.dkim else {
        return CheckResult::ok(what, texts::NO_DKIM_KEY);
    };
    let name = format!("{}._domainkey.{}", key.selector, key.domain);
    let outbound = OutboundMail {
        to: from(config).0,
        subject: "doctor".into(),
        purpose: Purpose::Say,
        body: texts::SIGNED_MAIL.into(),
        html: false,
        id: "doctor".into(),
        thread: "doctor".into(),
        reply_token: None,
        page_token: None,
        bounce_token: None,
        facts: Vec::new(),
        choice: None,
        head: None,
    };
    let mail = match compose(&outbound, &channel.sender) {
        Ok(mail) => mail,
        Err(error) => return CheckResult::fail(what, error.to_string(), texts::CHECK_FROM),
    };
    match dns.signature_of(&mail.raw).await {
        Published::There => CheckResult::ok(what, texts::dkim(&name)),
        Published::Missing => CheckResult::fail(what, texts::no_dkim(&name), texts::PUBLISH_DKIM),
        Published::Unusable(why) => {
            CheckResult::fail(what, texts::other_dkim(&name, &why), texts::CORRECT_DKIM)
        }
    }
}

async fn hosts(domain: &str, dns: &Dns) -> CheckResult {
    let what = "mx";
    let advice = texts::publish_mx(domain);
    match dns.mail_hosts_of(domain).await {
        Ok(hosts) if !hosts.is_empty() => CheckResult::ok(what, texts::mx(domain, &hosts)),
        Ok(_) | Err(Published::Missing | Published::There) => {
            CheckResult::warn(what, texts::no_mx(domain), advice)
        }
        Err(Published::Unusable(why)) => CheckResult::fail(what, format!("{domain}: {why}"), advice),
    }
}
