//! Indices: keys that are derived from a row, kept beside the rows and rebuilt from them.

use minicbor::{Decode, Encode};
use switchward_machine::{Channel, Digest, OpenId, SessionId, Status, TenantId, Time, WorkKind};

use crate::catalogue::{ApiKey, Role};
use crate::delivery::{Effect, EffectBody, EffectStatus};
use crate::limits::{CALL_KEPT_MS, HOUR_MS, REQUESTS_KEPT_MS};
use crate::session::Session;
use crate::work::WorkItem;
use crate::{Key, Kind, Open, OpenItem, Row, Scope, mark};

/// Which index an entry belongs to; the byte after tenant and kind.
const BY_TIME: u8 = 1;
const BY_STATUS: u8 = 2;
const GATES: u8 = 3;
const DUE: u8 = 4;
const RELAY: u8 = 5;
const READY: u8 = 6;
const READY_OF: u8 = 7;
const DELIVERIES: u8 = 9;
const EFFECTS: u8 = 10;
const DELIVERY_JOBS: u8 = 11;
const ENDED: u8 = 16;
const HISTORIES: u8 = 17;
const REMAINS: u8 = 18;
const REMOVALS: u8 = 19;
const NUMBERED: u8 = 20;
const ADMINS: u8 = 21;

/// Bytes that stand for a destination: of an effect whether that is an endpoint, of work its kind, and four of the digest
/// of its name.
const DESTINATION_BYTES: usize = 5;

/// The tenant of entries that are the server's own business.
const NOBODY: TenantId = TenantId(0);

/// Reads and makes the keys of index entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexKey;

/// Something that falls due.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Due {
    /// When.
    #[n(0)]
    pub at: Time,
    /// The row that it is about.
    #[n(1)]
    pub key: Key,
}

/// The index entries of a row.
#[must_use]
pub fn index_keys(key: &Key, row: &Row) -> Vec<Key> {
    match row {
        Row::Session(session) => {
            let Some(id) = key.session_of() else { return Vec::new() };
            if let Some(removal) = session.removal.as_deref().filter(|it| it.under_way() && it.how.hides()) {
                return vec![due(REMOVALS, removal.at, key)];
            }
            let (tenant, newest) = (key.tenant_of(), (u64::MAX - session.created.0).to_be_bytes());
            let mut keys = vec![
                Key::index(tenant, BY_TIME, &[&newest, &id.0]),
                Key::index(tenant, BY_STATUS, &[&[session.status as u8], &newest, &id.0]),
            ];
            if let Some(ended) = session.ended.filter(|_| !session.replies.is_empty()) {
                // Each sweep is due a moment after the one before, so that it is a new entry.
                let sweeps = u64::from(session.replies.sweeps());
                keys.push(due(DUE, ended.after_ms(REQUESTS_KEPT_MS + sweeps), key));
            }
            keys.extend(kept(key, id, session));
            keys
        }
        Row::Tenant(tenant) => vec![Key::index(NOBODY, NUMBERED, &[&tenant.id.0.to_be_bytes(), key.rest()])],
        Row::ApiKey(api_key) => admin(key, api_key).into_iter().collect(),
        Row::Removed(removed) => {
            let Some(id) = key.session_of().filter(|_| removed.outlasts_its_session()) else {
                return Vec::new();
            };
            vec![lasting(REMAINS, key.tenant_of(), &removed.definition, removed.ended, id)]
        }
        Row::Grant(grant) => vec![due(DUE, grant.expires, key)],
        Row::Call(call) if call.reserved.0 > 0 => vec![due(DUE, call.at.after_ms(CALL_KEPT_MS), key)],
        Row::Ledger(ledger) => ledger.lapses().map(|at| due(DUE, at, key)).into_iter().collect(),
        Row::Recorded(until) => vec![due(DUE, *until, key)],
        Row::Request(request) => vec![due(DUE, request.at.after_ms(REQUESTS_KEPT_MS), key)],
        Row::Outbox(effect) => effects(key, effect),
        Row::OpenItem(item) => items(key, item),
        Row::Mailed(_) => {
            let hour = key.hour_of_mailed();
            hour.map(|hour| due(DUE, hour.after_ms(2 * HOUR_MS), key)).into_iter().collect()
        }
        Row::Run(_)
        | Row::Data(_)
        | Row::LastMessage(_)
        | Row::Usage(_)
        | Row::Slot(_)
        | Row::Closed(_)
        | Row::Call(_)
        | Row::History(_)
        | Row::Reply(_)
        | Row::Machine(_)
        | Row::Definition(_)
        | Row::Version(_)
        | Row::Assistant(_)
        | Row::Tenancy(_)
        | Row::TenantChange(_)
        | Row::WebhookSource(_)
        | Row::Server(_)
        | Row::ClusterMap(_)
        | Row::Clock(_)
        | Row::Level(_)
        | Row::Index
        | Row::LastTenant(_)
        | Row::Source(_) => Vec::new(),
    }
}

