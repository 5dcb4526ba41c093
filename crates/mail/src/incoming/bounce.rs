//! Mail about mail of ours that did not arrive (RFC 3464, and older forms).

use mail_parser::{Message, MessagePart, MimeHeaders};

use super::headers::{Headers, cut};
use super::{Envelope, MachineKind, Settings, Sorted, address, tokens};
use crate::limits::{
    BOUNCE_RECIPIENTS_MAX, BOUNCE_SEARCH_BYTES_MAX, BOUNCE_TEXT_BYTES_MAX, PARTS_MAX, TOKENS_MAX,
};

/// A mail of ours that did not arrive, or not yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bounce {
    /// Whether it never will: a status of class 5, or no status and no mention of a delay.
    pub permanent: bool,
    /// The addresses that it did not reach, as written, at most [`BOUNCE_RECIPIENTS_MAX`].
    pub recipients: Vec<String>,
    /// The mails that it may be about: tokens of ours in it, likeliest first.
    pub tokens: Vec<String>,
    /// The first status code that says why (RFC 3463), such as `5.1.1`.
    pub status: Option<String>,
    /// The refusing server's message, if a report has it; else the beginning of the text for people; at most
    /// [`BOUNCE_TEXT_BYTES_MAX`] bytes, on one line.
    pub text: String,
    /// Whether it says that delivery will be retried.
    pub delayed: bool,
}

impl Bounce {
    /// Why the mail did not arrive, on one line: the status and the text.
    #[must_use]
    pub fn why(&self) -> String {
        match &self.status {
            Some(status) if !self.text.contains(status.as_str()) => format!("{status} {}", self.text),
            Some(_) | None => self.text.clone(),
        }
        .trim()
        .to_owned()
    }

    /// Returns true if nothing in it refers to a mail of ours: it has the null sender, and no more is known.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        self.tokens.is_empty() && self.status.is_none() && !self.delayed && self.recipients.is_empty()
    }
}

/// What a report says of one or more recipients.
#[derive(Default)]
struct DeliveryStatus {
    recipients: Vec<String>,
    status: Option<String>,
    failed: bool,
    delayed: bool,
    /// The refusing server's message.
    diagnostic: Option<String>,
    /// Whether a recipient's mail arrived.
    arrived: bool,
}

/// Returns a bounce, if the message has the form of one; a receipt if a report says that the mail arrived.
pub(super) fn of(
    headers: &Headers<'_>,
    message: &Message<'_>,
    raw: &[u8],
    envelope: &Envelope,
    settings: &Settings,
) -> Option<Sorted> {
    let content = headers.word("content-type");
    let report = content.starts_with("multipart/report") && !other_report(&content);
    let dsn = delivery_status(message);
    if let Some(dsn) = &dsn
        && (report || content.starts_with("message/delivery-status") || from_a_daemon(headers))
    {
        if dsn.arrived && !dsn.failed && !dsn.delayed {
            return Some(Sorted::Machine { kind: MachineKind::Receipt });
        }
        return Some(Sorted::Bounce(bounce(dsn, message, raw, headers, envelope, settings)));
    }
    let failed_recipients = headers.first("x-failed-recipients").map(|field| field.text());
    if failed_recipients.is_none() && !(report || from_a_daemon(headers) || says_undelivered(headers)) {
        return None;
    }
    let listed = failed_recipients.and_then(|text| address::listed(&text).ok()).unwrap_or_default();
    let recipients: Vec<String> = listed.into_iter().map(|address| address.text).collect();
    let delayed = recipients.is_empty() && says_delayed(headers, raw);
    let dsn = DeliveryStatus { failed: !delayed, delayed, recipients, ..DeliveryStatus::default() };
    Some(Sorted::Bounce(bounce(&dsn, message, raw, headers, envelope, settings)))
}

/// Returns a bounce for a mail with the null sender that no other machine wrote: its sender wants no answer
/// (RFC 5321 §4.5.5). In any form, it reports that a mail did not arrive, permanently unless it mentions a delay.
pub(super) fn null_sender(
    headers: &Headers<'_>,
    message: &Message<'_>,
    raw: &[u8],
    envelope: &Envelope,
    settings: &Settings,
) -> Option<Bounce> {
    let empty = |text: &str| text.trim().trim_matches(['<', '>']).trim().is_empty();
    let by_transport = envelope.sender.as_deref().is_some_and(empty);
    let by_header = headers.all("return-path").any(|field| empty(&field.bare()));
    if !(by_transport || by_header) {
        return None;
    }
    let delayed = says_delayed(headers, raw);
    let dsn = DeliveryStatus { failed: !delayed, delayed, ..DeliveryStatus::default() };
    Some(bounce(&dsn, message, raw, headers, envelope, settings))
}

