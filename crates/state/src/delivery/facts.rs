//! Facts about endpoints and sources of webhooks.

use minicbor::{CborLen, Decode, Encode};
use switchward_machine::Time;

use crate::delivery::{Effect, EndpointHealth, WebhookSource};

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
