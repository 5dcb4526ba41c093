//! Composes a mail. Source: RFC 5322; RFC 3834 for automatic replies; W3C and Gmail for accessibility.

use lettre::message::header::{ContentTransferEncoding, ContentType, Header, HeaderName, HeaderValue};
use lettre::message::{Body, Mailbox, Message, MessageBuilder, MultiPart, SinglePart};
use lettre::{Address, address::Envelope};

use sha2::{Digest as _, Sha256};

use switchward_messages::{AnswerFacts, ChoiceFacts, REPLY_ABOVE, answer_lines, asking, origin, page_line};
use switchward_state::delivery::MailProblem;

use super::html::{page, visible};
use super::{Choice, OutboundMail, Purpose, Sender, invalid, not_composed};
use crate::Failed;
use crate::failed::length;
use crate::limits::{MAIL_ADDRESS_BYTES_MAX, MAIL_BODY_BYTES_MAX, MAIL_HEAD_MAX, MAIL_SUBJECT_CHARS_MAX};

/// Bytes of the ids of mails and threads.
const ID_BYTES: usize = 16;
/// How much of a text that is not an address an error quotes, characters.
const ADDRESS_SHOWN: usize = 80;
/// Characters of a subject that every client shows.
const SUBJECT_SHOWN: usize = 65;

/// A composed mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Composed {
    /// The address of the sender.
    pub from: String,
    /// The address of the recipient.
    pub to: String,
    /// The address in the `From` header: the sender's, or the person's in whose name the mail is sent.
    pub author: String,
    /// The recipients in the headers; empty if all of them are blind copies.
    pub named: Vec<String>,
    /// The message id, without the angle brackets.
    pub message_id: String,
    /// One line, as it is in the headers.
    pub subject: String,
    /// The address for replies, if they are read.
    pub reply_to: Option<String>,
    /// The address for bounces, if they are read: it is specific to this mail and in no header.
    pub bounce_to: Option<String>,
    /// The plain text part.
    pub text: String,
    /// Headers and body, as sent.
    pub raw: Vec<u8>,
}

impl Composed {
    /// Returns the SMTP envelope. Bounces go to an address of the mail's own, so that a bounce identifies its mail.
    pub(super) fn envelope(&self) -> Result<Envelope, Failed> {
        let to = vec![address(&self.to)?];
        let from = self.bounce_to.as_ref().unwrap_or(&self.from);
        Envelope::new(Some(address(from)?), to).map_err(not_composed)
    }
}

/// Composes an outbound mail.
///
/// # Errors
/// [`MailInvalid`](crate::DeliveryReason::MailInvalid) if an address is malformed, a header would have several lines, or
/// something is too long.
pub fn compose(outbound: &OutboundMail, sender: &Sender) -> Result<Composed, Failed> {
    check(outbound)?;
    let from: Mailbox = sender.from.parse().map_err(|_| invalid(MailProblem::Sender))?;
    let to = address(&outbound.to)?;
    if sender.is_reply_address(to.as_ref()) {
        return Err(invalid(MailProblem::ReplyAddress { to: to.to_string() }));
    }
    let host = sender.host();
    // Replies contain these ids and are forwarded, so the ids grant no access and reveal nothing.
    let message_id = format!("m.{}@{host}", opaque(&[&outbound.thread, &outbound.id]));
    let thread = format!("<t.{}@{host}>", opaque(&[&outbound.thread]));
    let mut builder = addressed(outbound, sender, &from, &to)?
        .subject(subject(outbound))
        .message_id(Some(format!("<{message_id}>")))
        .in_reply_to(thread.clone())
        .references(thread)
        .header(Plain::<AutoSubmitted>::new("auto-generated"))
        .header(Plain::<Suppress>::new("All"));
    let answered_elsewhere = outbound.head.as_ref().is_some_and(|head| head.from.is_some());
    let token = outbound.reply_token.as_ref().filter(|_| !answered_elsewhere);
    let reply_to = token.and_then(|token| sender.reply_to(token));
    if let Some(reply) = &reply_to {
        builder = builder.reply_to(Mailbox::new(None, address(reply)?));
    }
    let bounce_to = outbound.bounce_token.as_ref().and_then(|token| sender.reply_to(token));
    let page_of = outbound.page_token.as_ref().and_then(|token| sender.page(token));
    let (subject, text) = (subject(outbound), text(outbound, page_of.as_deref()));
    let body = MultiPart::alternative()
        .singlepart(part(ContentType::TEXT_PLAIN, text.clone()))
        .singlepart(part(ContentType::TEXT_HTML, page(outbound, page_of.as_deref())));
    let raw = whole(builder, &body)?.formatted();
    let raw = match &sender.dkim {
        Some(key) => key.signed(&raw).map_err(not_composed)?,
        None => raw,
    };
    let (from, to) = (from.email.to_string(), to.to_string());
    let author = outbound.head.as_ref().and_then(|head| head.from.clone()).unwrap_or_else(|| from.clone());
    let named = match &outbound.head {
        Some(head) => head.to.iter().chain(&head.cc).cloned().collect(),
        None => vec![to.clone()],
    };
    Ok(Composed { from, to, author, named, message_id, subject, reply_to, bounce_to, text, raw })
}

