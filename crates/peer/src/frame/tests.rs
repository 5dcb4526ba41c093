use super::*;
use proptest::prelude::*;

fn frame(op: Op, body: &[u8]) -> Frame {
    Frame { op, kind: 7, group: 0x0102_0304, id: 99, body: Bytes::copy_from_slice(body) }
}

fn bytes(frame: &Frame) -> BytesMut {
    let mut bytes = BytesMut::from(&frame.head()[..]);
    bytes.extend_from_slice(&frame.body);
    bytes
}

#[test]
fn every_frame_is_read_back_and_needs_all_its_bytes() {
    for op in Op::ALL {
        for length in [0, 1, COPIED_BYTES_MAX, COPIED_BYTES_MAX + 1] {
            let sent = frame(op, &vec![3; length]);
            let whole = bytes(&sent);
            for cut in [0, 1, HEAD_BYTES - 1, HEAD_BYTES, whole.len() - 1] {
                let mut part = BytesMut::from(&whole[..cut.min(whole.len() - 1)]);
                let needed = take(&mut part, length).unwrap().unwrap_err();
                assert!(needed > part.len() && needed <= whole.len());
            }
            let mut two = whole.clone();
            two.extend_from_slice(&whole);
            assert_eq!(take(&mut two, length).unwrap().unwrap(), sent);
            assert_eq!(take(&mut two, length).unwrap().unwrap(), sent);
            assert!(two.is_empty());
        }
    }
}

#[test]
fn a_frame_over_its_maximum_is_refused_by_its_head_alone() {
    let mut head = BytesMut::from(&frame(Op::Request, &[0; 11]).head()[..]);
    assert_eq!(take(&mut head, 10), Err(FrameError::Length { length: 11, max: 10 }));
}

#[test]
fn every_changed_bit_is_found() {
    let whole = bytes(&frame(Op::Answer, b"body"));
    for bit in 0..whole.len() * 8 {
        let mut damaged = whole.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(!matches!(take(&mut damaged, usize::MAX), Ok(Ok(_))), "bit {bit}");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_a_frame_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200), max in 0usize..300) {
        let mut buffer = BytesMut::from(&bytes[..]);
        if let Ok(Err(needed)) = take(&mut buffer, max) {
            prop_assert!(needed > bytes.len() && needed <= HEAD_BYTES + max);
        }
    }

    #[test]
    fn any_bytes_after_a_right_beginning_are_a_frame_or_refused(
        op in 1u8..13, length in 0u32..100, bytes in prop::collection::vec(any::<u8>(), 24..200)
    ) {
        let mut buffer = BytesMut::from(&[VERSION, op, 0, 0][..]);
        buffer.put_u32(length);
        buffer.extend_from_slice(&bytes);
        let _taken = take(&mut buffer, 64);
    }
}
