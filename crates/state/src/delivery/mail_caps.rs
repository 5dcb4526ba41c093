//! How many mails go out in a calendar hour of UTC: of a tenant, of one of its definitions, of one requester, to one
//! address, and of one requester to one address, whichever sessions they come from. Spellings that lead to one mailbox
//! are one address here.
//!
//! A mail is counted when it has gone out, in rows of the shard that its session belongs to, so that another leader and a
//! server that was restarted go on with the same counts. The server adds up the counts of all shards before it sends a mail.
//! The last part of every cap is kept for the first mails about gates of which nobody is notified yet, so that a flood of
//! other mails does not keep a gate from its approvers. One requester cannot use up an address: its cap is twice the
//! requester's. Codes for decision pages are not counted.

use switchward_machine::{Channel, Digest, OpenId, Period, SessionId, TenantId, Time};

use crate::approval::{OpenGate, mailbox};
use crate::delivery::{Effect, EffectBody, MailCap, MailFull, Purpose};
use crate::limits::MAILS_COUNTED_MAX;
use crate::policy::period;
use crate::{Actor, Key, ReadRows, Row, View, ViewError, WriteRows};

/// One count that a mail is a part of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct MailCount {
    /// What it counts by.
    pub cap: MailCap,
    /// Its row.
    pub key: Key,
}

/// The counts that an effect is a part of if it goes out at this time; empty for an effect that is not a mail or not
/// counted.
///
/// # Errors
/// A row cannot be read.
pub fn mail_counts(
    view: &dyn View,
    tenant: TenantId,
    session: SessionId,
    effect: &Effect,
    now: Time,
) -> Result<Vec<MailCount>, ViewError> {
    counts(view, tenant, session, effect, now)
}

impl MailFull {
    /// A cap that is reached until the hour of this time ends.
    #[must_use]
    pub fn of_hour(cap: MailCap, now: Time) -> Self {
        Self { cap, until: period::next(Period::Hour, now) }
    }
}

/// Finds whether a mail may go out now. `under_way` says how many mails are on their way that will be a part of a count.
///
/// # Errors
/// A row cannot be read.
pub fn mail_full(
    view: &dyn View,
    tenant: TenantId,
    session: SessionId,
    effect: &Effect,
    counts: &[MailCount],
    now: Time,
    under_way: impl Fn(&MailCount) -> u32,
) -> Result<Option<MailFull>, ViewError> {
    full(view, tenant, session, effect, counts, now, under_way)
}

/// How many mails an hour each of these counts may have for a mail to go out: all of its cap for the first mail about a gate,
/// and the part that any mail may use otherwise. In the order of the counts.
///
/// # Errors
/// A row cannot be read.
pub fn mail_limits(
    view: &dyn View,
    tenant: TenantId,
    session: SessionId,
    effect: &Effect,
    counts: &[MailCount],
) -> Result<Vec<u32>, ViewError> {
    let first = notifies_first(view, tenant, session, effect)?;
    let limit = |count: &MailCount| if first { count.cap.most() } else { count.cap.most_of_any() };
    Ok(counts.iter().map(limit).collect())
}

fn counts(
    rows: &dyn ReadRows,
    tenant: TenantId,
    session: SessionId,
    effect: &Effect,
    now: Time,
) -> Result<Vec<MailCount>, ViewError> {
    let EffectBody::Message { channel: Channel::Email, to, purpose, gate, .. } = &effect.body else {
        return Ok(Vec::new());
    };
    if *purpose == Purpose::Code {
        return Ok(Vec::new());
    }
    let requester = requester(rows, tenant, session, *gate)?;
    let definition = rows.session(tenant, session)?.map(|session| session.definition.clone());
    // Caps count by mailbox: `kim+1@…` and `kim+2@…` reach the same person, who must not get more mail for it.
    let address = mailbox(to).unwrap_or_else(|| to.to_lowercase());
    let hour = period::start(Period::Hour, now);
    let count = |cap: MailCap, of: &[&str]| {
        let parts: Vec<&[u8]> = of.iter().map(|part| part.as_bytes()).collect();
        let digest = Digest::of_parts(&[&[cap as u8], parts.concat().as_slice()]);
        MailCount { cap, key: Key::mailed(tenant, hour, digest) }
    };
    let mut all = vec![count(MailCap::Tenant, &[])];
    all.extend(definition.map(|name| count(MailCap::Definition, &[&name])));
    all.extend(requester.as_deref().map(|subject| count(MailCap::Requester, &[subject])));
    all.push(count(MailCap::Address, &[&address]));
    let pair =
        requester.as_deref().map(|subject| count(MailCap::RequesterToAddress, &[subject, "\0", &address]));
    all.extend(pair);
    Ok(all)
}