/// Whether the row of a key may stand in an index, or may have stood there before.
#[must_use]
pub fn may_be_indexed(key: &Key) -> bool {
    let kinds = [
        Kind::Session,
        Kind::OpenItem,
        Kind::Grant,
        Kind::Call,
        Kind::Ledger,
        Kind::Outbox,
        Kind::Request,
        Kind::Recorded,
        Kind::Removed,
        Kind::Tenant,
        Kind::ApiKey,
        Kind::Mailed,
    ];
    kinds.into_iter().any(|kind| key.is(kind))
}

/// The session's entries among what has ended and is kept, and among removals that are under way.
fn kept(key: &Key, id: SessionId, session: &Session) -> Vec<Key> {
    let (mut keys, tenant) = (Vec::new(), key.tenant_of());
    if let Some(removal) = session.removal.as_deref().filter(|removal| removal.under_way()) {
        keys.push(due(REMOVALS, removal.at, key));
    }
    if let Some(ended) = session.ended {
        keys.push(lasting(ENDED, tenant, &session.definition, ended, id));
        if session.removal.is_none() {
            keys.push(lasting(HISTORIES, tenant, &session.definition, ended, id));
        }
    }
    keys
}

/// The entry of an admin's key that is not revoked, among those of its tenant: the key that works longest comes first.
fn admin(key: &Key, api_key: &ApiKey) -> Option<Key> {
    let is_admin = api_key.role == Role::Admin && api_key.revoked.is_none();
    let last = u64::MAX - api_key.expires.map_or(u64::MAX, |expires| expires.0);
    let tenant = api_key.tenant.0.to_be_bytes();
    is_admin.then(|| Key::index(NOBODY, ADMINS, &[&tenant, &last.to_be_bytes(), key.rest()]))
}

/// What is kept for a time after this one, beside the rest of its definition.
fn lasting(index: u8, tenant: TenantId, definition: &str, ended: Time, id: SessionId) -> Key {
    Key::index(tenant, index, &[&mark(definition), &ended.0.to_be_bytes(), &id.0])
}

/// When an open item falls due, and its entry among the gates or the work that nobody has.
fn items(key: &Key, item: &OpenItem) -> Vec<Key> {
    let mut keys: Vec<Key> = item.due().map(|at| due(DUE, at, key)).into_iter().collect();
    let (tenant, at) = (key.tenant_of(), item.head().at.0.to_be_bytes());
    match item {
        OpenItem::Gate(_) => keys.push(Key::index(tenant, GATES, &[&at, key.rest()])),
        OpenItem::Work(Open { body, .. }) if body.owed.lease.is_none() => keys.extend(ready(key, at, body)),
        OpenItem::Work(_) | OpenItem::Wait(_) | OpenItem::Timer(_) => {}
    }
    keys
}

/// The entries of work that nobody has, open since then.
fn ready(key: &Key, at: [u8; 8], WorkItem { kind, owed }: &WorkItem) -> Vec<Key> {
    let (tenant, kinds) = (key.tenant_of(), [*kind as u8]);
    let mut keys = vec![
        Key::index(tenant, READY, &[&kinds, &at, key.rest()]),
        Key::index(tenant, READY_OF, &[&kinds, &mark(&owed.queue), &at, key.rest()]),
    ];
    if kind.is_delivery_job() {
        let destination = destination(*kind as u8, &owed.destination());
        let parts: [&[u8]; 4] = [&tenant.0.to_be_bytes(), &destination, &at, key.as_bytes()];
        keys.push(Key::index(NOBODY, DELIVERY_JOBS, &parts));
    }
    keys
}

