//! How the forms of this crate are framed, and codecs of values that have no binary form of their own.

use minicbor::decode::Error as DecodeError;
use minicbor::encode::{Error as EncodeError, Write};
use minicbor::{Decode, Decoder, Encode, Encoder};
use std::convert::Infallible;

/// A form byte, then a value's fields by number.
#[must_use]
pub fn framed(form: u8, value: &impl Encode<()>) -> Vec<u8> {
    framed_about(form, value, 256)
}

/// The same for a value of about this many bytes.
#[must_use]
pub fn framed_about(form: u8, value: &impl Encode<()>, bytes: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes);
    out.push(form);
    minicbor::encode(value, &mut out).expect("encoding into memory cannot fail");
    out
}

/// Reads what [`framed`] wrote; `what` is the name of the form in the error.
///
/// # Errors
/// Another form byte, broken bytes, unknown fields, or bytes after the end.
pub fn unframed<'b, T>(form: u8, bytes: &'b [u8], what: &str) -> Result<T, String>
where
    T: Decode<'b, ()> + Encode<()>,
{
    match bytes.split_first() {
        Some((&known, rest)) if known == form => {
            let mut decoder = Decoder::new(rest);
            let value = decoder.decode().map_err(|error| error.to_string())?;
            match rest.len() - decoder.position() {
                0 => all_known(&value, rest.len(), what).map(|()| value),
                more => {
                    let message = format!("{more} bytes follow the end of a {what}");
                    Err(message)
                }
            }
        }
        _ => {
            let message = format!("the form of a {what} is not {form}");
            Err(message)
        }
    }
}

/// Counts bytes.
struct Counted(usize);

impl Write for Counted {
    type Error = Infallible;

    fn write_all(&mut self, bytes: &[u8]) -> Result<(), Infallible> {
        self.0 += bytes.len();
        Ok(())
    }
}

/// Checks that a decoded value holds all of the bytes that it was decoded from. The decoder skips fields that it does not
/// know: a server that wrote such a value down would lose them. `what` is the name of the form in the error.
///
/// # Errors
/// Something was skipped.
pub fn all_known(value: &impl Encode<()>, read: usize, what: &str) -> Result<(), String> {
    let mut counted = Counted(0);
    if let Err(error) = minicbor::encode(value, &mut counted) {
        return Err(error.to_string());
    }
    if counted.0 < read {
        let skipped = read - counted.0;
        let message = format!(
            "a {what} has {skipped} bytes in fields that this version of Switchward does not know: run a newer one"
        );
        return Err(message);
    }
    Ok(())
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
        e.bytes(&crate::run::data::json_text(value))?.ok()
    }

    pub(crate) fn decode<C>(d: &mut Decoder<'_>, _: &mut C) -> Result<Value, DecodeError> {
        serde_json::from_slice(d.bytes()?).map_err(DecodeError::custom)
    }
}

/// Encodes types as their texts, which `FromStr` reads again.
macro_rules! as_text {
    ($($of:ty => $name:literal,)*) => {$(
        impl<C> minicbor::Encode<C> for $of {
            fn encode<W: minicbor::encode::Write>(
                &self,
                e: &mut minicbor::Encoder<W>,
                _: &mut C,
            ) -> Result<(), minicbor::encode::Error<W::Error>> {
                e.str(&self.to_string())?.ok()
            }
        }

        impl<'b, C> minicbor::Decode<'b, C> for $of {
            fn decode(
                d: &mut minicbor::Decoder<'b>,
                _: &mut C,
            ) -> Result<Self, minicbor::decode::Error> {
                d.str()?.parse().map_err(|_| minicbor::decode::Error::message(concat!("the text is not a ", $name)))
            }
        }

        impl<C> minicbor::CborLen<C> for $of {
            fn cbor_len(&self, ctx: &mut C) -> usize {
                self.to_string().cbor_len(ctx)
            }
        }
    )*};
}

