//! Reads the entries of a stream defensively: others may write there, too.

use std::time::Duration;

use ::redis::Value;

use crate::bus::{Delivery, Envelope, Receipt};

/// A raw entry.
pub(super) struct Entry {
    /// Its id in the stream, as Redis writes ids.
    pub(super) id: String,
    count: u32,
    fields: Value,
    /// The server's time when it was taken, milliseconds since 1970.
    pub(super) now_ms: u64,
}

/// What a receipt says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Receipted<'a> {
    /// The entry's id in the stream.
    pub(super) entry: &'a str,
    /// The bytes of its body.
    pub(super) bytes: u64,
    /// The envelope's id; empty for an entry that is none.
    pub(super) id: &'a str,
}

impl Entry {
    /// Reads the rows of the take script.
    pub(super) fn of_script(answer: Value) -> Vec<Self> {
        items(answer).into_iter().filter_map(|row| Self::of_row(items(row))).collect()
    }

    fn of_row(row: Vec<Value>) -> Option<Self> {
        let [id, count, fields, now] = <[Value; 4]>::try_from(row).ok()?;
        let (Value::Int(count), Value::Int(now)) = (count, now) else { return None };
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        let now_ms = u64::try_from(now).unwrap_or_default();
        Some(Self { id: text(id)?, count, fields, now_ms })
    }

    /// Reads the answer of `XREADGROUP` for one stream: nothing, or the stream with its entries. `now_ms` is the server's time
    /// after it.
    pub(super) fn of_read(answer: Value, now_ms: u64) -> Vec<Self> {
        let Some(stream) = items(answer).pop() else { return Vec::new() };
        let Some(entries) = items(stream).pop() else { return Vec::new() };
        items(entries).into_iter().filter_map(|entry| Self::of_pair(items(entry), now_ms)).collect()
    }

    fn of_pair(entry: Vec<Value>, now_ms: u64) -> Option<Self> {
        let [id, fields] = <[Value; 2]>::try_from(entry).ok()?;
        Some(Self { id: text(id)?, count: 1, fields, now_ms })
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
        let age = age(&self.id, self.now_ms);
        let receipt = Receipt::new(format!("{}/{}/{}", self.id, envelope.body.len(), envelope.id));
        Some(Delivery { receipt, envelope, count: self.count, age })
    }
}

/// Reads a receipt; `None` for a foreign one.
pub(super) fn of_receipt(receipt: &Receipt) -> Option<Receipted<'_>> {
    let mut parts = receipt.as_str().splitn(3, '/');
    let (entry, bytes, id) = (parts.next()?, parts.next()?, parts.next()?);
    let (ms, sequence) = entry.split_once('-')?;
    let _: (u64, u64) = (number(ms)?, number(sequence)?);
    Some(Receipted { entry, bytes: number(bytes)?, id })
}

/// The time between an entry, whose id begins with the server's time, and now. An id of the future, after the server's
/// clock was set back, has no age.
fn age(entry: &str, now_ms: u64) -> Duration {
    let published = entry.split_once('-').and_then(|(ms, _)| number(ms));
    Duration::from_millis(published.map_or(0, |published| now_ms.saturating_sub(published)))
}

fn number(digits: &str) -> Option<u64> {
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
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
