//! The replies that a session remembers, so that a request that comes again is answered and not carried out again.
//!
//! The newest are listed in the session's row and point into its history. One that is still remembered when the list is
//! full gets a row of its own, which names the reply after it: so each reply is written at most once more, and the
//! oldest is found without a search. What is older than [`REPLIES_KEPT_MS`] is forgotten when others are added, a few
//! with each, so no step does more than a fixed amount of work for it.

use minicbor::{CborLen, Decode, Encode};
use switchward_machine::{SessionId, Time};

use crate::limits::{
    REPLIES_FORGOTTEN_MAX, REPLIES_KEPT_MS, REPLIES_LISTED_MAX, REPLIES_MAX, REPLIES_RESERVED,
    REPLIES_SWEPT_MAX,
};
use crate::{Answered, Key, Row, Site, ViewError, Working};

/// The hash of a request id, see [`RequestId::hash`](crate::RequestId::hash).
type Hash = [u8; 16];

/// The replies of a session, oldest first. A part of its row.
#[derive(Debug, Clone, Default, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Replies {
    /// The newest, at most [`REPLIES_LISTED_MAX`], oldest first.
    #[cbor(n(0), with = "crate::row::remembered")]
    listed: Vec<Remembered>,
    /// Those before them, which have rows of their own.
    #[n(1)]
    chained: Option<Chained>,
    /// How many rows of replies the session has.
    #[cbor(n(2), default)]
    rows: u32,
    /// How often a sweep has forgotten some of them after the session's end.
    #[cbor(n(3), default)]
    sweeps: u32,
}

/// Replies with rows of their own, each of which names the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Chained {
    /// The request id of the oldest.
    #[cbor(n(0), with = "minicbor::bytes")]
    pub first: Hash,
    /// When the oldest was given.
    #[n(1)]
    pub at: Time,
    /// How many they are; at least 1.
    #[n(2)]
    pub count: u32,
}

/// A reply that is listed in its session's row. Stored form: 32 bytes of a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remembered {
    /// Of the request id.
    pub hash: Hash,
    /// When the reply was given.
    pub at: Time,
    /// The sequence of the first event of what the command did, which is the key of its history; `None` if it did
    /// nothing: then the reply has a row of its own.
    pub sequence: Option<u64>,
}

/// A session's reply in a row of its own, under its request id. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct StoredReply {
    /// What the request was answered with.
    #[n(0)]
    pub source: ReplySource,
    /// The reply that was given after it; `None` while it is itself still listed.
    #[n(1)]
    pub next: Option<NextReply>,
}

/// Where a reply is.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum ReplySource {
    /// In the history, under this sequence.
    #[n(0)]
    History(#[n(0)] u64),
    /// Here, because the command did nothing that a history could hold.
    #[n(1)]
    Here(#[n(0)] Box<Answered>),
}

/// The reply that was given after another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct NextReply {
    /// Of its request id.
    #[cbor(n(0), with = "minicbor::bytes")]
    pub hash: Hash,
    /// When it was given.
    #[n(1)]
    pub at: Time,
}

impl Replies {
    /// These replies, all of them listed.
    #[must_use]
    pub fn of(listed: Vec<Remembered>) -> Self {
        Self { listed, ..Self::default() }
    }

    /// The newest, oldest first.
    #[must_use]
    pub fn listed(&self) -> &[Remembered] {
        &self.listed
    }

    /// Those before them; `None` if all are listed.
    #[must_use]
    pub fn chained(&self) -> Option<&Chained> {
        self.chained.as_ref()
    }

    /// How many rows of replies the session has; 0 if it certainly has none.
    #[must_use]
    pub fn rows(&self) -> u32 {
        self.rows
    }

    /// How often a sweep has forgotten some of them after the session's end.
    #[must_use]
    pub fn sweeps(&self) -> u32 {
        self.sweeps
    }