/// An effect's entries: among what the server carries itself or what goes out, while it is on its way, and in the list of
/// its tenant.
fn effects(key: &Key, effect: &Effect) -> Vec<Key> {
    if effect.body.inner() {
        return vec![due(RELAY, effect.deliver_at, key)];
    }
    let (dead, at) = (effect.dead_letter().is_some(), effect.deliver_at.0.to_be_bytes());
    let status = status_byte(if dead { EffectStatus::DeadLetter } else { EffectStatus::Pending });
    let listed = Key::index(key.tenant_of(), EFFECTS, &[&[status], &at, key.rest()]);
    let tenant = key.tenant_of().0.to_be_bytes();
    // A message in the conversation itself, and a notice for which nobody was found, have no destination.
    let stays =
        matches!(effect.body, EffectBody::Message { channel: Channel::Chat, .. } | EffectBody::Notice { .. });
    let goes = (!dead && !stays).then(|| {
        let destination = destination(u8::from(effect.body.published()), &effect.body.destination());
        Key::index(NOBODY, DELIVERIES, &[&tenant, &destination, &at, key.as_bytes()])
    });
    [listed].into_iter().chain(goes).collect()
}

/// How an entry of the effects of a tenant begins: dead letters come first.
fn status_byte(status: EffectStatus) -> u8 {
    match status {
        EffectStatus::DeadLetter => 1,
        EffectStatus::Pending => 2,
    }
}

/// Stands for a destination of this sort: an effect never waits behind those of another one. Destinations whose digests
/// collide share a queue.
fn destination(sort: u8, name: &str) -> [u8; DESTINATION_BYTES] {
    let mut destination = [sort; DESTINATION_BYTES];
    destination[1..].copy_from_slice(&Digest::of(name.as_bytes()).0[..DESTINATION_BYTES - 1]);
    destination
}

fn due(index: u8, at: Time, key: &Key) -> Key {
    Key::index(NOBODY, index, &[&at.0.to_be_bytes(), key.as_bytes()])
}

impl IndexKey {
    /// All sessions of a tenant, newest first: the common beginning of the entries.
    #[must_use]
    pub fn sessions(tenant: TenantId) -> Vec<u8> {
        Key::index(tenant, BY_TIME, &[]).as_bytes().to_vec()
    }

    /// The sessions of a tenant in this status, newest first.
    #[must_use]
    pub fn sessions_in(tenant: TenantId, status: Status) -> Vec<u8> {
        Key::index(tenant, BY_STATUS, &[&[status as u8]]).as_bytes().to_vec()
    }

    /// The open gates of a tenant, oldest first.
    #[must_use]
    pub fn gates(tenant: TenantId) -> Vec<u8> {
        Key::index(tenant, GATES, &[]).as_bytes().to_vec()
    }

    /// What falls due in this shard, earliest first.
    #[must_use]
    pub fn due() -> Vec<u8> {
        Key::index(NOBODY, DUE, &[]).as_bytes().to_vec()
    }

    /// The effects that the server itself carries, earliest first.
    #[must_use]
    pub fn relay() -> Vec<u8> {
        Key::index(NOBODY, RELAY, &[]).as_bytes().to_vec()
    }

    /// The effects of all tenants that are to go out and are no dead letters: by tenant, then by destination, the
    /// earliest first.
    #[must_use]
    pub fn deliveries() -> Vec<u8> {
        Key::index(NOBODY, DELIVERIES, &[]).as_bytes().to_vec()
    }

    /// The work of all tenants that nobody has and the server may do by itself: by tenant, then by kind and destination,
    /// the oldest first.
    #[must_use]
    pub fn delivery_jobs() -> Vec<u8> {
        Key::index(NOBODY, DELIVERY_JOBS, &[]).as_bytes().to_vec()
    }

    /// The sessions of a tenant that have ended: one definition after the other, of each the earliest first.
    #[must_use]
    pub fn ended(tenant: TenantId) -> Vec<u8> {
        Key::index(tenant, ENDED, &[]).as_bytes().to_vec()
    }

    /// Those of them whose history is whole.
    #[must_use]
    pub fn histories(tenant: TenantId) -> Vec<u8> {
        Key::index(tenant, HISTORIES, &[]).as_bytes().to_vec()
    }

    /// What remains of expired sessions, in the same order.
    #[must_use]
    pub fn remains(tenant: TenantId) -> Vec<u8> {
        Key::index(tenant, REMAINS, &[]).as_bytes().to_vec()
    }

