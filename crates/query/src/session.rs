//! Queries about sessions.

use minicbor::{CborLen, Decode, Encode};
use switchward_engine::{GateView, RunView, SessionView, answered, gate_view, run_views, session_view};
use switchward_machine::{OpenId, SessionId, Status, TenantId, Time};
use switchward_shard::StateView;
use switchward_state::session::{Removing, ReplyToken, Session};
use switchward_state::{Answered, IndexKey, Key, ReadRows as _, RequestId, Scope, View, ViewError};

use crate::ask::{Ask, Evaluate, Source};
use crate::history::{GetHistory, GetHistoryBefore, GetMachines};
use crate::list::{Compared, List};

/// A query about sessions.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum SessionQuery {
    /// A session without its gates and its runs.
    #[n(0)]
    Get(#[n(0)] GetSession),
    /// A session, its gates and its runs.
    #[n(1)]
    Show(#[n(0)] ShowSession),
    /// The sessions of a tenant.
    #[n(2)]
    List(#[n(0)] ListSessions),
    /// What a request was answered with.
    #[n(3)]
    Answered(#[n(0)] GetAnswered),
    /// Whether a reply token was made for its session.
    #[n(4)]
    ReplyToken(#[n(0)] CheckReplyToken),
    /// Whether a session was removed after a mail had come in.
    #[n(5)]
    Removed(#[n(0)] CheckRemoved),
    /// Rows of a history, forwards.
    #[n(6)]
    History(#[n(0)] GetHistory),
    /// Rows of a history, backwards.
    #[n(7)]
    HistoryBefore(#[n(0)] GetHistoryBefore),
    /// The machines of runs.
    #[n(8)]
    Machines(#[n(0)] GetMachines),
    /// The sessions that are pinned to a definition.
    #[n(9)]
    ListPinned(#[n(0)] ListPinned),
}

/// A session of a tenant. Answers `None` if it does not exist, or is hidden.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct GetSession {
    /// The tenant that owns the session.
    #[n(0)]
    pub tenant: TenantId,
    /// The session's id; a business key was translated before.
    #[n(1)]
    pub session: SessionId,
}

impl Evaluate for GetSession {
    type Answer = Option<SessionView>;

    fn evaluate(&self, rows: &StateView) -> Result<Self::Answer, ViewError> {
        rows.consistent(|rows| session_view(rows, self.tenant, self.session))
    }
}

impl Ask for GetSession {
    fn source(&self) -> Source {
        Source::session(self.session)
    }
}

/// A session with all that is shown of it. Answers `None` if it does not exist, or is hidden.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct ShowSession {
    /// The tenant that owns the session.
    #[n(0)]
    pub tenant: TenantId,
    /// The session's id; a business key was translated before.
    #[n(1)]
    pub session: SessionId,
}

/// A session with its open gates and its runs.
#[derive(Debug, Clone, Encode, Decode)]
pub struct SessionShown {
    /// The session's rows, with its root run.
    #[n(0)]
    pub session: SessionView,
    /// What is open of it for people, with its numbers, oldest first.
    #[n(1)]
    pub gates: Vec<(OpenId, GateView)>,
    /// Its runs, oldest first.
    #[n(2)]
    pub runs: Vec<RunView>,
}

impl SessionShown {
    fn of(rows: &dyn View, tenant: TenantId, session: SessionView) -> Result<Self, ViewError> {
        let mut gates = Vec::new();
        for gate in session.session.gates() {
            gates.extend(gate_view(rows, tenant, session.id, gate)?.map(|view| (gate, view)));
        }
        let runs = run_views(rows, tenant, &session)?;
        Ok(Self { session, gates, runs })
    }
}

impl Evaluate for ShowSession {
    type Answer = Option<SessionShown>;

    fn evaluate(&self, rows: &StateView) -> Result<Self::Answer, ViewError> {
        rows.consistent(|rows| {
            let session = session_view(rows, self.tenant, self.session)?;
            session.map(|session| SessionShown::of(rows, self.tenant, session)).transpose()
        })
    }
}

impl Ask for ShowSession {
    fn source(&self) -> Source {
        Source::session(self.session)
    }
}

/// The sessions of a tenant, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct ListSessions {
    /// The tenant whose sessions are listed.
    #[n(0)]
    pub tenant: TenantId,
    /// Only sessions in this status.
    #[n(1)]
    pub status: Option<Status>,
    /// Only sessions of the definition with this name.
    #[n(2)]
    pub definition: Option<String>,
    /// Only sessions that have all of these labels, each a key and a value.
    #[n(3)]
    pub labels: Vec<(String, String)>,
    /// Only sessions whose time of creation passes all of these terms.
    #[n(4)]
    pub created: Vec<TimeTerm>,
}

/// A term of a filter about a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct TimeTerm {
    /// How the session's time compares to the term's.
    #[n(0)]
    pub compared: Compared,
    /// The term's time.
    #[n(1)]
    pub time: Time,
}

impl ListSessions {
    fn has(&self, session: &Session) -> bool {
        self.status.is_none_or(|status| session.status == status)
            && self.definition.as_ref().is_none_or(|definition| session.definition == *definition)
            && self.labels.iter().all(|label| session.labels.contains(label))
            && self.created.iter().all(|term| term.compared.holds(session.created.cmp(&term.time)))
    }
}

impl List for ListSessions {
    type Item = SessionShown;

    fn prefix(&self) -> Vec<u8> {
        match self.status {
            Some(status) => IndexKey::sessions_in(self.tenant, status),
            None => IndexKey::sessions(self.tenant),
        }
    }

    fn pick(&self, rows: &StateView, entry: &Key) -> Result<Option<SessionShown>, ViewError> {
        let Some(id) = IndexKey::session_of(entry) else { return Ok(None) };
        // The filter needs one row of the session only; its data and the other rows are read only if it is shown.
        let row = rows.session(self.tenant, id)?;
        if !row.is_some_and(|row| self.has(&row)) {
            return Ok(None);
        }
        rows.consistent(|rows| {
            let session = session_view(rows, self.tenant, id)?;
            let session = session.filter(|session| self.has(&session.session));
            session.map(|session| SessionShown::of(rows, self.tenant, session)).transpose()
        })
    }
}

/// The sessions of a tenant in one status that are pinned to a definition, or to a version of it, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct ListPinned {
    /// The tenant whose sessions are listed.
    #[n(0)]
    pub tenant: TenantId,
    /// Only sessions in it are listed.
    #[n(1)]
    pub status: Status,
    /// The name of the definition.
    #[n(2)]
    pub definition: String,
    /// The number of the version; `None`: any version.
    #[n(3)]
    pub version: Option<u32>,
}

impl ListPinned {
    fn is(&self, definition: &str, version: u32) -> bool {
        definition == self.definition && self.version.is_none_or(|number| number == version)
    }

    /// Whether the session is pinned to it: by what it runs, by what it may still run, or by what it calls or obeys.
    fn pins(&self, rows: &dyn View, id: SessionId, session: &Session) -> Result<bool, ViewError> {
        let mut workflows = session.workflows.iter();
        let mut callees = session.callees.iter();
        let mut policies = session.policies.iter();
        if self.is(&session.definition, session.version)
            || workflows.any(|known| self.is(&known.definition, known.version))
            || callees.any(|pinned| self.is(&pinned.callee.name, pinned.version))
            || policies.any(|pinned| self.is(&pinned.name, pinned.version))
        {
            return Ok(true);
        }
        for run in [session.root].iter().chain(&session.queue) {
            let run = rows.run(self.tenant, id, *run)?;
            if self.is(&run.definition, run.version) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl List for ListPinned {
    type Item = SessionId;

    fn prefix(&self) -> Vec<u8> {
        IndexKey::sessions_in(self.tenant, self.status)
    }

    fn pick(&self, rows: &StateView, entry: &Key) -> Result<Option<SessionId>, ViewError> {
        let Some(id) = IndexKey::session_of(entry) else { return Ok(None) };
        rows.consistent(|rows| {
            let Some(session) = rows.session(self.tenant, id)? else { return Ok(None) };
            let pins = session.removal.is_none() && self.pins(rows, id, &session)?;
            Ok(pins.then_some(id))
        })
    }
}

/// What a request was answered with. Answers `None` if its reply is not remembered.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct GetAnswered {
    /// The tenant whose command it was.
    #[n(0)]
    pub tenant: TenantId,
    /// What the command was about: a session or the catalogue.
    #[n(1)]
    pub scope: Scope,
    /// The request id, with the digest that a repetition must have.
    #[n(2)]
    pub request: RequestId,
}

impl Evaluate for GetAnswered {
    type Answer = Option<Answered>;

    fn evaluate(&self, rows: &StateView) -> Result<Self::Answer, ViewError> {
        rows.consistent(|rows| answered(rows, self.tenant, &self.scope, &self.request))
    }
}

impl Ask for GetAnswered {
    fn source(&self) -> Source {
        match self.scope {
            Scope::Session(session) => Source::session(session),
            Scope::Ledger(_) | Scope::Catalogue | Scope::Shard => Source::Catalogue,
        }
    }
}

/// Whether a reply token was made for its session under a key of this tenant.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct CheckReplyToken {
    /// The tenant whose keys are tried.
    #[n(0)]
    pub tenant: TenantId,
    /// The token, which names the session.
    #[n(1)]
    pub token: ReplyToken,
}

impl Evaluate for CheckReplyToken {
    type Answer = bool;

    fn evaluate(&self, rows: &StateView) -> Result<Self::Answer, ViewError> {
        let Some(session) = rows.session(self.tenant, self.token.session)? else { return Ok(false) };
        let named = session.reply_tenant.as_ref() == Some(&self.token.tenant);
        Ok(named && rows.mail_keys(self.tenant)?.iter().any(|key| key.made_reply(&self.token)))
    }
}

impl Ask for CheckReplyToken {
    fn source(&self) -> Source {
        Source::session(self.token.session)
    }
}

/// Whether the session that a mail of this time names was erased or deleted, or has expired. Sessions that never existed,
/// or expired without decisions, leave no trace: the answer about them is false.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct CheckRemoved {
    /// The tenant that owns or owned the session.
    #[n(0)]
    pub tenant: TenantId,
    /// The session that the mail names.
    #[n(1)]
    pub session: SessionId,
    /// When the mail came in.
    #[n(2)]
    pub came: Time,
}

impl Evaluate for CheckRemoved {
    type Answer = bool;

    fn evaluate(&self, rows: &StateView) -> Result<Self::Answer, ViewError> {
        rows.consistent(|rows| {
            let session = rows.session(self.tenant, self.session)?;
            if session.as_ref().is_some_and(|session| session.is_hidden() || session.is_erased()) {
                return Ok(true);
            }
            let removed = rows.removed_at(&Key::removed(self.tenant, self.session))?;
            let Some(removed) = removed else { return Ok(false) };
            let ended = removed.how.hides() || removed.how == Removing::Erased;
            // A session with the same key may have begun since then; what came later is mail of that one.
            Ok(ended && (session.is_none() || self.came <= removed.at))
        })
    }
}

impl Ask for CheckRemoved {
    fn source(&self) -> Source {
        Source::session(self.session)
    }
}