/// Derives an id from these parts: deterministic, and nothing can be read off it.
fn opaque(parts: &[&str]) -> String {
    let digest = Sha256::digest(parts.join("\0"));
    digest.iter().take(ID_BYTES).fold(String::new(), |id, byte| format!("{id}{byte:02x}"))
}

/// Sets the address headers: a mail in another's name also has a `Sender` (RFC 5322, 3.6.2). Recipients of blind copies are
/// in no header.
fn addressed(
    outbound: &OutboundMail,
    sender: &Sender,
    own: &Mailbox,
    to: &Address,
) -> Result<MessageBuilder, Failed> {
    let envelope = Envelope::new(Some(own.email.clone()), vec![to.clone()]);
    let builder = Message::builder().envelope(envelope.map_err(not_composed)?);
    let Some(head) = &outbound.head else {
        return Ok(builder.from(own.clone()).to(Mailbox::new(None, to.clone())));
    };
    let mut builder = match &head.from {
        Some(from) => {
            let from = address(from)?;
            let is_own = from.to_string().eq_ignore_ascii_case(own.email.as_ref());
            if !is_own && !sender.writes_for(from.as_ref()) {
                return Err(invalid(MailProblem::Author { from: from.to_string() }));
            }
            let builder = builder.from(Mailbox::new(None, from.clone()));
            if from == own.email { builder } else { builder.sender(own.clone()) }
        }
        None => builder.from(own.clone()),
    };
    for one in &head.to {
        builder = builder.to(Mailbox::new(None, address(one)?));
    }
    for one in &head.cc {
        builder = builder.cc(Mailbox::new(None, address(one)?));
    }
    Ok(if head.to.is_empty() && head.cc.is_empty() {
        builder.header(Plain::<Undisclosed>::new("undisclosed-recipients:;"))
    } else {
        builder
    })
}

/// Builds the message with its parts as one body. The library keeps the headers of a multipart message in two lists, and
/// the signer reads only one of them: it would treat `Content-Type` as missing, and no reader could verify the signature.
fn whole(builder: MessageBuilder, parts: &MultiPart) -> Result<Message, Failed> {
    let kind: ContentType = parts.headers().get().ok_or_else(|| invalid(MailProblem::NoContentType))?;
    let all = parts.formatted();
    let begins = all.windows(4).position(|bytes| bytes == b"\r\n\r\n").map_or(all.len(), |at| at + 4);
    // Every part was encoded in ASCII by itself.
    let body = Body::dangerous_pre_encoded(all[begins..].to_vec(), ContentTransferEncoding::SevenBit);
    builder.header(kind).body(body).map_err(not_composed)
}

fn part(kind: ContentType, body: String) -> SinglePart {
    SinglePart::builder().header(kind).body(body)
}

fn check(outbound: &OutboundMail) -> Result<(), Failed> {
    let lines = |text: &str| text.chars().any(|char| char.is_control());
    let plain =
        |text: &str| text.chars().all(|char| char.is_ascii_alphanumeric() || char == '-' || char == '_');
    let tokens = outbound.reply_token.iter().chain(&outbound.page_token).chain(&outbound.bounce_token);
    let tokens = tokens.chain([&outbound.id, &outbound.thread]);
    let head = outbound.head.iter().flat_map(|head| head.from.iter().chain(&head.to).chain(&head.cc));
    if head.count() > MAIL_HEAD_MAX {
        return Err(invalid(MailProblem::TooManyAddresses { max: length(MAIL_HEAD_MAX) }));
    }
    if lines(&outbound.to) || lines(&outbound.subject) || !tokens.into_iter().all(|token| plain(token)) {
        return Err(invalid(MailProblem::Characters));
    }
    let facts: usize = outbound.facts.iter().map(|fact| fact.name.len() + fact.value.len()).sum();
    if outbound.subject.chars().count() > MAIL_SUBJECT_CHARS_MAX
        || outbound.body.len().saturating_add(facts) > MAIL_BODY_BYTES_MAX
    {
        let (subject_max, text_max) = (length(MAIL_SUBJECT_CHARS_MAX), length(MAIL_BODY_BYTES_MAX));
        return Err(invalid(MailProblem::Length { subject_max, text_max }));
    }
    Ok(())
}

