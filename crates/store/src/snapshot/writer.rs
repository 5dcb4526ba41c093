use super::{
    folder::Draft,
    format::{Header, RowsDigest, Trailer, encode_chunk, push_row},
};
use crate::{SnapshotFile, StoreError, forms, limits::SNAPSHOT_CHUNK_BYTES};

/// Writes a snapshot row by row, in key order.
pub(crate) struct SnapshotWriter {
    draft: Draft,
    chunk: Vec<u8>,
    digest: RowsDigest,
}

impl SnapshotWriter {
    pub(super) fn new(mut draft: Draft, header: &Header) -> Result<Self, StoreError> {
        draft.write(&header.encode())?;
        Ok(SnapshotWriter { draft, chunk: Vec::new(), digest: RowsDigest::default() })
    }

    /// Adds a row in its stored form.
    pub(crate) fn row(&mut self, key: &[u8], stored: &[u8]) -> Result<(), StoreError> {
        self.digest.add(key, forms::ROW.open(stored)?);
        push_row(&mut self.chunk, key, stored);
        if self.chunk.len() >= SNAPSHOT_CHUNK_BYTES { self.end_chunk() } else { Ok(()) }
    }

    pub(crate) fn finish(mut self) -> Result<SnapshotFile, StoreError> {
        if !self.chunk.is_empty() {
            self.end_chunk()?;
        }
        let trailer = Trailer { rows: self.digest.rows, digest: self.digest.finish() };
        self.draft.write(&trailer.encode())?;
        self.draft.publish()
    }

    fn end_chunk(&mut self) -> Result<(), StoreError> {
        self.draft.write(&encode_chunk(&self.chunk))?;
        self.chunk.clear();
        Ok(())
    }
}
