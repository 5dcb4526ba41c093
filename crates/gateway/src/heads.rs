//! Rejects heads of HTTP/1.1 requests that two parsers could read differently (request smuggling): a proxy in front that
//! reads one differently would let a caller insert a request into another caller's connection.
//!
//! Refused with 400 by the parser behind this, which gets [`FAULT`] instead of the rest of the connection: a request of
//! HTTP/1.1 without a `Host` or with two, a line that ends with a bare line feed, and a length that is given twice or
//! beside `Transfer-Encoding`. HTTP/2, which has none of this, passes untouched. Source: RFC 9112, §2.2, §3.2, §6.1, §6.3.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// How a connection over HTTP/2 begins. Source: RFC 9113, §3.4.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The longest prefix of [`PREFACE`] that may also begin a method of HTTP/1.1, bytes.
const METHOD: usize = 3;
/// How the line ends that begins a request of HTTP/1.0.
const OLD: u64 = u64::from_be_bytes(*b"TTP/1.0\r");
/// What is kept of a line: more than the longest that is looked at.
const LINE_BYTES: usize = 64;
/// No head, and no line around a chunk, goes on like this; with its end, so that the parser waits for no more.
const FAULT: &[u8] = b"\0\r\n\r\n";

/// A connection whose requests are looked at as they are read.
pub(crate) struct Heads<I> {
    io: I,
    scanner: Scanner,
    /// The bytes still to be passed on after a fault.
    fault: Option<&'static [u8]>,
}

impl<I> Heads<I> {
    pub(crate) fn new(io: I) -> Self {
        Self { io, scanner: Scanner::default(), fault: None }
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for Heads<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        if self.fault.is_none() {
            let before = buffer.filled().len();
            ready!(Pin::new(&mut self.io).poll_read(context, buffer))?;
            let read = buffer.filled().get(before..).unwrap_or_default();
            let Some(at) = self.scanner.scan(read) else { return Poll::Ready(Ok(())) };
            buffer.set_filled(before + at);
            self.fault = Some(FAULT);
        }
        let left = self.fault.unwrap_or_default();
        let (now, later) = left.split_at(left.len().min(buffer.remaining()));
        buffer.put_slice(now);
        self.fault = Some(later);
        Poll::Ready(Ok(()))
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for Heads<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }

    // Not vectored: HTTP/2 then gathers frames below 1 KiB, so that short answers go out in one write. Otherwise it
    // writes each frame of 256 bytes and more by itself. A longer frame takes two writes.
}

/// The position of the next byte in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// At the beginning of the connection, after this many bytes of the HTTP/2 preface.
    Preface(usize),
    /// In the line that begins a request.
    Request,
    /// In a line of its headers.
    Header,
    /// In a body, this many bytes before its end.
    Body(u64),
    /// In the line that begins a chunk.
    Size,
    /// In a chunk, this many bytes before its end.
    Chunk(u64),
    /// At the line end after a chunk.
    ChunkEnd,
    /// In a line behind the last chunk.
    Trailer,
    /// In HTTP/2: nothing is looked at any more.
    Off,
}

/// What the head of a request has said so far.
#[derive(Debug, Default)]
struct HeadFields {
    /// Whether the request is one of HTTP/1.0, which needs no host.
    old: bool,
    hosts: u32,
    length: Option<u64>,
    chunked: bool,
}

/// Follows the requests of one connection.
#[derive(Debug)]
struct Scanner {
    at: At,
    said: HeadFields,
    /// How the line begins, and how long it is without its end.
    line: Vec<u8>,
    length: usize,
    /// Its last eight bytes.
    end: u64,
}

impl Default for Scanner {
    fn default() -> Self {
        let line = Vec::with_capacity(LINE_BYTES);
        Self { at: At::Preface(0), said: HeadFields::default(), line, length: 0, end: 0 }
    }
}

