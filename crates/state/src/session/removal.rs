//! The end of data: how long it is kept, sessions whose data is removed, and what remains of them.

use minicbor::{CborLen, Decode, Encode};
use switchward_machine::{Digest, OpenId, Status, Time};

/// How the data of a session is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum Removing {
    /// An admin deletes the session.
    #[n(0)]
    Deleted,
    /// An admin erases what it held; that it was, and who decided what, remains.
    #[n(1)]
    Erased,
    /// It was kept long enough. Its decisions remain.
    #[n(2)]
    Expired,
    /// Its history was kept long enough. Its decisions remain, and the session does.
    #[n(3)]
    Trimmed,
}

impl Removing {
    /// The public name.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Deleted => "deleted",
            Self::Erased => "erased",
            Self::Expired => "expired",
            Self::Trimmed => "trimmed",
        }
    }

    /// Whether the session does not exist for callers from its beginning on.
    #[must_use]
    pub fn hides(self) -> bool {
        match self {
            Self::Deleted | Self::Expired => true,
            Self::Erased | Self::Trimmed => false,
        }
    }
}

/// The removal of a session's data.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Removal {
    /// Why it is removed, and so what remains.
    #[n(0)]
    pub how: Removing,
    /// Who requested it.
    #[n(1)]
    pub by: String,
    /// When it began.
    #[n(2)]
    pub at: Time,
    /// When its last step was done.
    #[n(3)]
    pub done: Option<Time>,
    /// The sequence up to which the history is redacted.
    #[n(4)]
    pub upto: u64,
    /// The head of the chain of the redacted history.
    #[n(5)]
    pub head: Digest,
}

impl Removal {
    /// Whether steps of it are left.
    #[must_use]
    pub fn under_way(&self) -> bool {
        self.done.is_none()
    }
}

/// What remains of a session whose data was removed. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Removed {
    /// Why it was removed, and so what remains.
    #[n(0)]
    pub how: Removing,
    /// Who requested it.
    #[n(1)]
    pub by: String,
    /// When.
    #[n(2)]
    pub at: Time,
    /// The definition's name.
    #[n(3)]
    pub definition: String,
    /// The definition's version.
    #[n(4)]
    pub version: u32,
    /// When the session began.
    #[n(5)]
    pub created: Time,
    /// When it ended.
    #[n(6)]
    pub ended: Time,
    /// How it ended.
    #[n(7)]
    pub status: Status,
    /// Who decided what, oldest first.
    #[n(8)]
    pub decisions: Vec<RetainedDecision>,
    /// The request id that it was requested with, and the digest of its body.
    #[n(9)]
    pub request: Option<(String, Digest)>,
    /// Whether the session itself has expired, possibly after it was erased.
    #[n(10)]
    pub expired: bool,
}

impl Removed {
    /// Returns true if the session has expired and this row is kept only as long as the rule for decisions says.
    #[must_use]
    pub fn outlasts_its_session(&self) -> bool {
        self.expired && (self.how == Removing::Expired || !self.decisions.is_empty())
    }
}

/// A decision that remains.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct RetainedDecision {
    /// The number of the gate in its session.
    #[n(0)]
    pub gate: OpenId,
    /// What: a decision's word, `voted` or `answered`.
    #[n(1)]
    pub what: String,
    /// The name that they decided under.
    #[n(2)]
    pub by: String,
    /// When.
    #[n(3)]
    pub at: Time,
}

/// How long what has ended is kept, for one definition or for all that have no rule of their own. What is absent is as
/// the rule for all says, and there: for good.
#[derive(Debug, Clone, PartialEq, Eq, Default, Encode, Decode, CborLen)]
pub struct RetentionRule {
    /// The definition; empty for all.
    #[n(0)]
    pub definition: String,
    /// Sessions after their end, milliseconds.
    #[n(1)]
    pub sessions_ms: Option<u64>,
    /// Their history, milliseconds after their end.
    #[n(2)]
    pub history_ms: Option<u64>,
    /// What remains of expired sessions: who decided what; milliseconds after their end.
    #[n(3)]
    pub decisions_ms: Option<u64>,
    /// Mail in quarantine, milliseconds after it came; of the rule for all alone.
    #[n(4)]
    pub quarantine_ms: Option<u64>,
}

/// The rules of a tenant, ordered by definition.
#[derive(Debug, Clone, PartialEq, Eq, Default, Encode, Decode, CborLen)]
pub struct Retention {
    /// Each definition once.
    #[n(0)]
    pub rules: Vec<RetentionRule>,
}

impl Retention {
    /// Stands for the rules as they are now: 16 hexadecimal digits, others after every change.
    #[must_use]
    pub fn etag(&self) -> String {
        crate::catalogue::etag(self)
    }

    /// The rules as they are stored: by definition.
    #[must_use]
    pub fn in_order(mut self) -> Self {
        self.rules.sort_by(|one, other| one.definition.cmp(&other.definition));
        self
    }

    /// How long mail in quarantine is kept, milliseconds; `None` if no rule says.
    #[must_use]
    pub fn quarantine_ms(&self) -> Option<u64> {
        self.rules.iter().find_map(|rule| rule.quarantine_ms)
    }

    /// What holds for the definition whose entries of an index begin with this mark.
    #[must_use]
    pub fn of(&self, mark: [u8; 8]) -> RetentionRule {
        let find = |wanted: &dyn Fn(&RetentionRule) -> bool| self.rules.iter().find(|rule| wanted(rule));
        let all = find(&|rule| rule.definition.is_empty()).cloned().unwrap_or_default();
        let own = find(&|rule| !rule.definition.is_empty() && crate::mark(&rule.definition) == mark);
        let Some(own) = own.cloned() else { return all };
        RetentionRule {
            sessions_ms: own.sessions_ms.or(all.sessions_ms),
            history_ms: own.history_ms.or(all.history_ms),
            decisions_ms: own.decisions_ms.or(all.decisions_ms),
            quarantine_ms: all.quarantine_ms,
            definition: own.definition,
        }
    }
}
