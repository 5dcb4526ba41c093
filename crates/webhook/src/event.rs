//! The types of outgoing events, and the filters of endpoints.

use std::fmt;
use std::str::FromStr;

use crate::limits::FILTERS_MAX;

macro_rules! events {
    ($($(#[$doc:meta])* $name:ident = $word:literal in $group:ident,)*) => {
        /// The types of events. New ones go to the end of their group.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum EventType { $($(#[$doc])* $name,)* }

        impl EventType {
            /// Every type.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The type's stable name: its group, a full stop, and what happened.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => $word,)* }
            }

            /// The group of the event.
            #[must_use]
            pub fn group(self) -> Group {
                match self { $(Self::$name => Group::$group,)* }
            }
        }
    };
}

events! {
    /// A session began.
    SessionStarted = "session.started" in Session,
    /// A session entered another state.
    SessionStateEntered = "session.state_entered" in Session,
    /// A session was paused.
    SessionPaused = "session.paused" in Session,
    /// A paused session was resumed.
    SessionResumed = "session.resumed" in Session,
    /// A session cannot go on by itself.
    SessionBlocked = "session.blocked" in Session,
    /// A session needs attention.
    SessionWarned = "session.warned" in Session,
    /// A session came to its end.
    SessionCompleted = "session.completed" in Session,
    /// A session failed.
    SessionFailed = "session.failed" in Session,
    /// A session was cancelled.
    SessionCancelled = "session.cancelled" in Session,
    /// A run of a session was abandoned for another workflow.
    SessionAbandoned = "session.abandoned" in Session,
    /// Somebody is asked to decide.
    ApprovalRequested = "approval.requested" in Approval,
    /// An approver was reminded.
    ApprovalReminded = "approval.reminded" in Approval,
    /// More approvers are asked.
    ApprovalEscalated = "approval.escalated" in Approval,
    /// One of several approvers has voted.
    ApprovalVoted = "approval.voted" in Approval,
    /// A decision was made.
    ApprovalDecided = "approval.decided" in Approval,
    /// Nobody decided in time.
    ApprovalTimedOut = "approval.timed_out" in Approval,
    /// The request could not be delivered to its recipients.
    ApprovalUndeliverable = "approval.undeliverable" in Approval,
    /// A reply could not be parsed.
    ApprovalReplyUnparsed = "approval.reply_unparsed" in Approval,
    /// A request was handed to somebody else.
    ApprovalAssigned = "approval.assigned" in Approval,
    /// A task is open.
    TaskCreated = "task.created" in Task,
    /// A task is done.
    TaskCompleted = "task.completed" in Task,
    /// A task failed.
    TaskFailed = "task.failed" in Task,
    /// A policy forbade a call.
    PolicyDenied = "policy.denied" in Policy,
    /// A policy requires approval of a call.
    PolicyAsked = "policy.asked" in Policy,
    /// A budget is nearly used up.
    BudgetWarned = "budget.warned" in Budget,
    /// A budget is used up.
    BudgetExhausted = "budget.exhausted" in Budget,
    /// A version of a definition was published.
    DefinitionDeployed = "definition.deployed" in Definition,
    /// A version became the one that new sessions use.
    DefinitionActivated = "definition.activated" in Definition,
    /// A version was retired: no session starts with it any more.
    DefinitionRetired = "definition.retired" in Definition,
    /// A message was not delivered, and will not be tried again.
    DeliveryExhausted = "delivery.exhausted" in Delivery,
    /// An endpoint was disabled.
    EndpointDisabled = "endpoint.disabled" in Endpoint,
    /// A test message.
    Ping = "ping" in Ping,
}

impl EventType {
    /// Returns the type of this name; `None` if this version does not know it.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.name() == name)
    }
}

impl fmt::Display for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What an event is about: the part of its name before the full stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Group {
    /// A session as a whole: its start, its states, its end.
    Session,
    /// A gate at which people decide.
    Approval,
    /// A task of a person.
    Task,
    /// A call that a policy evaluated.
    Policy,
    /// Money or tokens that a session may use.
    Budget,
    /// A definition and its versions.
    Definition,
    /// A message that went out.
    Delivery,
    /// An endpoint to which messages go.
    Endpoint,
    /// The connection to an endpoint itself.
    Ping,
}

impl Group {
    /// Every group.
    pub const ALL: &[Self] = &[
        Self::Session,
        Self::Approval,
        Self::Task,
        Self::Policy,
        Self::Budget,
        Self::Definition,
        Self::Delivery,
        Self::Endpoint,
        Self::Ping,
    ];