/// Encodes types as bytes: how to get them, how to read them.
macro_rules! as_bytes {
    ($of:ty, $bytes:expr, $read:expr) => {
        impl<C> minicbor::Encode<C> for $of {
            fn encode<W: minicbor::encode::Write>(
                &self,
                e: &mut minicbor::Encoder<W>,
                _: &mut C,
            ) -> Result<(), minicbor::encode::Error<W::Error>> {
                let bytes: fn(&Self) -> &[u8] = $bytes;
                e.bytes(bytes(self))?.ok()
            }
        }

        impl<'b, C> minicbor::Decode<'b, C> for $of {
            fn decode(d: &mut minicbor::Decoder<'b>, _: &mut C) -> Result<Self, minicbor::decode::Error> {
                let read: fn(&[u8]) -> Result<Self, String> = $read;
                read(d.bytes()?).map_err(minicbor::decode::Error::message)
            }
        }

        impl<C> minicbor::CborLen<C> for $of {
            fn cbor_len(&self, ctx: &mut C) -> usize {
                let bytes: fn(&Self) -> &[u8] = $bytes;
                minicbor::CborLen::cbor_len(&bytes(self).len(), ctx) + bytes(self).len()
            }
        }
    };
}

/// Defines an enum without fields that is stored and shown as the word of its variant.
macro_rules! stored_words {
    (
        $(#[$about:meta])* $name:ident is $what:literal:
        $($(#[$doc:meta])* $variant:ident = $word:literal,)*
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$doc])* $variant,)* }

        impl $name {
            /// All variants, in order.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Returns the word that is stored and shown; it never changes.
            #[must_use]
            pub fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }

            /// Returns the variant with this word; `None` if there is none.
            #[must_use]
            pub fn from_word(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|known| known.word() == word)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.word())
            }
        }

        impl<C> minicbor::Encode<C> for $name {
            fn encode<W: minicbor::encode::Write>(
                &self,
                e: &mut minicbor::Encoder<W>,
                _: &mut C,
            ) -> Result<(), minicbor::encode::Error<W::Error>> {
                e.str(self.word())?.ok()
            }
        }

        impl<'b, C> minicbor::Decode<'b, C> for $name {
            fn decode(d: &mut minicbor::Decoder<'b>, _: &mut C) -> Result<Self, minicbor::decode::Error> {
                let known = Self::from_word(d.str()?);
                known.ok_or_else(|| minicbor::decode::Error::message(concat!("the word is no ", $what)))
            }
        }

        impl<C> minicbor::CborLen<C> for $name {
            fn cbor_len(&self, ctx: &mut C) -> usize {
                minicbor::CborLen::cbor_len(self.word(), ctx)
            }
        }
    };
}

pub(crate) use {as_bytes, as_text, stored_words};

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Encode, Decode)]
    struct Known {
        #[n(0)]
        a: u64,
        #[n(1)]
        b: Option<String>,
    }

    #[derive(Encode)]
    struct Newer {
        #[n(0)]
        a: u64,
        #[n(1)]
        b: Option<String>,
        #[n(2)]
        c: Option<u64>,
    }

    #[test]
    fn a_field_that_is_not_known_is_refused_and_its_absence_is_not() {
        for b in [None, Some("text".to_owned())] {
            let newer = |c| framed(1, &Newer { a: 5, b: b.clone(), c });
            assert_eq!(unframed(1, &newer(None), "form"), Ok(Known { a: 5, b: b.clone() }));
            let refused: Result<Known, String> = unframed(1, &newer(Some(0)), "form");
            assert!(refused.unwrap_err().contains("in fields that this version"));
        }
    }

    #[test]
    fn bytes_after_a_value_are_refused() {
        let bytes = framed(1, &(7_u64, "a text"));
        assert_eq!(unframed(1, &bytes, "form"), Ok((7_u64, "a text")));
        for more in [&[0_u8][..], &bytes] {
            let longer = [&bytes, more].concat();
            let read: Result<(u64, &str), String> = unframed(1, &longer, "form");
            assert_eq!(read, Err(format!("{} bytes follow the end of a form", more.len())));
        }
    }
}
