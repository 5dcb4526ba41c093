//! Rows in a map, as a shard keeps them in files.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use switchward_machine::{Digest, Status, TenantId};
use switchward_state::catalogue::Usage;
use switchward_state::seal::KeyRing;
use switchward_state::session::{ReplySource, Session, StoredReply};
use switchward_state::{
    Changes, IndexKey, Key, Kind, RequestId, Row, StoredHistory, View, ViewError, index_keys,
};

use crate::ring;

/// All rows of a shard, index entries among them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rows(BTreeMap<Key, Arc<Row>>);

impl Rows {
    /// Applies a decision's changes, and updates the index entries that follow from them.
    pub fn apply(&mut self, changes: Changes) {
        // A row is as large as the largest kind, so all entries share one.
        let index = Arc::new(Row::Index);
        for (key, row) in changes {
            let before = match &row {
                Some(row) => self.0.insert(key.clone(), Arc::clone(row)),
                None => self.0.remove(&key),
            };
            let before: Vec<Key> = before.iter().flat_map(|row| index_keys(&key, row)).collect();
            let after: Vec<Key> = row.iter().flat_map(|row| index_keys(&key, row)).collect();
            // Most entries of a row stay: each names its row, so that no other row removes them.
            for gone in before.iter().filter(|entry| !after.contains(entry)) {
                self.0.remove(gone);
            }
            for new in after.into_iter().filter(|entry| !before.contains(entry)) {
                self.0.insert(new, Arc::clone(&index));
            }
        }
    }

    /// All rows by their keys.
    pub fn iter(&self) -> impl Iterator<Item = (&Key, &Arc<Row>)> {
        self.0.iter()
    }

    /// Returns the rows, decoded from their stored form.
    ///
    /// # Errors
    /// A row is read back as another one.
    pub fn reopened(&self) -> Result<Self, String> {
        self.reopened_after(&Self::default())
    }

    /// The same, but takes over rows that are the same allocations as in `read`, which an earlier call
    /// returned: they would be read back the same again.
    ///
    /// # Errors
    /// As [`Self::reopened`].
    pub fn reopened_after(&self, read: &Self) -> Result<Self, String> {
        let again = |(key, row): (&Key, &Arc<Row>)| -> Result<(Key, Arc<Row>), String> {
            let known = read.0.get(key).filter(|known| Arc::ptr_eq(known, row));
            let row = known.map_or_else(|| read_back(key, row), |known| Ok(Arc::clone(known)))?;
            Ok((Key::from_bytes(key.as_bytes()).ok_or("a key is too short")?, row))
        };
        self.0.iter().map(again).collect::<Result<_, _>>().map(Self)
    }

    /// Compares two states; `what` begins the message.
    ///
    /// # Errors
    /// The first row in which they differ.
    pub fn same(&self, other: &Self, what: &str) -> Result<(), String> {
        if self == other {
            return Ok(());
        }
        let keys = self.0.keys().chain(other.0.keys());
        for key in keys {
            let (one, two) = (self.0.get(key), other.0.get(key));
            if one != two {
                return Err(format!("{what}: {key:?} holds {one:?} here and {two:?} there"));
            }
        }
        Ok(())
    }

    /// Compares the index, the counts and the chains of history with those that follow from the rows.
    ///
    /// # Errors
    /// One of them differs.
    pub fn indexed(&self) -> Result<(), String> {
        let mut rebuilt = Self::default();
        let rows = self.0.iter().filter(|(key, _)| !key.is(Kind::Index));
        rebuilt.apply(rows.map(|(key, row)| (key.clone(), Some(Arc::clone(row)))).collect());
        self.same(&rebuilt, "the index is another one when it is built again")?;
        self.counted()?;
        for (key, row) in &self.0 {
            if let Row::Session(session) = &**row {
                self.listed(key, session)?;
                self.remembers(key, session)?;
                self.chained(key, session)?;
            }
        }
        Ok(())
    }

