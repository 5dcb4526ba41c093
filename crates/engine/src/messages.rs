//! Messages to the outside: who gets them, and what they say.

use serde_json::Value;
use switchward_machine::{Channel, Content, Message, OpenId, Recipient, RunId};

use crate::faults::Fault;
use crate::limits::RECIPIENTS_MAX;
use crate::scope::Scope;
use crate::state::EffectBody;
use crate::turn::{Stop, Turn};

/// Puts a message into the outbox, once for each recipient; what is wrong with it sends nothing.
pub(crate) fn send(
    turn: &mut Turn<'_, '_>,
    run: RunId,
    scope: &Scope,
    message: &Message,
) -> Result<Option<Fault>, Stop> {
    let contact = turn.session()?.contact.clone();
    let letter = match compose(scope, message, contact.as_deref()) {
        Ok(letter) => letter,
        Err(fault) => return Ok(Some(fault)),
    };
    for effect in letter.effects(None) {
        turn.send(run, effect)?;
    }
    Ok(None)
}

/// A message as it goes out.
pub(crate) struct Letter {
    channel: Channel,
    /// To whom; one empty address in the conversation itself.
    pub(crate) to: Vec<String>,
    pub(crate) subject: Option<String>,
    pub(crate) body: String,
    content: Content,
}

impl Letter {
    /// One effect for each recipient; about a gate, where it is about one.
    pub(crate) fn effects(self, gate: Option<OpenId>) -> impl Iterator<Item = EffectBody> {
        let Self { channel, to, subject, body, content } = self;
        to.into_iter().map(move |to| EffectBody::Message {
            channel,
            to,
            subject: subject.clone(),
            body: body.clone(),
            content,
            gate,
        })
    }
}

/// Renders a message, and finds out who gets it.
pub(crate) fn compose(scope: &Scope, message: &Message, contact: Option<&str>) -> Result<Letter, Fault> {
    let to = match message.channel {
        Channel::Chat => vec![String::new()],
        Channel::Email | Channel::Webhook => recipients(scope, &message.to, contact)?,
    };
    let subject = message.subject.as_ref().map(|subject| scope.text(subject, false)).transpose()?;
    let subject = subject.map(|subject| subject.replace(['\r', '\n'], " "));
    let text = scope.text(&message.body, message.content == Content::Html)?;
    let (body, content) = match (message.content, message.channel) {
        (Content::Markdown, Channel::Email) => (switchward_expr::to_html(&text), Content::Html),
        (content, _) => (text, content),
    };
    Ok(Letter { channel: message.channel, to, subject, body, content })
}

/// Everybody whom a list names, each once, in its order.
pub(crate) fn recipients(
    scope: &Scope,
    list: &[Recipient],
    contact: Option<&str>,
) -> Result<Vec<String>, Fault> {
    let mut found: Vec<String> = Vec::new();
    for recipient in list {
        let values = match recipient {
            Recipient::Address(text) => match scope.braces(text)? {
                Value::Array(items) => items,
                one @ (Value::Null
                | Value::Bool(_)
                | Value::Number(_)
                | Value::String(_)
                | Value::Object(_)) => {
                    vec![one]
                }
            },
            Recipient::Contact => contact.map(Value::from).into_iter().collect(),
            Recipient::Participants => Vec::new(),
        };
        for value in values {
            match value {
                Value::String(text) if text.trim().is_empty() => {}
                Value::String(text) if text.chars().any(char::is_control) => {
                    return Err(Fault::recipients(format!("{text:?} is no address")));
                }
                Value::String(text) => {
                    let address = text.trim().to_owned();
                    if !found.contains(&address) {
                        found.push(address);
                    }
                }
                Value::Null => {}
                other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                    return Err(Fault::recipients(format!("{other} is no address")));
                }
            }
        }
    }
    match found.len() {
        0 => Err(Fault::recipients("the message has nobody to go to")),
        1..=RECIPIENTS_MAX => Ok(found),
        _ => Err(Fault::recipients(format!("a message goes to at most {RECIPIENTS_MAX}"))),
    }
}
