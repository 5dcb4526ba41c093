//! The end of a session's data.

use minicbor::bytes::ByteVec;
use switchward_machine::{Digest, SessionId, Time};

use crate::catalogue::apply_usage;
use crate::limits::KEPT_DECISIONS_MAX;
use crate::session::{Removal, RemovalFact, Removed, Removing, Replies, Session, StoredReply, redact};
use crate::{Key, Kind, ReadRows, Row, SharedRow, Site, StoredHistory, ViewError, WriteRows};

pub(crate) fn apply(rows: &mut dyn WriteRows, site: &Site<'_>, fact: &RemovalFact) -> Result<(), ViewError> {
    match fact {
        RemovalFact::Begun { how, by, request } => {
            begin(rows, site, site.session()?, *how, by, request.clone())
        }
        RemovalFact::Rows { session, keys } => gone(rows, site, *session, keys),
        RemovalFact::Done { session } => done(rows, site, *session),
        RemovalFact::Expired { session, by, keys } => {
            begin(rows, site, *session, Removing::Expired, by, None)?;
            gone(rows, site, *session, keys)?;
            done(rows, site, *session)
        }
        RemovalFact::Forgotten { keys } => keys.iter().try_for_each(|key| forget(rows, key_of(key)?)),
        RemovalFact::OfTenant { keys } => keys.iter().try_for_each(|key| {
            rows.delete(key_of(key)?);
            Ok(())
        }),
        RemovalFact::Redacted => Ok(()),
    }
}

fn key_of(bytes: &[u8]) -> Result<Key, ViewError> {
    Key::from_bytes(bytes).ok_or_else(|| ViewError("a removed key is too short".into()))
}

fn removal(rows: &dyn ReadRows, site: &Site<'_>, id: SessionId) -> Result<Removal, ViewError> {
    let session = rows.session(site.tenant, id)?;
    let found = session.and_then(|session| session.removal.as_deref().cloned());
    found.ok_or_else(|| ViewError("a session is removed whose removal never began".into()))
}

fn begin(
    rows: &mut dyn WriteRows,
    site: &Site<'_>,
    id: SessionId,
    how: Removing,
    by: &str,
    request: Option<(String, Digest)>,
) -> Result<(), ViewError> {
    let session = rows.session_at_mut(&Key::session(site.tenant, id))?;
    let removed = Removed {
        how,
        by: by.to_owned(),
        at: site.at,
        definition: session.definition.clone(),
        version: session.version,
        created: session.created,
        ended: session.ended.unwrap_or(site.at),
        status: session.status,
        decisions: Vec::new(),
        request,
        expired: how == Removing::Expired,
    };
    mark(session, how, by, site.at);
    keep(rows, Key::removed(site.tenant, id), removed)
}

/// Rows of it are gone, or hold only what remains.
fn gone(rows: &mut dyn WriteRows, site: &Site<'_>, id: SessionId, keys: &[ByteVec]) -> Result<(), ViewError> {
    let how = removal(rows, site, id)?.how;
    keys.iter().try_for_each(|key| row(rows, site, id, how, &key_of(key)?))
}

fn mark(session: &mut Session, how: Removing, by: &str, at: Time) {
    let removal = Removal { how, by: by.to_owned(), at, done: None, upto: 0, head: Digest([0; 32]) };
    session.removal = Some(Box::new(removal));
    if how == Removing::Erased {
        session.key = None;
        session.labels.clear();
        session.contact = None;
        session.early.clear();
        session.answered.clear();
        session.replies = Replies::default();
        session.assistant = None;
        session.reply_tenant = None;
        session.audience.clear();
        session.escalation.clear();
    }
}

/// What remains of the session from now on. What an earlier removal has kept of its decisions is kept on.
fn keep(rows: &mut dyn WriteRows, key: Key, mut removed: Removed) -> Result<(), ViewError> {
    if let Some(before) = rows.removed_at(&key)? {
        let same = before.created == removed.created && removed.how != Removing::Deleted;
        if same {
            removed.decisions.clone_from(&before.decisions);
        }
        // A backup from before the erasure still has the session, so the record of the erasure outlives its expiry.
        if same && before.how == Removing::Erased && removed.how == Removing::Expired {
            removed = Removed { decisions: removed.decisions, expired: true, ..Removed::clone(&before) };
        }
    }
    rows.put(key, Row::Removed(removed));
    Ok(())
}

