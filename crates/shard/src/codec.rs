//! How log entries, votes and applied positions are written down. Stored forms, each with a form byte.

use bytes::Bytes;
use openraft::EntryPayload;
use openraft::vote::leader_id_std::CommittedLeaderId;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io;

use crate::types::{Entry, LogId, Membership, Payload};

/// The form of an entry: form byte, term (8 bytes, big end first), tag, and what the tag says.
const ENTRY_FORM: u8 = 1;
/// The form of everything else: form byte, then JSON.
const JSON_FORM: u8 = 1;

const BLANK: u8 = 0;
const DECISION: u8 = 1;
const MEMBERSHIP: u8 = 2;

const HEADER_BYTES: usize = 10;

/// The bytes of an entry; its index is the log's business.
pub(crate) fn encode_entry(entry: &Entry) -> io::Result<Bytes> {
    let (tag, body) = match &entry.payload {
        EntryPayload::Blank => (BLANK, Bytes::new()),
        EntryPayload::Normal(Payload(bytes)) => (DECISION, bytes.clone()),
        EntryPayload::Membership(members) => (MEMBERSHIP, Bytes::from(serde_json::to_vec(members)?)),
    };
    let mut out = Vec::with_capacity(HEADER_BYTES + body.len());
    out.push(ENTRY_FORM);
    out.extend_from_slice(&entry.log_id.leader_id.term.to_be_bytes());
    out.push(tag);
    out.extend_from_slice(&body);
    Ok(Bytes::from(out))
}

/// The entry of an index.
pub(crate) fn decode_entry(index: u64, bytes: &Bytes) -> io::Result<Entry> {
    let log_id = decode_log_id(index, bytes)?;
    let body = bytes.slice(HEADER_BYTES..);
    let payload = match bytes[HEADER_BYTES - 1] {
        BLANK => EntryPayload::Blank,
        DECISION => EntryPayload::Normal(Payload(body)),
        MEMBERSHIP => EntryPayload::Membership(serde_json::from_slice(&body)?),
        tag => return Err(bad(format!("entry {index} has the unknown tag {tag}"))),
    };
    Ok(Entry { log_id, payload })
}

/// The log id of the entry of an index.
pub(crate) fn decode_log_id(index: u64, bytes: &[u8]) -> io::Result<LogId> {
    let header = bytes.get(..HEADER_BYTES).filter(|header| header[0] == ENTRY_FORM);
    let header = header.ok_or_else(|| bad(format!("entry {index} is not of form {ENTRY_FORM}")))?;
    let term =
        header[1..9].try_into().map(u64::from_be_bytes).map_err(|_| bad("an entry is cut short".into()))?;
    Ok(LogId { leader_id: CommittedLeaderId::new(term), index })
}

/// How far a state machine has come; kept with the rows that it covers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Applied {
    /// The last entry that was applied.
    pub(crate) last: Option<LogId>,
    /// The last membership that was applied.
    pub(crate) membership: Membership,
}

/// The bytes of a small stored value.
pub(crate) fn encode_json<T: Serialize>(value: &T) -> io::Result<Bytes> {
    let mut out = vec![JSON_FORM];
    serde_json::to_writer(&mut out, value)?;
    Ok(Bytes::from(out))
}

/// The small stored value of these bytes.
pub(crate) fn decode_json<T: DeserializeOwned>(bytes: &[u8]) -> io::Result<T> {
    match bytes.split_first() {
        Some((&JSON_FORM, rest)) => Ok(serde_json::from_slice(rest)?),
        Some(_) | None => Err(bad(format!("a stored value is not of form {JSON_FORM}"))),
    }
}

fn bad(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}
