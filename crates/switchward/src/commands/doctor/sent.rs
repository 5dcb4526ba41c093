//! A mail that is sent to ourselves with a forged `Authentication-Results` field: whether the mail server in front takes it
//! out, as one must whose own fields are believed (RFC 8601 §5).

use std::io;
use std::sync::Mutex;
use std::time::Duration;

use jiff::Zoned;
use switchward_delivery::mail::{Composed, Post as _};
use switchward_mail::imap;
use switchward_mail::incoming::{Envelope, Planted, planted};
use switchward_mail::lmtp::{self, Receive, Taken};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use super::Found;
use super::mail::{from, reply_domain};
use crate::mail_config::{Incoming, MailConfig};

/// How long the mail may take to come back.
const PATIENCE: Duration = Duration::from_secs(60);
const WHAT: &str = "forged";

/// The mail, and what is looked for in it.
struct Probe {
    mail: Composed,
    /// The hosts whose fields were forged, and whether they are believed.
    hosts: Vec<String>,
    trusted: bool,
    /// What stands in the forged fields, and nowhere else in the world.
    mark: String,
}

/// Sends the mail and waits for it.
pub(super) async fn look(config: &MailConfig, incoming: &Incoming) -> Found {
    let Some(probe) = Probe::of(config, incoming).await else {
        return Found::warn(WHAT, "mail.reply is not said, so no mail comes back", "say mail.reply");
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
            let said = "mail comes in by HTTP alone, which this program cannot watch";
            return Found::warn(WHAT, said, "send a mail with such a field yourself, and look what is left");
        }
    };
    match back {
        Ok(Ok(raw)) => probe.judged(&raw),
        Ok(Err(error)) => Found::fail(WHAT, error, "look at mail.in.imap"),
        Err(_) => {
            let said =
                format!("the mail to {} did not come back within {} s", probe.mail.to, PATIENCE.as_secs());
            Found::fail(
                WHAT,
                said,
                "look at the log of the mail server in front, and where it puts such mail",
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
        let text =
            "Sent by switchward doctor --send to find out what becomes of a forged header field.".to_owned();
        // Who reads it meanwhile takes it for a machine's.
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

    async fn send(&self, config: &MailConfig) -> Result<(), Found> {
        let smtp = config.smtp.open().map_err(|error| {
            Found::fail(WHAT, format!("{error:#}"), "see [mail.smtp] in deploy/switchward.toml")
        })?;
        let sent = smtp.send(0, &self.mail).await;
        sent.map_err(|error| Found::fail(WHAT, format!("{}: {error}", config.smtp.host), "look at mail.smtp"))
    }

    /// What a message that came back says.
    fn judged(&self, raw: &[u8]) -> Found {
        let hosts = self.hosts.join(", ");
        match (planted(raw, &self.hosts, &self.mark), self.trusted) {
            (Planted::Gone, _) => Found::ok(
                WHAT,
                format!("the mail server takes out Authentication-Results that a sender wrote as {hosts}"),
            ),
            (Planted::Below, true) => Found::warn(
                WHAT,
                format!(
                    "the mail server leaves Authentication-Results that a sender wrote as {hosts}; below its own \
                     Received it is not believed"
                ),
                "have it take them out, or take the host out of mail.in.trusted_hosts",
            ),
            (Planted::Believed, true) => Found::fail(
                WHAT,
                format!(
                    "the mail server leaves Authentication-Results that a sender wrote as {hosts}, and it is believed"
                ),
                "take the host out of mail.in.trusted_hosts until the mail server takes them out: anybody can approve",
            ),
            (Planted::Below | Planted::Believed, false) => Found::ok(
                WHAT,
                format!(
                    "the mail server leaves Authentication-Results that a sender wrote as {hosts}; no host is trusted, \
                     and so none is believed"
                ),
            ),
        }
    }
}

/// The finding if the address cannot be listened on.
fn taken(at: std::net::SocketAddr, error: &io::Error) -> Found {
    if error.kind() == io::ErrorKind::AddrInUse {
        let said = format!("{at} is taken, and so the mail that comes there cannot be seen");
        return Found::warn(WHAT, said, "stop the server for as long, and do it again");
    }
    Found::fail(WHAT, format!("{at} cannot be listened on: {error}"), "say another one as mail.in.lmtp")
}

/// Takes the one mail; every other is to come again later, when a server listens there.
struct Taker {
    recipient: String,
    came: Mutex<Option<oneshot::Sender<Vec<u8>>>>,
}

impl Receive for Taker {
    fn knows(&self, _recipient: &str) -> bool {
        true
    }

    async fn receive(&self, envelope: Envelope, raw: Vec<u8>) -> Taken {
        let is_it = envelope.recipients.iter().any(|one| one.eq_ignore_ascii_case(&self.recipient));
        let came = self.came.lock().ok().filter(|_| is_it).and_then(|mut came| came.take());
        if came.is_some_and(|came| came.send(raw).is_ok()) { Taken::Kept } else { Taken::Later }
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
    // The mail server gets its reply first.
    tokio::time::sleep(Duration::from_secs(1)).await;
    stop.send_replace(true);
    let _ended = serving.await;
    raw
}
