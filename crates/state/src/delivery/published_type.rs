//! The types of events that endpoints receive.

crate::wire::stored_words! {
    /// A type of event that endpoints receive. The crate `webhook` has each of them with its schema.
    PublishedType is "published type":
    /// A session began.
    SessionStarted = "session.started",
    /// A session entered another state.
    SessionStateEntered = "session.state_entered",
    /// Somebody paused a session.
    SessionPaused = "session.paused",
    /// A session goes on after a pause.
    SessionResumed = "session.resumed",
    /// A session was stopped by its definition.
    SessionBlocked = "session.blocked",
    /// A session needs attention.
    SessionWarned = "session.warned",
    /// A session reached its goal.
    SessionCompleted = "session.completed",
    /// Something went wrong, and a session ended.
    SessionFailed = "session.failed",
    /// Somebody stopped a session.
    SessionCancelled = "session.cancelled",
    /// A run was replaced by one of another workflow.
    SessionAbandoned = "session.abandoned",
    /// People are asked to decide.
    ApprovalRequested = "approval.requested",
    /// Approvers got the request again.
    ApprovalReminded = "approval.reminded",
    /// More approvers are asked.
    ApprovalEscalated = "approval.escalated",
    /// One of several approvers has answered.
    ApprovalVoted = "approval.voted",
    /// A decision was made.
    ApprovalDecided = "approval.decided",
    /// Nobody decided in time.
    ApprovalTimedOut = "approval.timed_out",
    /// A mail with the request came back.
    ApprovalUndeliverable = "approval.undeliverable",
    /// A request was handed to somebody else.
    ApprovalAssigned = "approval.assigned",
    /// A task is open.
    TaskCreated = "task.created",
    /// A task is done.
    TaskCompleted = "task.completed",
    /// A policy forbade a call.
    PolicyDenied = "policy.denied",
    /// A call needs an approval first.
    PolicyAsked = "policy.asked",
    /// A session has used up money or mails.
    BudgetExhausted = "budget.exhausted",
    /// A definition has another version.
    DefinitionDeployed = "definition.deployed",
    /// New sessions use another version.
    DefinitionActivated = "definition.activated",
    /// No session starts with a version any more.
    DefinitionRetired = "definition.retired",
    /// A message was not delivered, and will not be tried again.
    DeliveryExhausted = "delivery.exhausted",
    /// Nothing is sent to an endpoint any more.
    EndpointDisabled = "endpoint.disabled",
}

impl PublishedType {
    /// Returns true for events of sessions, and false for those of the tenant itself.
    #[must_use]
    pub fn is_of_session(self) -> bool {
        !matches!(
            self,
            Self::DefinitionDeployed
                | Self::DefinitionActivated
                | Self::DefinitionRetired
                | Self::EndpointDisabled
        )
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_type_is_read_from_its_name() {
        let mut names = BTreeSet::new();
        for kind in PublishedType::ALL {
            let bytes = minicbor::to_vec(kind).expect("encoding into memory cannot fail");
            assert_eq!(minicbor::len(kind), bytes.len(), "{kind}");
            assert_eq!(minicbor::decode::<PublishedType>(&bytes).expect("it is a type"), *kind);
            assert!(names.insert(kind.word()), "two types have the name {kind}");
        }
        let bytes = minicbor::to_vec("ping").expect("encoding into memory cannot fail");
        assert!(minicbor::decode::<PublishedType>(&bytes).is_err());
    }
}
