//! The API's methods by path, and the gRPC frame around one message.

use bytes::{BufMut, Bytes, BytesMut};
use prost_reflect::MethodDescriptor;
use std::sync::LazyLock;
use switchward_api::descriptor_pool;

use crate::body::too_large;
use crate::error::Refusal;
use crate::known::Known;
use crate::limits::MESSAGE_BYTES_MAX;

/// Bytes before a message: whether it is compressed, and its length.
pub(crate) const FRAME_HEADER_BYTES: usize = 5;

static METHODS: LazyLock<Known<String, MethodDescriptor>> = LazyLock::new(|| {
    let methods = descriptor_pool().services().flat_map(|service| service.methods().collect::<Vec<_>>());
    methods
        .map(|method| (format!("/{}/{}", method.parent_service().full_name(), method.name()), method))
        .collect()
});

/// The method that is called at this path.
pub(crate) fn method_at(path: &str) -> Option<&'static MethodDescriptor> {
    METHODS.get(path)
}

/// Puts a message into a frame.
///
/// # Panics
/// Never: messages are limited to far below what a frame holds.
#[must_use]
pub fn frame(message: &[u8]) -> Bytes {
    let length = u32::try_from(message.len()).expect("messages are limited to far below 4 GiB");
    let mut frame = BytesMut::with_capacity(FRAME_HEADER_BYTES + message.len());
    frame.put_u8(0);
    frame.put_u32(length);
    frame.put_slice(message);
    frame.freeze()
}

/// The one message of a body, whether or not it is compressed.
///
/// # Errors
/// No frame, a broken one, more than one, or a message above [`MESSAGE_BYTES_MAX`].
pub fn unframe(body: &Bytes) -> Result<Message, Refusal> {
    let Some((header, message)) = body.split_first_chunk::<FRAME_HEADER_BYTES>() else {
        let problem =
            if body.is_empty() { "the request has no message" } else { "the message's frame is cut off" };
        return Err(Refusal::field("", problem));
    };
    let [flag, length @ ..] = *header;
    let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
    if flag > 1 {
        return Err(Refusal::field("", format!("the message's frame has the unknown flag {flag}")));
    }
    if length > MESSAGE_BYTES_MAX {
        return Err(too_large());
    }
    if length > message.len() {
        let problem = format!("the message is cut off: {} of {length} bytes", message.len());
        return Err(Refusal::field("", problem));
    }
    if length < message.len() {
        return Err(Refusal::field("", "the request has more than one message"));
    }
    Ok(Message { compressed: flag == 1, bytes: body.slice(FRAME_HEADER_BYTES..) })
}

/// A message out of its frame.
#[derive(Debug)]
pub struct Message {
    /// Whether its bytes are compressed.
    pub compressed: bool,
    /// As they came.
    pub bytes: Bytes,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_holds_its_message() {
        let message = unframe(&frame(b"hello")).unwrap();
        assert_eq!((message.compressed, &message.bytes[..]), (false, &b"hello"[..]));
        assert!(unframe(&frame(b"")).unwrap().bytes.is_empty());
    }

    #[test]
    fn broken_frames_are_refused() {
        let whole = frame(b"hello");
        let twice = [&whole[..], &whole[..]].concat();
        let huge = [&[0, 255, 255, 255, 255][..], b"hello"].concat();
        let flagged = [&[2, 0, 0, 0, 5][..], b"hello"].concat();
        for broken in [&b""[..], &whole[..3], &whole[..8], &twice, &huge, &flagged] {
            assert!(unframe(&Bytes::copy_from_slice(broken)).is_err(), "{broken:?}");
        }
    }

    #[test]
    fn every_method_has_its_path() {
        let method = method_at("/switchward.v1.SessionService/StartSession").unwrap();
        assert_eq!(method.input().name(), "StartSessionRequest");
        assert!(method_at("/switchward.v1.SessionService/").is_none());
        assert!(method_at("/grpc.health.v1.Health/Check").is_none());
    }
}
