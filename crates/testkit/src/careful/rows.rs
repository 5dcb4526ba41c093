//! What must hold after every command.

use std::collections::BTreeSet;
use std::sync::Arc;
use switchward_engine::is_remembered;
use switchward_machine::{Digest, Micros, OpenId, RunId, SessionId, TenantId};
use switchward_scenario::{Answer, Broken, Shard};
use switchward_state::approval::ApprovalCommand;
use switchward_state::catalogue::Role;
use switchward_state::delivery::{EffectBody, Outbox, Purpose};
use switchward_state::policy::PolicyCommand;
use switchward_state::run::Slot;
use switchward_state::session::{Session, SessionCommand};
use switchward_state::{Body, Command, Key, Kind, OpenItem, ReadRows as _, Row, Scope, View};

use super::CarefulMemory;
use super::assistants::assistant_again;
use super::leases::leased;

/// A sequence that no session ever had.
const NEVER: u64 = u64::MAX;

/// Restarts, and sends the command again in two ways that must change nothing. Whatever is accepted is remembered under the
/// command's request id. `before` is the number of decisions before the command.
pub(super) fn look_after(
    memory: &mut CarefulMemory,
    command: &Command,
    answer: &Answer,
    before: u64,
) -> Result<(), Broken> {
    let changed = memory.decisions() != before;
    restart(memory)?;
    let Ok(reply) = answer else { return Ok(()) };
    // What is removed is only answered while its removal begins.
    let removes = matches!(command.body, Body::Session(SessionCommand::Remove(_)));
    if (changed || !removes) && command.request.is_some() && !remembers(memory, command)? {
        return Err(Broken(format!("{command:?} is not remembered")));
    }
    leased(memory, command, reply)?;
    assistant_again(memory, command)?;
    first_answer(memory, command)?;
    if command.request.is_some() {
        let again = unchanged(memory, command)?;
        if again.as_ref() != Ok(reply) {
            return Err(Broken(format!(
                "a repetition of {command:?} got the answer {again:?}, not {reply:?}"
            )));
        }
    }
    if let Scope::Session(_) = command.scope {
        let mut stale = Command { request: None, expected_sequence: Some(NEVER), ..command.clone() };
        if let Body::Policy(PolicyCommand::Authorize(call)) = &mut stale.body {
            call.call_id.push_str("-again");
        }
        let answer = unchanged(memory, &stale)?;
        if answer.is_ok() {
            return Err(Broken(format!(
                "{stale:?} was accepted with a sequence that never existed: {answer:?}"
            )));
        }
    }
    Ok(())
}

/// Sends the command of a gate as an actor without the right to it, and about content that the gate does not
/// show: both must be refused and change nothing, and so must a report of no call. A new request is not
/// remembered.
pub(super) fn look_before(memory: &mut CarefulMemory, command: &Command) -> Result<(), Broken> {
    if remembers(memory, command)? {
        return Err(Broken(format!("{command:?} is new, but is already remembered")));
    }
    let mut other = Command { request: None, ..command.clone() };
    let elsewhere = Some(Digest::of(b"what the gate does not show"));
    if let Body::Approval(ApprovalCommand::DecideGate(decide)) = &mut other.body {
        decide.shown = elsewhere;
    } else if let Body::Approval(ApprovalCommand::DiscussGate(discuss)) = &mut other.body {
        discuss.shown = elsewhere;
    } else if let Body::Approval(ApprovalCommand::AnswerGate(answer)) = &mut other.body {
        answer.shown = elsewhere;
    } else if let Body::Policy(PolicyCommand::ReportCall(report)) = &mut other.body {
        (report.call_id, report.capability) = (Some("of no call".into()), None);
    } else {
        return Ok(());
    }
    let mut wrongs = vec![other];
    if !matches!(command.body, Body::Policy(PolicyCommand::ReportCall(_))) {
        let mut agent = Command { request: None, ..command.clone() };
        agent.actor.role = Role::Agent;
        wrongs.push(agent);
    }
    for wrong in wrongs {
        let answer = unchanged(memory, &wrong)?;
        if answer.is_ok() {
            return Err(Broken(format!("{wrong:?} must be refused, but got the answer {answer:?}")));
        }
    }
    Ok(())
}