impl Scanner {
    /// Scans the bytes that were read and returns the position of the first fault; must not be called after one.
    fn scan(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut rest = bytes;
        while let Some(byte) = rest.first() {
            let skipped = match &mut self.at {
                At::Off => return None,
                At::Body(left) | At::Chunk(left) => {
                    let skipped = usize::try_from(*left).map_or(rest.len(), |left| left.min(rest.len()));
                    *left -= skipped as u64;
                    skipped
                }
                At::Preface(_) | At::Request | At::Header | At::Size | At::ChunkEnd | At::Trailer => {
                    if !self.take(*byte) {
                        return Some(bytes.len() - rest.len());
                    }
                    1
                }
            };
            match self.at {
                At::Body(0) => self.begin(),
                At::Chunk(0) => self.at = At::ChunkEnd,
                At::Preface(_)
                | At::Request
                | At::Header
                | At::Body(_)
                | At::Size
                | At::Chunk(_)
                | At::ChunkEnd
                | At::Trailer
                | At::Off => {}
            }
            rest = rest.get(skipped..).unwrap_or_default();
        }
        None
    }

    /// Takes a byte outside of a body; `false` if it is a fault or reveals one.
    fn take(&mut self, byte: u8) -> bool {
        let At::Preface(common) = self.at else { return self.of_line(byte) };
        if PREFACE.get(common) == Some(&byte) {
            self.at = if common + 1 == PREFACE.len() { At::Off } else { At::Preface(common + 1) };
            return true;
        }
        self.at = At::Request;
        let line = PREFACE.get(..common).unwrap_or_default();
        common <= METHOD && line.iter().all(|byte| self.of_line(*byte)) && self.of_line(byte)
    }

    fn of_line(&mut self, byte: u8) -> bool {
        if byte != b'\n' {
            if self.line.len() < LINE_BYTES {
                self.line.push(byte);
            }
            self.length += 1;
            self.end = self.end << 8 | u64::from(byte);
            return true;
        }
        if self.end & 0xff != u64::from(b'\r') {
            return false;
        }
        let whole = self.length <= LINE_BYTES;
        let kept = self.line.len() - usize::from(whole);
        let line = self.line.get(..kept).unwrap_or_default().to_ascii_lowercase();
        let fine = self.ended(&line, whole);
        self.line.clear();
        (self.length, self.end) = (0, 0);
        fine
    }

    /// A line has ended, of which this is the beginning, or all.
    fn ended(&mut self, line: &[u8], whole: bool) -> bool {
        match self.at {
            // Empty lines before a request are passed over, as the parser does.
            At::Request if line.is_empty() => {}
            At::Request => {
                self.said = HeadFields { old: self.end == OLD, ..HeadFields::default() };
                self.at = At::Header;
            }
            At::Header if line.is_empty() => return self.head_ended(),
            At::Header => return self.header(line),
            At::Size => match size(line, whole) {
                None => return false,
                Some(0) => self.at = At::Trailer,
                Some(size) => self.at = At::Chunk(size),
            },
            At::ChunkEnd if line.is_empty() => self.at = At::Size,
            At::ChunkEnd => return false,
            At::Trailer if line.is_empty() => self.begin(),
            At::Preface(_) | At::Trailer | At::Body(_) | At::Chunk(_) | At::Off => {}
        }
        true
    }

    fn header(&mut self, line: &[u8]) -> bool {
        let mut parts = line.splitn(2, |byte| *byte == b':');
        let (name, value) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        match name {
            b"host" => self.said.hosts += 1,
            b"transfer-encoding" => self.said.chunked = true,
            b"content-length" => {
                let digits = std::str::from_utf8(value.trim_ascii()).ok();
                let digits = digits.filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
                let length = digits.and_then(|text| text.parse().ok());
                if length.is_none() || self.said.length.is_some() {
                    return false;
                }
                self.said.length = length;
            }
            _ => {}
        }
        !(self.said.chunked && self.said.length.is_some()) && self.said.hosts <= 1
    }

