//! Remembers the replies of a session, and forgets those whose time is over; see [`Replies`].

use switchward_machine::{SessionId, Time};

use super::replies::{Chained, Remembered, Replies};
use super::stored_reply::{NextReply, ReplySource, StoredReply};
use crate::catalogue::apply_usage;
use crate::limits::{REPLIES_FORGOTTEN_MAX, REPLIES_KEPT_MS, REPLIES_LISTED_MAX, REPLIES_SWEPT_MAX};
use crate::{Key, Row, Site, ViewError, WriteRows};

/// The hash of a request id, see [`RequestId::hash`](crate::RequestId::hash).
type Hash = [u8; 16];

/// The replies of one session while they change, with its rows.
struct Change<'w> {
    rows: &'w mut dyn WriteRows,
    site: &'w Site<'w>,
    session: SessionId,
    replies: Replies,
}

/// Remembers the reply to a command of the site's session, and forgets some of those whose time is over.
pub(crate) fn remember(
    rows: &mut dyn WriteRows,
    site: &Site<'_>,
    hash: Hash,
    source: ReplySource,
) -> Result<(), ViewError> {
    // Mostly there is nothing to forget and the list is not full: then no row is needed but the session's.
    let replies = &mut rows.session_at_mut(&site.session_key()?)?.replies;
    if let ReplySource::History(sequence) = source
        && replies.listed.len() < REPLIES_LISTED_MAX
        && !replies.oldest().is_some_and(|at| is_lapsed(site, at))
    {
        replies.listed.push(Remembered { hash, at: site.at, sequence: Some(sequence) });
        return Ok(());
    }
    change(rows, site, |change| {
        change.forget_lapsed()?;
        change.chain_oldest()?;
        change.add(hash, source);
        Ok(())
    })
}

/// Forgets the oldest replies of a session that has ended, at most [`REPLIES_SWEPT_MAX`] of them.
pub(crate) fn sweep(rows: &mut dyn WriteRows, site: &Site<'_>) -> Result<(), ViewError> {
    change(rows, site, |change| {
        change.replies.sweeps = change.replies.sweeps.saturating_add(1);
        (0..REPLIES_SWEPT_MAX).try_for_each(|_| change.forget_first())
    })
}

fn change(
    rows: &mut dyn WriteRows,
    site: &Site<'_>,
    how: impl FnOnce(&mut Change<'_>) -> Result<(), ViewError>,
) -> Result<(), ViewError> {
    let (key, session) = (site.session_key()?, site.session()?);
    let replies = std::mem::take(&mut rows.session_at_mut(&key)?.replies);
    let before = replies.bytes;
    let mut change = Change { rows, site, session, replies };
    how(&mut change)?;
    let replies = change.replies;
    let after = replies.bytes;
    rows.session_at_mut(&key)?.replies = replies;
    if before == after { Ok(()) } else { apply_usage::replaced(rows, site.tenant, session, before, after) }
}

/// Returns true if the time of a reply that was given then is over.
fn is_lapsed(site: &Site<'_>, at: Time) -> bool {
    site.at.since_ms(at) >= REPLIES_KEPT_MS
}

impl Change<'_> {
    fn key(&self, hash: Hash) -> Key {
        Key::reply(self.site.tenant, self.session, hash)
    }

    fn forget_lapsed(&mut self) -> Result<(), ViewError> {
        for forgotten in 0..REPLIES_SWEPT_MAX {
            let enough = forgotten >= REPLIES_FORGOTTEN_MAX && !self.replies.is_long();
            if enough || !self.replies.oldest().is_some_and(|at| is_lapsed(self.site, at)) {
                break;
            }
            self.forget_first()?;
        }
        Ok(())
    }

    /// Forgets the oldest reply; does nothing if there is none.
    fn forget_first(&mut self) -> Result<(), ViewError> {
        if let Some(Chained { first, count, .. }) = self.replies.chained {
            let stored = self.rows.reply_at(&self.key(first))?;
            // Without its row the rest of the chain cannot be found: it is forgotten as a whole.
            let next = stored.as_ref().and_then(|stored| stored.next).filter(|_| count > 1);
            if let Some(stored) = &stored {
                self.delete(first, stored);
            }
            self.replies.chained =
                next.map(|next| Chained { first: next.hash, at: next.at, count: count - 1 });
        } else if !self.replies.listed.is_empty() {
            let first = self.replies.listed.remove(0);
            if first.sequence.is_none()
                && let Some(stored) = self.rows.reply_at(&self.key(first.hash))?
            {
                self.delete(first.hash, &stored);
            }
        }
        Ok(())
    }

    fn delete(&mut self, hash: Hash, stored: &StoredReply) {
        self.rows.delete(self.key(hash));
        self.replies.rows = self.replies.rows.saturating_sub(1);
        self.replies.bytes = self.replies.bytes.saturating_sub(stored.bytes());
    }

    fn put(&mut self, hash: Hash, stored: StoredReply) {
        self.replies.bytes = self.replies.bytes.saturating_add(stored.bytes());
        self.rows.put(self.key(hash), Row::Reply(stored));
    }

    /// Gives the oldest listed reply a row that names the next one, if the list is full.
    fn chain_oldest(&mut self) -> Result<(), ViewError> {
        if self.replies.listed.len() < REPLIES_LISTED_MAX {
            return Ok(());
        }
        let Remembered { hash, at, sequence } = self.replies.listed.remove(0);
        let next = self.replies.listed.first().map(|next| NextReply { hash: next.hash, at: next.at });
        let source = match sequence {
            Some(sequence) => {
                self.replies.rows = self.replies.rows.saturating_add(1);
                ReplySource::History(sequence)
            }
            None => match self.rows.reply_at(&self.key(hash))? {
                Some(stored) => {
                    self.replies.bytes = self.replies.bytes.saturating_sub(stored.bytes());
                    stored.source.clone()
                }
                None => return Err(ViewError("a listed reply has no row".into())),
            },
        };
        self.put(hash, StoredReply { source, next });
        let chained = &mut self.replies.chained;
        let (first, since, count) = chained.map_or((hash, at, 0), |it| (it.first, it.at, it.count));
        *chained = Some(Chained { first, at: since, count: count.saturating_add(1) });
        Ok(())
    }

    fn add(&mut self, hash: Hash, source: ReplySource) {
        let sequence = match source {
            ReplySource::History(sequence) => Some(sequence),
            ReplySource::Here(_) => {
                self.replies.rows = self.replies.rows.saturating_add(1);
                self.put(hash, StoredReply { source, next: None });
                None
            }
        };
        self.replies.listed.push(Remembered { hash, at: self.site.at, sequence });
    }
}
