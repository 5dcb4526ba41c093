//! Rows in the state store's form.

use std::sync::Arc;
use switchward_state::Row;
use switchward_store::Record;

/// A row of the engine's state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stored(pub(crate) Arc<Row>);

/// The memory of a row of medium size; the cache's bound is derived from it.
const WEIGHT_BYTES: usize = 384;
/// The memory of one entry of a list inside a row.
const ENTRY_BYTES: usize = 40;

impl Record for Stored {
    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode_into(out);
    }

    fn decode(bytes: &[u8]) -> Result<Self, String> {
        Row::decode(bytes).map(|row| Self(Arc::new(row))).map_err(|error| error.0)
    }

    fn weight(&self) -> usize {
        structure(&self.0) + payload(&self.0)
    }

    fn cache(&self) -> bool {
        match &*self.0 {
            Row::Session(session) => !session.status.ended(),
            Row::Run(_)
            | Row::OpenItem(_)
            | Row::Data(_)
            | Row::Said(_)
            | Row::Slot(_)
            | Row::Ledger(_)
            | Row::Machine(_)
            | Row::Tenant(_)
            | Row::ApiKey(_)
            | Row::Definition(_)
            | Row::Assistant(_)
            | Row::Tenancy(_)
            | Row::Usage(_)
            | Row::WebhookSource(_)
            | Row::Server(_)
            | Row::ClusterMap(_)
            | Row::Level(_)
            | Row::Clock(_) => true,
            Row::Closed(_)
            | Row::Removed(_)
            | Row::TenantChange(_)
            | Row::Call(_)
            | Row::History(_)
            | Row::Request(_)
            | Row::Reply(_)
            | Row::Recorded(_)
            | Row::Mailed(_)
            | Row::Outbox(_)
            | Row::Grant(_)
            | Row::Version(_)
            | Row::Index
            | Row::LastTenant(_)
            | Row::Source(_) => false,
        }
    }
}

/// The approximate memory of a row besides the bytes of its texts.
fn structure(row: &Row) -> usize {
    match row {
        Row::Session(session) => {
            let entries = session.replies.listed().len() + session.labels.len() * 4 + session.calls.len();
            let entries = entries + session.callees.len() * 4;
            WEIGHT_BYTES * 2 + entries * ENTRY_BYTES
        }
        Row::Tenancy(tenancy) => {
            let members = tenancy.directory.entries.iter().map(|entry| entry.members.len() + 1);
            let rules = tenancy.retention.rules.len() * 2;
            let endpoints = tenancy.endpoints.iter().map(|one| one.filters.len() + 2 * one.secrets.len() + 2);
            WEIGHT_BYTES + (members.sum::<usize>() + endpoints.sum::<usize>() + rules) * ENTRY_BYTES
        }
        Row::Ledger(ledger) => {
            WEIGHT_BYTES + (ledger.calls.len() + ledger.reservations.len() * 4) * ENTRY_BYTES
        }
        Row::Removed(removed) => WEIGHT_BYTES + removed.decisions.len() * 2 * ENTRY_BYTES,
        // Bytes, and beside them the fields if somebody reads them before they are on disk.
        Row::History(history) => WEIGHT_BYTES + usize::try_from(history.bytes()).unwrap_or(usize::MAX / 2),
        Row::Machine(machine) => WEIGHT_BYTES * (machine.nodes.len() + 2),
        Row::Index
        | Row::Clock(_)
        | Row::Level(_)
        | Row::Recorded(_)
        | Row::LastTenant(_)
        | Row::Source(_)
        | Row::Usage(_)
        | Row::Mailed(_) => ENTRY_BYTES,
        Row::ClusterMap(map) => {
            let replicas = map.groups.iter().map(|group| group.servers.len() + 1);
            WEIGHT_BYTES + replicas.sum::<usize>() * ENTRY_BYTES
        }
        Row::TenantChange(change) => WEIGHT_BYTES + change.parts.len() * 4 * ENTRY_BYTES,
        // Values of JSON take several times the bytes of their text.
        Row::Data(data) => WEIGHT_BYTES + 3 * minicbor::len(data),
        Row::Run(_)
        | Row::OpenItem(_)
        | Row::Said(_)
        | Row::Slot(_)
        | Row::Closed(_)
        | Row::Call(_)
        | Row::Request(_)
        | Row::Reply(_)
        | Row::Outbox(_)
        | Row::Grant(_)
        | Row::Tenant(_)
        | Row::ApiKey(_)
        | Row::Definition(_)
        | Row::Assistant(_)
        | Row::WebhookSource(_)
        | Row::Server(_)
        | Row::Version(_) => WEIGHT_BYTES,
    }
}

