//! Reads the entries of a stream defensively: others may write there, too.

use ::redis::Value;

use crate::bus::{Delivery, Envelope, Receipt};

/// A raw entry.
pub(super) struct Entry {
    /// Its id in the stream, as Redis writes ids.
    pub(super) id: String,
    count: u32,
    fields: Value,
}

impl Entry {
    /// Reads the rows of the take script.
    pub(super) fn of_script(answer: Value) -> Vec<Self> {
        items(answer).into_iter().filter_map(|row| Self::of_row(items(row))).collect()
    }

    fn of_row(row: Vec<Value>) -> Option<Self> {
        let [id, count, fields] = <[Value; 3]>::try_from(row).ok()?;
        let Value::Int(count) = count else { return None };
        Some(Self { id: text(id)?, count: u32::try_from(count).unwrap_or(u32::MAX), fields })
    }

    /// Reads the answer of `XREADGROUP` for one stream: nothing, or the stream with its entries.
    pub(super) fn of_read(answer: Value) -> Vec<Self> {
        let Some(stream) = items(answer).pop() else { return Vec::new() };
        let Some(entries) = items(stream).pop() else { return Vec::new() };
        items(entries).into_iter().filter_map(|entry| Self::of_pair(items(entry))).collect()
    }

    fn of_pair(entry: Vec<Value>) -> Option<Self> {
        let [id, fields] = <[Value; 2]>::try_from(entry).ok()?;
        Some(Self { id: text(id)?, count: 1, fields })
    }

    /// Returns the delivery, or `None` for a foreign entry.
    pub(super) fn read(self) -> Option<Delivery> {
        let (mut tenant, mut id, mut body) = (None, None, None);
        let mut fields = items(self.fields).into_iter();
        while let (Some(name), Some(value)) = (fields.next(), fields.next()) {
            match bytes(name)?.as_slice() {
                b"tenant" => tenant = text(value)?.parse().ok(),
                b"id" => id = text(value),
                b"body" => body = bytes(value),
                // A later version may add fields.
                _ => {}
            }
        }
        let envelope = Envelope { tenant: tenant?, id: id?, body: body? };
        envelope.check().ok()?;
        let receipt = Receipt::new(format!("{}/{}", self.id, envelope.body.len()));
        Some(Delivery { receipt, envelope, count: self.count })
    }
}

/// Returns an entry's id and the bytes of its body from a receipt, or `None` for a foreign receipt.
pub(super) fn of_receipt(receipt: &Receipt) -> Option<(&str, u64)> {
    let (id, bytes) = receipt.as_str().split_once('/')?;
    let (ms, sequence) = id.split_once('-')?;
    let number =
        |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?;
    let _: (u64, u64) = (number(ms)?, number(sequence)?);
    Some((id, number(bytes)?))
}

fn items(value: Value) -> Vec<Value> {
    if let Value::Array(items) = value { items } else { Vec::new() }
}

fn bytes(value: Value) -> Option<Vec<u8>> {
    if let Value::BulkString(bytes) = value { Some(bytes) } else { None }
}

fn text(value: Value) -> Option<String> {
    String::from_utf8(bytes(value)?).ok()
}
