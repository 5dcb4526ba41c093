//! A mail to the server's own reply address with a forged `Authentication-Results` field: checks whether the mail
//! server in front removes it, as a trusted mail server must (RFC 8601 §5).

use jiff::Zoned;
use std::io;
use std::sync::Mutex;
use std::time::Duration;
use switchward_delivery::mail::{Composed, Post as _};
use switchward_mail::{
    imap,
    incoming::{Envelope, Planted, planted},
    lmtp::{self, Receive, ReceiveOutcome},
};
use tokio::{net::TcpListener, sync::oneshot};

use super::CheckResult;
use super::mail::{from, reply_domain};
use crate::mail_config::{Incoming, MailConfig};

/// The time limit for the mail to arrive.
const PATIENCE: Duration = Duration::from_secs(60);
const WHAT: &str = "forged";

/// The mail, and what it is checked for.
struct Probe {
    mail: Composed,
    /// The hosts of the forged fields, and whether the server trusts them.
    hosts: Vec<String>,
    trusted: bool,
    /// A unique mark of the forged fields.
    mark: String,
}

/// Sends the mail and waits for it.
pub(super) async fn look(config: &MailConfig, incoming: &Incoming) -> CheckResult {
    let Some(probe) = Probe::of(config, incoming).await else {
        return CheckResult::warn(WHAT, "mail.reply is not set, so no mail can arrive", "set mail.reply");
    };
    let back = match (&incoming.imap, incoming.lmtp) {
        (Some(account), _) => {
            if let Err(found) = probe.send(config).await {
                return found;
            }
            let found = tokio::time::timeout(PATIENCE, imap::find(account, &probe.mail.message_id)).await;
            found.map(|found| found.map_err(|error| error.to_string()))
        }
        (None, Some(at)) => {
            let listener = match TcpListener::bind(at).await {
                Ok(listener) => listener,
                Err(error) => return taken(at, &error),
            };
            if let Err(found) = probe.send(config).await {
                return found;
            }
            tokio::time::timeout(PATIENCE, wait(listener, &probe.mail.to)).await.map(Ok)
        }
        (None, None) => {
            let said = "mail comes in only by HTTP, which doctor cannot watch";
            return CheckResult::warn(
                WHAT,
                said,
                "send a mail with such a field yourself, and check what arrives",
            );
        }
    };
    match back {
        Ok(Ok(raw)) => probe.judged(&raw),
        Ok(Err(error)) => CheckResult::fail(WHAT, error, "check mail.in.imap"),
        Err(_) => {
            let said =
                format!("the mail to {} did not arrive within {} s", probe.mail.to, PATIENCE.as_secs());
            CheckResult::fail(
                WHAT,
                said,
                "check the log of the mail server in front, and where it delivers such mail",
            )
        }
    }
}

impl Probe {
    async fn of(config: &MailConfig, incoming: &Incoming) -> Option<Self> {
        let mark = format!("{:016x}.invalid", rand::random::<u64>());
        let (from, _) = from(config);
        let to = config.reply.as_ref()?.replace("{token}", "doctor");
        let domain = reply_domain(config)?;
        let trusted = !incoming.trusted_hosts().is_empty();
        // If none is trusted, the server that takes our mail might be added next.
        let mut hosts = incoming.trusted_hosts().to_vec();
        if !trusted {
            hosts = incoming.dns.mail_hosts_of(&domain).await.unwrap_or_default();
        }
        if hosts.is_empty() {
            hosts.push(domain.clone());
        }
        let message_id = format!("doctor.{mark}@{domain}");
        let date = Zoned::now().strftime("%a, %d %b %Y %H:%M:%S %z");
        let fields = hosts.iter().map(|host| {
            format!(
                "Authentication-Results: {host}; dkim=pass header.d={mark};\r\n dmarc=pass header.from={mark}\r\n"
            )
        });
        let subject = "switchward doctor".to_owned();
        let text = "Sent by switchward doctor --send to test a forged header field.".to_owned();
        // A server that reads the mail meanwhile recognises it as automatic.
        let raw = format!(
            "{}From: {from}\r\nTo: {to}\r\nSubject: {subject}\r\nDate: {date}\r\nMessage-ID: <{message_id}>\r\n\
             Auto-Submitted: auto-generated\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n\
             {text}\r\n",
            fields.collect::<String>()
        );
        let mail = Composed {
            author: from.clone(),
            named: vec![to.clone()],
            reply_to: None,
            bounce_to: None,
            raw: raw.into_bytes(),
            from,
            to,
            message_id,
            subject,
            text,
        };
        Some(Self { mail, hosts, trusted, mark })
    }

