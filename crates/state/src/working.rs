//! Working copies: the rows that a batch has changed, over the rows as they were.

use foldhash::fast::FixedState;
use indexmap::IndexMap;
use indexmap::map::Entry;
use std::cell::RefCell;
use std::ops::ControlFlow;
use std::sync::Arc;
use switchward_machine::{Digest, Machine, OpenId, RunId, SessionId, TenantId, Time};

use crate::approval::{Call, Closed, Gate, Grant, MailKey, OpenGate};
use crate::catalogue::{ApiKey, Role};
use crate::policy::LedgerRow;
use crate::run::{Data, Run, Slot};
use crate::seal::KeyRing;
use crate::session::Session;
use crate::work::{WaitItem, WorkItem};
use crate::{IndexKey, Key, Kind, Open, OpenItem, Row, View, ViewError};

/// The kinds of row that a batch keeps when it has read them: each command reads them several times, or all commands do. A
/// session's data, history and open items are not among them: of a thousand commands they would take a gigabyte.
const READ_ONCE: [Kind; 6] =
    [Kind::Clock, Kind::Level, Kind::Machine, Kind::Run, Kind::Session, Kind::Tenancy];

/// Changed rows in the order of their keys, each once: the row, or `None` if it is gone.
pub type Changes = Vec<(Key, Option<Arc<Row>>)>;

/// Changed rows over unchanged ones.
pub struct Working<'a> {
    base: &'a dyn View,
    /// True if rows of [`READ_ONCE`] are kept when they were read, too.
    keeps_reads: bool,
    known: RefCell<IndexMap<Key, Known, FixedState>>,
}

/// A row as the batch has left it; `None` if there is none.
struct Known {
    row: Option<Arc<Row>>,
    /// False if it is as it was before the batch.
    is_changed: bool,
}

macro_rules! typed {
    ($($read:ident $(, $write:ident)?: $row:ident, $type:ty;)*) => {$(
        #[doc = concat!("The `", stringify!($row), "` row of this key, to read.")]
        pub fn $read(&self, key: &Key) -> Result<Option<SharedRow<$type>>, ViewError> {
            match self.get(key)? {
                None => Ok(None),
                Some(row) => match *row {
                    Row::$row(_) => Ok(SharedRow::new(row, |row| if let Row::$row(held) = row { Some(held) } else { None })),
                    ref other => Err(odd(key, other)),
                },
            }
        }
        $(
            #[doc = concat!("The `", stringify!($row), "` row of this key, to change; it must exist.")]
            pub(crate) fn $write(&mut self, key: &Key) -> Result<&mut $type, ViewError> {
                match self.get_mut(key)? {
                    Row::$row(held) => Ok(held),
                    other => Err(odd(key, other)),
                }
            }
        )?
    )*};
}

macro_rules! items {
    ($($read:ident $(, $write:ident)?: $kind:ident, $type:ty;)*) => {$(
        #[doc = concat!("The open item of this key as `", stringify!($kind), "`; `None` if nothing is open, or it is of another kind.")]
        pub fn $read(&self, key: &Key) -> Result<Option<SharedRow<Open<$type>>>, ViewError> {
            let Some(row) = self.get(key)? else { return Ok(None) };
            Ok(SharedRow::new(row, |row| if let Row::OpenItem(OpenItem::$kind(open)) = row { Some(open) } else { None }))
        }
        $(
            #[doc = concat!("The open item of this key as `", stringify!($kind), "`, to change; it must be open.")]
            pub(crate) fn $write(&mut self, key: &Key) -> Result<&mut Open<$type>, ViewError> {
                match self.get_mut(key)? {
                    Row::OpenItem(OpenItem::$kind(open)) => Ok(open),
                    other => Err(odd(key, other)),
                }
            }
        )?
    )*};
}

/// A row of a known kind, shared with its other readers.
pub struct SharedRow<T: 'static> {
    row: Arc<Row>,
    of: fn(&Row) -> Option<&T>,
}

impl<T> SharedRow<T> {
    /// A row as the kind that `of` finds in it; `None` if the row is of another kind.
    pub(crate) fn new(row: Arc<Row>, of: fn(&Row) -> Option<&T>) -> Option<Self> {
        of(&row)?;
        Some(Self { row, of })
    }
}

impl<T> std::ops::Deref for SharedRow<T> {
    type Target = T;
    fn deref(&self) -> &T {
        (self.of)(&self.row).unwrap_or_else(|| wrong(&self.row))
    }
}

impl<T> Clone for SharedRow<T> {
    fn clone(&self) -> Self {
        Self { row: Arc::clone(&self.row), of: self.of }
    }
}

