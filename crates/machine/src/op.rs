//! Operations: what runs through at once. Values and texts in them are templates of the dialect that they name, except for
//! literals, which say so.

use std::borrow::Cow;

use minicbor::{CborLen, Decode, Encode};
use switchward_expr::{CmpOp, Path, Transform};

use crate::Port;

/// An operation of a `Do` act or of an exit.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum Op {
    /// Put a warning into the history.
    #[n(0)]
    Log(#[n(0)] String),
    /// Write a value into the run's data.
    #[n(1)]
    Write(#[n(0)] Write),
    /// Write a value of the data in another form.
    #[n(2)]
    Convert(#[n(0)] Convert),
    /// Send a message to the outside.
    #[n(3)]
    Send(#[n(0)] Message),
    /// The first case that holds ends the act with its port; if none does, the next operation runs.
    #[n(4)]
    Branch(#[n(0)] Vec<Case>),
    /// The operations, for each item of a list.
    #[n(5)]
    Each(#[n(0)] Each),
    /// Go to the next item of a list whose operations are acts of their own: `Port::Item` while there is one.
    #[n(6)]
    Next(#[n(0)] Next),
    /// Write a literal into the run's data: no text in it is a template.
    #[n(7)]
    Set(#[n(0)] Initial),
}

/// A value for the run's data.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Write {
    /// The top-level key; its reducer says how the value is merged.
    #[n(0)]
    pub key: String,
    /// JSON, in whose texts `{gathered_data.x}` stands for a value.
    #[n(1)]
    pub value: String,
}

/// A value in another form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Convert {
    /// The value.
    #[n(0)]
    pub from: Path,
    /// The top-level key that it is written to.
    #[n(1)]
    pub into: String,
    /// The form.
    #[n(2)]
    pub how: Transform,
}

/// A message to the outside. It is rendered when it is sent, one effect for each recipient.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Message {
    /// The way.
    #[n(0)]
    pub channel: Channel,
    /// To whom; the conversation has no recipients.
    #[n(1)]
    pub to: Vec<Recipient>,
    /// One line; `None` if its author wrote none: that of a gate then follows from its kind and its state.
    #[n(2)]
    pub subject: Option<Text>,
    /// The rest; `None` if its author wrote none, at a gate.
    #[n(3)]
    pub body: Option<Text>,
    /// What the body is.
    #[n(4)]
    pub content: Content,
}

impl Message {
    /// The texts that its author wrote.
    pub fn texts(&self) -> impl Iterator<Item = &Text> {
        self.subject.iter().chain(&self.body)
    }
}

/// The way of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Encode, Decode, CborLen)]
pub enum Channel {
    /// A reply in the conversation.
    #[n(0)]
    Chat,
    /// A mail.
    #[n(1)]
    Email,
    /// A POST.
    #[n(2)]
    Webhook,
}

impl Channel {
    /// The public name.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Email => "email",
            Self::Webhook => "webhook",
        }
    }
}

/// What a body is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Encode, Decode, CborLen)]
pub enum Content {
    /// Plain text.
    #[default]
    #[n(0)]
    Text,
    /// HTML: data in its templates are escaped.
    #[n(1)]
    Html,
    /// Markdown, which a mail carries as HTML.
    #[n(2)]
    Markdown,
}

impl Content {
    /// The public name.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Html => "html",
            Self::Markdown => "markdown",
        }
    }
}

/// A text that is rendered.
#[derive(Debug, Clone, PartialEq, Eq, Default, Encode, Decode, CborLen)]
pub struct Text {
    /// As it was written.
    #[n(0)]
    pub source: String,
    /// How it is read.
    #[n(1)]
    pub dialect: Dialect,
}

/// How a text is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Encode, Decode, CborLen)]
pub enum Dialect {
    /// As it stands.
    #[default]
    #[n(0)]
    Plain,
    /// `{gathered.x}` and `{gathered_data.x}` stand for values; an absent one is empty.
    #[n(1)]
    Braces,
    /// A Jinja2 template over `gathered_data`; what is undefined is empty.
    #[n(2)]
    Jinja,
    /// `{{x}}` stands for a value of the data; an absent one, or null, is a fault that is never retried.
    #[n(3)]
    Strict,
}

/// To whom a message goes.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum Recipient {
    /// An address, or a reference that is one address or a list of them.
    #[n(0)]
    Address(#[n(0)] String),
    /// Who the conversation is with.
    #[n(1)]
    Contact,
    /// Everybody who has taken part in a task.
    #[n(2)]
    Participants,
    /// Each text of a list of the data; a list that is not there has nobody in it.
    #[n(3)]
    Listed(#[n(0)] Path),
}

impl Recipient {
    /// Returns true if the definition itself says who it is, and neither data nor the start of a session does.
    #[must_use]
    pub fn is_fixed(&self) -> bool {
        matches!(self, Self::Address(text) if !text.contains('{'))
    }

    /// What the definition says of it.
    #[must_use]
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Address(text) => text.into(),
            Self::Contact => "the contact".into(),
            Self::Participants => "the participants".into(),
            Self::Listed(path) => format!("{{{}}}", path.as_str()).into(),
        }
    }
}

/// A case of a branch.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Case {
    /// The value of the data on the left.
    #[n(0)]
    pub left: Path,
    /// How it is compared.
    #[n(1)]
    pub op: CmpOp,
    /// JSON on the right, in whose texts `{gathered_data.x}` stands for a value.
    #[n(2)]
    pub right: String,
    /// How the act ends if it holds.
    #[n(3)]
    pub port: Port,
}

/// Operations for each item of a list.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Each {
    /// The list.
    #[n(0)]
    pub over: Path,
    /// What the item is called meanwhile; its position is called `index`.
    #[n(1)]
    pub as_: String,
    /// What is done.
    #[n(2)]
    pub ops: Vec<Op>,
}

/// The head of a loop whose operations are acts.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Next {
    /// The list, read when the loop begins.
    #[n(0)]
    pub over: Path,
    /// What the item is called meanwhile; its position is called `index`.
    #[n(1)]
    pub as_: String,
    /// How many loops of this kind it stands in.
    #[n(2)]
    pub level: u8,
}

/// A key and its value: what the data of a run begin with, or what an operation sets.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Initial {
    /// The top-level key.
    #[n(0)]
    pub key: String,
    /// JSON; a literal, in which nothing stands for something else.
    #[n(1)]
    pub value: String,
}
