//! Keys of rows. Bytes in order: bucket, tenant, kind, then what the kind needs; a scan of a prefix is a scan of a
//! session, a ledger or a tenant's index.

use smallvec::SmallVec;
use switchward_machine::{Bucket, Digest, OpenId, RunId, SessionId, TenantId, Time};

use crate::{OutboxScope, Scope};

/// The key of a row.
#[derive(PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(KeyBytes);

impl Clone for Key {
    fn clone(&self) -> Self {
        // `SmallVec` clones item by item; this copies the bytes at once.
        Self(KeyBytes::from_slice(&self.0))
    }
}

crate::wire::as_bytes!(Key, Self::as_bytes, read);

fn read(bytes: &[u8]) -> Result<Key, String> {
    let message = "the bytes are not a key";
    Key::from_bytes(bytes).ok_or_else(|| message.to_owned())
}

/// The bytes of a key. All keys but those with names in them fit without an allocation.
pub type KeyBytes = SmallVec<[u8; 48]>;

/// The kinds of row, by the byte that stands for them. Never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    /// One for each session that exists.
    Session = 1,
    /// A run of a session.
    Run = 2,
    /// A closed gate.
    Closed = 4,
    /// A permitted call that is not yet reported.
    Call = 5,
    /// What one command did to a session.
    History = 6,
    /// A reply outside of sessions, by request id.
    Request = 7,
    /// Counters of one rule of one process.
    Ledger = 8,
    /// An effect in the outbox.
    Outbox = 9,
    /// An installed machine.
    Machine = 10,
    /// An approved call that is not yet made.
    Grant = 11,
    /// One for each tenant, under its name.
    Tenant = 12,
    /// One for each credential, under its public id.
    ApiKey = 13,
    /// One for each definition, with its active version.
    Definition = 14,
    /// A version of a definition.
    Version = 15,
    /// The time of the last decision.
    Clock = 16,
    /// An entry of an index; rebuilt from the other rows.
    Index = 17,
    /// The number that the last tenant got.
    LastTenant = 18,
    /// The number of a version, by the digest of its files.
    Source = 19,
    /// An open gate, work, a wait or a timer.
    OpenItem = 20,
    /// A run's data.
    Data = 21,
    /// The user's last message in a session.
    LastMessage = 22,
    /// A child's slot in the node that it was called from.
    Slot = 26,
    /// One for each assistant, under its name.
    Assistant = 30,
    /// One for each source of webhooks, under its name.
    WebhookSource = 40,
    /// What every shard must know of a tenant.
    Tenancy = 50,
    /// What remains of a session whose data was removed.
    Removed = 60,
    /// A change of what holds for a tenant.
    TenantChange = 70,
    /// That a signed message was recorded in a session.
    Recorded = 80,
    /// Mails of an hour by what they are counted by.
    Mailed = 81,
    /// What a tenant holds in a shard.
    Usage = 82,
    /// A session's reply, by request id.
    Reply = 83,
    /// A server of the cluster.
    Server = 90,
    /// Which servers hold which group.
    ClusterMap = 91,
    /// The feature level of the last decision.
    Level = 92,
}

/// The kinds of row that a session has beside its own and what remains of it, in the order in which they are removed.
pub const REMOVED_KINDS: [Kind; 12] = [
    Kind::Outbox,
    Kind::Data,
    Kind::LastMessage,
    Kind::OpenItem,
    Kind::Slot,
    Kind::Call,
    Kind::Grant,
    Kind::Closed,
    Kind::Reply,
    Kind::Recorded,
    Kind::Run,
    Kind::History,
];

/// Above every bucket: rows that belong to a shard as a whole.
const SHARD: u16 = 0xfffe;
/// Above every bucket: rows of the catalogue.
const CATALOGUE: u16 = 0xfffd;

impl Key {
    fn start(bucket: u16, tenant: TenantId, kind: Kind) -> Self {
        let mut bytes = KeyBytes::new();
        bytes.extend_from_slice(&bucket.to_be_bytes());
        bytes.extend_from_slice(&tenant.0.to_be_bytes());
        bytes.push(kind as u8);
        Self(bytes)
    }

