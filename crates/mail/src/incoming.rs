//! A message that came in is sorted. The crate's page says in which order and why.

use std::net::IpAddr;

use mail_parser::MessageParser;
use sha2::{Digest, Sha256};

mod address;
mod authentication;
mod body;
mod bounce;
mod budget;
mod clients;
mod dns;
mod headers;
mod host_results;
mod html;
mod legible;
mod machine;
mod own;
mod planted;
mod proof_reason;
mod published;
mod results;
mod signatures;
mod tokens;
mod unbroken;
mod withheld;

pub use address::Address;
pub use authentication::{Authentication, Check, Proof, authenticate};
pub use bounce::Bounce;
pub use dns::{Dns, DnsError};
pub(crate) use legible::sender_of;
pub use legible::{Head, Legible, head, legible};
pub use machine::MachineKind;
pub use planted::{Planted, planted};
pub use proof_reason::ProofReason;
pub use published::Published;
pub use tokens::{Form, NoForm, Token, TokenPosition};
pub use withheld::withholding;

use crate::limits::{ENVELOPE_RECIPIENTS_MAX, MESSAGE_BYTES_MAX};
use headers::Headers;

/// What the transport knows of a message, beside its bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Envelope {
    /// The address that bounces go to: empty for the null sender, `None` if the transport does not know it.
    pub sender: Option<String>,
    /// The addresses that the message was delivered to; empty if the transport does not know them.
    pub recipients: Vec<String>,
    /// The host that handed the message over. Not known over IMAP or behind a relay.
    pub peer: Option<Peer>,
}

/// The host that handed a message over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// The address that its connection came from.
    pub address: IpAddr,
    /// The name that it gave itself.
    pub helo: String,
}

/// What is ours, and whom we trust.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The domains of our reply addresses and of our message ids, lower case, in ASCII.
    pub reply_domains: Vec<String>,
    /// The local part of a reply address, such as `r+{token}`.
    pub reply_address: Form,
    /// The left side of our message ids, such as `m.{token}`; it is no secret.
    pub message_id: Form,
    /// The names of hosts whose `Authentication-Results` are believed. They must be hosts that take out what others wrote
    /// under their name (RFC 8601 §5), and that write theirs above the `Received` field that they write themselves.
    pub trusted_hosts: Vec<String>,
    /// The fields that a DKIM signature must cover to count, lower case. It must cover `Message-ID` or `Date` too, so that
    /// the same message is known however often it comes.
    pub signed_fields: Vec<String>,
    /// Our own name, for macros of SPF records.
    pub host: String,
}

impl Settings {
    /// Settings with replies at `r+{token}@<domain>`, no trusted host, and signatures over `From`, `Subject` and `To`.
    #[must_use]
    pub fn of(domain: &str) -> Self {
        let form = |text: &str| text.parse().expect("the form has its token");
        let domain = address::domain_in_ascii(domain).unwrap_or_default();
        Self {
            reply_domains: vec![domain.clone()],
            reply_address: form("r+{token}"),
            message_id: form("m.{token}"),
            trusted_hosts: Vec::new(),
            signed_fields: ["from", "subject", "to"].map(str::to_owned).to_vec(),
            host: domain,
        }
    }
}

/// What a message is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sorted {
    /// No person wrote it.
    Machine {
        /// Which kind of machine did.
        kind: MachineKind,
    },
    /// Our mail did not arrive, or is delayed.
    Bounce(Bounce),
    /// It cannot be interpreted.
    Unusable {
        /// Why it goes into quarantine.
        reason: Unusable,
    },
    /// A person wrote it.
    Reply(Box<Reply>),
}

/// Why a message cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unusable {
    /// Longer than [`MESSAGE_BYTES_MAX`] bytes.
    TooLarge,
    /// More header fields than [`crate::limits::HEADERS_MAX`], or longer ones than may be.
    TooManyHeaders,
    /// More parts than may be, or more deeply nested ones.
    TooManyParts,
    /// More recipients, addresses or ids than may be.
    TooManyAddresses,
    /// Not a message at all, or a header line that is none.
    Malformed,
    /// A field that may occur once occurs twice.
    DuplicateHeader,
    /// No sender.
    NoFrom,
    /// Several senders.
    SeveralFrom,
    /// A sender whose address cannot be read.
    BadFrom,
    /// No `Message-ID`, or one that cannot be read.
    NoMessageId,
    /// Nothing follows the header.
    NoBody,
    /// Only parts that are no text.
    NoText,
    /// Only an encrypted part.
    Encrypted,
    /// Text of a character set that is not known.
    UnknownCharset,
    /// Text before the first part that is not shown: which bytes are the text depends on who reads it.
    HiddenPreamble,
    /// More text than may be.
    TextTooLarge,
    /// Something in it makes the mail parser panic.
    Breaks,
}

