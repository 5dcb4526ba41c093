//! Stored forms of the state: a version byte, then the body. Those of the log are in `log/frame.rs`. The golden files
//! in `tests/golden` hold one of each.
//!
//! There is no checksum of our own here: fjall has one (xxh3) over every batch of its journal and over every
//! block of its tables, and checks them when it reads.

use crate::StoreError;
use bytes::Bytes;
use smallvec::SmallVec;

/// A stored form and the one version of it that exists.
pub(crate) struct Form {
    what: &'static str,
    version: u8,
}

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

    /// Begins the bytes to store in an empty buffer; the body follows.
    pub(crate) fn begin(&self, stored: &mut Vec<u8>) {
        stored.clear();
        stored.push(self.version);
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

/// The key of the one marker of a state, before all rows.
pub(crate) const MARKER_KEY: [u8; 1] = [0];
/// The first byte of row keys.
pub(crate) const ROW_KEY: u8 = 1;

/// A key as it is stored. Short ones need no allocation.
pub(crate) type StoredKey = SmallVec<[u8; 56]>;

/// The key under which a row is stored.
pub(crate) fn row_key(key: &[u8]) -> StoredKey {
    let mut stored = StoredKey::new();
    stored.push(ROW_KEY);
    stored.extend_from_slice(key);
    stored
}

/// Every write of a state carries its marker: a keyspace that has one is complete, and the marker holds the applied
/// blob that the rows agree with.
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
        check(include_str!("../tests/golden/row_key.v1.hex"), &row_key(b"key"));
        check(include_str!("../tests/golden/row.v1.hex"), &ROW.wrap(b"row"));
        check(include_str!("../tests/golden/marker.v1.hex"), &marker(Some(&Bytes::from_static(b"applied"))));
        check(include_str!("../tests/golden/marker_none.v1.hex"), &marker(None));
    }

    #[test]
    fn another_version_is_refused() {
        let error = ROW.open(&[2, 0]).unwrap_err();
        assert_eq!(error.to_string(), "a stored row has version 2, this program reads version 1");
        assert!(ROW.open(&[]).is_err() && parse_marker(&[1, 7]).is_err());
    }
}