/// Words by which an unstructured mail says that a delivery is retried.
const DELAYS: &[&str] = &[
    "will be retried",
    "will retry",
    "will try again",
    "will keep trying",
    "will continue to try",
    "still being retried",
    "still trying",
    "has been delayed",
    "is delayed",
    "delivery delayed",
    "delayed mail",
    "delivery delay",
    "not yet been delivered",
    "temporarily deferred",
    "you do not need to resend",
    "warning: message",
    "warning: could not send message for past",
];

fn says_delayed(headers: &Headers<'_>, raw: &[u8]) -> bool {
    let body = &raw[headers.body_at..];
    let body = String::from_utf8_lossy(&body[..body.len().min(BOUNCE_TEXT_BYTES_MAX)]).to_lowercase();
    let body = body.split_whitespace().collect::<Vec<_>>().join(" ");
    let subject = headers.subject().to_lowercase();
    DELAYS.iter().any(|words| subject.contains(words) || body.contains(words))
}

fn bounce(
    dsn: &DeliveryStatus,
    message: &Message<'_>,
    raw: &[u8],
    headers: &Headers<'_>,
    envelope: &Envelope,
    settings: &Settings,
) -> Bounce {
    let body = &raw[headers.body_at..];
    let body = String::from_utf8_lossy(&body[..body.len().min(BOUNCE_SEARCH_BYTES_MAX)]);
    let status = dsn.status.clone().or_else(|| status_in(&body));
    let permanent = match &status {
        Some(status) => status.starts_with('5') && !dsn.delayed,
        None => dsn.failed && !dsn.delayed,
    };
    let mut found: Vec<String> = tokens::of(headers, envelope, settings)
        .map(|tokens| tokens.into_iter().map(|token| token.text).collect())
        .unwrap_or_default();
    for token in tokens::in_text(&body, settings) {
        if found.len() < TOKENS_MAX && !found.contains(&token) {
            found.push(token);
        }
    }
    let words = || message.body_text(0).unwrap_or_else(|| body.clone()).into_owned();
    let text = dsn.diagnostic.clone().unwrap_or_else(words);
    let text = cut(&text, BOUNCE_SEARCH_BYTES_MAX);
    let text = cut(&text.split_whitespace().collect::<Vec<_>>().join(" "), BOUNCE_TEXT_BYTES_MAX);
    let recipients = dsn.recipients.clone();
    Bounce { permanent, recipients, tokens: found, status, text, delayed: dsn.delayed }
}

/// Returns true if a report is not about deliveries.
fn other_report(content: &str) -> bool {
    ["disposition-notification", "feedback-report", "tlsrpt"].iter().any(|kind| content.contains(kind))
}

fn from_a_daemon(headers: &Headers<'_>) -> bool {
    let from = headers.word("from");
    let daemons = ["mailer-daemon", "mail-daemon", "mailerdaemon", "mail delivery s"];
    let postmaster = from.contains("postmaster@") || from.trim_matches(['<', '>']) == "postmaster";
    daemons.iter().any(|name| from.contains(name)) || (postmaster && says_undelivered(headers))
}

/// Prefixes of the subjects of bounces without a report. A person's answer begins with our subject.
const SUBJECTS: &[&str] = &[
    "undelivered mail",
    "undeliverable",
    "undeliver",
    "undeliverable mail",
    "mail delivery fail",
    "mail delivery problem",
    "mail delivery error",
    "mail delivery warning",
    "mail delivery status",
    "mail delivery system",
    "mail could not be delivered",
    "mail system error",
    "returned mail",
    "returned to sender",
    "delivery status notification",
    "delivery failure",
    "delivery failed",
    "delivery has failed",
    "delivery notification",
    "delivery delay",
    "delivery error",
    "delivery problem",
    "delivery report",
    "delivery unsuccessful",
    "non delivery",
    "nondeliverable",
    "non-delivery",
    "failure notice",
    "failed mail",
    "failure delivery",
    "failed delivery",
    "message delivery failure",
    "message status - undeliverable",
    "message undeliverable",
    "message could not be delivered",
    "warning: could not send message",
    "warning: message",
    "unable to deliver",
    "could not send message",
    "user unknown",
    "unzustellbar",
    "non remis",
    "échec de la remise",
    "no se puede entregar",
    "mancato recapito",
    "não entregue",
    "onbestelbaar",
    "não é possível entregar",
    "配信不能",
    "未送达",
];

