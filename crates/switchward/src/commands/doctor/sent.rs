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
use switchward_messages::cli::doctor::machine::failed_to_listen;
use switchward_messages::cli::doctor::mail::SEE_SMTP;
use switchward_messages::cli::doctor::test_mail as texts;
use switchward_messages::cli::doctor::test_mail::ForgedFields;
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
        return CheckResult::warn(WHAT, texts::NO_REPLY_ADDRESS, texts::SET_REPLY_ADDRESS);
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
        (None, None) => return CheckResult::warn(WHAT, texts::HTTP_ONLY, texts::SEND_YOURSELF),
    };
    match back {
        Ok(Ok(raw)) => probe.judged(&raw),
        Ok(Err(error)) => CheckResult::fail(WHAT, error, texts::CHECK_IMAP),
        Err(_) => {
            let said = texts::not_arrived(&probe.mail.to, PATIENCE);
            CheckResult::fail(WHAT, said, texts::CHECK_DELIVERY)
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
        let text = texts::TEXT.to_owned();
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
        let smtp = config.smtp.open();
        let smtp = smtp.map_err(|error| CheckResult::fail(WHAT, format!("{error:#}"), SEE_SMTP))?;
        let sent = smtp.send(0, &self.mail).await;
        sent.map_err(|error| {
            CheckResult::fail(WHAT, format!("{}: {error}", config.smtp.host), texts::CHECK_SMTP)
        })
    }

    /// The finding from the mail that arrived.
    fn judged(&self, raw: &[u8]) -> CheckResult {
        let kept = |fields| texts::fields_kept(&self.hosts, fields);
        match (planted(raw, &self.hosts, &self.mark), self.trusted) {
            (Planted::Gone, _) => CheckResult::ok(WHAT, texts::fields_removed(&self.hosts)),
            (Planted::Below, true) => {
                CheckResult::warn(WHAT, kept(ForgedFields::Below), texts::REMOVE_FIELDS)
            }
            (Planted::Believed, true) => {
                CheckResult::fail(WHAT, kept(ForgedFields::Trusted), texts::DO_NOT_TRUST)
            }
            (Planted::Below | Planted::Believed, false) => CheckResult::ok(WHAT, kept(ForgedFields::Ignored)),
        }
    }
}

/// The finding if the address cannot be listened on.
fn taken(at: std::net::SocketAddr, error: &io::Error) -> CheckResult {
    if error.kind() == io::ErrorKind::AddrInUse {
        return CheckResult::warn(WHAT, texts::address_in_use(&at), texts::STOP_SERVER);
    }
    CheckResult::fail(WHAT, failed_to_listen(&at, error), texts::SET_LMTP)
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
