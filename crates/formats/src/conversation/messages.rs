//! Outgoing messages and their recipients. See `docs/formats-conversation.md#output`,
//! `docs/formats-conversation-operations.md#operations` and `docs/formats-conversation.md#approval-gates`.

use switchward_machine::{AddressPattern, Channel, Content, Message, Recipient};

use super::reader::Reader;
use super::{expr, read, texts};
use crate::codes::{APPROVER_CHOSEN, RECIPIENT};
use crate::document::Node;
use crate::limits::{LINE_BYTES_MAX, RECIPIENTS_MAX, TEMPLATE_BYTES_MAX};
use crate::shape::{self, Fields};
use crate::{Finding, quoted};

const CONTACT: &str = "conversation_contact";
const PARTICIPANTS: &str = "task_participants";

/// The kinds of address in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Addresses {
    /// Of people.
    Mail,
    /// Of people, and of the participants of a task.
    MailOrTask,
    /// Of endpoints.
    Url,
    /// Of endpoints, and of the participants of a task.
    UrlOrTask,
}

/// See `docs/formats-conversation.md#output`.
pub(super) fn output<'a>(state: &'a Node, fields: &Fields<'a>, cx: &mut Reader<'a, '_>) -> Option<Message> {
    let target = fields.required("target", cx.report);
    let words = ["conversation", "email", "webhook"];
    let target = target.and_then(|node| shape::word(node, "`target`", &words, cx.report));
    let channel = target.map(|word| match word {
        "email" => Channel::Email,
        "webhook" => Channel::Webhook,
        _ => Channel::Chat,
    });
    let body = fields.required("template", cx.report);
    let body = body.and_then(|node| read::template(node, "`template`", TEMPLATE_BYTES_MAX, cx));
    let subject = fields.optional("subject_template");
    let subject = subject.and_then(|node| read::template(node, "`subject_template`", LINE_BYTES_MAX, cx));
    let content = fields.optional("content_type");
    let content = content
        .and_then(|node| shape::word(node, "`content_type`", &["text", "html", "markdown"], cx.report));
    let content = match content {
        Some("html") => Content::Html,
        Some("markdown") => Content::Markdown,
        Some(_) | None => Content::Text,
    };
    let to = match channel? {
        Channel::Chat => {
            cx.idle(state, "recipients", "a message in the conversation has no recipients");
            cx.idle(state, "subject_template", "a message in the conversation has no subject");
            Vec::new()
        }
        Channel::Email => recipients(fields.required("recipients", cx.report)?, Addresses::Mail, cx),
        Channel::Webhook => recipients(fields.required("recipients", cx.report)?, Addresses::Url, cx),
    };
    Some(Message { channel: channel?, to, subject, body: Some(body?), content })
}

/// See `docs/formats-conversation-operations.md#operations`, `send_notification`.
pub(super) fn notification<'a>(
    config: &'a Node,
    fields: &Fields<'a>,
    cx: &mut Reader<'a, '_>,
) -> Option<Message> {
    let channel = fields.required("channel", cx.report);
    let words = ["email", "chat", "webhook"];
    let channel = channel.and_then(|node| shape::word(node, "`channel`", &words, cx.report));
    let subject = fields.optional("subject");
    let subject = subject.and_then(|node| read::braces(node, "`subject`", LINE_BYTES_MAX, cx));
    let body = fields.required("body", cx.report);
    let body = body.and_then(|node| read::braces(node, "`body`", TEMPLATE_BYTES_MAX, cx));
    let channel = match channel? {
        "email" => Channel::Email,
        "webhook" => Channel::Webhook,
        _ => Channel::Chat,
    };
    let to = match channel {
        Channel::Chat => {
            chat_recipients(config, fields, cx);
            Vec::new()
        }
        Channel::Email => recipients(fields.required("recipients", cx.report)?, Addresses::MailOrTask, cx),
        Channel::Webhook => recipients(fields.required("recipients", cx.report)?, Addresses::UrlOrTask, cx),
    };
    Some(Message { channel, to, subject, body: Some(body?), content: Content::Text })
}

