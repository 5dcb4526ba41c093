//! What a mail says.

use serde::{Deserialize, Serialize};

/// What a mail says, whoever writes it down. Stored form. As JSON it is the input of an errand of kind `mail`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Letter {
    /// The address that it goes to.
    pub to: String,
    /// One line.
    pub subject: String,
    /// What it is for.
    pub purpose: Purpose,
    /// What the definition, or whoever asks, says. May be empty.
    pub body: String,
    /// Whether the body is HTML.
    #[serde(default)]
    pub html: bool,
    /// Stays the same for every delivery of it: letters, digits, `-` and `_`.
    pub id: String,
    /// The same for all mails that belong together: letters, digits, `-` and `_`.
    pub thread: String,
    /// The token that a reply brings back.
    #[serde(default)]
    pub reply_token: Option<String>,
    /// The token of the decision page.
    #[serde(default)]
    pub page_token: Option<String>,
    /// The token of the address that it is sent back to.
    #[serde(default)]
    pub bounce_token: Option<String>,
    /// What the engine knows of what is asked, in order.
    #[serde(default)]
    pub facts: Vec<Fact>,
    /// What can be decided; nothing where words are asked for, or nothing is.
    #[serde(default)]
    pub choice: Option<Choice>,
    /// What stands at its head where somebody else than the server writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<Head>,
}

/// What stands at the head of a mail that is not the server's own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// Who writes, and gets the replies; nothing: the server's own address, and replies go where its own go.
    #[serde(default)]
    pub from: Option<String>,
    /// To whom, as all see it; may lack the one that this copy goes to.
    #[serde(default)]
    pub to: Vec<String>,
    /// Who gets it, too, as all see it.
    #[serde(default)]
    pub cc: Vec<String>,
}

/// What a mail is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Purpose {
    /// A definition says something.
    Say,
    /// Somebody is asked to decide, or to answer.
    Ask,
    /// Somebody who wrote is told what became of it.
    Tell,
}

/// Something that is known, with what it is called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact {
    /// What it is called.
    pub name: String,
    /// What it is; may have several lines.
    pub value: String,
}

/// What can be decided, in the words that decide it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// What lets it go on.
    pub approve: String,
    /// What does not.
    pub refuse: String,
    /// What else approves, and what else refuses: words, parted by slashes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<String>,
    /// Whether a reply cannot approve, because what is asked is too long for a mail.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub page_only: bool,
    /// Whether anything else is passed on as a question that moves the process; otherwise it is noted and answered.
    pub discusses: bool,
    /// How many must approve, and who cannot, in words.
    pub rule: String,
}
