//! Commands about what goes out.

use minicbor::{Decode, Encode};

use crate::AdmissionClass::{Begins, Ends, Neither};
use crate::approval::MailToken;
use crate::delivery::{Attempt, ChangeEndpoint, ChangeWebhookSource, DeliveryDetail, FailureCode, Republish};
use crate::limits::EFFECT_BYTES;
use crate::{ChangedTenant, CommandTraits, ScopeKind};

/// A command about what goes out.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub enum DeliveryCommand {
    /// An effect has arrived.
    #[n(0)]
    AckEffect(#[n(0)] AckEffect),
    /// An effect cannot be delivered.
    #[n(1)]
    FailEffect(#[n(0)] FailEffect),
    /// An effect is tried again later.
    #[n(2)]
    DeferEffect(#[n(0)] DeferEffect),
    /// A mail has come back.
    #[n(3)]
    RecordBounce(#[n(0)] RecordBounce),
    /// A dead letter is sent again.
    #[n(4)]
    RetryEffect(#[n(0)] RetryEffect),
    /// A dead letter is given up.
    #[n(5)]
    DismissEffect(#[n(0)] DismissEffect),
    /// A source of webhooks is created, changed or deleted.
    #[n(6)]
    WebhookSource(#[n(0)] ChangeWebhookSource),
    /// An endpoint of a tenant changes.
    #[n(7)]
    Endpoint(#[n(0)] ChangeEndpoint),
    /// An endpoint gets the events that it has missed.
    #[n(8)]
    Republish(#[n(0)] Republish),
    /// Nothing of a tenant goes out any more, or what waits goes out again.
    #[n(9)]
    HoldEffects(#[n(0)] HoldEffects),
}

impl DeliveryCommand {
    /// What each kind says of itself.
    #[must_use]
    pub fn traits(&self) -> CommandTraits {
        use ScopeKind::{Catalogue, Outbox, Session};
        match self {
            Self::AckEffect(_) => CommandTraits::of(Outbox, Ends).in_removed_session(),
            Self::FailEffect(_) | Self::DeferEffect(_) => CommandTraits::of(Outbox, Ends),
            Self::RetryEffect(_) => CommandTraits::of(Outbox, Begins).grows(),
            Self::DismissEffect(_) => CommandTraits::of(Outbox, Neither),
            Self::RecordBounce(_) => CommandTraits::of(Session, Ends),
            Self::Republish(_) => CommandTraits::of(Session, Neither).grows(),
            Self::WebhookSource(_) => CommandTraits::of(Catalogue, Neither).grows(),
            Self::Endpoint(_) => {
                CommandTraits::of(Catalogue, Neither).grows().changes_tenancy(ChangedTenant::Own)
            }
            Self::HoldEffects(_) => CommandTraits::of(Catalogue, Neither).changes_tenancy(ChangedTenant::Own),
        }
    }

    /// The approximate size of what the command carries, bytes.
    #[must_use]
    pub fn carried(&self) -> usize {
        match self {
            Self::FailEffect(fail) => fail.detail.as_ref().map_or(0, DeliveryDetail::bytes),
            Self::DeferEffect(defer) => defer.detail.as_ref().map_or(0, DeliveryDetail::bytes),
            Self::RecordBounce(bounce) => bounce.message.len(),
            Self::Republish(republish) => (republish.events.len() + republish.retry.len()) * EFFECT_BYTES,
            Self::AckEffect(_)
            | Self::RetryEffect(_)
            | Self::DismissEffect(_)
            | Self::WebhookSource(_)
            | Self::Endpoint(_)
            | Self::HoldEffects(_) => 0,
        }
    }
}

/// An effect has arrived. Repeated, or for an effect that no longer exists, it changes nothing; for a dead letter it
/// closes the incident.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct AckEffect {
    /// Its number in the session.
    #[n(0)]
    pub number: u64,
}

/// An effect cannot be delivered, now or later: it becomes a dead letter, and its session has an incident. For a dead
/// letter, or for an effect that no longer exists, it changes nothing.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct FailEffect {
    /// Its number in the session.
    #[n(0)]
    pub number: u64,
    /// Why.
    #[n(1)]
    pub code: FailureCode,
    /// What exactly has gone wrong; `None` if the code says it all. At most 16 KiB.
    #[n(2)]
    pub detail: Option<DeliveryDetail>,
    /// Which sending has failed, see [`Effect::round`](crate::delivery::Effect::round); of an older one than the last it changes
    /// nothing. `None`: the last.
    #[n(3)]
    pub round: Option<u32>,
}

/// An attempt to deliver an effect has failed, or was not made because a cap is reached, and another one is to be made
/// later. For a dead letter, for an effect that no longer exists, or for an older attempt than the last, it changes
/// nothing.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct DeferEffect {
    /// Its number in the session.
    #[n(0)]
    pub number: u64,
    /// Which attempt has failed.
    #[n(1)]
    pub attempt: Attempt,
    /// How long after the decision the next one is due, milliseconds. It is not a time, because the clocks of servers
    /// differ.
    #[n(2)]
    pub wait_ms: u64,
    /// Why.
    #[n(3)]
    pub code: FailureCode,
    /// What exactly has gone wrong; `None` if the code says it all. At most 16 KiB.
    #[n(4)]
    pub detail: Option<DeliveryDetail>,
    /// Whether an attempt was made, which counts; one that was only put off does not bring it nearer to its last.
    #[n(5)]
    pub made: bool,
}

/// A mail has come back. A token of [`TokenUse::Bounce`](crate::approval::TokenUse), which stands in no header of a
/// mail, proves the bounce: its recipient counts as out of reach, and if nobody else can be reached, the gate's next
/// round begins. A token of a reply address is known to everybody whom the mail was forwarded to: then the gate shows a
/// warning, and nothing else changes. Of a gate that is closed, or of a mail that is no more wanted, it changes
/// nothing.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct RecordBounce {
    /// The token of the mail; it names whom it went to.
    #[n(0)]
    pub token: MailToken,
    /// The status and the text of the mail that reported it; at most 16 KiB.
    #[n(1)]
    pub message: String,
}

/// A dead letter is to be delivered after all; its incident is closed. For an effect that is on its way, it changes
/// nothing.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct RetryEffect {
    /// Its number in the session.
    #[n(0)]
    pub number: u64,
}

/// Nobody is to deliver a dead letter any more; its incident is closed.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct DismissEffect {
    /// Its number in the session.
    #[n(0)]
    pub number: u64,
}

/// Nothing of a tenant goes out from now on, or what waits goes out again.
#[derive(Debug, Clone, Copy, PartialEq, Encode, Decode)]
pub struct HoldEffects {
    /// Which of the two.
    #[n(0)]
    pub held: bool,
}
