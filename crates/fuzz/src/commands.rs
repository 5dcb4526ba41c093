//! Commands and their answers, as servers send them to one another. The first byte is the kind of the rest.

use switchward_state::{Command, Rejection, Reply};

use crate::frames::same;

/// Returns true if the bytes are valid for their kind.
pub(crate) fn read(bytes: &[u8]) -> bool {
    let Some((kind, rest)) = bytes.split_first() else { return false };
    match kind {
        b'c' => same(Command::decode(rest).ok(), Command::encode, |bytes| Command::decode(bytes).ok()),
        b'a' => same(Reply::decode(rest).ok(), Reply::encode, |bytes| Reply::decode(bytes).ok()),
        b'r' => same(Rejection::decode(rest).ok(), Rejection::encode, |bytes| Rejection::decode(bytes).ok()),
        _ => false,
    }
}
