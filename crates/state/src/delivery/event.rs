//! Events about what goes out, and where it goes.

use minicbor::{CborLen, Decode, Encode};
use switchward_machine::{OpenId, RunId, Time};

use crate::delivery::{DeliveryDetail, Effect, EndpointHealth, FailureCode, WebhookSourceFact};

/// An event about what goes out, and where it goes. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
#[cbor(flat)]
pub enum DeliveryEvent {
    /// Something is needed from the outside.
    #[n(0)]
    Queued {
        /// What goes out, with its number and what caused it.
        #[n(0)]
        effect: Effect,
    },
    /// An effect has arrived.
    #[n(1)]
    Acked {
        /// The effect's number in its outbox.
        #[n(0)]
        number: u64,
    },
    /// An effect of a session cannot be delivered: it is a dead letter, and the session has an incident.
    #[n(2)]
    Failed {
        /// The effect's number in its outbox.
        #[n(0)]
        number: u64,
        /// Why.
        #[n(1)]
        code: FailureCode,
        /// What exactly has gone wrong; `None` if the code says it all.
        #[n(2)]
        detail: Option<DeliveryDetail>,
    },
    /// A dead letter is sent again, and its incident is closed.
    #[n(3)]
    Retried {
        /// The effect's number in its outbox.
        #[n(0)]
        number: u64,
    },
    /// An effect is given up; the incident of a dead letter is closed.
    #[n(4)]
    Dismissed {
        /// The effect's number in its outbox.
        #[n(0)]
        number: u64,
    },
    /// An attempt to deliver an effect has failed, and another one follows.
    #[n(5)]
    Deferred {
        /// The effect's number in its outbox.
        #[n(0)]
        number: u64,
        /// When the next attempt is due.
        #[n(1)]
        until: Time,
        /// Why.
        #[n(2)]
        code: FailureCode,
        /// What exactly has gone wrong; `None` if the code says it all.
        #[n(3)]
        detail: Option<DeliveryDetail>,
    },
    /// An effect waits because a cap is reached; nothing was tried.
    #[n(6)]
    Held {
        /// The effect's number in its outbox.
        #[n(0)]
        number: u64,
        /// Until when.
        #[n(1)]
        until: Time,
        /// Why.
        #[n(2)]
        code: FailureCode,
        /// What exactly has gone wrong; `None` if the code says it all.
        #[n(3)]
        detail: Option<DeliveryDetail>,
    },
    /// A mail that asks somebody at a gate has come back, or somebody says so.
    #[n(7)]
    MailBounced {
        /// The number of the gate that asks.
        #[n(0)]
        gate: OpenId,
        /// Whom it went to.
        #[n(1)]
        to: String,
        /// The status and the text of the mail that reported it.
        #[n(2)]
        message: String,
        /// Whether it came to the address that only mail servers know.
        #[n(3)]
        proved: bool,
    },
    /// The health of an endpoint is noted in its tenant's record.
    #[n(8)]
    EndpointNoted {
        /// Its name.
        #[n(0)]
        id: String,
        /// How it does.
        #[n(1)]
        health: EndpointHealth,
    },
    /// A source of webhooks is another one from now on.
    #[n(9)]
    WebhookSources(#[n(0)] WebhookSourceFact),
}

impl DeliveryEvent {
    /// Returns true if the event is about effects, and so counts in the sequence of a session whose they are.
    #[must_use]
    pub fn counts(&self) -> bool {
        !matches!(self, Self::EndpointNoted { .. } | Self::WebhookSources(_))
    }

    /// Returns true if the event is only about the progress of an effect, or queues a message to an endpoint.
    #[must_use]
    pub fn is_progress(&self) -> bool {
        match self {
            Self::Queued { effect } => effect.body.published(),
            Self::Acked { .. } | Self::Deferred { .. } | Self::Held { .. } => true,
            Self::Failed { .. }
            | Self::Retried { .. }
            | Self::Dismissed { .. }
            | Self::MailBounced { .. }
            | Self::EndpointNoted { .. }
            | Self::WebhookSources(_) => false,
        }
    }

    /// Returns true if the event changes which effects are to go out. The server's own effects never do.
    #[must_use]
    pub fn changes_outbox(&self) -> bool {
        match self {
            Self::Queued { effect } => !effect.body.inner(),
            Self::Acked { .. }
            | Self::Failed { .. }
            | Self::Retried { .. }
            | Self::Deferred { .. }
            | Self::Held { .. } => true,
            Self::Dismissed { .. }
            | Self::MailBounced { .. }
            | Self::EndpointNoted { .. }
            | Self::WebhookSources(_) => false,
        }
    }

    /// The run that queued the effect; `None` for what happens to it later.
    #[must_use]
    pub fn run(&self) -> Option<RunId> {
        match self {
            Self::Queued { effect } => effect.source.run(),
            Self::Acked { .. }
            | Self::Failed { .. }
            | Self::Retried { .. }
            | Self::Dismissed { .. }
            | Self::Deferred { .. }
            | Self::Held { .. }
            | Self::MailBounced { .. }
            | Self::EndpointNoted { .. }
            | Self::WebhookSources(_) => None,
        }
    }
}
