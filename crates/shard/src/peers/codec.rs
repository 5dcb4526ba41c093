//! The encoding of Raft's messages: a form byte, then CBOR. Lengths are checked before anything is allocated for them.

mod append;
mod frame;
mod parts;
mod snapshot;
mod transfer;
mod vote;

pub use append::{EncodedAppend, decode_append, decode_append_answer, encode_append, encode_append_answer};
pub use frame::RAFT_MESSAGE_FORM;
pub use snapshot::{
    SnapshotAnswer, SnapshotEnd, SnapshotHeader, SnapshotId, SnapshotPart, decode_snapshot_answer,
    decode_snapshot_header, decode_snapshot_part, encode_snapshot_answer, encode_snapshot_end,
    encode_snapshot_header, encode_snapshot_piece,
};
pub use transfer::{decode_transfer, decode_transfer_answer, encode_transfer, encode_transfer_answer};
pub use vote::{decode_vote, decode_vote_answer, encode_vote, encode_vote_answer};
