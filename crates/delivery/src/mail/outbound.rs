//! The content of an outbound mail.

use serde::{Deserialize, Serialize};

/// The content of an outbound mail. Stored form. As JSON it is the input of a delivery job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutboundMail {
    /// The address of the recipient.
    pub to: String,
    /// The subject; one line.
    pub subject: String,
    /// Why it is sent.
    pub purpose: Purpose,
    /// The text of the definition or of the requester. May be empty.
    pub body: String,
    /// Whether the body is HTML.
    #[serde(default)]
    pub html: bool,
    /// The same for every delivery attempt: letters, digits, `-` and `_`.
    pub id: String,
    /// The same for all mails that belong together: letters, digits, `-` and `_`.
    pub thread: String,
    /// The token that a reply brings back.
    #[serde(default)]
    pub reply_token: Option<String>,
    /// The token of the decision page.
    #[serde(default)]
    pub page_token: Option<String>,
    /// The token of the address for bounces.
    #[serde(default)]
    pub bounce_token: Option<String>,
    /// What the engine knows about the request, in order.
    #[serde(default)]
    pub facts: Vec<Fact>,
    /// The choice; `None` if the mail asks for a text, or for nothing.
    #[serde(default)]
    pub choice: Option<Choice>,
    /// The address headers, if the mail is not in the server's own name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<Head>,
}

/// The address headers of a mail that is not in the server's own name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The author, who also gets the replies; `None` for the server's own address and reply address.
    #[serde(default)]
    pub from: Option<String>,
    /// The visible recipients; may lack the one that this copy goes to.
    #[serde(default)]
    pub to: Vec<String>,
    /// The visible recipients of copies.
    #[serde(default)]
    pub cc: Vec<String>,
}

/// What a mail is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Purpose {
    /// A message of a definition.
    Say,
    /// Somebody is asked to decide, or to answer.
    Ask,
    /// Informs somebody about the outcome of their mail.
    Inform,
}

/// A named fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact {
    /// What the value is, such as the process, for people.
    pub name: String,
    /// The value; may have several lines.
    pub value: String,
}

/// A choice, and the words that decide it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// The word that approves.
    pub approve: String,
    /// The word that rejects.
    pub refuse: String,
    /// The other words that approve, and those that reject.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<String>,
    /// Whether a reply cannot approve, because the request is too long for a mail.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub page_only: bool,
    /// Whether any other reply is passed on as a question that moves the process; otherwise it is recorded and answered.
    pub discusses: bool,
    /// How many must approve, and who cannot, as text.
    pub rule: String,
}
