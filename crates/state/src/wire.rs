//! Codecs of values that have no binary form of their own: JSON, tokens and keys.

use minicbor::decode::Error as DecodeError;
use minicbor::encode::{Error as EncodeError, Write};
use minicbor::{CborLen, Decode, Decoder, Encode, Encoder};

use crate::approval::MailToken;
use crate::delivery::{Draft, Outgoing};
use crate::policy::Args;
use crate::session::ReplyToken;
use crate::{Key, Reason, RowError};

/// A form byte, then a value's fields by number.
pub(crate) fn framed(form: u8, value: &impl Encode<()>) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    out.push(form);
    minicbor::encode(value, &mut out).expect("encoding into memory cannot fail");
    out
}

/// Reads what [`framed`] wrote; `what` is the name of the form in the error.
pub(crate) fn unframed<'b, T: Decode<'b, ()>>(form: u8, bytes: &'b [u8], what: &str) -> Result<T, RowError> {
    match bytes.split_first() {
        Some((&known, rest)) if known == form => {
            minicbor::decode(rest).map_err(|error| RowError(error.to_string()))
        }
        _ => Err(RowError(format!("the form of a {what} is not {form}"))),
    }
}

/// A JSON value, as the bytes of its text.
pub(crate) mod value {
    use super::{DecodeError, Decoder, EncodeError, Encoder, Write};
    use serde_json::Value;

    pub(crate) fn encode<C, W: Write>(
        value: &Value,
        e: &mut Encoder<W>,
        _: &mut C,
    ) -> Result<(), EncodeError<W::Error>> {
        e.bytes(value.to_string().as_bytes())?.ok()
    }

    pub(crate) fn decode<C>(d: &mut Decoder<'_>, _: &mut C) -> Result<Value, DecodeError> {
        serde_json::from_slice(d.bytes()?).map_err(DecodeError::custom)
    }
}

/// Encodes a type as its text, which is read again by `FromStr`.
macro_rules! as_text {
    ($($of:ty => $problem:literal,)*) => {$(
        impl<C> Encode<C> for $of {
            fn encode<W: Write>(&self, e: &mut Encoder<W>, _: &mut C) -> Result<(), EncodeError<W::Error>> {
                e.str(&self.to_string())?.ok()
            }
        }

        impl<'b, C> Decode<'b, C> for $of {
            fn decode(d: &mut Decoder<'b>, _: &mut C) -> Result<Self, DecodeError> {
                d.str()?.parse().map_err(|_| DecodeError::message($problem))
            }
        }

        impl<C> CborLen<C> for $of {
            fn cbor_len(&self, ctx: &mut C) -> usize {
                self.to_string().cbor_len(ctx)
            }
        }
    )*};
}

as_text! {
    MailToken => "the text is not a mail token",
    ReplyToken => "the text is not a reply token",
}

impl<C> Encode<C> for Key {
    fn encode<W: Write>(&self, e: &mut Encoder<W>, _: &mut C) -> Result<(), EncodeError<W::Error>> {
        e.bytes(self.as_bytes())?.ok()
    }
}

impl<'b, C> Decode<'b, C> for Key {
    fn decode(d: &mut Decoder<'b>, _: &mut C) -> Result<Self, DecodeError> {
        Self::from_bytes(d.bytes()?).ok_or_else(|| DecodeError::message("the bytes are not a key"))
    }
}

impl<C> CborLen<C> for Key {
    fn cbor_len(&self, ctx: &mut C) -> usize {
        crate::run::data::length(self.as_bytes().len(), ctx)
    }
}

impl<C> Encode<C> for Args {
    fn encode<W: Write>(&self, e: &mut Encoder<W>, _: &mut C) -> Result<(), EncodeError<W::Error>> {
        e.bytes(self.json())?.ok()
    }
}

impl<'b, C> Decode<'b, C> for Args {
    fn decode(d: &mut Decoder<'b>, _: &mut C) -> Result<Self, DecodeError> {
        Self::parse(d.bytes()?).map_err(|bad| DecodeError::message(format!("the arguments {}", bad.0)))
    }
}

impl<C> CborLen<C> for Args {
    fn cbor_len(&self, ctx: &mut C) -> usize {
        crate::run::data::length(self.json().len(), ctx)
    }
}

impl<C> Encode<C> for Outgoing {
    fn encode<W: Write>(&self, e: &mut Encoder<W>, ctx: &mut C) -> Result<(), EncodeError<W::Error>> {
        self.draft().encode(e, ctx)
    }
}

impl<'b, C> Decode<'b, C> for Outgoing {
    fn decode(d: &mut Decoder<'b>, ctx: &mut C) -> Result<Self, DecodeError> {
        let draft = Draft::decode(d, ctx)?;
        Self::new(draft).map_err(|bad| DecodeError::message(format!("{} {}", bad.field, bad.problem)))
    }
}

impl<C> Encode<C> for Reason {
    fn encode<W: Write>(&self, e: &mut Encoder<W>, _: &mut C) -> Result<(), EncodeError<W::Error>> {
        e.str(self.code())?.ok()
    }
}

impl<'b, C> Decode<'b, C> for Reason {
    fn decode(d: &mut Decoder<'b>, _: &mut C) -> Result<Self, DecodeError> {
        let code = d.str()?;
        let known = Self::ALL.iter().find(|reason| reason.code() == code);
        known.copied().ok_or_else(|| DecodeError::message(format!("{code:?} is not a reason")))
    }
}
