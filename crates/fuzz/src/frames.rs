//! Frames: stored bytes, and bytes sent between programs. The first byte is the kind of the rest.

use bytes::Bytes;
use prost::Message;
use prost_reflect::DynamicMessage;
use switchward_gateway::calls::{frame, unframe};
use switchward_machine::Machine;
use switchward_shard::{TimerBatch, decode_entry, encode_entry};
use switchward_state::{Decision, Row};

/// Returns true if the bytes are valid for their kind.
pub(crate) fn read(bytes: &[u8]) -> bool {
    let Some((kind, rest)) = bytes.split_first() else { return false };
    match kind {
        b'r' => same(Row::decode(rest).ok(), Row::encode, |bytes| Row::decode(bytes).ok()),
        b'd' => same(Decision::decode(rest).ok(), Decision::encode, |bytes| Decision::decode(bytes).ok()),
        b'm' => same(Machine::decode(rest).ok(), Machine::encode, |bytes| Machine::decode(bytes).ok()),
        b't' => same(TimerBatch::decode(rest), TimerBatch::encode, TimerBatch::decode),
        b'e' => entry(rest),
        b'g' => call(rest),
        _ => false,
    }
}

/// Checks that a value is the same after encoding and decoding.
pub(crate) fn same<T: PartialEq>(
    read: Option<T>,
    encode: impl Fn(&T) -> Vec<u8>,
    decode: impl Fn(&[u8]) -> Option<T>,
) -> bool {
    let Some(value) = read else { return false };
    let written = encode(&value);
    let again = decode(&written).expect("an encoded message can be decoded again");
    assert!(again == value, "the message differs after writing and reading");
    assert!(encode(&again) == written, "the message has two encodings");
    true
}

/// An entry of the log.
fn entry(bytes: &[u8]) -> bool {
    let bytes = Bytes::copy_from_slice(bytes);
    let Ok(entry) = decode_entry(1, &bytes) else { return false };
    let written = encode_entry(&entry).expect("a decoded entry can be encoded");
    let again = decode_entry(1, &written).expect("an encoded entry can be decoded");
    assert!(again == entry, "an entry differs after writing and reading");
    true
}

/// The frame of a gRPC call, with each message of the API that it may be.
fn call(bytes: &[u8]) -> bool {
    let Ok(framed) = unframe(&Bytes::copy_from_slice(bytes)) else { return false };
    assert!(framed.compressed || frame(&framed.bytes) == bytes, "a frame has two encodings");
    let services = switchward_api::descriptor_pool().services();
    let inputs = services.flat_map(|service| service.methods().map(|it| it.input()).collect::<Vec<_>>());
    let mut accepted = false;
    for input in inputs {
        let Ok(message) = DynamicMessage::decode(input.clone(), framed.bytes.clone()) else { continue };
        accepted = true;
        let again = DynamicMessage::decode(input, message.encode_to_vec().as_slice());
        assert!(again.is_ok(), "an encoded message cannot be decoded again");
        // JSON cannot express every message: for example a time outside the calendar.
        let _ = serde_json::to_vec(&message);
    }
    accepted
}
