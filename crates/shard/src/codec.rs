//! The encoding of log entries, votes and positions, each with a form byte.

use bytes::Bytes;
use openraft::{EntryPayload, vote::leader_id_std::CommittedLeaderId};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::io;

use crate::types::{Entry, LogId, Membership, Payload};

/// Stored form. An entry: form byte, term (8 bytes, big-endian), tag, and the tag's payload.
const ENTRY_FORM: u8 = 1;
/// Stored form. Votes, applied and purged positions: form byte, then JSON.
const JSON_FORM: u8 = 1;

const BLANK: u8 = 0;
const DECISION: u8 = 1;
const MEMBERSHIP: u8 = 2;

pub(crate) const HEADER_BYTES: usize = 10;

/// Encodes an entry, without its index, which the log stores.
///
/// # Errors
/// The membership cannot be written as JSON.
pub fn encode_entry(entry: &Entry) -> io::Result<Bytes> {
    let (header, body) = entry_parts(entry)?;
    Ok(Bytes::from([&header[..], &body].concat()))
}

/// The two parts of an encoded entry; the second one is not copied.
pub(crate) fn entry_parts(entry: &Entry) -> io::Result<([u8; HEADER_BYTES], Bytes)> {
    let (tag, body) = match &entry.payload {
        EntryPayload::Blank => (BLANK, Bytes::new()),
        EntryPayload::Normal(Payload(bytes)) => (DECISION, bytes.clone()),
        EntryPayload::Membership(members) => (MEMBERSHIP, Bytes::from(serde_json::to_vec(members)?)),
    };
    let mut header = [0; HEADER_BYTES];
    header[0] = ENTRY_FORM;
    header[1..9].copy_from_slice(&entry.log_id.leader_id.term.to_be_bytes());
    header[9] = tag;
    Ok((header, body))
}

/// Decodes the entry at an index.
///
/// # Errors
/// Another form, an unknown tag, or broken bytes.
pub fn decode_entry(index: u64, bytes: &Bytes) -> io::Result<Entry> {
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

/// Decodes the log id of the entry at an index.
pub(crate) fn decode_log_id(index: u64, bytes: &[u8]) -> io::Result<LogId> {
    let header = bytes.get(..HEADER_BYTES).filter(|header| header[0] == ENTRY_FORM);
    let header = header.ok_or_else(|| bad(format!("entry {index} is not of form {ENTRY_FORM}")))?;
    let term =
        header[1..9].try_into().map(u64::from_be_bytes).map_err(|_| bad("an entry is truncated".into()))?;
    Ok(LogId { leader_id: CommittedLeaderId::new(term), index })
}

/// The position of a state machine; stored with the rows that it covers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Applied {
    /// The last entry that was applied.
    pub(crate) last: Option<LogId>,
    /// The last membership that was applied.
    pub(crate) membership: Membership,
}

/// Encodes positions as [`encode_json`] does, one for each entry. The membership is the same from one entry to the next, so
/// its text is made again only when it changes.
#[derive(Debug, Default)]
pub(crate) struct AppliedEncoder {
    membership: Membership,
    /// The membership as JSON; empty before the first position.
    text: Vec<u8>,
}

/// What a position takes besides its membership, bytes: usually less.
const POSITION_BYTES: usize = 96;

impl AppliedEncoder {
    /// Encodes a position.
    ///
    /// # Errors
    /// It cannot be written as JSON.
    pub(crate) fn encode(&mut self, applied: &Applied) -> io::Result<Bytes> {
        let Applied { last, membership } = applied;
        if self.text.is_empty() || self.membership != *membership {
            self.text = serde_json::to_vec(membership)?;
            self.membership = membership.clone();
        }
        let mut out = Vec::with_capacity(POSITION_BYTES + self.text.len());
        out.push(JSON_FORM);
        out.extend_from_slice(b"{\"last\":");
        serde_json::to_writer(&mut out, last)?;
        out.extend_from_slice(b",\"membership\":");
        out.extend_from_slice(&self.text);
        out.push(b'}');
        Ok(Bytes::from(out))
    }
}

/// Encodes a small stored value.
pub(crate) fn encode_json<T: Serialize>(value: &T) -> io::Result<Bytes> {
    let mut out = vec![JSON_FORM];
    serde_json::to_writer(&mut out, value)?;
    Ok(Bytes::from(out))
}