/// The length of the encoded row, which is mostly that of its texts; computed without encoding the row.
fn payload(row: &Row) -> usize {
    match row {
        // Long lists of short entries, which `structure` counts.
        Row::Ledger(_) => 0,
        // A machine inside a row would be encoded to be measured.
        Row::Machine(machine) => minicbor::len(&**machine),
        Row::Index
        | Row::Clock(_)
        | Row::Level(_)
        | Row::Recorded(_)
        | Row::LastTenant(_)
        | Row::Source(_)
        | Row::Usage(_)
        | Row::Mailed(_) => 0,
        Row::Session(_)
        | Row::Run(_)
        | Row::OpenItem(_)
        | Row::Data(_)
        | Row::Said(_)
        | Row::Slot(_)
        | Row::Closed(_)
        | Row::Call(_)
        | Row::History(_)
        | Row::Request(_)
        | Row::Reply(_)
        | Row::Outbox(_)
        | Row::Grant(_)
        | Row::Tenant(_)
        | Row::ApiKey(_)
        | Row::Definition(_)
        | Row::Assistant(_)
        | Row::Tenancy(_)
        | Row::TenantChange(_)
        | Row::Removed(_)
        | Row::WebhookSource(_)
        | Row::Server(_)
        | Row::ClusterMap(_)
        | Row::Version(_) => minicbor::len(row),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use switchward_machine::Time;
    use switchward_state::{Answered, Decision, History};

    const ROWS: &str = include_str!("../../state/tests/golden/row.v1.txt");
    const DECISIONS: &str = include_str!("../../state/tests/golden/decision.v1.txt");
    /// The length that every text and every free byte string is padded to.
    const LONG_BYTES: usize = 20_000;

    fn lines(golden: &'static str) -> impl Iterator<Item = (&'static str, Vec<u8>)> {
        golden.lines().map(|line| {
            let (name, hex) = line.split_once(' ').unwrap();
            let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
            (name, (0..hex.len()).step_by(2).map(byte).collect())
        })
    }

    /// The same stored form with long texts and long byte strings, except for hashes, machines and ids of keys.
    fn lengthened(stored: &[u8]) -> Vec<u8> {
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
            match major {
                2 | 3 if major == 3 || (length < HASH_BYTES && length != RING_KEY_ID_BYTES) => {
                    out.push(major << 5 | 25);
                    out.extend((LONG_BYTES as u16).to_be_bytes());
                    // Bytes may be JSON: a long text in quotes is valid JSON, too.
                    let quote = if major == 2 { b'"' } else { b'x' };
                    out.push(quote);
                    out.resize(out.len() + LONG_BYTES - 2, b'x');
                    out.push(quote);
                    at += length;
                }
                2 => {
                    out.extend(head);
                    out.extend(&stored[at..at + length]);
                    at += length;
                }
                _ => out.extend(head),
            }
        }
        out
    }

    /// Rows of every kind, and a history of every event, with long texts.
    fn long_rows() -> Vec<(String, Row)> {
        let mut rows: Vec<(String, Row)> = lines(ROWS)
            .map(|(name, stored)| (name.to_owned(), Row::decode(&lengthened(&stored)).unwrap()))
            .collect();
        for (_, row) in &mut rows {
            if let Row::Machine(machine) = row {
                Arc::make_mut(machine).nodes[0].text = Some("x".repeat(LONG_BYTES));
            }
        }
        rows.extend(lines(DECISIONS).map(|(_, stored)| {
            let turn = Decision::decode(&lengthened(&stored)).unwrap().turns.remove(0);
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
            let (weight, encoded) = (Stored(Arc::new(row.clone())).weight(), row.encode().len());
            assert!(weight >= encoded, "{name} weighs {weight} and has {encoded} bytes");
            assert!(weight <= 2 * encoded + 4 * WEIGHT_BYTES, "{name} weighs {weight}, not {encoded}");
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
        assert!(Stored(Arc::new(row.clone())).weight() >= row.encode().len());
    }
}