/// An answer to an already answered part of a task is refused with the first answer.
fn first_answer(memory: &mut CarefulMemory, command: &Command) -> Result<(), Broken> {
    let Body::Approval(ApprovalCommand::AnswerGate(given)) = &command.body else { return Ok(()) };
    let again = unchanged(memory, &Command { request: None, ..command.clone() })?;
    let facts = again.as_ref().err().map(|refusal| refusal.facts.as_slice()).unwrap_or_default();
    let shown = facts.iter().find(|(name, _)| *name == "answer").map(|(_, shown)| shown.as_str());
    let first = given.answer.to_string();
    if shown.is_some_and(|shown| !shown.is_empty() && first.starts_with(shown)) {
        return Ok(());
    }
    Err(Broken(format!("{first} was the first answer, but the next caller got {again:?}")))
}

fn remembers(memory: &CarefulMemory, command: &Command) -> Result<bool, Broken> {
    let home = memory.home(command.tenant, &command.scope);
    Ok(is_remembered(&memory.shards()[home], command)?)
}

/// Executes a command and makes sure that no shard decided anything for it.
pub(super) fn unchanged(memory: &mut CarefulMemory, command: &Command) -> Result<Answer, Broken> {
    let before = memory.decisions();
    let answer = memory.execute(command.clone())?;
    if memory.decisions() != before {
        return Err(Broken(format!("{command:?} must not change anything, but did: {answer:?}")));
    }
    Ok(answer)
}

/// Restarts all shards, which must change nothing. A shard that still has the rows of its last restart would
/// only get the same result again, and is skipped.
pub(super) fn restart(memory: &mut CarefulMemory) -> Result<(), Broken> {
    let mut restarted = std::mem::take(&mut memory.observer_mut().restarted);
    restarted.resize_with(memory.shards().len(), Shard::default);
    for (shard, last) in memory.shards_mut().iter_mut().zip(&mut restarted) {
        if !shard.shares_all_rows(last) {
            reopened(shard, last)?;
            audit(shard)?;
            last.clone_from(shard);
        }
    }
    memory.observer_mut().restarted = restarted;
    balance(memory)
}

/// Encodes every row and decodes it again, and rebuilds the indices. Rows that `last` has were read back
/// already.
fn reopened(shard: &mut Shard, last: &Shard) -> Result<(), Broken> {
    let mut rows = Vec::new();
    for (key, row) in shard.shared_rows().filter(|(key, _)| !key.is(Kind::Index)) {
        let known = last.row(key)?.filter(|known| Arc::ptr_eq(known, row));
        let row = known.map_or_else(|| read_back(row), Ok)?;
        let key = Key::from_bytes(key.as_bytes()).ok_or_else(|| Broken("a key is too short".into()))?;
        rows.push((key, row));
    }
    let fresh = shard.restored(rows);
    if !fresh.shared_rows().eq(shard.shared_rows()) {
        return Err(Broken("the rows differ after encoding and decoding".into()));
    }
    *shard = fresh;
    Ok(())
}

/// A row as it is read back. It has the same stored form, so that reading it back again makes the same row.
fn read_back(row: &Row) -> Result<Arc<Row>, Broken> {
    let bytes = row.encode();
    let back = Row::decode(&bytes).map_err(|error| Broken(error.0))?;
    if back.encode() != bytes {
        return Err(Broken(format!("a row has two stored forms: {back:?}")));
    }
    Ok(Arc::new(back))
}

/// The reservations in ledgers are those of calls and approvals, by name.
fn balance(memory: &CarefulMemory) -> Result<(), Broken> {
    let (mut wanted, mut found) = (BTreeSet::new(), BTreeSet::new());
    for (key, row) in memory.shards().iter().flat_map(Shard::rows) {
        if let Row::Call(call) = row {
            wanted.extend(call.reservation.map(|name| (key.tenant_of(), name)));
        } else if let Row::Grant(grant) = row {
            wanted.extend(grant.reservation.map(|name| (key.tenant_of(), name)));
        } else if let Row::Ledger(ledger) = row {
            found.extend(ledger.reservations.iter().map(|held| (key.tenant_of(), held.call)));
        }
    }
    if wanted == found {
        return Ok(());
    }
    Err(Broken(format!("calls and approvals reserve {wanted:?}, but ledgers hold {found:?}")))
}

