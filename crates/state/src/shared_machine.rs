//! A machine that several owners share, as it is sent.

use minicbor::decode::Error as DecodeError;
use minicbor::encode::{Error as EncodeError, Write};
use minicbor::{Decode, Decoder, Encode, Encoder};
use std::ops::Deref;
use std::sync::Arc;
use switchward_machine::Machine;

use crate::row::machine_bytes;

/// A shared machine. It is sent in its own canonical form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedMachine(pub Arc<Machine>);

impl Deref for SharedMachine {
    type Target = Machine;

    fn deref(&self) -> &Machine {
        &self.0
    }
}

impl<C> Encode<C> for SharedMachine {
    fn encode<W: Write>(&self, e: &mut Encoder<W>, ctx: &mut C) -> Result<(), EncodeError<W::Error>> {
        machine_bytes::encode(&self.0, e, ctx)
    }
}

impl<'b, C> Decode<'b, C> for SharedMachine {
    fn decode(d: &mut Decoder<'b>, ctx: &mut C) -> Result<Self, DecodeError> {
        machine_bytes::decode(d, ctx).map(Self)
    }
}