    /// Returns true if no reply is remembered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.listed.is_empty() && self.chained.is_none()
    }

    /// How many are remembered.
    #[must_use]
    pub fn count(&self) -> usize {
        let chained = self.chained.map_or(0, |chained| chained.count);
        self.listed.len().saturating_add(usize::try_from(chained).unwrap_or(usize::MAX))
    }

    /// When the oldest was given.
    #[must_use]
    pub fn oldest(&self) -> Option<Time> {
        self.chained.map(|chained| chained.at).or_else(|| self.listed.first().map(|first| first.at))
    }

    /// How long a command must wait until its reply can be remembered, milliseconds; `None` if it can be remembered now.
    /// The last [`REPLIES_RESERVED`] of the [`REPLIES_MAX`] replies are for commands that begin nothing.
    #[must_use]
    pub fn full_for_ms(&self, now: Time, reserve: Reserve) -> Option<u64> {
        let max = match reserve {
            Reserve::Left => REPLIES_MAX - REPLIES_RESERVED,
            Reserve::Used => REPLIES_MAX,
        };
        let oldest = self.oldest().filter(|_| self.count() >= max)?;
        REPLIES_KEPT_MS.checked_sub(now.since_ms(oldest)).filter(|left| *left > 0)
    }
}

/// Whether a command may use the capacity that is reserved for commands that begin nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reserve {
    /// It leaves the reserve.
    Left,
    /// It may use the reserve.
    Used,
}

/// The replies of one session while they change, with its rows.
struct Change<'w, 'b> {
    rows: &'w mut Working<'b>,
    site: &'w Site<'w>,
    session: SessionId,
    replies: Replies,
}

/// Remembers the reply to a command of the site's session, and forgets some of those whose time is over.
pub(crate) fn remember(
    rows: &mut Working<'_>,
    site: &Site<'_>,
    hash: Hash,
    source: ReplySource,
) -> Result<(), ViewError> {
    change(rows, site, |change| {
        change.forget_lapsed()?;
        change.make_room()?;
        change.add(hash, source);
        Ok(())
    })
}

/// Forgets the oldest replies of a session that has ended, at most [`REPLIES_SWEPT_MAX`] of them.
pub(crate) fn sweep(rows: &mut Working<'_>, site: &Site<'_>) -> Result<(), ViewError> {
    change(rows, site, |change| {
        change.replies.sweeps = change.replies.sweeps.saturating_add(1);
        (0..REPLIES_SWEPT_MAX).try_for_each(|_| change.forget_first())
    })
}

fn change(
    rows: &mut Working<'_>,
    site: &Site<'_>,
    how: impl FnOnce(&mut Change<'_, '_>) -> Result<(), ViewError>,
) -> Result<(), ViewError> {
    let (key, session) = (site.session_key()?, site.session()?);
    let replies = std::mem::take(&mut rows.session_at_mut(&key)?.replies);
    let mut change = Change { rows, site, session, replies };
    how(&mut change)?;
    let replies = change.replies;
    rows.session_at_mut(&key)?.replies = replies;
    Ok(())
}

impl Change<'_, '_> {
    fn key(&self, hash: Hash) -> Key {
        Key::reply(self.site.tenant, self.session, hash)
    }

    fn forget_lapsed(&mut self) -> Result<(), ViewError> {
        for _ in 0..REPLIES_FORGOTTEN_MAX {
            let lapsed = |at: Time| self.site.at.since_ms(at) >= REPLIES_KEPT_MS;
            if !self.replies.oldest().is_some_and(lapsed) {
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
            if stored.is_some() {
                self.delete(first);
            }
            self.replies.chained =
                next.map(|next| Chained { first: next.hash, at: next.at, count: count - 1 });
        } else if !self.replies.listed.is_empty() {
            let first = self.replies.listed.remove(0);
            if first.sequence.is_none() {
                self.delete(first.hash);
            }
        }
        Ok(())
    }

    fn delete(&mut self, hash: Hash) {
        self.rows.delete(self.key(hash));
        self.replies.rows = self.replies.rows.saturating_sub(1);
    }

    fn put(&mut self, hash: Hash, stored: StoredReply) {
        self.rows.put(self.key(hash), Row::Reply(stored));
    }

    /// Gives the oldest listed reply a row that names the next one, if the list is full.
    fn make_room(&mut self) -> Result<(), ViewError> {
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
                Some(stored) => stored.source.clone(),
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
