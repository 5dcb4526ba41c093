//! Mail: the server that takes it, the mailbox that it comes back to, and what the DNS says of our domains.

use switchward_delivery::mail::{OutboundMail, Purpose, compose};
use switchward_delivery::openid::Published as OfProvider;
use switchward_delivery::worker::MailChannel;
use switchward_mail::imap;
use switchward_mail::incoming::{Dns, Published};

use super::{Found, sent};
use crate::mail_config::MailConfig;
use crate::output::count;

/// Everything about mail; one line if none is configured. Nothing is sent unless `send` is set.
pub(super) async fn look(config: Option<&MailConfig>, send: bool) -> Vec<Found> {
    let Some(config) = config else {
        return vec![Found::ok("mail", "none is configured; mails wait in the outbox")];
    };
    let channel = match config.channel() {
        Ok(channel) => channel,
        Err(error) => {
            return vec![Found::fail("mail", format!("{error:#}"), "see [mail] in deploy/switchward.toml")];
        }
    };
    let mut found = vec![smtp(config).await];
    found.extend(provider(config).await);
    let incoming = match config.incoming() {
        Ok(incoming) => incoming,
        Err(error) => {
            found.push(Found::fail(
                "mail.in",
                format!("{error:#}"),
                "see [mail.in] in deploy/switchward.toml",
            ));
            None
        }
    };
    if let Some(account) = incoming.as_ref().and_then(|incoming| incoming.imap.as_ref()) {
        found.push(mailbox(account).await);
    }
    match incoming {
        Some(incoming) => {
            found.extend(names(config, &channel, &incoming.dns).await);
            if send {
                found.push(sent::look(config, &incoming).await);
            }
        }
        None => match Dns::of_the_system() {
            Ok(dns) => found.extend(names(config, &channel, &dns).await),
            Err(error) => found.push(Found::fail("dns", error.to_string(), "say mail.in.dns")),
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

async fn smtp(config: &MailConfig) -> Found {
    let what = "smtp";
    let smtp = match config.smtp.open() {
        Ok(smtp) => smtp,
        Err(error) => {
            return Found::fail(what, format!("{error:#}"), "see [mail.smtp] in deploy/switchward.toml");
        }
    };
    let mut senders = vec![from(config).0];
    // Bounces go where replies go.
    senders.extend(config.reply.as_ref().map(|reply| reply.replace("{token}", "doctor")));
    match smtp.probe(&senders).await {
        Ok(()) => Found::ok(what, format!("{} takes mail from {}", config.smtp.host, senders.join(" and "))),
        Err(error) => {
            let said = format!("{}: {error}", config.smtp.host);
            Found::fail(
                what,
                said,
                "look at mail.smtp: host, port, tls, user; and whether it takes mail from there",
            )
        }
    }
}

/// The OpenID provider, if there is one. Nobody signs in.
async fn provider(config: &MailConfig) -> Option<Found> {
    let what = "oidc";
    let issuer = &config.oidc.as_ref()?.issuer;
    let provider = match config.provider() {
        Ok(provider) => provider?,
        Err(error) => {
            let advice = "see [mail.oidc] in deploy/switchward.toml";
            return Some(Found::fail(what, format!("{error:#}"), advice));
        }
    };
    Some(match provider.published().await {
        Ok(OfProvider { page, keys: 0 }) => {
            let said = format!("{issuer} signs people in at {page}, and publishes no key to verify it with");
            Found::fail(what, said, "have it publish its keys")
        }
        Ok(OfProvider { page, keys }) => {
            let keys = count(keys, "key");
            Found::ok(what, format!("{issuer} signs people in at {page}, and publishes {keys}"))
        }
        Err(unusable) => {
            let advice = "look at mail.oidc.issuer: it must be the very text that the provider calls itself";
            Found::fail(what, format!("{issuer}: {unusable}"), advice)
        }
    })
}

async fn mailbox(account: &imap::Account) -> Found {
    let what = "imap";
    match imap::probe(account).await {
        Ok(found) => {
            let mut said = format!(
                "{} of {} at {} has {} messages",
                account.folder, account.user, account.host, found.messages
            );
            let missing: Vec<&str> =
                found.folders.iter().filter(|(_, there)| !there).map(|(name, _)| name.as_str()).collect();
            if !missing.is_empty() {
                said.push_str(&format!("; not there yet, and made at the start: {}", missing.join(", ")));
            }
            if found.idle {
                Found::ok(what, said)
            } else {
                let seconds = account.pace.poll.as_secs();
                Found::warn(
                    what,
                    format!("{said}; it tells of no new mail"),
                    format!("it is asked every {seconds} s"),
                )
            }
        }
        Err(error) => {
            let advice = "look at mail.in.imap: host, port, tls, user, password_file, folder";
            Found::fail(what, format!("{}: {error}", account.host), advice)
        }
    }
}

/// The DNS records of the domains that mail comes from and replies go to.
async fn names(config: &MailConfig, channel: &MailChannel, dns: &Dns) -> Vec<Found> {
    let (_, domain) = from(config);
    let mut found = vec![dkim(config, channel, dns).await];
    let mut sending = vec![domain.clone()];
    if let Some(reply) = reply_domain(config) {
        found.push(hosts(&reply, dns).await);
        // It is what servers see where bounces go.
        sending.insert(0, reply);
    }
    sending.dedup();
    for sending in sending {
        found.push(published(
            "spf",
            dns.senders_of(&sending).await,
            format!("{sending} says which hosts send for it"),
            format!("{sending} does not say which hosts send for it"),
            format!("publish TXT {sending} \"v=spf1 ... -all\" with your mail server in it"),
        ));
    }
    found.push(published(
        "dmarc",
        dns.policy_of(&domain).await,
        format!("{domain} has a policy for mail that is not proved to be its own"),
        format!("{domain} has no policy for mail that is not proved to be its own"),
        format!("publish TXT _dmarc.{domain} \"v=DMARC1; p=none\", and a stricter one later"),
    ));
    found
}

fn published(what: &'static str, found: Published, there: String, missing: String, advice: String) -> Found {
    match found {
        Published::There => Found::ok(what, there),
        Published::Missing => Found::warn(what, missing, advice),
        Published::Unusable(why) => Found::fail(what, format!("{missing}: {why}"), advice),
    }
}

/// A mail is written and signed as every one, and its signature is looked at as its receiver does.
async fn dkim(config: &MailConfig, channel: &MailChannel, dns: &Dns) -> Found {
    let what = "dkim";
    let Some(key) = &config.dkim else {
        return Found::ok(what, "no key is configured; the mail server signs");
    };
    let name = format!("{}._domainkey.{}", key.selector, key.domain);
    let outbound = OutboundMail {
        to: from(config).0,
        subject: "doctor".into(),
        purpose: Purpose::Say,
        body: "This mail is not sent.".into(),
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
        Err(error) => return Found::fail(what, error.to_string(), "look at mail.from"),
    };
    match dns.signature_of(&mail.raw).await {
        Published::There => Found::ok(what, format!("{name} is the key that mails are signed with")),
        Published::Missing => {
            let advice =
                "publish the public part of mail.dkim.key_file there as TXT \"v=DKIM1; k=rsa; p=...\"";
            Found::fail(what, format!("{name} does not exist"), advice)
        }
        Published::Unusable(why) => {
            let said = format!("{name} is not the key that mails are signed with: {why}");
            Found::fail(
                what,
                said,
                "publish the public part of mail.dkim.key_file, or say the right selector",
            )
        }
    }
}

async fn hosts(domain: &str, dns: &Dns) -> Found {
    let what = "mx";
    let advice = format!("publish MX {domain}, so that replies find the way");
    match dns.mail_hosts_of(domain).await {
        Ok(hosts) if !hosts.is_empty() => {
            Found::ok(what, format!("mail to {domain} goes to {}", hosts.join(", ")))
        }
        Ok(_) | Err(Published::Missing | Published::There) => {
            Found::warn(what, format!("{domain} names no host that takes its mail"), advice)
        }
        Err(Published::Unusable(why)) => Found::fail(what, format!("{domain}: {why}"), advice),
    }
}
