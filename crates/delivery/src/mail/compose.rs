//! How a mail is written. Source: RFC 5322; RFC 3834 for what answers by itself; W3C and Gmail for what is read aloud.

use lettre::message::header::{ContentTransferEncoding, ContentType, Header, HeaderName, HeaderValue};
use lettre::message::{Body, Mailbox, Message, MessageBuilder, MultiPart, SinglePart};
use lettre::{Address, address::Envelope};

use sha2::{Digest as _, Sha256};

use super::html::{escaped, page, visible};
use super::{Choice, Letter, Purpose, Sender, invalid};
use crate::Failed;
use crate::limits::{MAIL_ADDRESS_BYTES_MAX, MAIL_BODY_BYTES_MAX, MAIL_HEAD_MAX, MAIL_SUBJECT_CHARS_MAX};

/// What stands above everything that a reply quotes.
pub(super) const REPLY_ABOVE: &str = "--- reply above this line ---";
/// Bytes of what mails and threads are called.
const ID_BYTES: usize = 16;
/// The longest line of a subject that every client shows.
const SUBJECT_SHOWN: usize = 65;

/// A mail as it goes over the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Composed {
    /// The address that it comes from.
    pub from: String,
    /// The address that it goes to.
    pub to: String,
    /// Who stands at its head as its writer: the address that it comes from, or somebody in whose name it is.
    pub author: String,
    /// To whom, as it stands at its head: nobody where all get a copy that nobody sees.
    pub named: Vec<String>,
    /// What it is called, without the angle brackets.
    pub message_id: String,
    /// The line that says what it is about.
    pub subject: String,
    /// Where replies go, where they go anywhere.
    pub reply_to: Option<String>,
    /// Where it is sent back to if it does not arrive, where that is read: an address of this mail alone, which stands in
    /// no header.
    pub bounce_to: Option<String>,
    /// What readers of plain text see.
    pub text: String,
    /// Headers and body, as they are sent.
    pub raw: Vec<u8>,
}

impl Composed {
    /// From whom, to whom. Bounces go to an address of the mail's own, so that what comes there tells what did not arrive.
    pub(super) fn envelope(&self) -> Result<Envelope, Failed> {
        let to = vec![address(&self.to)?];
        let from = self.bounce_to.as_ref().unwrap_or(&self.from);
        Envelope::new(Some(address(from)?), to).map_err(|error| invalid(error.to_string()))
    }
}

/// Writes a letter.
///
/// # Errors
/// [`MailInvalid`](crate::Reason::MailInvalid) where an address is none, a header would have several lines, or it is too
/// long.
pub fn compose(letter: &Letter, sender: &Sender) -> Result<Composed, Failed> {
    check(letter)?;
    let from: Mailbox = sender.from.parse().map_err(|_| invalid("the sender is no address"))?;
    let to = address(&letter.to)?;
    if sender.is_reply_address(to.as_ref()) {
        return Err(invalid(format!("{to} is where replies go: a mail from here is no reply")));
    }
    let host = sender.host();
    // What answers it holds these ids, and is passed on: they open nothing, and say nothing.
    let message_id = format!("m.{}@{host}", opaque(&[&letter.thread, &letter.id]));
    let thread = format!("<t.{}@{host}>", opaque(&[&letter.thread]));
    let mut builder = addressed(letter, sender, &from, &to)?
        .subject(subject(letter))
        .message_id(Some(format!("<{message_id}>")))
        .in_reply_to(thread.clone())
        .references(thread)
        .header(Plain::<AutoSubmitted>::new("auto-generated"))
        .header(Plain::<Suppress>::new("All"));
    let answered_elsewhere = letter.head.as_ref().is_some_and(|head| head.from.is_some());
    let token = letter.reply_token.as_ref().filter(|_| !answered_elsewhere);
    let reply_to = token.and_then(|token| sender.reply_to(token));
    if let Some(reply) = &reply_to {
        builder = builder.reply_to(Mailbox::new(None, address(reply)?));
    }
    let bounce_to = letter.bounce_token.as_ref().and_then(|token| sender.reply_to(token));
    let page_of = letter.page_token.as_ref().and_then(|token| sender.page(token));
    let (subject, text) = (subject(letter), text(letter, page_of.as_deref()));
    let body = MultiPart::alternative()
        .singlepart(part(ContentType::TEXT_PLAIN, text.clone()))
        .singlepart(part(ContentType::TEXT_HTML, page(letter, page_of.as_deref())));
    let raw = whole(builder, &body)?.formatted();
    let raw = match &sender.dkim {
        Some(key) => key.signed(&raw).map_err(|error| invalid(error.to_string()))?,
        None => raw,
    };
    let (from, to) = (from.email.to_string(), to.to_string());
    let author = letter.head.as_ref().and_then(|head| head.from.clone()).unwrap_or_else(|| from.clone());
    let named = match &letter.head {
        Some(head) => head.to.iter().chain(&head.cc).cloned().collect(),
        None => vec![to.clone()],
    };
    Ok(Composed { from, to, author, named, message_id, subject, reply_to, bounce_to, text, raw })
}

