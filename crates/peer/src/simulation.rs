//! Calls and streams as the frames that a connection carries, for a network that a test plays. Only builds with the feature
//! `simulation` contain it, which no build of the product has.

use bytes::{Bytes, BytesMut};

use crate::error::PeerError;
use crate::frame::{Frame, Op, take};
use crate::limits::{BULK_BODY_BYTES_MAX, CONTROL_BODY_BYTES_MAX, STREAM_PIECE_BYTES_MAX};
use crate::link::answered;
use crate::request::{Request, Traffic};
use crate::serve::answer_frame;
use crate::wire::WireError;

/// The bytes of a request, whose number on its connection is `id`.
#[must_use]
pub fn request(id: u64, request: Request) -> Bytes {
    let Request { kind, group, body } = request;
    bytes(&Frame { op: Op::Request, kind, group, id, body })
}

/// Reads a request as the other server does. Returns its number and the request.
///
/// # Errors
/// The bytes are not one request, or it has more than its traffic allows: the connection would end.
pub fn read_request(bytes: Bytes, traffic: Traffic) -> Result<(u64, Request), String> {
    let Frame { op, kind, group, id, body } = frame(bytes, body_max(traffic))?;
    if op != Op::Request {
        return Err(format!("a frame of the type {op:?} is no request"));
    }
    Ok((id, Request { kind, group, body }))
}

/// The bytes of what a handler has answered to the request `id`. An answer that its traffic does not allow is lost.
#[must_use]
pub fn answer(id: u64, answered: Result<Bytes, String>, traffic: Traffic) -> Bytes {
    bytes(&Frame { id, ..answer_frame(answered, body_max(traffic)) })
}

/// Reads an answer as the server does that has asked. Returns the number of its request and what the call returns.
///
/// # Errors
/// The bytes are not one answer: the connection would end.
pub fn read_answer(bytes: Bytes, traffic: Traffic) -> Result<(u64, Result<Bytes, PeerError>), String> {
    let frame = frame(bytes, body_max(traffic))?;
    Ok((frame.id, answered(frame).map_err(|error| error.to_string())?))
}

/// The bytes of a piece of a stream.
#[must_use]
pub fn piece(piece: Bytes) -> Bytes {
    bytes(&Frame::of(Op::Piece, piece))
}

/// Reads a piece of a stream.
///
/// # Errors
/// The bytes are not one piece: the stream would break off.
pub fn read_piece(bytes: Bytes) -> Result<Bytes, String> {
    let frame = frame(bytes, STREAM_PIECE_BYTES_MAX)?;
    if frame.op == Op::Piece { Ok(frame.body) } else { Err(WireError::unexpected(&frame).to_string()) }
}

fn body_max(traffic: Traffic) -> usize {
    match traffic {
        Traffic::Control => CONTROL_BODY_BYTES_MAX,
        Traffic::Bulk | Traffic::Commands => BULK_BODY_BYTES_MAX,
    }
}

fn bytes(frame: &Frame) -> Bytes {
    let mut bytes = BytesMut::from(&frame.head()[..]);
    bytes.extend_from_slice(&frame.body);
    bytes.freeze()
}

/// The only frame of these bytes.
fn frame(bytes: Bytes, max: usize) -> Result<Frame, String> {
    let mut buffer = BytesMut::from(bytes);
    match take(&mut buffer, max) {
        Ok(Ok(frame)) if buffer.is_empty() => Ok(frame),
        Ok(Ok(_)) => Err(format!("{} bytes follow the frame", buffer.len())),
        Ok(Err(needed)) => Err(format!("a frame needs {needed} bytes")),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_is_what_is_read() {
        let asked = Request { kind: 3, group: 9, body: Bytes::from_static(b"entries") };
        for traffic in [Traffic::Control, Traffic::Bulk, Traffic::Commands] {
            assert_eq!(read_request(request(7, asked.clone()), traffic), Ok((7, asked.clone())));
            let said = Bytes::from_static(b"applied");
            assert_eq!(read_answer(answer(7, Ok(said.clone()), traffic), traffic), Ok((7, Ok(said))));
            let refused = Err(PeerError::Refused("not here".to_owned()));
            assert_eq!(
                read_answer(answer(8, Err("not here".to_owned()), traffic), traffic),
                Ok((8, refused))
            );
        }
        assert_eq!(read_piece(piece(Bytes::from_static(b"rows"))), Ok(Bytes::from_static(b"rows")));
    }

    #[test]
    fn what_is_damaged_is_not_read() {
        let whole = piece(Bytes::from_static(b"rows"));
        let mut damaged = whole.to_vec();
        *damaged.last_mut().unwrap() ^= 1;
        let mut longer = whole.to_vec();
        longer.push(1);
        for wrong in [Bytes::from(damaged), Bytes::from(longer), whole.slice(1..), whole.slice(..9)] {
            assert!(read_piece(wrong.clone()).is_err() && read_answer(wrong, Traffic::Bulk).is_err());
        }
        assert!(
            read_request(whole.clone(), Traffic::Bulk).is_err() && read_answer(whole, Traffic::Bulk).is_err()
        );
        let long = answer(1, Ok(Bytes::from(vec![0; CONTROL_BODY_BYTES_MAX + 1])), Traffic::Control);
        assert!(matches!(read_answer(long, Traffic::Control), Ok((1, Err(PeerError::Unknown(_))))));
    }
}
