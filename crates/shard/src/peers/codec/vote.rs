//! Votes and their answers; a question before an election has the same forms.

use bytes::Bytes;
use minicbor::{Decode, Encode};
use openraft::raft::{VoteRequest, VoteResponse};
use std::io;

use super::frame::{framed, unframed};
use super::parts::{SentLogId, SentVote};
use crate::limits::RAFT_ANSWER_BYTES_MAX;
use crate::types::TypeConfig;

#[derive(Encode, Decode)]
struct Question {
    #[n(0)]
    vote: SentVote,
    #[n(1)]
    last: Option<SentLogId>,
    #[n(2)]
    transfer: bool,
}

#[derive(Encode, Decode)]
struct Answer {
    #[n(0)]
    vote: SentVote,
    #[n(1)]
    last: Option<SentLogId>,
    #[n(2)]
    granted: bool,
}

/// Encodes a candidate's question for a vote.
#[must_use]
pub fn encode_vote(question: &VoteRequest<TypeConfig>) -> Bytes {
    let (vote, transfer) = ((&question.vote).into(), question.leadership_transfer);
    framed(&Question { vote, last: question.last_log_id.map(Into::into), transfer }).into()
}

/// Decodes a candidate's question for a vote.
///
/// # Errors
/// Another form or broken bytes.
pub fn decode_vote(bytes: &[u8]) -> io::Result<VoteRequest<TypeConfig>> {
    let Question { vote, last, transfer } = unframed(bytes, RAFT_ANSWER_BYTES_MAX, "question for a vote")?;
    let mut question = VoteRequest::new(vote.into(), last.map(Into::into));
    question.leadership_transfer = transfer;
    Ok(question)
}

/// Encodes the answer to a question for a vote.
#[must_use]
pub fn encode_vote_answer(answer: &VoteResponse<TypeConfig>) -> Bytes {
    let (vote, granted) = ((&answer.vote).into(), answer.vote_granted);
    framed(&Answer { vote, last: answer.last_log_id.map(Into::into), granted }).into()
}

/// Decodes the answer to a question for a vote.
///
/// # Errors
/// Another form or broken bytes.
pub fn decode_vote_answer(bytes: &[u8]) -> io::Result<VoteResponse<TypeConfig>> {
    let Answer { vote, last, granted } =
        unframed(bytes, RAFT_ANSWER_BYTES_MAX, "answer to a question for a vote")?;
    Ok(VoteResponse { vote: vote.into(), vote_granted: granted, last_log_id: last.map(Into::into) })
}
