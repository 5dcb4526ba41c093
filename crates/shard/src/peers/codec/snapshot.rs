//! The parts of a stream with a snapshot: a header, pieces, an end, and the receiver's answers.

use bytes::Bytes;
use minicbor::{Decode, Encode, Encoder};
use std::fmt;
use std::io;
use xxhash_rust::xxh3::xxh3_64;

use super::frame::{RAFT_MESSAGE_FORM, broken, framed, open, part, unframed};
use super::parts::{SentLogId, SentVote};
use crate::codec::bad;
use crate::limits::{RAFT_ANSWER_BYTES_MAX, REFUSAL_BYTES_MAX, SNAPSHOT_PIECE_BYTES, STREAM_CHUNK_BYTES_MAX};
use crate::types::{LogId, Vote};

const PART: &str = "part of a snapshot";
/// What is around the bytes of a piece at most, bytes.
const PIECE_HEAD_BYTES: usize = 32;

/// The id of one transfer of a snapshot. No other transfer of the cluster has the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct SnapshotId {
    /// The number of the group whose rows are sent.
    #[n(0)]
    pub group: u64,
    /// The sender.
    #[n(1)]
    pub server: u64,
    /// The term in which the sender leads.
    #[n(2)]
    pub term: u64,
    /// The number of the transfer, of those that the sender's process has begun.
    #[n(3)]
    pub number: u64,
}

impl fmt::Display for SnapshotId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { group, server, term, number } = self;
        write!(f, "{group}-{server}-{term}-{number}")
    }
}

/// The begin of a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnapshotHeader {
    /// The id of the transfer.
    pub id: SnapshotId,
    /// The vote of the leader that sends it.
    pub vote: Vote,
    /// The last entry that its rows hold, or an earlier one: its file names the position and the membership.
    pub last: LogId,
}

#[derive(Encode, Decode)]
struct Header {
    #[n(0)]
    id: SnapshotId,
    #[n(1)]
    vote: SentVote,
    #[n(2)]
    last: SentLogId,
}

/// Encodes the header of a snapshot, the first message of a stream of rows.
#[must_use]
pub fn encode_snapshot_header(header: &SnapshotHeader) -> Bytes {
    framed(&Header { id: header.id, vote: (&header.vote).into(), last: header.last.into() }).into()
}

/// Decodes the header of a snapshot, and checks that a leader can have sent it.
///
/// # Errors
/// Another form, broken bytes, or a position of a later term than the vote's.
pub fn decode_snapshot_header(bytes: &[u8]) -> io::Result<SnapshotHeader> {
    let Header { id, vote, last } = unframed(bytes, RAFT_ANSWER_BYTES_MAX, "header of a snapshot")?;
    let (vote, last) = (Vote::from(vote), LogId::from(last));
    if !vote.committed || last.leader_id.term > vote.leader_id.term {
        return Err(bad("a snapshot is not from the leader that its vote names".into()));
    }
    Ok(SnapshotHeader { id, vote, last })
}

/// What a snapshot had in all, so that a stream that was cut off is not taken for a whole one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Encode, Decode)]
pub struct SnapshotEnd {
    /// The number of its pieces.
    #[n(0)]
    pub pieces: u64,
    /// Their length, bytes.
    #[n(1)]
    pub bytes: u64,
}

impl SnapshotEnd {
    /// Adds a piece to the totals that the end of the snapshot is compared with.
    pub(crate) fn count(&mut self, piece: &Bytes) {
        self.pieces += 1;
        self.bytes += piece.len() as u64;
    }
}

/// What follows the header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SnapshotPart {
    /// The next bytes of the file.
    Piece(Bytes),
    /// The file is complete.
    End(SnapshotEnd),
}

const PIECE: u8 = 0;
const END: u8 = 1;

/// Encodes a piece of at most [`SNAPSHOT_PIECE_BYTES`], with its checksum.
#[must_use]
pub fn encode_snapshot_piece(piece: &Bytes) -> Bytes {
    let mut out = Vec::with_capacity(PIECE_HEAD_BYTES + piece.len());
    out.push(RAFT_MESSAGE_FORM);
    let mut encoder = Encoder::new(&mut out);
    let written = encoder.u8(PIECE).and_then(|e| e.u64(xxh3_64(piece))).and_then(|e| e.bytes(piece));
    written.map(|_| ()).expect("encoding into memory cannot fail");
    out.into()
}

/// Encodes the end of a snapshot, the last message of a stream of rows; its totals show whether pieces are missing.
#[must_use]
pub fn encode_snapshot_end(end: SnapshotEnd) -> Bytes {
    let mut out = vec![RAFT_MESSAGE_FORM];
    let written = Encoder::new(&mut out).u8(END).and_then(|e| e.encode(end)).map(|_| ());
    written.expect("encoding into memory cannot fail");
    out.into()
}

/// Decodes what follows the header of a snapshot.
///
/// # Errors
/// Another form, broken bytes, a piece that is too long, or a wrong checksum.
pub fn decode_snapshot_part(message: &Bytes) -> io::Result<SnapshotPart> {
    let mut decoder = open(message, STREAM_CHUNK_BYTES_MAX, PART)?;
    let broken = |error| broken(PART, &error);
    match decoder.u8().map_err(broken)? {
        PIECE => {
            let sum = decoder.u64().map_err(broken)?;
            let bytes = decoder.bytes().map_err(broken)?;
            if bytes.len() > SNAPSHOT_PIECE_BYTES || decoder.position() != decoder.input().len() {
                return Err(bad("a piece of a snapshot has a wrong length".into()));
            }
            if xxh3_64(bytes) != sum {
                return Err(bad("a piece of a snapshot has a wrong checksum".into()));
            }
            Ok(SnapshotPart::Piece(part(message, bytes)))
        }
        END => Ok(SnapshotPart::End(decoder.decode().map_err(broken)?)),
        tag => Err(bad(format!("a part of a snapshot has the unknown tag {tag}"))),
    }
}

/// What the receiver of a snapshot answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SnapshotAnswer {
    /// After the header: the pieces may follow.
    Ready,
    /// The receiver's vote: it has installed the snapshot, or its vote is later than the sender's.
    Voted(Vote),
    /// The reason why it does not take the snapshot.
    Refused(String),
}

#[derive(Encode, Decode)]
enum Answer<'a> {
    #[n(0)]
    Ready,
    #[n(1)]
    Voted(#[n(0)] SentVote),
    #[n(2)]
    Refused(#[b(0)] &'a str),
}

/// Encodes an answer of a receiver; a reason is cut to [`REFUSAL_BYTES_MAX`].
#[must_use]
pub fn encode_snapshot_answer(answer: &SnapshotAnswer) -> Bytes {
    let sent = match answer {
        SnapshotAnswer::Ready => Answer::Ready,
        SnapshotAnswer::Voted(vote) => Answer::Voted(vote.into()),
        SnapshotAnswer::Refused(why) => Answer::Refused(&why[..why.floor_char_boundary(REFUSAL_BYTES_MAX)]),
    };
    framed(&sent).into()
}

/// Decodes an answer of a receiver.
///
/// # Errors
/// Another form or broken bytes.
pub fn decode_snapshot_answer(bytes: &[u8]) -> io::Result<SnapshotAnswer> {
    Ok(match unframed(bytes, RAFT_ANSWER_BYTES_MAX, "answer to a snapshot")? {
        Answer::Ready => SnapshotAnswer::Ready,
        Answer::Voted(vote) => SnapshotAnswer::Voted(vote.into()),
        Answer::Refused(why) => SnapshotAnswer::Refused(why.to_owned()),
    })
}
