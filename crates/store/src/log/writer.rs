use super::{
    LogOptions, LogStats, Meta,
    queue::{Operation, Queue, Write},
    view::View,
};
use crate::{
    GroupId, StoreError,
    forms::{KIND_RECORD, LOG_KEY_BYTES, LOG_META, LOG_RECORD, log_key},
};
use fjall::{Database, Keyspace, PersistMode};
use parking_lot::Mutex;
use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, atomic::Ordering::Relaxed},
};

/// What the log's callers and its one writer share.
pub(super) struct Shared {
    pub(super) database: Database,
    pub(super) keyspace: Keyspace,
    pub(super) queue: Queue,
    pub(super) views: Mutex<HashMap<GroupId, Arc<Mutex<View>>>>,
    pub(super) stats: LogStats,
    pub(super) options: LogOptions,
}

impl Shared {
    pub(super) fn view(&self, group: GroupId) -> Arc<Mutex<View>> {
        self.views.lock().entry(group).or_default().clone()
    }

    /// The writer's loop: all that is queued, one batch, one sync, all callbacks. Batches grow by themselves
    /// while a sync runs; there is no timer.
    pub(super) fn run(&self) {
        let mut lost = None;
        loop {
            let mut operations = self.queue.take();
            if operations.is_empty() {
                return;
            }
            if lost.is_none()
                && let Err(error) = self.write(&mut operations)
            {
                (self.options.on_fatal)(&error);
                lost = Some(error);
            }
            for Operation { group, number, writes, done, .. } in operations {
                if lost.is_none() {
                    self.view(group).lock().evict(number);
                }
                done(lost.clone().map_or(writes.map(drop), Err));
            }
        }
    }

    fn write(&self, operations: &mut [Operation]) -> Result<(), StoreError> {
        let mut rows = Rows::default();
        for Operation { group, writes, .. } in operations {
            for write in writes.iter_mut().flat_map(std::mem::take) {
                rows.add(*group, write);
            }
        }
        if rows.rows.is_empty() {
            return Ok(());
        }
        let mut batch = self.database.batch().durability(None);
        let mut bytes = 0;
        for (key, value) in rows.rows {
            bytes += key.len() + value.as_ref().map_or(0, Vec::len);
            match value {
                Some(value) => batch.insert(&self.keyspace, key, value),
                None => batch.remove(&self.keyspace, key),
            }
        }
        batch.commit().map_err(StoreError::database("write to the log"))?;
        self.sync()?;
        self.stats.records.fetch_add(rows.records, Relaxed);
        self.stats.bytes.fetch_add(bytes as u64, Relaxed);
        Ok(())
    }

    fn sync(&self) -> Result<(), StoreError> {
        let nth = self.stats.syncs.fetch_add(1, Relaxed) + 1;
        let fault = self.options.sync_fault.as_ref().and_then(|fault| fault(nth));
        let synced = match fault {
            Some(error) => Err(error.into()),
            None => self.database.persist(PersistMode::SyncData),
        };
        // Never tried again: after a failed sync the kernel may have dropped the pages, and the next one lies.
        synced.map_err(StoreError::database("sync the log"))
    }
}

/// The rows of one batch. All rows of a fjall batch have the same sequence number, so a key may be in it only
/// once: what a truncation removes and an append rewrites is settled here.
#[derive(Default)]
struct Rows {
    rows: BTreeMap<[u8; LOG_KEY_BYTES], Option<Vec<u8>>>,
    records: u64,
}

impl Rows {
    fn add(&mut self, group: GroupId, write: Write) {
        match write {
            Write::Record(record) => {
                self.records += 1;
                let key = log_key(group, KIND_RECORD, record.index);
                self.rows.insert(key, Some(LOG_RECORD.wrap(&record.bytes)));
            }
            Write::Meta(slot, bytes) => {
                self.rows.insert(log_key(group, slot.kind(), 0), Some(LOG_META.wrap(&bytes)));
            }
            Write::Remove(indexes) => {
                self.rows.extend(indexes.map(|index| (log_key(group, KIND_RECORD, index), None)));
            }
        }
    }
}

impl Meta {
    pub(super) const ALL: [Meta; 3] = [Meta::Vote, Meta::Committed, Meta::Purged];

    /// Its kind in a key of the log; stored, so never to be changed.
    pub(super) fn kind(self) -> u8 {
        match self {
            Meta::Vote => 0,
            Meta::Committed => 1,
            Meta::Purged => 2,
        }
    }
}