fn says_undelivered(headers: &Headers<'_>) -> bool {
    let subject = headers.subject().to_lowercase();
    let subject = subject.trim_start_matches(['*', '-', ' ', '[', '<']);
    SUBJECTS.iter().any(|words| subject.starts_with(words)) || subject.ends_with("(delivery failed)")
}

/// Reads the `message/delivery-status` parts of a report; `None` if it has none.
fn delivery_status(message: &Message<'_>) -> Option<DeliveryStatus> {
    let mut dsn = None;
    for part in message.parts.iter().take(PARTS_MAX) {
        let is_status = |part: &MessagePart<'_>| {
            part.content_type().is_some_and(|it| {
                it.ctype().eq_ignore_ascii_case("message")
                    && it.subtype().is_some_and(|sub| {
                        sub.eq_ignore_ascii_case("delivery-status")
                            || sub.eq_ignore_ascii_case("global-delivery-status")
                    })
            })
        };
        if is_status(part) {
            read_status(
                &String::from_utf8_lossy(part.contents()),
                dsn.get_or_insert_with(DeliveryStatus::default),
            );
        }
    }
    dsn
}

/// Unfolds lines: a line that begins with a space continues the line before it.
fn unfolded(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines().take(BOUNCE_SEARCH_BYTES_MAX / 16) {
        match lines.last_mut() {
            Some(last) if line.starts_with([' ', '\t']) => {
                last.push(' ');
                last.push_str(line.trim());
            }
            Some(_) | None => lines.push(line.to_owned()),
        }
    }
    lines
}

/// Reads the fields of a report (RFC 3464 §2).
fn read_status(text: &str, dsn: &mut DeliveryStatus) {
    for line in &unfolded(text) {
        let Some((name, value)) = line.split_once(':') else { continue };
        let value = value.trim();
        match name.trim().to_ascii_lowercase().as_str() {
            "final-recipient" | "original-recipient" => {
                let recipient = value.split_once(';').map_or(value, |(_, address)| address).trim();
                let recipient = recipient.trim_matches(['<', '>']).to_owned();
                if dsn.recipients.len() < BOUNCE_RECIPIENTS_MAX && !dsn.recipients.contains(&recipient) {
                    dsn.recipients.push(recipient);
                }
            }
            "action" => match value.to_ascii_lowercase().split_whitespace().next().unwrap_or_default() {
                "failed" => dsn.failed = true,
                "delayed" => dsn.delayed = true,
                "delivered" | "relayed" | "expanded" => dsn.arrived = true,
                _ => {}
            },
            "diagnostic-code" => {
                let said = value.split_once(';').map_or(value, |(_, said)| said).trim();
                dsn.diagnostic = dsn.diagnostic.take().or_else(|| Some(said.to_owned()));
            }
            "status" => {
                let status = value.split_whitespace().next().filter(|word| is_status_code(word));
                dsn.status = dsn.status.take().or_else(|| status.map(str::to_owned));
            }
            _ => {}
        }
    }
    // A failed recipient takes precedence over delayed ones.
    dsn.delayed &= !dsn.failed;
}

/// Returns true if a word is a status code: a class, a subject, a detail (RFC 3463 §2).
fn is_status_code(word: &str) -> bool {
    let parts: Vec<&str> = word.split('.').collect();
    let number = |part: &&str| (1..=3).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
    parts.len() == 3 && parts.iter().all(number) && ["2", "4", "5"].contains(&parts[0])
}

/// The first status code of a failure class in an unstructured text.
fn status_in(text: &str) -> Option<String> {
    let words = text.split(|c: char| !c.is_ascii_digit() && c != '.');
    words
        .map(|word| word.trim_matches('.'))
        .find(|word| is_status_code(word) && !word.starts_with('2'))
        .map(str::to_owned)
}