impl Unusable {
    /// The reason in one stable word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::TooLarge => "too_large",
            Self::TooManyHeaders => "too_many_headers",
            Self::TooManyParts => "too_many_parts",
            Self::TooManyAddresses => "too_many_addresses",
            Self::Malformed => "malformed",
            Self::DuplicateHeader => "duplicate_header",
            Self::NoFrom => "no_from",
            Self::SeveralFrom => "several_from",
            Self::BadFrom => "bad_from",
            Self::NoMessageId => "no_message_id",
            Self::NoBody => "no_body",
            Self::NoText => "no_text",
            Self::Encrypted => "encrypted",
            Self::UnknownCharset => "unknown_charset",
            Self::HiddenPreamble => "hidden_preamble",
            Self::TextTooLarge => "text_too_large",
            Self::Breaks => "breaks_reader",
        }
    }
}

/// What a person wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// What it may be a reply to, the likeliest first. Not checked: only the issuer of the tokens knows which are valid.
    pub tokens: Vec<Token>,
    /// Its one sender; how far the address is proved is what [`authenticate`] finds.
    pub from: Address,
    /// The sender's own words, at most [`crate::limits::TEXT_BYTES_MAX`] bytes. Empty if they cannot be told apart from
    /// other text.
    pub text: String,
    /// Whether the text held something that a reader does not see. U+FFFD marks each position in it.
    pub suspicious: bool,
    /// The subject, decoded; never a decision.
    pub subject: String,
    /// The id of the message, without its brackets.
    pub message_id: String,
    /// The ids that it answers, without brackets.
    pub in_reply_to: Vec<String>,
    /// The ids of its thread, without brackets.
    pub references: Vec<String>,
    /// SHA-256 over sender, id and body: independent of the route that the message took.
    pub digest: [u8; 32],
}

/// Classifies a message from its bytes and its envelope alone.
#[must_use]
pub fn sort(raw: &[u8], envelope: &Envelope, settings: &Settings) -> Sorted {
    let unusable = |reason| Sorted::Unusable { reason };
    if raw.len() > MESSAGE_BYTES_MAX {
        return unusable(Unusable::TooLarge);
    }
    unbroken::run(|| sort_unguarded(raw, envelope, settings)).unwrap_or(unusable(Unusable::Breaks))
}

fn sort_unguarded(raw: &[u8], envelope: &Envelope, settings: &Settings) -> Sorted {
    let unusable = |reason| Sorted::Unusable { reason };
    let lines = headers::with_line_ends(raw);
    let raw: &[u8] = &lines;
    let headers = match Headers::of(raw) {
        Ok(headers) => headers,
        Err(reason) => return unusable(reason),
    };
    if envelope.recipients.len() > ENVELOPE_RECIPIENTS_MAX {
        return unusable(Unusable::TooManyAddresses);
    }
    if let Some(kind) = machine::own(&headers, settings) {
        return Sorted::Machine { kind };
    }
    if body::too_many_boundaries(&raw[headers.body_at..]) {
        return unusable(Unusable::TooManyParts);
    }
    let Some(message) = MessageParser::new().parse(&raw[headers.begins_at..]) else {
        return unusable(Unusable::Malformed);
    };
    if let Some(bounce) = bounce::of(&headers, &message, raw, envelope, settings) {
        return bounce;
    }
    if let Some(kind) = machine::of(&headers) {
        return Sorted::Machine { kind };
    }
    if let Some(bounce) = bounce::null_sender(&headers, &message, raw, envelope, settings) {
        return Sorted::Bounce(bounce);
    }
    match reply(raw, &headers, &message, envelope, settings) {
        Ok(reply) => Sorted::Reply(Box::new(reply)),
        Err(reason) => unusable(reason),
    }
}

fn reply(
    raw: &[u8],
    headers: &Headers<'_>,
    message: &mail_parser::Message<'_>,
    envelope: &Envelope,
    settings: &Settings,
) -> Result<Reply, Unusable> {
    let from = address::the_sender(headers)?;
    headers.check()?;
    if message.root_part().raw_body_offset() as usize != headers.body_at - headers.begins_at {
        // The MIME parser has found another end of the header section.
        return Err(Unusable::Malformed);
    }
    let message_id = headers.ids("message-id").into_iter().next().ok_or(Unusable::NoMessageId)?;
    let text = body::own_words(message, &raw[headers.body_at..])?;
    let tokens = tokens::of(headers, envelope, settings)?;
    let mut hash = Sha256::new();
    for part in [from.text.as_bytes(), b"\0", message_id.as_bytes(), b"\0", &raw[headers.body_at..]] {
        hash.update(part);
    }
    Ok(Reply {
        tokens,
        from,
        text: text.text,
        suspicious: text.suspicious,
        subject: headers.subject(),
        message_id,
        in_reply_to: headers.ids("in-reply-to"),
        references: headers.ids("references"),
        digest: hash.finalize().into(),
    })
}