    async fn send(&self, config: &MailConfig) -> Result<(), CheckResult> {
        let smtp = config.smtp.open().map_err(|error| {
            CheckResult::fail(WHAT, format!("{error:#}"), "see [mail.smtp] in deploy/switchward.toml")
        })?;
        let sent = smtp.send(0, &self.mail).await;
        sent.map_err(|error| {
            CheckResult::fail(WHAT, format!("{}: {error}", config.smtp.host), "check mail.smtp")
        })
    }

    /// The finding from the mail that arrived.
    fn judged(&self, raw: &[u8]) -> CheckResult {
        let hosts = self.hosts.join(", ");
        match (planted(raw, &self.hosts, &self.mark), self.trusted) {
            (Planted::Gone, _) => CheckResult::ok(
                WHAT,
                format!("the mail server removes forged Authentication-Results fields of {hosts}"),
            ),
            (Planted::Below, true) => CheckResult::warn(
                WHAT,
                format!(
                    "the mail server keeps forged Authentication-Results fields of {hosts}; below its Received field \
                     they are not trusted"
                ),
                "configure it to remove them, or remove the host from mail.in.trusted_hosts",
            ),
            (Planted::Believed, true) => CheckResult::fail(
                WHAT,
                format!(
                    "the mail server keeps forged Authentication-Results fields of {hosts}, and they are trusted"
                ),
                "remove the host from mail.in.trusted_hosts until the mail server removes them: anybody can approve",
            ),
            (Planted::Below | Planted::Believed, false) => CheckResult::ok(
                WHAT,
                format!(
                    "the mail server keeps forged Authentication-Results fields of {hosts}; no host is trusted, so \
                     they are ignored"
                ),
            ),
        }
    }
}

/// The finding if the address cannot be listened on.
fn taken(at: std::net::SocketAddr, error: &io::Error) -> CheckResult {
    if error.kind() == io::ErrorKind::AddrInUse {
        let said = format!("{at} is in use, so the mail cannot be received there");
        return CheckResult::warn(WHAT, said, "stop the server, and run doctor again");
    }
    CheckResult::fail(
        WHAT,
        format!("failed to listen on {at}: {error}"),
        "set mail.in.lmtp to another address",
    )
}

/// Accepts the one mail; defers all others until a server listens.
struct Taker {
    recipient: String,
    came: Mutex<Option<oneshot::Sender<Vec<u8>>>>,
}

impl Receive for Taker {
    fn knows(&self, _recipient: &str) -> bool {
        true
    }

    async fn receive(&self, envelope: Envelope, raw: Vec<u8>) -> ReceiveOutcome {
        let is_it = envelope.recipients.iter().any(|one| one.eq_ignore_ascii_case(&self.recipient));
        let came = self.came.lock().ok().filter(|_| is_it).and_then(|mut came| came.take());
        if came.is_some_and(|came| came.send(raw).is_ok()) {
            ReceiveOutcome::Stored
        } else {
            ReceiveOutcome::Later
        }
    }
}

/// Waits for the one mail by LMTP.
async fn wait(listener: TcpListener, recipient: &str) -> Vec<u8> {
    let (came, raw) = oneshot::channel();
    let taker = Taker { recipient: recipient.to_owned(), came: Mutex::new(Some(came)) };
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let serving = lmtp::serve(listener, "doctor.invalid".into(), taker.into(), stopped);
    let serving = tokio::spawn(serving);
    let raw = raw.await.unwrap_or_default();
    // The mail server gets its response first.
    tokio::time::sleep(Duration::from_secs(1)).await;
    stop.send_replace(true);
    let _ended = serving.await;
    raw
}
