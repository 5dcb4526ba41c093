//! What a row costs in memory: which kind is asked.

use minicbor::CborLen;

use crate::Row;
use crate::memory::{ENTRY_BYTES, InMemory};

/// Rows of one number or none, which have no type of their own.
#[derive(Debug, CborLen)]
enum Small {
    /// Read with every command.
    #[n(0)]
    Cached,
    /// Read seldom.
    #[n(1)]
    NotCached,
}

impl InMemory for Small {
    fn cached(&self) -> bool {
        match self {
            Self::Cached => true,
            Self::NotCached => false,
        }
    }

    fn structure_bytes(&self) -> usize {
        ENTRY_BYTES
    }

    fn text_bytes(&self) -> usize {
        0
    }
}

impl Row {
    /// Returns true if a cache keeps the row once it is on disk.
    #[must_use]
    pub fn is_cached(&self) -> bool {
        self.in_memory().cached()
    }

    /// The approximate memory of the row without its key, bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.in_memory().memory_bytes()
    }

    fn in_memory(&self) -> &dyn InMemory {
        match self {
            Self::Session(row) => row,
            Self::Run(row) => row,
            Self::Closed(row) => row,
            Self::Call(row) => row,
            Self::History(row) => row,
            Self::Request(row) => row,
            Self::Ledger(row) => row,
            Self::Outbox(row) => row,
            Self::Machine(row) => &**row,
            Self::Grant(row) => row,
            Self::Tenant(row) => row,
            Self::ApiKey(row) => row,
            Self::Definition(row) => row,
            Self::Version(row) => row,
            Self::OpenItem(row) => row,
            Self::Data(row) => row,
            Self::LastMessage(row) => row,
            Self::Slot(row) => row,
            Self::Assistant(row) => row,
            Self::WebhookSource(row) => row,
            Self::Tenancy(row) => row,
            Self::Removed(row) => row,
            Self::TenantChange(row) => row,
            Self::Usage(row) => row,
            Self::Reply(row) => row,
            Self::Server(row) => row,
            Self::ClusterMap(row) => row,
            Self::Clock(_) | Self::Level(_) => &Small::Cached,
            Self::Index | Self::LastTenant(_) | Self::Source(_) | Self::Recorded(_) | Self::Mailed(_) => {
                &Small::NotCached
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::ROW_BYTES;
    use crate::{Answered, Decision, History};
    use std::collections::BTreeSet;
    use std::sync::Arc;
    use switchward_machine::Time;

    const ROWS: &str = include_str!("../tests/golden/row.v1.txt");
    const DECISIONS: &str = include_str!("../tests/golden/decision.v1.txt");
    /// The length that every text and every free byte string is padded to.
    const LONG_BYTES: usize = 20_000;

    fn lines(golden: &'static str) -> impl Iterator<Item = (&'static str, Vec<u8>)> {
        golden.lines().map(|line| {
            let (name, hex) = line.split_once(' ').unwrap();
            let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
            (name, (0..hex.len()).step_by(2).map(byte).collect())
        })
    }

    /// The same stored form with long texts and long byte strings, except for hashes, machines, ids of keys, and texts of
    /// which only certain ones can be read.
    fn lengthened(stored: &[u8], reads: impl Fn(&[u8]) -> bool) -> Vec<u8> {
        const HASH_BYTES: usize = 16;
        const RING_KEY_ID_BYTES: usize = 8;
        let mut out = vec![stored[0]];
        let mut at = 1;
        while at < stored.len() {
            let (major, info) = (stored[at] >> 5, stored[at] & 31);
            let width = if info < 24 { 0 } else { 1 << (info - 24) };
            let head = &stored[at..=at + width];
            let value = head[1..].iter().fold(0, |value, byte| value << 8 | usize::from(*byte));
            let length = if width == 0 { usize::from(info) } else { value };
            at += head.len();
            if !matches!(major, 2 | 3) {
                out.extend(head);
                continue;
            }
            let rest = at + length;
            if major == 3 || (length < HASH_BYTES && length != RING_KEY_ID_BYTES) {
                let longer = [&out, &long(major)[..]].concat();
                if reads(&[&longer, &stored[rest..]].concat()) {
                    out = longer;
                    at = rest;
                    continue;
                }
            }
            out.extend(head);
            out.extend(&stored[at..rest]);
            at = rest;
        }
        out
    }

    /// A long text, or a long byte string that holds a JSON text.
    fn long(major: u8) -> Vec<u8> {
        let mut item = vec![major << 5 | 25];
        item.extend((LONG_BYTES as u16).to_be_bytes());
        let quote = if major == 2 { b'"' } else { b'x' };
        item.push(quote);
        item.resize(item.len() + LONG_BYTES - 2, b'x');
        item.push(quote);
        item
    }

    /// Rows of every kind, and a history of every event, with long texts.
    fn long_rows() -> Vec<(String, Row)> {
        let mut rows: Vec<(String, Row)> = lines(ROWS)
            .map(|(name, stored)| {
                (name.to_owned(), Row::decode(&lengthened(&stored, |row| Row::decode(row).is_ok())).unwrap())
            })
            .collect();
        for (_, row) in &mut rows {
            if let Row::Machine(machine) = row {
                Arc::make_mut(machine).nodes[0].text = Some("x".repeat(LONG_BYTES));
            }
        }
        rows.extend(lines(DECISIONS).map(|(_, stored)| {
            let longer = lengthened(&stored, |decision| Decision::decode(decision).is_ok());
            let turn = Decision::decode(&longer).unwrap().turns.remove(0);
            let (request, answered) = match turn.request {
                Some((id, body)) => (Some(id), Some(Answered { body, reply: turn.reply })),
                None => (None, None),
            };
            let name = format!("history of {:.40?}", turn.events);
            let history = History { at: Time(1), by: turn.by, request, events: turn.events, answered };
            (name, Row::History(history.into()))
        }));
        rows
    }

    #[test]
    fn a_row_weighs_what_its_texts_weigh() {
        let mut long = BTreeSet::new();
        for (name, row) in long_rows() {
            let (weight, encoded) = (row.memory_bytes(), row.encode().len());
            assert!(weight >= encoded, "{name} weighs {weight} and has {encoded} bytes");
            // Data are values of JSON, which take several times the bytes of their text.
            let times = if matches!(row, Row::Data(_)) { 4 } else { 2 };
            assert!(weight <= times * encoded + 4 * ROW_BYTES, "{name} weighs {weight}, not {encoded}");
            if encoded > LONG_BYTES {
                long.insert(name);
            }
        }
        for kind in
            ["session", "run", "open", "closed", "call", "history", "outbox-notice", "machine", "version"]
        {
            assert!(long.contains(kind), "no long {kind} was weighed");
        }
        assert!(long.len() > 40, "{} long rows were weighed", long.len());
    }

    #[test]
    fn a_ledger_weighs_what_its_lists_weigh() {
        let (_, stored) = lines(ROWS).find(|(name, _)| *name == "ledger").unwrap();
        let Row::Ledger(mut ledger) = Row::decode(&stored).unwrap() else {
            panic!("the row is not a ledger")
        };
        ledger.calls = vec![Time(u64::MAX); 1_000];
        ledger.reservations = vec![ledger.reservations[0].clone(); 1_000];
        let row = Row::Ledger(ledger);
        assert!(row.memory_bytes() >= row.encode().len());
    }
}
