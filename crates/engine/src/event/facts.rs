//! Facts about the catalogue, and who writes values.

use minicbor::{CborLen, Decode, Encode};
use std::sync::Arc;
use switchward_machine::{Machine, Time};

use crate::state::{Assistant, Effect, EndpointHealth, PinnedPolicy};
use crate::{Role, WebhookSource};

/// A fact about an assistant in the catalogue. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum AssistantFact {
    /// It is this from now on.
    #[n(0)]
    Put {
        /// The assistant.
        #[n(0)]
        assistant: Assistant,
        /// Its machine.
        #[cbor(n(1), with = "crate::state::machine_bytes")]
        machine: Arc<Machine>,
    },
    /// It is deleted.
    #[n(1)]
    Deleted {
        /// Its name.
        #[n(0)]
        name: String,
    },
}

/// A fact about which versions new sessions use. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum VersionFact {
    /// They use this one from now on; it is no longer retired.
    #[n(0)]
    Activated {
        /// The definition.
        #[n(0)]
        name: String,
        /// The version.
        #[n(1)]
        number: u32,
    },
    /// None uses this one from now on.
    #[n(1)]
    Retired {
        /// The definition.
        #[n(0)]
        name: String,
        /// The version.
        #[n(1)]
        number: u32,
        /// Who said so: the subject of the credential.
        #[n(2)]
        by: String,
    },
}

impl From<VersionFact> for super::Event {
    fn from(fact: VersionFact) -> Self {
        Self::Versions(fact)
    }
}

/// A fact about a source of webhooks. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum WebhookSourceFact {
    /// It is this from now on.
    #[n(0)]
    Put {
        /// The source.
        #[n(0)]
        source: WebhookSource,
    },
    /// It is deleted.
    #[n(1)]
    Deleted {
        /// Its name.
        #[n(0)]
        name: String,
    },
}

/// A fact about what policy documents hold for. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum PolicyFact {
    /// Sessions of a definition that start from now on have these.
    #[n(0)]
    Attached {
        /// The definition.
        #[n(0)]
        name: String,
        /// All of its documents, by name.
        #[n(1)]
        policies: Vec<String>,
    },
    /// A session has these from now on.
    #[n(1)]
    Pinned {
        /// Each with the definition that it is attached to.
        #[n(0)]
        policies: Vec<PinnedPolicy>,
    },
}

/// A fact about endpoints, in the catalogue. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum EndpointFact {
    /// The health of one is noted in its tenant's record.
    #[n(0)]
    Noted {
        /// Its name.
        #[n(0)]
        id: String,
        /// How it does.
        #[n(1)]
        health: EndpointHealth,
    },
    /// A message that is about the tenant itself waits to go out.
    #[n(1)]
    Queued {
        /// It.
        #[n(0)]
        effect: Box<Effect>,
    },
    /// Such a message is tried again later.
    #[n(2)]
    Deferred {
        /// Its number.
        #[n(0)]
        number: u64,
        /// When.
        #[n(1)]
        until: Time,
        /// Why, in a code.
        #[n(2)]
        code: String,
        /// Why, for a person.
        #[n(3)]
        message: String,
    },
    /// Such a message has arrived, or is given up.
    #[n(3)]
    Gone {
        /// Its number.
        #[n(0)]
        number: u64,
        /// Whether it has arrived.
        #[n(1)]
        arrived: bool,
    },
}

impl From<EndpointFact> for super::Event {
    fn from(fact: EndpointFact) -> Self {
        Self::Endpoints(fact)
    }
}

/// Who wrote a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum Writer {
    /// It came with the start.
    #[n(0)]
    Start,
    /// The agent recorded it.
    #[n(1)]
    Agent,
    /// An operation of the definition.
    #[n(2)]
    Operation,
    /// It came with an event.
    #[n(3)]
    Event,
    /// The run before it had it.
    #[n(4)]
    Switch,
    /// A worker's result.
    #[n(5)]
    Worker,
    /// It is a person's, at a gate or by mail.
    #[n(10)]
    Person,
    /// A child has given it back.
    #[n(20)]
    Child,
    /// A request shows it.
    #[n(120)]
    Request,
}

/// Who has said something in a conversation. Stored form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum Speaker {
    /// The user, as somebody says who may speak for what happens outside.
    #[n(0)]
    User,
    /// The agent.
    #[n(1)]
    Agent,
    /// The user, as the agent says: what it relays confirms nothing.
    #[n(2)]
    Relayed,
}

impl Speaker {
    /// Who speaks if a key of this role hands in what the user has said.
    #[must_use]
    pub fn for_user(role: Role) -> Self {
        if role.speaks_for_outside() { Self::User } else { Self::Relayed }
    }
}

/// Returns true if the flag is not set: then it is not stored.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "as the derived code hands it in")]
pub(super) fn is_known(unknown: &&bool) -> bool {
    !**unknown
}