    fn with(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    fn of_session(tenant: TenantId, session: SessionId, kind: Kind) -> Self {
        let mut bytes = [kind as u8; 23];
        bytes[..2].copy_from_slice(&session.bucket().number().to_be_bytes());
        bytes[2..6].copy_from_slice(&tenant.0.to_be_bytes());
        bytes[7..].copy_from_slice(&session.0);
        Self(KeyBytes::from_slice(&bytes))
    }

    /// A session's own row.
    #[must_use]
    pub fn session(tenant: TenantId, session: SessionId) -> Self {
        Self::of_session(tenant, session, Kind::Session)
    }

    /// The key of a run's own row.
    #[must_use]
    pub fn run(tenant: TenantId, session: SessionId, run: RunId) -> Self {
        Self::of_session(tenant, session, Kind::Run).with(&run.0.to_be_bytes())
    }

    /// An open gate, work, a wait or a timer of a session.
    #[must_use]
    pub fn item(tenant: TenantId, session: SessionId, item: OpenId) -> Self {
        Self::of_session(tenant, session, Kind::OpenItem).with(&item.0.to_be_bytes())
    }

    /// The key of a run's data, which is one row.
    #[must_use]
    pub fn data(tenant: TenantId, session: SessionId, run: RunId) -> Self {
        Self::of_session(tenant, session, Kind::Data).with(&run.0.to_be_bytes())
    }

    /// What remains of a session.
    #[must_use]
    pub fn removed(tenant: TenantId, session: SessionId) -> Self {
        Self::of_session(tenant, session, Kind::Removed)
    }

    /// The user's last message in a session.
    #[must_use]
    pub fn last_message(tenant: TenantId, session: SessionId) -> Self {
        Self::of_session(tenant, session, Kind::LastMessage)
    }

    /// That a message of this signature was recorded in a session.
    #[must_use]
    pub fn recorded(tenant: TenantId, session: SessionId, message: [u8; 16]) -> Self {
        Self::of_session(tenant, session, Kind::Recorded).with(&message)
    }

    /// That the ledgers count a call of this name of a session. It is longer than that of a message.
    #[must_use]
    pub fn counted(tenant: TenantId, session: SessionId, call: Digest) -> Self {
        Self::of_session(tenant, session, Kind::Recorded).with(&call.0)
    }

    /// The slot of a child in an entry of a run.
    #[must_use]
    pub fn slot(tenant: TenantId, session: SessionId, run: RunId, entry: u32, index: u32) -> Self {
        let parts = [run.0, entry, index].map(u32::to_be_bytes);
        Self::of_session(tenant, session, Kind::Slot).with(parts.as_flattened())
    }

    /// A closed gate of a session.
    #[must_use]
    pub fn closed(tenant: TenantId, session: SessionId, open: OpenId) -> Self {
        Self::of_session(tenant, session, Kind::Closed).with(&open.0.to_be_bytes())
    }

    /// A permitted call of a session.
    #[must_use]
    pub fn call(tenant: TenantId, session: SessionId, number: u64) -> Self {
        Self::of_session(tenant, session, Kind::Call).with(&number.to_be_bytes())
    }

    /// The key of an approved call that is not made yet.
    #[must_use]
    pub fn grant(tenant: TenantId, session: SessionId, number: u64) -> Self {
        Self::of_session(tenant, session, Kind::Grant).with(&number.to_be_bytes())
    }

    /// What a command did, by the sequence of its first event.
    #[must_use]
    pub fn history(tenant: TenantId, session: SessionId, sequence: u64) -> Self {
        Self::of_session(tenant, session, Kind::History).with(&sequence.to_be_bytes())
    }

    /// An effect, in the outbox of a session or in the tenant's own.
    #[must_use]
    pub fn outbox(tenant: TenantId, of: impl Into<OutboxScope>, number: u64) -> Self {
        let of = of.into();
        let home = match of {
            OutboxScope::Session(session) => session.bucket().number(),
            OutboxScope::Tenant => CATALOGUE,
        };
        Self::start(home, tenant, Kind::Outbox).with(&of.id().0).with(&number.to_be_bytes())
    }

    /// A session's remembered reply, by the hash of its request id.
    #[must_use]
    pub fn reply(tenant: TenantId, session: SessionId, request: [u8; 16]) -> Self {
        Self::of_session(tenant, session, Kind::Reply).with(&request)
    }

    /// A remembered reply of a scope.
    #[must_use]
    pub fn request(tenant: TenantId, scope: &Scope, request: [u8; 16]) -> Self {
        let key = match scope {
            Scope::Session(session) => Self::of_session(tenant, *session, Kind::Reply),
            Scope::Ledger(process) => {
                let (bucket, hash) = ledger_home(tenant, process);
                Self::start(bucket.number(), tenant, Kind::Request).with(&hash)
            }
            Scope::Catalogue => Self::start(CATALOGUE, tenant, Kind::Request),
            Scope::Shard => Self::start(SHARD, tenant, Kind::Request),
        };
        key.with(&request)
    }

    /// The counters of one rule of one process.
    #[must_use]
    pub fn ledger(tenant: TenantId, process: &str, role: &str, capability: &str) -> Self {
        let (bucket, hash) = ledger_home(tenant, process);
        let rule = Digest::of_parts(&[role.as_bytes(), capability.as_bytes()]);
        Self::start(bucket.number(), tenant, Kind::Ledger).with(&hash).with(&rule.0[..16])
    }

    /// An installed machine of a shard.
    #[must_use]
    pub fn machine(tenant: TenantId, digest: Digest) -> Self {
        Self::start(SHARD, tenant, Kind::Machine).with(&digest.0)
    }

    /// The time of a shard's last decision.
    #[must_use]
    pub fn clock() -> Self {
        Self::start(SHARD, TenantId(0), Kind::Clock)
    }

    /// The feature level of the last decision.
    #[must_use]
    pub fn level() -> Self {
        Self::start(SHARD, TenantId(0), Kind::Level)
    }

    /// The key of a tenant by name, under tenant 0, since a name is looked up before the tenant's number is known.
    #[must_use]
    pub fn tenant(name: &str) -> Self {
        Self::start(CATALOGUE, TenantId(0), Kind::Tenant).with(name.as_bytes())
    }

    /// An API key by its public id.
    #[must_use]
    pub fn api_key(id: &str) -> Self {
        Self::start(CATALOGUE, TenantId(0), Kind::ApiKey).with(id.as_bytes())
    }

    /// The key of a definition's row in the catalogue, beside those of its versions.
    #[must_use]
    pub fn definition(tenant: TenantId, name: &str) -> Self {
        Self::start(CATALOGUE, tenant, Kind::Definition).with(name.as_bytes())
    }

    /// A version of a definition.
    #[must_use]
    pub fn version(tenant: TenantId, name: &str, number: u32) -> Self {
        Self::start(CATALOGUE, tenant, Kind::Version)
            .with(name.as_bytes())
            .with(&[0])
            .with(&number.to_be_bytes())
    }

    /// What a shard knows of a tenant.
    #[must_use]
    pub fn tenancy(tenant: TenantId) -> Self {
        Self::start(SHARD, tenant, Kind::Tenancy)
    }

    /// A count of the mails of the hour that begins then; the digest says of which.
    #[must_use]
    pub(crate) fn mailed(tenant: TenantId, hour: Time, of: Digest) -> Self {
        Self::start(SHARD, tenant, Kind::Mailed).with(&hour.0.to_be_bytes()).with(&of.0[..16])
    }

    /// When the hour of a count of mails begins; `None` for another kind of key.
    pub fn hour_of_mailed(&self) -> Option<Time> {
        let bytes = self.rest().get(..8)?.try_into().ok()?;
        self.is(Kind::Mailed).then(|| Time(u64::from_be_bytes(bytes)))
    }

    /// What a tenant holds in a shard.
    #[must_use]
    pub fn usage(tenant: TenantId) -> Self {
        Self::start(SHARD, tenant, Kind::Usage)
    }

    /// The catalogue's record of what every shard must know of a tenant.
    #[must_use]
    pub fn tenancy_record(tenant: TenantId) -> Self {
        Self::start(CATALOGUE, tenant, Kind::Tenancy)
    }

    /// A change of what holds for a tenant, by its number.
    #[must_use]
    pub fn tenant_change(tenant: TenantId, number: u64) -> Self {
        Self::start(CATALOGUE, tenant, Kind::TenantChange).with(&number.to_be_bytes())
    }

    /// Where the rows of a tenant begin, in the order of keys: in each bucket, in what a shard has as a whole, in the
    /// catalogue.
    pub fn homes_of_tenant(tenant: TenantId) -> impl Iterator<Item = Vec<u8>> {
        let homes = (0..switchward_machine::limits::BUCKETS).chain([CATALOGUE, SHARD]);
        homes.map(move |home| [home.to_be_bytes().as_slice(), &tenant.0.to_be_bytes()].concat())
    }

    /// The key of an assistant's row in the catalogue.
    #[must_use]
    pub fn assistant(tenant: TenantId, name: &str) -> Self {
        Self::start(CATALOGUE, tenant, Kind::Assistant).with(name.as_bytes())
    }

    /// The key of a webhook source's row in the catalogue.
    #[must_use]
    pub fn webhook_source(tenant: TenantId, name: &str) -> Self {
        Self::start(CATALOGUE, tenant, Kind::WebhookSource).with(name.as_bytes())
    }

    /// The number that the last tenant got.
    #[must_use]
    pub fn last_tenant() -> Self {
        Self::start(CATALOGUE, TenantId(0), Kind::LastTenant)
    }

    /// A server of the cluster.
    #[must_use]
    pub fn server(number: u64) -> Self {
        Self::start(CATALOGUE, TenantId(0), Kind::Server).with(&number.to_be_bytes())
    }

    /// Which servers hold which group.
    #[must_use]
    pub fn cluster_map() -> Self {
        Self::start(CATALOGUE, TenantId(0), Kind::ClusterMap)
    }

    /// The version of a definition that has these files.
    #[must_use]
    pub fn source(tenant: TenantId, name: &str, files: Digest) -> Self {
        Self::start(CATALOGUE, tenant, Kind::Source).with(name.as_bytes()).with(&[0]).with(&files.0)
    }

    /// An entry of an index of a tenant.
    #[must_use]
    pub(crate) fn index(tenant: TenantId, index: u8, rest: &[&[u8]]) -> Self {
        rest.iter().fold(Self::start(SHARD, tenant, Kind::Index).with(&[index]), |key, part| key.with(part))
    }

    /// Everything of this kind of one session: the common beginning of those keys.
    #[must_use]
    pub fn prefix_of_session(tenant: TenantId, session: SessionId, kind: Kind) -> Vec<u8> {
        Self::of_session(tenant, session, kind).0.into_vec()
    }

    /// Everything of this kind that a tenant has in a bucket: the common beginning of those keys.
    #[must_use]
    pub fn prefix_of_bucket(tenant: TenantId, bucket: Bucket, kind: Kind) -> Vec<u8> {
        Self::start(bucket.number(), tenant, kind).0.into_vec()
    }

    /// Every definition of a tenant: the common beginning of those keys.
    #[must_use]
    pub fn prefix_of_catalogue(tenant: TenantId, kind: Kind) -> Vec<u8> {
        Self::start(CATALOGUE, tenant, kind).0.into_vec()
    }

    /// Stands before all rows that the catalogue has of a tenant, and behind those of the tenants before it.
    #[must_use]
    pub fn before_tenant_in_catalogue(tenant: TenantId) -> Vec<u8> {
        [CATALOGUE.to_be_bytes().as_slice(), &tenant.0.to_be_bytes()].concat()
    }

    /// Stands before all rows that a shard has of a tenant as a whole, and behind those of the tenants before it.
    #[must_use]
    pub fn before_tenant(tenant: TenantId) -> Vec<u8> {
        [SHARD.to_be_bytes().as_slice(), &tenant.0.to_be_bytes()].concat()
    }

    /// Stands behind all rows that a shard has as a whole.
    #[must_use]
    pub fn behind_tenants() -> Vec<u8> {
        (SHARD + 1).to_be_bytes().to_vec()
    }

    /// The bytes, in the order of which rows are kept.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The bytes, given away.
    #[must_use]
    pub fn into_bytes(self) -> KeyBytes {
        self.0
    }

    /// Reads bytes that [`Key::as_bytes`] gave; `None` if they cannot be a key.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        (bytes.len() >= 7).then(|| Self(KeyBytes::from_slice(bytes)))
    }