    /// The sessions of all tenants whose removal is under way, the earliest first.
    #[must_use]
    pub fn removals() -> Vec<u8> {
        Key::index(NOBODY, REMOVALS, &[]).as_bytes().to_vec()
    }

    /// The tenant of a number: its entry ends with the name.
    #[must_use]
    pub fn numbered(tenant: TenantId) -> Vec<u8> {
        Key::index(NOBODY, NUMBERED, &[&tenant.0.to_be_bytes()]).as_bytes().to_vec()
    }

    /// The admin keys of a tenant that are not revoked, the one that works longest first.
    #[must_use]
    pub fn admins(tenant: TenantId) -> Vec<u8> {
        Key::index(NOBODY, ADMINS, &[&tenant.0.to_be_bytes()]).as_bytes().to_vec()
    }

    /// The key's id of an entry of [`IndexKey::admins`].
    #[must_use]
    pub fn admin_of(entry: &Key) -> Option<&str> {
        std::str::from_utf8(entry.rest().get(13..)?).ok()
    }

    /// The definition's mark, the end and the session of an entry of [`IndexKey::ended`], [`IndexKey::histories`] or
    /// [`IndexKey::remains`].
    #[must_use]
    pub fn lasting_of(entry: &Key) -> Option<([u8; 8], Time, SessionId)> {
        let rest = entry.rest();
        let mark = rest.get(1..9)?.try_into().ok()?;
        let ended = Time(u64::from_be_bytes(rest.get(9..17)?.try_into().ok()?));
        Some((mark, ended, SessionId(rest.get(17..33)?.try_into().ok()?)))
    }

    /// Stands in such an index behind all of a definition that ended no later than this, or behind all of it.
    #[must_use]
    pub fn behind_lasting(index: &[u8], mark: [u8; 8], ended: Option<Time>) -> Vec<u8> {
        let time = ended.map_or([u8::MAX; 8], |ended| ended.0.to_be_bytes());
        [index, &mark, &time, &[u8::MAX; 17]].concat()
    }

    /// The entries with the same destination as this entry of [`IndexKey::deliveries`] or [`IndexKey::delivery_jobs`].
    #[must_use]
    pub fn destination(entry: &Key) -> Vec<u8> {
        let bytes = entry.as_bytes();
        let end = bytes.len() - entry.rest().len() + 5 + DESTINATION_BYTES;
        bytes.get(..end).unwrap_or(bytes).to_vec()
    }

    /// The tenant of an entry of [`IndexKey::deliveries`] or [`IndexKey::delivery_jobs`].
    #[must_use]
    pub fn tenant_of_queued(entry: &Key) -> Option<TenantId> {
        Some(TenantId(u32::from_be_bytes(entry.rest().get(1..5)?.try_into().ok()?)))
    }

    /// Stands before what of it is due, or open, at this time or later, and behind the rest.
    #[must_use]
    pub fn destination_from(entry: &Key, at: Time) -> Vec<u8> {
        [Self::destination(entry).as_slice(), &at.0.to_be_bytes()].concat()
    }

    /// Stands in the index behind all of it, and before what goes elsewhere.
    #[must_use]
    pub fn behind_destination(entry: &Key) -> Vec<u8> {
        [Self::destination(entry).as_slice(), &[u8::MAX; 64]].concat()
    }

    /// Whether an entry of [`IndexKey::deliveries`] is of a message to an endpoint.
    #[must_use]
    pub fn is_published(entry: &Key) -> bool {
        entry.rest().get(5).is_some_and(|mark| *mark != 0)
    }

    /// Of what kind the work of an entry of [`IndexKey::delivery_jobs`] is.
    #[must_use]
    pub fn job_kind(entry: &Key) -> Option<WorkKind> {
        let kind = entry.rest().get(5)?;
        WorkKind::ALL.into_iter().find(|known| *known as u8 == *kind)
    }

    /// What an entry of [`IndexKey::deliveries`] or [`IndexKey::delivery_jobs`] is about, and when it is due or since
    /// when it is open.
    #[must_use]
    pub fn queued_of(entry: &Key) -> Option<Due> {
        let rest = entry.rest();
        let (at, key) = (5 + DESTINATION_BYTES, 13 + DESTINATION_BYTES);
        let time = Time(u64::from_be_bytes(rest.get(at..key)?.try_into().ok()?));
        Some(Due { at: time, key: Key::from_bytes(rest.get(key..)?)? })
    }

