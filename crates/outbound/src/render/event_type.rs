//! The types of events, as messages to endpoints have them.

use switchward_state::delivery::PublishedType;
use switchward_webhook::EventType;

/// Defines a function that converts each type into the one of the same name.
macro_rules! types {
    ($($name:ident)*) => {
        /// The type that a message about this event has.
        pub(super) fn event_type(kind: PublishedType) -> EventType {
            match kind { $(PublishedType::$name => EventType::$name,)* }
        }
    };
}

types! {
    SessionStarted
    SessionStateEntered
    SessionPaused
    SessionResumed
    SessionBlocked
    SessionWarned
    SessionCompleted
    SessionFailed
    SessionCancelled
    SessionAbandoned
    ApprovalRequested
    ApprovalReminded
    ApprovalEscalated
    ApprovalVoted
    ApprovalDecided
    ApprovalTimedOut
    ApprovalUndeliverable
    ApprovalAssigned
    TaskCreated
    TaskCompleted
    PolicyDenied
    PolicyAsked
    BudgetExhausted
    DefinitionDeployed
    DefinitionActivated
    DefinitionRetired
    DeliveryExhausted
    EndpointDisabled
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The types that are in the catalogue for later, and the test message.
    const UNUSED: [EventType; 4] =
        [EventType::ApprovalReplyUnparsed, EventType::TaskFailed, EventType::BudgetWarned, EventType::Ping];

    #[test]
    fn the_catalogue_has_every_type_that_is_published() {
        for kind in PublishedType::ALL {
            assert_eq!(event_type(*kind).name(), kind.word());
        }
        let published: Vec<EventType> = PublishedType::ALL.iter().map(|kind| event_type(*kind)).collect();
        let mut others = EventType::ALL.to_vec();
        others.retain(|kind| !published.contains(kind));
        assert_eq!(others, UNUSED);
    }
}
