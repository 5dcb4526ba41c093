//! What an agent does in a conversation.

use clap::Args;

use super::values::label;

/// Arguments of `message`.
#[derive(Debug, Args)]
pub(crate) struct Message {
    /// The session's id or key.
    pub(crate) session: String,
    /// What the user says.
    pub(crate) text: String,
}

/// Arguments of `turn`.
#[derive(Debug, Args)]
pub(crate) struct Turn {
    /// The session's id or key.
    pub(crate) session: String,
    /// What the agent says.
    pub(crate) text: Option<String>,
}

/// Arguments of `record`.
#[derive(Debug, Args)]
pub(crate) struct Record {
    /// The session's id or key.
    pub(crate) session: String,
    /// What is recorded; a value that is no JSON is a text.
    #[arg(required = true, value_name = "KEY=VALUE", value_parser = label)]
    pub(crate) values: Vec<(String, String)>,
}

/// Arguments of `retry` and `signal`.
#[derive(Debug, Args)]
pub(crate) struct Session {
    /// The session's id or key.
    pub(crate) session: String,
}

/// Arguments of `event`.
#[derive(Debug, Args)]
pub(crate) struct SessionEvent {
    /// The session's id or key; `-` where the API key is a reply token, which names it.
    pub(crate) session: String,
    /// What kind of event it is.
    pub(crate) key: String,
    /// What it brings; a value that is no JSON is a text.
    #[arg(value_name = "KEY=VALUE", value_parser = label)]
    pub(crate) data: Vec<(String, String)>,
    /// The state that it is for; refused where the session is at another one.
    #[arg(long, value_name = "STATE")]
    pub(crate) state: Option<String>,
}

/// Arguments of `reply`.
#[derive(Debug, Args)]
pub(crate) struct MailReply {
    /// The session's id or key.
    pub(crate) session: String,
    /// The address of who wrote it.
    pub(crate) from: String,
    /// What, with whatever it quotes.
    pub(crate) text: String,
}

/// Arguments of `switch`.
#[derive(Debug, Args)]
pub(crate) struct Switch {
    /// The session's id or key.
    pub(crate) session: String,
    /// The workflow, one of those that the session was started with.
    pub(crate) workflow: String,
}