/// Decodes a small stored value.
pub(crate) fn decode_json<T: DeserializeOwned>(bytes: &[u8]) -> io::Result<T> {
    match bytes.split_first() {
        Some((&JSON_FORM, rest)) => Ok(serde_json::from_slice(rest)?),
        Some(_) | None => Err(bad(format!("a stored value is not of form {JSON_FORM}"))),
    }
}

pub(crate) fn bad(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Vote;
    use openraft::BasicNode;
    use std::collections::{BTreeMap, BTreeSet};
    use std::fmt::Debug;

    /// Compares with the golden file of a form, line by line; `BLESS=1` writes it again.
    fn check(name: &str, lines: &[(&str, Bytes)]) {
        let path = format!("{}/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"));
        let text: String =
            lines.iter().map(|(of, bytes)| format!("{of} {}\n", bytes.escape_ascii())).collect();
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        let known = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, known, "a stored form has changed: old data folders could not be read");
    }

    fn log_id(term: u64, index: u64) -> LogId {
        LogId { leader_id: CommittedLeaderId::new(term), index }
    }

    fn members() -> openraft::Membership<u64, BasicNode> {
        let nodes: BTreeMap<u64, BasicNode> =
            [1, 2, 3].map(|node| (node, BasicNode::new(format!("server-{node}:7777")))).into();
        openraft::Membership::new(vec![BTreeSet::from([1, 2, 3])], nodes).unwrap()
    }

    #[test]
    fn entries_keep_their_form() {
        let entry = |payload| Entry { log_id: log_id(258, 7), payload };
        let all = [
            ("blank", entry(EntryPayload::Blank)),
            ("decision", entry(EntryPayload::Normal(Payload(Bytes::from_static(b"decision"))))),
            ("membership", entry(EntryPayload::Membership(members()))),
        ];
        let written = all.each_ref().map(|(of, entry)| (*of, encode_entry(entry).unwrap()));
        assert!(written.iter().all(|(_, bytes)| bytes[0] == ENTRY_FORM));
        check("entry.v1.txt", &written);
        for ((_, entry), (_, bytes)) in all.iter().zip(&written) {
            assert_eq!(decode_entry(7, bytes).unwrap(), *entry);
            assert_eq!(decode_log_id(7, bytes).unwrap(), entry.log_id);
        }
    }

    #[test]
    fn small_values_keep_their_form() {
        fn same<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T) -> Bytes {
            let bytes = encode_json(value).unwrap();
            assert_eq!(bytes[0], JSON_FORM);
            assert_eq!(decode_json::<T>(&bytes).unwrap(), *value);
            bytes
        }
        let membership = Membership::new(Some(log_id(1, 0)), members());
        let applied = Applied { last: Some(log_id(258, 7)), membership };
        let lines = [
            ("applied", same(&applied)),
            ("applied-nothing", same(&Applied::default())),
            ("vote", same(&Vote::new(258, 3))),
            ("vote-committed", same(&Vote::new_committed(258, 3))),
            ("purged", same(&log_id(258, 7))),
        ];
        check("small.v1.txt", &lines);
    }

    #[test]
    fn positions_are_encoded_as_values_are() {
        let membership = |index| Membership::new(Some(log_id(1, index)), members());
        let mut encoder = AppliedEncoder::default();
        for (last, membership) in [
            (None, Membership::default()),
            (Some(log_id(1, 0)), membership(0)),
            (Some(log_id(258, 7)), membership(0)),
            (Some(log_id(258, u64::MAX)), membership(8)),
            (None, Membership::default()),
        ] {
            let applied = Applied { last, membership };
            assert_eq!(encoder.encode(&applied).unwrap(), encode_json(&applied).unwrap());
        }
    }

    #[test]
    fn another_form_is_refused() {
        let entry =
            |bytes: &'static [u8]| decode_entry(1, &Bytes::from_static(bytes)).unwrap_err().to_string();
        assert_eq!(entry(&[2, 0, 0, 0, 0, 0, 0, 0, 1, 0]), "entry 1 is not of form 1");
        assert_eq!(entry(&[1, 0, 0, 0]), "entry 1 is not of form 1");
        assert_eq!(entry(&[1, 0, 0, 0, 0, 0, 0, 0, 1, 9]), "entry 1 has the unknown tag 9");
        assert!(decode_json::<Applied>(b"").is_err() && decode_json::<Applied>(b"\x02{}").is_err());
    }
}