/// A chat message goes into the conversation; a contact adds nothing to that.
fn chat_recipients<'a>(config: &'a Node, fields: &Fields<'a>, cx: &mut Reader<'a, '_>) {
    let Some(node) = fields.optional("recipients") else { return };
    let to = recipients(node, Addresses::MailOrTask, cx);
    if to.iter().any(|it| *it != Recipient::Contact) {
        cx.idle(config, "recipients", "a chat message goes to the conversation");
    }
}

/// A list of recipients that is not empty.
pub(super) fn recipients<'a>(node: &'a Node, kind: Addresses, cx: &mut Reader<'a, '_>) -> Vec<Recipient> {
    let items = cx.filled(node, "a list of recipients", RECIPIENTS_MAX).unwrap_or_default();
    items.iter().filter_map(|item| recipient(item, kind, cx)).collect()
}

/// A list of approvers, of a gate or of its escalation. The caller of a session chooses its data and its contact.
pub(super) fn approvers<'a>(node: &'a Node, cx: &mut Reader<'a, '_>) -> Vec<Recipient> {
    let items = cx.filled(node, "a list of recipients", RECIPIENTS_MAX).unwrap_or_default();
    let mut found = Vec::new();
    for item in items {
        let Some(recipient) = recipient(item, Addresses::Mail, cx) else { continue };
        if !recipient.is_fixed() {
            let text = item.as_text().unwrap_or_default();
            let message = format!(
                "{} is not a fixed person: the data or the start of a session defines who it is",
                quoted(text)
            );
            let hint = "they are asked only if the tenant's directory holds them; name an address here, or people in the directory";
            cx.report.add(Finding::new(APPROVER_CHOSEN, item.span, message).hint(hint));
        }
        found.push(recipient);
    }
    found
}

fn recipient<'a>(node: &'a Node, kind: Addresses, cx: &mut Reader<'a, '_>) -> Option<Recipient> {
    let text = shape::name(node, "a recipient", LINE_BYTES_MAX, cx.report)?;
    let (is_url, with_task) = match kind {
        Addresses::Mail => (false, false),
        Addresses::MailOrTask => (false, true),
        Addresses::Url => (true, false),
        Addresses::UrlOrTask => (true, true),
    };
    if text == CONTACT {
        return Some(Recipient::Contact);
    }
    if text == PARTICIPANTS && with_task {
        return Some(Recipient::Participants);
    }
    texts::braces(node, text, cx);
    if expr::references(text).next().is_some() {
        return Some(Recipient::Address(text.to_owned()));
    }
    let fits = if is_url { self::is_url(text) } else { is_address(text) };
    if fits {
        return Some(Recipient::Address(text.to_owned()));
    }
    let words: &[&str] = if with_task { &[CONTACT, PARTICIPANTS] } else { &[CONTACT] };
    let nearest = cx.report.nearest(text, words.iter().copied());
    let wanted = if is_url { "a URL" } else { "an address" };
    let finding = Finding::new(RECIPIENT, node.span, format!("{} is not a recipient", quoted(text)));
    let finding = finding.allowed(words.iter().copied()).nearest(nearest);
    cx.report.add(finding.hint(format!("write {wanted}, or a reference like {{gathered_data.key}}")));
    None
}

/// One address, without a name before it.
pub(super) fn is_address(text: &str) -> bool {
    !text.contains(['*', '{', '<', ',', ';']) && AddressPattern::new(text).is_some()
}

/// An address of the web, or one that begins with a reference.
pub(super) fn is_url(text: &str) -> bool {
    let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let spaced = text.contains(|c: char| c.is_whitespace() || c.is_control());
    !spaced && host.is_some_and(|host| !host.is_empty() && !host.starts_with('/'))
}
