//! Lines from a connection, none longer than may be kept.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt};

/// A line, or the first part of one that was longer.
#[derive(Debug, Default)]
pub(super) struct Line {
    /// With its end, if it came.
    pub(super) bytes: Vec<u8>,
    /// Whether it exceeded the limit; the rest was read and dropped.
    pub(super) cut: bool,
    /// Whether it ends with CRLF.
    pub(super) whole: bool,
}

/// Reads a line and keeps at most `bytes_max` bytes of it. `None` if the connection has ended.
pub(super) async fn read(
    from: &mut (impl AsyncBufRead + Unpin),
    bytes_max: usize,
) -> io::Result<Option<Line>> {
    let mut line = Line::default();
    let mut last = 0;
    loop {
        let there = from.fill_buf().await?;
        if there.is_empty() {
            return Ok(None);
        }
        let end = there.iter().position(|byte| *byte == b'\n');
        let piece = &there[..end.map_or(there.len(), |end| end + 1)];
        let before = match piece {
            [.., before, _] => *before,
            _ => last,
        };
        let free = bytes_max.saturating_sub(line.bytes.len()).min(piece.len());
        line.bytes.extend_from_slice(&piece[..free]);
        line.cut |= free < piece.len();
        last = piece.last().copied().unwrap_or(last);
        let length = piece.len();
        from.consume(length);
        if end.is_some() {
            line.whole = before == b'\r';
            return Ok(Some(line));
        }
    }
}
