//! One type for every row, and how rows are written down.

use minicbor::{CborLen, Decode, Encode};
use std::sync::Arc;
use switchward_machine::{Digest, Machine, Time};

use crate::approval::{Call, Closed, Grant};
use crate::catalogue::{
    ApiKey, Assistant, ClusterMap, Definition, Server, Tenancy, Tenant, TenantChange, Version,
};
use crate::delivery::{Effect, WebhookSource};
use crate::memory::InMemory;
use crate::policy::LedgerRow;
use crate::run::{Data, Run, Slot};
use crate::session::{Removed, Session};
use crate::{FormError, Level, OpenItem, Reply, StoredHistory};

/// The version of a row's stored form; its first byte.
const FORM: u8 = 1;

/// A row of the state. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum Row {
    /// A session without its runs, its data and its history.
    #[n(1)]
    Session(#[n(0)] Session),
    /// Where a run stands, without its data.
    #[n(2)]
    Run(#[n(0)] Run),
    /// A closed gate.
    #[n(4)]
    Closed(#[n(0)] Closed),
    /// A permitted call.
    #[n(5)]
    Call(#[n(0)] Call),
    /// What one command did.
    #[n(6)]
    History(#[n(0)] StoredHistory),
    /// A remembered reply.
    #[n(7)]
    Request(#[n(0)] Request),
    /// Counters.
    #[n(8)]
    Ledger(#[n(0)] LedgerRow),
    /// What is to go out, until it has arrived or is given up.
    #[n(9)]
    Outbox(#[n(0)] Effect),
    /// An installed machine.
    #[n(10)]
    Machine(#[cbor(n(0), with = "machine_bytes")] Arc<Machine>),
    /// An approved call.
    #[n(11)]
    Grant(#[n(0)] Grant),
    /// A tenant's name, number and switches.
    #[n(12)]
    Tenant(#[n(0)] Tenant),
    /// An API key without its secret.
    #[n(13)]
    ApiKey(#[n(0)] ApiKey),
    /// A definition with its active version, without its files.
    #[n(14)]
    Definition(#[n(0)] Definition),
    /// A version of a definition.
    #[n(15)]
    Version(#[n(0)] Version),
    /// The time of the last decision.
    #[n(16)]
    Clock(#[n(0)] Time),
    /// An entry of an index; its key says it all.
    #[n(17)]
    Index,
    /// The number that the last tenant got.
    #[n(18)]
    LastTenant(#[n(0)] u32),
    /// The number of a version.
    #[n(19)]
    Source(#[n(0)] u32),
    /// An open gate, work, a wait or a timer.
    #[n(20)]
    OpenItem(#[n(0)] OpenItem),
    /// A run's data.
    #[n(21)]
    Data(#[n(0)] Data),
    /// The last message of a conversation that is not the agent's own.
    #[n(22)]
    LastMessage(#[n(0)] crate::session::LastMessage),
    /// A child's slot.
    #[n(26)]
    Slot(#[n(0)] Slot),
    /// An assistant's workflows and instructions.
    #[n(30)]
    Assistant(#[n(0)] Assistant),
    /// A source of webhooks with its sealed secrets.
    #[n(40)]
    WebhookSource(#[n(0)] WebhookSource),
    /// What every shard must know of a tenant.
    #[n(50)]
    Tenancy(#[n(0)] Tenancy),
    /// What remains of a session.
    #[n(160)]
    Removed(#[n(0)] Removed),
    /// A change of what holds for a tenant.
    #[n(170)]
    TenantChange(#[n(0)] TenantChange),
    /// A signed message was recorded, or the ledgers count a call, and it is known again until then.
    #[n(171)]
    Recorded(#[n(0)] Time),
    /// Mails that have gone out in an hour, of those that the key names.
    #[n(172)]
    Mailed(#[n(0)] u32),
    /// What a tenant holds in a shard.
    #[n(173)]
    Usage(#[n(0)] crate::catalogue::Usage),
    /// What a request of a session was answered with.
    #[n(174)]
    Reply(#[n(0)] crate::session::StoredReply),
    /// A server of the cluster.
    #[n(175)]
    Server(#[n(0)] Server),
    /// Which servers hold which group.
    #[n(176)]
    ClusterMap(#[n(0)] ClusterMap),
    /// The feature level of the last decision, if it is above the first one.
    #[n(177)]
    Level(#[n(0)] Level),
}

/// A reply that is remembered for its request id, outside of sessions: see [`Replies`](crate::session::Replies) for
/// theirs. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Request {
    /// Of the body that came with the id.
    #[n(0)]
    pub body: Digest,
    /// What the caller was answered with.
    #[n(1)]
    pub reply: Reply,
    /// When it was given.
    #[n(2)]
    pub at: Time,
}

impl InMemory for Request {
    fn cached(&self) -> bool {
        false
    }
}

impl Row {
    /// The stored form: a form byte, then fields by number.
    ///
    /// # Panics
    /// Never: encoding into memory cannot fail.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(128);
        self.encode_into(&mut out);
        out
    }

    /// Appends the stored form.
    ///
    /// # Panics
    /// As [`encode`](Self::encode).
    pub fn encode_into(&self, out: &mut Vec<u8>) {
        out.push(FORM);
        minicbor::encode(self, out).expect("encoding into memory cannot fail");
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// Another form, broken bytes, or a field that this program does not know.
    pub fn decode(bytes: &[u8]) -> Result<Self, FormError> {
        match bytes.split_first() {
            Some((&FORM, rest)) => {
                let row: Self = minicbor::decode(rest).map_err(|error| FormError(error.to_string()))?;
                crate::wire::all_known(&row, rest.len(), "row").map_err(FormError)?;
                Ok(row)
            }
            Some((form, _)) => Err(FormError(format!("form {form} is not known here, only {FORM}"))),
            None => Err(FormError("no bytes".into())),
        }
    }
}

/// A machine inside another form, in its own canonical form: for `#[cbor(with = "...")]`.
pub mod machine_bytes {
    use minicbor::decode::Error as DecodeError;
    use minicbor::encode::{Error as EncodeError, Write};
    use minicbor::{Decoder, Encoder};
    use std::sync::Arc;
    use switchward_machine::Machine;

    /// Writes a machine's canonical form as one byte string.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn encode<C, W: Write>(
        machine: &Arc<Machine>,
        e: &mut Encoder<W>,
        _: &mut C,
    ) -> Result<(), EncodeError<W::Error>> {
        e.bytes(&machine.encode())?.ok()
    }

    /// Reads a machine.
    ///
    /// # Errors
    /// The bytes are no machine.
    pub fn decode<C>(d: &mut Decoder<'_>, _: &mut C) -> Result<Arc<Machine>, DecodeError> {
        Machine::decode(d.bytes()?).map(Arc::new).map_err(|error| DecodeError::message(error.to_string()))
    }

    /// The length of what is written, bytes.
    pub fn cbor_len<C>(machine: &Arc<Machine>, ctx: &mut C) -> usize {
        minicbor::CborLen::cbor_len(&minicbor::bytes::ByteVec::from(machine.encode()), ctx)
    }
}
