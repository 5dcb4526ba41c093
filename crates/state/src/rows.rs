//! Rows as they are read and changed, each as its kind. What keeps the changes of a batch is the engine's.

use std::sync::Arc;
use switchward_machine::{Digest, Machine, OpenId, RunId, SessionId, TenantId};

use crate::approval::{Call, Closed, Gate, Grant, MailKey, OpenGate};
use crate::catalogue::Definition;
use crate::policy::LedgerRow;
use crate::run::{Data, Run, Slot};
use crate::seal::KeyRing;
use crate::session::Session;
use crate::work::{WaitItem, WorkItem};
use crate::{Key, Open, OpenItem, Row, View, ViewError};

/// Changed rows in the order of their keys, each once: the row, or `None` if it is gone.
pub type Changes = Vec<(Key, Option<Arc<Row>>)>;

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

macro_rules! reads {
    ($($read:ident: $row:ident, $type:ty;)*) => {$(
        #[doc = concat!("The `", stringify!($row), "` row of this key, to read.")]
        fn $read(&self, key: &Key) -> Result<Option<SharedRow<$type>>, ViewError> {
            match self.get(key)? {
                None => Ok(None),
                Some(row) => match *row {
                    Row::$row(_) => Ok(SharedRow::new(row, |row| if let Row::$row(held) = row { Some(held) } else { None })),
                    ref other => Err(odd(key, other)),
                },
            }
        }
    )*};
}

macro_rules! reads_items {
    ($($read:ident: $kind:ident, $type:ty;)*) => {$(
        #[doc = concat!("The open item of this key as `", stringify!($kind), "`; `None` if nothing is open, or it is of another kind.")]
        fn $read(&self, key: &Key) -> Result<Option<SharedRow<Open<$type>>>, ViewError> {
            let Some(row) = self.get(key)? else { return Ok(None) };
            Ok(SharedRow::new(row, |row| if let Row::OpenItem(OpenItem::$kind(open)) = row { Some(open) } else { None }))
        }
    )*};
}

macro_rules! writes {
    ($($write:ident: $row:ident, $type:ty;)*) => {$(
        #[doc = concat!("The `", stringify!($row), "` row of this key, to change; it must exist.")]
        pub(crate) fn $write(&mut self, key: &Key) -> Result<&mut $type, ViewError> {
            match self.get_mut(key)? {
                Row::$row(held) => Ok(held),
                other => Err(odd(key, other)),
            }
        }
    )*};
}

macro_rules! writes_items {
    ($($write:ident: $kind:ident, $type:ty;)*) => {$(
        #[doc = concat!("The open item of this key as `", stringify!($kind), "`, to change; it must be open.")]
        pub(crate) fn $write(&mut self, key: &Key) -> Result<&mut Open<$type>, ViewError> {
            match self.get_mut(key)? {
                Row::OpenItem(OpenItem::$kind(open)) => Ok(open),
                other => Err(odd(key, other)),
            }
        }
    )*};
}

/// Rows by their keys, with the changes that were made so far. Every [`View`] is one.
pub trait ReadRows {
    /// The row of this key.
    ///
    /// # Errors
    /// The row cannot be read; the caller must not decide anything.
    fn get(&self, key: &Key) -> Result<Option<Arc<Row>>, ViewError>;

    /// What opens the secrets in the rows.
    fn key_ring(&self) -> &KeyRing;

    /// Returns true if the rows plant this bug.
    #[cfg(feature = "planted")]
    fn plants(&self, _: crate::planted::Bug) -> bool {
        false
    }

    reads! {
        session_at: Session, Session;
        run_at: Run, Run;
        closed_at: Closed, Closed;
        call_at: Call, Call;
        grant_at: Grant, Grant;
        ledger_at: Ledger, LedgerRow;
        request_at: Request, crate::Request;
        reply_at: Reply, crate::session::StoredReply;
        history_at: History, crate::StoredHistory;
        outbox_at: Outbox, crate::delivery::Effect;
        tenant_at: Tenant, crate::catalogue::Tenant;
        api_key_at: ApiKey, crate::catalogue::ApiKey;
        definition_at: Definition, Definition;
        version_at: Version, crate::catalogue::Version;
        assistant_at: Assistant, crate::catalogue::Assistant;
        tenancy_at: Tenancy, crate::catalogue::Tenancy;
        usage_at: Usage, crate::catalogue::Usage;
        webhook_source_at: WebhookSource, crate::delivery::WebhookSource;
        server_at: Server, crate::catalogue::Server;
        cluster_map_at: ClusterMap, crate::catalogue::ClusterMap;
        last_tenant_at: LastTenant, u32;
        source_at: Source, u32;
        item_at: OpenItem, OpenItem;
        data_at: Data, Data;
        last_message_at: LastMessage, crate::session::LastMessage;
        removed_at: Removed, crate::session::Removed;
        slot_at: Slot, Slot;
        recorded_at: Recorded, switchward_machine::Time;
        clock_at: Clock, switchward_machine::Time;
        level_at: Level, crate::Level;
        mailed_at: Mailed, u32;
    }

    reads_items! {
        gate_at: Gate, Gate;
        work_at: Work, WorkItem;
        wait_at: Wait, WaitItem;
    }

    /// What a tenant's tokens are made with, the newest first; empty if it has none that can be opened.
    fn mail_keys(&self, tenant: TenantId) -> Result<Vec<MailKey>, ViewError> {
        let tenancy = self.tenancy_at(&Key::tenancy(tenant))?;
        Ok(tenancy.map(|known| known.mail_keys(self.key_ring(), tenant)).unwrap_or_default())
    }