/// Removes what is kept past the rule for decisions. The record of an erasure stays, without its decisions.
fn forget(rows: &mut dyn WriteRows, key: Key) -> Result<(), ViewError> {
    if rows.removed_at(&key)?.is_some_and(|kept| kept.how == Removing::Erased) {
        rows.removed_at_mut(&key)?.decisions.clear();
    } else {
        rows.delete(key);
    }
    Ok(())
}

/// Removes a row, or what of it `how` does not leave.
fn row(
    rows: &mut dyn WriteRows,
    site: &Site<'_>,
    id: SessionId,
    how: Removing,
    key: &Key,
) -> Result<(), ViewError> {
    if key.is(Kind::History) && how != Removing::Deleted {
        return history(rows, site, id, how, key);
    }
    if how == Removing::Erased && key.is(Kind::Run) {
        redact::redact_run(rows.run_at_mut(key)?);
        return Ok(());
    }
    let reply = if how == Removing::Deleted { None } else { reply_of(rows, key)? };
    rows.delete(key.clone());
    let Some(reply) = reply else { return Ok(()) };
    apply_usage::replaced(rows, site.tenant, id, reply.bytes(), 0)
}

/// The remembered reply of this key; `None` for a key of another kind.
fn reply_of(rows: &dyn ReadRows, key: &Key) -> Result<Option<SharedRow<StoredReply>>, ViewError> {
    if key.is(Kind::Reply) { rows.reply_at(key) } else { Ok(None) }
}

/// A part of its history: who decided what is kept.
fn history(
    rows: &mut dyn WriteRows,
    site: &Site<'_>,
    id: SessionId,
    how: Removing,
    key: &Key,
) -> Result<(), ViewError> {
    let Some(history) = rows.history_at(key)? else { return Ok(()) };
    if how != Removing::Erased {
        let kept = redact::decisions(&history);
        if !kept.is_empty() {
            let removed = rows.removed_at_mut(&Key::removed(site.tenant, id))?;
            let free = KEPT_DECISIONS_MAX.saturating_sub(removed.decisions.len());
            removed.decisions.extend(kept.into_iter().take(free));
        }
        rows.delete(key.clone());
        return apply_usage::replaced(rows, site.tenant, id, history.bytes(), 0);
    }
    let redacted = StoredHistory::from(redact::redacted(&history));
    let sequence =
        key.rest().get(16..24).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_be_bytes);
    let session = rows.session_at_mut(&Key::session(site.tenant, id))?;
    // What was redacted before stays redacted.
    let Some(removal) = session.removal.as_mut().filter(|removal| removal.upto <= sequence) else {
        return Ok(());
    };
    removal.head = redacted.link(removal.head);
    removal.upto = sequence.saturating_add(1);
    let (before, after) = (history.bytes(), redacted.bytes());
    rows.put(key.clone(), Row::History(redacted));
    apply_usage::replaced(rows, site.tenant, id, before, after)
}

fn done(rows: &mut dyn WriteRows, site: &Site<'_>, id: SessionId) -> Result<(), ViewError> {
    let removal = removal(rows, site, id)?;
    let kept = Key::removed(site.tenant, id);
    match removal.how {
        Removing::Deleted => {
            apply_usage::gone(rows, site.tenant, id)?;
            rows.delete(Key::session(site.tenant, id));
        }
        Removing::Expired => {
            apply_usage::gone(rows, site.tenant, id)?;
            rows.delete(Key::session(site.tenant, id));
            if rows
                .removed_at(&kept)?
                .is_some_and(|kept| kept.how == Removing::Expired && kept.decisions.is_empty())
            {
                rows.delete(kept);
            }
        }
        Removing::Erased | Removing::Trimmed => {
            let session = rows.session_at_mut(&Key::session(site.tenant, id))?;
            if removal.how == Removing::Erased {
                session.head = removal.head;
                session.outbox = None;
                session.replies = Replies::default();
                session.calls.clear();
            }
            if let Some(removal) = &mut session.removal {
                removal.done = Some(site.at);
            }
        }
    }
    Ok(())
}