impl<T: std::fmt::Debug> std::fmt::Debug for SharedRow<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        (**self).fmt(f)
    }
}

fn wrong<T>(row: &Row) -> &T {
    unreachable!("the kind was looked at before: {row:?}")
}

fn odd(key: &Key, row: &Row) -> ViewError {
    ViewError(format!("key {key:?} holds another kind of row: {row:?}"))
}

impl<'a> Working<'a> {
    /// Nothing is changed yet. Each read of an unchanged row goes to the rows below.
    pub fn new(base: &'a dyn View) -> Self {
        Self { base, keeps_reads: false, known: RefCell::default() }
    }

    /// The copies of a batch, whose commands read many of the same rows. The rows below must not change meanwhile: those that
    /// are read again and again, such as the machine's, are read from there once, and kept until the batch ends.
    #[must_use]
    pub fn of_batch(base: &'a dyn View) -> Self {
        Self { keeps_reads: true, ..Self::new(base) }
    }

    /// What was changed.
    pub fn into_changes(self) -> Changes {
        let known = self.known.into_inner().into_iter();
        let mut changes: Changes =
            known.filter(|(_, known)| known.is_changed).map(|(key, known)| (key, known.row)).collect();
        changes.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        changes
    }

    /// Returns true if the rows below plant this bug.
    #[cfg(feature = "planted")]
    pub fn plants(&self, bug: crate::planted::Bug) -> bool {
        self.base.planted() == Some(bug)
    }

    /// What opens the secrets in the rows.
    pub(crate) fn ring(&self) -> &KeyRing {
        self.base.ring()
    }

    /// What a tenant's tokens are made with, the newest first; empty if it has none that can be opened.
    pub fn mail_keys(&self, tenant: TenantId) -> Result<Vec<MailKey>, ViewError> {
        let tenancy = self.tenancy_at(&Key::tenancy(tenant))?;
        Ok(tenancy.map(|known| known.mail_keys(self.ring(), tenant)).unwrap_or_default())
    }

    /// Returns true if a key other than that of this id makes somebody an admin of the tenant at this time.
    pub fn has_other_admin(&self, tenant: TenantId, id: &str, now: Time) -> Result<bool, ViewError> {
        let counts =
            |key: &ApiKey| key.tenant == tenant && key.role == Role::Admin && key.id != id && key.works(now);
        // The index is as it was before the batch: what the batch has changed is looked at here, and passed over there.
        let known = self.known.borrow();
        let changed = |key: &Key| known.get(key).is_some_and(|known| known.is_changed);
        let keys = known.iter().filter(|(key, known)| key.is(Kind::ApiKey) && known.is_changed);
        if keys.flat_map(|(_, known)| &known.row).any(|row| matches!(&**row, Row::ApiKey(key) if counts(key)))
        {
            return Ok(true);
        }
        let (prefix, mut after) = (IndexKey::admins(tenant), None);
        loop {
            let mut next = None;
            self.base.scan(&prefix, after.as_deref(), &mut |entry, _| {
                next = Some(entry.clone());
                ControlFlow::Break(())
            })?;
            let Some(entry) = next else { return Ok(false) };
            let key = Key::api_key(IndexKey::admin_of(&entry).unwrap_or_default());
            if key != Key::api_key(id) && !changed(&key) {
                // The others do not work longer than this one.
                let row = self.base.row(&key)?;
                return Ok(matches!(row.as_deref(), Some(Row::ApiKey(key)) if counts(key)));
            }
            after = Some(entry.as_bytes().to_vec());
        }
    }

    /// Returns the row of this key with the changes that were made so far; `None` if there is none.
    pub(crate) fn get(&self, key: &Key) -> Result<Option<Arc<Row>>, ViewError> {
        if let Some(known) = self.known.borrow().get(key) {
            return Ok(known.row.clone());
        }
        let row = self.base.row(key)?;
        if self.keeps_reads && READ_ONCE.into_iter().any(|kind| key.is(kind)) {
            let known = Known { row: row.clone(), is_changed: false };
            self.known.borrow_mut().insert(key.clone(), known);
        }
        Ok(row)
    }

    fn get_mut(&mut self, key: &Key) -> Result<&mut Row, ViewError> {
        let known = match self.known.get_mut().entry(key.clone()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(free) => free.insert(Known { row: self.base.row(key)?, is_changed: false }),
        };
        known.is_changed = true;
        let row = known.row.as_mut().map(Arc::make_mut);
        row.ok_or_else(|| ViewError(format!("key {key:?} holds no row")))
    }

