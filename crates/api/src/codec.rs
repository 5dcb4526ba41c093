//! The codec of the generated clients and servers.
//!
//! It is prost's, except that a message which cannot be decoded is `INVALID_ARGUMENT`: on a server that is the caller's
//! fault, and tonic's own codec answers `INTERNAL`. A client that gets such a status for a reply talks to a server of
//! another API.

use std::marker::PhantomData;

use prost::Message;
use tonic::Status;
use tonic::codec::{BufferSettings, DecodeBuf};
use tonic_prost::ProstEncoder;

/// The first size of a buffer for a message: most fit, and a larger one makes it grow. tonic's own 8 KiB would be taken
/// twice for each call.
const BUFFER_BYTES: usize = 1024;
/// How many bytes of a stream's messages are sent together, if several are ready; as tonic has it.
const TOGETHER_BYTES: usize = 32 * 1024;

fn buffers() -> BufferSettings {
    BufferSettings::new(BUFFER_BYTES, TOGETHER_BYTES)
}

/// Encodes `T` and decodes `U`.
#[derive(Debug)]
pub struct Codec<T, U>(PhantomData<(T, U)>);

impl<T, U> Default for Codec<T, U> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<T, U> tonic::codec::Codec for Codec<T, U>
where
    T: Message + Send + 'static,
    U: Message + Default + Send + 'static,
{
    type Encode = T;
    type Decode = U;
    type Encoder = ProstEncoder<T>;
    type Decoder = Decoder<U>;

    fn encoder(&mut self) -> Self::Encoder {
        ProstEncoder::new(buffers())
    }

    fn decoder(&mut self) -> Self::Decoder {
        Decoder(PhantomData)
    }
}

/// Decodes `U`.
#[derive(Debug)]
pub struct Decoder<U>(PhantomData<U>);

impl<U: Message + Default> tonic::codec::Decoder for Decoder<U> {
    type Item = U;
    type Error = Status;

    fn decode(&mut self, buf: &mut DecodeBuf<'_>) -> Result<Option<U>, Status> {
        let message = U::decode(buf)
            .map_err(|error| Status::invalid_argument(format!("failed to decode the message: {error}")))?;
        Ok(Some(message))
    }

    fn buffer_settings(&self) -> BufferSettings {
        buffers()
    }
}
