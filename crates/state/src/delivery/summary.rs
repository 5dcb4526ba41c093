//! What a reply holds of an endpoint, a webhook source or an effect: what its caller is shown, and nothing secret or large.

use minicbor::{CborLen, Decode, Encode};
use switchward_machine::{Channel, Digest, OpenId, Time};

use crate::delivery::{
    Correlation, DeliveryFailure, DisabledReason, Effect, EffectBody, Endpoint, SourceSecret, WebhookSource,
    WebhookSourceKind,
};
use crate::seal::Sealed;

/// An endpoint without its secrets and its health.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct EndpointSummary {
    /// Its name.
    #[n(0)]
    pub id: String,
    /// Where messages go.
    #[n(1)]
    pub url: String,
    /// The types of events that it gets.
    #[n(2)]
    pub filters: Vec<String>,
    /// Why it is disabled; `None` if it is enabled.
    #[n(3)]
    pub disabled: Option<DisabledReason>,
    /// When it was created.
    #[n(4)]
    pub created: Time,
    /// Stands for the endpoint as the command left it.
    #[n(5)]
    pub etag: String,
    /// Which secret is the newest, and until when the one before is good.
    #[n(6)]
    pub secrets: SecretsSummary,
}

impl EndpointSummary {
    /// Summarises an endpoint.
    #[must_use]
    pub fn of(endpoint: &Endpoint) -> Self {
        Self {
            id: endpoint.id.clone(),
            url: endpoint.url.clone(),
            filters: endpoint.filters.clone(),
            disabled: endpoint.disabled,
            created: endpoint.created,
            etag: endpoint.etag(),
            secrets: SecretsSummary::of(&endpoint.secrets),
        }
    }
}

/// A webhook source without its secrets.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct SourceSummary {
    /// The name in the source's path.
    #[n(0)]
    pub name: String,
    /// How it is authenticated.
    #[n(1)]
    pub kind: WebhookSourceKind,
    /// Which event of which session a message is.
    #[n(2)]
    pub correlation: Correlation,
    /// When it was created.
    #[n(3)]
    pub created: Time,
    /// When it was last changed.
    #[n(4)]
    pub updated: Time,
    /// Stands for the source as the command left it.
    #[n(5)]
    pub etag: String,
    /// Which secret is the newest, and until when the one before is good.
    #[n(6)]
    pub secrets: SecretsSummary,
}

impl SourceSummary {
    /// Summarises a source.
    #[must_use]
    pub fn of(source: &WebhookSource) -> Self {
        Self {
            name: source.name.clone(),
            kind: source.kind,
            correlation: source.correlation.clone(),
            created: source.created,
            updated: source.updated,
            etag: source.etag(),
            secrets: SecretsSummary::of(&source.secrets),
        }
    }
}

/// What may be known of secrets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct SecretsSummary {
    /// The digest of the newest one as it was sealed first; `None` if there is none.
    #[n(0)]
    pub newest: Option<Digest>,
    /// When the one before it stops to be good; `None` if there is none.
    #[n(1)]
    pub old_until: Option<Time>,
}

impl SecretsSummary {
    fn of(secrets: &[SourceSecret]) -> Self {
        let newest = secrets.first().map(|secret| digest(&secret.sealed));
        Self { newest, old_until: secrets.get(1).and_then(|secret| secret.until) }
    }

    /// Returns true if this is the newest secret. A secret is never sealed to the same bytes twice.
    #[must_use]
    pub fn is_newest(&self, sealed: &Sealed) -> bool {
        self.newest == Some(digest(sealed))
    }
}

fn digest(sealed: &Sealed) -> Digest {
    let mut bytes = Vec::with_capacity(256);
    minicbor::encode(sealed, &mut bytes).expect("encoding into memory cannot fail");
    Digest::of(&bytes)
}

/// What became of an effect that has not arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, CborLen)]
#[cbor(index_only)]
pub enum EffectStatus {
    /// It is on its way.
    #[n(0)]
    Pending,
    /// It was given up, and waits until an operator retries or dismisses it.
    #[n(1)]
    DeadLetter,
}

/// What goes out with an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum EffectKind {
    /// A notice of a gate.
    #[n(0)]
    Notice,
    /// A message of a definition.
    #[n(1)]
    Message(#[n(0)] Channel),
    /// An event for an endpoint.
    #[n(2)]
    Event,
}

impl EffectKind {
    /// The kind of an effect; `None` for what the server carries out itself.
    #[must_use]
    pub fn of(body: &EffectBody) -> Option<Self> {
        match body {
            EffectBody::Notice { .. } => Some(Self::Notice),
            EffectBody::Message { channel, .. } => Some(Self::Message(*channel)),
            EffectBody::Publish { .. } => Some(Self::Event),
            EffectBody::Confirm { .. } | EffectBody::Settle { .. } => None,
        }
    }

    /// What the effect is called in filters.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Notice => "notice",
            Self::Message(channel) => channel.word(),
            Self::Event => "event",
        }
    }
}

/// An effect without what it says.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct EffectSummary {
    /// Its number in the session.
    #[n(0)]
    pub number: u64,
    /// What goes out.
    #[n(1)]
    pub kind: EffectKind,
    /// The name of the node that caused it.
    #[n(2)]
    pub node: String,
    /// The gate that it is about, if it is about one.
    #[n(3)]
    pub gate: Option<OpenId>,
    /// The address or the endpoint; empty for a notice.
    #[n(4)]
    pub to: String,
    /// Since when it is to go out.
    #[n(5)]
    pub since: Time,
    /// When the next attempt follows.
    #[n(6)]
    pub next: Time,
    /// How often it was sent again.
    #[n(7)]
    pub round: u32,
    /// Attempts that have failed since it was sent, or sent again.
    #[n(8)]
    pub attempts: u32,
    /// Why it is a dead letter; `None` while it is on its way.
    #[n(9)]
    pub dead_letter: Option<DeliveryFailure>,
    /// Why the last attempt has failed, while another one follows.
    #[n(10)]
    pub last: Option<DeliveryFailure>,
}

impl EffectSummary {
    /// Summarises an effect; `None` for one that the server carries out itself. `node` is the name of its node.
    #[must_use]
    pub fn of(effect: &Effect, node: String) -> Option<Self> {
        let kind = EffectKind::of(&effect.body)?;
        let (gate, to) = match &effect.body {
            EffectBody::Notice { gate, .. } => (Some(*gate), ""),
            EffectBody::Message { gate, to, .. } => (*gate, to.as_str()),
            EffectBody::Publish { endpoint, .. } => (None, endpoint.as_str()),
            EffectBody::Confirm { .. } | EffectBody::Settle { .. } => (None, ""),
        };
        Some(Self {
            number: effect.number,
            kind,
            node,
            gate,
            to: to.to_owned(),
            since: effect.since(),
            next: effect.deliver_at,
            round: effect.round(),
            attempts: effect.attempt().number,
            dead_letter: effect.dead_letter().cloned(),
            last: effect.last().cloned(),
        })
    }
}
