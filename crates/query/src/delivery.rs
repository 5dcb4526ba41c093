//! Queries about what goes out, and about the sources of webhooks.

use minicbor::{CborLen, Decode, Encode};
use switchward_engine::{EffectView, Missed, Republished, effect_view, missed};
use switchward_machine::{SessionId, TenantId, Time};
use switchward_shard::StateView;
use switchward_state::catalogue::Tenant;
use switchward_state::delivery::{EffectKind, EffectStatus, Endpoint, WebhookSource};
use switchward_state::{IndexKey, Key, Kind, ReadRows as _, SharedRow, ViewError};

use crate::ask::{Ask, AskStale, Evaluate, Source};
use crate::list::{Bounds, List, Rows};

/// A query about what goes out, and about the sources of webhooks.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum DeliveryQuery {
    /// An effect that has not arrived.
    #[n(0)]
    Effect(#[n(0)] GetEffect),
    /// The undelivered effects of a tenant.
    #[n(1)]
    ListEffects(#[n(0)] ListEffects),
    /// The sessions in which something has happened.
    #[n(2)]
    ListChanged(#[n(0)] ListChanged),
    /// The messages that an endpoint has missed.
    #[n(3)]
    Missed(#[n(0)] Box<GetMissed>),
    /// A webhook source by its name.
    #[n(4)]
    Source(#[n(0)] GetWebhookSource),
    /// The webhook sources of a tenant.
    #[n(5)]
    ListSources(#[n(0)] ListWebhookSources),
    /// The webhook source at a path.
    #[n(6)]
    FindSource(#[n(0)] FindWebhookSource),
}

/// An effect that has not arrived. Answers `None` if it has arrived or never was.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct GetEffect {
    /// The tenant that owns the session.
    #[n(0)]
    pub tenant: TenantId,
    /// The session that the effect is of.
    #[n(1)]
    pub session: SessionId,
    /// The effect's number there.
    #[n(2)]
    pub number: u64,
}

impl Evaluate for GetEffect {
    type Answer = Option<EffectView>;

    fn evaluate(&self, rows: &StateView) -> Result<Self::Answer, ViewError> {
        rows.consistent(|rows| effect_view(rows, self.tenant, self.session, self.number))
    }
}

impl Ask for GetEffect {
    fn source(&self) -> Source {
        Source::session(self.session)
    }
}

/// The undelivered effects of a tenant, dead letters first, each sort oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct ListEffects {
    /// The tenant whose effects are listed.
    #[n(0)]
    pub tenant: TenantId,
    /// Only effects of this status.
    #[n(1)]
    pub status: Option<EffectStatus>,
    /// Only effects of this kind.
    #[n(2)]
    pub kind: Option<EffectKind>,
    /// Only effects of this session.
    #[n(3)]
    pub session: Option<SessionId>,
}

/// An effect with its session.
#[derive(Debug, Clone, Encode, Decode)]
pub struct EffectShown {
    /// The session that the effect is of.
    #[n(0)]
    pub session: SessionId,
    /// The effect, with the name of the node that caused it.
    #[n(1)]
    pub effect: EffectView,
}

impl List for ListEffects {
    type Item = EffectShown;

    fn prefix(&self) -> Vec<u8> {
        IndexKey::effects(self.tenant, self.status)
    }

    fn pick(&self, rows: &StateView, entry: &Key) -> Result<Option<EffectShown>, ViewError> {
        let Some((session, number)) = IndexKey::effect_of(entry) else { return Ok(None) };
        if self.session.is_some_and(|wanted| wanted != session) {
            return Ok(None);
        }
        // Its session and the other rows are read only if it is shown.
        if let Some(wanted) = self.kind {
            let row = rows.outbox_at(&Key::outbox(self.tenant, session, number))?;
            if row.is_none_or(|effect| EffectKind::of(&effect.body) != Some(wanted)) {
                return Ok(None);
            }
        }
        let found = rows.consistent(|rows| effect_view(rows, self.tenant, session, number))?;
        Ok(found.map(|effect| EffectShown { session, effect }))
    }
}

/// The sessions of a tenant in which something has happened since a time, those that began last first.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct ListChanged {
    /// The tenant whose sessions are listed.
    #[n(0)]
    pub tenant: TenantId,
    /// Only sessions that were updated at this time or later.
    #[n(1)]
    pub since: Time,
}

impl List for ListChanged {
    type Item = SessionId;

    fn prefix(&self) -> Vec<u8> {
        IndexKey::sessions(self.tenant)
    }

    fn pick(&self, rows: &StateView, entry: &Key) -> Result<Option<SessionId>, ViewError> {
        let Some(id) = IndexKey::session_of(entry) else { return Ok(None) };
        let session = rows.session(self.tenant, id)?;
        Ok(session.filter(|session| session.updated >= self.since).map(|_| id))
    }
}

/// What an endpoint has missed of what happened in a session. Answers `None` if the session does not exist.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct GetMissed {
    /// The tenant that owns the session and the endpoint.
    #[n(0)]
    pub tenant: TenantId,
    /// The session whose history is read.
    #[n(1)]
    pub session: SessionId,
    /// The endpoint with its subscription; other events are left out.
    #[n(2)]
    pub endpoint: Endpoint,
    /// Only what has happened since this time.
    #[n(3)]
    pub since: Time,
    /// Only what has happened after this sequence.
    #[n(4)]
    pub after: u64,
    /// True: also what has arrived at the endpoint.
    #[n(5)]
    pub delivered: bool,
}

impl Evaluate for GetMissed {
    type Answer = Option<Missed>;

    fn evaluate(&self, rows: &StateView) -> Result<Self::Answer, ViewError> {
        if rows.session(self.tenant, self.session)?.is_none() {
            return Ok(None);
        }
        let GetMissed { tenant, session, ref endpoint, since, after, delivered } = *self;
        let which = if delivered { Republished::All } else { Republished::Missed };
        rows.consistent(|rows| missed(rows, tenant, session, endpoint, since, after, which)).map(Some)
    }
}

impl Ask for GetMissed {
    fn source(&self) -> Source {
        Source::session(self.session)
    }
}

/// A webhook source. Answers `None` if there is none of this name.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct GetWebhookSource {
    /// The tenant that owns the source.
    #[n(0)]
    pub tenant: TenantId,
    /// The source's name.
    #[n(1)]
    pub name: String,
}

impl Evaluate for GetWebhookSource {
    type Answer = Option<SharedRow<WebhookSource>>;

    fn evaluate(&self, rows: &StateView) -> Result<Self::Answer, ViewError> {
        rows.webhook_source_at(&Key::webhook_source(self.tenant, &self.name))
    }
}

impl Ask for GetWebhookSource {
    fn source(&self) -> Source {
        Source::Catalogue
    }
}

/// The webhook sources of a tenant, by name.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct ListWebhookSources {
    /// The tenant whose sources are listed.
    #[n(0)]
    pub tenant: TenantId,
    /// The part of the list.
    #[n(1)]
    pub bounds: Bounds,
}

