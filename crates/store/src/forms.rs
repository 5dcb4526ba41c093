//! Stored forms: a version byte, then the body. The golden files in `tests/golden` hold one of each.
//!
//! There is no checksum of our own here: fjall has one (xxh3) over every batch of its journal and over every
//! block of its tables, and checks them when it reads.

use crate::{StoreError, log::GroupId};
use bytes::Bytes;

/// A stored form and the one version of it that exists.
pub(crate) struct Form {
    what: &'static str,
    version: u8,
}

/// A record of the log: the caller's bytes.
pub(crate) const LOG_RECORD: Form = Form { what: "log record", version: 1 };
/// A vote, a committed or a purged position: the caller's bytes.
pub(crate) const LOG_META: Form = Form { what: "log meta", version: 1 };
/// A row of a state: the record's own encoding.
pub(crate) const ROW: Form = Form { what: "row", version: 1 };
/// The marker of a state: see [`marker`].
const MARKER: Form = Form { what: "state marker", version: 1 };

impl Form {
    /// The bytes to store.
    pub(crate) fn wrap(&self, body: &[u8]) -> Vec<u8> {
        let mut stored = Vec::with_capacity(1 + body.len());
        stored.push(self.version);
        stored.extend_from_slice(body);
        stored
    }

    /// The body of stored bytes.
    pub(crate) fn open<'a>(&self, stored: &'a [u8]) -> Result<&'a [u8], StoreError> {
        match stored.split_first() {
            Some((&version, body)) if version == self.version => Ok(body),
            Some((&found, _)) => Err(StoreError::Version { what: self.what, found, expected: self.version }),
            None => Err(StoreError::damaged(self.what, "it is empty")),
        }
    }
}

/// Length of a key of the log.
pub(crate) const LOG_KEY_BYTES: usize = 17;
/// The kind of a record in a key of the log; the kinds below it are [`crate::Meta`] slots.
pub(crate) const KIND_RECORD: u8 = 16;

/// `group ‖ kind ‖ index`, big-endian, so that the records of a group lie together in order.
pub(crate) fn log_key(group: GroupId, kind: u8, index: u64) -> [u8; LOG_KEY_BYTES] {
    let mut key = [0; LOG_KEY_BYTES];
    key[..8].copy_from_slice(&group.0.to_be_bytes());
    key[8] = kind;
    key[9..].copy_from_slice(&index.to_be_bytes());
    key
}

/// The parts of a key that [`log_key`] made.
pub(crate) fn parse_log_key(key: &[u8]) -> Result<(GroupId, u8, u64), StoreError> {
    let damaged = || StoreError::damaged("log key", format!("it has {} bytes", key.len()));
    let (group, rest) = key.split_first_chunk::<8>().ok_or_else(damaged)?;
    let (kind, index) = rest.split_first().ok_or_else(damaged)?;
    let index = index.try_into().map_err(|_| damaged())?;
    Ok((GroupId(u64::from_be_bytes(*group)), *kind, u64::from_be_bytes(index)))
}

/// The key of the one marker of a state, before all rows.
pub(crate) const MARKER_KEY: [u8; 1] = [0];
/// The first byte of the keys of rows.
pub(crate) const ROW_KEY: u8 = 1;

/// The key under which a row is stored.
pub(crate) fn row_key(key: &[u8]) -> Vec<u8> {
    let mut stored = Vec::with_capacity(1 + key.len());
    stored.push(ROW_KEY);
    stored.extend_from_slice(key);
    stored
}

/// Every write of a state carries its marker: that a keyspace has one says that it is whole, and what it says
/// is the applied blob that the rows agree with.
pub(crate) fn marker(applied: Option<&Bytes>) -> Vec<u8> {
    let mut body = vec![u8::from(applied.is_some())];
    body.extend_from_slice(applied.map_or(&[], |blob| blob));
    MARKER.wrap(&body)
}

/// The applied blob of a stored marker.
pub(crate) fn parse_marker(stored: &[u8]) -> Result<Option<Bytes>, StoreError> {
    match MARKER.open(stored)?.split_first() {
        Some((0, [])) => Ok(None),
        Some((1, blob)) => Ok(Some(Bytes::copy_from_slice(blob))),
        Some(_) | None => Err(StoreError::damaged(MARKER.what, "its flag is neither 0 nor 1")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(golden: &str, actual: &[u8]) {
        let hex: String = actual.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, golden.trim(), "a stored form has changed: old data folders could not be read");
    }

    #[test]
    fn stored_forms_are_as_they_were() {
        let key = log_key(GroupId(7), KIND_RECORD, 258);
        check(include_str!("../tests/golden/log_key.v1.hex"), &key);
        assert_eq!(parse_log_key(&key).unwrap(), (GroupId(7), KIND_RECORD, 258));
        check(include_str!("../tests/golden/log_record.v1.hex"), &LOG_RECORD.wrap(b"record"));
        check(include_str!("../tests/golden/log_meta.v1.hex"), &LOG_META.wrap(b"vote"));
        check(include_str!("../tests/golden/row_key.v1.hex"), &row_key(b"key"));
        check(include_str!("../tests/golden/row.v1.hex"), &ROW.wrap(b"row"));
        check(include_str!("../tests/golden/marker.v1.hex"), &marker(Some(&Bytes::from_static(b"applied"))));
        check(include_str!("../tests/golden/marker_none.v1.hex"), &marker(None));
    }

    #[test]
    fn another_version_is_refused() {
        let error = ROW.open(&[2, 0]).unwrap_err();
        assert_eq!(error.to_string(), "a stored row has version 2, this program reads version 1");
        assert!(ROW.open(&[]).is_err() && parse_marker(&[1, 7]).is_err() && parse_log_key(&[0; 16]).is_err());
    }
}