    /// Whose row it is.
    #[must_use]
    pub fn tenant_of(&self) -> TenantId {
        TenantId(u32::from_be_bytes([self.0[2], self.0[3], self.0[4], self.0[5]]))
    }

    /// What comes after bucket, tenant and kind.
    #[must_use]
    pub fn rest(&self) -> &[u8] {
        &self.0[7..]
    }

    /// Whether the row is of this kind.
    #[must_use]
    pub fn is(&self, kind: Kind) -> bool {
        self.0[6] == kind as u8
    }

    /// The session that the row belongs to, for the kinds that belong to one.
    #[must_use]
    pub fn session_of(&self) -> Option<SessionId> {
        let bytes = self.rest().get(..16)?;
        let mut id = [0u8; 16];
        id.copy_from_slice(bytes);
        Some(SessionId(id))
    }

    /// The session and the number of an open item; `None` for rows of other kinds.
    #[must_use]
    pub fn item_of(&self) -> Option<(SessionId, OpenId)> {
        let number = self.rest().get(16..24).filter(|_| self.is(Kind::OpenItem))?;
        Some((self.session_of()?, OpenId(u64::from_be_bytes(number.try_into().ok()?))))
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The bucket in which all ledgers of a process live, and the process's part of their keys.
#[must_use]
pub(crate) fn ledger_home(tenant: TenantId, process: &str) -> (Bucket, [u8; 16]) {
    let digest = Digest::of_parts(&[b"ledger", &tenant.0.to_be_bytes(), process.as_bytes()]);
    let mut hash = [0u8; 16];
    hash.copy_from_slice(&digest.0[..16]);
    (Bucket::of([hash[0], hash[1]]), hash)
}
