//! Where events come from, and which of them may end a wait.

use minicbor::{CborLen, Decode, Encode};

use crate::Actor;
use crate::catalogue::Role;
use crate::run::RecordEvent;

/// Where an event came from. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum EventSource {
    /// A key of the API.
    #[n(0)]
    Key {
        /// The key's role.
        #[n(0)]
        role: Role,
        /// Whose key it is.
        #[n(1)]
        subject: String,
    },
    /// A source of webhooks of the tenant, by its name.
    #[n(1)]
    Webhook(#[n(0)] String),
    /// The holder of the state's reply token.
    #[n(2)]
    ReplyToken,
}

impl EventSource {
    /// The source of an event that this actor brings.
    #[must_use]
    pub fn of(event: &RecordEvent, actor: &Actor) -> Self {
        match (&event.token, &event.webhook) {
            (Some(_), _) => Self::ReplyToken,
            (None, Some(name)) => Self::Webhook(name.clone()),
            (None, None) => Self::Key { role: actor.role, subject: actor.subject.clone() },
        }
    }

    /// The public name, as bindings have it: `webhook:shop`, `integration:erp`, `operator:kim`, `reply_token`.
    #[must_use]
    pub fn label(&self) -> String {
        match self {
            Self::Key { role, subject } => format!("{}:{subject}", role.word()),
            Self::Webhook(name) => format!("webhook:{name}"),
            Self::ReplyToken => REPLY_TOKEN.to_owned(),
        }
    }

    /// Returns true if a binding cannot exclude it: a caller that runs the tenant's sessions answers for their own
    /// events.
    pub(crate) fn is_unbound(&self) -> bool {
        match self {
            Self::Key { role, .. } => matches!(role, Role::Operator | Role::Admin | Role::Server),
            Self::Webhook(_) | Self::ReplyToken => false,
        }
    }
}

/// The word of reply tokens among sources.
pub(crate) const REPLY_TOKEN: &str = "reply_token";
