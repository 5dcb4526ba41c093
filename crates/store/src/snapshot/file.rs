use super::format::{Header, Part, RowsDigest, Trailer, damaged, take_row};
use crate::{GroupId, StoreError, files::failed, forms};
use bytes::Bytes;
use std::{
    fs::File,
    io::{self, BufReader, Read},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::Arc,
};

/// A finished, verified snapshot. It stays readable through this handle when the file is replaced by a newer one and
/// deleted; several readers may use it at once.
#[derive(Clone, Debug)]
pub struct SnapshotFile {
    path: PathBuf,
    file: Arc<File>,
    group: GroupId,
    applied: Option<Bytes>,
    rows: u64,
    digest: [u8; 32],
}

impl SnapshotFile {
    /// Opens a file and reads it to its end.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] or [`StoreError::Version`] unless every checksum, the order of the keys, the
    /// number of rows and their hash hold.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let file = File::open(path).map_err(failed("open", path))?;
        let mut rows = SnapshotRows::new(Arc::new(file))?;
        rows.visit(|_, _| Ok(()))?;
        let Header { group, applied } = rows.header;
        let Trailer { rows: count, digest } = rows.trailer;
        let file = rows.source.into_inner().file;
        Ok(SnapshotFile { path: path.to_path_buf(), file, group, applied, rows: count, digest })
    }

    /// The group whose table it holds.
    pub fn group(&self) -> GroupId {
        self.group
    }

    /// The applied blob that the rows agree with.
    pub fn applied(&self) -> Option<&Bytes> {
        self.applied.as_ref()
    }

    /// Number of rows.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// SHA-256 over the rows, as [`crate::State::digest`].
    pub fn digest(&self) -> [u8; 32] {
        self.digest
    }

    /// The file in pieces of at most `bytes_max`, for sending; a [`super::SnapshotReceiver`] takes them in order.
    pub fn chunks(&self, bytes_max: usize) -> impl Iterator<Item = Result<Bytes, StoreError>> + Send + use<> {
        let (mut source, path) = (At { file: self.file.clone(), position: 0 }, self.path.clone());
        std::iter::from_fn(move || {
            let mut chunk = Vec::new();
            match source.by_ref().take(bytes_max as u64).read_to_end(&mut chunk) {
                Ok(0) => None,
                Ok(_) => Some(Ok(chunk.into())),
                Err(error) => Some(Err(failed("read", &path)(error))),
            }
        })
    }

    pub(super) fn renamed(self, path: PathBuf) -> Self {
        SnapshotFile { path, ..self }
    }

    /// Calls `visit` with every key and stored row, in key order.
    pub(crate) fn visit_rows(
        &self,
        visit: impl FnMut(&[u8], &[u8]) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        SnapshotRows::new(self.file.clone())?.visit(visit)
    }
}

struct SnapshotRows {
    source: BufReader<At>,
    header: Header,
    trailer: Trailer,
}

impl SnapshotRows {
    fn new(file: Arc<File>) -> Result<Self, StoreError> {
        let mut source = BufReader::new(At { file, position: 0 });
        let header = Header::read(&mut source)?;
        Ok(SnapshotRows { source, header, trailer: Trailer { rows: 0, digest: [0; 32] } })
    }

    fn visit(
        &mut self,
        mut visit: impl FnMut(&[u8], &[u8]) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut digest = RowsDigest::default();
        let mut last: Option<Vec<u8>> = None;
        loop {
            match Part::read(&mut self.source)? {
                Part::Chunk(payload) => {
                    let mut payload = payload.as_slice();
                    while !payload.is_empty() {
                        let (key, stored) = take_row(&mut payload)?;
                        if last.as_deref().is_some_and(|last| last >= key) {
                            return Err(damaged("its keys are out of order"));
                        }
                        last = Some(key.to_vec());
                        digest.add(key, forms::ROW.open(stored)?);
                        visit(key, stored)?;
                    }
                }
                Part::Trailer(trailer) => {
                    self.trailer = trailer;
                    break;
                }
            }
        }
        let whole = digest.rows == self.trailer.rows && digest.finish() == self.trailer.digest;
        if !whole || !matches!(self.source.read(&mut [0]), Ok(0)) {
            return Err(damaged("its rows do not match its trailer"));
        }
        Ok(())
    }
}

/// A position in a shared file.
struct At {
    file: Arc<File>,
    position: u64,
}

impl Read for At {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let size = self.file.read_at(buffer, self.position)?;
        self.position += size as u64;
        Ok(size)
    }
}
