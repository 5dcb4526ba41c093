//! Requests that are damaged below their fields: changed bytes, fields of another wire type, wrong frames.

use bytes::Bytes;
use prost::{
    Message,
    encoding::{WireType, encode_key, encode_varint},
};

use super::dice::Dice;
use super::{Attack, protocols, targets};
use crate::protocols::{Protocol, Raw, base64, frame};

pub(super) const SENT: usize = 4_000;
const DAMAGED: usize = 70;
const ODD_FIELDS: usize = 60;

/// A field that the message does not expect: of another type, of an unknown number, or cut off.
fn odd_field(dice: &mut Dice) -> Vec<u8> {
    let number = *dice.pick(&[1, 2, 3, 4, 5, 6, 10, 11, 12, 14, 15, 99, 18_999, 536_870_911]);
    let kinds = [
        WireType::Varint,
        WireType::SixtyFourBit,
        WireType::LengthDelimited,
        WireType::StartGroup,
        WireType::EndGroup,
        WireType::ThirtyTwoBit,
    ];
    let kind = *dice.pick(&kinds);
    let mut bytes = Vec::new();
    encode_key(number, kind, &mut bytes);
    match kind {
        WireType::Varint => encode_varint(dice.bits(), &mut bytes),
        WireType::SixtyFourBit => bytes.extend(dice.bits().to_le_bytes()),
        WireType::ThirtyTwoBit => bytes.extend(&dice.bits().to_le_bytes()[..4]),
        WireType::LengthDelimited => {
            // Often not UTF-8, sometimes longer than its length prefix, sometimes shorter.
            let content = dice.bytes(40);
            let lie = [0, 0, 0, 1, 1 << 20, 1 << 40_u64][dice.below(6)];
            encode_varint(u64::try_from(content.len()).expect("short") + lie, &mut bytes);
            bytes.extend(content);
        }
        WireType::StartGroup | WireType::EndGroup => {}
    }
    if dice.below(8) == 0 {
        bytes.truncate(bytes.len() - 1);
    }
    bytes
}

/// The frame of a message, possibly wrong.
fn framed(dice: &mut Dice, message: &[u8]) -> Bytes {
    let flag = [0, 0, 0, 0, 1, 2, 0x80, 0xff][dice.below(8)];
    let mut bytes = frame(flag, message).to_vec();
    match dice.below(8) {
        0 => bytes.truncate(dice.below(6)),
        1 => bytes[1..5].copy_from_slice(&dice.bits().to_be_bytes()[..4]),
        2 => bytes.extend(frame(0, message)),
        3 => bytes.push(0),
        _ => {}
    }
    bytes.into()
}

fn raw(protocol: Protocol, method: &str, framed: &Bytes) -> Raw {
    let body = if protocol == Protocol::WebText { base64(framed).into() } else { framed.clone() };
    Raw::post(protocol, method, body)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damaged_messages_and_frames() {
    let mut attack = Attack::start("frames").await;
    let mut dice = Dice::new(2);
    for mut target in targets(&attack).await {
        let methods: Vec<Protocol> =
            protocols(&target.rpc).iter().copied().filter(|protocol| *protocol != Protocol::Json).collect();
        for turn in 0..DAMAGED + ODD_FIELDS {
            let protocol = methods[turn % methods.len()];
            let good = target.good.encode_to_vec();
            let bad = if turn < DAMAGED {
                frame(0, &dice.damage(&good))
            } else {
                let with = [good, odd_field(&mut dice)].concat();
                if turn % 3 == 0 { framed(&mut dice, &with) } else { frame(0, &with) }
            };
            let raw = raw(protocol, target.rpc.method, &bad);
            target.shoot(&mut attack, raw, format!("{bad:?} by {protocol:?}")).await;
        }
        let text = Raw::post(Protocol::WebText, target.rpc.method, dice.bytes(60));
        target.shoot(&mut attack, text, "no base64".into()).await;
    }
    attack.end(SENT).await;
}
