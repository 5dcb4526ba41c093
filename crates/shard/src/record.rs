//! Rows as the state store keeps them.

use std::sync::Arc;
use switchward_engine::Row;
use switchward_store::Record;

/// A row of the engine's state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stored(pub(crate) Arc<Row>);

/// What a row of middling size takes in memory; the cache's bound is made of it.
const WEIGHT_BYTES: usize = 384;
/// What one entry of a list inside a row takes.
const ENTRY_BYTES: usize = 40;

impl Record for Stored {
    fn encode(&self) -> Vec<u8> {
        self.0.encode()
    }

    fn decode(bytes: &[u8]) -> Result<Self, String> {
        Row::decode(bytes).map(|row| Self(Arc::new(row))).map_err(|error| error.0)
    }

    fn weight(&self) -> usize {
        match &*self.0 {
            Row::Session(session) => {
                let entries = session.requests.len() + session.labels.len() * 4 + session.calls.len();
                WEIGHT_BYTES * 2 + entries * ENTRY_BYTES
            }
            Row::Ledger(ledger) => {
                WEIGHT_BYTES + (ledger.calls.len() + ledger.reservations.len() * 4) * ENTRY_BYTES
            }
            Row::History(history) => WEIGHT_BYTES + history.events.len() * WEIGHT_BYTES,
            Row::Machine(machine) => WEIGHT_BYTES * (machine.nodes.len() + 2),
            Row::Version(version) => {
                WEIGHT_BYTES + version.files.iter().map(|file| file.bytes.len()).sum::<usize>()
            }
            Row::Index | Row::Clock(_) | Row::LastTenant(_) | Row::Source(_) => ENTRY_BYTES,
            Row::Run(_)
            | Row::Open(_)
            | Row::Closed(_)
            | Row::Call(_)
            | Row::Request(_)
            | Row::Outbox(_)
            | Row::Grant(_)
            | Row::Tenant(_)
            | Row::ApiKey(_)
            | Row::Definition(_) => WEIGHT_BYTES,
        }
    }

    fn cache(&self) -> bool {
        match &*self.0 {
            Row::Session(session) => !session.status.ended(),
            Row::Run(_)
            | Row::Open(_)
            | Row::Ledger(_)
            | Row::Machine(_)
            | Row::Tenant(_)
            | Row::ApiKey(_)
            | Row::Definition(_)
            | Row::Clock(_) => true,
            Row::Closed(_)
            | Row::Call(_)
            | Row::History(_)
            | Row::Request(_)
            | Row::Outbox(_)
            | Row::Grant(_)
            | Row::Version(_)
            | Row::Index
            | Row::LastTenant(_)
            | Row::Source(_) => false,
        }
    }
}