    fn head_ended(&mut self) -> bool {
        if self.said.hosts != 1 && !self.said.old {
            return false;
        }
        match self.said.length {
            _ if self.said.chunked => self.at = At::Size,
            Some(length) if length > 0 => self.at = At::Body(length),
            Some(_) | None => self.begin(),
        }
        true
    }

    /// Another request begins.
    fn begin(&mut self) {
        self.at = At::Request;
    }
}

/// Returns the size in the line that begins a chunk; the line may be incomplete.
fn size(line: &[u8], whole: bool) -> Option<u64> {
    let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let (size, behind) = line.split_at(digits);
    let ended = behind.first().map_or(whole, |byte| matches!(byte, b';' | b' ' | b'\t'));
    let text = std::str::from_utf8(size).ok().filter(|_| ended)?;
    u64::from_str_radix(text, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the position of the first fault if the text is read in pieces of this length.
    fn fault(text: &str, piece: usize) -> Option<usize> {
        let mut scanner = Scanner::default();
        let mut pieces = text.as_bytes().chunks(piece).enumerate();
        pieces.find_map(|(at, bytes)| scanner.scan(bytes).map(|within| at * piece + within))
    }

    fn faults(text: &str) -> bool {
        let found: Vec<_> = (1..=text.len()).map(|piece| fault(text, piece)).collect();
        assert!(
            found.iter().all(|one| *one == found[0]),
            "the result for {text:?} depends on the size of the pieces: {found:?}"
        );
        found[0].is_some()
    }

    const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    const CHUNKED: &str = "POST / HTTP/1.1\r\nhost: a\r\nTransfer-Encoding: chunked\r\n\r\n";

    #[test]
    fn requests_one_behind_another_pass_untouched() {
        let post = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n\n\n\n";
        let chunks = format!("{CHUNKED}2;x=1\r\n\n\n\r\nA\r\n0123456789\r\n0\r\nx: y\r\n\r\n");
        let all = format!("{GET}{post}\r\n{chunks}PRI / HTTP/1.0\r\n\r\n{GET}");
        assert!(!faults(&all));
        let long = format!("GET /{} HTTP/1.1\r\n{}: 1\r\nHost: a\r\n\r\n", "x".repeat(300), "y".repeat(90));
        assert!(!faults(&long));
    }

    #[test]
    fn http2_passes_untouched() {
        let preface = String::from_utf8(PREFACE.to_vec()).unwrap();
        assert!(!faults(&format!("{preface}\n\n GET / HTTP/1.1\n\n")));
        assert!(faults("PRI / HTTP/1.1\r\nHost: a\r\n\r\n"));
    }

    #[test]
    fn what_two_readers_could_read_differently_is_a_fault_wherever_it_stands() {
        let faulty = [
            "GET / HTTP/1.1\r\n\r\n".to_owned(),
            "GET / HTTP/1.1\r\nHost: a\r\nhost: b\r\n\r\n".to_owned(),
            "GET / HTTP/1.0\r\nHost: a\r\nhost: a\r\n\r\n".to_owned(),
            "GET / HTTP/1.1\nHost: a\r\n\r\n".to_owned(),
            "GET / HTTP/1.1\r\nHost: a\n\r\n".to_owned(),
            "GET / HTTP/1.1\r\nHost: a\r\n\n".to_owned(),
            "\n".to_owned(),
            CHUNKED.replace("\r\n\r\n", "\r\nContent-Length: 3\r\n\r\n"),
            CHUNKED.replace("host", "Content-Length: 3\r\nhost"),
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n".to_owned(),
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\n".to_owned(),
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1, 1\r\n\r\n".to_owned(),
            format!("{CHUNKED}2\n"),
            format!("{CHUNKED}x\r\n"),
            format!("{CHUNKED}ffffffffffffffff1\r\n"),
            format!("{CHUNKED}1\r\nxx\r\n"),
            format!("{CHUNKED}0\r\nx: y\n"),
        ];
        for one in faulty {
            assert!(faults(&one), "{one:?}");
            assert!(faults(&format!("{GET}{one}")), "{one:?} behind another");
        }
    }
}
