//! Queries about gates, and about the mails and pages on which people decide them.

use minicbor::{CborLen, Decode, Encode};
use switchward_engine::{Comment, GateView, SessionView, comments, gate_view, session_view};
use switchward_machine::{GateKind, OpenId, SessionId, TenantId};
use switchward_shard::StateView;
use switchward_state::approval::{MailKey, MailToken, TokenUse};
use switchward_state::catalogue::Tenancy;
use switchward_state::session::Session;
use switchward_state::{IndexKey, Key, ReadRows as _, SharedRow, View, ViewError};

use crate::ask::{Ask, Evaluate, Source};
use crate::list::List;

/// A query about gates.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum ApprovalQuery {
    /// A gate, open or closed.
    #[n(0)]
    Get(#[n(0)] GetGate),
    /// A gate with its session and its comments.
    #[n(1)]
    Show(#[n(0)] ShowGate),
    /// The open gates of a tenant.
    #[n(2)]
    List(#[n(0)] ListGates),
    /// The gate of a decision page.
    #[n(3)]
    Linked(#[n(0)] FindLinkedGate),
    /// Whether a mail token was made for a person.
    #[n(4)]
    MailToken(#[n(0)] CheckMailToken),
}

/// A gate of a session. Answers `None` if it does not exist, or its session is hidden.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct GetGate {
    /// The tenant that owns the session.
    #[n(0)]
    pub tenant: TenantId,
    /// The session that the gate is of.
    #[n(1)]
    pub session: SessionId,
    /// The gate's number in the session.
    #[n(2)]
    pub gate: OpenId,
}

impl Evaluate for GetGate {
    type Answer = Option<GateView>;

    fn evaluate(&self, rows: &StateView) -> Result<Self::Answer, ViewError> {
        rows.consistent(|rows| gate_view(rows, self.tenant, self.session, self.gate))
    }
}

impl Ask for GetGate {
    fn source(&self) -> Source {
        Source::session(self.session)
    }
}

/// A gate with all that is shown of it. Answers `None` if it or its session does not exist, or is hidden.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct ShowGate {
    /// The tenant that owns the session.
    #[n(0)]
    pub tenant: TenantId,
    /// The session that the gate is of.
    #[n(1)]
    pub session: SessionId,
    /// The gate's number in the session.
    #[n(2)]
    pub gate: OpenId,
}

/// A gate with its session.
#[derive(Debug, Clone, Encode, Decode)]
pub struct GateShown {
    /// The session that the gate is of.
    #[n(0)]
    pub session: SessionView,
    /// The gate's number in it.
    #[n(1)]
    pub id: OpenId,
    /// What is or was open.
    #[n(2)]
    pub gate: GateView,
    /// The comments on it, oldest first; a list of gates has none.
    #[n(3)]
    pub comments: Vec<Comment>,
}

impl GateShown {
    fn of(
        rows: &dyn View,
        tenant: TenantId,
        session: SessionId,
        id: OpenId,
    ) -> Result<Option<Self>, ViewError> {
        let Some(of) = session_view(rows, tenant, session)? else { return Ok(None) };
        let gate = gate_view(rows, tenant, session, id)?;
        Ok(gate.map(|gate| Self { session: of, id, gate, comments: Vec::new() }))
    }
}

impl Evaluate for ShowGate {
    type Answer = Option<GateShown>;

    fn evaluate(&self, rows: &StateView) -> Result<Self::Answer, ViewError> {
        rows.consistent(|rows| {
            let shown = GateShown::of(rows, self.tenant, self.session, self.gate)?;
            let Some(shown) = shown else { return Ok(None) };
            let comments = comments(rows, self.tenant, self.session, self.gate)?;
            Ok(Some(GateShown { comments, ..shown }))
        })
    }
}

impl Ask for ShowGate {
    fn source(&self) -> Source {
        Source::session(self.session)
    }
}

/// The open gates of a tenant, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct ListGates {
    /// The tenant whose gates are listed.
    #[n(0)]
    pub tenant: TenantId,
    /// Only gates of this kind.
    #[n(1)]
    pub kind: Option<GateKind>,
    /// Only gates of this session.
    #[n(2)]
    pub session: Option<SessionId>,
}

impl List for ListGates {
    type Item = GateShown;

    fn prefix(&self) -> Vec<u8> {
        IndexKey::gates(self.tenant)
    }

    fn pick(&self, rows: &StateView, entry: &Key) -> Result<Option<GateShown>, ViewError> {
        let Some((session, gate)) = IndexKey::gate_of(entry) else { return Ok(None) };
        if self.session.is_some_and(|wanted| wanted != session) {
            return Ok(None);
        }
        // Its session and the other rows are read only if it is shown.
        if let Some(wanted) = self.kind {
            let open = rows.gate(self.tenant, session, gate)?;
            if open.is_none_or(|open| open.body.kind != wanted) {
                return Ok(None);
            }
        }
        let shown = rows.consistent(|rows| GateShown::of(rows, self.tenant, session, gate))?;
        Ok(shown.filter(|shown| matches!(shown.gate, GateView::Open(..))))
    }
}

/// The gate that the link of a decision page leads to. Answers `None` if there is none.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct FindLinkedGate {
    /// The link's token. Whether it was made is not looked at.
    #[n(0)]
    pub token: MailToken,
}

