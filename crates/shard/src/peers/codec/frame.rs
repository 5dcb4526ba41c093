//! How messages are framed.

use bytes::Bytes;
use minicbor::{Decode, Decoder, Encode};
use std::io;
use switchward_state::all_known;

use crate::codec::bad;

/// Stored form. A message between servers: this byte, then CBOR.
pub const RAFT_MESSAGE_FORM: u8 = 1;

/// A form byte, then a value's fields by number.
pub(super) fn framed(value: &impl Encode<()>) -> Vec<u8> {
    let mut out = vec![RAFT_MESSAGE_FORM];
    minicbor::encode(value, &mut out).expect("encoding into memory cannot fail");
    out
}

/// Reads what [`framed`] wrote, without fields that this program does not know, if it has at most `bytes_max` bytes; `what` is the message's name in the error.
pub(super) fn unframed<'b, T>(bytes: &'b [u8], bytes_max: usize, what: &str) -> io::Result<T>
where
    T: Decode<'b, ()> + Encode<()>,
{
    let mut decoder = open(bytes, bytes_max, what)?;
    let value: T = decoder.decode().map_err(|error| broken(what, &error))?;
    if decoder.position() != decoder.input().len() {
        return Err(bad(format!("a {what} has bytes after its end")));
    }
    all_known(&value, decoder.position(), what).map_err(bad)?;
    Ok(value)
}

/// A decoder of what follows the form byte.
pub(super) fn open<'b>(bytes: &'b [u8], bytes_max: usize, what: &str) -> io::Result<Decoder<'b>> {
    if bytes.len() > bytes_max {
        return Err(bad(format!("a {what} has {} bytes, at most {bytes_max} are allowed", bytes.len())));
    }
    match bytes.split_first() {
        Some((&RAFT_MESSAGE_FORM, rest)) => Ok(Decoder::new(rest)),
        Some(_) | None => Err(bad(format!("a {what} is not of form {RAFT_MESSAGE_FORM}"))),
    }
}

/// The error of bytes that are not what they should be.
pub(super) fn broken(what: &str, error: &minicbor::decode::Error) -> io::Error {
    bad(format!("a {what} is broken: {error}"))
}

/// A part of a message, without a copy.
pub(super) fn part(message: &Bytes, part: &[u8]) -> Bytes {
    if part.is_empty() { Bytes::new() } else { message.slice_ref(part) }
}
