//! Messages as they are sent and shown.

use std::borrow::Cow;
use switchward_machine::{Channel, Content};
use switchward_state::delivery::MessageText;

use crate::en::gates::request;
use crate::en::notices;

/// A message in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text<'t> {
    /// One line, maybe none.
    pub subject: Option<Cow<'t, str>>,
    /// The rest.
    pub body: Cow<'t, str>,
    /// What the body is.
    pub content: Content,
}

/// Returns what a message says on this channel.
#[must_use]
pub fn text(channel: Channel, text: &MessageText) -> Text<'_> {
    let (body, content) = match text {
        MessageText::Written { body, content, .. } => (Cow::Borrowed(body.as_str()), *content),
        MessageText::Request { body, .. } => (Cow::Borrowed(body.as_str()), Content::Text),
        MessageText::Notice { about, notice } => {
            (Cow::Owned(notices::body(&request(about), notice)), Content::Text)
        }
    };
    Text { subject: subject(channel, text), body, content }
}

/// Returns a message's subject on this channel; `None` if its author wrote none.
#[must_use]
pub fn subject(channel: Channel, text: &MessageText) -> Option<Cow<'_, str>> {
    match text {
        MessageText::Written { subject, .. } => subject.as_deref().map(Cow::Borrowed),
        MessageText::Request { subject, .. } => Some(request(subject)),
        MessageText::Notice { about, notice } => {
            Some(Cow::Owned(notices::subject(channel, &request(about), notice)))
        }
    }
}
