//! What rows cost in memory: each kind answers for itself, in the folder of its aggregate.

use minicbor::CborLen;

/// The memory of a row of medium size without its texts, bytes.
pub(crate) const ROW_BYTES: usize = 384;
/// The memory of one entry of a list inside a row, and of a row that is one number, bytes.
pub(crate) const ENTRY_BYTES: usize = 40;

/// A kind of row in memory.
pub(crate) trait InMemory: CborLen<()> {
    /// Returns true if the row is read so often that a cache keeps it once it is on disk.
    fn cached(&self) -> bool;

    /// The approximate memory besides the bytes of its texts.
    fn structure_bytes(&self) -> usize {
        ROW_BYTES
    }

    /// The length of the encoded row, which is mostly that of its texts; computed without encoding the row.
    fn text_bytes(&self) -> usize {
        self.cbor_len(&mut ())
    }

    /// The approximate memory, with texts.
    fn memory_bytes(&self) -> usize {
        self.structure_bytes() + self.text_bytes()
    }
}