    /// Puts a row; it replaces what was there.
    pub fn put(&mut self, key: Key, row: Row) {
        self.change(key, Some(Arc::new(row)));
    }

    /// The row is gone.
    pub(crate) fn delete(&mut self, key: Key) {
        self.change(key, None);
    }

    fn change(&mut self, key: Key, row: Option<Arc<Row>>) {
        self.known.get_mut().insert(key, Known { row, is_changed: true });
    }

    typed! {
        session_at, session_at_mut: Session, Session;
        run_at, run_at_mut: Run, Run;
        closed_at, closed_at_mut: Closed, Closed;
        call_at: Call, Call;
        grant_at: Grant, Grant;
        ledger_at, ledger_at_mut: Ledger, LedgerRow;
        request_at: Request, crate::Request;
        reply_at: Reply, crate::session::StoredReply;
        history_at: History, crate::StoredHistory;
        outbox_at: Outbox, crate::delivery::Effect;
        tenant_at, tenant_at_mut: Tenant, crate::catalogue::Tenant;
        api_key_at, api_key_at_mut: ApiKey, crate::catalogue::ApiKey;
        definition_at, definition_at_mut: Definition, crate::catalogue::Definition;
        version_at: Version, crate::catalogue::Version;
        assistant_at: Assistant, crate::catalogue::Assistant;
        tenancy_at: Tenancy, crate::catalogue::Tenancy;
        usage_at, usage_at_mut: Usage, crate::catalogue::Usage;
        webhook_source_at: WebhookSource, crate::delivery::WebhookSource;
        server_at: Server, crate::catalogue::Server;
        cluster_map_at: ClusterMap, crate::catalogue::ClusterMap;
        last_tenant_at: LastTenant, u32;
        source_at: Source, u32;
        item_at: OpenItem, OpenItem;
        data_at, data_at_mut: Data, Data;
        last_message_at: LastMessage, crate::session::LastMessage;
        removed_at, removed_at_mut: Removed, crate::session::Removed;
        slot_at: Slot, Slot;
        recorded_at: Recorded, switchward_machine::Time;
        clock_at: Clock, switchward_machine::Time;
        level_at: Level, crate::Level;
        mailed_at: Mailed, u32;
    }

    items! {
        gate_at, gate_at_mut: Gate, Gate;
        work_at, work_at_mut: Work, WorkItem;
        wait_at: Wait, WaitItem;
    }

    /// The session's row; `None` if it does not exist in this tenant.
    pub fn session(&self, tenant: TenantId, id: SessionId) -> Result<Option<SharedRow<Session>>, ViewError> {
        self.session_at(&Key::session(tenant, id))
    }

    /// The run's row; it must exist.
    pub fn run(&self, tenant: TenantId, id: SessionId, run: RunId) -> Result<SharedRow<Run>, ViewError> {
        let key = Key::run(tenant, id, run);
        self.run_at(&key)?.ok_or_else(|| ViewError(format!("key {key:?} holds no run")))
    }

    /// The child that a run waits for; `None` if it has none.
    pub fn child(&self, tenant: TenantId, id: SessionId, run: RunId) -> Result<Option<RunId>, ViewError> {
        let at = self.run(tenant, id, run)?;
        for index in 0..at.slots {
            let slot = self.slot_at(&Key::slot(tenant, id, run, at.entry, index))?;
            if let Some(Slot::Runs(child)) = slot.as_deref() {
                return Ok(Some(*child));
            }
        }
        Ok(None)
    }

    /// The only active leaf below a run: the subject of a command that names nothing open. The run itself if it has no
    /// child.
    pub fn leaf(&self, tenant: TenantId, id: SessionId, run: RunId) -> Result<RunId, ViewError> {
        let mut leaf = run;
        while let Some(child) = self.child(tenant, id, leaf)? {
            leaf = child;
        }
        Ok(leaf)
    }

    /// The open gate of this number; `None` if it is closed, or something else is open under the number.
    pub fn gate(
        &self,
        tenant: TenantId,
        id: SessionId,
        gate: OpenId,
    ) -> Result<Option<SharedRow<OpenGate>>, ViewError> {
        self.gate_at(&Key::item(tenant, id, gate))
    }

    /// The installed machine.
    pub fn machine(&self, tenant: TenantId, digest: Digest) -> Result<Option<Arc<Machine>>, ViewError> {
        let key = Key::machine(tenant, digest);
        let Some(row) = self.get(&key)? else { return Ok(None) };
        if let Row::Machine(ref machine) = *row {
            Ok(Some(Arc::clone(machine)))
        } else {
            Err(odd(&key, &row))
        }
    }
}