    /// The effects of a tenant that have not gone out, dead letters first, each kind oldest first; or one kind alone.
    #[must_use]
    pub fn effects(tenant: TenantId, status: Option<EffectStatus>) -> Vec<u8> {
        let status = status.map(status_byte);
        Key::index(tenant, EFFECTS, &[status.as_slice()]).as_bytes().to_vec()
    }

    /// Decodes an entry of [`IndexKey::effects`]; `None` if it is too short.
    #[must_use]
    pub fn effect_of(entry: &Key) -> Option<(SessionId, u64)> {
        let from = entry.as_bytes().len().checked_sub(24)?;
        Self::work_of(entry.as_bytes().get(from..)?).map(|(session, number)| (session, number.0))
    }

    /// Decodes an entry of [`IndexKey::sessions`] or [`IndexKey::sessions_in`]; `None` if it is too short.
    #[must_use]
    pub fn session_of(entry: &Key) -> Option<SessionId> {
        let bytes = entry.as_bytes();
        let mut id = [0u8; 16];
        id.copy_from_slice(bytes.get(bytes.len().checked_sub(16)?..)?);
        Some(SessionId(id))
    }

    /// Decodes an entry of [`IndexKey::gates`]; `None` if it is too short.
    #[must_use]
    pub fn gate_of(entry: &Key) -> Option<(SessionId, OpenId)> {
        let rest = entry.rest().get(9..)?;
        let mut id = [0u8; 16];
        id.copy_from_slice(rest.get(..16)?);
        Some((SessionId(id), OpenId(u64::from_be_bytes(rest.get(16..24)?.try_into().ok()?))))
    }

    /// The work of a tenant that nobody has, oldest first: of this kind, and of this queue alone if one is named.
    #[must_use]
    pub fn ready(tenant: TenantId, kind: WorkKind, of: Option<&str>) -> Vec<u8> {
        let kind = [kind as u8];
        let key = match of {
            None => Key::index(tenant, READY, &[&kind]),
            Some(name) => Key::index(tenant, READY_OF, &[&kind, &mark(name)]),
        };
        key.as_bytes().to_vec()
    }

    /// The work of an entry of [`IndexKey::ready`], and since when it is open.
    #[must_use]
    pub fn ready_of(entry: &Key) -> Option<(Time, SessionId, OpenId)> {
        let from = entry.as_bytes().len().checked_sub(32)?;
        let rest = entry.as_bytes().get(from..)?;
        let at = Time(u64::from_be_bytes(rest.get(..8)?.try_into().ok()?));
        let (session, item) = Self::work_of(rest.get(8..)?)?;
        Some((at, session, item))
    }

    /// The work of an entry of [`IndexKey::delivery_jobs`], with its tenant.
    #[must_use]
    pub fn job_of(entry: &Key) -> Option<(TenantId, SessionId, OpenId)> {
        let tenant = TenantId(u32::from_be_bytes(entry.rest().get(1..5)?.try_into().ok()?));
        let from = entry.as_bytes().len().checked_sub(24)?;
        let (session, item) = Self::work_of(entry.as_bytes().get(from..)?)?;
        Some((tenant, session, item))
    }

    fn work_of(bytes: &[u8]) -> Option<(SessionId, OpenId)> {
        let mut id = [0u8; 16];
        id.copy_from_slice(bytes.get(..16)?);
        Some((SessionId(id), OpenId(u64::from_be_bytes(bytes.get(16..24)?.try_into().ok()?))))
    }

    /// What an entry of [`IndexKey::due`], [`IndexKey::relay`] or [`IndexKey::removals`] is about.
    #[must_use]
    pub fn due_of(entry: &Key) -> Option<Due> {
        let rest = entry.rest();
        let at = Time(u64::from_be_bytes(rest.get(1..9)?.try_into().ok()?));
        Some(Due { at, key: Key::from_bytes(rest.get(9..)?)? })
    }
}

impl Due {
    /// What the sweeper must address to look at it.
    #[must_use]
    pub fn scope(&self) -> Scope {
        match self.key.session_of() {
            Some(id)
                if [Kind::Session, Kind::Grant, Kind::Call, Kind::OpenItem]
                    .into_iter()
                    .any(|kind| self.key.is(kind)) =>
            {
                Scope::Session(id)
            }
            Some(_) | None => Scope::Shard,
        }
    }
}
