//! Arguments of the commands for conversations.

use clap::Args;

use super::run_of::RunOf;
use super::values::label;

/// Arguments of `message`.
#[derive(Debug, Args)]
pub(crate) struct Message {
    /// The session's id or key.
    pub(crate) session: String,
    /// The user's message.
    pub(crate) text: String,
}

/// Arguments of `turn`.
#[derive(Debug, Args)]
pub(crate) struct Turn {
    /// The session's id or key.
    pub(crate) session: String,
    /// The agent's message.
    pub(crate) text: Option<String>,
    /// Which run it is about.
    #[command(flatten)]
    pub(crate) of: RunOf,
}

/// Arguments of `record`.
#[derive(Debug, Args)]
pub(crate) struct Record {
    /// The session's id or key.
    pub(crate) session: String,
    /// The data; a value that is not JSON is a string.
    #[arg(required = true, value_name = "KEY=VALUE", value_parser = label)]
    pub(crate) values: Vec<(String, String)>,
    /// Which run it is about.
    #[command(flatten)]
    pub(crate) of: RunOf,
}

/// Arguments of `retry` and `signal`.
#[derive(Debug, Args)]
pub(crate) struct Session {
    /// The session's id or key.
    pub(crate) session: String,
    /// Which run it is about.
    #[command(flatten)]
    pub(crate) of: RunOf,
}

/// Arguments of `event`.
#[derive(Debug, Args)]
pub(crate) struct SessionEvent {
    /// The session's id or key; `-` if the API key is a reply token, which names the session.
    pub(crate) session: String,
    /// The event's key.
    pub(crate) key: String,
    /// The event's data; a value that is not JSON is a string.
    #[arg(value_name = "KEY=VALUE", value_parser = label)]
    pub(crate) data: Vec<(String, String)>,
    /// The expected state; the event is refused if the session is in another one.
    #[arg(long, value_name = "STATE")]
    pub(crate) state: Option<String>,
    /// Which run it is about.
    #[command(flatten)]
    pub(crate) of: RunOf,
}

/// Arguments of `reply`.
#[derive(Debug, Args)]
pub(crate) struct MailReply {
    /// The session's id or key.
    pub(crate) session: String,
    /// The sender's address.
    pub(crate) from: String,
    /// The text of the reply, including quoted lines.
    pub(crate) text: String,
    /// Which run it is about.
    #[command(flatten)]
    pub(crate) of: RunOf,
}

/// Arguments of `switch`.
#[derive(Debug, Args)]
pub(crate) struct Switch {
    /// The session's id or key.
    pub(crate) session: String,
    /// The workflow, one of those that the session started with.
    pub(crate) workflow: String,
}
