//! What an entry puts into the state store: the rows that it changes, and the index entries that follow from them.

use std::io;
use std::sync::Arc;
use switchward_state::session::Session;
use switchward_state::{Changes, Row, index_keys, may_be_indexed};

use crate::evolved::caught;
use crate::record::{Puts, Stored};
use crate::shared::Shared;

impl Shared {
    /// The changed rows, and the index entries that follow from them and from the rows as they are now.
    ///
    /// # Errors
    /// A row cannot be read, or its index entries cannot be computed; the error says why.
    pub(crate) fn puts(&self, changes: Changes) -> Result<Puts, String> {
        caught(|| {
            #[cfg(test)]
            tests::strike(&changes);
            self.indexed(changes).map_err(|error| error.to_string())
        })
    }

    fn indexed(&self, changes: Changes) -> io::Result<Puts> {
        let mut puts = Vec::with_capacity(changes.len() * 2);
        for (key, row) in changes {
            if may_be_indexed(&key) {
                let old = self.state.get(key.as_bytes()).map_err(|error| self.store_failed(error))?;
                if unmoved(old.as_ref(), row.as_deref()) {
                    puts.push((key, row));
                    continue;
                }
                let before = old.map(|old| index_keys(&key, &old.0)).unwrap_or_default();
                let after = row.as_ref().map(|row| index_keys(&key, row)).unwrap_or_default();
                let gone = before.iter().filter(|entry| !after.contains(entry));
                puts.extend(gone.map(|entry| (entry.clone(), None)));
                let new = after.iter().filter(|entry| !before.contains(entry));
                puts.extend(new.map(|entry| (entry.clone(), Some(Arc::new(Row::Index)))));
            }
            puts.push((key, row));
        }
        Ok(puts)
    }
}

/// Returns true if a session has the same index entries as before, as most have after most steps.
fn unmoved(old: Option<&Stored>, new: Option<&Row>) -> bool {
    let (Some(old), Some(Row::Session(new))) = (old, new) else { return false };
    let Row::Session(old) = &*old.0 else { return false };
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
