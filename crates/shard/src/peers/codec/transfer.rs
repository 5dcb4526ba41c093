//! The hand-over of a leadership.

use bytes::Bytes;
use minicbor::{Decode, Encode};
use openraft::raft::{TransferLeaderError, TransferLeaderRequest, TransferLeaderResponse};
use std::io;

use super::frame::{framed, unframed};
use super::parts::{SentLogId, SentVote};
use crate::limits::RAFT_ANSWER_BYTES_MAX;
use crate::types::TypeConfig;

#[derive(Encode, Decode)]
struct Transfer {
    #[n(0)]
    from: SentVote,
    #[n(1)]
    to: u64,
    #[n(2)]
    last: Option<SentLogId>,
}

#[derive(Encode, Decode)]
enum Answer {
    #[n(0)]
    Accepted,
    #[n(1)]
    VoteChanged(#[n(0)] SentVote, #[n(1)] SentVote),
    #[n(2)]
    LogNotFlushed(#[n(0)] Option<SentLogId>, #[n(1)] Option<SentLogId>),
}

/// Encodes a hand-over.
#[must_use]
pub fn encode_transfer(transfer: &TransferLeaderRequest<TypeConfig>) -> Bytes {
    let (from, to) = (transfer.from_leader().into(), *transfer.to_node_id());
    framed(&Transfer { from, to, last: transfer.last_log_id().copied().map(Into::into) }).into()
}

/// Decodes a hand-over.
///
/// # Errors
/// Another form or broken bytes.
pub fn decode_transfer(bytes: &[u8]) -> io::Result<TransferLeaderRequest<TypeConfig>> {
    let Transfer { from, to, last } = unframed(bytes, RAFT_ANSWER_BYTES_MAX, "hand-over")?;
    Ok(TransferLeaderRequest::new(from.into(), to, last.map(Into::into)))
}

/// Encodes the answer to a hand-over.
#[must_use]
pub fn encode_transfer_answer(answer: &TransferLeaderResponse<TypeConfig>) -> Bytes {
    let sent = match answer {
        Ok(()) => Answer::Accepted,
        Err(TransferLeaderError::VoteChanged { expected, actual }) => {
            Answer::VoteChanged(expected.into(), actual.into())
        }
        Err(TransferLeaderError::LogNotFlushed { expected, actual }) => {
            Answer::LogNotFlushed(expected.map(Into::into), actual.map(Into::into))
        }
    };
    framed(&sent).into()
}

/// Decodes the answer to a hand-over.
///
/// # Errors
/// Another form or broken bytes.
pub fn decode_transfer_answer(bytes: &[u8]) -> io::Result<TransferLeaderResponse<TypeConfig>> {
    Ok(match unframed(bytes, RAFT_ANSWER_BYTES_MAX, "answer to a hand-over")? {
        Answer::Accepted => Ok(()),
        Answer::VoteChanged(expected, actual) => {
            let (expected, actual) = (expected.into(), actual.into());
            Err(TransferLeaderError::VoteChanged { expected, actual })
        }
        Answer::LogNotFlushed(expected, actual) => {
            let (expected, actual) = (expected.map(Into::into), actual.map(Into::into));
            Err(TransferLeaderError::LogNotFlushed { expected, actual })
        }
    })
}
