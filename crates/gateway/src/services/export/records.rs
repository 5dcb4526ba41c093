//! Rows as the records of an export.

use prost::Message as _;
use switchward_api::v1::{self, export_record::Record};
use switchward_machine::{SessionId, Time};
use switchward_state::Actor;
use switchward_state::catalogue::{ChangedPart, TenantChange};
use switchward_state::session::{Removed, RetainedDecision, Session};

use crate::auth::Caller;
use crate::convert::{json, timestamp};
use crate::limits::EXPORT_PART_BYTES_MAX;
use crate::{convert, hide, names};

/// The record as it is exported, without reply tokens and mail tokens.
pub(super) fn masked(record: Record) -> v1::ExportRecord {
    hide::masked("ExportRecord", v1::ExportRecord { record: Some(record) })
}

fn actor(actor: &Actor) -> v1::ExportedActor {
    v1::ExportedActor { subject: actor.subject.clone(), role: convert::role(actor.role).into() }
}

fn definition(caller: &Caller, name: &str) -> String {
    if name.is_empty() { String::new() } else { names::of_definition(caller, name) }
}

/// A session as it was at `at`: what happened later is left out.
pub(super) fn session(
    caller: &Caller,
    id: SessionId,
    row: &Session,
    started_by: Option<&Actor>,
    at: Time,
) -> Record {
    let ended = row.ended.filter(|ended| *ended <= at);
    let status = ended.map(|_| convert::sessions::status(row.status)).unwrap_or_default();
    Record::Session(v1::ExportedSession {
        name: names::of_session(caller, id),
        session_id: row.key.clone().unwrap_or_default(),
        definition: definition(caller, &row.definition),
        version: row.version,
        role: row.role.clone(),
        labels: row.labels.iter().cloned().collect(),
        create_time: Some(timestamp(row.created)),
        contact: row.contact.clone().unwrap_or_default(),
        started_by: started_by.map(actor),
        end_time: ended.map(timestamp),
        status: status.into(),
    })
}

pub(super) fn event(caller: &Caller, id: SessionId, event: v1::SessionEvent) -> Record {
    Record::Event(v1::ExportedEvent { session: names::of_session(caller, id), event: Some(event) })
}

/// A decision of a person.
pub(super) fn decision(caller: &Caller, id: SessionId, decision: &RetainedDecision) -> Record {
    Record::Decision(v1::ExportedDecision {
        session: names::of_session(caller, id),
        gate: names::of_gate(caller, id, decision.gate),
        decision: decision.what.clone(),
        by: decision.by.clone(),
        time: Some(timestamp(decision.at)),
    })
}

/// What remains of a session.
pub(super) fn removal(caller: &Caller, id: SessionId, removed: &Removed) -> Record {
    Record::Removal(v1::ExportedRemoval {
        session: names::of_session(caller, id),
        how: removed.how.word().to_owned(),
        by: removed.by.clone(),
        time: Some(timestamp(removed.at)),
        definition: definition(caller, &removed.definition),
        version: removed.version,
        create_time: Some(timestamp(removed.created)),
        end_time: Some(timestamp(removed.ended)),
        status: convert::sessions::status(removed.status).into(),
    })
}

/// A change of the tenant: one record, and more if one would be too large for a page.
pub(super) fn change(number: u64, change: &TenantChange) -> Vec<Record> {
    let (mut records, mut parts, mut bytes) = (Vec::new(), Vec::new(), 0);
    let record = |parts| {
        Record::TenantChange(v1::ExportedTenantChange {
            number,
            time: Some(timestamp(change.at)),
            by: Some(actor(&change.by)),
            parts,
        })
    };
    for part in change.parts.iter().map(part) {
        let more = part.encoded_len();
        if !parts.is_empty() && bytes + more > EXPORT_PART_BYTES_MAX {
            records.push(record(std::mem::take(&mut parts)));
            bytes = 0;
        }
        bytes += more;
        parts.push(part);
    }
    records.push(record(parts));
    records
}

fn part(part: &ChangedPart) -> v1::ExportedPart {
    v1::ExportedPart {
        name: part.name.clone(),
        before: Some(json::to_value(&part.before.0)),
        after: Some(json::to_value(&part.after.0)),
    }
}