    /// Each tenant's counts equal a fresh count.
    fn counted(&self) -> Result<(), String> {
        let mut usages: BTreeMap<TenantId, Usage> = BTreeMap::new();
        for (key, row) in &self.0 {
            let usage = usages.entry(key.tenant_of()).or_default();
            usage.sessions += u64::from(matches!(&**row, Row::Session(_)));
            if let Row::History(history) = &**row {
                usage.bytes += u64::try_from(minicbor::to_vec(history).unwrap().len()).unwrap();
            }
            if let Row::Reply(reply) = &**row {
                usage.bytes += u64::try_from(minicbor::to_vec(reply).unwrap().len()).unwrap();
            }
        }
        for (tenant, usage) in usages {
            let row = self.0.get(&Key::usage(tenant)).map(|row| &**row);
            let known = if let Some(Row::Usage(known)) = row { *known } else { Usage::default() };
            if known != usage {
                return Err(format!("{tenant:?} holds {usage:?}, and {known:?} is counted"));
            }
        }
        Ok(())
    }

    /// A session is listed under its status and under no other.
    fn listed(&self, key: &Key, session: &Session) -> Result<(), String> {
        for status in Status::ALL {
            let (prefix, mut found) = (IndexKey::sessions_in(key.tenant_of(), status), false);
            let look = &mut |entry: &Key, _: &_| {
                found |= IndexKey::session_of(entry) == key.session_of();
                ControlFlow::Continue(())
            };
            self.scan(&prefix, None, look).map_err(|error| error.to_string())?;
            if found != (status == session.status) {
                return Err(format!("{key:?} is {:?}; listed as {status:?}: {found}", session.status));
            }
        }
        Ok(())
    }

    /// The replies that a session remembers are in its history, under the request ids that they were given to, or in rows of
    /// their own; it has as many of these as it counts, and each names the next.
    fn remembers(&self, key: &Key, session: &Session) -> Result<(), String> {
        let Some(id) = key.session_of() else { return Err(format!("{key:?} is no session's")) };
        let (tenant, replies) = (key.tenant_of(), &session.replies);
        let mut sources = Vec::new();
        let mut next = replies.chained().map(|chained| (chained.first, chained.at));
        for _ in 0..replies.chained().map_or(0, |chained| chained.count) {
            let Some((hash, _)) = next else { return Err(format!("{key:?} has lost replies: {replies:?}")) };
            let stored = self.reply(&Key::reply(tenant, id, hash))?;
            sources.push((hash, stored.source));
            next = stored.next.map(|next| (next.hash, next.at));
        }
        if replies.chained().is_some() && next != replies.listed().first().map(|first| (first.hash, first.at))
        {
            return Err(format!(
                "the replies of {key:?} that have rows do not lead to the others: {replies:?}"
            ));
        }
        for known in replies.listed() {
            let source = match known.sequence {
                Some(sequence) => ReplySource::History(sequence),
                None => self.reply(&Key::reply(tenant, id, known.hash))?.source,
            };
            sources.push((known.hash, source));
        }
        let (mut rows, mut bytes) = (0, 0);
        let prefix = Key::prefix_of_session(tenant, id, Kind::Reply);
        let look = &mut |_: &Key, row: &Arc<Row>| {
            rows += 1;
            bytes += if let Row::Reply(reply) = &**row { reply.bytes() } else { 0 };
            ControlFlow::Continue(())
        };
        self.scan(&prefix, None, look).map_err(|error| error.to_string())?;
        if session.removal.is_none() && (rows, bytes) != (replies.rows(), replies.bytes()) {
            return Err(format!(
                "{key:?} has {rows} rows of replies with {bytes} bytes, but counts {replies:?}"
            ));
        }
        sources.iter().try_for_each(|(hash, source)| self.replied(key, *hash, source))
    }

    fn reply(&self, key: &Key) -> Result<StoredReply, String> {
        match self.row(key).map_err(|error| error.to_string())?.as_deref() {
            Some(Row::Reply(stored)) => Ok(stored.clone()),
            Some(_) | None => Err(format!("{key:?} holds no reply")),
        }
    }

