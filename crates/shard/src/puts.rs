//! What an entry puts into the state store: the rows that it changes, and the index entries that follow from them.

use std::io;
use std::sync::Arc;
use switchward_engine::RowBefore;
use switchward_state::session::Session;
use switchward_state::{Changes, Key, Row, index_keys, may_be_indexed};

use crate::evolved::caught;
use crate::record::Puts;
use crate::shared::Shared;

impl Shared {
    /// The changed rows, and the index entries that follow from them and from the rows as they are now. Those that were
    /// read for the decision are in `before`, in the order of the changes.
    ///
    /// # Errors
    /// A row cannot be read, or its index entries cannot be computed; the error says why.
    pub(crate) fn puts(&self, changes: Changes, before: Vec<RowBefore>) -> Result<Puts, String> {
        caught(|| {
            #[cfg(test)]
            tests::strike(&changes);
            self.indexed(changes, before).map_err(|error| error.to_string())
        })
    }

    fn indexed(&self, changes: Changes, before: Vec<RowBefore>) -> io::Result<Puts> {
        let (mut puts, mut before) = (Vec::with_capacity(changes.len() * 2), before.into_iter());
        // A row is as large as the largest kind, so all entries share one.
        let entry = Arc::new(Row::Index);
        for (key, row) in changes {
            let known = before.next().unwrap_or(RowBefore::NotRead);
            if may_be_indexed(&key) {
                let old = self.old(&key, known)?;
                if unmoved(old.as_deref(), row.as_deref()) {
                    puts.push((key, row));
                    continue;
                }
                let before = old.map(|old| index_keys(&key, &old)).unwrap_or_default();
                let after = row.as_ref().map(|row| index_keys(&key, row)).unwrap_or_default();
                let gone = before.iter().filter(|entry| !after.contains(entry));
                puts.extend(gone.map(|entry| (entry.clone(), None)));
                let new = after.iter().filter(|entry| !before.contains(entry));
                puts.extend(new.map(|key| (key.clone(), Some(Arc::clone(&entry)))));
            }
            puts.push((key, row));
        }
        Ok(puts)
    }

    /// A row as it is now.
    fn old(&self, key: &Key, known: RowBefore) -> io::Result<Option<Arc<Row>>> {
        match known {
            RowBefore::Read(row) => Ok(row),
            RowBefore::NotRead => {
                let found = self.state.get(key.as_bytes()).map_err(|error| self.store_failed(error))?;
                Ok(found.map(|stored| stored.0))
            }
        }
    }
}

/// Returns true if a session has the same index entries as before, as most have after most steps.
fn unmoved(old: Option<&Row>, new: Option<&Row>) -> bool {
    let (Some(Row::Session(old)), Some(Row::Session(new))) = (old, new) else { return false };
    let of = |session: &Session| {
        let Session { status, created, ended, replies, .. } = session;
        (*status, *created, *ended, replies.is_empty(), replies.sweeps())
    };
    of(old) == of(new) && old.removal.is_none() && new.removal.is_none()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The name of a tenant whose index entries cannot be computed.
    pub(crate) const UNINDEXED: &str = "unindexed";

    /// Panics if a tenant has that name.
    pub(super) fn strike(changes: &Changes) {
        let mut rows = changes.iter().filter_map(|(_, row)| row.as_deref());
        assert!(!rows.any(|row| matches!(row, Row::Tenant(tenant) if tenant.name == UNINDEXED)), "planted");
    }
}
