//! What a session starts with.

use clap::Args;

use switchward_api::v1::Quorum;

use super::values::{duration, label, quorum};

/// Arguments of `start`.
#[derive(Debug, Args)]
pub(crate) struct Start {
    /// The definition's name; may be left out where the assistant's workflows and the message tell it.
    #[arg(required_unless_present = "assistant")]
    pub(crate) definition: Option<String>,
    /// The assistant that the conversation is with.
    #[arg(long, value_name = "ASSISTANT", conflicts_with = "workflows")]
    pub(crate) assistant: Option<String>,
    /// What the user opens the conversation with.
    #[arg(long, value_name = "TEXT")]
    pub(crate) message: Option<String>,
    /// A key of your own to find the session by: 4 to 63 of a-z, 0-9 and -.
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
    /// The role that the agent plays, as the policy sees it; without it, `agent`. Another one than the policy's is an
    /// operator's to choose.
    #[arg(long, value_name = "ROLE")]
    pub(crate) role: Option<String>,
    /// The version; without it, the active one. Another one is an operator's to choose.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) version: Option<u32>,
    /// Data to start with: a JSON object, or @FILE.
    #[arg(long, value_name = "JSON")]
    pub(crate) input: Option<String>,
    /// The definition of a further run of the conversation; may be said again.
    #[arg(long = "queue", value_name = "DEFINITION")]
    pub(crate) queue: Vec<String>,
    /// The address of whom the conversation is with.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) contact: Option<String>,
    /// A definition that the conversation may switch to; may be said again.
    #[arg(long = "workflow", value_name = "DEFINITION")]
    pub(crate) workflows: Vec<String>,
    /// Who is told of gates that address nobody: an address, or a name of the directory; may be said again. Without it, as
    /// the directory says. Operators alone may set this and the next three.
    #[arg(long = "tell", value_name = "NAME")]
    pub(crate) audience: Vec<String>,
    /// Those who are asked to decide and have not are reminded after this time, and again: 90s, 5m, 4h;
    /// without it, as the directory says.
    #[arg(long, value_name = "TIME", requires = "reminders", value_parser = duration)]
    pub(crate) remind_every: Option<std::time::Duration>,
    /// How often they are, 1 to 10.
    #[arg(long, value_name = "NUMBER", requires = "remind_every")]
    pub(crate) reminders: Option<u32>,
    /// How many must approve what is asked of people: any, all (who are asked or told) or a number; without it, as the
    /// directory says, else the first decides.
    #[arg(long, value_name = "RULE", value_parser = quorum)]
    pub(crate) quorum: Option<Quorum>,
    /// Who is asked, too, where those who were asked do not decide: an address, or a name of the directory; may be said
    /// again. Without it, as the directory says.
    #[arg(long = "escalate-to", value_name = "NAME")]
    pub(crate) escalation: Vec<String>,
    /// A label to find the session by; may be said again.
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label)]
    pub(crate) labels: Vec<(String, String)>,
}
