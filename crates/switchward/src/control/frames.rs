//! The frames of an answer: a tag, a length of four bytes, and that many bytes.

use std::io::{self, Read, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use switchward_store::{BackupFile, BackupManifest, BackupSink};

/// What a frame holds, bytes.
const FRAME_BYTES_MAX: usize = 16 * 1024 * 1024;
/// What of a file is sent as one frame, bytes.
const PIECE_BYTES: usize = 256 * 1024;

const BEGIN: u8 = b'B';
const DATA: u8 = b'D';
const END: u8 = b'E';
const MANIFEST: u8 = b'M';
const ANSWER: u8 = b'T';
const FAILED: u8 = b'X';

/// A part of an answer.
#[derive(Debug)]
pub(crate) enum Frame {
    /// A file of this name begins.
    Begin(String),
    /// More of it.
    Data(Vec<u8>),
    /// It is whole.
    End(BackupFile),
    /// All files were sent.
    Manifest(BackupManifest),
    /// All of an answer that has no files, as JSON.
    Answer(Vec<u8>),
    /// There will be no more, for this reason.
    Failed(String),
}

/// Reads the frames of an answer.
pub(crate) struct Frames<R>(R);

impl<R: Read> Frames<R> {
    pub(super) fn new(from: R) -> Self {
        Self(from)
    }

    /// The next frame.
    ///
    /// # Errors
    /// The other side went away, or sends something else.
    pub(crate) fn next(&mut self) -> anyhow::Result<Frame> {
        let mut head = [0; 5];
        self.0.read_exact(&mut head).map_err(|error| broken(&error))?;
        let size = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        anyhow::ensure!(
            size <= FRAME_BYTES_MAX,
            "a frame of {size} bytes is over the limit of {FRAME_BYTES_MAX}"
        );
        let mut bytes = vec![0; size];
        self.0.read_exact(&mut bytes).map_err(|error| broken(&error))?;
        Ok(match head[0] {
            BEGIN => Frame::Begin(String::from_utf8(bytes)?),
            DATA => Frame::Data(bytes),
            END => Frame::End(serde_json::from_slice(&bytes)?),
            MANIFEST => Frame::Manifest(serde_json::from_slice(&bytes)?),
            ANSWER => Frame::Answer(bytes),
            FAILED => Frame::Failed(String::from_utf8_lossy(&bytes).into_owned()),
            tag => anyhow::bail!("unknown frame tag {tag}"),
        })
    }
}

/// The error of an answer that does not come to its end.
fn broken(error: &io::Error) -> anyhow::Error {
    // What a socket with a time limit says when that is over.
    if [io::ErrorKind::WouldBlock, io::ErrorKind::TimedOut].contains(&error.kind()) {
        return anyhow::anyhow!("the server does not respond on its control socket");
    }
    anyhow::anyhow!("the server closed the connection: {error}")
}

/// Writes them, until the server is to stop.
pub(super) struct Sink {
    to: UnixStream,
    stop: Arc<AtomicBool>,
    piece: Vec<u8>,
}

impl Sink {
    pub(super) fn new(to: UnixStream, stop: Arc<AtomicBool>) -> Self {
        Self { to, stop, piece: Vec::new() }
    }

    /// Another one for the same answer.
    pub(super) fn clone_of(&self) -> io::Result<Self> {
        Ok(Self::new(self.to.try_clone()?, Arc::clone(&self.stop)))
    }

    pub(super) fn manifest(&mut self, manifest: &BackupManifest) -> io::Result<()> {
        self.frame(MANIFEST, &serde_json::to_vec(manifest)?)
    }

    pub(super) fn answer(&mut self, json: &[u8]) -> io::Result<()> {
        self.frame(ANSWER, json)
    }

    pub(super) fn fail(&mut self, why: &str) -> io::Result<()> {
        self.frame(FAILED, why.as_bytes())
    }

    fn piece(&mut self) -> io::Result<()> {
        let piece = std::mem::take(&mut self.piece);
        if piece.is_empty() { Ok(()) } else { self.frame(DATA, &piece) }
    }

    fn frame(&mut self, tag: u8, bytes: &[u8]) -> io::Result<()> {
        if self.stop.load(Ordering::Acquire) {
            return Err(io::Error::other("the server is stopping"));
        }
        let size = u32::try_from(bytes.len()).ok().filter(|size| *size as usize <= FRAME_BYTES_MAX);
        let size = size.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "a frame is too large"))?;
        self.to.write_all(&[[tag].as_slice(), &size.to_be_bytes()].concat())?;
        self.to.write_all(bytes)
    }
}

impl BackupSink for Sink {
    fn begin(&mut self, name: &str) -> io::Result<()> {
        self.frame(BEGIN, name.as_bytes())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.piece.extend_from_slice(bytes);
        if self.piece.len() >= PIECE_BYTES { self.piece() } else { Ok(()) }
    }

    fn end(&mut self, file: &BackupFile) -> io::Result<()> {
        self.piece()?;
        self.frame(END, &serde_json::to_vec(file)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufReader;

    #[test]
    fn a_file_comes_as_it_was_written_whatever_its_pieces() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let content: Vec<u8> = (0..600_000_u32).map(|at| at.to_be_bytes()[3]).collect();
        let expected = content.clone();
        let file = BackupFile {
            name: "group-0.snap".into(),
            bytes: 600_000,
            sha256: String::new(),
            group: Some(0),
            rows: Some(1),
            index: Some(7),
            digest: None,
        };
        let sent = file.clone();
        let sending = std::thread::spawn(move || {
            let mut sink = Sink::new(ours, Arc::new(AtomicBool::new(false)));
            sink.begin(&sent.name).unwrap();
            content.chunks(7_777).for_each(|piece| sink.write(piece).unwrap());
            sink.end(&sent).unwrap();
            sink.stop.store(true, Ordering::Release);
            sink.fail("too late").unwrap_err()
        });
        let mut frames = Frames::new(BufReader::new(theirs));
        assert!(matches!(frames.next().unwrap(), Frame::Begin(name) if name == file.name));
        let mut got = Vec::new();
        while got.len() < expected.len() {
            let Frame::Data(piece) = frames.next().unwrap() else { panic!("the file is incomplete") };
            got.extend(piece);
        }
        assert!(matches!(frames.next().unwrap(), Frame::End(end) if end == file));
        assert!(got == expected, "every byte, in order");
        assert_eq!(sending.join().unwrap().to_string(), "the server is stopping");
        assert!(frames.next().unwrap_err().to_string().contains("closed the connection"));
    }

    #[test]
    fn a_server_that_is_silent_is_not_one_that_is_gone() {
        let (_ours, theirs) = UnixStream::pair().unwrap();
        // A read that would wait ends as one does that has waited too long.
        theirs.set_nonblocking(true).unwrap();
        let error = Frames::new(theirs).next().unwrap_err().to_string();
        assert_eq!(error, "the server does not respond on its control socket");
    }

    #[test]
    fn what_is_no_frame_is_refused() {
        for bytes in [&b"Z\0\0\0\0"[..], b"D\xff\xff\xff\xff", b"E\0\0\0\x01{"] {
            assert!(Frames::new(bytes).next().is_err(), "{bytes:?}");
        }
    }
}
