//! CBOR as a tree of items.

use minicbor::data::{Int, Type};
use minicbor::{Decoder, Encoder};

/// One item. The forms of this crate have no floats, no tags and no items of an unknown length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Item {
    Number(i128),
    Bytes(Vec<u8>),
    Text(String),
    Array(Vec<Item>),
    Map(Vec<(Item, Item)>),
    Bool(bool),
    Null,
}

impl Item {
    /// Reads one item, which the bytes end with.
    pub(super) fn read(bytes: &[u8]) -> Self {
        let mut decoder = Decoder::new(bytes);
        let item = Self::next(&mut decoder);
        assert_eq!(decoder.position(), bytes.len(), "bytes follow");
        item
    }

    fn next(decoder: &mut Decoder<'_>) -> Self {
        let kind = decoder.datatype().unwrap();
        if kind == Type::Bytes {
            Self::Bytes(decoder.bytes().unwrap().to_vec())
        } else if kind == Type::String {
            Self::Text(decoder.str().unwrap().to_owned())
        } else if kind == Type::Bool {
            Self::Bool(decoder.bool().unwrap())
        } else if kind == Type::Null {
            decoder.null().unwrap();
            Self::Null
        } else if kind == Type::Array {
            let length = decoder.array().unwrap().unwrap();
            Self::Array((0..length).map(|_| Self::next(decoder)).collect())
        } else if kind == Type::Map {
            let length = decoder.map().unwrap().unwrap();
            Self::Map((0..length).map(|_| (Self::next(decoder), Self::next(decoder))).collect())
        } else {
            Self::Number(decoder.int().unwrap().into())
        }
    }

    /// A form byte, then the item.
    pub(super) fn framed(&self, form: u8) -> Vec<u8> {
        let mut encoder = Encoder::new(vec![form]);
        self.write(&mut encoder);
        encoder.into_writer()
    }

    fn write(&self, encoder: &mut Encoder<Vec<u8>>) {
        let length = |length: usize| u64::try_from(length).unwrap();
        match self {
            Self::Number(number) => encoder.int(Int::try_from(*number).unwrap()).map(drop),
            Self::Bytes(bytes) => encoder.bytes(bytes).map(drop),
            Self::Text(text) => encoder.str(text).map(drop),
            Self::Bool(bool) => encoder.bool(*bool).map(drop),
            Self::Null => encoder.null().map(drop),
            Self::Array(items) => {
                encoder.array(length(items.len())).unwrap();
                items.iter().for_each(|item| item.write(encoder));
                Ok(())
            }
            Self::Map(pairs) => {
                encoder.map(length(pairs.len())).unwrap();
                pairs.iter().flat_map(|(key, value)| [key, value]).for_each(|item| item.write(encoder));
                Ok(())
            }
        }
        .unwrap();
    }

    /// The item and all items below it.
    pub(super) fn all(&self) -> Vec<&Self> {
        let below: Vec<&Self> = match self {
            Self::Array(items) => items.iter().collect(),
            Self::Map(pairs) => pairs.iter().flat_map(|(key, value)| [key, value]).collect(),
            Self::Number(_) | Self::Bytes(_) | Self::Text(_) | Self::Bool(_) | Self::Null => Vec::new(),
        };
        std::iter::once(self).chain(below.into_iter().flat_map(Self::all)).collect()
    }

    /// The item with this number in the order of [`all`](Self::all), counted down to 0.
    pub(super) fn nth(&mut self, left: &mut usize) -> Option<&mut Self> {
        if *left == 0 {
            return Some(self);
        }
        *left -= 1;
        match self {
            Self::Array(items) => items.iter_mut().find_map(|item| item.nth(left)),
            Self::Map(pairs) => {
                pairs.iter_mut().flat_map(|(key, value)| [key, value]).find_map(|item| item.nth(left))
            }
            Self::Number(_) | Self::Bytes(_) | Self::Text(_) | Self::Bool(_) | Self::Null => None,
        }
    }
}