    /// What the names of its events begin with.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Approval => "approval",
            Self::Task => "task",
            Self::Policy => "policy",
            Self::Budget => "budget",
            Self::Definition => "definition",
            Self::Delivery => "delivery",
            Self::Endpoint => "endpoint",
            Self::Ping => "ping",
        }
    }
}

/// One entry of an endpoint's filters: `session.started`, `session.*` or `*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filter {
    /// Everything.
    All,
    /// Everything of a group.
    Group(Group),
    /// Only events of this type.
    Exact(EventType),
}

/// Why a list of event types is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// An entry is neither a type's name nor `<group>.*` nor `*`; the entry itself.
    #[error("unknown event type {0:?}")]
    Unknown(String),
    /// The list has more than [`FILTERS_MAX`] entries.
    #[error("at most {FILTERS_MAX} event types can be listed")]
    TooMany,
}

impl Filter {
    /// Whether a type passes.
    #[must_use]
    pub fn takes(self, kind: EventType) -> bool {
        match self {
            Self::All => true,
            Self::Group(group) => kind.group() == group,
            Self::Exact(wanted) => kind == wanted,
        }
    }
}

impl FromStr for Filter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, FilterError> {
        let group = text.strip_suffix(".*").map(|word| Group::ALL.iter().find(|group| group.word() == word));
        let found = match group {
            None if text == "*" => Some(Self::All),
            None => EventType::from_name(text).map(Self::Exact),
            Some(group) => group.copied().map(Self::Group),
        };
        found.ok_or_else(|| FilterError::Unknown(text.to_owned()))
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("*"),
            Self::Group(group) => write!(f, "{}.*", group.word()),
            Self::Exact(kind) => kind.fmt(f),
        }
    }
}

/// The filters of an endpoint: events that match any of them pass. An empty list passes everything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filters(Vec<Filter>);

impl Filters {
    /// Reads a list.
    ///
    /// # Errors
    /// An unknown entry, or more than [`FILTERS_MAX`].
    pub fn read<'t>(entries: impl IntoIterator<Item = &'t str>) -> Result<Self, FilterError> {
        let mut filters = Vec::new();
        for entry in entries {
            if filters.len() == FILTERS_MAX {
                return Err(FilterError::TooMany);
            }
            filters.push(entry.parse()?);
        }
        Ok(Self(filters))
    }

    /// Whether a type passes.
    #[must_use]
    pub fn take(&self, kind: EventType) -> bool {
        self.0.is_empty() || self.0.iter().any(|filter| filter.takes(kind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_begins_with_its_group_and_is_read_back() {
        for kind in EventType::ALL {
            let (name, group) = (kind.name(), kind.group().word());
            assert_eq!(name.split('.').next(), Some(group), "{name}");
            assert_eq!(EventType::from_name(name), Some(*kind));
            assert_eq!(EventType::ALL.iter().filter(|other| other.name() == name).count(), 1, "{name}");
            assert_eq!(name.parse(), Ok(Filter::Exact(*kind)));
        }
        for group in Group::ALL {
            assert!(EventType::ALL.iter().any(|kind| kind.group() == *group), "{group:?} is empty");
            assert_eq!(format!("{}.*", group.word()).parse(), Ok(Filter::Group(*group)));
        }
        assert_eq!(EventType::ALL.len(), 32);
    }

    #[test]
    fn a_filter_takes_what_it_says_and_nothing_else() {
        let taken = |entries: &[&str]| -> Vec<&str> {
            let filters = Filters::read(entries.iter().copied()).unwrap();
            EventType::ALL.iter().filter(|kind| filters.take(**kind)).map(|kind| kind.name()).collect()
        };
        assert_eq!(taken(&["task.*", "ping"]), ["task.created", "task.completed", "task.failed", "ping"]);
        assert_eq!(taken(&["session.failed"]), ["session.failed"]);
        assert_eq!(taken(&["*"]).len(), EventType::ALL.len());
        assert_eq!(taken(&[]).len(), EventType::ALL.len());
    }

    #[test]
    fn what_names_nothing_is_no_filter() {
        for bad in
            ["", "session", "session.", "session.**", "*.started", ".*", "Session.*", "session.gone", "**"]
        {
            assert_eq!(bad.parse::<Filter>(), Err(FilterError::Unknown(bad.into())), "{bad:?}");
        }
        let many = vec!["*"; FILTERS_MAX + 1];
        assert_eq!(Filters::read(many.iter().copied()), Err(FilterError::TooMany));
        assert!(Filters::read(many.into_iter().skip(1)).is_ok());
    }
}