impl Evaluate for ListWebhookSources {
    type Answer = Rows<WebhookSource>;

    fn evaluate(&self, rows: &StateView) -> Result<Self::Answer, ViewError> {
        let prefix = Key::prefix_of_catalogue(self.tenant, Kind::WebhookSource);
        self.bounds.rows(rows, &prefix)
    }
}

impl Ask for ListWebhookSources {
    fn source(&self) -> Source {
        Source::Catalogue
    }
}

/// The webhook source that messages at a path are for, with its tenant. Answers `None` if either does not exist, or if the
/// tenant is deleted and its rows are not removed yet.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct FindWebhookSource {
    /// The tenant's name.
    #[n(0)]
    pub tenant: String,
    /// The source's name.
    #[n(1)]
    pub name: String,
}

impl Evaluate for FindWebhookSource {
    type Answer = Option<(SharedRow<Tenant>, SharedRow<WebhookSource>)>;

    fn evaluate(&self, rows: &StateView) -> Result<Self::Answer, ViewError> {
        let tenant = rows.tenant_at(&Key::tenant(&self.tenant))?;
        let Some(tenant) = tenant.filter(|tenant| tenant.deleted.is_none()) else { return Ok(None) };
        let source = rows.webhook_source_at(&Key::webhook_source(tenant.id, &self.name))?;
        Ok(source.map(|source| (tenant, source)))
    }
}

impl Ask for FindWebhookSource {
    fn source(&self) -> Source {
        Source::Catalogue
    }
}

impl AskStale for FindWebhookSource {}
