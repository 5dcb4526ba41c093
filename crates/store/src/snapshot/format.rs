use crate::{
    GroupId, StoreError, forms,
    limits::{APPLIED_BYTES_MAX, SNAPSHOT_CHUNK_BYTES_MAX},
};
use bytes::Bytes;
use sha2::{Digest, Sha256};
use std::io::Read;
use xxhash_rust::xxh3::xxh3_64;

const MAGIC: [u8; 4] = *b"SWSN";
const VERSION: u8 = 1;
const CHUNK: u8 = 1;
const TRAILER: u8 = 2;
const WHAT: &str = "snapshot";

pub(super) fn damaged(detail: impl Into<String>) -> StoreError {
    StoreError::damaged(WHAT, detail)
}

/// SHA-256 over rows in key order: lengths and bytes of the key and of the row's own encoding.
#[derive(Default)]
pub(crate) struct RowsDigest {
    hash: Sha256,
    pub(crate) rows: u64,
    /// For the encoding of one row, used again for each.
    pub(crate) buffer: Vec<u8>,
}

impl RowsDigest {
    pub(crate) fn add(&mut self, key: &[u8], encoded: &[u8]) {
        self.hash.update((key.len() as u64).to_be_bytes());
        self.hash.update(key);
        self.hash.update((encoded.len() as u64).to_be_bytes());
        self.hash.update(encoded);
        self.rows += 1;
    }

    pub(crate) fn finish(self) -> [u8; 32] {
        self.hash.finalize().into()
    }
}

pub(crate) struct Header {
    pub(crate) group: GroupId,
    pub(crate) applied: Option<Bytes>,
}

impl Header {
    pub(super) fn encode(&self) -> Vec<u8> {
        let applied = self.applied.as_deref().unwrap_or_default();
        let mut out = Vec::from(MAGIC);
        out.push(VERSION);
        out.extend(self.group.0.to_be_bytes());
        out.push(u8::from(self.applied.is_some()));
        out.extend(u32::try_from(applied.len()).expect("a bounded blob").to_be_bytes());
        out.extend(applied);
        seal(out)
    }

    pub(super) fn read(from: &mut impl Read) -> Result<Self, StoreError> {
        let mut head = [0; 18];
        fill(from, &mut head)?;
        if head[..4] != MAGIC {
            return Err(damaged("it has another file type"));
        }
        if head[4] != VERSION {
            return Err(StoreError::Version { what: WHAT, found: head[4], expected: VERSION });
        }
        let length = u32::from_be_bytes([head[14], head[15], head[16], head[17]]) as usize;
        StoreError::check_size("applied blob", length, APPLIED_BYTES_MAX)?;
        let mut applied = vec![0; length];
        fill(from, &mut applied)?;
        check_seal(from, &[&head, &applied])?;
        let group = u64::from_be_bytes(head[5..13].try_into().expect("eight bytes"));
        Ok(Header { group: GroupId(group), applied: (head[13] == 1).then(|| applied.into()) })
    }
}

pub(super) fn encode_chunk(payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(13 + payload.len());
    out.push(CHUNK);
    out.extend(u32::try_from(payload.len()).expect("a bounded chunk").to_be_bytes());
    out.extend(xxh3_64(payload).to_be_bytes());
    out.extend(payload);
    out
}

pub(super) struct Trailer {
    pub(super) rows: u64,
    pub(super) digest: [u8; 32],
}

impl Trailer {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = vec![TRAILER];
        out.extend(self.rows.to_be_bytes());
        out.extend(self.digest);
        seal(out)
    }
}

/// A part after the header.
pub(super) enum Part {
    Chunk(Vec<u8>),
    Trailer(Trailer),
}

impl Part {
    pub(super) fn read(from: &mut impl Read) -> Result<Self, StoreError> {
        let mut tag = [0];
        fill(from, &mut tag)?;
        match tag {
            [CHUNK] => {
                let mut head = [0; 12];
                fill(from, &mut head)?;
                let length = u32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize;
                StoreError::check_size("snapshot chunk", length, SNAPSHOT_CHUNK_BYTES_MAX)?;
                let mut payload = vec![0; length];
                fill(from, &mut payload)?;
                if xxh3_64(&payload).to_be_bytes() != head[4..] {
                    return Err(damaged("a chunk has a wrong checksum"));
                }
                Ok(Part::Chunk(payload))
            }
            [TRAILER] => {
                let mut body = [0; 40];
                fill(from, &mut body)?;
                check_seal(from, &[&tag, &body])?;
                let (rows, digest) = body.split_at(8);
                Ok(Part::Trailer(Trailer {
                    rows: u64::from_be_bytes(rows.try_into().expect("eight bytes")),
                    digest: digest.try_into().expect("the other 32 bytes"),
                }))
            }
            [tag] => Err(damaged(format!("unknown tag {tag}"))),
        }
    }
}

/// Adds one row, in its stored form, to the payload of a chunk.
pub(super) fn push_row(payload: &mut Vec<u8>, key: &[u8], stored: &[u8]) {
    payload.extend(u16::try_from(key.len()).expect("a bounded key").to_be_bytes());
    payload.extend(key);
    payload.extend(u32::try_from(stored.len()).expect("a bounded row").to_be_bytes());
    payload.extend(stored);
}

/// Takes one row off the payload of a chunk: key and stored form.
pub(super) fn take_row<'a>(payload: &mut &'a [u8]) -> Result<(&'a [u8], &'a [u8]), StoreError> {
    let short = || damaged("a chunk ends inside a row");
    let (length, rest) = payload.split_first_chunk().ok_or_else(short)?;
    let (key, rest) = rest.split_at_checked(u16::from_be_bytes(*length).into()).ok_or_else(short)?;
    let (length, rest) = rest.split_first_chunk().ok_or_else(short)?;
    let (stored, rest) = rest.split_at_checked(u32::from_be_bytes(*length) as usize).ok_or_else(short)?;
    forms::ROW.open(stored)?;
    *payload = rest;
    Ok((key, stored))
}

fn seal(mut body: Vec<u8>) -> Vec<u8> {
    body.extend(xxh3_64(&body).to_be_bytes());
    body
}

fn check_seal(from: &mut impl Read, body: &[&[u8]]) -> Result<(), StoreError> {
    let mut sum = [0; 8];
    fill(from, &mut sum)?;
    if xxh3_64(&body.concat()).to_be_bytes() == sum { Ok(()) } else { Err(damaged("a checksum is wrong")) }
}

fn fill(from: &mut impl Read, buffer: &mut [u8]) -> Result<(), StoreError> {
    from.read_exact(buffer).map_err(|error| damaged(format!("failed to read on: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SnapshotFile;

    #[test]
    fn keys_out_of_order_are_refused_although_all_sums_hold() {
        let root = tempfile::tempdir().unwrap();
        let open = |keys: [&[u8]; 2]| {
            let (mut chunk, mut digest) = (Vec::new(), RowsDigest::default());
            for key in keys {
                push_row(&mut chunk, key, &forms::ROW.wrap(b"row"));
                digest.add(key, b"row");
            }
            let header = Header { group: GroupId(1), applied: None }.encode();
            let trailer = Trailer { rows: 2, digest: digest.finish() }.encode();
            let path = root.path().join("file.snap");
            std::fs::write(&path, [header, encode_chunk(&chunk), trailer].concat()).unwrap();
            SnapshotFile::open(&path)
        };
        assert_eq!(open([b"a", b"b"]).unwrap().rows(), 2);
        assert!(open([b"b", b"a"]).is_err() && open([b"a", b"a"]).is_err());
    }
}