/// Compares rows that must agree. All effects have been relayed by then, so none is under way.
fn audit(shard: &Shard) -> Result<(), Broken> {
    for (key, row) in shard.rows() {
        if let Row::Session(session) = row {
            let id = key.session_of().ok_or_else(|| Broken("a session's key has no id".into()))?;
            held(shard, key.tenant_of(), id, session)?;
        } else if let Row::Ledger(ledger) = row
            && ledger.reservations.iter().any(|held| !held.confirmed)
        {
            return Err(Broken(format!("a ledger holds a reservation that nobody uses: {ledger:?}")));
        } else if let Row::Outbox(effect) = row
            && let (EffectBody::Notice { gate, .. }, Some(id)) = (&effect.body, key.session_of())
        {
            notice(shard, key.tenant_of(), id, *gate)?;
        } else if let Row::Outbox(effect) = row
            && let (
                EffectBody::Message { gate: Some(gate), purpose: Purpose::Ask | Purpose::Remind, .. },
                Some(id),
            ) = (&effect.body, key.session_of())
        {
            asked(shard, key.tenant_of(), id, *gate, effect.number)?;
        }
    }
    Ok(())
}

/// What a session has reserved is the sum of its calls and its approvals, and its lists name all of them.
fn held(shard: &Shard, tenant: TenantId, id: SessionId, session: &Session) -> Result<(), Broken> {
    let mut sum = Micros(0);
    let (mut calls, mut grants, mut open) = (0, 0, 0);
    let mut outbox = Outbox::default();
    for (key, row) in shard.rows().filter(|(key, _)| key.tenant_of() == tenant) {
        if key.is(Kind::Index) || key.session_of() != Some(id) {
            continue;
        }
        if let Row::Call(call) = row {
            calls += 1;
            sum = sum.plus(call.reserved);
        } else if let Row::Grant(grant) = row {
            grants += 1;
            sum = sum.plus(grant.reserved);
        } else if let Row::OpenItem(item) = row {
            open += 1;
            runs(shard, tenant, id, item.head().run)?;
            listed(session, key, item)?;
        } else if let Row::Slot(Slot::Runs(child)) = row {
            runs(shard, tenant, id, *child)?;
        } else if let Row::Outbox(effect) = row
            && !effect.body.inner()
        {
            if effect.body.published() {
                outbox.published += 1;
            } else {
                outbox.count += 1;
                outbox.bytes += u64::try_from(effect.body.bytes()).unwrap_or(u64::MAX);
            }
            outbox.dead_letters += u32::from(effect.dead_letter().is_some());
        }
    }
    if session.outbox() != outbox {
        return Err(Broken(format!(
            "the outbox has {outbox:?}, but the session counts {:?}",
            session.outbox()
        )));
    }
    let known = (session.calls.len(), session.grants.len(), session.items.len());
    if (calls, grants, open) != known || sum.0 != session.meters.reserved_micros {
        return Err(Broken(format!(
            "{calls} calls, {grants} approvals and {open} open items reserve {sum} USD, but the session has {session:?}"
        )));
    }
    Ok(())
}

/// The session lists an open item as what it is.
fn listed(session: &Session, key: &Key, item: &OpenItem) -> Result<(), Broken> {
    let known = session.items.iter().any(|listed| {
        (listed.run, listed.kind) == (item.head().run, item.kind())
            && key.rest()[16..] == listed.item.0.to_be_bytes()
    });
    if known { Ok(()) } else { Err(Broken(format!("{item:?} is not in the list {:?}", session.items))) }
}

/// A run that has ended has no open items.
fn runs(shard: &Shard, tenant: TenantId, id: SessionId, run: RunId) -> Result<(), Broken> {
    match shard.row(&Key::run(tenant, id, run))?.as_deref() {
        Some(Row::Run(row)) if row.ending.is_none() => Ok(()),
        Some(_) | None => Err(Broken(format!("{run:?} has open items, but has ended"))),
    }
}

/// A notice waits only for as long as its gate is open.
fn notice(shard: &Shard, tenant: TenantId, id: SessionId, gate: OpenId) -> Result<(), Broken> {
    match shard.gate(tenant, id, gate)? {
        Some(_) => Ok(()),
        None => Err(Broken(format!("a notice is about {gate:?}, which is not open"))),
    }
}

/// A mail that asks for a decision waits only while its gate is open and knows of it; answers may wait longer.
fn asked(shard: &Shard, tenant: TenantId, id: SessionId, gate: OpenId, number: u64) -> Result<(), Broken> {
    let open = shard.gate(tenant, id, gate)?;
    let asked = open.as_ref().and_then(|open| open.body.asked.as_ref());
    let known = asked.is_some_and(|asked| asked.mails.contains(&number));
    if known { Ok(()) } else { Err(Broken(format!("a mail asks about {gate:?}, which is not open"))) }
}