/// An id of these parts: the same each time, and nothing can be read off it.
fn opaque(parts: &[&str]) -> String {
    let digest = Sha256::digest(parts.join("\0"));
    digest.iter().take(ID_BYTES).fold(String::new(), |id, byte| format!("{id}{byte:02x}"))
}

/// From whom and to whom, as it stands at the head: who writes in another's name is named beside it (RFC 5322, 3.6.2).
/// Who gets a copy that nobody sees stands nowhere.
fn addressed(
    letter: &Letter,
    sender: &Sender,
    own: &Mailbox,
    to: &Address,
) -> Result<MessageBuilder, Failed> {
    let envelope = Envelope::new(Some(own.email.clone()), vec![to.clone()]);
    let builder = Message::builder().envelope(envelope.map_err(|error| invalid(error.to_string()))?);
    let Some(head) = &letter.head else {
        return Ok(builder.from(own.clone()).to(Mailbox::new(None, to.clone())));
    };
    let mut builder = match &head.from {
        Some(from) => {
            let from = address(from)?;
            let is_own = from.to_string().eq_ignore_ascii_case(own.email.as_ref());
            if !is_own && !sender.writes_for(from.as_ref()) {
                return Err(invalid(format!(
                    "no mail is sent in the name of {from}: mail.authors does not list it"
                )));
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

/// The message with its parts as one body. Headers of a message that has parts are written in two places, and what signs
/// it reads one of them only: it would take `Content-Type` for missing, and the signature would hold for no reader.
fn whole(builder: MessageBuilder, parts: &MultiPart) -> Result<Message, Failed> {
    let kind: ContentType = parts.headers().get().ok_or_else(|| invalid("a mail without a kind"))?;
    let all = parts.formatted();
    let begins = all.windows(4).position(|bytes| bytes == b"\r\n\r\n").map_or(all.len(), |at| at + 4);
    // Every part was encoded in ASCII by itself.
    let body = Body::dangerous_pre_encoded(all[begins..].to_vec(), ContentTransferEncoding::SevenBit);
    builder.header(kind).body(body).map_err(|error| invalid(error.to_string()))
}

fn part(kind: ContentType, body: String) -> SinglePart {
    SinglePart::builder().header(kind).body(body)
}

fn check(letter: &Letter) -> Result<(), Failed> {
    let lines = |text: &str| text.chars().any(|sign| sign.is_control());
    let plain =
        |text: &str| text.chars().all(|sign| sign.is_ascii_alphanumeric() || sign == '-' || sign == '_');
    let tokens = letter.reply_token.iter().chain(&letter.page_token).chain(&letter.bounce_token);
    let tokens = tokens.chain([&letter.id, &letter.thread]);
    let head = letter.head.iter().flat_map(|head| head.from.iter().chain(&head.to).chain(&head.cc));
    if head.count() > MAIL_HEAD_MAX {
        return Err(invalid(format!("a mail names at most {MAIL_HEAD_MAX} at its head")));
    }
    if lines(&letter.to) || lines(&letter.subject) || !tokens.into_iter().all(|token| plain(token)) {
        return Err(invalid("a header would have several lines, or signs that it may not have"));
    }
    let facts: usize = letter.facts.iter().map(|fact| fact.name.len() + fact.value.len()).sum();
    if letter.subject.chars().count() > MAIL_SUBJECT_CHARS_MAX
        || letter.body.len().saturating_add(facts) > MAIL_BODY_BYTES_MAX
    {
        let most = format!("{MAIL_SUBJECT_CHARS_MAX} characters of subject and {MAIL_BODY_BYTES_MAX} bytes");
        return Err(invalid(format!("a mail has at most {most} of body")));
    }
    Ok(())
}

pub(super) fn address(text: &str) -> Result<Address, Failed> {
    let bad = || invalid(format!("{:?} is no address for mail", text.chars().take(80).collect::<String>()));
    if text.len() > MAIL_ADDRESS_BYTES_MAX {
        return Err(bad());
    }
    text.trim().parse().map_err(|_| bad())
}

/// What is asked stands before it is cut off.
fn subject(letter: &Letter) -> String {
    let asks = letter.purpose == Purpose::Ask && letter.choice.is_some();
    let prefix = if asks && !letter.subject.to_lowercase().contains("approve") { "Approve? " } else { "" };
    let whole = format!("{prefix}{}", letter.subject);
    if !asks || whole.chars().count() <= SUBJECT_SHOWN {
        return whole;
    }
    let cut: String = whole.chars().take(SUBJECT_SHOWN - 1).collect();
    format!("{}…", cut.trim_end())
}

/// The part for readers of plain text.
fn text(letter: &Letter, page: Option<&str>) -> String {
    let said = if letter.html { visible(&letter.body) } else { letter.body.clone() };
    if letter.purpose == Purpose::Say {
        return said;
    }
    let mut lines = vec![REPLY_ABOVE.to_owned(), String::new()];
    if letter.purpose == Purpose::Tell {
        lines.extend([said, String::new()]);
        lines.extend(page.map(|page| format!("Decision page: {page}")));
        return lines.join("\n");
    }
    lines.extend([letter.subject.clone(), String::new()]);
    if !said.trim().is_empty() {
        lines.extend([format!("{}:", wrote(letter)), String::new()]);
        lines.extend(said.lines().map(|line| format!("    {line}")));
        lines.push(String::new());
    }
    let width = letter.facts.iter().map(|fact| fact.name.chars().count()).max().unwrap_or_default();
    for fact in &letter.facts {
        let mut values = fact.value.lines();
        let pad = width - fact.name.chars().count();
        lines.push(format!("  {}{}   {}", fact.name, " ".repeat(pad), values.next().unwrap_or_default()));
        lines.extend(values.map(|value| format!("  {}   {value}", " ".repeat(width))));
    }
    lines.push(String::new());
    lines.extend(how(letter, page));
    lines.join("\n")
}

/// What is said by others than the engine is marked as such.
pub(super) fn wrote(letter: &Letter) -> &'static str {
    if letter.choice.is_some() { "The request, in the words of the process" } else { "What is asked" }
}

/// How to decide, or to answer.
fn how(letter: &Letter, page: Option<&str>) -> Vec<String> {
    let mut lines = Vec::new();
    match (&letter.choice, &letter.reply_token) {
        (Some(choice), Some(_)) if choice.page_only => {
            lines.push(TOO_LONG.to_owned());
            lines.push(format!("To reject, answer with {} on the first line.", choice.refuse.to_uppercase()));
            lines.push(anything_else(choice.discusses).to_owned());
        }
        (Some(choice), Some(_)) => {
            lines.push("To decide, answer this mail with one word on the first line:".to_owned());
            let (approve, refuse) = (choice.approve.to_uppercase(), choice.refuse.to_uppercase());
            lines
                .push(format!("  {approve}    or    {refuse}      (a comment may follow on the next lines)"));
            lines.extend(also(choice));
            lines.push(anything_else(choice.discusses).to_owned());
        }
        (None, Some(_)) => lines.push("To answer, reply to this mail; your own words are taken.".to_owned()),
        (_, None) => {}
    }
    lines.extend(page.map(|page| format!("Decision page: {page}")));
    lines.extend(letter.choice.as_ref().map(|choice| format!("Rule: {}", choice.rule)));
    lines
}

/// What is said where a reply cannot approve.
pub(super) const TOO_LONG: &str =
    "What is asked is too long for a mail: look at all of it on the decision page, and approve it there.";

/// The other words that decide: whoever writes one of them has decided.
pub(super) fn also(choice: &Choice) -> Option<String> {
    match choice.also.as_slice() {
        [approve, refuse] if !approve.is_empty() && !refuse.is_empty() => Some(format!(
            "These decide as well, alone on the first line: {approve}; and against it: {refuse}."
        )),
        _ => None,
    }
}

pub(super) fn anything_else(discusses: bool) -> &'static str {
    if discusses {
        "Anything else is passed on as a question and nothing is approved."
    } else {
        "Anything else is noted and nothing is decided."
    }
}

/// A header whose value never changes its form.
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

/// To whom, where nobody is to be named. Source: RFC 5322, 3.4.
#[derive(Clone)]
struct Undisclosed;

impl Named for Undisclosed {
    const NAME: HeaderName = HeaderName::new_from_ascii_str("To");
}

/// What Exchange reads in its place.
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

/// The HTML of a body as it stands in ours: the definition's own, or its text.
pub(super) fn body_html(letter: &Letter) -> String {
    if letter.html { letter.body.clone() } else { escaped(&letter.body).replace('\n', "<br>\n") }
}
