//! The frames of a connection.
//!
//! ```text
//! version u8 = 1 | op u8 | kind u8 | flags u8 = 0 | length u32 | group u64 | id u64 | checksum u64 | body
//! ```
//!
//! Numbers are big-endian. The checksum is xxh3 of the body, seeded with xxh3 of the 24 bytes before the checksum. TLS
//! already protects the bytes on their way; the checksum finds what memory and programs damage.

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// The first byte of every frame.
pub(crate) const VERSION: u8 = 1;
/// The bytes of a frame before its body.
pub(crate) const HEAD_BYTES: usize = SUMMED_BYTES + 8;
/// The part of the head that the checksum covers.
const SUMMED_BYTES: usize = 24;
/// A body up to this length is copied, so that it does not keep the whole buffer in memory.
const COPIED_BYTES_MAX: usize = 1024;

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Op {
    /// The identity of a server, first in both directions.
    Hello,
    /// The handshake is refused; the body says why.
    Refuse,
    /// The dialling server accepts the other's identity.
    Accept,
    /// A request; its id is the answer's.
    Request,
    /// The answer to a request.
    Answer,
    /// The handler refused a request; the body says why.
    Refusal,
    /// The handler has no answer that can be sent; the body says why.
    Lost,
    /// The caller gave up.
    Cancel,
    /// The sender's wall clock.
    Ping,
    /// The answer to a ping, with this side's wall clock.
    Pong,
    /// A piece of a stream.
    Piece,
    /// The end of one side of a stream.
    End,
}

impl Op {
    const ALL: [Self; 12] = [
        Self::Hello,
        Self::Refuse,
        Self::Accept,
        Self::Request,
        Self::Answer,
        Self::Refusal,
        Self::Lost,
        Self::Cancel,
        Self::Ping,
        Self::Pong,
        Self::Piece,
        Self::End,
    ];

    fn byte(self) -> u8 {
        match self {
            Self::Hello => 1,
            Self::Refuse => 2,
            Self::Accept => 3,
            Self::Request => 4,
            Self::Answer => 5,
            Self::Refusal => 6,
            Self::Lost => 7,
            Self::Cancel => 8,
            Self::Ping => 9,
            Self::Pong => 10,
            Self::Piece => 11,
            Self::End => 12,
        }
    }
}

/// A frame as it is sent, with its header decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) op: Op,
    /// The kind of a request, else 0.
    pub(crate) kind: u8,
    /// The group of a request, else 0.
    pub(crate) group: u64,
    /// The number of a request or ping on its connection, else 0.
    pub(crate) id: u64,
    pub(crate) body: Bytes,
}

impl Frame {
    /// A frame that belongs to a request or a ping.
    pub(crate) fn with_id(op: Op, id: u64, body: Bytes) -> Self {
        Self { op, kind: 0, group: 0, id, body }
    }

    /// Any other frame but a request.
    pub(crate) fn of(op: Op, body: Bytes) -> Self {
        Self::with_id(op, 0, body)
    }

    /// The bytes before the body. A body has less than 4 GiB: every limit is below it.
    pub(crate) fn head(&self) -> [u8; HEAD_BYTES] {
        let mut head = [0; HEAD_BYTES];
        let mut out = &mut head[..];
        out.put_slice(&[VERSION, self.op.byte(), self.kind, 0]);
        out.put_u32(u32::try_from(self.body.len()).unwrap_or(u32::MAX));
        out.put_u64(self.group);
        out.put_u64(self.id);
        let sum = checksum(&head[..SUMMED_BYTES], &self.body);
        head[SUMMED_BYTES..].copy_from_slice(&sum.to_be_bytes());
        head
    }
}

/// Why bytes are not a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FrameError {
    #[error("the first byte of a frame is {0}, not the transport version {VERSION}")]
    Version(u8),
    #[error("a frame has the unknown type {0}")]
    Op(u8),
    #[error("a frame has the unknown flags {0:#04x}")]
    Flags(u8),
    #[error("a frame has {length} bytes, and at most {max} are allowed")]
    Length { length: usize, max: usize },
    #[error("the checksum of a frame is wrong")]
    Checksum,
}

/// Takes the first frame from a buffer. Returns the number of bytes that are needed for one, which is more than there are,
/// if it is not complete.
///
/// # Errors
/// The bytes are not a frame, or its body has more than `max` bytes. That is found from its head.
pub(crate) fn take(buffer: &mut BytesMut, max: usize) -> Result<Result<Frame, usize>, FrameError> {
    if let Some(&version) = buffer.first().filter(|first| **first != VERSION) {
        return Err(FrameError::Version(version));
    }
    let Some((head, rest)) = buffer.split_first_chunk::<HEAD_BYTES>() else { return Ok(Err(HEAD_BYTES)) };
    let op = Op::ALL.into_iter().find(|op| op.byte() == head[1]).ok_or(FrameError::Op(head[1]))?;
    if head[3] != 0 {
        return Err(FrameError::Flags(head[3]));
    }
    let mut fields = &head[4..];
    let length = usize::try_from(fields.get_u32()).unwrap_or(usize::MAX);
    if length > max {
        return Err(FrameError::Length { length, max });
    }
    let Some(body) = rest.get(..length) else { return Ok(Err(HEAD_BYTES + length)) };
    let (kind, group, id) = (head[2], fields.get_u64(), fields.get_u64());
    if checksum(&head[..SUMMED_BYTES], body) != fields.get_u64() {
        return Err(FrameError::Checksum);
    }
    Ok(Ok(Frame { op, kind, group, id, body: split_body(buffer, length) }))
}

/// Takes a whole frame off the buffer, and returns its body.
fn split_body(buffer: &mut BytesMut, length: usize) -> Bytes {
    buffer.advance(HEAD_BYTES);
    if length > COPIED_BYTES_MAX {
        return buffer.split_to(length).freeze();
    }
    let body = Bytes::copy_from_slice(&buffer[..length]);
    buffer.advance(length);
    body
}

fn checksum(head: &[u8], body: &[u8]) -> u64 {
    xxh3_64_with_seed(body, xxh3_64(head))
}

#[cfg(test)]
mod tests;