pub(super) fn address(text: &str) -> Result<Address, Failed> {
    let bad = || invalid(MailProblem::Address { text: text.chars().take(ADDRESS_SHOWN).collect() });
    if text.len() > MAIL_ADDRESS_BYTES_MAX {
        return Err(bad());
    }
    text.trim().parse().map_err(|_| bad())
}

/// The subject, cut to the length that every client shows if the mail asks for a decision.
fn subject(outbound: &OutboundMail) -> String {
    let asks = outbound.purpose == Purpose::Ask && outbound.choice.is_some();
    if !asks {
        return outbound.subject.clone();
    }
    let whole = asking(&outbound.subject).into_owned();
    if whole.chars().count() <= SUBJECT_SHOWN {
        return whole;
    }
    let cut: String = whole.chars().take(SUBJECT_SHOWN - 1).collect();
    format!("{}…", cut.trim_end())
}

/// Renders the plain text part.
fn text(outbound: &OutboundMail, page: Option<&str>) -> String {
    let said = if outbound.html { visible(&outbound.body) } else { outbound.body.clone() };
    if outbound.purpose == Purpose::Say {
        return said;
    }
    let mut lines = vec![REPLY_ABOVE.to_owned(), String::new()];
    if outbound.purpose == Purpose::Inform {
        lines.extend([said, String::new()]);
        lines.extend(page.map(page_line));
        return lines.join("\n");
    }
    let answer = answer(outbound, page);
    lines.extend([outbound.subject.clone(), String::new()]);
    if !said.trim().is_empty() {
        lines.extend([format!("{}:", origin(&answer)), String::new()]);
        lines.extend(said.lines().map(|line| format!("    {line}")));
        lines.push(String::new());
    }
    let width = outbound.facts.iter().map(|fact| fact.name.chars().count()).max().unwrap_or_default();
    for fact in &outbound.facts {
        let mut values = fact.value.lines();
        let pad = width - fact.name.chars().count();
        lines.push(format!("  {}{}   {}", fact.name, " ".repeat(pad), values.next().unwrap_or_default()));
        lines.extend(values.map(|value| format!("  {}   {value}", " ".repeat(width))));
    }
    lines.push(String::new());
    lines.extend(answer_lines(&answer));
    lines.join("\n")
}

/// How the reader of a mail that asks can answer.
pub(super) fn answer<'m>(outbound: &'m OutboundMail, page: Option<&'m str>) -> AnswerFacts<'m> {
    let choice = outbound.choice.as_ref().map(|choice| ChoiceFacts {
        approve: &choice.approve,
        refuse: &choice.refuse,
        also: also(choice),
        page_only: choice.page_only,
        discusses: choice.discusses,
        rule: &choice.rule,
    });
    AnswerFacts { choice, replies: outbound.reply_token.is_some(), page }
}

/// The other words that decide: those that approve, and those that reject.
fn also(choice: &Choice) -> (&str, &str) {
    match choice.also.as_slice() {
        [approve, refuse] => (approve, refuse),
        _ => ("", ""),
    }
}

/// A header whose value is written verbatim.
#[derive(Clone)]
struct Plain<N> {
    value: String,
    named: std::marker::PhantomData<N>,
}

impl<N> Plain<N> {
    fn new(value: &str) -> Self {
        Self { value: value.to_owned(), named: std::marker::PhantomData }
    }
}

trait Named: Clone {
    const NAME: HeaderName;
}

/// Source: RFC 3834, 5.
#[derive(Clone)]
struct AutoSubmitted;

impl Named for AutoSubmitted {
    const NAME: HeaderName = HeaderName::new_from_ascii_str("Auto-Submitted");
}

/// The `To` header without any named recipient. Source: RFC 5322, 3.4.
#[derive(Clone)]
struct Undisclosed;

impl Named for Undisclosed {
    const NAME: HeaderName = HeaderName::new_from_ascii_str("To");
}

/// The header that Exchange reads instead.
#[derive(Clone)]
struct Suppress;

impl Named for Suppress {
    const NAME: HeaderName = HeaderName::new_from_ascii_str("X-Auto-Response-Suppress");
}

impl<N: Named> Header for Plain<N> {
    fn name() -> HeaderName {
        N::NAME
    }

    fn parse(value: &str) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        Ok(Self::new(value))
    }

    fn display(&self) -> HeaderValue {
        HeaderValue::new(N::NAME, self.value.clone())
    }
}
