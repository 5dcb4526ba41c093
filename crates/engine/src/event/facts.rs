//! Facts about the catalogue, and who writes values.

use minicbor::{CborLen, Decode, Encode};
use std::sync::Arc;
use switchward_machine::Machine;

use crate::WebhookSource;
use crate::state::Assistant;

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
    /// It is no more.
    #[n(1)]
    Deleted {
        /// Its name.
        #[n(0)]
        name: String,
    },
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
    /// It is no more.
    #[n(1)]
    Deleted {
        /// Its name.
        #[n(0)]
        name: String,
    },
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
}