    /// The session's row; `None` if it does not exist in this tenant.
    fn session(&self, tenant: TenantId, id: SessionId) -> Result<Option<SharedRow<Session>>, ViewError> {
        self.session_at(&Key::session(tenant, id))
    }

    /// The definition of this name; `None` if there is none, or it was deleted.
    fn definition(&self, tenant: TenantId, name: &str) -> Result<Option<SharedRow<Definition>>, ViewError> {
        let found = self.definition_at(&Key::definition(tenant, name))?;
        Ok(found.filter(|definition| definition.deleted.is_none()))
    }

    /// The run's row; it must exist.
    fn run(&self, tenant: TenantId, id: SessionId, run: RunId) -> Result<SharedRow<Run>, ViewError> {
        let key = Key::run(tenant, id, run);
        self.run_at(&key)?.ok_or_else(|| ViewError(format!("key {key:?} holds no run")))
    }

    /// The children that a run has now and whose row this is, in the order of their slots: all of them, or this many at
    /// most.
    fn children(
        &self,
        tenant: TenantId,
        id: SessionId,
        run: RunId,
        at: &Run,
        most: usize,
    ) -> Result<Vec<RunId>, ViewError> {
        let mut children = Vec::new();
        for index in 0..at.slots {
            if children.len() >= most {
                break;
            }
            let slot = self.slot_at(&Key::slot(tenant, id, run, at.entry, index))?;
            if let Some(Slot::Runs(child)) = slot.as_deref() {
                children.push(*child);
            }
        }
        Ok(children)
    }

    /// A run and the active runs below it, each before its children.
    fn active(&self, tenant: TenantId, id: SessionId, run: RunId) -> Result<Vec<RunId>, ViewError> {
        let (mut active, mut left) = (Vec::new(), vec![run]);
        while let Some(run) = left.pop() {
            active.push(run);
            let at = self.run(tenant, id, run)?;
            left.extend(self.children(tenant, id, run, &at, usize::MAX)?.into_iter().rev());
        }
        Ok(active)
    }

    /// The active leaves below a run, in the order of their slots: all of them, or this many at most. The run itself if it
    /// has no child.
    fn leaves(
        &self,
        tenant: TenantId,
        id: SessionId,
        run: RunId,
        most: usize,
    ) -> Result<Vec<RunId>, ViewError> {
        let (mut leaves, mut left) = (Vec::new(), vec![run]);
        while let Some(run) = left.pop().filter(|_| leaves.len() < most) {
            let at = self.run(tenant, id, run)?;
            // There is a leaf below each child.
            let children = self.children(tenant, id, run, &at, most - leaves.len())?;
            if children.is_empty() {
                leaves.push(run);
            }
            left.extend(children.into_iter().rev());
        }
        Ok(leaves)
    }

    /// The last run of the chain in which each run waits for one child: the only active leaf, or the run that waits for
    /// several children.
    fn stem(&self, tenant: TenantId, id: SessionId, run: RunId) -> Result<RunId, ViewError> {
        let mut stem = run;
        loop {
            let at = self.run(tenant, id, stem)?;
            match self.children(tenant, id, stem, &at, 2)?[..] {
                [only] => stem = only,
                _ => return Ok(stem),
            }
        }
    }

    /// The open gate of this number; `None` if it is closed, or something else is open under the number.
    fn gate(
        &self,
        tenant: TenantId,
        id: SessionId,
        gate: OpenId,
    ) -> Result<Option<SharedRow<OpenGate>>, ViewError> {
        self.gate_at(&Key::item(tenant, id, gate))
    }

    /// The installed machine.
    fn machine(&self, tenant: TenantId, digest: Digest) -> Result<Option<Arc<Machine>>, ViewError> {
        let key = Key::machine(tenant, digest);
        let Some(row) = self.get(&key)? else { return Ok(None) };
        if let Row::Machine(ref machine) = *row {
            Ok(Some(Arc::clone(machine)))
        } else {
            Err(odd(&key, &row))
        }
    }
}

impl<V: View> ReadRows for V {
    fn get(&self, key: &Key) -> Result<Option<Arc<Row>>, ViewError> {
        self.row(key)
    }

    fn key_ring(&self) -> &KeyRing {
        self.ring()
    }

    #[cfg(feature = "planted")]
    fn plants(&self, bug: crate::planted::Bug) -> bool {
        self.planted() == Some(bug)
    }
}

/// Rows to read and to change, as events are applied to them.
pub trait WriteRows: ReadRows {
    /// The row of this key, to change; it must exist.
    ///
    /// # Errors
    /// The row cannot be read, or does not exist.
    fn get_mut(&mut self, key: &Key) -> Result<&mut Row, ViewError>;

    /// Puts a row; it replaces what was there.
    fn put(&mut self, key: Key, row: Row);

    /// Removes the row of this key; there may be none.
    fn delete(&mut self, key: Key);
}

impl dyn WriteRows + '_ {
    writes! {
        session_at_mut: Session, Session;
        run_at_mut: Run, Run;
        closed_at_mut: Closed, Closed;
        ledger_at_mut: Ledger, LedgerRow;
        tenant_at_mut: Tenant, crate::catalogue::Tenant;
        api_key_at_mut: ApiKey, crate::catalogue::ApiKey;
        definition_at_mut: Definition, Definition;
        usage_at_mut: Usage, crate::catalogue::Usage;
        data_at_mut: Data, Data;
        removed_at_mut: Removed, crate::session::Removed;
    }

    writes_items! {
        gate_at_mut: Gate, Gate;
        work_at_mut: Work, WorkItem;
    }
}