/// A gate that a link leads to, with all that its page needs.
#[derive(Debug, Clone, Encode, Decode)]
pub struct LinkedGate {
    /// What the shard knows of the tenant.
    #[n(0)]
    pub tenancy: SharedRow<Tenancy>,
    /// The gate's session.
    #[n(1)]
    pub session: SharedRow<Session>,
    /// What is or was open at the gate.
    #[n(2)]
    pub gate: GateView,
    /// The comments on it, oldest first.
    #[n(3)]
    pub comments: Vec<Comment>,
}

impl Evaluate for FindLinkedGate {
    type Answer = Option<LinkedGate>;

    fn evaluate(&self, view: &StateView) -> Result<Self::Answer, ViewError> {
        let (tenant, id, gate) = (self.token.tenant, self.token.session, self.token.about);
        let Some(tenancy) = view.tenancy_at(&Key::tenancy(tenant))? else { return Ok(None) };
        let found = view.consistent(|rows| {
            let Some(session) = rows.session(tenant, id)? else { return Ok(None) };
            let found = gate_view(rows, tenant, id, gate)?;
            let comments = comments(rows, tenant, id, gate)?;
            Ok(found.map(|gate| (session, gate, comments)))
        })?;
        let Some((session, gate, comments)) = found else { return Ok(None) };
        Ok(Some(LinkedGate { tenancy, session, gate, comments }))
    }
}

impl Ask for FindLinkedGate {
    fn source(&self) -> Source {
        Source::session(self.token.session)
    }
}

/// What is known about the sender of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum Origin {
    /// It was made for them, or for somebody else at a gate that asks them as well.
    #[n(0)]
    Recipient,
    /// It was made for somebody else, or for nobody.
    #[n(1)]
    Unknown,
}

/// Whether a mail token was made for the person with this address, or for others at a gate that asks this person too.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct CheckMailToken {
    /// The token that the sender used; it names the session and the gate.
    #[n(0)]
    pub token: MailToken,
    /// The address of the person.
    #[n(1)]
    pub from: String,
}

impl Evaluate for CheckMailToken {
    type Answer = Origin;

    fn evaluate(&self, view: &StateView) -> Result<Self::Answer, ViewError> {
        let (token, from) = (&self.token, self.from.as_str());
        let tenancy = view.tenancy_at(&Key::tenancy(token.tenant))?;
        let Some(tenancy) = tenancy else { return Ok(Origin::Unknown) };
        let keys = tenancy.mail_keys(view.ring(), token.tenant);
        if made(&keys, token, from) {
            return Ok(Origin::Recipient);
        }
        let gate = view.consistent(|rows| gate_view(rows, token.tenant, token.session, token.about))?;
        let Some(gate) = gate else { return Ok(Origin::Unknown) };
        let to = gate.open().body.asked.as_ref().map(|asked| asked.to.as_slice()).unwrap_or_default();
        let asked = to.iter().any(|one| one.eq_ignore_ascii_case(from));
        let known = asked && to.iter().any(|one| made(&keys, token, one));
        Ok(if known { Origin::Recipient } else { Origin::Unknown })
    }
}

impl Ask for CheckMailToken {
    fn source(&self) -> Source {
        Source::session(self.token.session)
    }
}

fn made(keys: &[MailKey], token: &MailToken, person: &str) -> bool {
    keys.iter().any(|key| key.made(token, TokenUse::Reply, person))
}
