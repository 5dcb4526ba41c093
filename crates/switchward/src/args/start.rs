//! Arguments of `start`.

use clap::Args;
use switchward_api::v1::Quorum;

use super::values::{duration, label, quorum};

/// Arguments of `start`.
#[derive(Debug, Args)]
pub(crate) struct Start {
    /// The definition's name; optional with --assistant, where the message determines the workflows.
    #[arg(required_unless_present = "assistant")]
    pub(crate) definition: Option<String>,
    /// The assistant of the conversation.
    #[arg(long, value_name = "ASSISTANT", conflicts_with = "workflows")]
    pub(crate) assistant: Option<String>,
    /// The user's first message.
    #[arg(long, value_name = "TEXT")]
    pub(crate) message: Option<String>,
    /// Your key for the session: 4 to 63 characters of a-z, 0-9 and -.
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
    /// The agent's role for the policy [default: agent]. Only operators can set a role other than the policy's.
    #[arg(long, value_name = "ROLE")]
    pub(crate) role: Option<String>,
    /// The version [default: the active version]. Only operators can set another version.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) version: Option<u32>,
    /// The input data: a JSON object, or @FILE.
    #[arg(long, value_name = "JSON")]
    pub(crate) input: Option<String>,
    /// The definition of another run, which starts after the runs before it; can be repeated.
    #[arg(long = "queue", value_name = "DEFINITION")]
    pub(crate) queue: Vec<String>,
    /// The mail address of the conversation's user.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) contact: Option<String>,
    /// A definition that the conversation can switch to; can be repeated.
    #[arg(long = "workflow", value_name = "DEFINITION")]
    pub(crate) workflows: Vec<String>,
    /// A person who is notified of gates that address nobody: an address or a name in the directory; can be repeated
    /// [default: from the directory]. Only operators can set this and the following options for gates.
    #[arg(long = "notify", value_name = "NAME")]
    pub(crate) audience: Vec<String>,
    /// The time between reminders to people who have not decided yet, such as 90s, 5m or 4h [default: from the
    /// directory].
    #[arg(long, value_name = "TIME", requires = "reminders", value_parser = duration)]
    pub(crate) remind_every: Option<std::time::Duration>,
    /// The maximum number of reminders, 1 to 10.
    #[arg(long, value_name = "NUMBER", requires = "remind_every")]
    pub(crate) reminders: Option<u32>,
    /// How many people must approve: any, all (of the notified people) or a number [default: from the directory, else
    /// any].
    #[arg(long, value_name = "RULE", value_parser = quorum)]
    pub(crate) quorum: Option<Quorum>,
    /// A person who is asked as well if the approvers do not decide: an address or a name in the directory; can be
    /// repeated [default: from the directory].
    #[arg(long = "escalate-to", value_name = "NAME")]
    pub(crate) escalation: Vec<String>,
    /// A label of the session, for filters; can be repeated.
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label)]
    pub(crate) labels: Vec<(String, String)>,
}