    /// A reply of the session of this key is where it is looked for.
    fn replied(&self, key: &Key, hash: [u8; 16], source: &ReplySource) -> Result<(), String> {
        let ReplySource::History(sequence) = source else { return Ok(()) };
        let Some(id) = key.session_of() else { return Err(format!("{key:?} is no session's")) };
        let row =
            self.row(&Key::history(key.tenant_of(), id, *sequence)).map_err(|error| error.to_string())?;
        let Some(Row::History(history)) = row.as_deref() else {
            return Err(format!("{key:?} remembers a reply that its history does not have: {sequence}"));
        };
        let request = history.request.clone().map(|id| RequestId { id, body: Digest([0; 32]) }.hash());
        if request != Some(hash) || history.answered.is_none() {
            return Err(format!("{key:?} remembers {hash:?}, and there stands {history:?}"));
        }
        Ok(())
    }

    /// A session's head is the hash of its whole history, and differs if a part of the history is missing.
    fn chained(&self, key: &Key, session: &Session) -> Result<(), String> {
        let Some(id) = key.session_of() else { return Err(format!("{key:?} is no session's")) };
        let mut parts = Vec::new();
        let look = &mut |_: &Key, row: &Arc<Row>| {
            if let Row::History(history) = &**row {
                parts.push(history.clone());
            }
            ControlFlow::Continue(())
        };
        let prefix = Key::prefix_of_session(key.tenant_of(), id, Kind::History);
        self.scan(&prefix, None, look).map_err(|error| error.to_string())?;
        let head = |parts: &[StoredHistory]| parts.iter().fold(Digest([0; 32]), |head, part| part.link(head));
        if head(&parts) != session.head || head(&parts[1..]) == session.head {
            return Err(format!("{key:?} has another head than its {} parts of history", parts.len()));
        }
        Ok(())
    }

    /// Compares the effects of two sets of changes on these rows; `what` begins the message.
    ///
    /// # Errors
    /// The first row that they make different.
    pub fn agree(&self, one: &Changes, two: &Changes, what: &str) -> Result<(), String> {
        if one == two {
            return Ok(());
        }
        for (key, _) in one.iter().chain(two) {
            let becomes = |changes: &Changes| match changes.binary_search_by(|(changed, _)| changed.cmp(key))
            {
                Ok(at) => changes[at].1.clone(),
                Err(_) => self.0.get(key).cloned(),
            };
            if becomes(one) != becomes(two) {
                return Err(format!("{what}: {key:?} becomes {:?} and {:?}", becomes(one), becomes(two)));
            }
        }
        Ok(())
    }
}

/// A row as it is read back from its stored form.
fn read_back(key: &Key, row: &Row) -> Result<Arc<Row>, String> {
    let bytes = row.encode();
    let back = Row::decode(&bytes).map_err(|error| error.to_string())?;
    if back.encode() != bytes {
        return Err(format!("{key:?} is written in two ways"));
    }
    Ok(Arc::new(back))
}

impl FromIterator<(Key, Arc<Row>)> for Rows {
    fn from_iter<I: IntoIterator<Item = (Key, Arc<Row>)>>(rows: I) -> Self {
        Self(rows.into_iter().collect())
    }
}

impl View for Rows {
    fn row(&self, key: &Key) -> Result<Option<Arc<Row>>, ViewError> {
        Ok(self.0.get(key).cloned())
    }

    fn scan(
        &self,
        prefix: &[u8],
        after: Option<&[u8]>,
        visit: &mut dyn FnMut(&Key, &Arc<Row>) -> ControlFlow<()>,
    ) -> Result<(), ViewError> {
        let first = Key::from_bytes(prefix).ok_or_else(|| ViewError("a prefix is too short".into()))?;
        let inside = |key: &Key| key.as_bytes().starts_with(prefix);
        let beyond = |key: &Key| after.is_none_or(|after| key.as_bytes() > after);
        for (key, row) in self.0.range(first..).take_while(|(key, _)| inside(key)) {
            if beyond(key) && visit(key, row).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn ring(&self) -> &KeyRing {
        ring()
    }
}