/// The requester of a mail, see [`MailCap::Requester`]; `None` if the server itself started the session.
fn requester(
    rows: &dyn ReadRows,
    tenant: TenantId,
    session: SessionId,
    gate: Option<OpenId>,
) -> Result<Option<String>, ViewError> {
    let server = Actor::server();
    if let Some(gate) = gate
        && let Some(open) = rows.gate(tenant, session, gate)?
        && open.body.requester != server.subject
    {
        return Ok(Some(open.body.requester.clone()));
    }
    let first = rows.history_at(&Key::history(tenant, session, 0))?;
    Ok(first.filter(|first| first.by.role != server.role).map(|first| first.by.subject.clone()))
}

fn full(
    rows: &dyn ReadRows,
    tenant: TenantId,
    session: SessionId,
    effect: &Effect,
    counts: &[MailCount],
    now: Time,
    under_way: impl Fn(&MailCount) -> u32,
) -> Result<Option<MailFull>, ViewError> {
    let mut unnotified = None;
    for one in counts {
        let MailCount { cap, key } = one;
        let count = rows.mailed_at(key)?.map_or(0, |count| *count).saturating_add(under_way(one));
        if count < cap.most_of_any() {
            continue;
        }
        let unnotified = match unnotified {
            Some(known) => known,
            None => *unnotified.insert(notifies_first(rows, tenant, session, effect)?),
        };
        if !unnotified || count >= cap.most() {
            return Ok(Some(MailFull::of_hour(*cap, now)));
        }
    }
    Ok(None)
}

/// Whether a mail is the request of an open gate of which nobody has been notified so far.
fn notifies_first(
    rows: &dyn ReadRows,
    tenant: TenantId,
    session: SessionId,
    effect: &Effect,
) -> Result<bool, ViewError> {
    let EffectBody::Message { gate: Some(gate), purpose: Purpose::Ask, .. } = &effect.body else {
        return Ok(false);
    };
    let Some(open) = rows.gate(tenant, session, *gate)? else { return Ok(false) };
    // A mail that has arrived is removed from those of the gate.
    Ok(open.body.asked.as_ref().is_some_and(|asked| asked.mails.len() >= asked.to.len()))
}

/// A mail has gone out.
pub(crate) fn count(
    rows: &mut dyn WriteRows,
    tenant: TenantId,
    session: SessionId,
    number: u64,
    now: Time,
) -> Result<(), ViewError> {
    let Some(effect) = rows.outbox_at(&Key::outbox(tenant, session, number))? else { return Ok(()) };
    for MailCount { key, .. } in counts(rows, tenant, session, &effect, now)? {
        let count = rows.mailed_at(&key)?.map_or(0, |count| *count);
        rows.put(key, Row::Mailed(count.saturating_add(1)));
    }
    Ok(())
}

/// Those who are asked at an open gate and whose mails wait for a cap: addresses with the cap that they wait for. A mail
/// that nobody has tried to send so far is counted with those that have gone out at this time, the first
/// [`MAILS_COUNTED_MAX`] of the gate.
pub fn waiting(
    rows: &dyn ReadRows,
    tenant: TenantId,
    session: SessionId,
    open: &OpenGate,
    now: Time,
) -> Result<Vec<(String, MailFull)>, ViewError> {
    let Some(asked) = &open.body.asked else { return Ok(Vec::new()) };
    let (mut waiting, mut counted) = (Vec::new(), 0);
    for number in &asked.mails {
        let Some(effect) = rows.outbox_at(&Key::outbox(tenant, session, *number))? else { continue };
        // Who gets a reminder has been asked before.
        let EffectBody::Message { to, purpose: Purpose::Ask, .. } = &effect.body else { continue };
        if effect.dead_letter().is_some() {
            continue;
        }
        let put_off = effect.last().and_then(|last| last.code.mail_cap());
        let full = match put_off.filter(|_| effect.deliver_at > now) {
            Some(cap) => Some(MailFull { cap, until: effect.deliver_at }),
            None if counted < MAILS_COUNTED_MAX => {
                counted += 1;
                let counts = counts(rows, tenant, session, &effect, now)?;
                full(rows, tenant, session, &effect, &counts, now, |_| 0)?
            }
            None => None,
        };
        waiting.extend(full.map(|full| (to.clone(), full)));
    }
    Ok(waiting)
}
