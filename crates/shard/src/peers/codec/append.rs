//! Appends and their answers.

use bytes::Bytes;
use minicbor::{Decode, Encode, Encoder};
use openraft::EntryPayload;
use openraft::raft::{AppendEntriesRequest, AppendEntriesResponse};
use std::io;
use switchward_state::all_known;

use super::frame::{broken, framed, open, part, unframed};
use super::parts::{SentLogId, SentVote};
use crate::codec::{bad, decode_entry, entry_parts};
use crate::limits::{APPEND_BYTES_WANTED, APPEND_ENTRIES_MAX, RAFT_ANSWER_BYTES_MAX, RAFT_MESSAGE_BYTES_MAX};
use crate::types::{Entry, LogId, TypeConfig, Vote};

const WHAT: &str = "message with entries";
/// What a form byte and the head of an append take at most, bytes.
const HEAD_BYTES: usize = 64;
/// What the length of an entry takes at most, bytes.
const LENGTH_BYTES: usize = 9;

/// An append without its entries, which follow it as byte strings, each in its log form.
#[derive(Encode, Decode)]
struct Head {
    #[n(0)]
    vote: SentVote,
    #[n(1)]
    previous: Option<SentLogId>,
    #[n(2)]
    committed: Option<SentLogId>,
}

/// A request of Raft that was cut to the largest message.
#[derive(Debug, Clone)]
pub struct EncodedAppend {
    /// The message.
    pub bytes: Bytes,
    /// How many of the entries it contains, from the first one on.
    pub entries: usize,
}

/// Encodes an append with as many of its entries as [`APPEND_ENTRIES_MAX`] and [`APPEND_BYTES_WANTED`] allow, and with
/// the first one in any case.
///
/// # Errors
/// A membership cannot be written as JSON.
pub fn encode_append(append: &AppendEntriesRequest<TypeConfig>) -> io::Result<EncodedAppend> {
    let head = Head {
        vote: (&append.vote).into(),
        previous: append.prev_log_id.map(Into::into),
        committed: append.leader_commit.map(Into::into),
    };
    let mut parts = Vec::new();
    let mut bytes = 0;
    for entry in append.entries.iter().take(APPEND_ENTRIES_MAX) {
        let (header, body) = entry_parts(entry)?;
        let more = LENGTH_BYTES + header.len() + body.len();
        if bytes + more > APPEND_BYTES_WANTED && !parts.is_empty() {
            break;
        }
        bytes += more;
        parts.push((header, body));
    }
    let mut out = Vec::with_capacity(HEAD_BYTES + bytes);
    out.extend(framed(&head));
    for (header, body) in &parts {
        let length = (header.len() + body.len()) as u64;
        let written = Encoder::new(&mut out).bytes_len(length).map(|_| ());
        written.expect("encoding into memory cannot fail");
        out.extend_from_slice(header);
        out.extend_from_slice(body);
    }
    Ok(EncodedAppend { bytes: out.into(), entries: parts.len() })
}

/// Decodes an append, and checks that a leader can have sent it.
///
/// # Errors
/// Another form, broken bytes, too many entries, or entries that no log can have.
pub fn decode_append(message: &Bytes) -> io::Result<AppendEntriesRequest<TypeConfig>> {
    let mut decoder = open(message, RAFT_MESSAGE_BYTES_MAX, WHAT)?;
    let head: Head = decoder.decode().map_err(|error| broken(WHAT, &error))?;
    all_known(&head, decoder.position(), WHAT).map_err(bad)?;
    let vote = Vote::from(head.vote);
    let previous = head.previous.map(LogId::from);
    let committed = head.committed.map(LogId::from);
    let mut entries = Vec::new();
    let mut last = previous;
    while decoder.position() < decoder.input().len() {
        if entries.len() == APPEND_ENTRIES_MAX {
            return Err(bad(format!("a {WHAT} has more than {APPEND_ENTRIES_MAX} entries")));
        }
        let bytes = decoder.bytes().map_err(|error| broken(WHAT, &error))?;
        let index = last.map_or(Some(0), |last| last.index.checked_add(1));
        let index = index.ok_or_else(|| bad(format!("a {WHAT} has an index that is too large")))?;
        let entry = whole(decode_entry(index, &part(message, bytes))?)?;
        if last.is_some_and(|last| last.leader_id > entry.log_id.leader_id) {
            return Err(bad(format!("a {WHAT} has an entry of an earlier term than the one before")));
        }
        last = Some(entry.log_id);
        entries.push(entry);
    }
    let latest = last.max(committed).map_or(0, |latest| latest.leader_id.term);
    if !vote.committed || vote.leader_id.term < latest {
        return Err(bad(format!("a {WHAT} is not from the leader that its vote names")));
    }
    Ok(AppendEntriesRequest { vote, prev_log_id: previous, entries, leader_commit: committed })
}

/// The entry, if its membership, if it has one, is a valid one.
fn whole(entry: Entry) -> io::Result<Entry> {
    if let EntryPayload::Membership(members) = &entry.payload {
        let nodes = members.nodes().map(|(node, what)| (*node, what.clone()));
        let nodes: std::collections::BTreeMap<_, _> = nodes.collect();
        openraft::Membership::new(members.get_joint_config().clone(), nodes)
            .map_err(|error| bad(format!("a {WHAT} has an invalid membership: {error}")))?;
    }
    Ok(entry)
}

#[derive(Encode, Decode)]
enum Answer {
    #[n(0)]
    Success,
    #[n(1)]
    Partial(#[n(0)] Option<SentLogId>),
    #[n(2)]
    Conflict,
    #[n(3)]
    HigherVote(#[n(0)] SentVote),
}

/// Encodes the answer to an append, for [`decode_append_answer`].
#[must_use]
pub fn encode_append_answer(answer: &AppendEntriesResponse<TypeConfig>) -> Bytes {
    let sent = match answer {
        AppendEntriesResponse::Success => Answer::Success,
        AppendEntriesResponse::PartialSuccess(last) => Answer::Partial(last.map(Into::into)),
        AppendEntriesResponse::Conflict => Answer::Conflict,
        AppendEntriesResponse::HigherVote(vote) => Answer::HigherVote(vote.into()),
    };
    framed(&sent).into()
}

/// Decodes the answer to an append.
///
/// # Errors
/// Another form or broken bytes.
pub fn decode_append_answer(bytes: &[u8]) -> io::Result<AppendEntriesResponse<TypeConfig>> {
    let sent = unframed(bytes, RAFT_ANSWER_BYTES_MAX, "answer to entries")?;
    Ok(match sent {
        Answer::Success => AppendEntriesResponse::Success,
        Answer::Partial(last) => AppendEntriesResponse::PartialSuccess(last.map(Into::into)),
        Answer::Conflict => AppendEntriesResponse::Conflict,
        Answer::HigherVote(vote) => AppendEntriesResponse::HigherVote(vote.into()),
    })
}
