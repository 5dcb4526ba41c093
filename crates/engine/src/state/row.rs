//! One type for every row, and how rows are written down.

use minicbor::{CborLen, Decode, Encode};
use std::sync::Arc;
use switchward_machine::{Digest, Machine, Time};

use super::{
    ApiKey, Call, Closed, Data, Definition, Effect, Grant, LedgerRow, Open, Run, Session, Slot, Tenant,
    Thing, Version,
};
use crate::Actor;
use crate::event::Event;
use crate::reply::Reply;

/// The version of a row's stored form; its first byte.
const FORM: u8 = 1;

/// A row of the state. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum Row {
    /// A session.
    #[n(1)]
    Session(#[n(0)] Session),
    /// A run.
    #[n(2)]
    Run(#[n(0)] Run),
    /// An open gate.
    #[n(3)]
    Open(#[n(0)] Open),
    /// A closed gate.
    #[n(4)]
    Closed(#[n(0)] Closed),
    /// A permitted call.
    #[n(5)]
    Call(#[n(0)] Call),
    /// What one command did.
    #[n(6)]
    History(#[n(0)] History),
    /// A remembered reply.
    #[n(7)]
    Request(#[n(0)] Request),
    /// Counters.
    #[n(8)]
    Ledger(#[n(0)] LedgerRow),
    /// An effect.
    #[n(9)]
    Outbox(#[n(0)] Effect),
    /// An installed machine.
    #[n(10)]
    Machine(#[cbor(n(0), with = "machine_bytes")] Arc<Machine>),
    /// An approved call.
    #[n(11)]
    Grant(#[n(0)] Grant),
    /// A tenant.
    #[n(12)]
    Tenant(#[n(0)] Tenant),
    /// An API key.
    #[n(13)]
    ApiKey(#[n(0)] ApiKey),
    /// A definition.
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
    /// Open work, a wait or a timer.
    #[n(20)]
    Thing(#[n(0)] Thing),
    /// A run's data.
    #[n(21)]
    Data(#[n(0)] Data),
    /// The user's last message.
    #[n(22)]
    Said(#[n(0)] String),
    /// A child's place.
    #[n(26)]
    Slot(#[n(0)] Slot),
}

/// What one command did to its session, under the sequence of its first event. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct History {
    /// When.
    #[n(0)]
    pub at: Time,
    /// By whom.
    #[n(1)]
    pub by: Actor,
    /// Under which request id.
    #[n(2)]
    pub request: Option<String>,
    /// What happened, in order.
    #[n(3)]
    pub events: Vec<Event>,
}

impl History {
    /// The head of a session's history once this is added. Nothing can be taken out of a history, changed or moved in
    /// it without another head.
    #[must_use]
    pub fn link(&self, head: Digest) -> Digest {
        let mut bytes = Vec::with_capacity(512);
        minicbor::encode(self, &mut bytes).expect("encoding into memory cannot fail");
        Digest::of_parts(&[&head.0, &bytes])
    }
}

/// A reply that is remembered for its request id. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Request {
    /// Of the body that came with the id.
    #[n(0)]
    pub body: Digest,
    /// The reply.
    #[n(1)]
    pub reply: Reply,
    /// When it was given.
    #[n(2)]
    pub at: Time,
}

impl Row {
    /// The stored form: a form byte, then fields by number.
    ///
    /// # Panics
    /// Never: encoding into memory cannot fail.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(128);
        out.push(FORM);
        minicbor::encode(self, &mut out).expect("encoding into memory cannot fail");
        out
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// Another form, or broken bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, RowError> {
        match bytes.split_first() {
            Some((&FORM, rest)) => minicbor::decode(rest).map_err(|error| RowError(error.to_string())),
            Some((form, _)) => Err(RowError(format!("form {form} is not known here, only {FORM}"))),
            None => Err(RowError("no bytes".into())),
        }
    }
}

/// Bytes that are no row of this build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowError(pub String);

impl std::fmt::Display for RowError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "failed to read a row: {}", self.0)
    }
}

/// A machine inside a row, in its own canonical form.
pub(crate) mod machine_bytes {
    use minicbor::decode::Error as DecodeError;
    use minicbor::encode::{Error as EncodeError, Write};
    use minicbor::{Decoder, Encoder};
    use std::sync::Arc;
    use switchward_machine::Machine;

    pub(crate) fn encode<C, W: Write>(
        machine: &Arc<Machine>,
        e: &mut Encoder<W>,
        _: &mut C,
    ) -> Result<(), EncodeError<W::Error>> {
        e.bytes(&machine.encode())?.ok()
    }

    pub(crate) fn decode<C>(d: &mut Decoder<'_>, _: &mut C) -> Result<Arc<Machine>, DecodeError> {
        Machine::decode(d.bytes()?).map(Arc::new).map_err(|error| DecodeError::message(error.to_string()))
    }

    pub(crate) fn cbor_len<C>(machine: &Arc<Machine>, ctx: &mut C) -> usize {
        minicbor::CborLen::cbor_len(&minicbor::bytes::ByteVec::from(machine.encode()), ctx)
    }
}

/// A list of 16-byte hashes, as one byte string.
pub(crate) mod hashes {
    use minicbor::decode::Error as DecodeError;
    use minicbor::encode::{Error as EncodeError, Write};
    use minicbor::{Decoder, Encoder};

    pub(crate) fn encode<C, W: Write>(
        list: &[[u8; 16]],
        e: &mut Encoder<W>,
        _: &mut C,
    ) -> Result<(), EncodeError<W::Error>> {
        e.bytes(list.as_flattened())?.ok()
    }

    pub(crate) fn decode<C>(d: &mut Decoder<'_>, _: &mut C) -> Result<Vec<[u8; 16]>, DecodeError> {
        let (list, rest) = d.bytes()?.as_chunks::<16>();
        if rest.is_empty() { Ok(list.to_vec()) } else { Err(DecodeError::message("a hash is cut short")) }
    }

    pub(crate) fn cbor_len<C>(list: &[[u8; 16]], ctx: &mut C) -> usize {
        let len = list.len() * 16;
        minicbor::CborLen::cbor_len(&len, ctx) + len
    }
}
