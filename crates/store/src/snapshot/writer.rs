use super::format::{Header, RowsDigest, Trailer, encode_chunk, push_row};
use crate::{StoreError, files::failed, forms, limits::SNAPSHOT_CHUNK_BYTES};
use std::{
    io::Write,
    path::{Path, PathBuf},
};

/// Writes a snapshot row by row, in key order.
pub(crate) struct SnapshotWriter<W> {
    out: W,
    /// The path for error messages.
    path: PathBuf,
    chunk: Vec<u8>,
    digest: RowsDigest,
}

impl<W: Write> SnapshotWriter<W> {
    pub(crate) fn new(out: W, path: &Path, header: &Header) -> Result<Self, StoreError> {
        let path = path.to_path_buf();
        let mut writer = SnapshotWriter { out, path, chunk: Vec::new(), digest: RowsDigest::default() };
        writer.write(&header.encode())?;
        Ok(writer)
    }

    /// Adds a row in its stored form.
    pub(crate) fn row(&mut self, key: &[u8], stored: &[u8]) -> Result<(), StoreError> {
        self.digest.add(key, forms::ROW.open(stored)?);
        push_row(&mut self.chunk, key, stored);
        if self.chunk.len() >= SNAPSHOT_CHUNK_BYTES { self.end_chunk() } else { Ok(()) }
    }

    /// Completes the snapshot; returns the underlying writer and the number of rows.
    pub(crate) fn finish(self) -> Result<(W, u64), StoreError> {
        self.finish_with_digest().map(|(out, rows, _)| (out, rows))
    }

    /// The same, and the digest of the rows.
    pub(crate) fn finish_with_digest(mut self) -> Result<(W, u64, [u8; 32]), StoreError> {
        if !self.chunk.is_empty() {
            self.end_chunk()?;
        }
        let (rows, digest) = (self.digest.rows, std::mem::take(&mut self.digest).finish());
        self.write(&Trailer { rows, digest }.encode())?;
        Ok((self.out, rows, digest))
    }

    fn end_chunk(&mut self) -> Result<(), StoreError> {
        let chunk = encode_chunk(&self.chunk);
        self.chunk.clear();
        self.write(&chunk)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        self.out.write_all(bytes).map_err(failed("write", &self.path))
    }
}
